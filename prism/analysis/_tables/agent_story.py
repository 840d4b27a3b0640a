"""The story of one agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from prism.analysis._reading.logs import STAMP, RunLogs, parse_time
from prism.analysis._reading.parsing import OWN_KEYS
from prism.analysis._reading.scanning import read_object
from prism.errors import InputError
from prism.runlog._events import WORLD_EVENTS
from prism.runlog._words import in_words, words_of
from prism.telemetry import events

_KEYS = (
    *("agent_id", "from_state", "to_state", "trigger", "ticks_in_state", "context"),
    *("state", "options", "chosen", "source", "reason", "probabilities", "said"),
    *("latency", "queue_seconds", "request_seconds", "done_reason", "model"),
    *("relevance", "threshold", "post_id", "kind", "parent_id", "author_id", "text"),
    *("key", "turn", "step", "outcome", "moved_to", "target"),
    *("cycle", "next_state", "type", "tags", "why", "moved_out", "moved_in"),
    OWN_KEYS,
)
_READ = (*STAMP, *_KEYS, "archetype", "cut", "error", "succeeded")
_MOVES = (events.AGENT_JOINED, events.TRANSITION)
_MOST_NAMES = 3
_MOST_CHARACTERS = 200
_MOST_ABOUT = 80


def agent_story(logs: RunLogs, agent_id: str) -> pl.DataFrame:
    """List everything an agent did, and how others reacted to its posts, in the order of the log.

    Args:
        logs: The logs, from `read_log`.
        agent_id: The agent.

    Returns:
        One row for each event: ``line``, ``timestamp`` (UTC), ``round``, ``tick``, ``event``,
        ``what`` (a sentence), and the events' own keys, which are null if an event lacks them:
        ``agent_id`` (the agent, or another that liked, replied to or reshared its post),
        ``from_state``, ``to_state``, ``trigger``, ``ticks_in_state``, ``context`` (JSON),
        ``state``, ``options``, ``chosen``, ``source``, ``reason``, ``probabilities`` (JSON),
        ``said`` (the reason that a model gave), ``latency``, ``queue_seconds`` and
        ``request_seconds`` (seconds), ``done_reason``, ``model``, ``relevance``, ``threshold``,
        ``post_id``, ``kind``, ``parent_id``, ``author_id``, ``text``, of text calls and workflows
        ``key``, ``turn``, ``step``, ``outcome``, ``moved_to`` and ``target``, and of agents that
        think ``cycle``, ``next_state``, ``type``, ``tags``, ``why``, ``moved_out``, ``moved_in``
        and ``shortened``; of a world's events ``own_keys`` (JSON). Where events happen at rates,
        ``rounds_in_state`` is the last column. If there are several runs, ``run`` is the first.

    Raises:
        InputError: If the logs have no such agent.
    """
    story = _events_of(logs, agent_id)
    table = story.with_columns(parse_time("timestamp"))
    seconds = seconds_of_rounds(logs)
    if seconds:
        table = _with_rounds(table, table.filter(agent_id=agent_id), seconds)
    sentences = [_sentence(event, agent_id) for event in table.iter_rows(named=True)]
    table = table.with_columns(pl.Series("what", sentences, dtype=pl.String))
    rounds = ["rounds_in_state"] if seconds else []

    return logs.labelled(table.select("run", "line", *STAMP, "event", "what", *_KEYS, *rounds))


def happenings(logs: RunLogs, condition: pl.Expr, *, most: int) -> pl.DataFrame:
    """List the last events that meet a condition, of any agent, each as a sentence.

    Args:
        logs: The logs, from `read_log`.
        condition: A condition on the columns of `agent_story`, except those of objects.
        most: Most events to return.

    Returns:
        ``round``, ``tick``, ``agent_id``, ``event``, ``what``, and the keys that identify a post:
        ``post_id``, ``parent_id`` and ``context``, in the order of the log.
    """
    last = pl.DataFrame()
    for frame in logs.blocks_where(condition, columns=_READ):
        last = pl.concat([last, frame], how="diagonal").tail(most)

    seconds = seconds_of_rounds(logs)
    if seconds:
        last = _with_rounds(last, _moves_of(logs, last["agent_id"].drop_nulls()), seconds)
    sentences = [_sentence(event, event["agent_id"]) for event in last.iter_rows(named=True)]

    posts = last.select("post_id", "parent_id", "context")
    return last.select("round", "tick", "agent_id", "event").with_columns(
        posts, what=pl.Series(sentences, dtype=pl.String)
    )


def _events_of(logs: RunLogs, agent_id: str) -> pl.DataFrame:
    is_own, is_post = pl.col("agent_id") == agent_id, pl.col("event") == events.POST_PUBLISHED
    is_liked = (pl.col("event") == events.POST_LIKED) & (pl.col("author_id") == agent_id)

    found = []
    own_posts = pl.DataFrame(schema={"run": pl.UInt32, "parent_id": pl.String})
    for frame in logs.blocks_where(is_own | is_liked | is_post, columns=_READ):
        new_posts = frame.filter(is_own, is_post).select("run", parent_id="post_id")
        own_posts = pl.concat([own_posts, new_posts])
        answers = frame.filter(is_post, ~is_own).join(
            own_posts.unique(), on=["run", "parent_id"], how="semi"
        )
        part = pl.concat([frame.filter(is_own | is_liked), answers]).sort("run", "line")
        # A copy, since the slice itself would keep its whole block in memory.
        found.append(pl.DataFrame(part.rows(), part.schema, orient="row"))

    story = pl.concat(found)
    if not story.height:
        raise no_such_agent(logs, agent_id)

    return story


def no_such_agent(logs: RunLogs, agent_id: str) -> InputError:
    """Return an error that names some agents that the logs do have."""
    some = ", ".join(_some_agents(logs))
    hint = f"; the first in it are {some}" if some else ""
    return InputError(f"no agent {agent_id!r} in the log{hint}")


def _some_agents(logs: RunLogs) -> list[str]:
    names: dict[str, None] = {}
    for frame in logs.blocks(columns=["agent_id"]):
        first = frame["agent_id"].drop_nulls().unique(maintain_order=True).head(_MOST_NAMES)
        names.update(dict.fromkeys(first))
        if len(names) >= _MOST_NAMES:
            break

    return list(names)[:_MOST_NAMES]


def _sentence(event: Mapping[str, Any], agent_id: str) -> str:
    if event["event"].startswith(WORLD_EVENTS):
        return _of_world(event)

    return _SENTENCES.get(event["event"], _says("{event}"))(event, agent_id)


def seconds_of_rounds(logs: RunLogs) -> dict[int, float]:
    """Return the seconds in a round of each run whose events happen at rates."""
    return {
        number: run.seconds_per_round
        for number, run in enumerate(logs.runs)
        if run.seconds_per_round
    }


def _moves_of(logs: RunLogs, agents: pl.Series) -> pl.DataFrame:
    """Return all events at which some agents join or move."""
    is_move = pl.col("event").is_in(_MOVES) & pl.col("agent_id").is_in(agents.unique().to_list())
    moves = pl.concat(logs.blocks_where(is_move, columns=(*STAMP, "agent_id")))
    return moves.with_columns(parse_time("timestamp"))


def _with_rounds(
    table: pl.DataFrame, moves: pl.DataFrame, seconds: Mapping[int, float]
) -> pl.DataFrame:
    """Add the time in rounds that agents had been in a state, where events happen at rates."""
    unit = pl.col("run").replace_strict(seconds, default=None, return_dtype=pl.Float64)
    length = pl.col("timestamp").diff().over("run", "agent_id").dt.total_microseconds() / 1e6
    moved = moves.filter(pl.col("event").is_in(_MOVES)).select(
        "run", "line", rounds_in_state=length / unit
    )
    return table.join(moved, on=["run", "line"], how="left", maintain_order="left")


def _joins(event: Mapping[str, Any], _agent_id: str) -> str:
    kind = f" as a {event['archetype']}" if event["archetype"] else ""
    return f"joins{kind}, {event['state']}"


def _moves(event: Mapping[str, Any], _agent_id: str) -> str:
    ticks, rounds = event["ticks_in_state"], event.get("rounds_in_state")
    after = "" if ticks is None else f" after {ticks} {'tick' if ticks == 1 else 'ticks'}"
    if rounds is not None:
        after = f" after {rounds:.3g} rounds"
    ends = f"{event['from_state']} to {event['to_state']}"
    return f"{ends} on {event['trigger']}{after}{_about(event)}"


def _decides(event: Mapping[str, Any], _agent_id: str) -> str:
    # The log may hold anything under "probabilities", so only plausible values are shown.
    likely = {
        name: f" {value:.0%}"
        for name, value in read_object(event["probabilities"]).items()
        if isinstance(value, (int, float)) and value <= 1
    }
    options = ", ".join(f"{option}{likely.get(option, '')}" for option in event["options"] or ())
    by = event["model"] if event["source"] == "model" and event["model"] else event["source"]
    why = f": {_brief(event['reason'])}" if event["reason"] else ""

    said = f', saying "{event["said"]}"' if event["said"] else ""

    return f"chooses {event['chosen']} among {options} ({by}{why}){said}{_about(event)}"


def _publishes(event: Mapping[str, Any], agent_id: str) -> str:
    is_own = event["agent_id"] == agent_id
    who = "" if is_own else f"{event['agent_id']} "
    # Only an answer by another agent is known to refer to a post of this one.
    whose = "" if is_own else "its "
    verb = {
        "reply": f"replies to {whose}{event['parent_id']} with",
        "reshare": f"reshares {whose}{event['parent_id']} as",
    }

    return f"{who}{verb.get(event['kind'], 'posts')} {event['post_id']}: {event['text']}"


def _likes(event: Mapping[str, Any], agent_id: str) -> str:
    if event["agent_id"] == agent_id:
        return f"likes {event['post_id']} of {event['author_id']}"
    return f"{event['agent_id']} likes its {event['post_id']}"


def _weighs(event: Mapping[str, Any], _agent_id: str) -> str:
    found = (
        f"{name} {event[name]:.3g}"
        for name in ("relevance", "threshold")
        if event[name] is not None
    )
    return f"weighs {event['post_id']}: {', '.join(found)}"


def _says(sentence: str) -> Callable[[Mapping[str, Any], str], str]:
    """Return a function that fills an event's keys into a sentence."""
    return lambda event, _agent_id: sentence.format_map(event)


def _of_world(event: Mapping[str, Any]) -> str:
    own = (f", {key} {in_words(value)}" for key, value in read_object(event[OWN_KEYS]).items())
    return _brief(event["event"].removeprefix(WORLD_EVENTS) + "".join(own))


def _has_written(event: Mapping[str, Any], _agent_id: str) -> str:
    by = (event["source"] == "model" and event.get("model")) or event["source"]
    if event["source"] == "failed":
        return f"has no text for {event['key']}: {_brief(event['reason'])}"
    if event["source"] == "fallback":
        taken = _brief(event["text"])
        return f"has no text for {event['key']}, and takes {taken}: {_brief(event['reason'])}"

    cut = ", cut" if event.get("cut") else ""
    return f"has a text for {event['key']} ({by}{cut}): {_brief(words_of(event['text']))}"


def _takes_step(event: Mapping[str, Any], _agent_id: str) -> str:
    target, reason = event["moved_to"], event["reason"]
    why = f": {reason}" if reason else ""
    led = f", to {target}" if target else ""
    return f"turn {event['turn']}, step {event['step']} {event['outcome']}{led}{why}"


def _carries_out(event: Mapping[str, Any], _agent_id: str) -> str:
    ended = "done" if event["succeeded"] else "failed"
    return f"turn {event['turn']}, the action of step {event['step']} {ended}"


def _is_refused(event: Mapping[str, Any], _agent_id: str) -> str:
    target = event["target"]
    what = f"may not go to {target}" if target else "may not run"
    return f"turn {event['turn']}, step {event['step']} {what}: {event['reason']}"


def _ends_cycle(event: Mapping[str, Any], _agent_id: str) -> str:
    why = f": {event['reason']}" if event["reason"] else ""
    led = f"cycle {event['cycle']} in {event['state']} {event['outcome']}"
    return f"{led}, then {event['next_state']}{why}"


def _acts(event: Mapping[str, Any], _agent_id: str) -> str:
    why = f": {event['reason']}" if event["reason"] else ""
    return f"cycle {event['cycle']}, {event['type']} of {event['tags']} {event['outcome']}{why}"


def _may_not_act(event: Mapping[str, Any], _agent_id: str) -> str:
    what = " of ".join(name for name in (event["type"], event["tags"]) if name) or "no action"
    return f"cycle {event['cycle']}, {what} refused: {event['reason']}"


def _pages(event: Mapping[str, Any], _agent_id: str) -> str:
    kinds = {"moved_out": "moved out", "moved_in": "moved in"}
    moved = [f"{told} {', '.join(event[key])}" for key, told in kinds.items() if event.get(key)]
    return f"cycle {event['cycle']}, paging ({event['why']}): {', '.join(moved) or 'moved nothing'}"


def _discards(event: Mapping[str, Any], _agent_id: str) -> str:
    answer = f"the answer {event['chosen']} to {event['trigger']}"
    if event["reason"] == "not_enabled":
        return f"{answer} is no longer possible"
    return f"{answer} comes too late"


_SENTENCES: dict[str, Callable[[Mapping[str, Any], str], str]] = {
    events.AGENT_JOINED: _joins,
    events.TRANSITION: _moves,
    events.DECISION: _decides,
    events.POST_PUBLISHED: _publishes,
    events.POST_LIKED: _likes,
    events.POST_WEIGHED: _weighs,
    events.GUARD_FAILED: _says("the guard of {trigger} fails: {error}"),
    events.ACTION_FAILED: _says("the action of {trigger} fails: {error}"),
    events.TEXT_WRITTEN: _has_written,
    events.WORKFLOW_STEP: _takes_step,
    events.WORKFLOW_ACTION: _carries_out,
    events.WORKFLOW_REFUSED: _is_refused,
    events.WORKFLOW_RESET: _says("starts over in {to_state}: its workflow has no {from_state}"),
    events.COGNITION_CYCLE: _ends_cycle,
    events.COGNITION_ACTION: _acts,
    events.COGNITION_REFUSED: _may_not_act,
    events.COGNITION_PAGED: _pages,
    events.COGNITION_STOPPED: _says("stops after cycle {cycle}: {reason}"),
    events.COGNITION_RESET: _says("starts over in {to_state}: there is no state {from_state}"),
    events.COGNITION_WINDOW: _says("keeps prompts below {hard_limit} of a window of {window}"),
    events.ANSWER_DISCARDED: _discards,
}


def _brief(text: str | None, most: int = _MOST_CHARACTERS) -> str:
    """Return a shortened text on one line; the column ``text`` has all of it."""
    line = " ".join((text or "").split())
    return line if len(line) <= most else line[: most - 3] + "..."


def _about(event: Mapping[str, Any]) -> str:
    """Return the subject of an event: the id of a post, or else the whole context."""
    context = read_object(event["context"])
    told = context.get("post_id") or _brief(in_words(context), _MOST_ABOUT)
    return f", about {told}" if told else ""
