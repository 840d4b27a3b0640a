"""What an agent of the social feed did about each post, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.merging import merge_by_first
from prism.analysis._reading.parsing import TYPES
from prism.analysis._reading.runs import Note
from prism.analysis._reading.scanning import read_object
from prism.analysis._tables.agent_story import no_such_agent
from prism.analysis._tables.engagement import remark_no_feed
from prism.statechart import AgentState
from prism.statechart.social import DECIDES, IGNORES, ROUND_ENDS
from prism.telemetry.events import DECISION, POST_PUBLISHED, POST_WEIGHED, TRANSITION

_EVALUATING = AgentState.EVALUATING.value
_WEIGHED = (IGNORES, DECIDES)
_READ = (
    *("round", "tick", "agent_id", "from_state", "to_state", "trigger", "context", "post_id"),
    *("relevance", "threshold", "state", "options", "chosen", "source", "reason", "probabilities"),
    "said",
    "decision_id",
)
_INSTEAD = (
    "'prism log decision' lists what its agents decided, and 'prism log agent' all that one did"
)
_SHOWN = (
    *("run", "line", "round", "tick", "post_id", "relevance", "threshold", "topics", "options"),
    *("chosen", "why", "trigger", "source", "reason", "probabilities", "said"),
    *("author_id", "kind", "text", "decision_id"),
)
_OF_DECISION = ("source", "reason", "probabilities", "said", "decision_id")
_OF_POST = ("author_id", "kind", "topics", "text")
_SCHEMA = {
    "run": pl.UInt32(),
    "line": pl.UInt32(),
    **{name: TYPES[name] for name in _SHOWN if name in TYPES and name not in _OF_POST},
    "why": pl.String(),
}


def reasons(logs: RunLogs, agent_id: str) -> pl.DataFrame:
    """Explain what an agent of the social feed did about each post that it looked at.

    Args:
        logs: The logs, from `read_log`.
        agent_id: The agent.

    Returns:
        One row for each look at a post, in the order of the log: ``line`` (of the transition by
        which the agent moved on), ``round``, ``tick``, ``post_id``, ``relevance`` and ``threshold``
        (null if the log lacks them, which a note says), ``topics``, ``options`` (the states that
        were open; none if it was not weighed), ``chosen`` (the state it went to), ``why`` (a
        phrase), ``trigger``, ``source``, ``reason``, ``probabilities`` (JSON) and ``said`` (the
        reason that a model gave) of the decision (null if there was nothing to decide),
        ``author_id``, ``kind`` and ``text`` of the post, and the ``decision_id`` if prompts were
        recorded. With ``run`` first if there are several.

    Raises:
        InputError: If the logs have no such agent.
    """
    found = pl.DataFrame(list(_rows(_events_of(logs, agent_id))), schema=_SCHEMA, orient="row")
    _remark_missing(logs, found)
    remark_no_feed(logs, found["run"], _INSTEAD)

    table = found.join(
        _posts(logs, found), on=["run", "post_id"], how="left", maintain_order="left"
    )

    return logs.labelled(table.select(_SHOWN))


@dataclass(slots=True)
class _Look:
    """What is known about a post that an agent is looking at."""

    post_id: str | None = None
    weighed: Mapping[str, Any] = field(default_factory=dict)
    decided: Mapping[str, Any] = field(default_factory=dict)


def _events_of(logs: RunLogs, agent_id: str) -> Iterator[Mapping[str, Any]]:
    own = logs.blocks_where(pl.col("agent_id") == agent_id, columns=_READ)
    # Copies, since the slices themselves would keep their whole blocks in memory.
    events = pl.concat(pl.DataFrame(part.rows(), part.schema, orient="row") for part in own)
    if events.is_empty():
        raise no_such_agent(logs, agent_id)

    return events.iter_rows(named=True)


def _rows(events: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    looks: dict[int, _Look] = {}
    for event in events:
        look = looks.setdefault(event["run"], _Look())
        if event["event"] == POST_WEIGHED:
            # An earlier decision on the same post had no effect.
            look.weighed, look.decided = event, {}
        elif event["event"] == DECISION and event["state"] == _EVALUATING:
            look.decided = event
        elif event["event"] == TRANSITION:
            if event["from_state"] == _EVALUATING:
                yield _row(event, look)
            looks[event["run"]] = _Look(_post_of(event))


def _row(event: Mapping[str, Any], look: _Look) -> dict[str, Any]:
    weighed, decided = look.weighed, look.decided
    known = {
        **{name: event[name] for name in ("run", "line", "round", "tick", "trigger")},
        "post_id": weighed.get("post_id") or _post_of(event) or look.post_id,
        "relevance": weighed.get("relevance"),
        "threshold": weighed.get("threshold"),
        "options": decided.get("options") or _only_option(event),
        "chosen": event["to_state"],
        **{name: decided.get(name) for name in _OF_DECISION},
    }
    return {**known, "why": _why(known)}


def _only_option(event: Mapping[str, Any]) -> list[str]:
    return [event["to_state"]] if event["trigger"] in _WEIGHED else []


def _why(known: Mapping[str, Any]) -> str:
    if known["trigger"] == ROUND_ENDS:
        return "the round ended before it was weighed"
    if known["trigger"] not in _WEIGHED:
        return f"left by {known['trigger']} before it was weighed"

    relevance, threshold = known["relevance"], known["threshold"]
    if known["source"] is not None:
        reason = f": {known['reason']}" if known["reason"] else ""
        said = f', saying "{known["said"]}"' if known["said"] else ""
        return f"chose {known['chosen']} ({known['source']}{reason}){said}"
    if relevance is not None and threshold is not None and relevance < threshold:
        return f"relevance {relevance:.4g} is below {threshold:.4g}"

    return "there was no other option"


def _post_of(event: Mapping[str, Any]) -> str | None:
    post = read_object(event["context"]).get("post_id")
    return post if isinstance(post, str) else None


def _posts(logs: RunLogs, found: pl.DataFrame) -> pl.DataFrame:
    """Return the posts, read in a second pass so that no other posts are kept in memory."""
    wanted = found.select("run", "post_id").drop_nulls().unique()
    posts = merge_by_first(["run", "post_id"])
    for frame in logs.blocks(POST_PUBLISHED, columns=["post_id", "agent_id", *_OF_POST]):
        own = frame.join(wanted, on=["run", "post_id"], how="semi")
        posts.add(
            own.select("run", "post_id", pl.col("agent_id").alias("author_id"), *_OF_POST[1:])
        )

    return posts.table()


def _remark_missing(logs: RunLogs, found: pl.DataFrame) -> None:
    weighed = found.filter(pl.col("trigger").is_in(_WEIGHED))
    for (number,), part in weighed.group_by("run", maintain_order=True):
        if part["threshold"].null_count() == part.height:
            path = str(logs.runs[number].path)
            text = "has no relevance and threshold: it was written before they were logged"
            logs.remark(Note("not_weighed", path, None, text))
