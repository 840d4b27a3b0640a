"""How long agents stay: visits that end, visits that are cut, and the ticks that they sum to."""

from collections.abc import Callable
from enum import StrEnum
from math import log
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism import Agent, Run, Statechart, Transition, World, during
from prism.analysis import dwell_survival, dwell_times, read_log

WriteLog = Callable[..., Path]
DWELLS = st.lists(st.integers(1, 12), min_size=1, max_size=30)
VISITS = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(["go", "timeout", "round_ends"])),
    min_size=2,
    max_size=40,
)
LINE = (
    '{{"event":"statechart.transition","agent_id":"x",'
    '"from_state":"a","to_state":"b","trigger":"{}","ticks_in_state":{}}}\n'
)


def quantile(values: list[int], share: float) -> int:
    """Return the smallest value that so many values do not exceed."""
    return next(
        value
        for value in sorted(values)
        if sum(other <= value for other in values) >= share * len(values)
    )


@given(dwells=DWELLS, zeros=st.integers(0, 3))
def test_dwell_times_are_described_as_by_hand(
    dwells: list[int], zeros: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Without cut visits, counts, percentiles and the fit are those of the plain lengths."""
    path = tmp_path_factory.mktemp("dwell") / "log.jsonl"
    values = [0] * zeros + dwells
    path.write_text("".join(LINE.format("go", value) for value in values))
    (row,) = dwell_times(read_log(path)).filter(state="a").iter_rows(named=True)
    counts = [row[name] for name in ("visits", "complete", "cut", "open", "zero", "max")]
    assert counts == [len(values), len(values), 0, 0, zeros, max(values)]
    assert row["mean"] == pytest.approx(sum(values) / len(values))
    assert [row[name] for name in ("median", "p90", "p99")] == [
        quantile(values, share) for share in (0.5, 0.9, 0.99)
    ]
    p = len(dwells) / sum(dwells)
    assert row["p"] == pytest.approx(p)
    assert row["p_se"] == pytest.approx((p * (1 - p) / sum(dwells)) ** 0.5)
    seen = [sum(value <= ticks for value in dwells) / len(dwells) for ticks in range(1, 40)]
    gaps = [abs(share - (1 - (1 - p) ** ticks)) for ticks, share in enumerate(seen, start=1)]
    assert row["distance"] == pytest.approx(max(gaps), abs=1e-12)
    likelihood = sum(log(p) + (value - 1) * log(1 - p) if value > 1 else log(p) for value in dwells)
    assert row["log_likelihood"] == pytest.approx(likelihood)


def test_survival_is_that_of_a_textbook(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Remission times under 6-MP have the published curve (Freireich et al. 1963)."""
    exits = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    cuts = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    lines = [make.move("x", "a", "b", ticks_in_state=weeks) for weeks in exits]
    lines += [make.move("x", "a", "b", "round_ends", ticks_in_state=weeks) for weeks in cuts]
    logs = read_log(write_log(lines))
    curve = dwell_survival(logs).filter(pl.col("exits") > 0, state="a")
    survival, errors = curve["survival"].round(4), curve["survival_se"].round(4)
    assert curve["ticks"].to_list() == sorted(set(exits))
    assert survival.to_list() == [0.8571, 0.8067, 0.7529, 0.6902, 0.6275, 0.5378, 0.4482]
    assert errors.to_list() == [0.0764, 0.0869, 0.0963, 0.1068, 0.1141, 0.1282, 0.1346]
    (row,) = dwell_times(logs).filter(state="a").iter_rows(named=True)
    assert (row["median"], row["p90"]) == (23, None)
    by_round = dwell_survival(read_log(write_log(lines)), by_round=True)
    assert by_round.filter(pl.col("round").is_null()).drop("round").equals(dwell_survival(logs))
    # the area under the curve to the longest visit, as R's survival package has it
    assert row["mean"] == pytest.approx(23.287, abs=1e-3)


@pytest.mark.slow
@given(visits=VISITS)
def test_survival_is_that_of_statsmodels(
    visits: list[tuple[int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With cut visits, the curve and its error are those of an implementation of others."""
    duration = pytest.importorskip("statsmodels.duration.survfunc")
    path = tmp_path_factory.mktemp("dwell") / "log.jsonl"
    path.write_text("".join(LINE.format(trigger, ticks) for ticks, trigger in visits))
    logs = read_log(path)
    curve = dwell_survival(logs).filter(pl.col("exits") > 0, state="a")
    # statsmodels counts from above 0: one more tick each
    lengths = [ticks + 1 for ticks, _ in visits]
    ended = [trigger != "round_ends" for _, trigger in visits]
    other = duration.SurvfuncRight(lengths, ended)
    assert curve["ticks"].to_list() == [int(time) - 1 for time in other.surv_times]
    assert curve["at_risk"].to_list() == [int(number) for number in other.n_risk]
    assert curve["survival"].to_list() == pytest.approx(list(other.surv_prob))
    # it has no error where nobody is left
    for own, theirs in zip(curve["survival_se"], other.surv_prob_se, strict=True):
        assert own == pytest.approx(0.0 if theirs != theirs else theirs)


def test_the_fit_is_exits_per_tick_at_risk(write_log: WriteLog, make: SimpleNamespace) -> None:
    """Cut visits count among the ticks at risk, and no other p makes all of it likelier."""
    exits, cuts = [1, 1, 2, 5, 3], [1, 8, 0]
    lines = [make.move("x", "a", "b", ticks_in_state=ticks) for ticks in exits]
    lines += [make.move("x", "a", "b", "round_ends", ticks_in_state=ticks) for ticks in cuts]
    (row,) = dwell_times(read_log(write_log(lines))).filter(state="a").iter_rows(named=True)
    assert (row["complete"], row["cut"], row["at_risk"]) == (5, 3, 21)
    assert row["p"] == pytest.approx(5 / 21)

    def likelihood(p: float) -> float:
        return len(exits) * log(p) + (row["at_risk"] - len(exits)) * log(1 - p)

    assert row["log_likelihood"] == pytest.approx(likelihood(row["p"]))
    assert max(likelihood(row["p"] * 0.98), likelihood(row["p"] * 1.02)) < row["log_likelihood"]


def test_a_state_that_is_never_left_has_no_median(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """A visit that is open at the end is censored: its length is known, not that of others."""
    lines = [make.started(), make.joined("x", "a"), make.joined("y", "a")]
    lines += [make.move("x", "a", "b", round=1, tick=2, ticks_in_state=2)]
    lines += [make.event("round.ended", round=2, tick=3)]
    table = dwell_times(read_log(write_log(lines)))
    columns = ("state", "complete", "open", "median", "p90", "max", "at_risk", "agent_ticks")
    assert table.select(columns).rows() == [
        ("a", 1, 1, 2, None, 6, 8, 7),
        ("b", 0, 1, None, None, 4, 4, 5),
    ]


def test_visits_of_no_tick_have_no_fit(write_log: WriteLog, make: SimpleNamespace) -> None:
    """A state that is only passed through has no fit; visits of unknown length do not count."""
    lines = [
        make.move("x", "a", "b", ticks_in_state=0),
        make.move("x", "a", "b", ticks_in_state=None),
    ]
    (row,) = dwell_times(read_log(write_log(lines))).filter(state="a").iter_rows(named=True)
    assert (row["visits"], row["zero"], row["mean"], row["max"]) == (1, 1, 0.0, 0)
    assert (row["p"], row["distance"], row["log_likelihood"]) == (None, None, None)


def test_runs_and_charts_are_described_separately(
    write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Several runs, and several charts with a state of one name, have visits of their own."""
    one = write_log([make.move("x", "a", "b", "timeout")], "one.jsonl")
    charts = [
        make.move("x", "a", "b", ticks_in_state=ticks, chart=chart)
        for chart, ticks in (("ant", 1), ("bee", 5), ("bee", 3))
    ]
    two = write_log(charts, "two.jsonl")
    table = dwell_times(read_log(one, two)).filter(state="a")
    assert table.select("run", "chart", "mean", "p", "timeout_share").rows() == [
        ("one", "c", 1.0, 1.0, 1.0),
        ("two", "ant", 1.0, 1.0, 0.0),
        ("two", "bee", 4.0, 0.25, 0.0),
    ]


Bulb = StrEnum("Bulb", ["LIT", "DARK"])


class Lamp(Agent):
    """Something that goes out and is replaced."""

    chart = Statechart(
        Bulb,
        [Transition("goes out", Bulb.LIT, Bulb.DARK), Transition("is lit", Bulb.DARK, Bulb.LIT)],
        Bulb.LIT,
        name="lamp",
    )


class Lamps(World[Lamp]):
    """A chain whose dwell times are exponential with known rates."""

    activation, rounds, ticks = "rate", 20, 3

    @during(Bulb.LIT, rate=0.7)
    def fail(self, lamp: Lamp) -> None:
        """Go out."""
        lamp.fire("goes out")

    @during(Bulb.DARK, rate=2.0)
    def replace(self, lamp: Lamp) -> None:
        """Be lit."""
        lamp.fire("is lit")


@pytest.fixture(scope="module")
def lamps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of the chain."""
    folder = tmp_path_factory.mktemp("lamps") / "run"
    Run(Lamps(), 200, seed=1).keep(folder)
    return folder


@pytest.mark.parametrize("depth", [None, pytest.param(1, marks=pytest.mark.slow)])
def test_dwell_times_of_events_at_rates_are_in_rounds(lamps: Path, depth: int | None) -> None:
    """A chain's rates are found within three errors, and its curve is exponential."""
    logs = read_log(lamps)
    table = dwell_times(logs, depth=depth)
    for state, rate in (("lit", 0.7), ("dark", 2.0)):
        (row,) = table.filter(state=state).iter_rows(named=True)
        assert row["rate"] == pytest.approx(rate, abs=3 * row["rate_se"])
        assert row["mean"] == pytest.approx(1 / rate, rel=0.1)
        assert row["median"] == pytest.approx(log(2) / rate, rel=0.1)
        assert row["distance"] < 0.03
        curve = dwell_survival(logs, depth=depth).filter(pl.col("survival") > 0.05, state=state)
        expected = (-rate * curve["time"]).exp()
        assert (curve["survival"] - expected).abs().max() < 0.03
    # agents are always in one of the two states
    assert table["at_risk"].sum() == pytest.approx(200 * 20)
    assert not {"p", "agent_ticks"} & set(table.columns)


def test_runs_in_ticks_and_runs_at_rates_stand_in_one_table(
    tmp_path: Path, write_log: WriteLog, make: SimpleNamespace
) -> None:
    """Each has the columns of its own time, and those of the other are null."""
    Run(Lamps(), 5, seed=1, rounds=2).keep(tmp_path / "rates")
    ticks = write_log([make.move("x", "a", "b", ticks_in_state=3)])
    table = dwell_times(read_log(ticks, tmp_path / "rates"))
    assert table.filter(state="a").select("median", "rate").row(0) == (3, None)
    assert table.filter(state="lit")["p"].to_list() == [None]
    curve = dwell_survival(read_log(tmp_path / "rates", ticks))
    assert curve.filter(state="a").select("ticks", "time").rows()[0] == (3, None)
