"""The schema of a run log."""

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import prism
from prism.runlog import _schema as schema
from prism.runlog._events import COMMON, EVENTS
from prism.runlog._schema import json_schema
from prism.social import Activity
from prism.statechart.reasoner._spending import COST_KEYS, KNOWN_COST_KEYS
from prism.telemetry import events

KEYS = {event.name: {key.name: key for key in event.keys} for event in EVENTS}


def test_every_event_name_is_defined_once() -> None:
    """The schema defines exactly the events of prism.telemetry."""
    named = {
        value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)
    }
    assert sorted(event.name for event in EVENTS) == sorted(named)


def test_keys_are_defined_once() -> None:
    """No event defines a key twice, or one of the common keys."""
    for event in EVENTS:
        defined = [key.name for key in (*COMMON, *event.keys)]
        assert len(defined) == len(set(defined)), event.name


def test_counts_and_calls_are_those_of_the_code() -> None:
    """The schema has all counts of the simulation, why it stopped, and all keys of a call."""
    counts = {each.name for each in fields(Activity)}
    assert (
        KEYS[events.ROUND_ENDED].keys() - {"states", "measures"}
        == KEYS[events.RUN_ENDED].keys() - {"costs", "error"}
        == counts | {"stopped"}
    )
    optional = [name for name, key in KEYS[events.DECISION].items() if not key.required]
    assert optional == [
        "option_mass",
        "rotation",
        "sampling_seed",
        "said",
        *COST_KEYS,
        *KNOWN_COST_KEYS,
        "decision_id",
        "prompt_hash",
    ]


def test_the_schema_has_its_version() -> None:
    """The version is in the id of the schema, and is the only one it allows."""
    assert json_schema()["$id"].endswith(f":{events.SCHEMA_VERSION}")
    assert (
        json_schema()["$defs"][events.RUN_STARTED]["properties"]["schema"]["const"]
        == events.SCHEMA_VERSION
    )


def test_the_published_schema_allows_unknown_keys() -> None:
    """The published schema allows unknown keys, the strict one does not."""
    assert '"additionalProperties": false' not in json.dumps(json_schema())
    strict = json_schema(strict=True)["$defs"]
    assert [definition["additionalProperties"] for definition in strict.values()] == [False] * len(
        EVENTS
    )


def test_the_page_describes_every_key(tmp_path: Path) -> None:
    """The page has a section for every event and a row for each of its keys."""
    schema.write(tmp_path)
    first, *sections = (tmp_path / schema.PAGE_NAME).read_text(encoding="utf-8").split("\n## ")
    assert f"Version {events.SCHEMA_VERSION}" in first
    assert [section.splitlines()[0].strip("`") for section in sections[1:]] == list(KEYS)
    for event, section in zip(EVENTS, sections[1:], strict=True):
        assert event.meaning in section
        assert section.count("\n| `") == len(event.keys)
        assert all(
            f"\n| `{key.name}` | " in section and key.meaning in section for key in event.keys
        )
    assert json.loads((tmp_path / schema.SCHEMA_NAME).read_bytes()) == json_schema()


def run_python(folder: Path, *arguments: str) -> None:
    """Run a fresh interpreter in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(Path(prism.__file__).parents[1])}
    subprocess.run(
        [sys.executable, "-W", "error", *arguments], cwd=folder, env=environment, check=True
    )


def test_one_command_writes_both(tmp_path: Path) -> None:
    """The command of the module writes the schema and the page, and nothing else."""
    run_python(tmp_path, "-m", "prism.runlog._schema", ".")
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {schema.PAGE_NAME, schema.SCHEMA_NAME}


def test_importing_the_run_log_does_not_load_the_schema(tmp_path: Path) -> None:
    """Importing prism.runlog does not import the schema, so that it costs a run nothing."""
    run_python(
        tmp_path, "-c", "import sys, prism.runlog; assert 'prism.runlog._schema' not in sys.modules"
    )
