"""The set of agents from which others are made."""

from collections.abc import Callable
from copy import copy
from enum import StrEnum
from statistics import mean
from typing import Any

import pytest

from prism import Run
from prism.errors import DefinitionError, SimulationError, UnknownStateError
from prism.statechart import State, Statechart, Transition
from prism.worlds import Agent, AgentSet, World, during, small_world
from tests.kit.lamps import Lamp, Light


class Lantern(Lamp):
    """Another kind of lamp, with the same chart."""


Shift = StrEnum("Shift", ["HOME", "AT_WORK", "DESK", "ABROAD"])
"""Where a stranger is; nobody is ever abroad."""
Switch = StrEnum("Switch", ["OFF"])
"""States of which one has the text of a lamp's."""


class Stranger(Agent):
    """An agent of another chart, with a state inside another."""

    chart = Statechart(
        [Shift.HOME, State(Shift.AT_WORK, [Shift.DESK])],
        [Transition("leaves", Shift.HOME, Shift.AT_WORK)],
        Shift.HOME,
    )


class Plug(Agent):
    """An agent of a third chart."""

    chart = Statechart(Switch, [], Switch.OFF)


class Street(World[Lamp | Lantern]):
    """Lamps and lanterns, of which every third is on, in a ring."""

    def populate(self, agents: int) -> list[Lamp]:
        kinds = Lamp, Lantern
        return [
            kinds[place % 2](agent_id=f"lamp_{place + 1}", pressed=place) for place in range(agents)
        ]

    def setup(self) -> None:
        self.network = small_world(self, 2, 0)
        for lamp in self.agents.where(lambda lamp: lamp.pressed % 3 == 0):
            lamp.begin_in(Light.ON)


@pytest.fixture
def street() -> Street:
    """Return a street of twelve lamps."""
    return Run(Street(), 12, seed=4).world


def places(agents: AgentSet[Any]) -> list[int]:
    """Return what tells lamps apart."""
    return [lamp.pressed for lamp in agents]


UNKNOWN: dict[str, Callable[[Street], object]] = {
    "share": lambda street: street.share("brokn"),  # type: ignore[arg-type]
    "count": lambda street: street.count("brokn"),  # type: ignore[arg-type]
    "where": lambda street: street.agents.where(state="brokn"),  # type: ignore[arg-type]
    "one of several": lambda street: street.agents.where(state=[Light.ON, "brokn"]),  # type: ignore[list-item]
    "neighbours": lambda street: street.agents[0].neighbours.count("brokn"),
}


@pytest.mark.parametrize("ask", UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_state_is_refused_with_the_known_ones(
    street: Street, ask: Callable[[Street], object]
) -> None:
    """A state that no chart has would be nobody's for ever, so those that there are are listed."""
    told = r"no agent's chart has the state 'brokn': there are "
    with pytest.raises(UnknownStateError, match=told + r"Light.OFF, Light.ON, Light.BROKEN"):
        ask(street)


class Houses(World[Lamp | Plug | Stranger]):
    """A world that names a kind of which there is nobody."""


def test_states_are_those_of_their_kinds() -> None:
    """Of two kinds with one text, each is counted apart; of nobody there is a share of 0.0."""
    world = Run(Houses(), [Lamp(), Lamp(), Plug()]).world
    assert [world.count(Light.OFF), world.count(Switch.OFF), world.share(Light.OFF)] == [2, 1, 1]
    assert world.share(Shift.AT_WORK) == world.count(Shift.DESK) == 0
    assert not world.agents.where(state=(Shift.AT_WORK, Shift.DESK))
    with pytest.raises(UnknownStateError, match=r"Light.BROKEN, .*Shift.AT_WORK"):
        world.share(Shift.ABROAD)
    for kind, state in ((Lamp, Switch.OFF), (Lamp, "off"), (Stranger, Shift.AT_WORK)):
        with pytest.raises(DefinitionError, match=f"of {kind.__name__} has no "):
            kind().begin_in(state)


def test_those_are_chosen_to_whom_all_applies(street: Street) -> None:
    """State, kind and function choose together, in the order of the population."""
    everybody = street.agents
    assert places(everybody) == list(range(12))
    assert places(everybody.where(state=Light.ON)) == [0, 3, 6, 9]
    assert places(everybody.where(state=(Light.BROKEN, Light.ON))) == [0, 3, 6, 9]
    assert places(everybody.of(Lantern)) == [1, 3, 5, 7, 9, 11]
    assert places(everybody.of(Lamp)) == list(range(12))
    assert places(everybody.where(lambda lamp: lamp.pressed > 5, state=Light.ON)) == [6, 9]
    assert places(everybody.of(Lantern).where(state=Light.ON)) == [3, 9]
    assert not everybody.where(state=Light.BROKEN)


class Drawing(World[Lamp]):
    """A together world, in which no step may draw by the world's own stream."""

    together = True

    @during(Light.OFF)
    def draw(self, lamp: Lamp) -> None:
        lamp.heard += self.agents.sample(2), self.agents[2:].shuffled()


def test_draws_do_not_depend_on_the_list() -> None:
    """Of some agents the same are drawn, whatever their order; in a step, by its agent's stream."""
    names, samples, heard = [f"lamp_{number}" for number in range(9)], [], []
    for order in (names, names[::-1]):
        run = Run(Drawing(), [Lamp(agent_id=name) for name in order], rounds=1, seed=1)
        some = run.world.agents.where(lambda lamp: lamp.agent_id > "lamp_2")
        samples.append([lamp.agent_id for lamp in some.sample(4)])
        run.run()
        by_id = {lamp.agent_id: [each.agent_id for each in lamp.heard[0]] for lamp in run.agents}
        heard.append(by_id)
    assert samples[0] == samples[1]
    assert heard[0] == heard[1]
    assert len({*map(tuple, heard[0].values())}) > 4


def test_a_mean_does_not_depend_on_the_order() -> None:
    """It is rounded once; that of nobody is an error."""
    agents = AgentSet(Lamp(pressed=number) for number in range(5))
    for values in ([1e16, 1.0, -1e16], [1.0, 1e16, -1e16]):
        some = AgentSet(Lamp(heard=[value]) for value in values)
        assert some.mean(lambda lamp: lamp.heard[0]) == 1 / 3
    assert agents.mean("pressed") == mean(range(5))
    with pytest.raises(SimulationError, match="no agents, so no mean of 'pressed'"):
        agents[5:].mean("pressed")


SLICES: dict[str, Callable[[AgentSet[Lamp]], AgentSet[Lamp]]] = {
    "the first": lambda agents: agents[:7],
    "the last": lambda agents: agents[-5:],
    "every second": lambda agents: agents[1:10:2],
    "backwards": lambda agents: agents[8:2:-1],
    "all": lambda agents: agents[:],
    "none": lambda agents: agents[12:],
    "some of some": lambda agents: agents[2:][:5],
    "both ends": lambda agents: agents[:3] + agents[-3:],
}


@pytest.mark.parametrize("cut", SLICES.values(), ids=SLICES)
@pytest.mark.parametrize(
    "chosen",
    [
        lambda street: street.agents,
        lambda street: street.agents.of(Lantern),
        lambda street: street.agents.where(state=Light.OFF),
        lambda street: street.agents.shuffled(),
        lambda street: street.agents.sample(9),
        lambda street: street.agents[0].neighbours,
    ],
)
def test_a_slice_of_a_set_is_a_set(
    street: Street,
    chosen: Callable[[Street], AgentSet[Lamp]],
    cut: Callable[[AgentSet[Lamp]], AgentSet[Lamp]],
) -> None:
    """Its agents are counted by their states, as those of the whole set are."""
    agents = chosen(street)
    some, expected = cut(agents), cut(list(agents))  # type: ignore[arg-type]
    assert type(some) is AgentSet
    assert list(some) == expected
    assert some.count(Light.ON) == sum(lamp.state is Light.ON for lamp in expected)
    assert places(some.where(state=Light.OFF)) == [
        lamp.pressed for lamp in expected if lamp.state is Light.OFF
    ]


def test_a_set_is_what_it_was(street: Street) -> None:
    """A set does not follow agents that change, and copies of it are sets."""
    lit = street.agents.where(state=Light.ON)
    lit[0].begin_in(Light.OFF)
    assert len(lit) == 4
    assert street.agents.count(Light.ON) == 3
    assert type(copy(lit)) is AgentSet
    assert repr(lit).startswith("<4 agents: <Lamp lamp_1 in off>, ")
    assert repr(AgentSet()) == "<0 agents>"
