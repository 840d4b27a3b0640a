"""Agents, and what their steps wait for."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from prism.errors import DefinitionError, SimulationError
from prism.randomness import RandomStream
from prism.randomness.stream import GOLDEN, WORD
from prism.reasoner import Wording
from prism.reasoner.prompts import indented, remembered, transition_in_words
from prism.statechart import Statechart
from prism.statechart.names import identify
from prism.statechart.transitions import Edge, make_record
from prism.worlds._agent_set import NOBODY, AgentSet, leaves_in
from prism.worlds.decisions import Deciding, Message, Receiving, Writing, send
from prism.worlds.fields import Declares, refuse_unknown

HISTORY_DEPTH = 50
"""Transitions, and notes, that an agent remembers."""

_ROUND = (GOLDEN << 40) & WORD


class AgentStream(RandomStream):
    """An agent's random numbers: a new sequence in every round.

    Args:
        key: The stream's 64-bit key of all rounds.
    """

    __slots__ = ("_base_key", "round")

    def __init__(self, key: int) -> None:
        self._base_key, self.round = key, -1

    def of_round(self, number: int) -> AgentStream:
        """Turn to the sequence of a round."""
        self.round = number
        # as `begin_at`, which nearly every turn would call: rounds are parts of one sequence, 2**40
        # numbers apart
        self._key = self._at = (self._base_key + number * _ROUND) & WORD
        self._put_back = None
        return self


class Agent(Declares):
    """An individual in a world, with a state of its own.

    A class declares its chart and its fields. Fields without a value get their default, or are
    drawn, when the agent joins a run.

    Args:
        agent_id: Its id. Defaults to its kind and a number, such as ``person_1``.
        name: Its name. Defaults to its id.

    Attributes:
        chart: The chart of the class.
        timeout_threshold: Longest dwell time in ticks in states for which the chart sets no limit.
        world: The world that it has joined, or None.
        state: Its state; `fire` and `decide` change it.
        neighbours: Agents connected to it in the world's network.
        state_history: Its last transitions, oldest first.
        state_memory: What the chart remembers about the agent, such as histories, or None.
        attributes: Columns of its table that are not fields.
        has_left: Whether it has left the run.
    """

    chart: ClassVar[Statechart[Any]]
    timeout_threshold: ClassVar[int | None] = None

    agent_id: str = ""
    name: str = ""

    if TYPE_CHECKING:
        world: ClassVar[Any]
        state: ClassVar[Any]
        neighbours: ClassVar[AgentSet[Self]]
        state_history: ClassVar[list[Any]]

        def __getattr__(self, name: str) -> Any:
            """Return a column of the agent's table, or what was set."""
    else:
        world = state = None
        neighbours = NOBODY
        state_history = ()

    state_memory: ClassVar[Any] = None
    attributes: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    has_left: ClassVar[bool] = False
    _begin_state: ClassVar[Any] = None
    _notes: ClassVar[Sequence[str]] = ()
    _notes_transitions: ClassVar[bool] = True
    # ticks in its state before a self-transition began ticks_in_state anew
    _stayed: ClassVar[int] = 0
    _spaces: ClassVar[Mapping[Any, None]] = {}
    _chart_stream: ClassVar[tuple[int, RandomStream] | None] = None

    def __init__(self, **arguments: Any) -> None:
        """Store the given fields."""
        refuse_unknown(type(self), arguments, "field", self.fields)
        for name, value in arguments.items():
            setattr(self, name, value)
        self._arguments = arguments

    # Joining, which the run does

    def _join(self, world: Any, kind: Any, keys: Sequence[int]) -> None:
        # attribute by attribute: an object whose `__dict__` has been asked for is slower
        me = cast(Any, self)
        me.world, me._kind, now = world, kind, world._run_turns.now
        me._since = me._due = me._passed_in = now
        me._acts_from = now + 1
        me._key = keys[0]
        me._steps, me._decides = AgentStream(keys[1]), AgentStream(keys[2])
        self._begin()

    def _begin(self) -> None:
        me, state = cast(Any, self), self._begin_state
        me.state = self.chart.initial if state is None else state
        me.state_history = []

    @staticmethod
    def _prism_writer(agent: Any, edge: Edge, time: float, context: object) -> int:
        """Write a transition; the engine calls it."""
        history = agent.state_history
        history.append(record := make_record(edge, time, context))
        if len(history) > HISTORY_DEPTH:
            del history[0]
        turns = agent.world._run_turns
        if turns.remembers and agent._notes_transitions:
            agent._note(transition_in_words(record))
        dwell: int = turns.moved(agent, edge)
        return dwell

    # What steps read

    @cached_property
    def inbox(self) -> deque[Message]:
        """Messages that it has received, oldest first."""
        # most agents never get one, and an empty deque takes as much memory as the rest
        return deque()

    @property
    def random(self) -> RandomStream:
        """The random numbers of its steps in this round."""
        stream: AgentStream = self._steps
        number = self.world.round
        return stream if stream.round == number else stream.of_round(number)

    @property
    def decision_random(self) -> RandomStream:
        """The random numbers of its decisions in this round, for reasoners."""
        stream: AgentStream = self._decides
        number = self.world.round
        return stream if stream.round == number else stream.of_round(number)

    @property
    def chart_random(self) -> RandomStream:
        """The random numbers of its chart in this round, for rates and probabilities."""
        number, kept = self.world.round, self._chart_stream
        if kept is None or kept[0] != number:
            # few charts draw, so an agent gets its chart's stream at its first draw
            kept = number, RandomStream(self.world.seed, "chart", self.agent_id, "", number)
            vars(self)["_chart_stream"] = kept
        return kept[1]

    @property
    def ticks_in_state(self) -> int:
        """Ticks since its last transition."""
        return int(self.world._run_turns.now - self._since)

    @ticks_in_state.setter
    def ticks_in_state(self, ticks: int) -> None:
        self.world._run_turns.set_ticks(self, ticks)

    @property
    def meanings(self) -> Mapping[Any, str]:
        """A description of each state, for a model."""
        return cast("Mapping[Any, str]", self.world.meanings)

    def described(self) -> Mapping[str, Any]:
        """Return what the log says about the agent when it joins, besides its name and state."""
        cls = type(self)
        attributes = {name: getattr(self, name) for name in cls.fields if name not in Agent.fields}
        if self.attributes:
            attributes.update(self.attributes)
        return {"attributes": identify(attributes)} if attributes else {}

    def memories(self, most: int) -> Sequence[str]:
        """Return at most so many of the last things that happened to the agent, oldest first.

        By default, these are its transitions and notes. They are in the prompt for a model if the
        run has a memory.
        """
        return [*self._notes][-most:]

    def persona(self) -> str:
        """Describe the agent for a model. Override it to say more."""
        return indented(str(self.attributes.get("persona") or f"You are {self.name}."))

    # What steps do

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
        return self.world._run_turns.fire(self, trigger, context)

    async def decide(
        self,
        trigger: str,
        context: Any = None,
        *,
        weights: Mapping[Any, float] | None = None,
        prompt: str | None = None,
    ) -> Any:
        """Fire an event, and let the reasoner decide if it enables several transitions.

        Use it with ``await`` in an ``async`` step. All decisions of a tick are asked together and
        applied in the order of their agents' turns.

        Args:
            trigger: Name of the event.
            context: What it is about, such as another agent, or a dict of what the agent knows. The
                log shows it beside the decision.
            weights: Relative probabilities of the targets if no model decides. By default, all are
                equally likely. Weights of targets that the event cannot reach from the current
                state are ignored.
            prompt: What has happened, for a model. Its prompt also says who the agent is and what
                the targets mean.

        Returns:
            The new state, or None if no transition applied or the agent had moved before the answer
            arrived.
        """
        return await Deciding(self, trigger, context, weights, prompt)

    async def write(
        self,
        prompt: str,
        *,
        template: Any = None,
        schema: Mapping[str, Any] | None = None,
        max_length: int | None = None,
        key: str = "text",
    ) -> Any:
        """Ask the run's writer for a text.

        Use it with ``await`` in an ``async`` step. All texts and decisions of a tick are requested
        together, and steps continue in the order of their turns.

        Args:
            prompt: What to write. The writer is also told who the agent is, and the length and
                language of the text.
            template: The text to use if there is no writer or it fails, which the log records.
            schema: JSON Schema of an answer that is more than a plain text.
            max_length: The maximum number of characters. A longer text is cut after a word.
            key: The purpose of the text, for the log.

        Returns:
            The text, or data that follow the schema. Without either, the template, or None if there
            is no template.

        Raises:
            SimulationError: If there is neither a writer nor a template.
        """
        turns = self.world._run_turns
        if template is None and not turns.answers.has_writer:
            cure = "pass Run(..., writer=...), or write(..., template=...)"
            problem = f"is to write {key!r}, but the run has no writer: {cure}"
            raise SimulationError(f"agent {self.agent_id!r} {problem}")

        wording: Wording = turns.answers.wording
        if max_length is not None:
            wording = replace(wording, max_length=max_length)
        if (most := turns.answers.memory) and (words := remembered(self.memories(most + 1), most)):
            prompt = f"{words}\n\n{prompt}"
        persona = self.persona()
        call = wording.call(self, key, prompt, persona=persona, schema=schema, fallback=template)
        return (await Writing(self, call)).value

    async def receive(self) -> Message | None:
        """Wait, within the tick, for the next message.

        Returns:
            The oldest message, removed from the inbox, or None if nobody sends one in this tick.
        """
        return cast("Message | None", await Receiving(self))

    def send(self, to: Agent, content: Any = None) -> None:
        """Send a message, which is in the other agent's inbox at once.

        In a ``together`` world it arrives at the end of the tick.

        Args:
            to: The recipient.
            content: Its content.
        """
        send(self.world._run_turns, Message(self, content), to)

    def remember(self, text: str) -> None:
        """Store a note in the agent's memory for a model; the last 50 are kept.

        The ``memory`` of `Reasoner` puts them into prompts. In a ``together`` world it is stored at
        the end of the tick.
        """
        turns = self.world._run_turns
        turns.defer(lambda: self._note(text), turns.acting or self)

    def _note(self, text: str) -> None:
        if not self._notes:
            cast(Any, self)._notes = deque(maxlen=HISTORY_DEPTH)
        cast(Any, self)._notes.append(" ".join(text.split()))

    def leave(self) -> None:
        """Leave the run: it is out of all sets, counts, spaces and the network at once.

        In a ``together`` world it leaves at the end of the tick.
        """
        self.world._run_turns.leave(self)

    def begin_in(self, state: Any) -> None:
        """Begin in a state other than the chart's initial one.

        It belongs in `World.populate` or `World.setup`, and before `World.add`.

        Args:
            state: A leaf state or, in a chart with regions, a configuration:
                ``chart.state_of("feed+tired")``.

        Raises:
            SimulationError: If the agent is in a run that has begun.
            DefinitionError: If the chart does not have this state.
        """
        turns = None if self.world is None else self.world._run_turns
        if turns is not None and turns.has_begun:
            problem = "is in a run that has begun, where fire changes states: begin_in is for setup"
            raise SimulationError(f"{self.agent_id!r} {problem}")
        chart = type(self).chart
        are_leaves = all(map(chart.definition.leaves_of, leaves_in(state)))
        if not (are_leaves and chart.can_be_in(state)):
            raise DefinitionError(f"chart {chart.name!r} of {type(self).__name__} has no {state!r}")

        me: Any = self
        me._begin_state = state
        if turns is not None:
            me.state = state

    def __repr__(self) -> str:
        """Show its kind, id and state."""
        where = f" in {self.state}" if self.state else ""
        return f"<{type(self).__name__} {self.agent_id or '?'}{where}>"
