"""Decisions, texts and messages: what steps wait for, who answers, and what follows."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from math import inf
from typing import Any

from prism.errors import AgentError, DefinitionError, FieldValueError, SimulationError
from prism.reasoner import BaseWriter, PolicyReasoner, Question, TextCall, Wording, Written
from prism.reasoner.asking import all_of
from prism.reasoner.prompts import in_words, stay_in_words
from prism.reasoner.texts import fallback_text
from prism.reasoner.wording import USUAL_WORDING
from prism.statechart import Configuration
from prism.statechart.names import identify
from prism.statechart.reporting import Reporter
from prism.statechart.states import state_text
from prism.telemetry.events import MESSAGE_SENT
from prism.worlds._agent_set import leaves_in, unknown_state
from prism.worlds.arguments import parameter_values

_MOST_CONTENT = 2_000
"""Most characters of a message that are logged."""


# What steps wait for


class Waits:
    """What a step waits for: the step yields it, and is sent the result."""

    __slots__ = ("agent", "answer")

    agent: Any
    answer: Any

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for the answer."""
        return (yield self)

    def result(self) -> Any:
        """Return the value with which the step continues."""

    def __repr__(self) -> str:
        """Say where it belongs, as asyncio shows it if it is awaited elsewhere."""
        return f"<what {self.agent!r} waits for: await it in a step, and activate agents in tick>"


class Deciding(Waits):
    """A decision. It is carried out at once if nothing is left to decide.

    It has the form of a question, for a policy.
    """

    __slots__ = ("context", "options", "prompt", "since", "state", "trigger", "turns", "weights")

    options: tuple[Any, ...]
    state: Any
    since: Any

    def __init__(
        self,
        agent: Any,
        trigger: str,
        context: Any,
        weights: Mapping[Any, float] | None,
        prompt: str | None,
    ) -> None:
        self.agent: Any = agent
        self.trigger: str = trigger
        self.context: Any = context
        self.weights: Mapping[Any, float] | None = weights
        self.prompt: str | None = prompt
        self.turns: Any = agent.world._run_turns

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for the decision."""
        settled = self.settle()
        return (yield self) if settled is self else settled

    @property
    def chart(self) -> Any:
        """The definition of the agent's chart."""
        return self.agent._kind.chart.definition

    def settle(self) -> Any:
        """Carry out what leaves nothing to decide; return the new state, or the decision itself."""
        agent = self.agent
        # without the table, decisions took a sixth of the time of a rumour more
        options = agent._kind.choices.get((agent.state, self.trigger))
        if options is None or agent.has_left:
            options = self._options()
        if len(options) < 2:
            return self.turns.fire(agent, self.trigger, self.context)

        self.options = options
        if self.weights is not None:
            self._require_weights(self.weights)
        self.state, self.since = agent.state, _last_of(agent)
        return self

    def _options(self) -> Sequence[Any]:
        """Return the targets among which the agent decides; none where the chart decides.

        Raises:
            DefinitionError: If the first of several targets would always be taken.
        """
        agent, kind = self.agent, self.agent._kind
        state, chart = agent.state, kind.chart
        if agent.has_left:
            return ()
        is_decided = isinstance(state, Configuration) and chart.decides(state)
        if is_decided or state in chart.decision_states:
            return tuple(chart.enabled_targets(agent, self.trigger, self.context))
        if (state, self.trigger) in kind.choices:
            problem = f"{self.trigger!r} leads from {state_text(state)!r} to several states"
            cure = f"nobody decides: add decision_states=[{type(state).__name__}.{state.name}]"
            raise DefinitionError(f"chart {chart.name!r}: {problem}, but {cure}")
        return ()

    def _require_weights(self, weights: Mapping[Any, float]) -> None:
        """Refuse weights by which nothing can be drawn.

        Raises:
            FieldValueError: If one of a target is no number, 0 or more, or if all are 0.
            UnknownStateError: If one is of a state that the chart does not have.
        """
        parts = [weights.get(each, 0.0) for each in self.options]
        if len(weights) > len(parts) or 0.0 in parts:
            others = [each for each in weights if each not in self.options]
            for leaf in (leaf for state in others for leaf in leaves_in(state)):
                if not self.chart.leaves_of(leaf):
                    raise unknown_state(leaf, [self.chart])
        if not (min(parts) >= 0 and 0 < sum(parts) < inf):
            options = ", ".join(map(state_text, self.options))
            whose = f"the weights of {self.agent.agent_id!r} for {self.trigger!r}"
            problem = f"must be 0 or more, and above 0 for one of {options}: {dict(weights)}"
            raise FieldValueError(f"{whose} {problem}")

    def question(self, parameters: Mapping[str, Any]) -> Question:
        """Return the decision as a reasoner is asked, in a world with these parameters."""
        memories = self.agent.memories if self.turns.remembers else None
        about = self.agent, self.state, self.trigger, self.options, self.context, self.weights
        return Question(*about, self.prompt, self.chart, parameters, memories)

    @property
    def is_stale(self) -> bool:
        """Whether the agent has moved since it was asked, even if it has returned."""
        if _last_of(self.agent) is self.since:
            return False
        chart = self.agent._kind.chart
        return bool(chart.has_moved(self.agent, self.state, self.trigger, self.since))

    def result(self) -> Any:
        """Make the decided transition, now or at the end of the tick; return the new state."""
        if self.turns.deferred is None:
            return self._apply()
        self.turns.defer(self._apply, self.agent)
        return self.answer

    def _apply(self) -> Any:
        """Make the decided transition, unless the agent has moved or left."""
        agent, turns = self.agent, self.turns
        if agent.has_left or self.is_stale:
            self.discard("left" if agent.has_left else "moved")
            return None
        if turns.remembers and self.answer == self.state:
            agent._note(stay_in_words(self.state, self.trigger, self.context))
        turns.made[self.trigger] += 1
        chart = self.agent._kind.chart
        # twice as fast where no other region has moved, which is 3 % of a rumour
        if agent.state is self.state:
            made = chart.fire(agent, self.trigger, self.context, self.answer)
            if made is None:
                self.discard("not_enabled")
            return made
        return chart.fire_to(agent, self.trigger, self.answer, self.context, asked_in=self.state)

    def discard(self, reason: str) -> None:
        """Log an answer that no longer applies."""
        if (log := self.turns.events).are_heard:
            reporter = Reporter(self.chart.name, log.logger)
            reporter.discarded(self.agent, self.trigger, self.state, self.answer, reason)


def _last_of(agent: Any) -> Any:
    """Return the last transition of an agent; None before the first."""
    history = agent.state_history
    return history[-1] if history else None


class Writing(Waits):
    """A text that an agent is to write."""

    __slots__ = ("call",)

    answer: Written

    def __init__(self, agent: Any, call: TextCall) -> None:
        self.agent: Any = agent
        self.call: TextCall = call

    def result(self) -> Written:
        """Return the text, and let the agent remember it."""
        if self.agent.world._run_turns.remembers and isinstance(self.answer.value, str):
            self.agent._note(f'You wrote: "{self.answer.value}"')
        return self.answer


class Receiving(Waits):
    """A wait for a message."""

    __slots__ = ()

    def __init__(self, agent: Any) -> None:
        self.agent = agent

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for the oldest message."""
        if not self.agent.inbox:
            yield self
        return self.agent.inbox.popleft() if self.agent.inbox else None


# Who answers


class TemplateWriter(BaseWriter):
    """The writer without a model, which returns the template of every text."""

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Return the templates, or a failure for a call without one."""
        return [
            Written(None, "failed", reason="there is no model")
            if call.fallback is None
            else Written(fallback_text(call), "template", call.fallback)
            for call in calls
        ]


class Answers:
    """The reasoner and the writer of a run.

    Args:
        reasoner: Makes the decisions.
        writer: Writes the texts, or None.
        wording: Length and language of texts for calls that do not specify them.

    Attributes:
        has_writer: Whether there is a writer.
        memory: How many of the last things an agent remembers in prompts.
        writer: Writes the texts, or takes their templates.
    """

    def __init__(self, reasoner: Any, writer: BaseWriter | None, wording: Wording | None) -> None:
        self.reasoner: Any = reasoner
        self.wording: Wording = wording or USUAL_WORDING
        self.has_writer: bool = writer is not None
        self.memory: int = getattr(reasoner, "memory", 0)
        self.writer: BaseWriter = writer or TemplateWriter()
        # a derived class may answer in its own way
        self.policy: PolicyReasoner | None = reasoner if type(reasoner) is PolicyReasoner else None

    @property
    def concurrency(self) -> int:
        """How many requests are worth sending at the same time, or 0 if answers come at once."""
        return max(getattr(self.reasoner, "concurrency", 0), self.writer.concurrency)

    async def ask(self, turns: Any, asking: Sequence[Deciding], writing: Sequence[Writing]) -> None:
        """Ask for decisions and texts together, and note, count and log the answers."""
        turns.acting = None
        turns.counts["decisions_asked"] += len(asking)
        turns.counts["decisions_answered"] += len(asking)
        if asking and self.policy is not None:
            chosen = self.policy.choose(asking, turns.events.logger)
            for each, answer in zip(asking, chosen, strict=True):
                each.answer = answer
            asking = ()
        if not (asking or writing):
            return

        calls = [each.call for each in writing]
        _, texts = await all_of([self._decide(turns, asking), self.writer.answer(calls)])
        # logged only after the decisions, so the log does not depend on which came first
        if calls:
            self.writer.announce(calls, texts, logger=turns.events.logger)
        for text, written in zip(writing, texts, strict=True):
            text.answer = written
            turns.texts[written.source] += 1

    async def _decide(self, turns: Any, pending: Sequence[Deciding]) -> None:
        """Let the reasoner decide."""
        if not pending:
            return
        parameters = parameter_values(turns.world)
        questions = [each.question(parameters) for each in pending]
        decisions = await self.reasoner.decide_many(questions, logger=turns.events.logger)
        for each, decision in zip(pending, decisions, strict=True):
            each.answer = decision.chosen
            if decision.source == "fallback":
                where = f" at {decision.cost.host}" if decision.cost and decision.cost.host else ""
                turns.counts["decisions_answered"] -= 1
                turns.fallbacks[f"{decision.failure or 'other'}{where}"] += 1


# Messages


@dataclass(slots=True)
class Message:
    """A message from one agent to another.

    Args:
        sender: The agent that sent it.
        content: Its content.
    """

    sender: Any
    content: Any = None


def send(turns: Any, message: Message, to: Any) -> None:
    """Deliver a message now, or at the end of the tick.

    Raises:
        AgentError: If the recipient is not an agent of the run.
    """
    if getattr(to, "world", None) is not turns.world:
        raise AgentError(f"the receiver of a message must be an agent of the world, got {to!r}")
    if turns.refusing is not None:
        raise SimulationError(f"nothing can be sent: {turns.refusing}")
    turns.defer(lambda: _deliver(turns, message, to), message.sender)


def _deliver(turns: Any, message: Message, to: Any) -> None:
    if to.has_left:
        return
    to.inbox.append(message)
    if turns.remembers:
        content = in_words(message.content)
        message.sender._note(f"You told {to.name}: {content}")
        to._note(f"{message.sender.name} told you: {content}")
    if turns.events.are_heard:
        (content,) = (identify({"content": message.content}) or {}).values()
        text = content if isinstance(content, str) else dumps(content, ensure_ascii=False)
        content = text[:_MOST_CONTENT] if len(text) > _MOST_CONTENT else content
        sender = message.sender.agent_id
        turns.events.emit(MESSAGE_SENT, agent_id=sender, receiver=to.agent_id, content=content)
