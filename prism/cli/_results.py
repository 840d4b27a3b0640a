"""The results of a simulation, of the feed or of another world, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import orjson
from rich.table import Table

from prism.cli._screen import (
    Screen,
    counted,
    evenly,
    plain,
    plain_table,
    print_heading,
    print_place,
    print_table,
    say,
    shortened,
    table_of,
)
from prism.runlog._reader import log_in, read_blocks
from prism.social import Cascade, Results
from prism.worlds import WorldResults

_MOST_ROUNDS_SHOWN = 10
_MOST_NAME = 20
_MOST_TEXT = 40
_MOST_REASON = 130


def print_results(results: WorldResults, folder: Path | None) -> None:
    """Print states and measures of the rounds, the totals, and a feed's cascades.

    Args:
        results: The results.
        folder: The folder of the run, if it is kept.
    """
    shown = _shown_rounds(results, Screen().width)
    agents = counted(results.agents, "agent")
    print_heading(f"Agents in each state at the end of a round ({agents})")
    _print_rounds(results, shown, "states")
    if results.rounds[0].measures:
        print_heading("Measures at the end of a round")
        _print_rounds(results, shown, "measures")
    if ended := results.stopped:
        say(f"The world ended the run in round {ended['round']:,} ({ended['reason']}).")

    totals = results.totals()
    print_heading("Engagement" if isinstance(results, Results) else "What happened")
    counts = _counts(totals)
    fallbacks, examples = totals.get("fallbacks", {}), totals.get("fallback_examples", {})
    rows = ((what, f"{count:,}") for what, count in counts.items())
    print_table(rows, "what", "count", numbers=["count"])
    _warn(counts["decisions asked"], counts["decisions answered"])
    for line in _fallback_lines(fallbacks, examples, folder):
        say(line)

    if isinstance(results, Results):
        print_heading("Largest cascades")
        if results.cascades:
            Screen().print(_cascade_table(results.cascades))
        else:
            say("No post was replied to or reshared.")

    print_place(_logged(results, folder), folder)


def _logged(results: WorldResults, folder: Path | None) -> str:
    """Describe the agents that the log covers, if those are not all."""
    if folder is None or not log_in(folder).exists():
        return "Every transition"
    first = next(read_blocks(log_in(folder))).data.partition(b"\n")[0]
    logged = orjson.loads(first).get("logged_agents")
    if logged == 0:
        return "The summary of every round"
    told = "" if logged is None else f" of {logged:,} of {results.agents:,} agents"

    return f"Every transition{told}"


def _print_rounds(
    results: WorldResults, shown: Sequence[int], what: Literal["states", "measures"]
) -> None:
    """Print the states or measures at the end of some rounds."""
    figures = [getattr(each, what) for each in results.rounds]
    numbers = [str(results.rounds[place].number) for place in shown]
    rows = _rows([figures[place] for place in shown], absent=0 if what == "states" else None)
    table = table_of(rows, "round", *numbers, numbers=numbers)
    if len(shown) < len(figures):
        table.caption = f"{len(shown)} of {len(figures)} rounds"
    Screen().print(table)


def _shown_rounds(results: WorldResults, width: int) -> list[int]:
    """Return the places of rounds that fit in every table, evenly spaced."""
    rounds: Sequence[Any] = results.rounds
    most = min(
        _most_rounds([getattr(each, what) for each in rounds], rounds[-1].number, width)
        for what in ("states", "measures")
    )

    return evenly(len(rounds), most)


def _rows(figures: Sequence[Mapping[str, Any]], absent: int | None) -> Iterator[list[str]]:
    """Yield a row for each name, with a column for each round."""
    # with regions, agents are in a different set of states in each round
    for name in dict.fromkeys(name for each in figures for name in each):
        yield [name, *(_figure(each.get(name, absent)) for each in figures)]


def _figure(value: float | int | None) -> str:
    if value is None:
        return "-"

    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def _most_rounds(figures: Sequence[Mapping[str, Any]], last: int, width: int) -> int:
    """Return how many rounds fit beside the names of the states or measures."""
    names = max((len(name) for each in figures for name in each), default=0)
    widths = (len(_figure(value)) for each in figures for value in each.values())
    widest = max([len(str(last)), *widths])

    # Each column has a blank on either side.
    fitting = (width - names - 2) // (widest + 2)

    return min(_MOST_ROUNDS_SHOWN, max(2, fitting))


def _counts(totals: Mapping[str, Any]) -> dict[str, int]:
    """Return what every run counts, as it is called in a table."""
    asked, answered = totals["decisions_asked"], totals["decisions_answered"]
    usual = ("agent_ticks", "transitions", "decisions_asked", "decisions_answered")
    own = {
        name: count
        for name, count in totals.items()
        if isinstance(count, int) and name not in usual
    }
    return {
        **own,
        "transitions": totals["transitions"],
        "decisions asked": asked,
        "decisions answered": answered,
        "decisions by fallback": asked - answered,
        **{f"texts, {source}": count for source, count in totals.get("texts", {}).items()},
        **{f"time-outs from {state}": count for state, count in totals["timeouts"].items()},
    }


def has_failed(summary: Mapping[str, Any]) -> bool:
    """Return whether a model was asked for decisions, and every one fell back.

    Args:
        summary: The contents of ``run.json``.
    """
    totals = summary["results"]["totals"]
    return "spent" in summary and fell_back(totals["decisions_asked"], totals["decisions_answered"])


def fell_back(asked: int, answered: int) -> bool:
    """Return whether decisions were asked for, and nobody answered any."""
    return bool(asked and not answered)


def _warn(asked: int, answered: int) -> None:
    """Say if a run is not what its model decided."""
    if fell_back(asked, answered):
        say(
            f"No decision is the model's: all {asked:,} fell back, so these results are those of "
            "the fallback alone."
        )
    elif asked > answered * 2:
        say(f"Only {answered:,} of {asked:,} decisions are the model's: the others fell back.")


def _fallback_lines(
    fallbacks: Mapping[str, int], examples: Mapping[str, str], folder: Path | None
) -> Iterator[str]:
    """Return a line for each kind of reason and server, the commonest first."""
    rest = "" if folder is None else f" (prism log faults {quote(str(folder))} has the rest)"
    for group, count in Counter(fallbacks).most_common():
        kind = group.partition(" ")[0]
        example = examples.get(group, "").removeprefix(f"{kind}: ")
        brief = shortened(example, _MOST_REASON)
        told = brief + rest if len(brief) > _MOST_REASON else brief
        such_as = "" if example in ("", kind) else f", such as: {told}"
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
