"""Worlds whose charts have composites, regions, histories, timers, rates and eventless moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prism import Run
from prism.statechart import History, State, Statechart, Transition
from prism.testing import ScriptedReasoner
from prism.worlds import Agent, World, during, state
from tests.kit.days import TREE, Day, person
from tests.kit.worlds import run_logged


def note(agent: Any, *what: str) -> None:
    """Note what an agent has done."""
    agent.said = [*agent.said, *what]


def config(agent: Any) -> str:
    """Return the text of an agent's state."""
    return str(agent.state)


def people(kind: Any, *states: str) -> list[Any]:
    """Return agents that begin in these states."""
    agents = [kind() for _ in states]
    for agent, text in zip(agents, states, strict=True):
        agent.begin_in(kind.chart.state_of(text))
    return agents


class Still(World[Any]):
    """A world without a step."""


PLACES = ("home+pocket", "work+pocket", "work+feed", "asleep")


def test_composites_are_counted_with_all_that_is_inside() -> None:
    """By the world, by its share, and by sets of agents."""
    world = Run(Still, people(person(), *PLACES)).world
    assert [world.count(each) for each in (Day.AWAKE, Day.WORK, Day.PHONE)] == [3, 2, 3]
    assert world.share(Day.AWAKE) == 0.75
    assert len(world.agents.where(state=Day.PLACE)) == 3
    assert len(world.agents.where(state=[Day.ASLEEP, Day.WORK])) == 3
    assert world.agents.count(Day.AWAKE) == 3

    class Doll(Agent):
        chart = Statechart([Day.HOME], [], Day.HOME)

    agents = Run(Still, [*people(person(), *PLACES), Doll()]).world.agents
    assert agents.count(Day.HOME) == agents[0].world.count(Day.HOME) == 2


def test_at_rates_what_happens_in_a_composite_happens_as_often_in_each_leaf() -> None:
    """By a step or by the chart: as often as the rate says, however many regions are active."""

    class Rated(World[Any]):
        rounds = 1
        seen: int = state(0)

        @during(Day.AWAKE, rate=20.0)
        def live(self, agent: Any) -> None:
            self.seen += 1

    run = Run(Rated(), people(person(), *25 * PLACES), seed=1)
    run.run()
    # 1,500 events are expected, with a standard deviation of 39
    assert 1345 < run.world.seen < 1655
    dozing = person(Transition("dozes", Day.AWAKE, Day.ASLEEP, rate=1.0))
    run = Run(Rated(), [dozing() for _ in range(200)], seed=1)
    run.run()
    # of 200, 1 - 1 / e are expected, with a standard deviation of 7
    assert 99 < run.world.count(Day.ASLEEP) < 154


# Steps


class House(World[Any]):
    """A world with a step of a state around two regions, of a region, and of a leaf."""

    rounds = 1

    @during(Day.AWAKE)
    def live(self, agent: Any) -> None:
        note(agent, "live")

    @during(Day.PHONE)
    def hold(self, agent: Any) -> None:
        note(agent, "hold")

    @during(Day.WORK)
    def work(self, agent: Any) -> None:
        note(agent, "work")


class Bare(House):
    """One in which a leaf has a step, and its region has none."""

    @during(Day.FEED)
    def scroll(self, agent: Any) -> None:
        note(agent, "scroll")

    hold = None  # type: ignore[assignment]


def test_each_region_has_the_innermost_step_in_the_order_of_the_chart() -> None:
    """A step of a state around several regions is taken once, where no inner one has its own."""
    agents = people(person(), "home+pocket", "work+pocket", "asleep")
    Run(House, agents, seed=1).run()
    assert [agent.said for agent in agents] == [["live", "hold"], ["work", "hold"], []]
    agents = people(person(), "home+pocket", "home+feed")
    Run(Bare, agents, seed=1).run()
    assert [agent.said for agent in agents] == [["live"], ["live", "scroll"]]


def test_a_region_that_has_moved_has_no_step_any_more() -> None:
    """Be it moved by the tick or by the step of an earlier region."""
    kind = person(Transition("opens", Day.POCKET, Day.FEED, after=2))

    class House(World[Any]):
        rounds = 3

        @during(Day.PLACE)
        def live(self, agent: Any) -> None:
            note(agent, f"live {agent.state}")
            if self.round == 3:
                agent.fire("closes")

        @during(Day.PHONE)
        def hold(self, agent: Any) -> None:
            note(agent, f"hold {agent.state}")

    agents = [kind()]
    Run(House, agents, seed=1).run()
    assert agents[0].said == [
        *("live home+pocket", "hold home+pocket", "live home+feed", "live home+feed"),
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
            note(agent, str(await agent.decide("picks", weights={to("work+pocket"): 1})))

        @during(Day.POCKET)
        async def look(self, agent: Any) -> None:
            weights = {to("work+feed"): 0.0, to("work+writing"): 2, to("home+writing"): 2}
            note(agent, str(await agent.decide("looks", weights=weights)))

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
        Transition("looks", Day.POCKET, Day.POCKET, action=lambda agent, _: note(agent, "stays")),
        Transition("looks", Day.POCKET, Day.FEED, action=lambda agent, _: note(agent, "looks")),
        Transition("shuts", Day.FEED, Day.POCKET),
        decision_states=[Day.POCKET],
    )

    class House(World[Any]):
        rounds = 1

        @during(Day.POCKET)
        async def look(self, agent: Any) -> None:
            await agent.decide("looks")

        @during(Day.ASLEEP)
        def meddle(self, agent: Any) -> None:
            for trigger in meanwhile:
                self.agents[0].fire(trigger)

    House.together = together  # type: ignore[misc]
    agents = people(kind, "home+pocket", "asleep")
    option = kind.chart.state_of(f"home+{choice}")
    done = run_logged(tmp_path, House(), agents, reasoner=ScriptedReasoner([option]))
    reasons = [each["reason"] for each in done.events("statechart.answer_discarded")]
    at = choice if holds else Day.POCKET
    said = ["stays" if choice is Day.POCKET else "looks"] if holds else []
    assert (config(agents[0]), agents[0].said) == (f"work+{at}", said)
    assert reasons == ([] if holds else ["moved"])


# Beginning, and faults


def around(entry: Any) -> list[Any]:
    """Return the day's states, with an entry action of the one around both regions."""
    return [State(Day.AWAKE, TREE[0].states, parallel=True, entry=entry), Day.ASLEEP]  # type: ignore[union-attr]


def test_agents_enter_the_state_in_which_they_begin(tmp_path: Path) -> None:
    """Entry actions run once, what they fire follows, and then the agent settles."""

    def entered(agent: Any, context: Any) -> None:
        note(agent, "entered")
        agent.fire("leaves")

    def is_home(agent: Any, context: Any) -> bool:
        return bool(agent.chart.is_in(agent, Day.HOME))

    settles = Transition(None, Day.POCKET, Day.FEED, guard=is_home)
    kind = person(settles, tree=around(entered))
    agents = people(kind, "home+pocket", "asleep", "work+pocket")
    done = run_logged(tmp_path, House(), agents, seed=1)
    assert list(map(config, agents)) == ["work+feed", "asleep", "work+pocket"]
    assert [agent.said.count("entered") for agent in agents] == [1, 0, 1]
    events = done.events("agent.joined", "statechart.transition")
    assert [(each.get("state"), each.get("trigger"), each["round"]) for each in events] == [
        ("home+pocket", None, 0),
        ("asleep", None, 0),
        ("work+pocket", None, 0),
        (None, "always", 0),
        (None, "leaves", 0),
    ]


def test_a_fault_says_where_it_happened() -> None:
    """In an entry action of a strict chart, and in the step of a region."""

    def fails(agent: Any, context: Any) -> None:
        raise ValueError("no such thing")

    class House(World[Any]):
        rounds = 2

        @during(Day.FEED)
        def scroll(self, agent: Any) -> None:
            agent.nothing()

    with pytest.raises(ValueError, match="no such thing") as raised:
        Run(House, [person(tree=around(fails), strict=True)()], seed=1).run()
    assert "person_1" in raised.value.__notes__[-1]

    kind = person(Transition("opens", Day.POCKET, Day.FEED, after=1))
    with pytest.raises(AttributeError, match="nothing") as raised:
        Run(House, [kind()], seed=1).run()
    assert "round 2" in raised.value.__notes__[-1]


# Time


@pytest.mark.parametrize("way", ["all", "one", "together", "independent", "listed"])
@pytest.mark.sampled(5)
def test_after_fires_in_its_tick_however_turns_are_given(way: str) -> None:
    """Of a leaf, a region and a composite; only an agent that moves begins anew."""
    kind = person(
        Transition("leaves", Day.HOME, Day.WORK, after=3),
        Transition("opens", Day.POCKET, Day.FEED, after=2),
        Transition("dozes", Day.AWAKE, Day.ASLEEP, after=7),
        Transition("rises", Day.ASLEEP, History(Day.AWAKE, deep=True), after=2),
    )

    class House(World[Any]):
        rounds = 6
        ticks = 2
        together = way == "together"
        independent = way == "independent"

        async def tick(self) -> None:
            chosen = {"one": self.agents.sample(1), "listed": self.agents}
            await self.activate(chosen.get(way))

    run = Run(House, [kind() for _ in range(4)], seed=3)
    run.run()
    for agent in run.agents:
        assert [record.trigger for record in agent.state_history] == [
            *("opens", "leaves", "dozes", "rises"),
        ]
        # ticks 2, 3, 7, 9: and so three more have passed
        assert agent.ticks_in_state == 3
        assert config(agent) == "work+feed"


def test_a_limit_of_a_state_around_others_is_counted_as_a_time_out() -> None:
    """More than so many ticks; what happens inside does not begin it anew."""
    kind = person(
        Transition("timeout", Day.PHONE, Day.POCKET),
        Transition("turns", Day.WRITING, Day.FEED, after=1),
        Transition("turns", Day.FEED, Day.WRITING, after=1),
        timeouts={Day.PHONE: 4},
    )
    results = Run(Still, people(kind, "home+feed"), seed=1, rounds=5).run()
    assert [each.timeouts for each in results.rounds] == [{}, {}, {}, {}, {"home+feed": 1}]


BUZZES, RINGS, ENDS = 0.3, 0.6, 5.0
Called = person(
    Transition("buzzes", Day.POCKET, Day.FEED, rate=BUZZES),
    Transition("rings", Day.POCKET, Day.WRITING, rate=lambda agent, _: agent.level),
    Transition("ends", Day.FEED, Day.POCKET),
    Transition("ends", Day.WRITING, Day.POCKET),
    Transition("turns", Day.HOME, Day.WORK, after=3),
    Transition("turns", Day.WORK, Day.HOME, after=3),
)


class Calls(World[Any]):
    """People whose phones ring at rates, while they draw numbers; they hang up in their turns."""

    rounds = 20
    draws: int = 1
    rings: float = RINGS

    def setup(self) -> None:
        for agent in self.agents:
            agent.level = self.rings

    @during(Day.PLACE)
    def live(self, agent: Any) -> None:
        note(agent, *(str(agent.random.random()) for _ in range(self.draws)))

    @during(Day.FEED, Day.WRITING)
    def end(self, agent: Any) -> None:
        agent.fire("ends")


def test_the_chart_draws_from_numbers_of_its_own(tmp_path: Path) -> None:
    """Whatever steps draw, the chart does the same; and what steps draw does not depend on it."""
    once, often, more = (
        run_logged(tmp_path, Calls(**given), [Called() for _ in range(5)], seed=4)
        for given in ({}, {"draws": 3}, {"rings": 9.0})
    )
    moves = "statechart.transition"
    assert once.steps(moves) == often.steps(moves) != more.steps(moves)
    assert sum(each["trigger"] == "ends" for each in once.events(moves)) > 20
    assert [agent.said for agent in once.run.agents] == [agent.said for agent in more.run.agents]
