"""The arms of experiments over several runs, and the plan that ships for one."""

from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import ttest_rel

from prism.analysis import arms, read_log
from prism.errors import InputError
from prism.runs import begin
from prism.science import Plan, arm_effects
from prism.social import Likes, SocialRun
from prism.testing import Asked, FakeOllama


def test_arms_are_compared_by_a_paired_test_over_runs(tmp_path: Path) -> None:
    """Difference and p are those of scipy's paired t-test of the runs' means."""
    folders = [tmp_path / str(seed) for seed in range(4)]
    for seed, folder in enumerate(folders):
        begin(SocialRun(40, rounds=2, seed=seed, treatments=(Likes(1, share=0.5),)), folder)

    tables = [dict(arms(read_log(folder)).select("arm", "score").iter_rows()) for folder in folders]
    treated, control = ([each[arm] for each in tables] for arm in ("likes", "control"))
    wanted = ttest_rel(treated, control)
    found = arm_effects(*folders).filter(arm="likes", outcome="score").row(0, named=True)
    assert found["runs"] == 4
    assert found["p"] == pytest.approx(wanted.pvalue)
    gaps = [one - other for one, other in zip(treated, control, strict=True)]
    assert found["difference"] == pytest.approx(sum(gaps) / 4)
    assert found["low"] < found["difference"] < found["high"]
    assert wanted.confidence_interval().low == pytest.approx(found["low"])


def test_runs_without_an_experiment_are_refused(tmp_path: Path) -> None:
    """There is nothing to compare."""
    begin(SocialRun(10, rounds=1), tmp_path / "run")
    with pytest.raises(InputError, match="assigned no post to an arm"):
        arm_effects(tmp_path / "run")


def test_the_herd_experiment_ships() -> None:
    """Its configurations vary how far agents follow votes, with both arms in each."""
    plan = Plan.from_file("herd")
    assert plan.name == "herd"
    for configuration in plan.configurations():
        run = plan.options(configuration, 0)
        assert [each.name for each in run.treatments] == ["up-treated", "down-treated"]  # type: ignore[union-attr]
        assert {each.experiment for each in run.treatments} == {"herd"}  # type: ignore[union-attr]


def test_a_model_is_told_of_the_votes_in_the_herd_experiment(tmp_path: Path) -> None:
    """One that likes what has a score above 0 likes posts of the arm that was voted up alone."""

    def choose(asked: Asked) -> str:
        is_up = "\nScore: 1\n" in asked.prompt
        return "engaging_like" if is_up and "engaging_like" in asked.options else asked.options[-1]

    with FakeOllama(models=["mine"], choose=choose) as server:
        plan = Plan.from_file("herd-model").with_model("mine").with_hosts([server.host])
        (only,) = plan.configurations()
        begin(replace(plan.options(only, 0), agents=40, rounds=1), tmp_path)

    likes = dict(arms(read_log(tmp_path)).select("arm", "likes").iter_rows())
    assert likes["up-treated"] > 0
    assert likes["control"] == likes["down-treated"] == 0
