"""Burn-in and stationarity of series."""

import json
import warnings
from collections.abc import Callable
from itertools import accumulate
from math import fsum
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prism.analysis import dwell_times, read_log
from prism.errors import FieldValueError
from prism.science import mser, steadiness, steady_state

SERIES = st.lists(st.floats(-1e3, 1e3), min_size=12, max_size=60)


def starting_high(length: int, transient: int, seed: int = 1) -> list[float]:
    """Return noise around 0 that falls from 50 during its first observations."""
    dice = Random(seed)
    return [dice.gauss(max(0.0, 50 * (1 - n / transient)), 1) for n in range(length)]


@given(series=SERIES)
@example(series=[5.0, *[0.0] * 11])
def test_the_cut_has_the_least_standard_error(series: list[float]) -> None:
    """No earlier or later cut has a smaller sum of squares over the square of what is left."""

    def error(cut: int) -> float:
        rest = series[cut:]
        return fsum((value - fmean(rest)) ** 2 for value in rest) / len(rest) ** 2

    cut = mser(series, batch=1)
    errors = [error(place) for place in range(len(series) - 5)]
    if cut is None:
        best = errors.index(min(errors))
        assert 2 * best > len(series) - 1 or len(series) - best < 11
    else:
        assert error(cut) == pytest.approx(min(errors), rel=1e-6, abs=1e-6)


def test_a_transient_is_cut_off() -> None:
    """What falls at the beginning is left out, in whole batches; what is steady is left whole."""
    cut = mser(starting_high(400, 60))
    assert cut is not None
    assert cut % 5 == 0
    assert 45 <= cut <= 100
    assert mser([1.0, 2.0] * 30, batch=2) == 0


@pytest.mark.parametrize("length", [0, 4, 12, 30])
@pytest.mark.sampled(4)
def test_too_short_a_series_is_said_to_be(length: int) -> None:
    """Where the series still falls in its second half, or little is left, there is no burn-in."""
    series = [float(length - n) ** 3 for n in range(length)]
    assert mser(series) is None
    assert steadiness(series[:9], batch=1).verdict == "too short"
    with pytest.raises(FieldValueError, match="got 0"):
        mser(series, batch=0)


def p_of(test: Callable[..., Any], series: list[float]) -> float:
    """Return the p-value of a test of statsmodels, which announces another result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(test(series)[1])


def test_the_tests_are_those_of_statsmodels() -> None:
    """What is left after the burn-in is tested by KPSS and Dickey-Fuller, and by its parts."""
    tests = pytest.importorskip("statsmodels.tsa.stattools")
    series = starting_high(200, 30)
    found = steadiness(series)
    assert found.burn_in is not None
    rest = series[found.burn_in :]
    assert found.mean == pytest.approx(fmean(rest))
    assert found.adf_p == pytest.approx(p_of(tests.adfuller, rest))
    assert found.kpss_p == pytest.approx(p_of(tests.kpss, rest))
    assert found.verdict == "no drift seen"


def test_a_drift_is_no_steady_state() -> None:
    """A random walk is hardly ever steady; numbers that are all alike are, without tests."""
    pytest.importorskip("statsmodels")
    dice = Random(3)
    walks = [list(accumulate(dice.gauss(0, 1) for _ in range(200))) for _ in range(10)]
    verdicts = [steadiness(walk).verdict for walk in walks]
    assert verdicts.count("no drift seen") <= 2
    assert steadiness([n + dice.gauss(0, 1) for n in range(60)]).verdict != "no drift seen"
    alike = steadiness([2.5] * 30)
    assert (alike.verdict, alike.mean) == ("no drift seen", 2.5)
    assert alike.adf_p is alike.kpss_p is None


def test_fewer_than_thirty_batches_are_too_few_for_a_verdict() -> None:
    """Noise of a few rounds is neither steady nor drifting; burn-in and mean are told anyway."""
    pytest.importorskip("statsmodels")
    dice = Random(5)
    for length in (12, 20, 29):
        found = steadiness([dice.gauss(0, 1) for _ in range(length)])
        assert found.verdict == "too short"
        assert found.kpss_p is None


@pytest.mark.parametrize(
    ("series", "batch", "burn_in", "mean"),
    [([5.0] * 3 + [1.0] * 30, 1, 3, 1.0), ([0.0, 1.0, 2.0] * 40, 3, 0, 1.0)],
)
def test_what_does_not_vary_has_no_drift_and_no_tests(
    series: list[float], batch: int, burn_in: int, mean: float
) -> None:
    """Whether its observations or its batches are equal, burn-in and mean are told."""
    pytest.importorskip("statsmodels")
    found = steadiness(series, batch=batch)
    assert (found.burn_in, found.mean, found.verdict) == (burn_in, mean, "no drift seen")
    assert found.adf_p is found.kpss_p is None


def test_series_without_numbers_or_ticks_are_refused(tmp_path: Path) -> None:
    """What is not finite has its place, and a log that counts no ticks has no series of them."""
    with pytest.raises(FieldValueError, match=r"series\[1\] must be a finite number, got nan"):
        steadiness([1.0, float("nan")])
    log = tmp_path / "events.jsonl"
    move = {"event": "statechart.transition", "from_state": "a", "to_state": "b", "round": 1}
    gone = {**move, "agent_id": "ann", "trigger": "goes", "ticks_in_state": 2}
    log.write_text(json.dumps(gone) + "\n")
    with pytest.raises(FieldValueError, match="the log has no ticks: a series can only count by"):
        steady_state(read_log(log), by="tick")
    (dwelt,) = dwell_times(read_log(log)).to_dicts()
    assert (dwelt["mean"], dwelt["agent_ticks"], dwelt["p"]) == (2, None, 0.5)


@pytest.mark.slow
def test_every_measure_of_a_run_is_looked_at(folder: Path, rumours: list[Path]) -> None:
    """By round there are too few rounds, which is said; by tick there are acts and states."""
    pytest.importorskip("statsmodels")
    logs = read_log(folder)
    by_round = steady_state(logs)
    assert {"posts", "browsing"} <= set(by_round["measure"])
    assert set(by_round["verdict"]) == {"too short"}
    by_tick = steady_state(logs, by="tick", measures=["likes", "scrolling"], batch=12)
    assert by_tick["measure"].to_list() == ["likes", "scrolling"]
    assert by_tick["observations"].to_list() == [48, 48]
    worlds = steady_state(read_log(*rumours))
    assert "reached" in set(worlds["measure"])
    assert worlds["run"].n_unique() == 2
    with pytest.raises(FieldValueError, match="no measure 'lies'; there are"):
        steady_state(logs, measures=["lies"])
    with pytest.raises(FieldValueError, match="not by 'year'"):
        steady_state(logs, by="year")  # type: ignore[arg-type]
