"""Who is in a run: kinds of agents, their ids and states, and who comes and goes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, count
from operator import attrgetter
from typing import Any

from prism.errors import AgentError, FieldValueError, SimulationError
from prism.randomness import RandomStream
from prism.randomness.stream import keys_of
from prism.statechart import Definition
from prism.statechart.states import state_text
from prism.worlds._agent import Agent
from prism.worlds._agent_set import AgentSet, leaves_in, unknown_state
from prism.worlds.guests import Guest, lend
from prism.worlds.kinds import Kind, check_classes, definitions_of, make_kind
from prism.worlds.world import kinds_of

_KEY = attrgetter("_key", "agent_id")


class Population:
    """The agents of a run.

    Args:
        turns: Gives turns to them; it has the run's world, seed, logger and clocks.

    Attributes:
        kinds: The kinds of agents that there are.
        definitions: The charts of all kinds, of the population and of the world's class.
        is_flat: Whether no chart is nested.
        triggers: The events that some chart has.
    """

    def __init__(self, turns: Any) -> None:
        self._turns, self._world = turns, turns.world
        self.kinds: dict[type, Kind] = {}
        self._everybody: dict[Agent, None] = {}
        self._set: AgentSet[Any] | None = None
        self._canonical: list[Agent] | None = None
        self._ids: set[str] = set()
        self._numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(1))
        self._keys_of = partial(keys_of, 3, turns.seed, "agent")

    # Joining and leaving

    def populate(self, agents: Iterable[Any]) -> None:
        """Take in the first agents, before `World.setup`.

        Raises:
            AgentError: If one of them is not an agent, or is already in a run.
            FieldValueError: If there are no agents, or two have the same id.
            DefinitionError: If the class of the world or of an agent cannot work.
        """
        if not isinstance(agents, Iterable):
            where = f"{type(self._world).__name__}.populate"
            raise AgentError(f"{where} must return the agents, got {agents!r}")
        population = [each if isinstance(each, Agent) else Guest(object=each) for each in agents]
        if not population:
            raise FieldValueError("a run needs agents, got none")
        check_classes(type(self._world), [*dict.fromkeys(map(type, population))])
        for agent in population:
            self.prepare(agent, "")
            self.take_in(agent)

    def prepare(self, agent: Agent, before: str) -> None:
        """Give an agent its id, place, streams, state and fields."""
        self._name(agent, before)
        if (cls := type(agent)) not in self.kinds:
            if self.kinds:
                check_classes(type(self._world), [cls])
            self.kinds[cls] = make_kind(cls, self._turns)
            self._describe()
        agent._join(self._world, self.kinds[cls], self._keys_of(agent.agent_id))
        arguments = {**agent._arguments, "agent_id": agent.agent_id, "name": agent.name}
        turns, seed = self._turns, self._turns.seed
        agent._fill(arguments, lambda name: RandomStream(seed, "field", agent.agent_id, name))
        if isinstance(agent, Guest):
            lend(agent, turns.events.logger, turns.count_transition, seed)

    def _name(self, agent: Agent, before: str) -> None:
        """Give an agent its id, made of its parent's, or of its kind and number."""
        kind = type(agent)
        if agent.world is not None:
            raise AgentError(f"{agent!r} has joined a run already: make another one")
        if not agent.agent_id:
            object_id = "" if before else getattr(getattr(agent, "object", None), "agent_id", "")
            agent.agent_id = object_id or self._numbered(before or f"{kind.__name__.lower()}_")
        agent.name = agent.name or agent.agent_id
        if agent.agent_id in self._ids:
            raise FieldValueError(f"two agents have the id {agent.agent_id!r}: ids must be unique")
        self._ids.add(agent.agent_id)

    def _numbered(self, start: str) -> str:
        """Return the next id with a beginning that no agent has."""
        names = (f"{start}{number}" for number in self._numbers[start])
        return next(name for name in names if name not in self._ids)

    def _describe(self) -> None:
        kinds = [*self.kinds, *kinds_of(type(self._world))]
        self.definitions: list[Definition[Any]] = definitions_of(kinds)
        self.is_flat: bool = not any(chart.is_nested for chart in self.definitions)
        triggers = (chart.hierarchy.triggers for chart in self.definitions)
        self.triggers: dict[str, Any] = dict.fromkeys(chain.from_iterable(triggers))

    def begin(self, agents: Iterable[Agent]) -> None:
        """Forget the kinds of which nobody is left after `World.setup`."""
        self.kinds = {cls: self.kinds[cls] for cls in dict.fromkeys(map(type, agents))}
        self._describe()

    def take_in(
        self, agent: Agent, places: Iterable[Any] = (), neighbours: Iterable[Agent] = ()
    ) -> None:
        """Let an agent that is prepared be there, also at places in spaces, and in the network."""
        # first, since there may be no room
        for space, place in places:
            space.bring(agent, place)
        self._everybody[agent] = None
        self._set = None
        if neighbours or self._world._network is not None:
            self._world.network.join(agent, neighbours)

    def remove(self, agent: Agent) -> None:
        """Remove an agent that leaves, also from spaces and the network."""
        vars(agent)["has_left"] = True
        self._everybody.pop(agent, None)
        self._set = None
        for space in agent._spaces:
            space.remove(agent)
        if self._world._network is not None:
            self._world._network.leave(agent)

    # Who there is

    def everybody(self) -> AgentSet[Any]:
        """Return all agents that are there."""
        if self._set is None:
            self._set, self._canonical = AgentSet(self._everybody), None
        return self._set

    def reorder(self, agents: Sequence[Agent]) -> None:
        """List the agents in another order, before the first round."""
        self._everybody, self._set = dict.fromkeys(agents), None

    def canonical(self, agents: Sequence[Any]) -> Sequence[Any]:
        """Return agents in an order that does not depend on the list of agents."""
        if agents is not self._set:
            return sorted(agents, key=_KEY)
        if self._canonical is None:
            self._canonical = sorted(agents, key=_KEY)
        return self._canonical

    def numbers_in(self, state: Any) -> tuple[int, int]:
        """Return how many agents are in a state, and how many have a chart that contains it.

        Raises:
            UnknownStateError: If no agent's chart has it.
        """
        inside = able = 0
        for kind in self.kinds.values():
            leaves = kind.chart.definition.leaves_of(state)
            for each, number in self._counts_of(kind).items() if leaves else ():
                able += number
                inside += number * any(leaf in leaves for leaf in leaves_in(each))
        if not able and not any(chart.leaves_of(state) for chart in self.definitions):
            raise unknown_state(state, self.definitions)
        return inside, able

    def _counts_of(self, kind: Kind) -> Mapping[Any, int]:
        if not issubclass(kind.cls, Guest):
            return kind.counts
        return Counter(agent.state for agent in self._everybody if type(agent) is kind.cls)

    def require_counted(self) -> None:
        """Refuse states that were assigned: nothing counts or times them out.

        This looks at every agent, which costs more than a round of idle ones.
        """
        for kind in self.kinds.values():
            counts = self._counts_of(kind)
            actual = Counter(each.state for each in self._everybody if type(each) is kind.cls)
            for state, number in actual.items():
                if counts.get(state) != number:
                    brought = f"where events have brought {counts.get(state, 0)}"
                    cure = "change states by fire, or by begin_in before the run"
                    raise SimulationError(f"{number} agents are in {state!r}, {brought}: {cure}")

    def states(self) -> dict[str, int]:
        """Return the number of agents in each state, by its text."""
        numbers: dict[str, int] = {}
        for definition in self.definitions:
            if not definition.hierarchy.has_regions:
                numbers.update({state_text(each): 0 for each in definition.states})
        counts = [each for kind in self.kinds.values() for each in self._counts_of(kind).items()]
        for state, number in sorted(counts, key=lambda each: state_text(each[0])):
            if number:
                text = state_text(state)
                numbers[text] = numbers.get(text, 0) + number
        return numbers
