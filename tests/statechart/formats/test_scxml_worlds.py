"""Charts that are read from SCXML, in a world."""

import pytest

from prism import Run
from prism.statechart import Statechart
from prism.worlds import Agent, World

DOOR = Statechart.from_scxml("""
<scxml xmlns="http://www.w3.org/2005/07/scxml" name="door" initial="shut">
  <state id="shut">
    <transition event="push.*" target="open"/>
    <transition event="push.hard" target="broken"/>
  </state>
  <state id="open"/>
  <state id="broken"/>
</scxml>""")


class Door(Agent):
    """An agent whose chart names events by their beginnings."""

    chart = DOOR


class Doors(World[Door]):
    """A world that pushes its doors."""

    rounds = 1
    event: str = "push"

    def tick_ends(self) -> None:
        """Push the first one."""
        self.agents[0].fire(self.event)


@pytest.mark.parametrize(
    ("event", "state"), [("push", "open"), ("push.hard", "open"), ("push.x.y", "open")]
)
def test_an_event_is_known_by_its_beginning(event: str, state: str) -> None:
    """The first transition whose descriptor matches is made."""
    run = Run(Doors(event=event), 2)
    run.run()
    assert [each.state.value for each in run.agents] == [state, "shut"]
