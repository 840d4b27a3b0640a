"""Looking into the log itself where counts do not do: one round, one agent, who is in a state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from prism.analysis import RunLogs, agent_story, faults, read_log
from prism.analysis._reading.parsing import parse
from prism.analysis._tables.agent_story import happenings
from prism.analysis._tables.faults import is_fault
from prism.analysis._tables.states import closes_round, how_closing
from prism.drawing import showable
from prism.errors import InputError
from prism.report._facts.pictures import Picture, read_picture
from prism.report._facts.run_facts import Recorded
from prism.runlog._prompts import asked_in, find_prompts
from prism.runlog._reader import BLOCK_BYTES, Block
from prism.telemetry import events
from prism.watch._watched import Watched

MOST_BYTES = 8 << 20
"""The end of a round that is read for what happened in it."""

MOST_HAPPENINGS = 200
MOST_AGENTS = 200
MOST_DECISIONS = 40

_PREFIXES = {
    "posts": ("post.published", "post.liked", "post.disliked"),
    "decisions": (events.DECISION, events.TEXT_WRITTEN, events.ANSWER_DISCARDED),
    "world": ("world.",),
    "steps": ("workflow.",),
    "thoughts": ("cognition.",),
    "moves": (events.TRANSITION,),
    "views": (events.POST_WEIGHED,),
}
"""Kinds of events that can be listed, by how their names begin."""


_OF_MOVES = (
    *("event", "round", "tick", "agent_id", "state", "from_state", "to_state", "trigger"),
    "ticks_in_state",
)


def kinds_of(counts: Mapping[str, int]) -> list[str]:
    """Return the kinds of events that a run has."""
    return [
        kind
        for kind, begins in _PREFIXES.items()
        if any(event.startswith(begins) for event in counts)
    ]


def happened_in(watched: Watched, number: int | None, kind: str) -> pl.DataFrame:
    """List the last events of a round, each as a sentence.

    Args:
        watched: The run.
        number: The round; None for the end of a log without rounds.
        kind: One of `kinds_of`, ``faults``, or anything else for all that is no move or view.
    """
    if kind == "faults":
        condition = is_fault()
    elif kind in _PREFIXES:
        condition = _any_of(_PREFIXES[kind])
    else:
        shown = [kind for kind in _PREFIXES if kind not in ("moves", "views")]
        condition = is_fault() | _any_of([name for kind in shown for name in _PREFIXES[kind]])

    with _round(watched, number) as logs:
        return happenings(logs, condition, most=MOST_HAPPENINGS)


def picture_at(watched: Watched, number: int | None) -> Picture | None:
    """Return where the agents were at the end of a round, or at the last before it."""
    with watched.reading() as (tally, tail):
        known = [each for each in tally.pictures if number is None or each <= number]
        if not known:
            return None
        first, last = (tail.read(*tally.pictures[find(known)]) for find in (min, max))

    return read_picture(first, last)


def faults_in(watched: Watched, number: int | None) -> pl.DataFrame:
    """Return the table of what went wrong in a round."""
    with _round(watched, number) as logs:
        return faults(logs)


def agents_in(watched: Watched, number: int | None, state: str) -> Sequence[str]:
    """Return the agents that are in a state at the end of a round, or now if it goes on."""
    places = _places(watched, number)
    return [agent for agent, where in places.items() if showable(where) == state]


def agents_between(
    watched: Watched, number: int | None, source: str, target: str
) -> Sequence[tuple[str, int]]:
    """Return the agents that went from a state to another in a round, and how often each did."""
    counts: Counter[str] = Counter()
    for frame in _moves(watched, *_span(watched, number)):
        rows = frame.group_by("agent_id", "from_state", "to_state").len().iter_rows()
        for agent, begin, end, count in rows:
            if begin is not None and (showable(begin), showable(end)) == (source, target):
                counts[agent] += count

    return counts.most_common()


def agents_named(watched: Watched, words: str) -> Sequence[str]:
    """Return the agents whose ids hold a text, and first the one that is called so."""
    known = _joined(watched) or _places(watched, None)
    found = [agent for agent in known if words.lower() in agent.lower()]
    return sorted(found, key=lambda agent: (agent != words, len(agent)))


def story_of(watched: Watched, agent: str) -> pl.DataFrame:
    """Return all that an agent did; see `prism.analysis.agent_story`."""
    return agent_story(read_log(watched.path), agent)


def decisions_of(watched: Watched, agent: str) -> list[Recorded]:
    """Return the last decisions and texts of an agent, with what was recorded of each."""
    asked = list(asked_in(watched.path, _ignore, agent))[-MOST_DECISIONS:]
    ids = [each.id for each in asked if each.id is not None]
    try:
        records = find_prompts(watched.folder, ids, _ignore)
    except InputError:  # a damaged file of prompts: the log has the decisions nevertheless
        records = {}

    return [
        Recorded(each.id or "", "", each.event, records.get(each.id or "", {}), watched.folder)
        for each in asked
    ]


def _joined(watched: Watched) -> Sequence[str]:
    """Return the agents that joined, all of them at the beginning of a log."""
    found: list[str] = []
    for block in _blocks(watched, 0, None):
        frame = parse(block, _OF_MOVES).frame.filter(pl.col("event") == events.AGENT_JOINED)
        if frame.is_empty():
            break
        found += frame["agent_id"].drop_nulls().to_list()

    return found


def _places(watched: Watched, number: int | None) -> dict[str, str]:
    """Follow all agents from the beginning to the end of a round."""
    _, end = _span(watched, number)
    with watched.reading() as (tally, _):
        run = tally.known_run
    last_tick = None if run is None else run.ticks_per_round
    places: dict[str, str] = {}
    for frame in _moves(watched, 0, end):
        # what closes this round comes after its states were counted
        closes = pl.col("round").eq_missing(pl.lit(number)) & closes_round(last_tick)
        kept = frame.with_columns(how_closing()).filter(~closes.fill_null(value=False))
        last = kept.group_by("agent_id", maintain_order=True).agg(pl.col("to_state").last())
        places.update(last.iter_rows())

    return places


def _moves(watched: Watched, begin: int, end: int | None) -> Iterator[pl.DataFrame]:
    """Yield the joins and transitions in a part of the log."""
    joins = pl.col("event") == events.AGENT_JOINED
    for block in _blocks(watched, begin, end):
        frame = parse(block, _OF_MOVES).frame
        steps = frame.filter(joins | (pl.col("event") == events.TRANSITION))
        target = pl.when(joins).then("state").otherwise("to_state")
        yield steps.with_columns(to_state=target).drop_nulls(["agent_id", "to_state"])


def _blocks(watched: Watched, begin: int, end: int | None) -> Iterator[Block]:
    with watched.reading() as (_, tail):
        stop = tail.position if end is None else end
    while begin < stop:
        with watched.reading() as (_, tail):
            data = tail.read(begin, min(begin + BLOCK_BYTES, stop))
        whole = data.rfind(b"\n") + 1
        # a line that is longer than a block is left out, as it is everywhere
        begin += whole or max(len(data), 1)
        if whole:
            yield Block(data[:whole], 1, data.count(b"\n", 0, whole))


def _span(watched: Watched, number: int | None) -> tuple[int, int | None]:
    with watched.reading() as (tally, _):
        return (0, None) if number is None else tally.span(number)


@contextmanager
def _round(watched: Watched, number: int | None) -> Iterator[RunLogs]:
    """Open the last megabytes of a round as a log of their own."""
    begin, end = _span(watched, number)
    with watched.reading() as (_, tail):
        stop = tail.position if end is None else end
        start = max(begin, stop - MOST_BYTES)
        data = tail.read(start, stop)

    first = data.find(b"\n") + 1 if start > begin else 0
    with TemporaryDirectory(prefix="prism-") as folder:
        part = Path(folder) / "events.jsonl"
        part.write_bytes(data[first:])
        yield read_log(part)


def _any_of(names: Sequence[str]) -> pl.Expr:
    event = pl.col("event")
    return pl.any_horizontal([event.str.starts_with(name) for name in names])


def _ignore(_fault: str) -> None:
    """Leave it to the notes on the log, which say what cannot be read."""
