"""What an agent is doing while it thinks: a line a cycle."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from prism.cli._screen import counted, note, shortened

if TYPE_CHECKING:
    from prism.programs.thinking import CognitiveAgent, Cycle

_MOST_ON_LINE = 60

_WITHOUT_REPLY = ("unusable", "failed")


class ThinkView:
    """Shows every cycle of an agent as it ends, as a line on standard error.

    Args:
        run: The run of cycles.
        agent: The agent.
    """

    def __init__(self, run: Any, agent: CognitiveAgent) -> None:
        self._run = run
        self._agent = agent

    def __enter__(self) -> Self:
        """Begin; there is nothing to show yet."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End; what was shown stays."""

    def round_ended(self, summary: Cycle) -> None:
        """Show the result of a cycle."""
        note(_line(summary, self._run))

    def kept(self) -> str:
        """Return what of the run is in the memory's file; empty if there is none."""
        memory = self._agent.memory
        if memory.path is None:
            return ""

        return f"{_from_here(memory.path)} holds {counted(memory.cycle, 'cycle')}"


def _line(cycle: Cycle, run: Any) -> str:
    """Return a cycle as one line."""
    parts = [f"cycle {len(run.finished):,}/{run.rounds:,}: {cycle.state} -> {cycle.next_state}"]
    if cycle.prompt_tokens is not None:
        parts.append(f"a prompt of {cycle.prompt_tokens:,} tokens")
    parts += [
        f"{len(paged.moved_out)} paged out, {len(paged.moved_in)} in" for paged in cycle.paged
    ]
    if cycle.action is not None:
        parts.append(_action_of(cycle.action))
    if (failure := _failure_of(cycle)) is not None:
        parts.append(f"{cycle.outcome}: {failure}")
    if cycle.thought:
        parts.append(shortened(cycle.thought, _MOST_ON_LINE))

    return "; ".join(parts)


def _failure_of(cycle: Cycle) -> str | None:
    """Return why there was no reply, or none of use; None if there was one."""
    return cycle.reason if cycle.outcome in _WITHOUT_REPLY else None


def _action_of(action: Any) -> str:
    told = f"{action.type or 'an action without a type'} {action.tags}".strip()
    return told if action.outcome == "done" else f"{told}, {action.outcome}: {action.reason}"


def _from_here(path: Path) -> Path:
    """Return a path as short as it can be from the current folder."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
