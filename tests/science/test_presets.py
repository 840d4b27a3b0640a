"""Presets, held against what has been published."""

import pytest

pytest.importorskip("polars")

from prism.errors import FieldValueError
from prism.science import preset_figures, preset_runs
from prism.science._presets import TRIALS
from prism.social._presets import PRESETS


def test_every_preset_has_a_trial() -> None:
    """No preset goes without figures but ``classic``, which is what it was."""
    assert list(TRIALS) == list(PRESETS)
    assert [name for name, trial in TRIALS.items() if not trial.figures] == ["classic"]


def test_a_preset_is_held_against_every_figure() -> None:
    """A row a figure, with what is far off named by its seed."""
    rows = preset_figures("rumour", seeds=[3], agents=60).iter_rows(named=True)
    users = next(row for row in rows if row["measure"] == "largest_cascade")
    assert users["least"] == users["most"] == users["mean"] < 61
    assert users["misses"] == [3]
    assert users["distance"] == pytest.approx((324.75 - users["mean"]) / 76.75)


def test_there_are_no_other_presets() -> None:
    """The message names those that there are."""
    with pytest.raises(FieldValueError, match="preset must be one of conversation, participation"):
        preset_figures("mastodon")


@pytest.mark.long
@pytest.mark.parametrize("least", [200, 205, 210, 215])
@pytest.mark.parametrize("preset", ["participation", "twitter", "browsing"])
def test_a_preset_comes_near_its_figures(preset: str, least: int) -> None:
    """With each of 20 seeds, every figure that it is made for lies inside its spread."""
    table = preset_figures(preset, seeds=range(least, least + 5)).filter("is_meant")
    missed = {row["measure"]: row["misses"] for row in table.iter_rows(named=True)}
    assert missed == {measure: [] for measure in missed}


@pytest.mark.long
def test_a_rumour_reaches_as_many_as_a_real_one() -> None:
    """Over 20 seeds: 248 to 401.5 users in the median, depth 3 in the median, never above 9."""
    table = preset_runs("rumour", seeds=range(200, 220))
    assert 248 <= table["largest_cascade"].median() <= 401.5
    assert table["deepest_cascade"].median() == 3
    assert table["deepest_cascade"].max() <= 9
