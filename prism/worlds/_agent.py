"""Agents, the Things that they share, and what their steps can wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

from prism._faults import place_in
from prism.errors import AgentError, DefinitionError, SimulationError, UnknownTriggerError
from prism.randomness import RandomStream, Taken
from prism.randomness._stream import GOLDEN, ONE, OTHER, TO_UNIT, WORD, mixed_in_steps
from prism.reasoner._questions import DEFAULT_PULL
from prism.statechart import Configuration, Statechart, TextCall, Wording, Written
from prism.statechart.transitions import Edge, make_record
from prism.worlds._agent_set import AgentSet
from prism.worlds._charts import unheard_of
from prism.worlds._fields import Fields, derived, missing_attribute
from prism.worlds._host import RunHost
from prism.worlds._phase import Phase

HISTORY_DEPTH = 50
"""Transitions that an agent remembers."""

STEPS, DECISIONS = 1, 2
"""The place of a stream's key among an agent's own."""

_NONE: Mapping[str, Any] = MappingProxyType({})

_STEPS = Phase.STEPPING, Phase.GOING_ON
"""Phases in which a decision can wait for its answer."""


def _require_known(cls: Fields, given: Mapping[str, Any]) -> None:
    unknown = [name for name in given if name not in cls.fields]
    if unknown:
        raise TypeError(missing_attribute(cls, unknown[0]))


def _refuse_constructor(cls: Any, base: type) -> None:
    if "__init__" in vars(cls):
        raise DefinitionError(
            f"{cls.__name__}.__init__ would not run again on resuming: declare fields with their "
            f"types, which {base.__name__} sets, and do the rest in the world's setup"
        )


class Thing(metaclass=Fields):
    """Something other than an agent that agents share, such as a bid or a document.

    Declare its fields in the class. Agents that share a Thing still share it after a resume.
    """

    __slots__ = ("__weakref__",)

    def __init__(self, **given: Any) -> None:
        """Set the given fields, and all others to their defaults."""
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
        """Refuse a constructor, which restoring a Thing would not call."""
        super().__init_subclass__(**options)
        _refuse_constructor(cls, Thing)

    def __repr__(self) -> str:
        """Show the fields."""
        shown = ", ".join(f"{name}={getattr(self, name, None)!r}" for name in type(self).fields)
        return f"{type(self).__name__}({shown})"


class Message(Thing):
    """A message from one agent to another.

    Attributes:
        sender: The agent that sent it.
        content: Its content: any value that a field may hold.
    """

    sender: Any
    content: Any = None


class AgentStream(RandomStream):
    """A random stream of an agent: one sequence of numbers in each part of a run.

    It turns to the sequence of the current part at the first draw there, so agents that do not draw
    cost nothing.

    Args:
        agent: The agent.
        place: The place of the stream's key among the agent's own: `STEPS` or `DECISIONS`.
    """

    __slots__ = ("_agent", "_begun_in", "_current", "_first", "_host", "_own_key", "_place")

    def __init__(self, agent: Any, place: int) -> None:
        self._agent = agent
        self._host = agent._host
        self._place = place
        self._own_key: int | None = None
        self._begun_in = -1
        self._first = 0.0
        # the part of the run if its next number follows on the last one, else none
        self._current = -1
        self.begin_at(0)

    def random(self) -> float:
        """Draw a float, uniform in [0, 1), with 53 random bits.

        Raises:
            SimulationError: If nothing may be drawn at the moment.
        """
        host = self._host
        if self._current != host.epoch:
            if self._begun_in != host.epoch or host.refusing is not None:
                self._begin_if_due()
            if self._put_back:
                return super().random()
            self._current = self._begun_in
            if self._at == self._key:
                self._at = (self._at + GOLDEN) & WORD
                return self._first

        # as in `RandomStream`, written out, as a call would cost a fifth more
        number = self._at = (self._at + GOLDEN) & WORD
        number = ((number ^ (number >> 30)) * ONE) & WORD
        number = ((number ^ (number >> 27)) * OTHER) & WORD
        return ((number ^ (number >> 31)) >> 11) * TO_UNIT

    def take(self) -> Taken:
        """Draw a number with its place in the sequence, so that it can be put back."""
        self._begin_if_due()
        return super().take()

    def put_back(self, taken: Taken) -> None:
        """Put a number back to be drawn again; the earliest comes first."""
        super().put_back(taken)
        self._current = -1

    def _begin_if_due(self) -> None:
        """Turn to the sequence of the current part of the run."""
        if self._host.refusing is not None:
            self._host.require_drawing(f"agent {self._agent.agent_id!r}")
        if self._begun_in != self._host.epoch:
            begin_streams([self])

    def _find_key(self) -> int:
        """Return the stream's key of all parts, which most streams never need."""
        key: int = self._host.keys_of(self._agent)[self._place]
        self._own_key = key
        return key


def begin_streams(streams: Sequence[AgentStream]) -> None:
    """Turn streams to their sequences of the current part of a run, and draw a number for each.

    All at once, this takes a quarter of the time.
    """
    if not streams:
        return

    epoch = streams[0]._host.epoch
    due = [each for each in streams if each._begun_in != epoch]
    keys = [each._own_key or each._find_key() for each in due]
    begun, firsts = mixed_in_steps(keys, epoch * GOLDEN, GOLDEN)
    for stream, key, first in zip(due, begun, firsts, strict=True):
        stream._key = stream._at = key
        stream._first = (first >> 11) * TO_UNIT
        stream._put_back = None
        stream._begun_in = epoch


class _Parts:
    """The slots of every agent, besides those that its class declares."""

    __slots__ = (
        "__weakref__",
        "_attributes",
        "_begin_state",
        "_chart",
        "_chart_random",
        "_decision_random",
        "_due",
        "_given",
        "_host",
        "_inbox",
        "_keys",
        "_kind",
        "_member",
        "_notes",
        "_place",
        "_random",
        "_since",
        "_state",
        "_state_history",
        "neighbours",
        "state_memory",
    )

    if TYPE_CHECKING:
        _chart: Statechart[Any]
        _inbox: deque[Message]
        neighbours: AgentSet[Self]
        state_memory: dict[str, Any] | None


def write_agent(agent: Any, edge: Edge, time: float, context: object) -> int:
    """Record an agent's transition, and tell the run's roster about its new state."""
    record = make_record(edge, time, context)
    dwell: int = agent._host.roster.moved(agent, edge.from_state, edge.to_state)
    agent._state = edge.to_state

    # a list, since an empty deque takes ten times its memory
    history = agent._state_history
    history.append(record)
    if len(history) > HISTORY_DEPTH:
        del history[0]

    return dwell


class Agent(_Parts, metaclass=Fields):
    """An individual in a world, with a state of its own.

    A class declares its chart and its fields. Fields without a value get their default, or are
    drawn, when the agent joins a run.

    Args:
        agent_id: Its id. Defaults to its kind and a number, such as ``person_1``.
        name: Its name. Defaults to its id.

    Attributes:
        chart: The chart of the class.
        timeout_threshold: Longest dwell time in ticks in states for which the chart sets no limit,
            or None for no limit.
        neighbours: Agents connected to it in the world's network.
        state_memory: What the chart remembers about the agent, such as histories and when states
            became active, or None.
    """

    __slots__ = ("agent_id", "name")

    chart: ClassVar[Statechart[Any]]
    timeout_threshold: ClassVar[int | None] = None
    _prism_writer: ClassVar[Any] = staticmethod(write_agent)

    agent_id: str = ""
    name: str = ""

    def __init__(self, **given: Any) -> None:
        """Store the given fields."""
        _require_known(type(self), given)
        self._given = given
        self._attributes: Mapping[str, Any] = _NONE
        self._host: RunHost | None = None
        self._begin_state: Any = None
        self.agent_id = self.name = ""
        for name, value in given.items():
            setattr(self, name, value)

    def __init_subclass__(cls, **options: Any) -> None:
        """Refuse a constructor, which a resume would call with different arguments."""
        super().__init_subclass__(**options)
        _refuse_constructor(cls, Agent)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a column of the agent's table."""

        @property
        def state(self) -> Any:
            """Current state; read only."""

    else:
        # attrgetter runs in C: steps read the states of other agents all the time
        state = property(attrgetter("_state"), doc="Current state; read only.")

    @property
    def _subject(self) -> Any:
        """The object that the chart drives: the agent itself, or the object that it represents."""
        return self

    @property
    def ticks_in_state(self) -> int:
        """The ticks, or turns, since the last transition. You may set it."""
        roster = None if self._host is None else self._host.roster
        return 0 if roster is None else int(roster.ticks_of(self))

    @ticks_in_state.setter
    def ticks_in_state(self, ticks: int) -> None:
        """Set the number of ticks that count towards a time-out.

        Raises:
            FieldValueError: If it is not a whole number of at least 0.
            SimulationError: If nothing may change at the moment.
        """
        self._joined("ticks_in_state").set_ticks(self, ticks)

    @property
    def inbox(self) -> deque[Message]:
        """Messages that it has received, oldest first."""
        # most agents never get one, and an empty deque takes as much memory as an agent
        if self._host is None or self._inbox is None:
            self._joined("inbox")
            # past the guards of worlds in which agents change only themselves
            object.__setattr__(self, "_inbox", deque())

        return self._inbox

    @property
    def state_history(self) -> Sequence[Any]:
        """The last transitions, oldest first, each a `StateTransition`."""
        return tuple(self._state_history)

    if TYPE_CHECKING:

        @property
        def random(self) -> RandomStream:
            """The random stream for this agent's steps in this round."""

        @property
        def decision_random(self) -> RandomStream:
            """The random stream for this agent's decisions in this round, for reasoners."""

    else:
        # attrgetter, as above
        random = property(
            attrgetter("_random"), doc="The random stream for this agent's steps in this round."
        )
        decision_random = property(
            attrgetter("_decision_random"),
            doc="The random stream for this agent's decisions in this round, for reasoners.",
        )

    @property
    def chart_random(self) -> RandomStream:
        """The random stream for this agent's chart in this round, for rates and probabilities."""
        return self._joined("chart_random").chart_stream_of(self)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The kept columns of the agent's table that are not fields, read-only.

        Each is also an attribute of the agent: ``agent.age``.
        """
        return self._attributes

    @property
    def meanings(self) -> Mapping[Any, str]:
        """A description of each state, for a model."""
        return self._joined("meanings").meanings

    def fire(self, trigger: str, context: Any = None) -> Any:
        """Fire an event: make the first transition that it enables (see `Statechart.fire`).

        In a ``together`` world, the transition is made at the end of the tick.

        Args:
            trigger: Name of the event.
            context: The event's payload, such as another agent.

        Returns:
            The new state, or None if no transition applied or it is deferred.

        Raises:
            UnknownTriggerError: If no transition of any chart in the world has the trigger.
        """
        host = self._host or self._joined("fire")
        if host.fires is None:
            made = self._chart.fire(self, trigger, context)
        else:
            made = host.fires(self, trigger, context, None)
        if made is None:
            require_heard_of(host, trigger)

        return made

    def decide(
        self,
        trigger: str,
        context: Any = None,
        *,
        weights: Mapping[Any, float] | None = None,
        prompt: str | None = None,
    ) -> Awaitable[Any]:
        """Fire an event, and let the reasoner decide if it enables several transitions.

        Use it with ``await`` in an ``async`` step. All decisions of a tick are asked together and
        applied in the order of their agents' turns.

        Args:
            trigger: Name of the event.
            context: What it is about, such as another agent.
            weights: Relative probabilities of the targets if no model decides. By default, all are
                equally likely. Weights of targets that the event cannot reach from the current
                state are ignored; a state that it can never reach is refused.
            prompt: What to tell a model, in addition to who the agent is and what the targets mean.

        Returns:
            The new state, or None if no transition applied or the agent had moved before the answer
            arrived.
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
        """Ask the run's writer for a text.

        Use it with ``await`` in an ``async`` step. All texts and decisions of a tick are requested
        together, and steps continue in the order of their turns.

        Args:
            prompt: What to write. The writer is also told who the agent is, and the length and
                language of the text.
            template: The text to use if there is no writer or it fails, which the log records.
            schema: JSON Schema of an answer that is more than a plain text.
            max_length: The maximum number of characters. A longer text is cut after a word and ends
                with an ellipsis. Defaults to the run's setting, or 280.
            language: Such as ``"German"``. Defaults to the run's setting.
            key: The purpose of the text, for the log.

        Returns:
            The text, or data that follow the schema. Without either, the template, or None if there
            is no template.

        Raises:
            SimulationError: If there is neither a writer nor a template.
            FieldValueError: If the length or the language is invalid.
            FieldTypeError: If the schema is invalid.
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
            The oldest message, removed from the inbox, or None if nobody sends one in this tick.
        """
        return Receiving(self)

    def send(self, to: Agent, content: Any = None) -> None:
        """Send a message, which is in the other agent's inbox at once.

        In a ``together`` world it arrives at the end of the tick.

        Args:
            to: The recipient.
            content: Its content: any value that a field may hold.
        """
        self._joined("send").send(Message(sender=self, content=content), to)

    def remember(self, text: str) -> None:
        """Store a note in the agent's memory for a model (see `prism.statechart.Recollection`).

        The last 50 notes are kept, in checkpoints too.

        Args:
            text: The note. Line breaks in it are kept.
        """
        self._joined("remember").note(self, text)

    def begin_in(self, state: Any) -> None:
        """Begin in a state other than the chart's initial one. Only allowed in `World.setup`.

        Args:
            state: A leaf state or, in a chart with regions, a configuration:
                ``chart.state_of("feed+tired")``.

        Raises:
            SimulationError: If the run has started.
            DefinitionError: If the chart does not have this state.
        """
        if self._host is not None and self._host.phase is not Phase.SETTING_UP:
            raise SimulationError(
                f"agent {self.agent_id!r} has begun to act: begin_in belongs in setup or populate; "
                "afterwards, change its state with fire"
            )

        chart = type(self).chart
        leaves = state.leaves if isinstance(state, Configuration) else (state,)
        own = all(any(leaf is each for each in chart.definition.states) for leaf in leaves)
        # a single leaf does not determine the configuration of a chart with regions
        if not own or not chart.can_be_in(state):
            raise DefinitionError(f"chart {chart.name!r} of {type(self).__name__} has no {state!r}")

        self._begin_state = state
        if self._host is not None:
            self._state = state

    def _take(self, given: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
        """Apply a row of a table, before the run begins.

        Args:
            given: Fields and their values.
            attributes: The other columns to keep.
        """
        self._given = {**self._given, **given}
        if attributes:
            self._attributes = MappingProxyType(dict(attributes))
            self.__class__ = with_columns(type(self))
        for name, value in given.items():
            setattr(self, name, value)

    def persona(self) -> str:
        """Describe the agent for a model. Override it to say more."""
        return f"You are {self.name}."

    def __repr__(self) -> str:
        """Show its kind, id and state."""
        state = getattr(self, "_state", None)
        return f"<{type(self).__name__} {self.agent_id or '?'}{f' in {state}' if state else ''}>"

    def _column(self, name: str) -> Any:
        """Return a column of the agent's table.

        Raises:
            AttributeError: If there is none of that name.
        """
        if name.startswith("_") or name not in self._attributes:
            raise AttributeError(missing_attribute(type(self), name))

        return self._attributes[name]

    def _joined(self, doing: str) -> RunHost:
        host = self._host
        if host is None:
            raise AgentError(
                f"{type(self).__name__}.{doing} needs a run, which the agent has not joined: "
                "return it from the world's populate"
            )

        return host


Running = Coroutine[Any, Any, Any]
"""The step of an agent."""


@lru_cache(maxsize=256)
def with_columns(cls: type[Agent]) -> Any:
    """Return a class of the same agents that have the columns of their table as attributes.

    Python reads attributes of any class seven times as fast without such a method.
    """
    return derived(cls, __getattr__=cls._column)


def require_heard_of(host: Any, trigger: str) -> None:
    """Refuse an event of which no chart in the world has a transition.

    Raises:
        UnknownTriggerError: If it is one.
    """
    known = host.triggers
    if known is not None and trigger not in known:
        raise UnknownTriggerError(unheard_of(trigger, host.charts))


class Waited:
    """What a step waits for.

    Attributes:
        agent: The agent that is asked.
        owner: The agent whose step it is.
        running: The step.
        was_late: Whether it had to wait for an earlier question of the same agent.
        is_open: Whether it is asked in this wave.
        answer: The chosen state or the written text, or the value with which the step continues if
            nothing was asked.
    """

    __slots__ = ("agent", "answer", "is_open", "owner", "running", "was_late")

    agent: Any
    answer: Any
    is_open: bool
    owner: Any
    running: Running
    was_late: bool

    def put(self) -> Any:
        """Return the question or text call to answer, or None if there is nothing to ask."""

    def take(self, answer: Any) -> None:
        """Store the answer to what was put."""
        self.answer = answer


WAITING: Any = object()
"""Stands in for an agent's last transition if the agent cannot move before its answer arrives."""


class Asked(Waited):
    """An agent's decision: carried out at once, or a question to wait for.

    Args:
        agent: The agent that decides.
        trigger: The event.
        context: The event's payload.
        weights: Relative probabilities of the targets.
        prompt: What to tell a model.
        question: The question, if it was already prepared.
        then: What follows from the answer, if the step that asks is over.

    Attributes:
        decision: The answer, once it has arrived; None if a policy has drawn it.
        state: The agent's state when it is asked.
        options: The options.
        since: The agent's last transition before the question.
    """

    __slots__ = (
        "context",
        "decision",
        "options",
        "prompt",
        "question",
        "since",
        "state",
        "then",
        "trigger",
        "weights",
    )

    # in the form of a `Question`, for policies that draw without one
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
        then: Callable[[Asked], object] | None = None,
    ) -> None:
        self.agent = agent
        self.trigger: str = trigger
        self.context: Any = context
        self.weights: Mapping[Any, float] | None = weights
        self.prompt: str | None = prompt
        self.question: Any = question
        self.then: Callable[[Asked], object] | None = then
        self.decision: Any = None
        self.since: Any = WAITING
        self.state: Any = None if question is None else question.state
        self.options: Sequence[Any] = ()
        if question is None:
            _begin_waiting(self, "decide", ", where it can wait for its answer; here, use fire")
        else:
            # prism's own steps await what they ask
            self.was_late = self.is_open = False
            self.answer: Any = None

    def __await__(self) -> Generator[Any, Any, Any]:
        """Carry out a request that leaves nothing to decide, or hand the question to the run."""
        if self.question is not None:
            return (yield self)

        host = self.agent._host
        host.unawaited = None
        settled = host.settle(self)

        return (yield self) if settled is self else settled

    def put(self) -> Any:
        """Return the question, if it is open and no policy draws the answer without it."""
        return self.question if self.is_open else None

    def take(self, answer: Any) -> None:
        """Store the decision on the question."""
        self.decision = answer
        super().take(answer.chosen)


class Writing(Waited):
    """A text for an agent to write. Awaiting it returns what was `Written`.

    Args:
        agent: The agent that writes.
        call: The call to the run's writer.
    """

    __slots__ = ("_only_value", "call")

    def __init__(self, agent: Any, call: TextCall) -> None:
        self.agent = agent
        self.call = call
        self._only_value = False
        _begin_waiting(self, "write", ", where it can wait for the text")

    def value(self) -> Self:
        """Make ``await`` return the text itself."""
        self._only_value = True
        return self

    def __await__(self) -> Generator[Any, Any, Any]:
        """Hand the call to the run."""
        self.agent._host.unawaited = None
        written: Written = yield self

        return written.value if self._only_value else written

    def put(self) -> Any:
        """Return the call, with the current tick."""
        return replace(self.call, occasion=self.agent._host.ticks)


class Receiving(Waited):
    """An agent's wait for a message.

    Args:
        agent: The agent that waits.
    """

    __slots__ = ()

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        _begin_waiting(self, "receive", "; here, read inbox")

    def __await__(self) -> Generator[Any, Any, Any]:
        """Return the oldest message, or else hand the wait to the run."""
        self.agent._host.unawaited = None
        if not self.agent.inbox:
            yield self

        return self.agent.inbox.popleft() if self.agent.inbox else None


def _begin_waiting(waiting: Waited, doing: str, instead: str) -> None:
    """Register something to be awaited. Only steps can wait.

    Args:
        waiting: What the agent waits for.
        doing: What the agent does, for the message.
        instead: Why it must be in a step, or what to do elsewhere.
    """
    agent = waiting.agent
    host = agent._host or agent._joined(doing)
    if host.phase not in _STEPS:
        raise SimulationError(
            f"agent {agent.agent_id!r}: {doing} belongs in a step (@during){instead}"
        )

    if host.unawaited is not None:
        # in the user's own code, which the error names
        refuse_unawaited(host, None)

    host.unawaited = waiting
    waiting.was_late = waiting.is_open = False
    waiting.answer = None


def continued(
    host: Any,
    owner: Any,
    running: Running,
    value: Any,
    takes: Callable[[Any, Running, Any], bool] = lambda _owner, _running, _wanted: False,
) -> Waited | None:
    """Continue a step, and return what it waits for; None if it has ended, or waits elsewhere.

    Args:
        host: The run, as its agents see it.
        owner: The agent whose step it is.
        running: The step.
        value: What it gets for what it waited for.
        takes: Takes what a step awaits of the event loop, if it may.

    Raises:
        SimulationError: If the step awaits anything else, or has not awaited its last request.
    """
    host.acting = owner
    try:
        wanted = running.send(value)
    except StopIteration:
        if host.unawaited is not None:
            refuse_unawaited(host, running)
        return None
    except AttributeError:
        if not hasattr(running, "send"):
            if host.unawaited is not None:
                refuse_unawaited(host, running)
            raise SimulationError(
                f"the step of {owner!r} returned {running!r}, which is ignored: return nothing"
            ) from None
        raise

    if host.unawaited is not None:
        running.close()
        refuse_unawaited(host, running)
    if isinstance(wanted, Waited):
        wanted.owner, wanted.running = owner, running
        return wanted
    if takes(owner, running, wanted):
        return None

    raise _foreign(owner, running, wanted)


def _foreign(owner: Any, running: Running, wanted: Any) -> SimulationError:
    """Close a step that awaits what no step may, and return the error that says so."""
    where = place_of_step(running)
    running.close()

    return SimulationError(
        f"{where}the step of {owner!r} awaits {wanted!r}: a step may await only decide, write "
        "and receive of an agent; make whatever takes longer than a tick a state of the "
        "chart"
    )


def place_of_step(running: Running) -> str:
    """Return file and line where a step waits, for the beginning of a message."""
    frame = getattr(running, "cr_frame", None)
    place = None if frame is None else place_in(frame.f_code, frame.f_lasti)

    return "" if place is None else f"{place}: "


def refuse_unawaited(host: Any, step: Any) -> None:
    """Refuse a request of an agent that its step did not await.

    Args:
        host: The run.
        step: The step, as a function or a coroutine, if it is known.

    Raises:
        SimulationError: Always; the message names the step and the request.
    """
    left, host.unawaited = host.unawaited, None
    call = "receive()" if isinstance(left, Receiving) else "write(...)"
    if isinstance(left, Asked):
        call = f"decide({left.trigger!r}, ...)"
    code = getattr(step, "__code__", None) or getattr(step, "cr_code", None)
    place = None if code is None else place_in(code, 0)
    where = "" if place is None else f"{place}: "
    raise SimulationError(
        f"{where}agent {left.agent.agent_id!r}: {call} was not awaited, so it had no effect: "
        "write  await  before it, in a step that is  async def"
    )
