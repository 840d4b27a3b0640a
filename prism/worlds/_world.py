"""Worlds: what agents share, what they do in each state, and what is measured and treated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from enum import Enum
from inspect import isfunction
from pathlib import Path
from reprlib import repr as brief
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    cast,
    get_args,
    get_origin,
    overload,
)

from prism.errors import AgentError, DefinitionError, FieldTypeError, InputError, SimulationError
from prism.randomness import RandomStream
from prism.statechart import Statechart
from prism.worlds._agent import Agent
from prism.worlds._agent_set import AgentSet
from prism.worlds._fields import (
    Declared,
    Fields,
    check_value,
    hints_of,
    missing_attribute,
    refuse_shared,
    words_of_type,
)
from prism.worlds._host import RunHost
from prism.worlds._networks import Network
from prism.worlds._parameters import unknown_parameter
from prism.worlds._phase import Phase
from prism.worlds._results import WorldResults, WorldRound

if TYPE_CHECKING:
    from prism.drawing import Diagram

AgentT = TypeVar("AgentT", bound=Agent)
MethodT = TypeVar("MethodT", bound=Callable[..., Any])
MeasuredT = TypeVar("MeasuredT")

DEFAULT_AGENTS = 100
DEFAULT_ROUNDS = 10

ORDERS = ("random", "listed")
ACTIVATIONS = ("all", "one", "pair", "rate")

STEP = "_prism_step"
RATE = "_prism_rate"
MEASURE = "_prism_measure"
TREATMENT = "_prism_treatment"
PICTURE = "_prism_picture"


class _Parts:
    """The slots of a world that its class does not declare."""

    __slots__ = ("_everybody", "_host", "_network")

    if TYPE_CHECKING:
        _host: RunHost | None
        _network: Network[Any] | None


class World(_Parts, Generic[AgentT], metaclass=Fields):
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
        order: The order of turns: ``"random"``, keyed by seed, tick and id in every tick, or
            ``"listed"``, that of the population.
        activation: Who has a turn in a tick: ``"all"`` agents; ``"one"``, drawn at random; a
            ``"pair"``, whose first acts on the second, ``step(self, one, other)``; or those to whom
            events happen at a ``"rate"``, in continuous time whose unit is a round.
        together: Whether all agents act on the situation at the beginning of the tick.
        overlap: Whether agents continue while others wait for an answer. Their steps may not look
            at other agents. If ``"alone"``, they may not change the world either, so only those
            that wait are held up.
        meanings: Descriptions of the states, which a model reads.
        treatment_classes: Ready-made treatments of this world, besides those of every world.
            ``run.json`` names them by their kinds.
        network: The network of the agents. Set it in `setup`.

    Raises:
        TypeError: If a parameter is unknown or missing.
        FieldTypeError: If a parameter has the wrong type.
        FieldValueError: If a parameter is out of range.
    """

    __slots__ = ()

    rounds: ClassVar[int] = DEFAULT_ROUNDS
    ticks: ClassVar[int] = 1
    order: ClassVar[Literal["random", "listed"]] = "random"
    activation: ClassVar[Literal["all", "one", "pair", "rate"]] = "all"
    together: ClassVar[bool] = False
    overlap: ClassVar[bool | Literal["alone"]] = False
    meanings: ClassVar[Mapping[Any, str]] = {}
    treatment_classes: ClassVar[Sequence[type]] = ()
    # the class that reads a file of agents; None for an `AgentTable`
    _prism_table: ClassVar[Callable[[Any, Any], Any] | None] = None
    # arguments that are not parameters
    _prism_arguments: ClassVar[tuple[str, ...]] = ()
    # a world with one agent of another class, whose steps take time and may use any random numbers
    _prism_is_alone: ClassVar[bool] = False

    def __init__(self, **parameters: Any) -> None:
        """Set parameters and state."""
        cls = type(self)
        own = {name: parameters.pop(name) for name in cls._prism_arguments if name in parameters}
        parameters = {**self._prism_take(own), **parameters}
        for name in parameters:
            if name not in cls.fields or cls.fields[name].declared.is_state:
                raise TypeError(unknown_parameter(cls, name))

        hints = hints_of(cls)
        for name, field in cls.fields.items():
            if name in parameters:
                check_value(field, hints.get(name, field.annotation), parameters[name])
                value = parameters[name]
            elif field.declared.is_required:
                raise TypeError(f"{cls.__name__} needs {name}: {cls.__name__}({name}=...)")
            elif field.declared.draw is not None:
                raise DefinitionError(
                    f"{cls.__name__}.{name} is drawn, which works only for fields of agents: "
                    "draw it in setup, with self.random"
                )
            else:
                value = field.declared.value()

            object.__setattr__(self, name, value)

        object.__setattr__(self, "_everybody", AgentSet())
        object.__setattr__(self, "_host", None)
        object.__setattr__(self, "_network", None)
        self._prism_check()

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a constructor."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            raise DefinitionError(
                f"{cls.__name__}.__init__ would run again on resuming: declare fields with their "
                "types, and do the rest in setup"
            )

    # What the world is

    @property
    def agents(self) -> AgentSet[AgentT]:
        """All agents, in the order in which they were given."""
        host = self._hosted("agents")
        agents = host.agents
        everybody: AgentSet[AgentT] = self._everybody
        if len(everybody) != len(agents):
            everybody = AgentSet(agents)
            object.__setattr__(self, "_everybody", everybody)

        return everybody

    @property
    def round(self) -> int:
        """The round, counted from 1; 0 in `setup`."""
        return self._hosted("round").round

    @property
    def tick(self) -> int:
        """The tick of the round, counted from 1; 0 outside of ticks."""
        return self._hosted("tick").tick

    @property
    def time(self) -> float:
        """The time since the beginning, in rounds; that of the event, if events happen at rates."""
        return self._hosted("time").time

    @property
    def seed(self) -> int:
        """The run's seed, for generators of other libraries in `setup`: ``seed=self.seed``."""
        return self._hosted("seed").seed

    @property
    def random(self) -> RandomStream:
        """The random stream of the world itself in this round. Each agent has its own."""
        return self._hosted("random").world_stream()

    @property
    def network(self) -> Network[AgentT]:
        """The network of the agents.

        Raises:
            SimulationError: If none has been set.
        """
        if self._network is None:
            raise SimulationError(
                f"{type(self).__name__} has no network: set one in setup, such as  "
                "self.network = small_world(self, 6, 0.1)"
            )

        return self._network

    @network.setter
    def network(self, network: Network[AgentT]) -> None:
        if not isinstance(network, Network):
            raise FieldTypeError(
                f"{type(self).__name__}.network must be a Network, got {brief(network)}: make one "
                "of a list or a graph with  self.network = from_edges(self, ...)"
            )

        object.__setattr__(self, "_network", network)
        # setup runs again on resuming, and makes its network again
        if self._host is not None and self._host.round > 0:
            network.has_changed = True

        network.wire()

    def count(self, state: Enum) -> int:
        """Return the number of agents in a state: ``len(world.agents.where(state=state))``.

        Raises:
            UnknownStateError: If no agent's chart has it.
        """
        host = self._hosted("count")
        host.require_state(state)
        return host.count(state)

    def share(self, state: Enum) -> float:
        """Return the share of agents in a state, among those whose chart contains it.

        Raises:
            UnknownStateError: If no agent's chart has it.
        """
        host = self._hosted("share")
        host.require_state(state)
        able = host.able_to_be_in(state)
        return host.count(state) / able if able else 0.0

    def log(self, event: str, **keys: Any) -> None:
        """Log an event of your own, as ``world.<event>``.

        Args:
            event: Its name.
            keys: Its data. Agents are written by their ids, and ``agent`` as ``agent_id``.
        """
        self._hosted("log").log(event, keys)

    def stop(self, reason: str = "stopped") -> None:
        """End the run after this tick, or after this event if events happen at rates.

        In a world that overlaps, it ends after this round. The round is measured and ends like any
        other. The log and the results say when the run stopped.

        Args:
            reason: Why, for log and results.

        Raises:
            SimulationError: If the run has not begun, or nothing may change now.
        """
        self._hosted("stop").stop(reason)

    def assign(
        self,
        arm: str,
        share: float,
        agents: Iterable[AgentT] | None = None,
        *,
        experiment: str | None = None,
    ) -> list[AgentT]:
        """Return a share of the agents, to treat them. The log records who is in which arm.

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
        assignments = self._hosted("assign").assignments
        by_id = {agent.agent_id: agent for agent in (self.agents if agents is None else agents)}
        name = experiment or arm
        assignments.add_arm(name, arm, share)

        return [by_id[chosen] for chosen in assignments.assign("agent_id", by_id, name, arm)]

    @property
    def acting(self) -> AgentT:
        """The agent whose turn it is, for ``act(world)`` of an object of another class.

        Raises:
            SimulationError: If no agent has its turn.
        """
        found: AgentT | None = self._hosted("acting").acting
        if found is None:
            raise SimulationError(f"{type(self).__name__}.acting: it is no agent's turn")

        return found

    # Hooks

    def populate(self, agents: int) -> Iterable[AgentT]:
        """Make the population. By default, this makes agents of the world's only kind.

        Args:
            agents: The number of agents in the run.
        """
        kinds: Sequence[Any] = kinds_of(type(self))
        if len(kinds) != 1:
            name, names = type(self).__name__, " | ".join(kind.__name__ for kind in kinds)
            problem = f"{name} is a world of {names}:"
            if not kinds:
                problem = f"{name} names no kind of agents: write  class {name}(World[...]),  or"
            raise DefinitionError(f"{problem} define populate(self, agents), which returns them")

        return [kinds[0]() for _ in range(agents)]

    def _prism_populated(self, agents: int) -> Iterable[AgentT]:
        """Return what `populate` makes.

        Raises:
            AgentError: If it makes nothing that agents can be taken from.
        """
        made: Any = self.populate(agents)
        if not isinstance(made, Iterable):
            raise AgentError(
                f"{type(self).__name__}.populate must return the agents, such as a list of them; "
                f"got {made!r}"
            )

        return cast(Iterable[AgentT], made)

    def _from_table(self, table: Any) -> Iterable[Any]:
        """Make the population of a run from an `AgentTable`."""
        made: Iterable[Any] = table.agents_of(self)
        return made

    # What a run needs to know about prism's own worlds

    def _prism_take(
        self,
        own: Mapping[str, Any],  # noqa: ARG002 - there are none here
    ) -> Mapping[str, Any]:
        """Store arguments that are not parameters, and return the parameters that they set."""
        return {}

    def _prism_check(self) -> None:
        """Refuse parameters that do not fit together."""

    def _prism_told(self) -> dict[str, Any]:
        """Return these arguments, except those with default values."""
        return {}

    def _prism_files(self) -> dict[str, Any]:
        """Return the files that a run reads besides the code, by name."""
        return {}

    def _prism_fallback(self) -> tuple[Any, str | None]:
        """Return the state to take when a model gives no valid answer, and the chart's name."""
        return None, None

    def _prism_comes_to(self) -> WorldResults:
        """Tell type checkers the type of a run's results."""
        raise NotImplementedError

    @classmethod
    def _prism_check_prompt(cls, prompt: str) -> None:  # noqa: ARG003
        """Refuse a template of a writer's prompt."""
        problem = "has a prompt, which is for the feed: in a world, agents pass their own prompts"
        raise InputError(problem, field="writer")

    def setup(self) -> None:
        """Prepare the world before the first round. It runs again on resuming."""

    def round_begins(self) -> None:
        """Do what is due at the beginning of a round."""

    def tick_begins(self) -> None:
        """Do what is due before the agents' steps."""

    def tick_ends(self) -> None:
        """Do what is due after the agents' steps."""

    def round_ends(self) -> None:
        """Do what is due at the end of a round, after it has been measured."""

    def until(self) -> bool:
        """Return whether the run should end. Called after every tick, and every event at a rate.

        In a world that overlaps, it is called after every round.
        """
        return False

    # For worlds whose agents represent objects. These are not hooks, which such a world may define

    def _prism_begin(self, setting: Any, host: Any) -> None:
        """Store the parts of the run."""

    def _prism_invite(self, agents: Iterable[Any]) -> Iterable[Any]:
        """Return agents for the given or newly made members of the population."""
        return agents

    def _prism_joined_all(self) -> None:
        """Called when all agents have joined, before `setup`."""

    def _prism_logger(self, setting: Any) -> Any:
        """Return where the run's events go."""
        return setting.logger

    def _prism_described(self, told: dict[str, Any]) -> dict[str, Any]:
        """Return the data of the world in ``run.started``."""
        return told

    def _prism_joined(self, agent: Any) -> Mapping[str, Any] | None:
        """Return the data of ``agent.joined``; None for those of any agent."""
        del agent
        return None

    def _prism_announce(self) -> None:
        """Log what exists before the first round, once the agents have been announced."""

    def _prism_begin_round(self) -> None:
        """Prepare for a round, before its treatments."""

    def _prism_begin_tick(self) -> None:
        """Prepare for a tick."""

    def _prism_kept_in(self, folder: Path) -> None:
        """Store the folder in which the run is kept, before anything else happens."""

    def _prism_running(self, *, is_new: bool) -> AbstractContextManager[object]:
        """Return a context manager that lasts from a run's start, or its resume, to its end."""
        del is_new
        return nullcontext()

    def _prism_round(self) -> AbstractContextManager[object]:
        """Return a context manager that lasts for a round and the writing of its checkpoint."""
        return nullcontext()

    def _prism_is_over(self, rounds: Sequence[Any]) -> bool:
        """Return whether no agent has anything left to do, after some rounds."""
        del rounds
        return False

    def _prism_depends(self) -> Callable[[Any, Iterable[Any]], bool] | None:
        """Return what tells if a turn depends on those of agents that have still to take theirs.

        By default, all do, so no agent may go ahead.
        """
        return None

    def _prism_last_step(self) -> Callable[[Any, Any], Any] | None:
        """Return the step of each agent at the end of a round, or None."""
        return None

    def _prism_summary(self, summary: Any) -> Any:
        """Return the summary of a round."""
        return summary

    def _prism_ended(self, summary: Any) -> Mapping[str, Any]:
        """Return the data of ``round.ended``."""
        told: Mapping[str, Any] = summary.to_dict()
        return told

    def _prism_summary_of(self, event: Mapping[str, Any]) -> Any:
        """Summarize a round from its line in the log."""
        return WorldRound.from_event(event)

    def _prism_results(self, rounds: Sequence[Any]) -> Any:
        """Return the results of a run."""
        return WorldResults(len(self._hosted("results").agents), tuple(rounds))

    def _prism_recall(self, event: Mapping[str, Any]) -> None:
        """Process a line of the log, on resuming."""

    def _prism_recalled(self) -> None:
        """Continue once the log and the checkpoint have been read, on resuming."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse undeclared attributes, and changes of parameters outside of treatments."""
        cls, host = type(self), self._host
        field = cls.fields.get(name)
        if field is None:
            if name != "network":
                raise AttributeError(missing_attribute(cls, name))
        elif host is not None and not field.declared.is_state:
            if host.phase is not Phase.TREATING:
                raise AttributeError(
                    f"{cls.__name__}.{name} is a parameter, which only a @treatment changes: "
                    f"declare {name}: {words_of_type(field.annotation)} = state(...) if it "
                    "changes during the run"
                )
            check_value(field, hints_of(cls).get(name, field.annotation), value)

        if host is not None and (reason := host.refusing or host.late) is not None:
            raise SimulationError(f"{cls.__name__}.{name} cannot be set: {reason}")

        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """Explain why an attribute is missing; only called if it is."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(missing_attribute(type(self), name))

    def _hosted(self, doing: str) -> RunHost:
        host = self._host
        if host is None:
            raise SimulationError(
                f"{type(self).__name__}.{doing} needs a run: Run({type(self).__name__}(), 100)"
            )

        return host


def during(
    *states: Enum, rate: float | str | Callable[[Any, Any], float] | None = None
) -> Callable[[MethodT], MethodT]:
    """Mark a method as the step of agents in some states: ``step(self, agent)``.

    A step that decides, or waits for a message, is ``async``.

    Args:
        states: The states.
        rate: In a world with ``activation = "rate"``, the number of events per round for each
            agent: a number, the name of a field of the world, or a function of world and agent,
            which is called again after every event.

    Raises:
        DefinitionError: If no state is given.
    """
    if not states:
        raise DefinitionError("@during() names no state: name those in which agents take the step")
    for each in states:
        if not isinstance(each, Enum):
            raise DefinitionError(
                f"@during needs states of a chart, got {each!r}: write the member of the enum"
            )

    def mark(method: MethodT) -> MethodT:
        setattr(method, STEP, states)
        setattr(method, RATE, rate)
        return method

    return mark


def measure(of: MeasuredT) -> MeasuredT:
    """Mark a method or a field to be measured at the end of every round.

    A method of a world, without arguments, returns a number, or None if there is nothing to
    measure. A method of an agent is measured for each agent, and so is a field: ``wealth: float =
    measure(state(1.0))``. For up to 500 agents of a kind, each value is kept. For more, quantiles
    in steps of 5 % and the values of 20 agents are kept.
    """
    if isfunction(of):
        setattr(of, MEASURE, True)
        return of

    if not isinstance(of, Declared):
        refuse_shared(of, "state(list)")
        of = cast(MeasuredT, Declared(of))

    return cast(MeasuredT, replace(cast(Any, of), is_measured=True))


@overload
def treatment(method: MethodT, /) -> MethodT: ...
@overload
def treatment(*, round: int) -> Callable[[MethodT], MethodT]: ...
def treatment(method: Any = None, *, round: int | None = None) -> Any:  # noqa: A002
    """Mark a method, without arguments, that changes parameters.

    Args:
        method: The method.
        round: The round that begins with it. By default, it is only applied if the run asks for it,
            as in ``treatments=["warning@12"]``.
    """

    def mark(method: Any) -> Any:
        setattr(method, TREATMENT, round if round is not None else 0)
        return method

    return mark if method is None else mark(method)


def kinds_of(cls: type) -> tuple[type[Agent], ...]:
    """Return the kinds of agents that a world's class names: ``World[Buyer | Seller]``."""
    written = (each for base in cls.__mro__ for each in vars(base).get("__orig_bases__", ()))
    return next((kinds for each in written if (kinds := _kinds_in(each))), ())


def outlines_of(cls: type[World[Any]]) -> list[Diagram]:
    """Return the charts of a world's agents, to be drawn."""
    from prism.statechart.outline import to_outline

    charts = (getattr(kind, "chart", None) for kind in kinds_of(cls))
    return [to_outline(each.definition) for each in charts if isinstance(each, Statechart)]


def _kinds_in(written: Any) -> tuple[type[Agent], ...]:
    origin = get_origin(written)
    if not (isinstance(origin, type) and issubclass(origin, World)):
        return ()

    named = [each for given in get_args(written) for each in (get_args(given) or (given,))]
    # Any is also a class
    return tuple(each for each in named if isinstance(each, type) and each is not Any)


def defines(cls: type[World[Any]], hook: str) -> bool:
    """Return whether a world's class overrides a hook."""
    return getattr(cls, hook) is not getattr(World, hook)
