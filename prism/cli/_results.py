"""The screen of a simulation: progress while it runs, and its results as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from prism.cli._screen import Screen, evenly, plain, plain_table, shown
from prism.social import Cascade, Results, RoundSummary
from prism.worlds import WorldResults, WorldRound

AnyResults = Results | WorldResults

_MOST_ROUNDS_SHOWN = 10
_MOST_NAME = 20
_MOST_TEXT = 40


class RoundProgress(Progress):
    """A progress bar on standard error, drawn only on a terminal.

    Args:
        rounds: Number of rounds.
        done: Number of rounds that have ended.
    """

    def __init__(self, rounds: int, done: int = 0) -> None:
        screen = Screen(err=True)
        super().__init__(
            TextColumn("round"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeRemainingColumn(),
            console=screen,
            disable=not screen.is_terminal,
        )
        self._bar = self.add_task("", total=rounds, completed=done)

    def round_ended(self, summary: RoundSummary | WorldRound) -> None:
        """Move the bar on by one round."""
        busiest = max(summary.states, key=lambda state: summary.states[state])
        self.update(self._bar, advance=1, description=f"most are {shown(busiest)}")


def print_results(results: Results, folder: Path | None) -> None:
    """Print the states of every round, engagement, and the largest cascades."""
    screen = Screen()
    screen.print(f"[bold]Agents in each state when a round ends[/bold] ({results.agents:,} agents)")
    screen.print(states_table(results, screen.width))
    print_measures(screen, results)
    screen.print("[bold]Engagement[/bold]")
    screen.print(_engagement_table(results))
    for line in fallback_lines(results.totals.fallbacks, results.totals.fallback_examples):
        screen.print(plain(line), soft_wrap=True)

    screen.print("[bold]Largest cascades[/bold]")

    if results.cascades:
        screen.print(_cascade_table(results.cascades))
    else:
        screen.print("No post was replied to or reshared.")

    print_place(screen, folder)


def print_place(screen: Screen, folder: Path | None) -> None:
    """Say where the run is kept, if anywhere."""
    if folder is None:
        return

    log, summary = folder / "events.jsonl", folder / "run.json"
    text = f"Every transition is in {log}, this summary in {summary}."
    screen.print(plain(text), soft_wrap=True)


def states_table(results: AnyResults, width: int) -> Table:
    """Return the agents in each state at the end of some rounds, as many as fit."""
    shown = _rounds_shown(results, width)

    table = plain_table()
    table.add_column("round", no_wrap=True)
    for summary in shown:
        table.add_column(str(summary.number), justify="right", no_wrap=True)

    for state in shown[0].states:
        table.add_row(plain(state), *(f"{summary.states[state]:,}" for summary in shown))

    if len(shown) < len(results.rounds):
        table.caption = f"{len(shown)} of {len(results.rounds)} rounds"

    return table


def print_measures(screen: Screen, results: AnyResults) -> None:
    """Print what the measures came to, if there are any."""
    if results.rounds[0].measures:
        screen.print("[bold]Measures when a round ends[/bold]")
        screen.print(_measures_table(results, screen.width))


def _measures_table(results: AnyResults, width: int) -> Table:
    shown = _rounds_shown(results, width)
    table = plain_table()
    table.add_column("round")
    for summary in shown:
        table.add_column(str(summary.number), justify="right", no_wrap=True)

    for name in shown[0].measures:
        table.add_row(plain(name), *(_figure(summary.measures[name]) for summary in shown))

    return table


def _figure(value: float | int | None) -> str:
    if value is None:
        return "-"

    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def _rounds_shown(results: AnyResults, width: int) -> list[Any]:
    """Return the rounds for which there are columns."""
    places = evenly(len(results.rounds), _most_rounds(results, width))
    return [results.rounds[place] for place in places]


def _most_rounds(results: AnyResults, width: int) -> int:
    """Return how many rounds fit beside the names of the states."""
    names = max(map(len, results.rounds[0].states))
    widest = max(
        len(f"{count:,}")
        for summary in results.rounds
        for count in (*summary.states.values(), summary.number)
    )

    # Each column has a blank on either side.
    fitting = (width - names - 2) // (widest + 2)

    return min(_MOST_ROUNDS_SHOWN, max(2, fitting))


def _engagement_table(results: Results) -> Table:
    totals = results.totals
    table = plain_table()
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

    for source, count in sorted(totals.texts.items()):
        table.add_row(f"texts, {source}", f"{count:,}")

    for state, count in sorted(totals.timeouts.items()):
        table.add_row(plain(f"time-outs from {state}"), f"{count:,}")

    return table


def fallback_lines(fallbacks: Mapping[str, int], examples: Mapping[str, str]) -> Iterator[str]:
    """Return a line for each kind of reason and server, the commonest first."""
    for group, count in Counter(fallbacks).most_common():
        kind = group.partition(" ")[0]
        example = examples.get(group, "").removeprefix(f"{kind}: ")
        such_as = "" if example in ("", kind) else f", such as: {example}"
        yield f"Fallback taken {count:,} x: {group}{such_as}"


def _cascade_table(cascades: Sequence[Cascade]) -> Table:
    table = plain_table()
    for heading in ("size", "depth", "breadth"):
        table.add_column(heading, justify="right", no_wrap=True)

    table.add_column("by", no_wrap=True, overflow="ellipsis", max_width=_MOST_NAME)
    table.add_column("began with", overflow="ellipsis", max_width=_MOST_TEXT)

    for cascade in cascades:
        numbers = (f"{number:,}" for number in (cascade.size, cascade.depth, cascade.breadth))
        text = plain(cascade.text)
        # Of the text alone: its column gives way first if a line is too narrow for all.
        text.no_wrap = True
        table.add_row(*numbers, plain(cascade.author_id), text)

    return table
