"""The schema of a run log."""

import json

from prism.reasoner._spending import COST_KEYS, KNOWN_COST_KEYS
from prism.runlog._events import EVENTS, json_schema
from prism.telemetry import events

KEYS = {event.name: {key.name: key for key in event.keys} for event in EVENTS}


def test_every_event_name_is_defined_once() -> None:
    """The schema defines exactly the events of prism.telemetry."""
    named = {
        value for name, value in vars(events).items() if name.isupper() and isinstance(value, str)
    }
    assert sorted(event.name for event in EVENTS) == sorted(named)


def test_calls_are_those_of_the_code() -> None:
    """The schema has all keys of a call, in their order."""
    optional = [name for name, key in KEYS[events.DECISION].items() if not key.required]
    assert optional == [
        "question_kind",
        "option_mass",
        "rotation",
        "sampling_seed",
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
