"""Kept runs of columns are resumed to the same bytes, sampled, and told by their logs."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism.cli._results import print_results
from prism.errors import SimulationError
from prism.runlog import RunLog, SimulatedClock
from prism.worlds import Run, measure, resume
from prism.worlds._loop import sampling_of
from prism.worlds._stage import Sampling
from tests.columns.same import require_same
from tests.columns.worlds import Deffuant, Epidemic, Late, MoodyPairs, MoodyVoters, Together, Voters


def straight(world: Any, path: Path) -> tuple[bytes, list[Any]]:
    """Run a world in columns; return its log, and a snapshot after each round."""
    clock, kept = SimulatedClock(), []
    with RunLog(path, clock) as log:
        run: Run[Any] = Run(world, 36, seed=2, columns=True, logger=log.logger, clock=clock)

        def keep(_: Any) -> None:
            log.flush()
            kept.append((json.dumps(run.loop.snapshot()), path.read_text().splitlines()))

        run.run(keep)

    return path.read_bytes(), kept


@pytest.mark.parametrize(
    ("world", "step"),
    [
        (Together, 3),
        (Late, 1),
        *(
            pytest.param(world, 1, marks=pytest.mark.slow)
            for world in (Together, Epidemic, Voters, Deffuant, MoodyVoters, MoodyPairs)
        ),
    ],
)
def test_a_run_goes_on_after_each_round(world: Any, step: int, tmp_path: Path) -> None:
    """Killed after any round, a run is resumed to the bytes of one that never stopped."""
    log, kept = straight(world, tmp_path / "straight.jsonl")
    for number, (snapshot, lines) in list(enumerate(kept[:-1]))[::step]:
        clock, path = SimulatedClock(), tmp_path / f"{number}.jsonl"
        with RunLog(path, clock) as again:
            run: Run[Any] = Run(world, 36, seed=2, columns=True, logger=again.logger, clock=clock)
            run.loop.restore(json.loads(snapshot), map(json.loads, lines))
            run.run()
        assert "\n".join([*lines, path.read_text()]).encode() == log


@pytest.mark.parametrize("world", [Epidemic, Together])
@pytest.mark.slow
def test_objects_and_columns_resume_each_other(world: Any) -> None:
    """What a checkpoint keeps has one form, so that snapshots of both engines are equal."""
    kept: dict[bool, list[Any]] = {False: [], True: []}
    for columns, snapshots in kept.items():
        run: Run[Any] = Run(world, 36, seed=2, columns=columns)
        run.run(lambda _, run=run, snapshots=snapshots: snapshots.append(run.loop.snapshot()))

    for one, other in zip(kept[False], kept[True], strict=True):
        assert one["kinds"] == other["kinds"]
        assert one["world"] == other["world"]


def test_a_kept_run_says_that_it_is_in_columns(tmp_path: Path) -> None:
    """A folder knows how its run was carried out, and a resume goes on in columns."""
    Run("rumour", 30, seed=1, rounds=3, columns=True).keep(tmp_path / "run")
    config = json.loads((tmp_path / "run" / "run.json").read_text())["config"]
    assert config["columns"] is True
    assert resume(tmp_path / "run") is None


@pytest.mark.parametrize("world", [Together, Epidemic])
@pytest.mark.slow
def test_a_sampled_log_is_the_same(world: Any, tmp_path: Path) -> None:
    """Both engines draw the same agents for the log, and tell of these alone."""
    log = require_same(world, 49, tmp_path, seed=3, log_agents=7)
    lines = [json.loads(line) for line in log.splitlines()]
    assert lines[0]["logged_agents"] == 7
    joined = {line["agent_id"] for line in lines if line["event"] == "agent.joined"}
    moved = {line["agent_id"] for line in lines if line["event"] == "statechart.transition"}
    assert len(joined) == 7
    assert moved
    assert moved <= joined
    ended = [line for line in lines if line["event"] == "round.ended"]
    assert all(sum(line["states"].values()) == 49 for line in ended)


def test_many_agents_are_sampled_by_default() -> None:
    """Of more than 100,000 agents the log tells of 1,000, and of all of fewer."""
    by_default = Sampling(1_000, above=100_000)
    assert [sampling_of(number, None) for number in (100_000, 100_001)] == [None, by_default]
    assert [by_default.of(number) for number in (100_000, 100_001)] == [None, 1_000]
    assert sampling_of(100_001, 5) == sampling_of(3, 5) == Sampling(5)


def test_the_screen_says_of_whom_the_log_tells(tmp_path: Path, capsys: Any) -> None:
    """Behind a run whose log is of a sample, the command line says so."""
    outcome = Run("rumour", 30, rounds=2, log_agents=7).keep(tmp_path / "run")
    print_results(outcome.results, tmp_path / "run")
    assert "Every transition of 7 of 30 agents is in" in capsys.readouterr().out


class Meddling(Epidemic):
    """A world whose measure changes somebody."""

    @measure
    def met(self) -> int:
        """How many the first has met."""
        self.agents[0].met += 1
        return self.agents[0].met


def test_a_measure_that_changes_a_field_is_refused() -> None:
    """A measure only looks: a row refuses to be changed by it, and says by which field."""
    with pytest.raises(SimulationError, match=r"Patient.met of 'patient_1' is changed: a measure"):
        Run(Meddling, 30, columns=True).run()


class Peeking(Epidemic):
    """A world whose measure draws from somebody who has drawn at the end of the round."""

    def round_ends(self) -> None:
        """Draw as a hook may."""
        self.agents[0].random.random()

    @measure
    def drawn(self) -> float:
        """Draw as a measure may not."""
        return self.agents[0].random.random()


@pytest.mark.parametrize("columns", [False, True])
def test_a_measure_that_draws_is_refused(columns: bool) -> None:
    """A measure draws from nobody, in objects as in columns, whoever has drawn before."""
    with pytest.raises(SimulationError, match="agent 'patient_1' cannot draw random numbers: a me"):
        Run(Peeking, 30, columns=columns).run()
