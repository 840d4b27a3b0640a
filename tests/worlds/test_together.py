"""Ticks in which all act on what was there when the tick began."""

from typing import Any

import pytest

from prism import Run
from prism.worlds import during
from tests.kit.lamps import Lamp, Light, Room


class Second(Room):
    """A together world whose agents decide when they have written, and by the policy."""

    together = True

    @during(Light.OFF)
    async def look(self, lamp: Lamp) -> None:
        """Write, then decide."""
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
        """Press the first lamp, and tell it so; one of the others waits before."""
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
        """Break the lamps."""
        for lamp in self.agents:
            lamp.begin_in(Light.BROKEN)

    @during(Light.BROKEN)
    def look(self, lamp: Lamp) -> None:
        """Note what the other lamp is."""
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
        """Send, and wait."""
        lamp.send(self.other(lamp), lamp.name)
        message: Any = await lamp.receive()
        lamp.heard.append(message and message.content)


def test_together_messages_are_received_in_the_next_tick() -> None:
    """A message of a together world arrives at the end of its tick."""
    run = Run(Waiting(), 2)
    run.run()
    assert [lamp.heard for lamp in run.agents] == [[None, "lamp_2"], [None, "lamp_1"]]
