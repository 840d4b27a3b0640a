"""Agents and Things: who takes part in a world, what they share, and what their steps wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, overload

from prism.errors import AgentError, DefinitionError, SimulationError
from prism.randomness import RandomStream
from prism.statechart import Configuration, Statechart, TextCall, Wording, Written
from prism.statechart._engine.writing import make_record
from prism.statechart.reasoner._questions import DEFAULT_PULL
from prism.statechart.transitions import Edge
from prism.worlds._agent_set import AgentSet
from prism.worlds._fields import Fields, unknown_field
from prism.worlds._phase import Phase

HISTORY_DEPTH = 50
"""Transitions that an agent remembers."""

_NONE: Mapping[str, Any] = MappingProxyType({})

_STEPS = Phase.STEPPING, Phase.GOING_ON
"""Phases in which a decision can wait for its answer."""


class Host(Protocol):
    """What agents and their world need of the run that they take part in.

    Attributes:
        agents: The population.
        seed: Seed of every random number.
        acting: The agent whose step is under way.
        refusing: Why nothing may change now; None if it may.
        assignments: Who is treated.
        epoch: What goes on now, as a number: random numbers belong to one epoch.
        fires: Takes what an agent fires, or refuses it; None while it is carried out at once.
        unawaited: A decision that was asked for and not awaited yet.
        phase: What the run is doing.
        meanings: What states mean, for a model.
        wording: Length and language of texts, where a call names none.
        has_writer: Whether a writer was given.
    """

    agents: Sequence[Any]
    seed: int
    acting: Any
    refusing: str | None
    assignments: Any
    epoch: int
    fires: Callable[[Any, str, Any, Any], Any] | None
    unawaited: Any
    phase: Phase
    meanings: Mapping[Any, str]
    wording: Wording
    has_writer: bool

    @property
    def round(self) -> int:
        """The round, counted from 1; 0 before the first."""

    @property
    def tick(self) -> int:
        """The tick of the round."""

    @property
    def time(self) -> float:
        """Time since the beginning, in rounds."""

    @property
    def may_set_parameters(self) -> bool:
        """Whether a treatment is being applied."""

    @property
    def late(self) -> str | None:
        """Why a step may not change the world now; None if it may."""

    def stream_of(self, agent: Any) -> RandomStream:
        """Return an agent's random numbers for what goes on now."""

    def world_stream(self) -> RandomStream:
        """Return the world's random numbers for this round."""

    def network_stream(self) -> RandomStream:
        """Return the random numbers of the next network."""

    def log(self, event: str, keys: Mapping[str, Any]) -> None:
        """Write an event of the world's own."""

    def count(self, state: Any) -> int:
        """Return the number of agents in a state."""

    def able_to_be_in(self, state: Any) -> int:
        """Return the number of agents whose chart has a state."""

    def stop(self, reason: str) -> None:
        """End the run."""

    def decision_stream_of(self, agent: Any) -> RandomStream:
        """Return the random numbers of an agent's decisions in this round."""

    def chart_stream_of(self, agent: Any) -> RandomStream:
        """Return the random numbers of an agent's chart in this round."""

    def send(self, message: Any, to: Any) -> None:
        """Deliver a message."""

    def note(self, agent: Any, text: str) -> None:
        """Keep a note for an agent to remember."""

    def set_ticks(self, agent: Any, ticks: int) -> None:
        """Let an agent have been in its state for so many ticks."""

    def settle(self, asked: Asked) -> Any:
        """Carry out what leaves nothing to decide; return the asked itself if it is a question."""


def _require_known(cls: Fields, given: Mapping[str, Any]) -> None:
    unknown = [name for name in given if name not in cls.fields]
    if unknown:
        raise TypeError(unknown_field(cls, unknown[0]))


def _refuse_constructor(cls: Any, base: type) -> None:
    if "__init__" in vars(cls):
        raise DefinitionError(
            f"{cls.__name__}.__init__ would not run again on resuming: declare fields with their "
            f"types, which {base.__name__} sets, and do the rest in the world's setup"
        )


class Thing(metaclass=Fields):
    """Something that agents share and that is no agent, such as a bid or a document.

    Fields are declared in the class. Two agents that hold one Thing hold the same one after a
    resume, too.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, **given: Any) -> None:
        """Set the fields that are given, and the others to their defaults."""
        cls = type(self)
        _require_known(cls, given)
        for name, field in cls.fields.items():
            if name in given:
                setattr(self, name, given[name])
            elif field.declared.is_required:
                raise TypeError(f"{cls.__name__} needs {name}: {cls.__name__}({name}=...)")
            elif field.declared.draw is not None:
                raise DefinitionError(
                    f"{cls.__name__}.{name} is drawn, which works only for fields of agents: "
                    "draw it with agent.random or world.random, and pass it"
                )
            else:
                setattr(self, name, field.declared.value())

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a constructor, which restoring a Thing would pass by."""
        super().__init_subclass__(**options)
        _refuse_constructor(cls, Thing)

    def __repr__(self) -> str:
        """Show the fields."""
        shown = ", ".join(f"{name}={getattr(self, name, None)!r}" for name in type(self).fields)
        return f"{type(self).__name__}({shown})"


class Message(Thing):
    """What one agent has sent to another.

    Attributes:
        sender: Who sent it.
        content: What it says: any value that a field may hold.
    """

    sender: Any
    content: Any = None


class _Parts:
    """The slots of an agent that its class does not declare."""

    __slots__ = (
        "__weakref__",
        "_attributes",
        "_begin_state",
        "_chart",
        "_chart_random",
        "_decision_epoch",
        "_decision_random",
        "_due",
        "_epoch",
        "_given",
        "_host",
        "_keys",
        "_kind",
        "_member",
        "_notes",
        "_place",
        "_random",
        "_since",
        "_state",
        "_state_history",
        "inbox",
        "neighbours",
        "state_memory",
    )

    if TYPE_CHECKING:
        inbox: deque[Message]
        neighbours: AgentSet[Self]
        state_memory: dict[str, Any] | None


def write_agent(agent: Any, edge: Edge, time: float, context: object) -> int:
    """Write the transition of an agent, and tell its run's roster where it is now."""
    record = make_record(edge, time, context)
    dwell: int = agent._host.roster.moved(agent, edge.from_state, edge.to_state)
    agent._state = edge.to_state
    agent._state_history.append(record)

    return dwell


class Agent(_Parts, metaclass=Fields):
    """Somebody who takes part in a world, with states of its own.

    A class declares its chart and its fields. Fields that are not given are set, or drawn, when the
    agent joins a run.

    Args:
        agent_id: Its id; by default its kind and a number, such as ``person_1``.
        name: What it is called; by default its id.

    Attributes:
        chart: The chart of the class.
        timeout_threshold: Longest dwell time in ticks, in a state for which the chart sets no
            limit; None for no limit.
        inbox: Messages that it has been sent, oldest first.
        neighbours: Agents that it is connected to in the world's network.
        state_memory: What its chart remembers of it: histories, and since when states are active;
            None where it remembers nothing.
    """

    __slots__ = ("agent_id", "name")

    chart: ClassVar[Statechart[Any]]
    timeout_threshold: ClassVar[int | None] = None
    _prism_writer: ClassVar[Any] = staticmethod(write_agent)

    agent_id: str = ""
    name: str = ""

    def __init__(self, **given: Any) -> None:
        """Note the fields that are given."""
        _require_known(type(self), given)
        self._given = given
        self._attributes: Mapping[str, Any] = _NONE
        self._host: Host | None = None
        self._begin_state: Any = None
        self.agent_id = self.name = ""
        for name, value in given.items():
            setattr(self, name, value)

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a constructor, which would run again on resuming with other arguments."""
        super().__init_subclass__(**options)
        _refuse_constructor(cls, Agent)

    if TYPE_CHECKING:

        @property
        def state(self) -> Any:
            """Current state; read only."""

    else:
        # in C, as steps look at the states of others all the time
        state = property(attrgetter("_state"), doc="Current state; read only.")

    @property
    def _subject(self) -> Any:
        """What the chart drives: the agent itself, or the object that it stands for."""
        return self

    @property
    def ticks_in_state(self) -> int:
        """Ticks since the last transition: how often its turn has come since. It may be set."""
        host: Any = self._host
        roster = None if host is None else host.roster
        return 0 if roster is None else int(roster.ticks_of(self))

    @ticks_in_state.setter
    def ticks_in_state(self, ticks: int) -> None:
        """Let the agent have been in its state for so many ticks, as time-outs see it.

        Raises:
            FieldValueError: If it is no whole number, 0 or more.
            SimulationError: If nothing may change now.
        """
        self._joined("ticks_in_state").set_ticks(self, ticks)

    @property
    def state_history(self) -> Sequence[Any]:
        """The last transitions, oldest first, each a `StateTransition`."""
        return tuple(self._state_history)

    @property
    def random(self) -> RandomStream:
        """Random numbers of this agent's steps in this round."""
        host = self._host or self._joined("random")
        if self._epoch != host.epoch:
            return host.stream_of(self)

        stream: RandomStream = self._random
        return stream

    @property
    def decision_random(self) -> RandomStream:
        """Random numbers of this agent's decisions in this round, for reasoners that draw."""
        return (self._host or self._joined("decision_random")).decision_stream_of(self)

    @property
    def chart_random(self) -> RandomStream:
        """Random numbers of this agent's chart in this round, for its rates and probabilities."""
        return (self._host or self._joined("chart_random")).chart_stream_of(self)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Kept columns of the table that the agent comes from, beyond its fields; read only.

        Each is an attribute of the agent, too: ``agent.age``.
        """
        return self._attributes

    @property
    def meanings(self) -> Mapping[Any, str]:
        """What each state means, for a model."""
        return self._joined("meanings").meanings

    def fire(self, trigger: str, context: Any = None) -> Any:
        """Make the first transition that an event enables; see `Statechart.fire`.

        In a ``together`` world it is made at the end of the tick.

        Args:
            trigger: Name of the event.
            context: What it is about, such as another agent.

        Returns:
            The state now; None if nothing applied, or it is put off.
        """
        host = self._host
        if host is None or host.fires is not None:
            fires = self._joined("fire").fires
            assert fires is not None
            return fires(self, trigger, context, None)

        return self._chart.fire(self, trigger, context)

    def decide(
        self,
        trigger: str,
        context: Any = None,
        *,
        weights: Mapping[Any, float] | None = None,
        prompt: str | None = None,
    ) -> Awaitable[Any]:
        """Make the transition that an event calls for; the reasoner decides if several are enabled.

        ``await`` it, in a step that is ``async``. All decisions of a tick are asked together, and
        applied in the order of the turns of those whose steps they belong to.

        Args:
            trigger: Name of the event.
            context: What it is about, such as another agent.
            weights: How likely each target is where no model decides; relative numbers. By default
                all are equally likely.
            prompt: What to tell a model. Who the agent is and what the targets mean is told
                besides.

        Returns:
            The state now; None if nothing applied, or the agent had moved when the answer came.
        """
        return Asked(self, trigger, context, weights, prompt)

    @overload
    def write(
        self,
        prompt: str,
        *,
        template: str,
        max_length: int | None = None,
        language: str | None = None,
        key: str = "text",
    ) -> Awaitable[str]: ...

    @overload
    def write(
        self,
        prompt: str,
        *,
        max_length: int | None = None,
        language: str | None = None,
        key: str = "text",
    ) -> Awaitable[str | None]: ...

    @overload
    def write(
        self,
        prompt: str,
        *,
        schema: Mapping[str, Any],
        template: Any = None,
        language: str | None = None,
        key: str = "text",
    ) -> Awaitable[Any]: ...

    def write(
        self,
        prompt: str,
        *,
        template: Any = None,
        schema: Mapping[str, Any] | None = None,
        max_length: int | None = None,
        language: str | None = None,
        key: str = "text",
    ) -> Awaitable[Any]:
        """Have a text written by the run's writer.

        ``await`` it, in a step that is ``async``. All texts and decisions of a tick are asked for
        together, and steps go on in the order of their turns.

        Args:
            prompt: What to write. Who the agent is, how long the text may be and in which language
                is told besides.
            template: What to take without a writer, or if it fails; the log says so.
            schema: JSON Schema of an answer of another form than one text.
            max_length: Most characters; a longer text is cut behind a word, and ends with an
                ellipsis. By default as the run says, 280 where it says nothing.
            language: Such as ``"German"``; by default as the run says.
            key: What it is for, in the log.

        Returns:
            The text, or data of the schema; the template where there is none, which is None if
            there is no template, either.

        Raises:
            SimulationError: If the run has no writer, and there is no template.
            FieldValueError: If the length or the language cannot be.
            FieldTypeError: If the schema is none.
        """
        host = self._joined("write")
        if template is None and not host.has_writer:
            raise SimulationError(
                f"agent {self.agent_id!r} is to write {key!r}, but the run has no writer: pass "
                "Run(..., writer=...), or a text for runs without one: write(prompt, "
                "template=...)"
            )

        wording = host.wording
        if max_length is not None or language is not None:
            wording = Wording(
                wording.max_length if max_length is None else max_length,
                wording.language if language is None else language,
            )

        call = wording.call(
            self, key, prompt, persona=self.persona(), schema=schema, fallback=template
        )

        return Writing(self, call).value()

    def receive(self) -> Awaitable[Message | None]:
        """Wait, within the tick, for the next message.

        Returns:
            The oldest message, taken out of the inbox; None if nobody sends one in this tick.
        """
        return Receiving(self)

    def send(self, to: Agent, content: Any = None) -> None:
        """Send another agent a message, which is in its inbox at once.

        In a ``together`` world it arrives at the end of the tick.

        Args:
            to: Who gets it.
            content: What it says: any value that a field may hold.
        """
        self._joined("send").send(Message(sender=self, content=content), to)

    def remember(self, text: str) -> None:
        """Note what the agent is to remember, for a model: see `prism.statechart.Recollection`.

        The last 50 notes are kept, also in checkpoints.

        Args:
            text: What it is; a line ends where the text breaks one.
        """
        self._joined("remember").note(self, text)

    def begin_in(self, state: Any) -> None:
        """Begin in another state than the chart's initial one; in `World.setup` only.

        Args:
            state: A state without others inside, or in a chart with regions a configuration:
                ``chart.state_of("feed+tired")``.

        Raises:
            SimulationError: If the run is under way.
            DefinitionError: If the chart has no such state.
        """
        if self._host is not None and not getattr(self._host, "is_setting_up", False):
            raise SimulationError(
                f"agent {self.agent_id!r} is under way: begin_in belongs in setup or populate, "
                "afterwards, its state changes by fire"
            )

        chart = type(self).chart
        leaves = state.leaves if isinstance(state, Configuration) else (state,)
        own = all(any(leaf is each for each in chart.definition.states) for leaf in leaves)
        # one leaf of several regions is not all that is active
        if not own or state not in chart._rows:
            raise DefinitionError(f"chart {chart.name!r} of {type(self).__name__} has no {state!r}")

        self._begin_state = state
        if self._host is not None:
            self._state = state

    def _take(self, given: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
        """Take over what a table says, before the run begins.

        Args:
            given: Fields and their values.
            attributes: What is kept beyond the fields.
        """
        self._given = {**self._given, **given}
        self._attributes = MappingProxyType(dict(attributes))
        for name, value in given.items():
            setattr(self, name, value)

    def persona(self) -> str:
        """Say who the agent is, for a model; override it to say more."""
        return f"You are {self.name}."

    def __repr__(self) -> str:
        """Show kind, id and state."""
        state = getattr(self, "_state", None)
        return f"<{type(self).__name__} {self.agent_id or '?'}{f' in {state}' if state else ''}>"

    def __getattr__(self, name: str) -> Any:
        """Say why there is no such attribute; called only where there is none."""
        cls = type(self)
        if name.startswith("__"):
            raise AttributeError(name)
        if name in cls.fields or name in _Parts.__slots__:
            raise AttributeError(
                f"{cls.__name__}.{name.removeprefix('_')} has no value yet: it gets one when the "
                "agent joins a run"
            )
        if name in self._attributes:
            return self._attributes[name]

        raise AttributeError(unknown_field(cls, name))

    def _joined(self, doing: str) -> Host:
        host: Host | None = self._host
        if host is None:
            raise AgentError(
                f"{type(self).__name__}.{doing} needs a run, which the agent has not joined: "
                "return it from the world's populate"
            )

        return host


class Waited:
    """What a step waits for.

    Attributes:
        agent: Who is asked.
        owner: Whose step it is.
        running: The step.
        was_late: Whether another question of the same agent went before it.
        is_open: Whether it is a question that is asked in this wave.
        answer: What was chosen or written, or what the step goes on with if nothing was asked.
    """

    __slots__ = ("agent", "answer", "is_open", "owner", "running", "was_late")

    agent: Any
    answer: Any
    is_open: bool
    owner: Any
    running: Coroutine[Any, Any, Any]
    was_late: bool

    def begin(self, owner: Any, running: Coroutine[Any, Any, Any]) -> None:
        """Note whose step waits."""
        self.owner, self.running = owner, running
        self.was_late = self.is_open = False
        self.answer = None

    def put(self) -> Any:
        """Return what somebody is to answer; None if there is nothing to ask."""


WAITING: Any = object()
"""In place of an agent's last transition, where it makes none before it has its answer."""


class Asked(Waited):
    """A decision of an agent: carried out at once, or a question to wait for.

    Args:
        agent: Who decides.
        trigger: The event.
        context: What it is about.
        weights: How likely each target is.
        prompt: What to tell a model.
        question: The question, where it has been put together already.

    Attributes:
        decision: The answer, once it is there.
        state: The state in which the agent is asked.
        options: What there is to choose from.
        since: The agent's last transition before it was asked.
    """

    __slots__ = (
        "context",
        "decision",
        "options",
        "prompt",
        "question",
        "since",
        "state",
        "trigger",
        "weights",
    )

    # as a `Question` has them, for who draws without one
    pulls: Mapping[Any, float] | None = None
    relevance_pull: float = DEFAULT_PULL

    def __init__(
        self,
        agent: Any,
        trigger: str,
        context: Any,
        weights: Mapping[Any, float] | None,
        prompt: str | None,
        question: Any = None,
    ) -> None:
        self.agent = agent
        self.trigger = trigger
        self.context = context
        self.weights = weights
        self.prompt = prompt
        self.question: Any = question
        self.decision: Any = None
        self.since: Any = WAITING
        self.state: Any = None if question is None else question.state
        self.options: Sequence[Any] = ()
        _begin_waiting(self, "decide", ", where it can wait for its answer; here, use fire")

    def __await__(self) -> Generator[Any, Any, Any]:
        """Carry out what leaves nothing to decide, else hand the question to the run."""
        host = self.agent._host
        host.unawaited = None
        if self.question is not None:
            return (yield self)

        settled = host.settle(self)

        return (yield self) if settled is self else settled

    def put(self) -> Any:
        """Return the question, if it is open and nobody draws the answer without one."""
        return self.question if self.is_open else None


class Writing(Waited):
    """A text that an agent is to write; awaiting it gives what was `Written`.

    Args:
        agent: Who writes.
        call: What is asked of the run's writer.
    """

    __slots__ = ("_only_value", "call")

    def __init__(self, agent: Any, call: TextCall) -> None:
        self.agent = agent
        self.call = call
        self._only_value = False
        _begin_waiting(self, "write", ", where it can wait for the text")

    def value(self) -> Self:
        """Have awaiting it give what the text says, alone."""
        self._only_value = True
        return self

    def __await__(self) -> Generator[Any, Any, Any]:
        """Hand the call to the run."""
        self.agent._host.unawaited = None
        written: Written = yield self

        return written.value if self._only_value else written

    def put(self) -> Any:
        """Return the call."""
        return self.call


class Receiving(Waited):
    """An agent's wait for a message.

    Args:
        agent: Who waits.
    """

    __slots__ = ()

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        _begin_waiting(self, "receive", "; here, read inbox")

    def __await__(self) -> Generator[Any, Any, Any]:
        """Return the oldest message, else hand the wait to the run."""
        self.agent._host.unawaited = None
        if not self.agent.inbox:
            yield self

        return self.agent.inbox.popleft() if self.agent.inbox else None


def _begin_waiting(waiting: Waited, doing: str, instead: str) -> None:
    """Note that somebody waits for something, to be awaited; only steps can wait.

    Args:
        waiting: What is waited for.
        doing: What the agent does.
        instead: Why only in a step, or what to do elsewhere.
    """
    agent = waiting.agent
    host = agent._host or agent._joined(doing)
    if host.phase not in _STEPS:
        raise SimulationError(
            f"agent {agent.agent_id!r}: {doing} belongs in a step (@during){instead}"
        )

    host.unawaited = waiting
