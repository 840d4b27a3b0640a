"""What a person sees: progress while a run goes on, and its results as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from prism.social import Cascade, Results, RoundSummary

_MOST_ROUNDS_SHOWN = 10
_MOST_REASONS_SHOWN = 3
_MOST_NAME = 20
_MOST_TEXT = 40


class RoundProgress:
    """A progress bar on stderr, drawn only where a person is watching.

    Args:
        rounds: Number of rounds.
        done: How many of them have ended.
    """

    def __init__(self, rounds: int, done: int = 0) -> None:
        console = Console(stderr=True)
        self._bar = Progress(
            TextColumn("round"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=rounds, completed=done)

    def round_ended(self, summary: RoundSummary) -> None:
        """Move the bar on by one round."""
        busiest = max(summary.states, key=lambda state: summary.states[state])
        self._bar.update(self._task, advance=1, description=f"most are {busiest}")

    def __enter__(self) -> Self:
        """Begin drawing."""
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing."""
        self._bar.stop()


def print_results(results: Results, folder: Path | None) -> None:
    """Print the states of every round, engagement, and the largest cascades."""
    console = Console()
    console.print(
        f"[bold]Agents in each state when a round ends[/bold] ({results.agents:,} agents)"
    )
    console.print(_states_table(results, console.width))
    console.print("[bold]Engagement[/bold]")
    console.print(_engagement_table(results))
    for reason, count in results.totals.fallbacks.most_common(_MOST_REASONS_SHOWN):
        console.print(_plain(f"Fallback taken {count:,} x: {reason}"))

    console.print("[bold]Largest cascades[/bold]")
    console.print(
        _cascade_table(results.cascades)
        if results.cascades
        else "No post was replied to or reshared."
    )

    if folder is not None:
        where = (
            f"Every move is in {folder / 'events.jsonl'}, this summary in {folder / 'run.json'}."
        )
        console.print(_plain(where), soft_wrap=True)


def _states_table(results: Results, width: int) -> Table:
    shown = _evenly(results.rounds, _most_rounds(results, width))
    table = _table()
    table.add_column("round", no_wrap=True)
    for summary in shown:
        table.add_column(str(summary.number), justify="right", no_wrap=True)

    for state in shown[0].states:
        table.add_row(state, *(f"{summary.states[state]:,}" for summary in shown))

    if len(shown) < len(results.rounds):
        table.caption = f"{len(shown)} of {len(results.rounds)} rounds"

    return table


def _most_rounds(results: Results, width: int) -> int:
    """Find how many rounds fit beside the names of the states; each column has a blank on either side."""
    names = max(map(len, results.rounds[0].states))
    counts = (
        count for summary in results.rounds for count in (*summary.states.values(), summary.number)
    )
    numbers = max(len(f"{count:,}") for count in counts)

    return min(_MOST_ROUNDS_SHOWN, max(2, (width - names - 2) // (numbers + 2)))


def _engagement_table(results: Results) -> Table:
    totals = results.totals
    table = _table()
    table.add_column("what")
    table.add_column("count", justify="right")

    for what, count in (
        ("posts", totals.posts),
        ("replies", totals.replies),
        ("reshares", totals.reshares),
        ("likes", totals.likes),
        ("transitions", totals.transitions),
        ("decisions asked", totals.decisions_asked),
        ("decisions answered", totals.decisions_answered),
        ("decisions that fell back", totals.decisions_asked - totals.decisions_answered),
    ):
        table.add_row(what, f"{count:,}")

    for state, count in sorted(totals.timeouts.items()):
        table.add_row(f"time-outs from {state}", f"{count:,}")

    return table


def _cascade_table(cascades: Sequence[Cascade]) -> Table:
    table = _table()
    for heading in ("size", "depth", "breadth"):
        table.add_column(heading, justify="right", no_wrap=True)

    table.add_column("by", no_wrap=True, overflow="ellipsis", max_width=_MOST_NAME)
    table.add_column("began with", overflow="ellipsis", max_width=_MOST_TEXT)

    for cascade in cascades:
        numbers = (f"{number:,}" for number in (cascade.size, cascade.depth, cascade.breadth))
        text = _plain(cascade.text)
        # of the text alone: this column gives way first where a line is too narrow for all
        text.no_wrap = True
        table.add_row(*numbers, _plain(cascade.author_id), text)

    return table


def _plain(text: str) -> Text:
    """Show what others wrote as it is: no markup, no line breaks, nothing that a terminal would obey."""
    return Text("".join(character if character.isprintable() else " " for character in text))


def _table() -> Table:
    return Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def _evenly(rounds: Sequence[RoundSummary], most: int) -> list[RoundSummary]:
    """Pick rounds evenly, the first and the last among them."""
    if len(rounds) <= most:
        return list(rounds)
    return [rounds[round(place * (len(rounds) - 1) / (most - 1))] for place in range(most)]
