"""What an agent is doing while it thinks: a live view on a terminal, a line a cycle elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prism.cli._screen import Screen, counted, note, plain, shortened

if TYPE_CHECKING:
    from prism.cognition import CognitiveAgent, Config, Cycle

_REFRESHES_PER_SECOND = 4
_AVERAGED = 20
_MOST_THOUGHT = 240
_MOST_ON_LINE = 60
_BAR = 24


_WITHOUT_REPLY = ("unusable", "failed")


class ThinkView:
    """Shows every cycle of an agent as it ends.

    On a terminal it is a panel that is drawn again and again, and goes when the run has ended; with
    a standard error that is no terminal it is a line a cycle.

    Args:
        run: The run of cycles.
        agent: The agent.
    """

    def __init__(self, run: Any, agent: CognitiveAgent) -> None:
        self._run = run
        self._agent = agent
        self._since = monotonic()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        """Draw the panel, if there is a terminal."""
        screen = Screen(err=True)
        if screen.is_terminal:
            self._live = Live(
                console=screen,
                get_renderable=self._panel,
                refresh_per_second=_REFRESHES_PER_SECOND,
                transient=True,
            )
            self._live.start()

        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the panel away."""
        if self._live is not None:
            self._live.stop()

    def round_ended(self, summary: Cycle) -> None:
        """Show the result of a cycle."""
        self._since = monotonic()
        if self._live is None:
            note(_line(summary, self._run))
        else:
            self._live.refresh()

    def kept(self) -> str:
        """Return what of the run is in the memory's file; empty if there is none."""
        memory = self._agent.memory
        if memory.path is None:
            return ""

        return f"{_from_here(memory.path)} holds {counted(memory.cycle, 'cycle')}"

    def _panel(self) -> RenderableType:
        agent, cycles, total = self._agent, self._run.finished, self._run.rounds
        last: Cycle | None = cycles[-1] if cycles else None
        memory = tokens = ""
        if last is not None:
            memory = f"{last.memories:,} in working memory, {counted(last.thoughts, 'thought')}"
            used = [_tokens_of(each) for each in cycles[-_AVERAGED:]]
            average = sum(used) / len(used)
            tokens = f"{used[-1]:,} in this cycle, {average:,.0f} a cycle lately"

        thought = next((each.thought for each in reversed(cycles) if each.thought), "")
        failure = _failure_of(last)
        rows: dict[str, RenderableType] = {
            "cycle": _beside(f"{len(cycles):,}/{total:,}", len(cycles), total),
            "state": plain(f"{agent.state.value}, for {monotonic() - self._since:.0f} s"),
            "thought": plain(shortened(thought, _MOST_THOUGHT)),
            "action": plain(_action_of(last)),
            **({} if failure is None else {"failed": plain(shortened(failure, _MOST_THOUGHT))}),
            "memory": memory,
            "prompt": _size(cycles, agent.config),
            "tokens": tokens,
        }
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        for row in rows.items():
            table.add_row(*row)

        return Panel(table, title=plain(agent.agent_id), title_align="left")


def _size(cycles: Sequence[Cycle], config: Config) -> RenderableType:
    """Return the size of the last prompt beside its limits."""
    sizes = (
        each.paged[-1].tokens_after if each.paged else each.prompt_tokens
        for each in reversed(cycles)
    )
    size = next((each for each in sizes if each is not None), None)
    if size is None:
        return ""

    limits = {"paging": config.paging_limit, "hard": config.hard_limit}
    enabled = {name: each.max_tokens for name, each in limits.items() if each.enable}
    told = [f"{size:,} tokens", *(f"{name} limit {most:,}" for name, most in enabled.items())]
    text = ", ".join(told)

    return _beside(text, size, next(iter(enabled.values()))) if enabled else text


def _beside(text: str, done: int, total: int) -> Group:
    """Return a text with a bar below it."""
    return Group(Text(text), ProgressBar(total=total, completed=min(done, total), width=_BAR))


def _line(cycle: Cycle, run: Any) -> str:
    """Return a cycle as one line."""
    parts = [f"cycle {len(run.finished):,}/{run.rounds:,}: {cycle.state} -> {cycle.next_state}"]
    if cycle.prompt_tokens is not None:
        parts.append(f"a prompt of {cycle.prompt_tokens:,} tokens")
    parts += [
        f"{len(paged.moved_out)} paged out, {len(paged.moved_in)} in" for paged in cycle.paged
    ]
    if cycle.action is not None:
        parts.append(_action_of(cycle))
    if (failure := _failure_of(cycle)) is not None:
        parts.append(f"{cycle.outcome}: {failure}")
    if cycle.thought:
        parts.append(shortened(cycle.thought, _MOST_ON_LINE))

    return "; ".join(parts)


def _failure_of(cycle: Cycle | None) -> str | None:
    """Return why there was no reply, or none of use; None if there was one."""
    return cycle.reason if cycle is not None and cycle.outcome in _WITHOUT_REPLY else None


def _action_of(cycle: Cycle | None) -> str:
    if cycle is None or cycle.action is None:
        return "" if cycle is None or not cycle.paged else _pagings_of(cycle)

    action = cycle.action
    told = f"{action.type or 'an action without a type'} {action.tags}".strip()
    return told if action.outcome == "done" else f"{told}, {action.outcome}: {action.reason}"


def _pagings_of(cycle: Cycle) -> str:
    went = [tag for paged in cycle.paged for tag in paged.moved_out]
    came = [tag for paged in cycle.paged for tag in paged.moved_in]
    parts = [f"paged out {', '.join(went)}"] if went else []
    parts += [f"paged in {', '.join(came)}"] if came else []
    return "; ".join(parts) or "paged nothing"


def _tokens_of(cycle: Cycle) -> int:
    cost: Any = cycle.cost
    return 0 if cost is None else int(cost.tokens)


def _from_here(path: Path) -> Path:
    """Return a path as short as it can be from the current folder."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
