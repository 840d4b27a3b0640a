"""Run folders that earlier versions began: refused in words, unchanged, and readable."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.analysis import read_log, run_measures, state_counts
from prism.errors import InputError
from prism.report import make_report
from prism.runs import run_status
from prism.runs._checkpoints import Checkpoint
from prism.telemetry.events import SCHEMA_VERSION
from prism.worlds import resume
from tests.kit.dice import tree

EARLIER = sorted((Path(__file__).parents[1] / "data" / "earlier").iterdir())


@pytest.fixture(
    params=[*(pytest.param(each, marks=pytest.mark.slow) for each in EARLIER[:-1]), EARLIER[-1]],
    ids=lambda folder: folder.name,
)
def begun(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a copy of a run that was killed behind its first checkpoint, that day."""
    return Path(shutil.copytree(request.param, tmp_path / "run"))


def test_every_version_of_the_log_has_a_folder() -> None:
    """Whoever raises the version of the log keeps a run folder of the one before."""
    logs = [(folder / "events.jsonl").read_text(encoding="utf-8") for folder in EARLIER]
    versions = {json.loads(log.partition("\n")[0])["schema"] for log in logs}
    assert versions == set(range(1, SCHEMA_VERSION + 1))


def test_it_is_refused_in_words_and_nothing_changes(begun: Path) -> None:
    """Resuming says that the run is of an earlier version, and what to do instead."""
    before = tree(begun)
    with pytest.raises(InputError, match=r"earlier version.*start a new run .prism log"):
        resume(begun)
    assert tree(begun) == before


def test_tables_status_and_page_read_it(begun: Path) -> None:
    """Whatever reads a run reads one of an earlier version."""
    logs = read_log(begun)
    assert set(state_counts(logs)["agents"]) <= {0, 1, 2, 3}
    assert run_measures(logs).height == 1
    assert (run_status(begun).state, run_status(begun).round) == ("stopped", 1)
    assert "agent_0001" in make_report(read_log(begun)).html()


def test_a_checkpoint_of_an_agent_alone_is_refused_in_words(tmp_path: Path) -> None:
    """A run of an agent alone whose checkpoint is kept otherwise is not resumed."""
    file, run = tmp_path / "code.yaml", tmp_path / "run"
    file.write_text("steps: [{name: add, code: 'n = context.get(\"n\", 0) + 1'}]\n")

    def stop(turn: Any) -> None:
        if turn.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Run(file, rounds=3).keep(run, on_round=stop, checkpoint_every=0)
    for path in (run / "checkpoints").glob("round_*"):
        kept = Checkpoint.from_bytes(path.read_bytes())
        assert kept is not None
        earlier = {name: kept.snapshot[name] for name in ("moment", "spent")} | {"agent": {}}
        path.write_bytes(replace(kept, snapshot=earlier).to_bytes())
    with pytest.raises(InputError, match=r"run: was begun by an earlier version.*start a new run"):
        resume(run)
