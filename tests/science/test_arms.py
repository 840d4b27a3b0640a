"""The arms of experiments over several runs, and the plan that ships for one."""

from pathlib import Path

import pytest

from prism import Run
from prism.analysis import arms, read_log
from prism.errors import InputError
from prism.science import Plan, batch, compare
from prism.social import Feed, Likes
from prism.testing import Asked, FakeOllama


@pytest.mark.slow
def test_arms_are_compared_in_pairs_within_runs(tmp_path: Path) -> None:
    """Difference, interval and p are those of scipy's paired t-test of the runs' means."""
    from scipy.stats import ttest_rel

    folders = [tmp_path / str(seed) for seed in range(4)]
    for seed, folder in enumerate(folders):
        Run(Feed, 20, rounds=1, seed=seed, treatments=(Likes(1, share=0.5),)).keep(folder)

    tables = [dict(arms(read_log(folder)).select("arm", "score").iter_rows()) for folder in folders]
    treated, control = ([each[arm] for each in tables] for arm in ("likes", "control"))
    wanted = ttest_rel(treated, control)
    found = compare(folders, measures=["score"])
    (row,) = found.differences
    assert (row.first, row.second, row.paired, row.runs_first) == ("control", "likes", True, 4)
    assert row.t_p == pytest.approx(wanted.pvalue)
    gaps = [one - other for one, other in zip(treated, control, strict=True)]
    assert row.difference == pytest.approx(sum(gaps) / 4)
    assert row.t_low < row.difference < row.t_high
    assert wanted.confidence_interval().low == pytest.approx(row.t_low)


def test_runs_without_an_experiment_are_refused(tmp_path: Path) -> None:
    """There is nothing to compare."""
    Run(Feed, 10, rounds=1).keep(tmp_path / "run")
    with pytest.raises(InputError, match="is only one group of runs"):
        compare(tmp_path / "run")


@pytest.mark.slow
def test_arms_in_the_runs_of_a_batch_are_compared_at_each_setting(tmp_path: Path) -> None:
    """Arms that runs assign posts to are a factor beside those that the plan varies."""
    treatment = {"kind": "likes", "experiment": "votes", "round": 1, "share": 0.5}
    plan = Plan(
        {
            "agents": 20,
            "rounds": 1,
            "seeds": 2,
            "vary": {"herding": [0.0, 1.0]},
            "treatment": [treatment],
        }
    )
    folder = batch(plan, tmp_path / "out", workers=1).folder
    found = compare(folder, measures=["score"])
    assert [row.setting for row in found.differences] == ["herding=0.0", "herding=1.0"]
    assert {row.first for row in found.differences} == {"control"}
    assert found.model is not None


def test_the_herd_experiment_ships() -> None:
    """Its configurations vary how far agents follow votes, with both arms in each."""
    plan = Plan.from_file("herd")
    assert plan.name == "herd"
    for configuration in plan.configurations():
        run = plan.options(configuration, 0)
        assert [each.name for each in run.treatments] == ["up-treated", "down-treated"]  # type: ignore[union-attr]
        assert {each.experiment for each in run.treatments} == {"herd"}  # type: ignore[union-attr]


@pytest.mark.slow
def test_a_model_is_told_of_the_votes_in_the_herd_experiment(tmp_path: Path) -> None:
    """One that likes what has a score above 0 likes posts of the arm that was voted up alone."""

    def choose(asked: Asked) -> str:
        is_up = "\nScore: 1\n" in asked.prompt
        return "engaging_like" if is_up and "engaging_like" in asked.options else "scrolling"

    with FakeOllama(models=["mine"], choose=choose) as server:
        plan = Plan.from_file("herd-model").with_model("mine").with_hosts([server.host])
        (only,) = plan.configurations()
        plan.options(only, 0).replace(agents=25, rounds=1).keep(tmp_path)

    likes = dict(arms(read_log(tmp_path)).select("arm", "likes").iter_rows())
    assert likes["up-treated"] > 0
    assert likes["control"] == likes["down-treated"] == 0
