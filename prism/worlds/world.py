"""Worlds: what agents share, what they do in each state, and what is measured and treated."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from inspect import get_annotations
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args, get_origin

from prism.errors import AgentError, DefinitionError, FieldTypeError, SimulationError
from prism.files.records import digest
from prism.randomness import RandomStream
from prism.statechart import Definition
from prism.worlds._agent import Agent
from prism.worlds._agent_set import AgentSet
from prism.worlds._networks import Network
from prism.worlds.arguments import read_parameters
from prism.worlds.fields import Declares

AgentT = TypeVar("AgentT", bound=Agent)
NewT = TypeVar("NewT", bound=Agent)

_PLAIN = (int, float, str, tuple, Enum, type(None))


class World(Declares, Generic[AgentT]):
    """A simulated world: agents of one or several kinds, what they share, and how they act.

    A class declares parameters as plain fields (``friends: int = 6``), and values that change with
    `state`. Methods marked with `during` are the steps of agents in a state, methods marked with
    `measure` are measured at the end of every round, and methods marked with `treatment` change
    parameters during a run.

    Args:
        parameters: Parameters by name. All others have their defaults.

    Attributes:
        rounds: The default number of rounds.
        ticks: The default number of ticks in a round.
        together: Whether events, messages and decisions take effect at the end of the tick; not
            where steps have rates.
        independent: Whether agents change only themselves, so that none waits for another's model;
            see `depends`.
        meanings: Descriptions of the states, which a model reads.
        fallback: The state to take if a model gives no valid answer; by default the agent's own.
        input_files: Names of parameters that are files, whose digests ``run.json`` keeps.
        settled: Names of parameters that are only read at the start, so no treatment changes them.
        agents: All current agents, in the order in which they joined.
        round: The round, counted from 1; 0 in `setup`.
        seed: The run's seed, for generators of other libraries: ``seed=self.seed``.

    Raises:
        TypeError: If a parameter is unknown or missing.
        FieldTypeError: If a parameter has the wrong type.
        FieldValueError: If a parameter is out of range.
    """

    rounds: ClassVar[int] = 10
    ticks: ClassVar[int] = 1
    together: ClassVar[bool] = False
    independent: ClassVar[bool] = False
    meanings: ClassVar[Mapping[Any, str]] = {}

    fallback: ClassVar[Any] = None
    input_files: ClassVar[Sequence[str]] = ()
    settled: ClassVar[Sequence[str]] = ()

    round: ClassVar[int] = 0
    seed: ClassVar[int] = 0
    _run_turns: ClassVar[Any] = None
    _network: ClassVar[Network[Any] | None] = None
    _source: ClassVar[str | None] = None
    _stream: ClassVar[RandomStream] = RandomStream(0, "world", "setup", 0)

    def __init__(self, **parameters: Any) -> None:
        """Set parameters and state."""
        self._fill(read_parameters(type(self), parameters), None)

    def __init_subclass__(cls, **options: Any) -> None:
        """Take the fields of the class, and refuse those without a type."""
        super().__init_subclass__(**options)
        cls._source = source_digest(cls)
        for name, value in vars(cls).items():
            is_constant = name.startswith("_") or name.isupper() or not isinstance(value, _PLAIN)
            is_declared = name in get_annotations(cls) or hasattr(super(cls, cls), name)
            if not (is_constant or is_declared or name in cls.fields):
                cure = f"{name}: {type(value).__name__} = {value!r},  which makes it a parameter"
                raise DefinitionError(f"{cls.__name__}.{name} has no type: write  {cure}")

    # What the world is

    @property
    def agents(self) -> AgentSet[AgentT]:
        """All current agents, in the order in which they joined."""
        return cast("AgentSet[AgentT]", self._running("agents").population.everybody())

    @property
    def charts(self) -> Sequence[Definition[Any]]:
        """The charts of all kinds of agents, of the class and of the population."""
        return cast("Sequence[Definition[Any]]", self._running("charts").population.definitions)

    @property
    def tick_number(self) -> int:
        """The tick of the round, counted from 1; 0 outside of ticks."""
        return int(self._running("tick_number").moment.tick)

    @property
    def time(self) -> float:
        """The time since the beginning, in rounds; that of the event, if events happen at rates."""
        return float(self._running("time").time())

    @property
    def random(self) -> RandomStream:
        """The random numbers of the world itself in this round. Each agent has its own."""
        if self.together and self._running("random").acting is not None:
            problem = "is a together world, where no order matters: draw from agent.random in steps"
            raise SimulationError(f"{type(self).__name__} {problem}")
        return self._stream

    @property
    def network(self) -> Network[AgentT]:
        """The network of the agents. Set it in `setup`.

        Raises:
            SimulationError: If none has been set.
        """
        if self._network is None:
            cure = "set one in setup, such as  self.network = small_world(self, 6, 0.1)"
            raise SimulationError(f"{type(self).__name__} has no network: {cure}")
        return self._network

    @network.setter
    def network(self, network: Network[AgentT]) -> None:
        if not isinstance(network, Network):
            problem = f"must be a Network, got {network!r}: write  self.network = from_edges(...)"
            raise FieldTypeError(f"{type(self).__name__}.network {problem}")
        vars(self)["_network"] = network
        network.wire()

    @property
    def acting(self) -> AgentT:
        """The agent whose turn it is; None outside of turns."""
        return cast("AgentT", self._running("acting").acting)

    def count(self, state: Enum) -> int:
        """Return the number of agents in a state: ``len(world.agents.where(state=state))``.

        Raises:
            UnknownStateError: If no agent's chart has it.
        """
        inside, _ = self._running("count").population.numbers_in(state)
        return int(inside)

    def share(self, state: Enum) -> float:
        """Return the share of agents in a state, among those whose chart contains it.

        Raises:
            UnknownStateError: If no agent's chart has it.
        """
        inside, able = self._running("share").population.numbers_in(state)
        return float(inside / able) if able else 0.0

    # What steps and hooks do

    def add(
        self, agent: NewT, at: Agent | None = None, *, neighbours: Iterable[Agent] = ()
    ) -> NewT:
        """Let a newcomer join the run. It acts from the next tick on.

        Its id is made of its parent's, so it does not depend on the order of turns, and neither do
        its random numbers. In a ``together`` world it joins at the end of the tick.

        Args:
            agent: The newcomer.
            at: Its parent, beside which it begins in all spaces; by default the agent whose turn it
                is, if any, but in no space.
            neighbours: Agents to which the network connects it.

        Raises:
            AgentError: If it is no agent, or has joined a run.
        """
        if not isinstance(agent, Agent):
            # its class, above all, whose attributes would change
            raise AgentError(f"add must get an agent, got {agent!r}")
        self._running("add").add(agent, at, tuple(neighbours))
        return agent

    def log(self, event: str, **keys: Any) -> None:
        """Log an event of your own, as ``world.<event>``.

        Args:
            event: Its name.
            keys: Its data. Agents are written by their ids, and ``agent`` as ``agent_id``.
        """
        self._running("log").events.log(event, keys)

    def stop(self, reason: str = "stopped") -> None:
        """End the run after this tick, or after this event if events happen at rates.

        The round is measured and ends like any other. The log and the results say when the run
        stopped.

        Args:
            reason: Why, for log and results.

        Raises:
            SimulationError: If a step of an independent world calls it.
        """
        self._running("stop").stop(reason)

    def assign(
        self,
        arm: str,
        share: float,
        agents: Iterable[AgentT] | None = None,
        *,
        experiment: str | None = None,
    ) -> list[AgentT]:
        """Return a share of the agents, sorted by id. The log records who is in which arm.

        The draw is keyed by (seed, experiment, agent): it is the same whenever it is made, and
        shifts no other draw. Arms of one experiment have no agent in common.

        Args:
            arm: Name of the treatment.
            share: The share of the candidates, from 0 to 1.
            agents: The candidates. Defaults to all agents.
            experiment: Name of the experiment. Defaults to that of the arm.

        Raises:
            FieldValueError: If the shares of an experiment exceed 1.
        """
        assignments = self._running("assign").assignments
        candidates = self.agents if agents is None else agents
        # sorted, so that neither the log nor a treatment depends on the order of agents
        by_id = {agent.agent_id: agent for agent in sorted(candidates, key=attrgetter("agent_id"))}
        chosen = assignments.assign("agent_id", by_id, experiment or arm, arm, share)
        return [by_id[agent_id] for agent_id in chosen]

    async def activate(self, agents: AgentT | Iterable[AgentT] | None = None) -> None:
        """Give turns to agents, and wait until all their steps have ended; for `tick`.

        Args:
            agents: Those that have a turn, in this order; a repeated agent has several. By default,
                all that have something to do, in the world's order.
        """
        chosen = [agents] if isinstance(agents, Agent) else agents
        await self._running("activate").give(None if chosen is None else [*chosen])

    # Hooks

    def populate(self, agents: int) -> Iterable[AgentT]:
        """Make the population. By default, this makes agents of the world's only kind.

        Args:
            agents: The number of agents in the run.
        """
        kinds: Sequence[Any] = kinds_of(type(self))
        if len(kinds) != 1:
            name, names = type(self).__name__, " | ".join(kind.__name__ for kind in kinds)
            cure = f"define populate(self, agents), or write  class {name}(World[Kind])"
            raise DefinitionError(f"{name} is a world of {names or 'no kind'}: {cure}")

        return [kinds[0]() for _ in range(agents)]

    def members(self, agents: int | Path | Iterable[Any]) -> Iterable[Any]:
        """Return the agents of a run: as many as `populate` makes, those of a table, or these."""
        if isinstance(agents, Path):
            from prism.worlds._people import agents_in

            return agents_in(agents, self, kinds_of(type(self)))
        return self.populate(agents) if isinstance(agents, int) else agents

    def setup(self) -> None:
        """Prepare the world before the first round."""

    async def tick(self) -> None:
        """Run one tick. By default, every agent that has something to do has a turn.

        Override it to activate others: ``await self.activate(self.agents.sample(1))``.
        """
        await self.activate()

    def round_begins(self) -> None:
        """Do what is due at the beginning of a round."""

    def tick_begins(self) -> None:
        """Do what is due before the agents' steps."""

    def tick_ends(self) -> None:
        """Do what is due after the agents' steps."""

    async def close_round(self) -> None:
        """Let agents act once more when a round has been measured, before `round_ends`."""

    def round_ends(self) -> None:
        """Do what is due at the end of a round, after it has been measured."""

    def until(self) -> bool:
        """Return whether the run should end. Called after every tick, and event at a rate."""
        return False

    def depends(self, agent: AgentT) -> Iterable[AgentT]:  # noqa: ARG002
        """Return whose earlier turns an agent's turn must see, in an independent world."""
        return ()

    def _running(self, doing: str) -> Any:
        """Return what gives turns to the agents of the run."""
        if self._run_turns is None:
            name = type(self).__name__
            raise SimulationError(f"{name}.{doing} needs a run: Run({name}, 100)")
        return self._run_turns


def kinds_of(cls: type) -> tuple[type[Agent], ...]:
    """Return the kinds of agents that a world's class names: ``World[Buyer | Seller]``."""
    written = (each for base in cls.__mro__ for each in vars(base).get("__orig_bases__", ()))
    return next((kinds for each in written if (kinds := _kinds_in(each))), ())


def _kinds_in(written: Any) -> tuple[type[Agent], ...]:
    origin = get_origin(written)
    if not (isinstance(origin, type) and issubclass(origin, World)):
        return ()

    named = [each for argument in get_args(written) for each in (get_args(argument) or (argument,))]
    # Any is also a class
    return tuple(each for each in named if isinstance(each, type) and each is not Any)


def defines(cls: type[World[Any]], hook: str) -> bool:
    """Return whether a world's class overrides a hook."""
    return getattr(cls, hook) is not getattr(World, hook)


def source_digest(cls: type[Any]) -> str | None:
    """Return a digest of the file that defines a class, as it is now; None if there is none."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return digest(Path(file)) if file and Path(file).exists() else None
