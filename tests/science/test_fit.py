"""Fits: what was planted is found, and one that was stopped goes on to the same bytes."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.science import BatchObserver, BatchRun, Configuration, Plan, fit, read_fit, resume_batch
from tests.kit.commands import Prism
from tests.kit.kept import tree

pytest.importorskip("scipy")


ADOPTION = """\
from enum import StrEnum
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, measure, state

Stage = StrEnum("Stage", ["UNAWARE", "ADOPTED"])


class Person(Agent):
    chart = Statechart(
        Stage,
        [Transition("adopts", Stage.UNAWARE, Stage.ADOPTED)],
        initial=Stage.UNAWARE,
        name="adoption",
    )


class Adoption(World[Person]):
    rounds = 6
    push: float = 0.05
    pull: float = 0.4
    faulty: bool = False
    odds: float = state(0.0)

    def tick_begins(self) -> None:
        self.odds = min(1.0, self.push + self.pull * self.share(Stage.ADOPTED))
        assert not (self.faulty and self.pull > 0.5), "too much"

    @during(Stage.UNAWARE)
    def look(self, person: Person) -> None:
        if person.random.chance(self.odds):
            person.fire("adopts")

    @measure
    def adopted(self) -> float:
        return self.share(Stage.ADOPTED)
"""


def adoption(folder: Path, **more: Any) -> Plan:
    """Return a plan that fits how much adopters pull, in a world of its own module."""
    path = folder / f"{folder.name}.py"
    path.write_text(ADOPTION)
    target = {"measure": "adopted", "value": 0.55, "spread": 0.02}
    said = {"world": f"{path}:Adoption", "agents": 40, "rounds": 6, "seeds": 3, "target": [target]}

    return Plan({**said, "bounds": {"pull": [0.0, 1.0]}, **more})


@pytest.mark.slow
def test_a_planted_parameter_is_found(tmp_path: Path) -> None:
    """The fit comes near to it, with an interval around its median."""
    plan = adoption(tmp_path, agents=30)
    known = Configuration("known", None, {"pull": 0.6}, {**plan.data})
    # the mean of many runs, so that chance decides little
    runs = [
        plan.options(known, seed).run().to_dict()["rounds"] for seed in range(10**6, 10**6 + 24)
    ]
    means = {
        number: sum(rounds[number - 1]["measures"]["adopted"] for rounds in runs) / len(runs)
        for number in (3, 6)
    }
    targets: list[dict[str, Any]] = [
        {"measure": "adopted", "round": number, "value": mean, "spread": 0.0}
        for number, mean in means.items()
    ]
    targets.append({"measure": "adopted", "value": 0.9, "spread": 0.05, "held_out": True})
    found = fit(Plan({**plan.data, "target": targets}), tmp_path / "out", samples=60)

    (row,) = found.estimates().df().to_dict("records")
    assert row["low"] < row["median"] < row["high"]
    assert abs(row["median"] - 0.6) < 0.25
    assert row["width"] < 0.6
    assert (row["least"], row["most"]) == (0.0, 1.0)
    table = found.targets().df()
    assert list(table["held_out"]) == [False, False, True]
    within = (table["low"] <= table["value"]) & (table["value"] <= table["high"])
    assert list(table["within"]) == list(within)
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {
        *("estimates.csv", "targets.csv", "plan.json", "runs.jsonl"),
    }


class Stopping(BatchObserver):
    """Stops a batch after some runs, as Ctrl-C does."""

    def __init__(self, after: int) -> None:
        self.left = after

    def run_ended(self, run: BatchRun) -> None:
        """Count down."""
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_a_fit_that_was_stopped_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    """Stopped again and again, it comes to the same tables."""
    plan = adoption(tmp_path, seeds=1, agents=20)
    fit(plan, tmp_path / "whole", workers=2, samples=30)
    with pytest.raises(KeyboardInterrupt):
        fit(plan, tmp_path / "out", workers=2, observer=Stopping(7), samples=30)
    with pytest.raises(KeyboardInterrupt):
        resume_batch(tmp_path / "out", observer=Stopping(9), workers=2)
    resume_batch(tmp_path / "out", workers=1)
    read_fit(tmp_path / "out").write()
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")


@pytest.mark.slow
def test_a_target_out_of_reach_is_reported_wherever_the_estimate_stands(
    tmp_path: Path, prism: Prism
) -> None:
    """The screen and the table say that the interval means nothing."""
    world = adoption(tmp_path).data["world"]
    target = '{measure = "adopted", value = 0.99, spread = 0.0}'
    (tmp_path / "plan.toml").write_text(
        f'world = "{world}"\nagents = 20\nbounds.pull = [0.0, 0.1]\ntarget = [{target}]\n'
    )
    ran = prism("fit", tmp_path / "plan.toml", "--samples", 30, "--out", tmp_path / "out")
    assert ran.status == 0, ran.err

    (row,) = read_fit(tmp_path / "out").estimates().df().to_dict("records")
    assert "1 of 1 fitted targets is missed, so the interval says which" in row["remark"]
    assert f"pull: {row['remark']}." in " ".join(ran.out.split())
    assert row["remark"] in (tmp_path / "out" / "estimates.csv").read_text()
    assert "30 of 30: sample-" in ran.err


@pytest.mark.slow
def test_samples_that_fail_are_far_from_every_target(tmp_path: Path) -> None:
    """A fit goes on without them, and says how many there were."""
    plan = adoption(tmp_path, seeds=1, agents=20, parameters={"faulty": True})
    found = fit(plan, tmp_path / "out", samples=20)
    assert found.batch.failed
    assert all(found.points[number - 1][0] <= 0.5 for number in found.kept.indices + 1)
    trace = tmp_path / "out" / found.batch.failed[0].name / "traceback.txt"
    assert "AssertionError: too much" in trace.read_text()


@pytest.mark.slow
def test_a_target_is_of_an_arm_and_may_be_how_much_runs_differ(tmp_path: Path) -> None:
    """Each sample is run in every arm; ``sd`` is the standard deviation between its runs."""
    target = {"measure": "adopted", "spread": 0.05}
    plan = adoption(
        tmp_path,
        agents=20,
        arm=[{"name": "weak"}, {"name": "strong", "parameters": {"push": 0.2}}],
        target=[
            {**target, "arm": "weak", "value": 0.5},
            {**target, "arm": "strong", "value": 0.9},
            {**target, "arm": "weak", "value": 0.1, "statistic": "sd"},
        ],
    )
    found = fit(plan, tmp_path / "out", samples=20)
    names = [run.name for run in found.batch.runs]
    assert names[2:7:2] == [
        *("weak,sample-00001/seed-2", "strong,sample-00001/seed-1", "weak,sample-00002/seed-3"),
    ]
    weak, strong, deviation = found.targets().df().to_dict("records")
    assert weak["mean"] < strong["mean"]
    assert [each["statistic"] for each in (weak, strong, deviation)] == ["mean", "mean", "sd"]
    values = found.batch.results().df().groupby("configuration")["adopted"].std()
    sample = found.kept.indices[0] + 1
    assert deviation["low"] <= values[f"weak,sample-{sample:05}"] <= deviation["high"]


TARGET = {"measure": "adopted", "value": 1, "spread": 1}


@pytest.mark.parametrize(
    ("changed", "samples", "said"),
    [
        ({"target": [{**TARGET, "spread": -1}]}, 20, "spread"),
        ({"target": [{**TARGET, "held_out": True}]}, 20, "needs "),
        ({"target": [{**TARGET, "arm": "a"}]}, 20, "is of no arm"),
        ({"seeds": 1, "target": [{**TARGET, "statistic": "sd"}]}, 20, "needs two seeds"),
        ({"bounds": {}}, 20, "is missing: add .bounds."),
        ({"bounds": {"faulty": [0, 1]}}, 20, "is for numbers, but faulty is False by default"),
        ({"vary": {"push": [0.1, 0.2]}}, 20, "is for batches"),
        ({}, 19, "'samples': must be 20 or more"),
    ],
)
def test_what_cannot_be_fitted_is_refused(
    tmp_path: Path, changed: dict[str, Any], samples: int, said: str
) -> None:
    """Nothing is run of a plan that no fit can be of."""
    with pytest.raises(InputError, match=said):
        fit(adoption(tmp_path, **changed), tmp_path / "out", samples=samples)
    assert not (tmp_path / "out").exists()


def test_a_fit_without_a_complete_run_says_what_failed(tmp_path: Path) -> None:
    """Its estimates are refused with the number of complete samples, and the first failure."""
    told = {
        **{"prism": "0.0.1", "plan": dict(adoption(tmp_path).data), "inputs": {}},
        **{"samples": [{"pull": 0.7}] * 20, "seeds_by_sample": True},
        "fit": {"seed": 0, "parameters": ["pull"], "points": [[0.7]] * 20},
    }
    (tmp_path / "plan.json").write_text(json.dumps(told))
    row = {"run": "sample-00001/seed-0", "error": "AssertionError: too much"}
    (tmp_path / "runs.jsonl").write_text(json.dumps(row) + "\n")
    said = "0 of 20 samples are complete; sample-00001/seed-0 failed: AssertionError: too much"
    with pytest.raises(InputError, match=said):
        read_fit(tmp_path).estimates()
