"""Looking into the log itself where counts do not do: one round, one agent, who is in a state."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from prism.analysis._reading.logs import RunLogs, read_log
from prism.analysis._reading.parsing import parse
from prism.analysis._reading.scanning import read_object
from prism.analysis._tables.agent_story import agent_story, happenings
from prism.analysis._tables.agents import agents, fields_of
from prism.analysis._tables.cascades import MISSING, TreePost, grow, posts_below
from prism.analysis._tables.faults import FAULTY, faults, is_fault
from prism.analysis._tables.states import closes_round, how_closing
from prism.analysis._tables.worlds import agent_measures
from prism.drawing import Levels, showable
from prism.errors import InputError
from prism.report._facts.pictures import Picture, read_picture
from prism.report._facts.run_facts import Recorded
from prism.runlog._prompts import Asked, asked_in, find_answers, read_line
from prism.runlog._reader import BLOCK_BYTES, LOG_NAME, Block
from prism.telemetry import events
from prism.watch._tail import blocks_back
from prism.watch._watched import Watched

MOST_BYTES = 8 << 20
"""The end of a round that is read for what happened in it."""

MOST_HAPPENINGS = 200
_PIECE_BYTES = 1 << 20
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


def happened_in(
    watched: Watched, number: int | None, kind: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """List the last events of a round, each as a sentence, and what went wrong in it.

    Args:
        watched: The run.
        number: The round; None for the end of a log without rounds.
        kind: One of `kinds_of`, ``faults``, or anything else for all that is no move or view.
    """
    is_one = kind in _PREFIXES
    kinds = [kind] if is_one else _PREFIXES.keys() - {"moves", "views"}
    begins = [name for each in kinds if kind != "faults" for name in _PREFIXES[each]]
    named = map(pl.col("event").str.starts_with, begins)
    condition = pl.any_horizontal(pl.lit(value=False) if is_one else is_fault(), *named)
    condition &= number is None or pl.col("round").fill_null(number) == number
    names = begins if is_one else [*begins, *FAULTY]

    with watched.reading() as (tally, _):
        has_faults = not tally.table("faults").is_empty()
    with _lines_in(watched, number, names, MOST_HAPPENINGS) as logs:
        happened = happenings(logs, condition, most=MOST_HAPPENINGS)
    with _lines_in(watched, number, FAULTY if has_faults else ()) as logs:
        return happened, faults(logs)


def picture_at(watched: Watched, number: int | None) -> Picture | None:
    """Return where the agents were at the end of a round, or at the last before it."""
    with watched.reading() as (tally, tail):
        known = [each for each in tally.pictures if number is None or each <= number]
        if not known:
            return None
        first, last = (tail.read(*tally.pictures[find(known)]) for find in (min, max))
        groups = [*tally.groups]

    return read_picture(first, last, groups)


def agents_in(
    watched: Watched,
    number: int | None,
    state: str,
    charts: Sequence[Levels],
    tick: int | None = None,
) -> Sequence[tuple[str, int]]:
    """Return the agents in a state at the end of a round, or of a tick of it, or now.

    Args:
        watched: The run.
        number: The round.
        state: The state, which may lie around those that agents are in.
        charts: The charts of the run.
        tick: The tick of the round.
    """

    @cache
    def is_in(where: str) -> bool:
        return where == state or any(state in chart.active(where) for chart in charts)

    places = places_at(watched, number, tick).items()
    return [(agent, 1) for agent, where in places if is_in(showable(where))]


def places_at(watched: Watched, number: int | None, tick: int | None = None) -> dict[str, str]:
    """Return the state of each agent at the end of a round, or of a tick of it, or now.

    Their last moves are looked for from there back, until all agents are found.
    """
    begin, end = _span(watched, number)
    with watched.reading() as (tally, _):
        run, joined = tally.known_run, sum(tally.joined().values())
    last_tick = None if run is None else run.ticks_per_round
    joins = pl.col("event") == events.AGENT_JOINED
    target = pl.when(joins).then("state").otherwise("to_state")
    places: dict[str, str] = {}
    # of a round that is not read yet, nothing is known
    for data in blocks_back(watched.read, end if begin < end else 0):
        frame = parse(Block(data, 1, data.count(b"\n")), _OF_MOVES).frame
        moves = frame.filter(joins | (pl.col("event") == events.TRANSITION))
        moves = moves.with_columns(how_closing(), to_state=target).drop_nulls("agent_id")
        # what closes this round comes after its states were counted
        is_here = pl.col("round").eq_missing(pl.lit(number))
        closes = is_here & closes_round(last_tick)
        if tick is not None:
            closes |= is_here & (pl.col("tick") > tick)
        kept = moves.drop_nulls("to_state").filter(~closes.fill_null(value=False))
        last = kept.group_by("agent_id", maintain_order=True).agg(pl.col("to_state").last())
        places = {**dict(last.iter_rows()), **places}
        if len(places) >= joined:
            break

    return places


def agents_with(
    watched: Watched, number: int | None, values: Mapping[str, str], charts: Sequence[Levels]
) -> Sequence[tuple[str, int]]:
    """Return the agents with an event in a round, and how often each had one.

    Args:
        watched: The run.
        number: The round.
        values: What stands there, by column: the states of a transition, ``chosen`` or ``source``
            of a decision, or ``event`` for a world's own.
        charts: The charts of the run, whose states may lie around those of a transition.
    """
    wanted, is_move = tuple(values.values()), "from_state" in values
    condition = pl.col("round").eq_missing(pl.lit(number))
    if "event" not in values:
        event = events.TRANSITION if is_move else events.DECISION
        condition &= pl.col("event") == event
    columns = ("event", "round", "agent_id", "chosen", "source", "from_state", "to_state")
    counts: Counter[str] = Counter()

    @cache
    def is_wanted(*found: str) -> bool:
        used = (chart.used(*found) for chart in charts if is_move)
        return found == wanted or any(wanted in arrows for arrows in used)

    for block, _ in blocks(watched, *_span(watched, number)):
        own = parse(block, columns).frame.filter(condition).drop_nulls(["agent_id", *values])
        for agent, *found, count in own.group_by("agent_id", *values).len().iter_rows():
            if is_wanted(*map(showable, found)):
                counts[agent] += count

    return counts.most_common()


@dataclass(frozen=True, slots=True)
class Doings:
    """The doings of one agent.

    Args:
        story: Its events in the order of the log; see `prism.analysis.agent_story`.
        here: Its decisions and texts of the round that is looked at.
        others: The last of all others.
        posts: Author and text of the posts that the round and the decisions are about.
        fields: Its fields: the name of each, what it was when the agent joined, and what was
            measured of it at the end of the round, as far as the log has that.
    """

    story: pl.DataFrame
    here: Sequence[Recorded]
    others: Sequence[Recorded]
    posts: Mapping[str, tuple[str, str]]
    fields: Sequence[tuple[str, Any, Any]]


def doings_of(watched: Watched, agent: str, number: int | None) -> Doings:
    """Return what an agent did, with what was recorded of its decisions.

    The lines of the agent are found by the index of the log, so that no others are read.

    Args:
        watched: The run.
        agent: The agent.
        number: The round that is looked at.

    Raises:
        InputError: If the log has no such agent.
    """
    folder = watched.path.parent
    with as_log(_lines_of(watched, agent)) as part:
        logs = read_log(part)
        story = agent_story(logs, agent)
        joined = agents(logs).filter(agent_id=agent)
        every = list(asked_in(part, _ignore, agent, beside=folder))

    here = [each for each in every if each.event.get("round") == number][:MOST_DECISIONS]
    others = [each for each in every if each.event.get("round") != number][-MOST_DECISIONS:]
    then = story.filter(pl.col("round").eq_missing(pl.lit(number)))
    named = [*then.iter_rows(named=True), *(each.event for each in (*here, *others))]
    posts = _posts(watched, {post for event in named for post in post_ids(event)})
    with watched.reading() as (tally, _):
        names = {events.AGENTS_MEASURED} & tally.events().keys()
    with _lines_in(watched, number, [*names]) as logs:
        fields = fields_of(joined, agent_measures(logs).filter(agent_id=agent))

    return Doings(story, _recorded(here, folder), _recorded(others, folder), posts, fields)


def _recorded(asked: Sequence[Asked], folder: Path) -> list[Recorded]:
    """Return decisions with what was asked and said, as far as that was recorded."""
    records: Mapping[str, Any] = {}
    # a damaged file of prompts: the log has the decisions nevertheless
    with suppress(InputError):
        records = find_answers(folder, [each.id for each in asked if each.id], _ignore)

    return [
        Recorded(each.id or "", "", each.event, records.get(each.id or "", {}), folder)
        for each in asked
    ]


def post_ids(event: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the posts that an event names."""
    context = event.get("context")
    if isinstance(context, str):
        context = read_object(context)
    about = context.get("post_id") if isinstance(context, Mapping) else None
    named = (event.get("post_id"), event.get("parent_id"), about)
    return tuple(dict.fromkeys(post for post in named if isinstance(post, str) and post))


def thread_of(watched: Watched, post: str) -> tuple[tuple[TreePost, ...], dict[str, list[str]]]:
    """Return the thread that a post belongs to, and who liked each post, as far as the log is read.

    Raises:
        InputError: If the log has no such post.
    """
    with watched.reading() as (tally, tail):
        published = _named(tally.index.lines([post], tail.read).values())
        root = next((each.get("root_id") for each in published if each["post_id"] == post), None)
        wanted = [post, root] if isinstance(root, str) else [post]
        below = _named(tally.index.lines(wanted, tail.read).values())
        # likes are found by those who are liked
        authors = {str(each.get("agent_id")) for each in below}
        lines = tally.index.lines([*wanted, *authors], tail.read)
    likers = defaultdict[str, list[str]](list)
    for like in _named(lines.values(), events.POST_LIKED):
        likers[like["post_id"]].append(str(like.get("agent_id")))
    with as_log(b"".join(lines.values())) as part:
        tree = grow(wanted[-1], posts_below(read_log(part), wanted[-1:]))
    if all(each.post_id != post or each.kind == MISSING for each in tree):
        raise InputError(f"the log has no post {post!r} so far")

    return tree, likers


def _posts(watched: Watched, ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return author and text of some posts, as far as the log was read."""
    with watched.reading() as (tally, tail):
        return {
            each["post_id"]: (str(each.get("agent_id")), str(each.get("text") or ""))
            for each in _named(tally.index.lines(ids, tail.read).values())
            if each["post_id"] in ids
        }


def _named(lines: Iterable[bytes], name: str = events.POST_PUBLISHED) -> list[Mapping[str, Any]]:
    """Return the events of a name among some lines of the log, by default of published posts."""
    mark = f'"{name}"'.encode()
    found = (read_line(line) or {} for line in lines if mark in line)
    return [
        event
        for event in found
        if event.get("event") == name and isinstance(event.get("post_id"), str)
    ]


def _lines_of(watched: Watched, agent: str) -> bytes:
    """Return the lines that name an agent or answer its posts; the first ones if there are none."""
    with watched.reading() as (tally, tail):
        own = tally.index.lines([agent], tail.read)
        published = _named(own.values())
        posts = [each["post_id"] for each in published if each.get("agent_id") == agent]
        found = {**own, **tally.index.lines(posts, tail.read)}
        return b"".join(found[place] for place in sorted(found)) or tail.read(0, MOST_BYTES)


def blocks(watched: Watched, begin: int, end: int) -> Iterator[tuple[Block, int]]:
    """Yield the blocks of a part of the log, each with the place where the next one begins."""
    while begin < end:
        data = watched.read(begin, min(begin + BLOCK_BYTES, end))
        whole = data.rfind(b"\n") + 1
        # a line that is longer than a block is left out, as it is everywhere
        begin += whole or max(len(data), 1)
        if whole:
            yield Block(data[:whole], 1, data.count(b"\n", 0, whole)), begin


def _span(watched: Watched, number: int | None) -> tuple[int, int]:
    """Return where a round begins in the log at the earliest, and where it ends."""
    with watched.reading() as (tally, tail):
        read, begins = watched.counted, tally.begins
        if number is None:
            return 0, read
        if number in begins:
            later = (each for each in begins.values() if each > begins[number])
            return begins[number], min(later, default=read)
        # of those that are not read yet, the last ends where the log does
        return read, tail.size if number == max(tally.rounds(), default=None) else read


@contextmanager
def _lines_in(
    watched: Watched, number: int | None, names: Sequence[str], most: int = MOST_BYTES
) -> Iterator[RunLogs]:
    """Open the last lines of a round with events of some names as a log of their own."""
    begin, end = _span(watched, number) if names else (0, 0)
    begin, found = max(begin, end - MOST_BYTES), list[bytes]()
    is_named = re.compile(b'"(?:%s)' % b"|".join(re.escape(name.encode()) for name in names))
    for data in blocks_back(watched.read, end, _PIECE_BYTES):
        if end <= begin or len(found) >= most:
            break
        end -= len(data)
        lines = data[max(begin - end, 0) :].splitlines(keepends=True)
        found = [*filter(is_named.search, lines), *found]

    with as_log(b"".join(found)) as part:
        yield read_log(part)


@contextmanager
def as_log(lines: bytes) -> Iterator[Path]:
    """Write some lines as a log of their own, which is deleted behind the block."""
    with TemporaryDirectory(prefix="prism-") as folder:
        part = Path(folder) / LOG_NAME
        part.write_bytes(lines)
        del lines
        yield part


def _ignore(_fault: str) -> None:
    """Leave it to the notes on the log, which say what cannot be read."""
