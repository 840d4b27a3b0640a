"""Worlds made at random: kinds, charts, messages, decisions, a treatment, every activation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any

from prism.statechart import Configuration, History, State, Statechart, Transition
from prism.worlds import Agent, World, during, from_edges, measure, state, treatment, uniform

WAYS = ("all", "all", "together", "independent", "one", "rate")
ROUNDS, TICKS = 4, 2

_LONGEST = len("agent1.1.1")
"""The id of a grandchild, which has no children."""

_OWN = ("fires", "decides", "counts", "notes")
_OTHERS = ("fires at", "asks", "sends", "receives", "adds", "links", "shares", "bears", "goes")


@dataclass(frozen=True)
class RandomWorld:
    """A world and who takes part.

    Args:
        way: How agents get their turns.
        world: Makes the world.
        agents: Makes the agents, in an order.
    """

    way: str
    world: Callable[[], World[Any]]
    agents: Callable[[Sequence[int]], list[Agent]]
    number: int


def random_world(seed: int, way: str | None = None) -> RandomWorld:
    """Return a world for a seed; what it does in each state is drawn, too."""
    draw = Random(seed)
    way = way or draw.choice(WAYS)
    names = [f"s{number}" for number in range(draw.randint(2, 4))]
    every: Any = StrEnum("States", [*names, "outside", "box", "left", "right", "t0", "t1"])  # type: ignore[misc]
    states = [every(name) for name in names]
    kinds = [_kind(draw, states, "one"), draw.choice([_kind, _nested_kind])(draw, states, "two")]
    number = draw.randint(5, 9)
    of_kind = [draw.randrange(2) for _ in range(number)]
    edges = [(a, b) for a in range(number) for b in range(a) if draw.random() < 0.4]
    acts = [*_OWN, *(_OTHERS if way != "independent" else ())]
    if way == "together":
        acts = [each for each in acts if each not in ("adds", "links", "shares")]
    plans = {each: draw.choices(acts, k=draw.randint(1, 4)) for each in states}
    world = _world(draw, way, states, plans, edges)

    def agents(order: Sequence[int]) -> list[Agent]:
        return [kinds[of_kind[each]](agent_id=f"agent{each}") for each in order]

    return RandomWorld(way, world, agents, number)


@dataclass
class Note:
    """What two agents share."""

    text: str


class Acting(Agent):
    """An agent with fields, from which those of every chart derive."""

    level: float = uniform(0, 1)
    met: int = state(0)
    notes: list[str] = state(list)
    holds: Note | None = state(None)


def _kind(draw: Random, states: Any, name: str) -> type[Agent]:
    listed = list(states)
    transitions = [
        Transition(trigger, source, draw.choice(listed))
        for source in listed
        for trigger in ("a", "b", "a")
        if draw.random() < 0.8
    ]
    limited = draw.choice(listed)
    transitions += [Transition("timeout", limited, draw.choice(listed))]
    transitions += [Transition(each, listed[0], listed[1]) for each in "ab"]

    class Kind(Acting):
        chart = Statechart(
            states,
            transitions,
            listed[0],
            name=name,
            decision_states=draw.sample(listed, 2),
            timeouts={limited: draw.randint(1, 3)},
        )

    Kind.__name__ = name
    return Kind


def _nested_kind(draw: Random, states: Any, name: str) -> type[Agent]:
    """Return a kind with two regions: the states that others have, and two with timers."""
    every, listed = type(states[0]), list(states)
    inner, others = State(every.left, listed), State(every.right, [every.t0, every.t1])
    transitions = [
        Transition(trigger, source, draw.choice(listed))
        for source in listed
        for trigger in ("a", "b", "a")
    ]
    transitions += [
        Transition("turns", every.t0, every.t1, rate=draw.choice([0.4, lambda who, _: who.level])),
        Transition("turns", every.t1, every.t0, after=draw.randint(1, 3)),
        Transition(None, every.t1, every.t0, lambda who, _: who.met % 3 == 1),
        Transition("out", every.box, every.outside, after=draw.randint(2, 4)),
        Transition("out", every.left, every.outside, rate=0.1),
        Transition("in", every.outside, History(every.box, deep=True), after=1),
        Transition("timeout", every.left, listed[0]),
    ]

    class Kind(Acting):
        chart = Statechart(
            [State(every.box, [inner, others], parallel=True, entry=_enter), every.outside],
            transitions,
            every.box,
            name=name,
            decision_states=draw.sample(listed, 2),
            timeouts={every.left: draw.randint(1, 3)},
        )

    Kind.__name__ = name
    return Kind


def _enter(agent: Any, _context: Any) -> None:
    agent.met += 1


def _first_leaf(agent: Any) -> Any:
    found = agent.state
    return found.leaves[0] if isinstance(found, Configuration) else found


def _world(  # noqa: C901 - one class with all its methods
    draw: Random, way: str, states: Any, plans: Any, edges: list[tuple[int, int]]
) -> type[World[Any]]:
    rate = draw.choice([1.5, "loud", lambda _world, agent: agent.level])

    class Made(World[Any]):
        rounds = ROUNDS
        ticks = TICKS
        together = way == "together"
        independent = way == "independent"
        loud: float = 0.7
        total: int = state(0)

        def setup(self) -> None:
            by_id = {each.agent_id: place for place, each in enumerate(self.agents)}
            ends = [(by_id[f"agent{a}"], by_id[f"agent{b}"]) for a, b in edges]
            self.network = from_edges(self, ends)

        @treatment
        def louder(self) -> None:
            self.loud = 2.5

        @measure
        def sum_of_met(self) -> int:
            return sum(each.met for each in self.agents)

        async def acts(self, agent: Any, other: Any) -> None:
            for what in plans[_first_leaf(agent)] if way != "independent" else plans[states[0]]:
                await self.act(what, agent, other)

        async def act(self, what: str, agent: Any, other: Any) -> None:
            if what == "fires":
                agent.fire(agent.random.choice("ab"), {"by": agent.agent_id})
            elif what == "decides":
                chosen = await self.choose(agent, "a", {"n": agent.met})
                agent.notes = [*agent.notes[-3:], str(chosen)]
            elif what == "counts":
                agent.met += agent.ticks_in_state + 1
            elif what == "notes":
                agent.notes = [*agent.notes[-3:], f"{agent.random.random():.6f}"]
            elif what == "bears" and len(agent.agent_id) < _LONGEST:
                self.add(type(agent)(), agent, neighbours=agent.neighbours)
            elif what == "goes":
                if agent.random.chance(0.1):
                    agent.leave()
            elif what == "receives":
                message = await agent.receive()
                agent.met += message is not None
            elif other is not None:
                await self.act_on(what, agent, other)

        async def choose(self, agent: Any, trigger: str, context: Any) -> Any:
            leaf, chart = _first_leaf(agent), agent.chart.definition
            if leaf not in chart.decision_states:
                return agent.fire(trigger, context)
            moves = [each for each in chart.transitions if each.trigger == trigger]
            targets = [each.target for each in moves if each.source == leaf]
            weights = {each: 0.5 + states.index(each) for each in targets}
            # with regions, weights would name whole configurations
            is_flat = agent.state is leaf and weights
            return await agent.decide(trigger, context, weights=weights if is_flat else None)

        async def act_on(self, what: str, agent: Any, other: Any) -> None:
            if what == "fires at":
                other.fire("b", agent)
            elif what == "asks":
                await self.choose(other, "b", agent)
            elif what == "sends":
                agent.send(other, agent.met)
            elif what == "adds":
                self.total += 1
                other.met += self.total
            elif what == "links" and other is not agent:
                known = other in agent.neighbours
                (self.network.disconnect if known else self.network.connect)(agent, other)
            elif what == "shares":
                agent.holds = other.holds = other.holds or Note("")
                agent.holds.text = f"{agent.agent_id}{agent.holds.text}"[:20]

    def chosen(agent: Any) -> Any:
        return agent.random.choice(agent.neighbours) if agent.neighbours else None

    @during(*states, **({"rate": rate} if way == "rate" else {}))
    async def meet(self: Any, agent: Any) -> None:
        await self.acts(agent, None if way == "independent" else chosen(agent))

    async def tick(self: Any) -> None:
        await self.activate(self.agents.sample(2))

    own = {"tick": tick} if way == "one" else {}
    return type("Made", (Made,), {"meet": meet, "__module__": __name__, **own})
