"""One cycle: what its reply asks for, and what becomes of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from prism.cognition._actions import ActionResult, carry_out, problem_of
from prism.cognition._chart import (
    ACTED,
    EXECUTE,
    FAULT,
    OVERFLOW,
    PAGED,
    THINK,
    CognitiveState,
)
from prism.cognition._memory._memory import Memory
from prism.cognition._own_actions import ActionRefusedError
from prism.cognition._paging import Fitted, Paged, PagingReason
from prism.cognition._replies import AgentReply, AskedAction
from prism.statechart.reasoner._spending import Cost
from prism.statechart.reasoner._texts import Written
from prism.telemetry.events import COGNITION_ACTION, COGNITION_PAGED, COGNITION_REFUSED

CycleOutcome = Literal["done", "refused", "unusable", "failed"]

_TRIGGERS = {
    CognitiveState.THINKING.value: THINK,
    CognitiveState.EXECUTING.value: EXECUTE,
    CognitiveState.PAGING.value: OVERFLOW,
}
"""What fires when a reply names the next state."""

REPEATED = "it repeats the last thought"
"""The defect of a cycle that brings nothing new."""

_SPENT = "BudgetSpentError"
_BETWEEN_WORDS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Cycle:
    """The result of a cycle.

    Args:
        number: The cycle, counted from 1 over the memory's life.
        state: State that it ran in: ``thinking``, ``executing`` or ``paging``.
        next_state: State after it.
        outcome: ``done``; ``refused`` if nothing that the reply asked for could be done;
            ``unusable`` if it was useless; ``failed`` if none came, or an error was raised.
        reason: Why it was not done.
        thought: The thought that was added to the log.
        action: The result of the requested action.
        paged: The memories that moved between working memory and storage.
        prompt_tokens: Tokens of the prompt by the agent's own count; None if no model was asked.
        memories: Entries of working memory afterwards.
        thoughts: Entries of the log afterwards.
        defects: Flaws of the reply that were mended.
        cost: What the model took, if one was asked.
    """

    number: int
    state: str
    next_state: str
    outcome: CycleOutcome = "done"
    reason: str | None = None
    thought: str | None = None
    action: ActionResult | None = None
    paged: tuple[Paged, ...] = ()
    prompt_tokens: int | None = None
    memories: int = 0
    thoughts: int = 0
    defects: tuple[str, ...] = ()
    cost: Cost | None = None

    @property
    def transitions(self) -> int:
        """Number of transitions from one state to another."""
        return (self.state != self.next_state) + self.has_overflowed

    @property
    def has_overflowed(self) -> bool:
        """Whether it began in thinking, and paged because the soft limit was passed."""
        return any(paged.why == "soft_limit" for paged in self.paged)

    @property
    def has_acted(self) -> bool:
        """Whether an action was carried out in it."""
        return self.state == CognitiveState.EXECUTING.value and self.outcome == "done"

    @property
    def brought_nothing(self) -> str | None:
        """Why it was useless; None if it was not."""
        if self.outcome != "done" or (self.has_acted and self.action and self.action.reason):
            return (self.action.reason if self.action else None) or self.reason or self.outcome

        return REPEATED if REPEATED in self.defects else None


def reason_to_stop(cycles: Sequence[Cycle], limit: int) -> str | None:
    """Return why a run ends early; None if it continues.

    A cycle brings nothing that was not ``done``, whose thought is the last one again, or whose
    action found nothing or changed nothing. A paging counts neither way.

    Args:
        cycles: Its cycles so far.
        limit: How many in a row may bring nothing.
    """
    last = cycles[-1] if cycles else None
    if last is not None and (last.reason or "").startswith(_SPENT):
        return last.reason

    useless = 0
    for cycle in reversed(cycles):
        if cycle.brought_nothing:
            useless += 1
        elif cycle.state != CognitiveState.PAGING.value:
            break
    if last is None or useless < limit:
        return None

    return f"{useless} cycles in a row had no effect; the last one: {last.brought_nothing}"


class CycleUnderWay:
    """A cycle that has not ended yet: where the chart's guards and actions find what is asked for.

    Args:
        agent: The `CognitiveAgent`, which makes it.

    Attributes:
        number: The cycle.
        state: State that it runs in.
        why: Why it pages, if it does.
        fitted: The prompt, if a model was asked.
        written: What the model wrote, if it was asked.
        action: The action that is to be carried out.
        is_broken_off: Whether an error of the program has ended it.
    """

    def __init__(self, agent: Any) -> None:
        self.number: int = agent.memory.cycle + 1
        self.state: CognitiveState = agent.state
        self.why: PagingReason = "asked"
        self.fitted: Fitted | None = None
        self.written: Written | None = None
        self.action: AskedAction | None = None
        self._agent = agent
        self._pager = agent._pager
        self._fire = agent._fire
        self._say = agent._say
        self._reply = AgentReply()
        self.is_broken_off: bool = False
        self._outcome: CycleOutcome = "done"
        self._reason: str | None = None
        self._thought: str | None = None
        self._result: ActionResult | None = None
        self._paged: list[Paged] = []
        self._defects: list[str] = []

    def conclude(self) -> None:
        """Do what the reply asks for, as far as the chart allows it."""
        # what did not fit into the prompt goes first: the model wrote without having seen it
        if self.fitted is not None:
            self._tell_paged(self._pager.make_room(self._agent.memory, self.fitted))
        if self.written is not None and not self.written.has_failed:
            self._reply = self.written.value
            self._defects += self._reply.defects

        self._conclude_state()
        # what a paging by use has moved is told beside the last action
        if self.state is not CognitiveState.PAGING or self.written is not None:
            self._note_result()

    def _conclude_state(self) -> None:
        # a paging without a reply is one by use
        if self.state is CognitiveState.PAGING:
            self._fire(PAGED)
        elif (failure := self._failure_to_write()) is not None:
            self._end("failed", failure)
        elif self.state is CognitiveState.THINKING:
            self._think()
        else:
            self._execute()

    def break_off(self, error: str) -> None:
        """Note that an error of the program has ended the cycle.

        Args:
            error: The exception on one line.
        """
        self._outcome, self._reason, self.is_broken_off = "failed", error, True

    def result(self) -> Cycle:
        """Return the result of the cycle."""
        memory = self._agent.memory

        return Cycle(
            self.number,
            self.state.value,
            self._agent.state.value,
            self._outcome,
            self._reason,
            self._thought,
            self._result,
            tuple(self._paged),
            None if self.fitted is None else self.fitted.prompt.tokens,
            len(memory.working),
            len(memory.thoughts),
            tuple(self._defects),
            None if self.written is None else self.written.cost,
        )

    # What the chart's actions do

    def note_thought(self) -> None:
        """Add the thought of the reply to the log, if it has one."""
        log, thought = self._agent.config.thinking_log, self._reply.thinking_log
        if thought is None or not _has_text(thought):
            return

        self._thought = thought
        if [*self._agent.memory.thoughts.values()][-1:] == [thought]:
            self._defects.append(REPEATED)
        # what an agent thinks of counts as used: by use, it is the last to go
        self._agent.memory.touch(_mentioned(self._agent.memory, thought))
        if log.enable:
            self._agent.memory.think(
                thought, key_prefix=log.key_prefix, max_entries=log.max_entries
            )

    def act(self) -> None:
        """Carry out the action that is asked for."""
        assert self.action is not None
        own = self._agent.actions.get(self.action.type)
        if own is None:
            self._result = carry_out(self._agent.memory, self.action)
        else:
            try:
                self._result = self._agent.carry_out(own, self.action)
            except ActionRefusedError as error:
                self._refuse(self.action, str(error))
                self._outcome, self._reason = "refused", str(error)
                return

        done = self._result
        keys: dict[str, Any] = {} if own is None else {"fields": dict(self.action.fields)}
        if done.answer is not None:
            keys["answer"] = done.answer
        if done.found:
            keys["found"] = list(done.found)
        self._say(
            COGNITION_ACTION,
            type=done.type,
            tags=done.tags,
            outcome=done.outcome,
            reason=done.reason,
            **keys,
        )

    def page(self) -> None:
        """Move memories between working memory and storage."""
        reason = None if self.written is None else self._problem_of_paging()
        asked = None if self.written is None or reason is not None else self._reply.action
        self._tell_paged(self._pager.page(self._agent.memory, self.why, asked, reason))

    # What a reply asks for

    def _think(self) -> None:
        reply, refusal = self._reply, None
        if reply.action is not None:
            refusal = "an action is carried out while executing, not while thinking"
            self._refuse(reply.action, refusal)

        if reply.next_state is not None or _has_text(reply.thinking_log):
            self._fire(self._trigger())
        elif refusal is not None:
            self._end("refused", refusal)
        else:
            self._end("unusable", "the reply has neither next_state nor thinking_log")

    def _trigger(self) -> str:
        named = self._reply.next_state
        if named is None:
            self._defects.append("no next_state, so thinking goes on")
        elif named not in _TRIGGERS:
            self._defects.append(f"next_state {named!r} is not a state, so thinking goes on")

        return _TRIGGERS.get(named or "", THINK)

    def _execute(self) -> None:
        asked = self._reply.action
        problem = problem_of(
            asked,
            self._agent.memory,
            self._agent.config.available_actions,
            self._agent.actions,
            is_truncated=self._reply.is_truncated,
            fits=self._pager.has_room_for,
        )
        if problem is not None:
            self._refuse(asked, problem)
            self._end("refused", problem)
            return

        self.action = asked
        self._fire(ACTED)

    def _problem_of_paging(self) -> str | None:
        """Return why the reply cannot decide what is paged; None if it can."""
        failure = self._failure_to_write()
        if failure is not None:
            return failure
        if self._reply.is_truncated:
            return "the reply is cut off, perhaps with its action"

        problem: str | None = self._pager.problem_of(self._reply.action, self._agent.memory)
        return problem

    def _failure_to_write(self) -> str | None:
        if self.written is None or not self.written.has_failed:
            return None

        return self.written.reason or "the model wrote nothing useful"

    def _end(self, outcome: CycleOutcome, reason: str) -> None:
        self._outcome, self._reason = outcome, reason
        self._fire(FAULT)

    # Telling

    def _note_result(self) -> None:
        """Note for the next prompt what was done, and the result."""
        result = self._result or self._result_without_action()
        if result is None:
            return

        told: dict[str, Any] = {"cycle": self.number, "state": self.state.value}
        if result.type:
            told |= result.to_dict()
        else:  # the last action is still the last one
            told = {**(self._agent.memory.last_action or {}), "fault": told | result.to_dict()}
        self._agent.memory.note_action(told | _moved(self._paged))

    def _result_without_action(self) -> ActionResult | None:
        """Return what there is to tell of a cycle in which no action was carried out, if any."""
        paged = self._paging_as_asked()
        repeated = REPEATED if REPEATED in self._defects else None
        if self._outcome == "done" and paged is None and repeated is None:
            return None

        asked = self._reply.action if self.state is CognitiveState.PAGING else None
        reason = self._reason or getattr(paged, "reason", None)
        is_refused = paged is not None and reason is not None
        outcome: Any = "refused" if is_refused else self._outcome
        return ActionResult(*_named(asked), outcome, reason or repeated)

    def _paging_as_asked(self) -> Paged | None:
        return next((each for each in self._paged if each.why == "asked"), None)

    def _refuse(self, asked: AskedAction | None, reason: str) -> None:
        kind, tags = _named(asked)
        self._result = ActionResult(kind, tags, "refused", reason)
        self._say(
            COGNITION_REFUSED,
            is_warning=True,
            state=self.state.value,
            type=kind,
            tags=tags,
            reason=reason,
        )

    def _tell_paged(self, paged: Paged | None) -> None:
        if paged is None:
            return

        self._paged.append(paged)
        # the next prompt says where memories are that the last one showed
        if moved := _moved(self._paged):
            self._agent.memory.note_action({**(self._agent.memory.last_action or {}), **moved})
        told = asdict(paged).items()
        lists = {key: list(value) if isinstance(value, tuple) else value for key, value in told}
        self._say(COGNITION_PAGED, **lists)


def _moved(paged: Iterable[Paged]) -> dict[str, list[str]]:
    paged = list(paged)
    moved = {
        "moved_out": [tag for each in paged for tag in each.moved_out],
        "moved_in": [tag for each in paged for tag in each.moved_in],
    }
    return {name: tags for name, tags in moved.items() if tags}


def _named(asked: AskedAction | None) -> tuple[str, str]:
    """Return the type and the tags that a reply asks for; empty if it asks for no action."""
    return ("", "") if asked is None else (asked.type, asked.tags)


def _has_text(text: str | None) -> bool:
    return text is not None and bool(text.strip())


def _mentioned(memory: Memory, text: str) -> list[str]:
    """Return the memories whose tags a text names, with spaces or underscores between words."""
    words = f" {_words(text)} "
    return [tag for tag in memory.working if f" {_words(tag)} " in words]


def _words(text: str) -> str:
    return _BETWEEN_WORDS.sub(" ", text.lower()).strip()
