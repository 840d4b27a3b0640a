"""Steps, waves of decisions and messages, what a step must not do, and ticks of all together."""

import asyncio
from collections.abc import Callable
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.errors import DefinitionError, SimulationError
from prism.statechart import Statechart
from prism.testing import RecordingReasoner, ScriptedReasoner
from prism.worlds import Message, World, during
from tests.kit.lamps import Lamp, Light, Room
from tests.kit.worlds import run_logged


class Pressing(Room):
    """Every lamp that is off decides for itself; then it says what it is."""

    @during(Light.OFF)
    async def press(self, lamp: Lamp) -> None:
        lamp.heard.append(await lamp.decide("pressed"))


def test_the_questions_of_a_tick_are_asked_together() -> None:
    """One call of the reasoner has the questions of all agents, in their order."""
    reasoner = RecordingReasoner(ScriptedReasoner({"pressed": Light.ON}))
    run = Run(Pressing(), 5, reasoner=reasoner)
    run.run()
    (batch,) = reasoner.batches
    assert [question.agent for question in batch] == list(run.agents)
    assert [lamp.heard for lamp in run.agents] == [[Light.ON]] * 5


class Crowding(Room):
    """All lamps press the first one."""

    @during(Light.OFF)
    async def press(self, lamp: Lamp) -> None:
        lamp.heard.append(await self.agents[0].decide("pressed", lamp))


def test_who_comes_too_late_asks_nothing(tmp_path: Path) -> None:
    """Of those who turn to one agent, the first is answered; for the others it has moved."""
    reasoner = RecordingReasoner(ScriptedReasoner([Light.ON]))
    done = run_logged(tmp_path, Crowding(), 4, reasoner=reasoner)
    assert len(reasoner.questions) == 1
    assert [lamp.heard for lamp in done.run.agents] == [[Light.ON], [None], [None], [None]]
    assert not done.events("statechart.answer_discarded")


class Talking(Room):
    """The first lamp asks, the second one answers, and the first hears it, in one tick."""

    @during(Light.OFF)
    async def talk(self, lamp: Lamp) -> None:
        if lamp is self.agents[0]:
            lamp.send(self.agents[1], {"how": "are you?", "to": self.agents[1]})
        message = await lamp.receive()
        assert message is None or isinstance(message, Message)
        lamp.heard.append(message and message.content)
        if lamp is self.agents[1] and message is not None:
            await lamp.write("Think first.", template="")
            lamp.send(message.sender, "off, as always")


def test_messages_go_to_and_fro_within_a_tick(tmp_path: Path) -> None:
    """A message is received in the tick in which it was sent; who gets none goes on with None.

    Messages are events with their sender, receiver and content.
    """
    done = run_logged(tmp_path, Talking(), 3)
    first, second, third = done.run.agents
    asked = {"how": "are you?", "to": second}
    assert [first.heard, second.heard, third.heard] == [["off, as always"], [asked], [None]]
    sent = done.events("message.sent")
    assert [(each["agent_id"], each["receiver"]) for each in sent] == [
        ("lamp_1", "lamp_2"),
        ("lamp_2", "lamp_1"),
    ]
    assert sent[0]["content"]["how"] == "are you?"
    assert sent[1]["content"] == "off, as always"


class Wordy(Room):
    """Each lamp tells the first more than a line of a log should have."""

    @during(Light.OFF)
    def tell(self, lamp: Lamp) -> None:
        lamp.send(self.agents[0], {"words": ["x" * 3_000]})


def test_the_log_has_the_beginning_of_a_long_message(tmp_path: Path) -> None:
    """Whatever a message consists of, the log has its first 2,000 characters as JSON."""
    for each in run_logged(tmp_path, Wordy(), 1).events("message.sent"):
        assert each["content"].startswith('{"words": ["xxx')
        assert len(each["content"]) == 2_000


class Passing(Room):
    """The last lamp tells the one before it, which tells the first."""

    @during(Light.OFF)
    async def pass_on(self, lamp: Lamp) -> None:
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


class Forgetful(Room):
    """Lamps that do not wait for what they ask for."""

    ask: Any = None

    @during(Light.OFF)
    async def forget(self, lamp: Lamp) -> None:
        self.ask(lamp)


@pytest.mark.parametrize(
    ("name", "with_"), [("decide", ["on"]), ("write", ["Hi"]), ("receive", [])]
)
def test_python_warns_of_what_is_not_awaited(name: str, with_: list[str]) -> None:
    """A message that is not there yet would look as if it were."""
    with pytest.warns(RuntimeWarning, match=f"'Agent.{name}' was never awaited"):
        Run(Forgetful(ask=lambda lamp: getattr(lamp, name)(*with_)), 1, rounds=1).run()


class Switching(Room):
    """In the third round the first lamp switches the second one off, which switches it on."""

    rounds = 3
    tick = World.tick

    def setup(self) -> None:
        self.agents[1].begin_in(Light.ON)

    @during(Light.OFF)
    def switch(self, lamp: Lamp) -> None:
        if self.round == 3:
            self.other(lamp).fire("pressed")


def test_ticks_in_a_state_count_a_turn_once_it_was_had(tmp_path: Path) -> None:
    """The second lamp has not had its turn of the third tick, and the first has."""
    moved = run_logged(tmp_path, Switching(), 2, seed=1).events("statechart.transition")
    assert [each["ticks_in_state"] for each in moved] == [2, 3]


async def endless(_: Any, lamp: Lamp) -> None:
    """Wait for messages for ever."""
    while True:
        await lamp.receive()


def raising(*_: Any) -> None:
    """Raise an error."""
    raise ValueError("mine")


def weighs(state: Any, weight: float = 1) -> Callable[[Any, Any], Any]:
    """Return what decides by the weight of one state."""
    return lambda _, lamp: lamp.decide("pressed", weights={state: weight})


class Wrong(Room):
    """The last lamp does what it must not, while the others wait for a decision."""

    act: Any = None

    @during(Light.OFF)
    async def go_wrong(self, lamp: Lamp) -> None:
        if lamp is self.agents[-1]:
            done = self.act(self, lamp)
            if isawaitable(done):
                await done
        await lamp.decide("pressed")


@pytest.mark.parametrize(
    ("act", "problem"),
    [
        (lambda *_: asyncio.sleep(0), "awaits None: await decide, write and receive of agents"),
        (raising, "mine"),
        (endless, "still waits after 10000 answers"),
        (weighs("brokn"), "no agent's chart has the state 'brokn': there are "),
        (weighs(Light.OFF), "above 0 for one of on, broken"),
        (weighs(Light.ON, -1), "must be 0 or more"),
        (lambda _, lamp: lamp.begin_in(Light.ON), "begin_in belongs in setup"),
        (lambda _, lamp: lamp.send(Lamp()), "the receiver of a message must be an agent"),
        (lambda world, _: world.log("seen", tick=1), "every line has 'tick' already"),
    ],
)
def test_a_wrong_step_is_refused(act: Any, problem: str) -> None:
    """The message says what to do."""
    with pytest.raises((SimulationError, ValueError, TypeError), match=problem) as raised:
        Run(Wrong(act=act), 3).run()

    assert any("in the step of <Lamp lamp_" in note for note in raised.value.__notes__)


def test_a_state_that_is_assigned_is_refused() -> None:
    """Nothing would count it, or time it out."""
    wrong = Wrong(act=lambda _, lamp: setattr(lamp, "state", Light.BROKEN))
    with pytest.raises(SimulationError, match=r"1 agents are in .*change states by fire"):
        Run(wrong, 3).run()


class Unasked(Lamp):
    """A lamp that is never asked, since its chart names no decision state."""

    chart = Statechart(Light, [*Lamp.chart.transitions][:2], Light.OFF)


class Careless(World[Unasked]):
    """Nearly every lamp breaks, or so its author thinks."""

    @during(Light.OFF)
    async def press(self, lamp: Unasked) -> None:
        await lamp.decide("pressed", weights={Light.ON: 1, Light.BROKEN: 99})


def test_weights_are_never_ignored() -> None:
    """Where nobody decides between targets, a decision says so instead of taking the first."""
    with pytest.raises(DefinitionError, match=r"to several states.*decision_states=\[Light.OFF"):
        Run(Careless(), 3).run()


# All act on what was there when the tick began


class Second(Room):
    """A together world whose agents decide when they have written, and by the policy."""

    together = True

    @during(Light.OFF)
    async def look(self, lamp: Lamp) -> None:
        await lamp.write("Something.", template="Nothing.")
        await lamp.decide("pressed")


def test_together_agents_decide_in_later_waves() -> None:
    """Who decides in the second wave draws numbers of its own, whoever had the last turn."""
    run = Run(Second(), 3)
    run.run()
    assert all(lamp.state is not Light.OFF for lamp in run.agents)


class Shoved(Room):
    """A together world in which all press the first lamp, and send it a message."""

    together = True

    @during(Light.OFF)
    async def shove(self, lamp: Lamp) -> None:
        first = self.agents[0]
        if lamp.agent_id == "ada":
            await lamp.write("Wait.", template="")
        if lamp is not first:
            first.fire("pressed", {"by": lamp.agent_id})
            lamp.send(first, lamp.agent_id)


@pytest.mark.parametrize("others", [("zoe", "ada"), ("ada", "zoe")])
def test_together_what_several_do_to_one_comes_in_the_order_of_their_places(
    others: tuple[str, str],
) -> None:
    """Two that fire at a third, and write to it, do so in no order of names or of the list."""
    run = Run(Shoved(), [Lamp(agent_id=each) for each in ("lamp", *others)], seed=3, rounds=40)
    run.run()
    first = run.agents[0]
    sent = [each.content for each in first.inbox]
    # the history holds fifty, and so the last twenty-five rounds
    assert [each.context["by"] for each in first.state_history] == sent[-50:]
    assert 10 < sum(each == "ada" for each in sent[::2]) < 30


class Waning(Room):
    """A together world in which lamps that break time out."""

    together = True
    rounds = 6

    def setup(self) -> None:
        for lamp in self.agents:
            lamp.begin_in(Light.BROKEN)

    @during(Light.BROKEN)
    def look(self, lamp: Lamp) -> None:
        lamp.heard.append(self.other(lamp).state)


def test_together_time_outs_show_at_the_end_of_the_tick() -> None:
    """All lamps time out in one tick, and none sees another one do so."""
    run = Run(Waning(), 3)
    results = run.run()
    assert [each.timeouts for each in results.rounds] == [{}, {}, {}, {"broken": 3}, {}, {}]
    assert [lamp.heard for lamp in run.agents] == [[Light.BROKEN] * 3] * 3


class Waiting(Room):
    """A together world whose step waits for a message that comes when the tick is over."""

    together = True
    rounds = 2

    @during(Light.OFF)
    async def talk(self, lamp: Lamp) -> None:
        lamp.send(self.other(lamp), lamp.name)
        message: Any = await lamp.receive()
        lamp.heard.append(message and message.content)


def test_together_messages_are_received_in_the_next_tick() -> None:
    """A message of a together world arrives at the end of its tick."""
    run = Run(Waiting(), 2)
    run.run()
    assert [lamp.heard for lamp in run.agents] == [[None, "lamp_2"], [None, "lamp_1"]]
