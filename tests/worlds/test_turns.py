"""Whose turn it is: fair places, turns that come about in the tick, time-outs, rates and an end."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest

from prism.errors import PrismError
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, Run, World, during, measure, small_world, state, treatment
from tests.kit import lamps
from tests.kit.days import Day, person
from tests.kit.worlds import run_logged

Light = StrEnum("Light", ["OFF", "ON", "SPENT"])


def lamp_of(*transitions: Transition[Any], **limits: int) -> type[Any]:
    """Return a kind of lamp that is lit by others."""
    moves = [Transition("light", Light.OFF, Light.ON), *transitions]
    timeouts = {Light[name]: ticks for name, ticks in limits.items()}

    class Lamp(Agent):
        chart = Statechart(Light, moves, initial=Light.OFF, timeouts=timeouts)
        turns: int = state(0)

    return Lamp


Lamp = lamp_of(Transition("timeout", Light.ON, Light.SPENT), ON=3)


class Street(World[Lamp]):
    """Lamps in a ring, of which one passes its light on."""

    rounds = 1

    def setup(self) -> None:
        self.network = small_world(self, 2, 0)
        self.agents[0].begin_in(Light.ON)

    @during(Light.ON)
    def shine(self, lamp: Any) -> None:
        lamp.turns += 1
        for other in lamp.neighbours:
            other.fire("light")


def _lit_around(seed: int) -> tuple[int, int]:
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
    reached = [_lit_around(seed) for seed in range(120)]
    apart = [forward - backward for forward, backward in reached]
    assert abs(mean(apart)) < 4 * stdev(apart) / 120**0.5
    # of k further lamps all have their places in order with probability 1 / (k + 1)!
    far = [each for both in reached for each in both]
    assert abs(mean(far) - 1.718) < 4 * stdev(far) / 240**0.5


def test_nobody_has_two_turns_in_a_tick(tmp_path: Path) -> None:
    """A lamp shines as many ticks as it is lit, wherever its place was when it was lit.

    Those who are lit before their place in a tick have had one more turn at its end.
    """
    done = run_logged(tmp_path, Street(), 30, rounds=40, seed=2)
    assert {(lamp.state, lamp.turns) for lamp in done.run.agents} == {(Light.SPENT, 3)}
    left = [each for each in done.events("statechart.transition") if each["from_state"] == "on"]
    assert {each["ticks_in_state"] for each in left} == {4}


# Turns that a world gives itself


class Stages(World[Any]):
    """Counts turns, of which there is one in each stage."""

    rounds = 8
    stages: int = 1

    async def tick(self) -> None:
        for _ in range(self.stages):
            await self.activate(self.agents)

    @during(Day.AWAKE)
    def live(self, agent: Any) -> None:
        agent.level += 1


def test_time_passes_once_a_tick_in_any_number_of_stages() -> None:
    """What a chart does by chance in a tick is as likely, and every stage gives a turn."""
    kind = person(Transition("looks", Day.POCKET, Day.FEED, rate=0.5))
    states, turns = [], []
    for stages in (1, 3):
        run = Run(Stages(stages=stages), [kind() for _ in range(200)], seed=1)
        states.append([each.states for each in run.run().rounds])
        turns.append(sum(agent.level for agent in run.agents))
    assert states[0] == states[1]
    assert turns == [1600, 4800]


class Twice(lamps.Room):
    """The first lamp has three turns, and the second two."""

    async def tick(self) -> None:
        first, second = self.agents
        await self.activate([first, second, first, first])
        await self.activate(second)

    @during(lamps.Light.OFF)
    async def live(self, lamp: Any) -> None:
        number = lamp.agent_id[-1]
        self.closed.append(f"{number} begins")
        await lamp.write("Wait.", template="")
        self.closed.append(f"{number} ends")


def test_who_is_activated_twice_has_two_turns_one_after_the_other() -> None:
    """Also if the first has to wait."""
    run = Run(Twice(), 2, seed=1)
    run.run()
    assert run.world.closed == [
        *("1 begins", "2 begins", "1 ends", "2 ends", "1 begins", "1 ends", "1 begins", "1 ends"),
        *("2 begins", "2 ends"),
    ]


def tick_of(tick: Any, **more: Any) -> type[World[Any]]:
    return type("Own", (Stages,), {"tick": tick, "__module__": __name__, **more})


async def fine(world: Any) -> None:
    await world.activate()


async def asking(world: Any) -> None:
    await world.agents[0].receive()


async def waiting(_: Any) -> None:
    pass


async def yielding(*_: Any) -> Any:
    yield


def at(rate: Any) -> Any:
    return during(Day.AWAKE, rate=rate)(lambda *_: None)


@pytest.mark.parametrize(
    ("world", "problem"),
    [
        (lambda: tick_of(lambda _: None), "Own.tick must be async"),
        (lambda: tick_of(asking), "await it in a step, and activate agents in tick"),
        (lambda: tick_of(fine, until=fine), "Own.until must not be async"),
        (lambda: tick_of(fine, calm=treatment(waiting)), "Own.calm must not be async"),
        (lambda: tick_of(fine, live=at(1.0)), "which happen one by one"),
        (lambda: tick_of(World.tick, together=True, live=at(1.0)), "leave out together"),
        (lambda: tick_of(fine, live=lambda *_: None), "Own.live hides a marked method: mark it"),
        (lambda: tick_of(fine, live=during(Day.AWAKE)(yielding)), "Own.live would never begin"),
    ],
)
def test_what_a_world_would_leave_out_in_silence_is_refused(
    world: Callable[[], type[World[Any]]], problem: str
) -> None:
    """In words that tell the cure."""
    with pytest.raises((PrismError, RuntimeError), match=problem):
        Run(world(), [person()()]).run()


# Time-outs


class Flickering(World[Any]):
    """One lamp at a time is lit, goes out and is lit again, and times out into the same state."""

    rounds = 8

    @during(Light.OFF, rate=50)
    def flicker(self, lamp: Any) -> None:
        for trigger in ("light", "dim", "light"):
            lamp.fire(trigger)


def test_a_time_out_is_fired_once_a_tick() -> None:
    """A time-out that leads back to its state begins the time there anew."""
    dims = Transition("dim", Light.ON, Light.OFF)
    restless = lamp_of(dims, Transition("timeout", Light.ON, Light.ON), ON=3)
    results = Run(Flickering(), [restless()]).run()
    assert [each.timeouts.get("on", 0) for each in results.rounds] == [0, 0, 0, 0, 1, 0, 0, 0]


class Drawn(World[Any]):
    """One lamp, or every one, has its turn in a tick."""

    rounds = 30
    one: bool = True

    async def tick(self) -> None:
        await self.activate(self.agents.sample(1) if self.one else None)

    @during(Light.OFF)
    def shine(self, lamp: Any) -> None:
        lamp.turns += 1


def test_a_refused_time_out_gives_a_turn_to_those_alone_who_were_drawn() -> None:
    """Where one agent is drawn, time-outs that a guard refuses give no further turns."""
    kept = lamp_of(Transition("timeout", Light.OFF, Light.ON, lambda *_: False), OFF=1)
    run = Run(Drawn(), [kept() for _ in range(6)])
    results = run.run()
    assert sum(lamp.turns for lamp in run.agents) == 30
    assert not any(each.timeouts for each in results.rounds)


class Hurried(Drawn):
    """A lit lamp, whose time is up before the first turn of the second round."""

    rounds = 3

    def setup(self) -> None:
        self.agents[1].begin_in(Light.ON)

    def tick_begins(self) -> None:
        if self.round == 2:
            self.agents[1].ticks_in_state = 3


@pytest.mark.parametrize("one", [False, True])
def test_a_time_out_may_be_due_before_the_first_turn(one: bool) -> None:
    """A lamp times out in the tick in whose beginning its time was up."""
    results = Run(Hurried(one=one), [Lamp() for _ in range(6)], seed=0).run()
    assert [each.states["spent"] for each in results.rounds] == [0, 1, 1]


class Ending(Street):
    """A world that ends early."""

    rounds = 9
    ticks = 4
    mode: str = "stop"

    @during(Light.SPENT)
    def end(self, lamp: Any) -> None:
        if self.mode == "stop":
            self.stop("spent")

    def until(self) -> bool:
        return self.mode == "until" and self.count(Light.SPENT) > 0

    @measure
    def lit(self) -> int:
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
    assert (last["measures"].keys(), last["agent_ticks"]) == ({"lit"}, 3 * tick)
    assert done.run.finished[-1].stopped == last["stopped"]


def test_until_is_asked_once_a_tick() -> None:
    """So it may count the ticks in which nothing happens."""

    class Patient(World[Lamp]):
        asked: int = state(0)

        def until(self) -> bool:
            self.asked += 1
            return False

    run = Run(Patient(), 1, rounds=2, ticks=3)
    run.run()
    assert run.world.asked == 6


# Rates


def lit_at(rate: Any, **how: Any) -> type[World[Any]]:
    """Return a world whose lamps are lit at a rate."""

    class Lit(World[Lamp]):
        rounds = 3
        fast: str = "very"

        def tick_begins(self) -> None:
            self.log("begun", at=self.time)

        @during(Light.OFF, rate=rate, **how)
        def light(self, lamp: Any) -> None:
            lamp.fire("light")
            self.log("lit", agent=lamp, at=self.time)

    return Lit


@pytest.mark.parametrize(
    ("rate", "how", "problem"),
    [
        *(
            (rate, {}, r"light: the rate.* in 'off' must be a number")
            for rate in (-1, float("nan"), "fast", lambda *_: None)
        ),
        (
            lambda *_: 60.0,
            {"most": 50},
            r"Lit\.light: the rate of 'lamp_\d' .* from 0 to 50, got 60",
        ),
        (1.0, {"most": 2}, "most=2"),
    ],
)
def test_a_rate_is_a_number_and_not_above_its_largest(rate: Any, how: Any, problem: str) -> None:
    """It is refused with its step and state: events would be too rare, in silence."""
    with pytest.raises(PrismError, match=problem):
        Run(lit_at(rate, **how)(), 2).run()


def test_a_function_that_costs_much_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    """Without the largest rate it is called for everybody after every event."""
    Run(lit_at(lambda *_: 0.01)(), 101).run()
    (warned,) = caplog.messages
    assert "Lit.light: its rate is a function, which is called for each of 101 agents" in warned
    assert "most=" in warned


def test_events_at_rates_carry_their_time(tmp_path: Path) -> None:
    """Lines of the log stand at the times of their events, in order, within the round.

    What is done before the events of a tick is done when the tick begins.
    """
    done = run_logged(tmp_path, lit_at(0.5)(), 20, seed=1)
    assert [each["at"] for each in done.events("world.begun")] == [0, 1, 2]
    events = done.events("world.begun", "world.lit")
    times = [each["at"] for each in events]
    assert times == sorted(times)
    assert len(set(times)) == len(times) > 8
    assert all(each["round"] - 1 <= each["at"] < each["round"] for each in events)
    seconds = [
        float(each["timestamp"][14:16]) * 60 + float(each["timestamp"][17:-1]) for each in events
    ]
    assert seconds == pytest.approx([60 * time for time in times], abs=1e-5)
    # the same happen to the same whatever the order of the list
    ids = [agent.agent_id for agent in done.run.agents]
    backwards = [Lamp(agent_id=each) for each in reversed(ids)]
    again = run_logged(tmp_path, lit_at(0.5)(), backwards, seed=1)
    assert again.steps("world.lit") == done.steps("world.lit")


# Numbers


class Drawing(World[Lamp]):
    """Two numbers of each lamp in each round, by round."""

    drawn: list[Any] = state(list)

    async def tick(self) -> None:
        self.drawn.append([])
        await self.activate(self.agents)

    @during(Light.OFF)
    def take(self, lamp: Any) -> None:
        self.drawn[-1].append([lamp.random.random(), lamp.random.random()])


@pytest.mark.slow
def test_numbers_of_agents_and_rounds_are_independent() -> None:
    """Two numbers of each of 2,000 agents in each of 50 rounds: uniform, and uncorrelated."""
    numpy = pytest.importorskip("numpy")
    run = Run(Drawing(), 2000, rounds=50, seed=11)
    run.run()
    numbers = numpy.array(run.world.drawn)
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


Lantern = lamp_of(Transition("dim", Light.ON, Light.OFF))


class Avenue(World[Any]):
    """Lanterns of which the first that acts lights all others, those that are lit anew."""

    rounds = 1
    lit_at_first: int = 5
    acted: list[str] = state(list)

    def setup(self) -> None:
        for lantern in self.agents[: self.lit_at_first]:
            lantern.begin_in(Light.ON)

    @during(Light.ON)
    def shine(self, lantern: Any) -> None:
        self.acted.append(lantern.agent_id)
        for other in () if len(self.acted) > 1 else self.agents:
            if other is not lantern:
                other.fire("dim")
                other.fire("light")


def test_who_gets_something_to_do_has_its_turn_once_at_its_place() -> None:
    """Agents whose place in the tick is to come act there, others from the next tick on."""
    runs = [Run(Avenue(lit_at_first=lit), [Lantern() for _ in range(10)]) for lit in (10, 5)]
    all_lit, some_lit = runs
    for run in runs:
        run.run()
    order = all_lit.world.acted
    assert some_lit.world.acted == order[order.index(some_lit.world.acted[0]) :]
    assert len(order) == 10
