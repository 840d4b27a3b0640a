"""Whose turn it is: fair places, turns that come about in the tick, time-outs, and an end."""

from enum import StrEnum
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from prism.errors import DefinitionError, SimulationError
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, Run, World, during, measure, ring, state
from tests.kit.worlds import run_logged

Light = StrEnum("Light", ["OFF", "ON", "SPENT"])


class Lamp(Agent):
    """A lamp that is lit by others, once."""

    chart = Statechart(
        Light,
        [
            Transition("light", Light.OFF, Light.ON),
            Transition("timeout", Light.ON, Light.SPENT),
        ],
        initial=Light.OFF,
        timeouts={Light.ON: 3},
    )
    turns: int = state(0)


class Street(World[Lamp]):
    """Lamps in a ring, of which one passes its light on."""

    rounds = 1

    def setup(self) -> None:
        """Light the first."""
        self.network = ring(self, 2)
        self.agents[0].begin_in(Light.ON)

    @during(Light.ON)
    def shine(self, lamp: Lamp) -> None:
        """Light both neighbours."""
        lamp.turns += 1
        for other in lamp.neighbours:
            other.fire("light")


def _reach(seed: int) -> tuple[int, int]:
    """Return how far light comes in one tick on either side of the first lamp of a ring."""
    run = Run(Street(), 101, seed=seed)
    run.run()
    lit = [lamp.state is Light.ON for lamp in run.agents]
    forward = next(place for place in range(1, 51) if not lit[place]) - 1
    backward = next(place for place in range(1, 51) if not lit[-place]) - 1
    return forward, backward


@pytest.mark.slow
def test_a_ring_has_no_side_that_comes_first() -> None:
    """In one tick light comes as far forward as backward, and as far as chance has it: e - 1."""
    reached = [_reach(seed) for seed in range(120)]
    apart = [forward - backward for forward, backward in reached]
    assert abs(mean(apart)) < 4 * stdev(apart) / 120**0.5
    # of k further lamps all have their places in order with probability 1 / (k + 1)!
    far = [each for both in reached for each in both]
    assert abs(mean(far) - 1.718) < 4 * stdev(far) / 240**0.5


def test_nobody_has_two_turns_in_a_tick() -> None:
    """A lamp shines as many ticks as it is lit, wherever its place was when it was lit."""
    run = Run(Street(), 30, rounds=40, seed=2)
    run.run()
    assert {lamp.state for lamp in run.agents} == {Light.SPENT}
    assert {lamp.turns for lamp in run.agents} == {3}


def test_ticks_in_a_state_count_turns(tmp_path: Path) -> None:
    """Those who are lit before their place in a tick have had one more turn at its end."""
    done = run_logged(tmp_path, Street(), 30, rounds=40, seed=2)
    left = [each for each in done.events("statechart.transition") if each["from_state"] == "on"]
    assert {each["ticks_in_state"] for each in left} == {4}


class Flickering(World[Lamp]):
    """One lamp at a time is lit, goes out and is lit again, and times out into the same state."""

    rounds = 8

    @during(Light.OFF, rate=50)
    def flicker(self, lamp: Lamp) -> None:
        """Be lit three times in one turn."""
        for trigger in ("light", "dim", "light"):
            lamp.fire(trigger)


class Restless(Lamp):
    """A lamp that may go out."""

    chart = Statechart(
        Light,
        [
            Transition("light", Light.OFF, Light.ON),
            Transition("dim", Light.ON, Light.OFF),
            Transition("timeout", Light.ON, Light.ON),
        ],
        initial=Light.OFF,
        timeouts={Light.ON: 3},
    )


def test_a_time_out_is_fired_once_a_tick() -> None:
    """A time-out that leads back to its state begins the time there anew."""
    results = Run(Flickering(), [Restless()]).run()
    assert [each.timeouts.get("on", 0) for each in results.rounds] == [0, 0, 0, 0, 1, 0, 0, 0]


def _kept_on(_lamp: Any, _context: Any) -> bool:
    return False


class Kept(Agent):
    """A lamp whose time-out never passes its guard."""

    chart = Statechart(
        Light,
        [Transition("timeout", Light.OFF, Light.ON, guard=_kept_on)],
        initial=Light.OFF,
        timeouts={Light.OFF: 1},
    )
    turns: int = state(0)


class One(World[Kept]):
    """One lamp has its turn in a tick."""

    rounds = 30

    async def tick(self) -> None:
        """Give a turn to one."""
        await self.activate(self.agents.sample(1))

    @during(Light.OFF)
    def shine(self, lamp: Kept) -> None:
        """Count the turn."""
        lamp.turns += 1


def test_a_refused_time_out_gives_a_turn_to_those_alone_who_were_drawn() -> None:
    """Where one agent is drawn, time-outs that a guard refuses give no further turns."""
    run = Run(One(), [Kept() for _ in range(6)])
    results = run.run()
    assert sum(lamp.turns for lamp in run.agents) == 30
    assert not any(each.timeouts for each in results.rounds)


class Ending(Street):
    """A world that ends early."""

    rounds = 9
    ticks = 4
    mode: str = "stop"

    @during(Light.SPENT)
    def end(self, lamp: Lamp) -> None:
        """Stop."""
        del lamp
        if self.mode == "stop":
            self.stop("spent")

    def until(self) -> bool:
        """End by looking."""
        return self.mode == "until" and self.count(Light.SPENT) > 0

    @measure
    def lit(self) -> int:
        """Count."""
        return self.count(Light.ON)


@pytest.mark.parametrize(("mode", "tick", "reason"), [("stop", 1, "spent"), ("until", 4, "until")])
def test_a_run_that_is_stopped_says_when_and_why(
    mode: str, tick: int, reason: str, tmp_path: Path
) -> None:
    """Its last round is measured, and results and log say round, tick, time and reason."""
    done = run_logged(tmp_path, Ending(mode=mode), 3, seed=1)
    number = 2 if mode == "stop" else 1
    when = {"round": number, "tick": tick, "time": number - 1 + tick / 4, "reason": reason}
    (ended,) = done.events("run.ended")
    assert ended["stopped"] == when
    last = done.events("round.ended")[-1]
    assert {"round": last["round"], **last["stopped"]} == when
    assert last["measures"].keys() == {"lit"}
    assert done.run.finished[-1].stopped == last["stopped"]


def _world(rate: Any) -> type[World[Any]]:
    class Wrong(World[Lamp]):
        @during(Light.ON, rate=rate)
        def shine(self, lamp: Lamp) -> None:
            del lamp

    return Wrong


@pytest.mark.parametrize("rate", [-1, float("nan"), "fast", lambda _world, _lamp: None])
def test_rates_are_numbers(rate: Any) -> None:
    """A rate that is none is refused with its step and state."""

    class Fast(_world(rate)):  # type: ignore[misc]
        fast: str = "very"

        def setup(self) -> None:
            self.agents[0].begin_in(Light.ON)

    with pytest.raises(SimulationError, match=r"shine: the rate.* in 'on' must be a number"):
        Run(Fast(), 2).run()


def test_a_rate_above_its_largest_is_refused() -> None:
    """Events would be too rare, in silence."""

    class Fast(World[Lamp]):
        @during(Light.OFF, rate=lambda _world, _lamp: 60.0, most=50)
        def light(self, lamp: Lamp) -> None:
            lamp.fire("light")

    with pytest.raises(SimulationError, match=r"Fast\.light: the rate of 'lamp_\d' is 60.0, above"):
        Run(Fast(), 2).run()
    with pytest.raises(DefinitionError, match="most=2"):
        during(Light.OFF, rate=1.0, most=2)


def test_a_function_that_costs_much_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """Without the largest rate it is called for everybody after every event."""

    class Slow(World[Lamp]):
        @during(Light.OFF, rate=lambda _world, _lamp: 0.01)
        def light(self, lamp: Lamp) -> None:
            lamp.fire("light")

    Run(Slow(), 101, rounds=3).run()
    (warned,) = caplog.messages
    assert "Slow.light: its rate is a function" in warned
    assert "most=" in warned


def test_events_at_rates_carry_their_time(tmp_path: Path) -> None:
    """Lines of the log stand at the times of their events, in order, within the round."""

    class Rates(World[Lamp]):
        rounds = 3

        @during(Light.OFF, rate=0.5)
        def light(self, lamp: Lamp) -> None:
            lamp.fire("light")
            self.log("lit", agent=lamp, at=self.time)

    events = run_logged(tmp_path, Rates(), 20, seed=1).events("world.lit")
    times = [each["at"] for each in events]
    assert times == sorted(times)
    assert len(set(times)) == len(times) > 5
    assert all(each["round"] - 1 <= each["at"] < each["round"] for each in events)
    seconds = [
        float(each["timestamp"][14:16]) * 60 + float(each["timestamp"][17:-1]) for each in events
    ]
    assert seconds == pytest.approx([60 * time for time in times], abs=1e-5)


@pytest.mark.slow
def test_numbers_of_agents_and_rounds_are_independent() -> None:
    """Two numbers of each of 2,000 agents in each of 50 rounds: uniform, and uncorrelated."""
    numpy = pytest.importorskip("numpy")
    numbers = numpy.array(_numbers_of(agents=2000, rounds=50))
    assert len(numpy.unique(numbers)) == numbers.size

    # each of the first 16 bits is set as often as not
    whole = (numbers.ravel() * 2**16).astype(int)
    set_bits = [((whole >> bit) & 1).sum() for bit in range(16)]
    deviations = (numpy.array(set_bits) - whole.size / 2) / (whole.size / 4) ** 0.5
    assert abs(deviations).max() < 4

    # between agents beside each other, rounds, the two of a turn, and across all of these
    centred = (numbers - 0.5) * 12**0.5
    for shift in [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)]:
        products = centred * numpy.roll(centred, shift, axis=(0, 1, 2))
        assert abs(products.mean()) * products.size**0.5 < 4, shift


def _numbers_of(agents: int, rounds: int) -> list[list[list[float]]]:
    """Return two numbers of each agent in each round, by round."""
    drawn: list[list[list[float]]] = []

    class Drawing(World[Lamp]):
        async def tick(self) -> None:
            await self.activate(self.agents)

        def round_begins(self) -> None:
            drawn.append([])

        @during(Light.OFF)
        def take(self, lamp: Lamp) -> None:
            drawn[-1].append([lamp.random.random(), lamp.random.random()])

    Run(Drawing(), agents, rounds=rounds, seed=11).run()
    return drawn


class Hurried(World[Lamp]):
    """A lit lamp, whose time is up before the first turn of the second round."""

    rounds = 3

    def setup(self) -> None:
        """Light one."""
        self.agents[1].begin_in(Light.ON)

    def tick_begins(self) -> None:
        """Let its time be up."""
        if self.round == 2:
            self.agents[1].ticks_in_state = 3

    @measure
    def spent(self) -> int:
        """Count the lamps that have gone out."""
        return self.count(Light.SPENT)


class HurriedInTurn(Hurried):
    """The same, with the turn of one lamp in a tick."""

    async def tick(self) -> None:
        """Give a turn to one."""
        await self.activate(self.agents.sample(1))


@pytest.mark.parametrize("world", [Hurried, HurriedInTurn])
def test_a_time_out_may_be_due_before_the_first_turn(world: type[World[Any]]) -> None:
    """A lamp times out in the tick in whose beginning its time was up."""
    assert Run(world, 6, seed=0).run().series("spent") == [0, 1, 1]
