"""Looking into the log itself where counts do not do: one round, one agent, who is in a state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
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
from prism.runlog._keys import WORLD_EVENTS
from prism.runlog._prompts import asked_in, find_prompts
from prism.runlog._reader import BLOCK_BYTES, LOG_NAME, Block
from prism.telemetry import events
from prism.watch._watched import Watched

MOST_BYTES = 8 << 20
"""The end of a round that is read for what happened in it."""

MOST_HAPPENINGS = 200
MOST_AGENTS = 200
MOST_DECISIONS = 40
POST_MARK = f'"{events.POST_PUBLISHED}"'.encode()

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


def agents_in(
    watched: Watched, number: int | None, state: str, tick: int | None = None
) -> Sequence[str]:
    """Return the agents in a state at the end of a round, or of a tick of it, or now."""
    places = _places(watched, number, tick)
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


def agents_entering(watched: Watched, state: str) -> Sequence[tuple[str, int]]:
    """Return the agents that entered a state in the whole run, and how often each did."""
    counts: Counter[str] = Counter()
    for frame in _moves(watched, 0, None):
        entered = frame.drop_nulls("from_state").group_by("agent_id", "to_state").len()
        for agent, target, count in entered.iter_rows():
            if showable(target) == state:
                counts[agent] += count

    return counts.most_common()


def agents_with(
    watched: Watched, number: int | None, column: str, value: str
) -> Sequence[tuple[str, int]]:
    """Return the agents with an event in a round, and how often each had one.

    Args:
        watched: The run.
        number: The round.
        column: ``chosen`` or ``source`` of a decision, or ``event`` for a world's own.
        value: What stands there.
    """
    counts: Counter[str] = Counter()
    wanted = pl.col("event").str.starts_with(WORLD_EVENTS)
    if column != "event":
        wanted = pl.col("event") == events.DECISION
    for block in _blocks(watched, *_span(watched, number)):
        frame = parse(block, ("event", "round", "agent_id", "chosen", "source")).frame
        own = frame.filter(wanted & pl.col("round").eq_missing(pl.lit(number)))
        rows = own.drop_nulls("agent_id").group_by("agent_id", column).len()
        for agent, found, count in rows.iter_rows():
            if found is not None and showable(found.removeprefix(WORLD_EVENTS)) == value:
                counts[agent] += count

    return counts.most_common()


def agents_named(watched: Watched, words: str) -> Sequence[str]:
    """Return the agents whose ids hold a text, and first the one that is called so."""
    known = _joined(watched) or _places(watched, None)
    found = [agent for agent in known if words.lower() in agent.lower()]
    return sorted(found, key=lambda agent: (agent != words, len(agent)))


def doings_of(watched: Watched, agent: str) -> tuple[pl.DataFrame, list[Recorded]]:
    """Return all that an agent did, and its last decisions and texts as far as they were recorded.

    The lines of the agent are found by the index of the log, so that no others are read.

    Raises:
        InputError: If the log has no such agent.
    """
    with _as_log(_lines_of(watched, agent)) as part:
        story = agent_story(read_log(part), agent)
        asked = list(asked_in(part, _ignore, agent, beside=watched.folder))[-MOST_DECISIONS:]

    ids = [each.id for each in asked if each.id is not None]
    try:
        records = find_prompts(watched.folder, ids, _ignore)
    except InputError:  # a damaged file of prompts: the log has the decisions nevertheless
        records = {}

    return story, [
        Recorded(each.id or "", "", each.event, records.get(each.id or "", {}), watched.folder)
        for each in asked
    ]


def _lines_of(watched: Watched, agent: str) -> bytes:
    """Return the lines that name an agent or answer its posts; the first ones if there are none."""
    with watched.reading() as (tally, tail):
        lines = {place: tail.line_at(place) for place in tally.index.places([agent])}
        own = (_post_of(line, agent) for line in lines.values() if POST_MARK in line)
        posts = [post for post in own if post is not None]
        lines |= {place: tail.line_at(place) for place in tally.index.places(posts)}
        if not lines:
            return tail.read(0, MOST_BYTES)

    return b"".join(line for _, line in sorted(lines.items()))


def _post_of(line: bytes, agent: str) -> str | None:
    """Return the post that an agent published by this line."""
    try:
        event = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None

    is_own = event.get("event") == events.POST_PUBLISHED and event.get("agent_id") == agent
    post = event.get("post_id") if is_own else None
    return post if isinstance(post, str) else None


def _joined(watched: Watched) -> Sequence[str]:
    """Return the agents that joined, all of them at the beginning of a log."""
    found: list[str] = []
    for block in _blocks(watched, 0, None):
        frame = parse(block, _OF_MOVES).frame.filter(pl.col("event") == events.AGENT_JOINED)
        if frame.is_empty():
            break
        found += frame["agent_id"].drop_nulls().to_list()

    return found


def _places(watched: Watched, number: int | None, tick: int | None = None) -> dict[str, str]:
    """Return where all agents are at the end of a round, or of a tick of it.

    Their last moves are looked for from there back, until all agents are found.
    """
    _, end = _span(watched, number)
    with watched.reading() as (tally, _):
        run, joined = tally.known_run, sum(tally.joined().values())
    last_tick = None if run is None else run.ticks_per_round
    places: dict[str, str] = {}
    for block in _blocks_back(watched, end):
        frame = _moves_in(block)
        # what closes this round comes after its states were counted
        is_here = pl.col("round").eq_missing(pl.lit(number))
        closes = is_here & closes_round(last_tick)
        if tick is not None:
            closes |= is_here & (pl.col("tick") > tick)
        kept = frame.with_columns(how_closing()).filter(~closes.fill_null(value=False))
        last = kept.group_by("agent_id", maintain_order=True).agg(pl.col("to_state").last())
        places = {**dict(last.iter_rows()), **places}
        if len(places) >= joined:
            break

    return places


def _moves(watched: Watched, begin: int, end: int | None) -> Iterator[pl.DataFrame]:
    """Return the joins and transitions in a part of the log."""
    return map(_moves_in, _blocks(watched, begin, end))


def _moves_in(block: Block) -> pl.DataFrame:
    joins = pl.col("event") == events.AGENT_JOINED
    frame = parse(block, _OF_MOVES).frame
    steps = frame.filter(joins | (pl.col("event") == events.TRANSITION))
    target = pl.when(joins).then("state").otherwise("to_state")
    return steps.with_columns(to_state=target).drop_nulls(["agent_id", "to_state"])


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


def _blocks_back(watched: Watched, end: int | None) -> Iterator[Block]:
    """Yield the blocks of a log from a place back to its beginning."""
    with watched.reading() as (_, tail):
        stop = tail.position if end is None else end
    while stop > 0:
        begin = max(stop - BLOCK_BYTES, 0)
        with watched.reading() as (_, tail):
            data = tail.read(begin, stop)
        first = data.find(b"\n") + 1 if begin else 0
        # what has no line feed is the end of a line that is longer than a block
        stop = begin + first if first < len(data) else begin
        if first < len(data):
            yield Block(data[first:], 1, data.count(b"\n", first))


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
    with _as_log(data[first:]) as part:
        yield read_log(part)


@contextmanager
def _as_log(lines: bytes) -> Iterator[Path]:
    """Write some lines as a log of their own, which is deleted behind the block."""
    with TemporaryDirectory(prefix="prism-") as folder:
        part = Path(folder) / LOG_NAME
        part.write_bytes(lines)
        yield part


def _any_of(names: Sequence[str]) -> pl.Expr:
    event = pl.col("event")
    return pl.any_horizontal([event.str.starts_with(name) for name in names])


def _ignore(_fault: str) -> None:
    """Leave it to the notes on the log, which say what cannot be read."""
