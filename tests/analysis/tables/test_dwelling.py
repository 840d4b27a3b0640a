"""How long agents stay: visits that end, visits that are cut, and the ticks that they sum to."""

from enum import StrEnum
from math import log
from pathlib import Path

import pytest

from prism import Agent, Run, Statechart, Transition, World, during
from prism.analysis import read_log
from prism.worlds import state
from tests.kit import make
from tests.kit.logs import LogOf, WriteLog


def test_censored_visits_are_those_of_a_textbook(log_of: LogOf) -> None:
    """Remission times under 6-MP have the published median and mean (Freireich et al. 1963)."""
    exits = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    cuts = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    lines = [make.move("x", "a", "b", ticks_in_state=weeks) for weeks in exits]
    lines += [make.move("x", "a", "b", "round_ends", ticks_in_state=weeks) for weeks in cuts]
    row = log_of(lines).rows("dwell")[0]
    assert (row["state"], row["median"], row["p90"]) == ("a", 23, None)
    assert (row["complete"], row["cut"], row["at_risk"]) == (9, 12, sum(exits + cuts))
    # the area under the curve to the longest visit, as R's survival package has it
    assert row["mean"] == pytest.approx(23.287, abs=1e-3)


def test_a_state_that_is_never_left_has_no_median(log_of: LogOf) -> None:
    """A visit that is open at the end is censored: its length is known, not that of others."""
    lines = [make.started(), make.joined("x", "a"), make.joined("y", "a")]
    lines += [make.move("x", "a", "b", round=1, tick=2, ticks_in_state=2)]
    lines += [make.event("round.ended", round=2, tick=3)]
    columns = "state, complete, open, median, p90, max, at_risk"
    assert log_of(lines).sql(f"select {columns} from dwell").fetchall() == [
        ("a", 1, 1, 2, None, 6, 8),
        ("b", 0, 1, None, None, 4, 4),
    ]


Case = StrEnum("Case", ["WAITING", "SEEN"])


class Patient(Agent):
    """Somebody who is asked in some ticks, and stays until the ninth."""

    chart = Statechart(
        Case,
        [
            Transition("calls", Case.WAITING, Case.WAITING),
            Transition("calls", Case.WAITING, Case.SEEN),
        ],
        Case.WAITING,
        decision_states=[Case.WAITING],
    )
    calls: int = state(0)


class Practice(World[Patient]):
    """Decides to stay, which begins the time in the state anew and is no transition of the log."""

    rounds, ticks = 4, 3
    asked: int = 8

    @during(Case.WAITING)
    async def call(self, patient: Patient) -> None:
        """Stay until the ninth tick."""
        patient.calls += 1
        is_ninth = patient.calls == 9
        if patient.calls <= self.asked or is_ninth:
            await patient.decide("calls", weights={Case.WAITING: not is_ninth, Case.SEEN: is_ninth})


@pytest.mark.parametrize("asked", [0, 1, 8])
def test_a_decision_to_stay_ends_no_visit(asked: int, tmp_path: Path) -> None:
    """A stay is as long as the log says, whatever the agent decided meanwhile."""
    Run(Practice(asked=asked), 2).keep(tmp_path)
    (row,) = (each for each in read_log(tmp_path).rows("dwell") if each["state"] == "waiting")
    assert (row["complete"], row["mean"], row["max"]) == (2, 9, 9)


Bulb = StrEnum("Bulb", ["LIT", "DARK"])
LAMP = Statechart(
    Bulb,
    [Transition("goes out", Bulb.LIT, Bulb.DARK), Transition("is lit", Bulb.DARK, Bulb.LIT)],
    Bulb.LIT,
    name="lamp",
)


class Lamp(Agent):
    """Something that goes out and is replaced."""

    chart = LAMP


class Lamps(World[Lamp]):
    """A chain whose dwell times are exponential with known rates."""

    rounds, ticks = 20, 3

    @during(Bulb.LIT, rate=0.7)
    def fail(self, lamp: Lamp) -> None:
        """Go out."""
        lamp.fire("goes out")

    @during(Bulb.DARK, rate=2.0)
    def replace(self, lamp: Lamp) -> None:
        """Be lit."""
        lamp.fire("is lit")


@pytest.mark.parametrize(
    "table", [("dwell",), pytest.param(("dwell_at", 1), marks=pytest.mark.slow)]
)
def test_dwell_times_of_events_at_rates_are_in_rounds(
    table: tuple[str, int], write_log: WriteLog, tmp_path: Path
) -> None:
    """Means and medians are those of the chain's rates, also beside a run in ticks."""
    Run(Lamps(), 200, seed=1).keep(tmp_path / "run")
    rows = {row["state"]: row for row in read_log(tmp_path / "run").rows(*table)}
    for bulb, rate in (("lit", 0.7), ("dark", 2.0)):
        row = rows[bulb]
        assert row["complete"] / row["at_risk"] == pytest.approx(rate, rel=0.1)
        assert row["mean"] == pytest.approx(1 / rate, rel=0.1)
        assert row["median"] == pytest.approx(log(2) / rate, rel=0.1)
    # agents are always in one of the two states
    assert sum(row["at_risk"] for row in rows.values()) == pytest.approx(200 * 20)
    in_ticks = write_log([make.move("x", "a", "b", ticks_in_state=3)])
    both = {
        row["state"]: row["median"] for row in read_log(in_ticks, tmp_path / "run").rows(*table)
    }
    assert (both["a"], both["lit"]) == (3, rows["lit"]["median"])
