"""A cycle: its states, its steps, its result, and when a run of cycles is over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import takewhile
from typing import Literal

from prism.errors import BudgetSpentError, FieldValueError
from prism.programs._documents import require_count
from prism.programs._layer import Step
from prism.programs.thinking._actions import ActionResult
from prism.programs.thinking._config import Config
from prism.programs.thinking._memory import Memory, Progress, to_text
from prism.programs.thinking._prompts import Paged
from prism.reasoner import Cost
from prism.reasoner.wording import shortened
from prism.statechart import Statechart, Transition

CycleOutcome = Literal["done", "refused", "unusable", "failed"]

MOST_USELESS = 5
"""How many useless cycles in a row end a run."""

MOST_IDLE = 20
"""How many cycles in a row without an action that has an effect end a run."""


class CognitiveState(StrEnum):
    """The states of a thinking agent."""

    THINKING = "thinking"
    EXECUTING = "executing"
    PAGING = "paging"


@cache
def cognitive_chart() -> Statechart[CognitiveState]:
    """Return the chart on which a `CognitiveAgent` moves."""
    thinking, executing, paging = CognitiveState
    rows = [
        *(Transition("think", thinking, state) for state in CognitiveState),
        Transition("overflow", thinking, paging),
        Transition("execute", executing, thinking),
        Transition("page", paging, thinking),
    ]
    return Statechart(CognitiveState, rows, thinking, name="cognition")


def _step(name: str, state: str) -> Step:
    asks = state != "paging"
    return Step(name=name, kind=state, states=frozenset((state,)), asks=asks, trigger=name)


STEPS = _step("page", "paging"), _step("execute", "executing"), _step("think", "thinking")


def state_of(memory: Memory) -> CognitiveState | None:
    """Return the state that a memory names, in whatever case; None if there is no such state."""
    name = memory.state.strip().lower()
    return CognitiveState(name) if name in list(CognitiveState) else None


@dataclass(frozen=True, slots=True)
class Cycle:
    """The result of a cycle.

    Args:
        number: The cycle, counted from 1 over the memory's life.
        state: State that it ran in: ``thinking``, ``executing`` or ``paging``.
        next_state: State after it.
        outcome: ``done``; ``refused`` if nothing that the reply asked for could be done;
            ``unusable`` if it was useless; ``failed`` if none came, or an error was raised.
        reason: Why it was not done, in words.
        failure: The name of the exception by which no useful reply came.
        thought: The thought that was added to the log.
        action: The result of the requested action.
        paged: The memories that moved between working memory and storage.
        prompt_tokens: Tokens of the prompt by the agent's own count; None if no model was asked.
        repeats: What the cycle only repeats, in words; None if it brought something new.
        cost: What the model took, if one was asked.
    """

    number: int
    state: str
    next_state: str
    outcome: CycleOutcome = "done"
    reason: str | None = None
    failure: str | None = None
    thought: str | None = None
    action: ActionResult | None = None
    paged: tuple[Paged, ...] = ()
    prompt_tokens: int | None = None
    repeats: str | None = None
    cost: Cost | None = None

    @property
    def transitions(self) -> int:
        """Number of transitions from one state to another."""
        overflows = any(paged.why == "soft_limit" for paged in self.paged)
        return (self.state != self.next_state) + overflows

    @property
    def has_acted(self) -> bool:
        """Whether an action was carried out in it."""
        return self.state == "executing" and self.outcome == "done"

    @property
    def brought_nothing(self) -> str | None:
        """Why it was useless; None if it was not."""
        if self.outcome != "done":
            return self.reason or self.outcome
        acted = self.action if self.has_acted else None
        return (acted and acted.reason) or self.repeats

    def tell(self, progress: Progress) -> None:
        """Note for the next prompt what was done, and the result."""
        result = self.action
        where, lines = f"In cycle {self.number} ({self.state}): ", list[str]()
        if result is not None and result.type:
            # of an action of the application, only its fields say what it was about
            what = _short(f"{result.type} {result.tags or to_text(result.fields or '')}".strip())
            # what was found may not fit into the prompt, but its tags do
            text = f"It found {', '.join(result.matches)}" if result.matches else None
            reasons = map(_short, filter(None, (result.reason, result.answer, text)))
            progress.last_action = ". ".join((f"{where}{what}: {result.outcome}", *reasons))
            progress.matches = list(result.matches)
        elif self.outcome != "failed" and (reason := self.brought_nothing) is not None:
            outcome = "" if self.outcome == "done" else f"no action: {self.outcome}. "
            lines.append(f"{where}{outcome}{_short(reason)}")
        if tags := [tag for paged in self.paged for tag in paged.moved_out]:
            lines.append(_short(f"Moved to storage: {', '.join(tags)}"))
        progress.fault = "\n".join(lines)


def _short(text: str) -> str:
    return shortened(text, 300)


def reason_to_stop(cycles: Sequence[Cycle]) -> str | None:
    """Return why a run ends early; None if it continues.

    A cycle is useless if it was not ``done``, or if its thought or action repeats one or has no
    effect. A paging, and a new thought that only leads to an action, say nothing either way. New
    thoughts that never lead to an action with an effect end a run, too, only later.

    Args:
        cycles: The cycles so far.
    """
    if cycles and cycles[-1].failure == BudgetSpentError.__name__:
        return cycles[-1].reason

    useless = list(_last_useless(cycles))
    if len(useless) >= MOST_USELESS:
        reason = useless[0].brought_nothing
        return f"{len(useless)} cycles in a row had no effect; the last one: {reason}"
    idle = takewhile(lambda cycle: not cycle.has_acted or cycle.brought_nothing, reversed(cycles))
    if (number := len(list(idle))) >= MOST_IDLE:
        return f"{number} cycles in a row have only words: no action had an effect"
    return None


def _last_useless(cycles: Sequence[Cycle]) -> Iterator[Cycle]:
    for cycle in reversed(cycles):
        if cycle.brought_nothing:
            yield cycle
        elif cycle.state != "paging" and cycle.next_state != "executing":
            return


def number_of_cycles(config: Config, cycles: int | None) -> int:
    """Return how many cycles a run has.

    Args:
        config: Its configuration, whose ``iterate`` is the most.
        cycles: How many are asked for, if a number is.

    Raises:
        FieldValueError: If neither says how many, or it is no whole number from 1 on.
    """
    most = config.iterate.max_iterations if config.iterate.enable else None
    bounds = [each for each in (require_count("cycles", cycles), most) if each is not None]
    if not bounds:
        raise FieldValueError("give a number of cycles: iterate.max_iterations has none")
    return min(bounds)
