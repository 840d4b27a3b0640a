"""The result of a cycle, when cycles are useless, and the results of many."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from prism.programs._layer import counted
from prism.programs.thinking._actions import ActionResult
from prism.programs.thinking._paging import Paged
from prism.reasoner._spending import Cost

CycleOutcome = Literal["done", "refused", "unusable", "failed"]

MOST_USELESS = 5
"""How many useless cycles in a row end a run."""

_SPENT = "BudgetSpentError"


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
        repeats: What the cycle only repeats, in words; None if it brought something new.
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
    repeats: str | None = None
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
        return self.state == "executing" and self.outcome == "done"

    @property
    def brought_nothing(self) -> str | None:
        """Why it was useless; None if it was not."""
        if self.outcome != "done":
            return self.reason or self.outcome
        if self.has_acted and self.action is not None and self.action.reason:
            return self.action.reason
        return self.repeats


def reason_to_stop(cycles: Sequence[Cycle]) -> str | None:
    """Return why a run ends early; None if it continues.

    A cycle is useless if it was not ``done``, or if its thought or action repeats one or has no
    effect. A paging, and a new thought that only leads to an action, say nothing either way.

    Args:
        cycles: The cycles so far.
    """
    last = cycles[-1] if cycles else None
    if last is not None and (last.reason or "").startswith(_SPENT):
        return last.reason

    useless = list(_last_useless(cycles))
    if len(useless) < MOST_USELESS:
        return None
    reason = useless[0].brought_nothing
    return f"{len(useless)} cycles in a row had no effect; the last one: {reason}"


def _last_useless(cycles: Sequence[Cycle]) -> Iterator[Cycle]:
    for cycle in reversed(cycles):
        if cycle.brought_nothing:
            yield cycle
        elif cycle.state != "paging" and cycle.next_state != "executing":
            return


@dataclass(frozen=True, slots=True)
class CognitiveResults:
    """The results of a run of cycles.

    Args:
        agent_id: The agent.
        cycles: Cycles that the run had.
        cycle: Cycles over the memory's life.
        state: The agent's final state.
        transitions: Transitions between states.
        outcomes: How often cycles were ``done``, ``refused``, ``unusable`` or ``failed``.
        actions: How often actions were ``done``, ``missing`` or ``refused``.
        pagings: How often memories moved, to keep within a limit or because a reply asked for it.
        tokens: Tokens that the model read and wrote, if known.
        memories: Entries of working memory at the end.
        thoughts: Entries of the log at the end.
        stored: Entries of storage at the end.
        stopped: Why the run ended early; None if it did not.
    """

    agent_id: str
    cycles: int
    cycle: int
    state: str
    transitions: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    actions: Mapping[str, int] = field(default_factory=dict)
    pagings: int = 0
    tokens: int = 0
    memories: int = 0
    thoughts: int = 0
    stored: int = 0
    stopped: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, for ``run.json``."""
        return asdict(self)

    def totals(self) -> dict[str, int]:
        """Return the counts that end the log of every run."""
        return {"agent_ticks": self.cycles, "transitions": self.transitions}

    @classmethod
    def of(cls, agent: Any, cycles: Sequence[Cycle], stopped: str | None = None) -> Self:
        """Return the results of an agent's cycles.

        Args:
            agent: The `CognitiveAgent`, after the last of them.
            cycles: The cycles.
            stopped: Why the run ended early, if it did.
        """
        return cls(
            agent_id=agent.agent_id,
            cycles=len(cycles),
            cycle=agent.memory.cycle,
            state=agent.state.value,
            transitions=sum(cycle.transitions for cycle in cycles),
            outcomes=counted(cycle.outcome for cycle in cycles),
            actions=counted(c.action.outcome for c in cycles if c.action is not None),
            pagings=sum(len(cycle.paged) for cycle in cycles),
            tokens=sum(cycle.cost.tokens for cycle in cycles if cycle.cost is not None),
            memories=len(agent.memory.working),
            thoughts=len(agent.memory.thoughts),
            stored=len(agent.memory.storage),
            stopped=stopped,
        )
