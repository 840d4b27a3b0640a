"""The arms of experiments over several runs."""

from pathlib import Path

import pytest

from prism import Model, Run
from prism.analysis import read_log
from prism.errors import InputError
from prism.science import compare
from prism.social import Dislikes, Feed, Likes
from prism.testing import Asked, FakeOllama
from tests.kit.tables import arms


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
    assert (row.low, row.high) == pytest.approx(tuple(wanted.confidence_interval()))


def test_runs_without_an_experiment_are_refused(tmp_path: Path) -> None:
    """There is nothing to compare."""
    Run(Feed, 10, rounds=1).keep(tmp_path / "run")
    with pytest.raises(InputError, match="is only one group of runs"):
        compare(tmp_path / "run")


@pytest.mark.slow
def test_a_model_is_told_of_the_votes_in_the_herd_experiment(tmp_path: Path) -> None:
    """One that likes what has a score above 0 likes posts of the arm that was voted up alone."""

    def choose(asked: Asked) -> str:
        is_up = "\nScore: 1\n" in asked.prompt
        return "engaging_like" if is_up and "engaging_like" in asked.options else "scrolling"

    with FakeOllama(models=["mine"], choose=choose) as server:
        Run(
            Feed,
            25,
            rounds=1,
            model=Model("mine", hosts=[server.host]),
            parameters={"preset": "classic", "shows_scores": True},
            treatments=(
                Likes(1, share=1 / 3, name="up-treated", experiment="herd"),
                Dislikes(1, share=1 / 3, name="down-treated", experiment="herd"),
            ),
        ).keep(tmp_path)

    likes = dict(arms(read_log(tmp_path)).select("arm", "likes").iter_rows())
    assert likes["up-treated"] > 0
    assert likes["control"] == likes["down-treated"] == 0
