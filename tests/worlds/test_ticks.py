"""Steps, waves of decisions and messages, and what a step must not do."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import DefinitionError, SimulationError
from prism.statechart import Statechart
from prism.testing import RecordingReasoner, ScriptedReasoner
from prism.worlds import Message, World, during
from tests.kit.lamps import SWITCH_ON, Lamp, Light, Room, to_on
from tests.kit.medley import Medley
from tests.kit.worlds import run_logged


class Pressing(Room):
    """Every lamp that is off decides for itself; then it says what it is."""

    @during(Light.OFF)
    async def press(self, lamp: Lamp) -> None:
        """Decide, and note the state."""
        lamp.heard.append(await lamp.decide("pressed"))


def test_the_questions_of_a_tick_are_asked_together() -> None:
    """One call of the reasoner has the questions of all agents, in their order."""
    reasoner = RecordingReasoner(ScriptedReasoner(SWITCH_ON))
    run = Run(Pressing(), 5, reasoner=reasoner)
    run.run()
    (batch,) = reasoner.batches
    assert [question.agent for question in batch] == list(run.agents)
    assert [lamp.heard for lamp in run.agents] == [[Light.ON]] * 5


class Crowding(Room):
    """All lamps press the first one."""

    @during(Light.OFF)
    async def press(self, lamp: Lamp) -> None:
        """Press the first lamp."""
        lamp.heard.append(await self.agents[0].decide("pressed", lamp))


def test_who_comes_too_late_asks_nothing(tmp_path: Path) -> None:
    """Of those who turn to one agent, the first is answered; for the others it has moved."""
    reasoner = RecordingReasoner(ScriptedReasoner([Light.ON]))
    done = run_logged(tmp_path, Crowding(), 4, reasoner=reasoner)
    assert len(reasoner.questions) == 1
    assert [lamp.heard for lamp in done.run.agents] == [[Light.ON], [None], [None], [None]]
    assert not done.events("statechart.answer_discarded")


class Interrupting(Room):
    """The second lamp, which is on, switches the first one on and off again while it is asked."""

    def setup(self) -> None:
        """Begin with the second lamp on."""
        self.agents[1].begin_in(Light.ON)

    @during(Light.OFF)
    async def press(self, lamp: Lamp) -> None:
        """Decide."""
        lamp.heard.append(await lamp.decide("pressed"))

    @during(Light.ON)
    def meddle(self, lamp: Lamp) -> None:
        """Switch the other lamp on and off."""
        first = self.other(lamp)
        first.fire("pressed")
        first.fire("pressed")


def test_an_answer_is_not_applied_to_an_agent_that_has_moved(tmp_path: Path) -> None:
    """An agent that moved while it was asked keeps its state, even if it came back."""
    reasoner = ScriptedReasoner({to_on: Light.BROKEN})
    done = run_logged(tmp_path, Interrupting(), 2, reasoner=reasoner)
    first = done.run.agents[0]
    assert (first.state, first.heard) == (Light.OFF, [None])
    (discarded,) = done.events("statechart.answer_discarded")
    assert (discarded["agent_id"], discarded["chosen"]) == ("lamp_1", "broken")
    assert discarded["reason"] == "moved"


class Talking(Room):
    """The first lamp asks, the second one answers, and the first hears it, in one tick."""

    @during(Light.OFF)
    async def talk(self, lamp: Lamp) -> None:
        """Ask or answer."""
        if lamp is self.agents[0]:
            lamp.send(self.agents[1], "how are you?")
        message = await lamp.receive()
        assert message is None or isinstance(message, Message)
        lamp.heard.append(message and message.content)
        if lamp is self.agents[1] and message is not None:
            await lamp.write("Think first.", template="")
            lamp.send(message.sender, "off, as always")


def test_messages_go_to_and_fro_within_a_tick() -> None:
    """A message is received in the tick in which it was sent; who gets none goes on with None."""
    run = Run(Talking(), 3)
    run.run()
    heard = [lamp.heard for lamp in run.agents]
    assert heard == [["off, as always"], ["how are you?"], [None]]


class Passing(Room):
    """The last lamp tells the one before it, which tells the first."""

    @during(Light.OFF)
    async def tell(self, lamp: Lamp) -> None:
        """Hear, and tell on."""
        place = self.agents.index(lamp)
        if place < 2:
            message = await lamp.receive()
            lamp.heard.append(message and message.content)
        if place > 0:
            lamp.send(self.agents[place - 1], lamp.name)


def test_who_waits_hears_what_others_have_still_to_tell() -> None:
    """Nobody goes on without a message while somebody who has one may send another."""
    run = Run(Passing(), 3)
    run.run()
    assert [lamp.heard for lamp in run.agents] == [["lamp_2"], ["lamp_3"], []]


class Switching(Room):
    """In the third round the first lamp switches the second one off, which switches it on."""

    rounds = 3
    tick = World.tick

    def setup(self) -> None:
        """Begin with the second lamp on."""
        self.agents[1].begin_in(Light.ON)

    @during(Light.OFF)
    def switch(self, lamp: Lamp) -> None:
        """Press the other lamp."""
        if self.round == 3:
            self.other(lamp).fire("pressed")


def test_ticks_in_a_state_count_a_turn_once_it_was_had(tmp_path: Path) -> None:
    """The second lamp has not had its turn of the third tick, and the first has."""
    moved = run_logged(tmp_path, Switching(), 2, seed=1).events("statechart.transition")
    assert [each["ticks_in_state"] for each in moved] == [2, 3]


async def endless(lamp: Lamp) -> None:
    """Wait for messages for ever."""
    while True:
        await lamp.receive()


async def raising(_lamp: Lamp) -> None:
    """Raise an error."""
    raise ValueError("mine")


async def at_once(do: Callable[[], Any]) -> None:
    """Do what needs no waiting."""
    do()


MISTAKES: dict[str, Callable[["Wrong", Any], Awaitable[Any]]] = {
    "sleeps": lambda _, lamp: asyncio.sleep(0),
    "forgets await": lambda _, lamp: at_once(lambda: lamp.decide("pressed")),
    "raises": lambda _, lamp: raising(lamp),
    "never ends": lambda _, lamp: endless(lamp),
    "weighs strangers": lambda _, lamp: lamp.decide("pressed", weights={Medley: 1}),
    "misspells": lambda _, lamp: lamp.decide("pressed", weights={"brokn": 1}),
    "weighs nothing": lambda _, lamp: lamp.decide("pressed", weights={Light.OFF: 1}),
    "weighs less than nothing": lambda _, lamp: lamp.decide("pressed", weights={Light.ON: -1}),
    "begins again": lambda _, lamp: at_once(lambda: lamp.begin_in(Light.ON)),
    "sends away": lambda _, lamp: at_once(lambda: lamp.send(Lamp())),
    "logs the time": lambda world, _: at_once(lambda: world.log("seen", tick=1)),
}


class Wrong(Room):
    """The last lamp does what it must not, while the others wait for a decision."""

    @during(Light.OFF)
    async def go_wrong(self, lamp: Lamp) -> None:
        """Do something wrong, and note the end."""
        try:
            if lamp is not self.agents[-1] or not self.mode:
                await lamp.decide("pressed")
            else:
                await MISTAKES[self.mode](self, lamp)
        finally:
            self.closed.append(lamp.agent_id)


@pytest.mark.parametrize(
    ("mode", "error", "problem"),
    [
        (
            "sleeps",
            SimulationError,
            "awaits None: await decide, write and receive of agents",
        ),
        ("forgets await", SimulationError, "on 'pressed' was not awaited, so it was never made"),
        ("raises", ValueError, "mine"),
        ("never ends", SimulationError, "still waits after 10000 answers"),
        ("weighs strangers", ValueError, "is no state of the chart"),
        ("misspells", ValueError, "name 'brokn', which is no state of the chart"),
        ("weighs nothing", ValueError, "above 0 for one of on, broken"),
        ("weighs less than nothing", ValueError, "must be a number, 0 or more, got -1"),
        ("begins again", SimulationError, "begin_in belongs in setup"),
        ("sends away", TypeError, "the receiver of a message must be an agent"),
        ("logs the time", ValueError, "every line has 'tick' already"),
    ],
)
def test_a_wrong_step_is_refused(mode: str, error: type[Exception], problem: str) -> None:
    """The message says what to do."""
    with pytest.raises(error, match=problem) as raised:
        Run(Wrong(mode=mode), 3).run()

    assert any("in the step of <Lamp lamp_" in note for note in raised.value.__notes__)


class Unasked(Lamp):
    """A lamp that is never asked, since its chart names no decision state."""

    chart = Statechart(Light, [*Lamp.chart.transitions][:2], Light.OFF)


class Careless(World[Unasked]):
    """Nearly every lamp breaks, or so its author thinks."""

    @during(Light.OFF)
    async def press(self, lamp: Unasked) -> None:
        """Decide by weights."""
        await lamp.decide("pressed", weights={Light.ON: 1, Light.BROKEN: 99})


def test_weights_are_never_ignored() -> None:
    """Where nobody decides between targets, a decision says so instead of taking the first."""
    with pytest.raises(DefinitionError, match=r"to 'on' and 'broken'.*decision_states=\[Light.OFF"):
        Run(Careless(), 3).run()
