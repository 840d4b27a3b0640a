"""Worlds whose charts have regions, histories, timers, rates and eventless transitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.statechart import State, Transition
from prism.testing import ScriptedReasoner
from prism.worlds import World, during
from tests.kit.days import TREE, Day, person
from tests.kit.worlds import run_logged


def told(agent: Any, *what: str) -> None:
    """Note what an agent has done."""
    agent.said = [*agent.said, *what]


def config(agent: Any) -> str:
    """Return the text of an agent's state."""
    return str(agent.state)


# Steps


def test_each_region_has_the_innermost_step_in_the_order_of_the_chart() -> None:
    """A step of a state around several regions is taken once, where no inner one has its own."""

    class House(World[Any]):
        rounds = 1

        @during(Day.AWAKE)
        def live(self, agent: Any) -> None:
            told(agent, "live")

        @during(Day.PHONE)
        def hold(self, agent: Any) -> None:
            told(agent, "hold")

        @during(Day.WORK)
        def work(self, agent: Any) -> None:
            told(agent, "work")

    kind = person()
    places = ("home+pocket", "work+pocket", "asleep")
    agents = [kind() for _ in places]
    for agent, place in zip(agents, places, strict=True):
        agent.begin_in(kind.chart.state_of(place))
    Run(House, agents, seed=1).run()
    assert [agent.said for agent in agents] == [["live", "hold"], ["work", "hold"], []]

    class Bare(House):
        @during(Day.FEED)
        def scroll(self, agent: Any) -> None:
            told(agent, "scroll")

        hold = None  # type: ignore[assignment]

    agents = [kind()]
    Run(Bare, agents, seed=1).run()
    assert agents[0].said == ["live"]


def test_a_region_that_has_moved_has_no_step_any_more() -> None:
    """Be it moved by the tick or by the step of an earlier region."""
    kind = person(Transition("opens", Day.POCKET, Day.FEED, after=2))

    class House(World[Any]):
        rounds = 3

        @during(Day.PLACE)
        def live(self, agent: Any) -> None:
            told(agent, f"live {agent.state}")
            if self.round == 3:
                agent.fire("closes")

        @during(Day.PHONE)
        def hold(self, agent: Any) -> None:
            told(agent, f"hold {agent.state}")

    agents = [kind()]
    Run(House, agents, seed=1).run()
    assert agents[0].said == [
        "live home+pocket",
        "hold home+pocket",
        "live home+feed",
        "live home+feed",
    ]
    assert config(agents[0]) == "home+pocket"


@pytest.mark.parametrize("together", [False, True])
def test_a_step_that_waits_lets_the_next_region_wait(together: bool) -> None:
    """Decisions of several regions are asked one after the other, each of what it can change."""
    kind = person(
        Transition("picks", Day.HOME, Day.HOME),
        Transition("picks", Day.HOME, Day.WORK),
        Transition("looks", Day.POCKET, Day.FEED),
        Transition("looks", Day.POCKET, Day.WRITING),
        decision_states=[Day.HOME, Day.POCKET],
    )
    to = kind.chart.state_of

    class House(World[Any]):
        rounds = 1

        @during(Day.HOME)
        async def leave(self, agent: Any) -> None:
            told(agent, str(await agent.decide("picks", weights={to("work+pocket"): 1})))

        @during(Day.POCKET)
        async def look(self, agent: Any) -> None:
            weights = {to("work+feed"): 0.0, to("work+writing"): 2, to("home+writing"): 2}
            told(agent, str(await agent.decide("looks", weights=weights)))

    House.together = together  # type: ignore[misc]
    agents = [kind() for _ in range(3)]
    Run(House, agents, seed=1).run()
    if together:
        # both act on what was there when the tick began
        assert {*map(config, agents)} == {"work+writing"}
        return
    assert [agent.said for agent in agents] == [["work+pocket", "work+writing"]] * 3


@pytest.mark.parametrize("choice", [Day.POCKET, Day.FEED])
@pytest.mark.parametrize(
    ("together", "meanwhile", "holds"),
    [
        (False, ("leaves",), True),
        (True, ("leaves",), True),
        (False, ("leaves", "opens", "shuts"), False),
    ],
)
def test_an_answer_holds_while_its_own_region_does_not_move(
    choice: Day, together: bool, meanwhile: tuple[str, ...], holds: bool, tmp_path: Path
) -> None:
    """Another agent moves another region while the answer, be it to stay, is on its way."""
    kind = person(
        Transition("looks", Day.POCKET, Day.POCKET, action=lambda agent, _: told(agent, "stays")),
        Transition("looks", Day.POCKET, Day.FEED, action=lambda agent, _: told(agent, "looks")),
        Transition("shuts", Day.FEED, Day.POCKET),
        decision_states=[Day.POCKET],
    )

    class House(World[Any]):
        rounds = 1

        def setup(self) -> None:
            self.agents[1].begin_in(Day.ASLEEP)

        @during(Day.POCKET)
        async def look(self, agent: Any) -> None:
            await agent.decide("looks")

        @during(Day.ASLEEP)
        def meddle(self, agent: Any) -> None:
            for trigger in meanwhile:
                self.agents[0].fire(trigger)

    House.together = together  # type: ignore[misc]
    agents = [kind() for _ in range(2)]
    option = kind.chart.state_of(f"home+{choice}")
    done = run_logged(tmp_path, House(), agents, reasoner=ScriptedReasoner([option]))
    reasons = [each["reason"] for each in done.events("statechart.answer_discarded")]
    at = choice if holds else Day.POCKET
    said = ["stays" if choice is Day.POCKET else "looks"] if holds else []
    assert (config(agents[0]), agents[0].said) == (f"work+{at}", said)
    assert reasons == ([] if holds else ["moved"])


# Beginning


def entered(agent: Any, context: Any) -> None:
    """Say that it has entered, and what is on the phone."""
    told(agent, "entered")
    agent.fire("leaves")


def is_home(agent: Any, context: Any) -> bool:
    """Pass at home."""
    return bool(agent.chart.is_in(agent, Day.HOME))


def test_agents_enter_the_state_in_which_they_begin(tmp_path: Path) -> None:
    """Entry actions run once, what they fire follows, and then the agent settles."""
    tree = [State(Day.AWAKE, TREE[0].states, parallel=True, entry=entered), Day.ASLEEP]  # type: ignore[union-attr]
    kind = person(Transition(None, Day.POCKET, Day.FEED, guard=is_home), tree=tree)

    class House(World[Any]):
        rounds = 1

        def setup(self) -> None:
            self.agents[1].begin_in(Day.ASLEEP)
            self.agents[2].begin_in(kind.chart.state_of("work+pocket"))

    done = run_logged(tmp_path, House(), [kind() for _ in range(3)], seed=1)
    assert list(map(config, done.run.agents)) == ["work+feed", "asleep", "work+pocket"]
    assert [agent.said for agent in done.run.agents] == [["entered"], [], ["entered"]]
    events = done.events("agent.joined", "statechart.transition")
    assert [(each.get("state"), each.get("trigger"), each["round"]) for each in events] == [
        ("home+pocket", None, 0),
        ("asleep", None, 0),
        ("work+pocket", None, 0),
        (None, "always", 0),
        (None, "leaves", 0),
    ]


# Faults


def test_a_fault_says_where_it_happened() -> None:
    """In an entry action of a strict chart, and in the step of a region."""

    def fails(agent: Any, context: Any) -> None:
        raise ValueError("no such thing")

    class House(World[Any]):
        rounds = 2

        @during(Day.FEED)
        def scroll(self, agent: Any) -> None:
            agent.nothing()

    tree = [State(Day.AWAKE, TREE[0].states, parallel=True, entry=fails), Day.ASLEEP]  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="no such thing") as raised:
        Run(House, [person(tree=tree, strict=True)()], seed=1).run()
    assert "person_1" in raised.value.__notes__[-1]

    kind = person(Transition("opens", Day.POCKET, Day.FEED, after=1))
    with pytest.raises(AttributeError, match="nothing") as raised:
        Run(House, [kind()], seed=1).run()
    assert "round 2" in raised.value.__notes__[-1]
