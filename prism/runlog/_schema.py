"""The published schema of a run log: every event and its keys, defined once.

``python -m prism.runlog._schema docs`` writes the JSON Schema and the page of documentation.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prism.telemetry import events

SCHEMA_NAME = "events.schema.json"
PAGE_NAME = "events.md"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value may be, in words and as JSON Schema.

    Args:
        words: For the page.
        schema: For validators.
    """

    words: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Key:
    """One key of an event.

    Args:
        name: The key.
        kind: What its value may be.
        meaning: What it means, with its unit.
        required: Whether the event always has it.
    """

    name: str
    kind: Kind
    meaning: str
    required: bool = True


@dataclass(frozen=True, slots=True)
class Event:
    """One kind of event.

    Args:
        name: Value of the key ``event``.
        level: ``info``, ``warning`` or ``error``.
        meaning: When it is written.
        keys: Its keys, besides `COMMON`.
    """

    name: str
    level: str
    meaning: str
    keys: tuple[Key, ...] = ()


def _or_null(kind: Kind) -> Kind:
    return Kind(f"{kind.words} or null", {**kind.schema, "type": [kind.schema["type"], "null"]})


def _one_of(*texts: str) -> Kind:
    return Kind(" ".join(f"`{text}`" for text in texts), {"type": "string", "enum": list(texts)})


def _each(words: str, value: Kind) -> Kind:
    return Kind(words, {"type": "object", "additionalProperties": value.schema})


def _optional(keys: Iterable[Key]) -> tuple[Key, ...]:
    return tuple(replace(key, required=False) for key in keys)


_TEXT = Kind("text", {"type": "string"})
_TEXTS = Kind("list of texts", {"type": "array", "items": _TEXT.schema})
_WHOLE = Kind("whole number", {"type": "integer"})
_COUNT = Kind("whole number, 0 or more", {"type": "integer", "minimum": 0})
_SECONDS = Kind("number, 0 or more", {"type": "number", "minimum": 0})
_SHARE = Kind("number from 0 to 1", {"type": "number", "minimum": 0, "maximum": 1})
_CHANCES = _each(
    "object: a number from 0 to 1 for each text",
    Kind("", {"type": "number", "minimum": 0, "maximum": 1}),
)
_COUNTS = _each("object: a whole number, 0 or more, for each text", _COUNT)
_OBJECT = Kind("object", {"type": "object"})
_TIME = Kind("time", {"type": "string", "format": "date-time", "pattern": "Z$"})

COMMON = (
    Key("event", _TEXT, "Name of the event."),
    Key(
        "timestamp",
        _TIME,
        "Time in UTC as ISO 8601: simulated time in a simulation, else real time.",
    ),
    Key(
        "round",
        _COUNT,
        "Round, counted from 1; 0 before the first. Always in a simulation, else if it is bound.",
        required=False,
    ),
    Key(
        "tick",
        _COUNT,
        "Tick of the round, counted from 1; 0 before the first. Present like the round.",
        required=False,
    ),
)
"""Keys of every line."""

_CHART = Key("chart", _TEXT, "Name of the chart.")
_AGENT = Key("agent_id", _TEXT, "Id of the agent.")
_TRIGGER = Key("trigger", _TEXT, "Trigger that was fired.")
_FROM = Key("from_state", _TEXT, "Source state of the transition.")
_TO = Key("to_state", _TEXT, "Target state.")
_POST = Key("post_id", _TEXT, "Id of the post.")
_CONTEXT = Key(
    "context", _or_null(_OBJECT), 'Identifying fields of the context, such as `{"post_id": "p1"}`.'
)
_ERROR = Key("error", _TEXT, "The exception on one line: its type and message.")
_TRACEBACK = Key("exception", _TEXT, "Its traceback, on several lines.")
_FAULT = (_ERROR, _CHART, _AGENT, _FROM, _TO, _TRIGGER, _TRACEBACK)
_ACTIVITY = (
    Key("agent_ticks", _COUNT, "Steps taken: agents times ticks."),
    Key("transitions", _COUNT, "Transitions between states."),
    Key("posts", _COUNT, "Posts published that are neither replies nor reshares."),
    Key("replies", _COUNT, "Replies published."),
    Key("reshares", _COUNT, "Reshares published."),
    Key("likes", _COUNT, "Likes given."),
    Key("decisions_asked", _COUNT, "Questions asked of the reasoner."),
    Key("decisions_answered", _COUNT, "Questions it answered; the others took the fallback."),
    Key("timeouts", _COUNTS, "Time-outs, by the state that the agent left."),
    Key(
        "fallbacks",
        _COUNTS,
        "Decisions that took the fallback, by the kind of reason and the server; in earlier logs "
        "by the reason itself.",
    ),
    Key(
        "fallback_examples",
        _each("object: a text for each text", _TEXT),
        "The first reason of each of these, in full; absent where no decision fell back.",
        required=False,
    ),
)
_COST = (
    Key(
        "latency",
        _SECONDS,
        "Seconds from asking the model to its answer: `queue_seconds` and `request_seconds`.",
    ),
    Key("model", _or_null(_TEXT), "Model that was asked, where known."),
    Key("host", _or_null(_TEXT), "Address of the server that was asked, where known."),
    Key(
        "attempts",
        _COUNT,
        "Requests it took; 0 if none was made for this decision, such as when another's answer "
        "served it, too.",
    ),
    Key(
        "input_tokens",
        _or_null(_COUNT),
        "Tokens that the model read for this decision, where known.",
    ),
    Key("output_tokens", _or_null(_COUNT), "Tokens that it wrote, where known."),
)
_KNOWN_COST = (
    Key(
        "queue_seconds",
        _SECONDS,
        "Seconds of the latency before and after the last request: waiting for a slot, pauses "
        "between attempts, requests that failed before.",
    ),
    Key("request_seconds", _SECONDS, "Seconds that the last request took; 0 if none was sent."),
    Key(
        "total_duration",
        _COUNT,
        "Nanoseconds that the server says the reply took it, as the next two where it says so.",
    ),
    Key("load_duration", _COUNT, "Of these, nanoseconds of loading the model."),
    Key("eval_duration", _COUNT, "Of these, nanoseconds of writing the reply."),
    Key(
        "done_reason",
        _TEXT,
        "Why the model ended its reply, such as `stop`; `length` if it ran out of tokens.",
    ),
)

EVENTS = (
    Event(
        events.RUN_STARTED,
        "info",
        "A log begins. A simulation writes the optional keys, `prism.runlog.configure` does not.",
        (
            Key(
                "schema",
                Kind(f"`{events.SCHEMA_VERSION}`", {"const": events.SCHEMA_VERSION}),
                "Version of this schema.",
            ),
            *_optional(
                (
                    _CHART,
                    Key("agents", _COUNT, "Number of agents."),
                    Key("rounds", _COUNT, "Rounds to run."),
                    Key("ticks_per_round", _COUNT, "Steps of each agent in a round."),
                    Key("seed", _WHOLE, "Seed of all random numbers."),
                )
            ),
        ),
    ),
    Event(
        events.AGENT_JOINED,
        "info",
        "An agent joins a simulation, before the first round.",
        (
            _AGENT,
            Key("display_name", _TEXT, "Display name."),
            Key("archetype", _or_null(_TEXT), "Archetype of its behaviour, if any."),
            Key("interests", _TEXTS, "Topics that interest it."),
            Key("following", _COUNT, "Number of agents that it follows."),
            Key("state", _TEXT, "Initial state."),
            Key(
                "timeout_threshold",
                _COUNT,
                "Longest dwell time in ticks, in a state for which the chart sets no limit.",
            ),
            Key("attributes", _OBJECT, "What else is known of it, if anything.", required=False),
        ),
    ),
    Event(events.ROUND_STARTED, "info", "A round of a simulation begins."),
    Event(
        events.ROUND_ENDED,
        "info",
        "A round of a simulation ends; the counts are of this round.",
        (
            Key(
                "states",
                _COUNTS,
                "Agents in each state at the last tick, before all return to idle.",
            ),
            *_ACTIVITY,
        ),
    ),
    Event(
        events.POST_PUBLISHED,
        "info",
        "A post is published. Posts of round 0, tick 0 are older than the simulation.",
        (
            Key("agent_id", _TEXT, "Id of its author."),
            _POST,
            Key("kind", _one_of("post", "reply", "reshare"), "Kind of post."),
            Key("parent_id", _or_null(_TEXT), "Id of the post that it replies to or reshares."),
            Key("root_id", _TEXT, "Id of the first post of its cascade, which may be itself."),
            Key("topics", _TEXTS, "Its topics."),
            Key("text", _TEXT, "Its text."),
        ),
    ),
    Event(
        events.POST_LIKED,
        "info",
        "An agent likes a post.",
        (_AGENT, _POST, Key("author_id", _TEXT, "Id of the post's author.")),
    ),
    Event(
        events.POST_WEIGHED,
        "info",
        "An agent weighs a post. Below the threshold it scrolls on; from there on a decision "
        "follows.",
        (
            _AGENT,
            _POST,
            Key(
                "relevance",
                _or_null(_SHARE),
                "Relevance of the post to the agent; null if the agent's class weighs posts in a "
                "way of its own.",
            ),
            Key("threshold", _or_null(_SHARE), "Relevance from which the agent engages."),
        ),
    ),
    Event(
        events.TRANSITION,
        "info",
        "An agent changes its state.",
        (
            _CHART,
            _AGENT,
            _FROM,
            _TO,
            _TRIGGER,
            Key(
                "ticks_in_state",
                _or_null(_COUNT),
                "Dwell time in the source state, in ticks; null if the agent does not count them.",
            ),
            _CONTEXT,
        ),
    ),
    Event(
        events.DECISION,
        "info",
        "An ambiguous event is decided; a warning if the source is `fallback`. The keys from "
        "`latency` to `output_tokens` are present, all or none, if a model was to be asked; those "
        "after them where they are known.",
        (
            _AGENT,
            Key("state", _TEXT, "State of the agent."),
            _TRIGGER,
            Key("options", _TEXTS, "Target states of the enabled transitions, in chart order."),
            Key("chosen", _TEXT, "Target state that was chosen."),
            Key(
                "source",
                _one_of("model", "cache", "replay", "policy", "fallback"),
                "Origin of the choice: a model, its cached or logged answer, a policy (also any "
                "reasoner that has only `decide`), or none.",
            ),
            Key("reason", _or_null(_TEXT), "Why the fallback was taken; null otherwise."),
            Key("probabilities", _or_null(_CHANCES), "Probability of each option, if known."),
            _CONTEXT,
            *_optional((*_COST, *_KNOWN_COST)),
        ),
    ),
    Event(
        events.ANSWER_DISCARDED,
        "warning",
        "An answer no longer applied when it came, or when it was its turn, and was discarded.",
        (
            _CHART,
            _AGENT,
            _TRIGGER,
            Key("asked_in", _TEXT, "State in which the agent was asked."),
            Key("now_in", _TEXT, "State of the agent when the answer came."),
            Key("chosen", _TEXT, "Target state that was chosen."),
            Key(
                "reason",
                _one_of("moved", "not_enabled"),
                "The agent had moved, even if it came back; or the transition was no longer "
                "enabled. Older logs do not have it.",
                required=False,
            ),
        ),
    ),
    Event(
        events.CACHE_FAILED,
        "warning",
        "The store of a model's answers failed and is no longer used.",
        (_ERROR,),
    ),
    Event(
        events.MODE_UNKNOWN,
        "warning",
        "A reasoner in mode `auto` could not find out whether server and model support decision "
        "questions. It asks by chat until it can, checks again later, and reports only the first "
        "failure.",
        (_ERROR,),
    ),
    Event(
        events.GUARD_FAILED,
        "error",
        "A guard raised an exception; its transition is not enabled.",
        _FAULT,
    ),
    Event(
        events.ACTION_FAILED,
        "error",
        "An action raised an exception; the transition took place nevertheless.",
        _FAULT,
    ),
    Event(
        events.RUN_ENDED,
        "info",
        "The log is complete; without this event it was cut off or is still being written. "
        "A simulation adds its counts.",
        _optional(_ACTIVITY),
    ),
)
"""All events of prism."""


def json_schema(*, strict: bool = False) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one line of a log.

    Args:
        strict: Refuse unknown events and keys. A reader must not, since a later version may add
            some, and an application may write its own.
    """
    branches = [
        {
            "if": {"properties": {"event": {"const": event.name}}},
            "then": {"$ref": f"#/$defs/{event.name}"},
        }
        for event in EVENTS
    ]
    known = {"properties": {"event": {"enum": [event.name for event in EVENTS]}}} if strict else {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:prism-statecharts:run-log:{events.SCHEMA_VERSION}" + ":strict" * strict,
        "title": f"A line of a prism run log, version {events.SCHEMA_VERSION}",
        **_object(COMMON),
        "allOf": [*([known] if known else []), *branches],
        "$defs": {event.name: _event_schema(event, strict=strict) for event in EVENTS},
    }


def page() -> str:
    """Return the schema as a page of documentation, in Markdown."""
    return "\n".join(_page_lines())


def write(folder: Path) -> None:
    """Write the JSON Schema and the page into a folder.

    Raises:
        OSError: If that fails.
    """
    schema = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
    (folder / SCHEMA_NAME).write_text(schema, encoding="utf-8")
    (folder / PAGE_NAME).write_text(page(), encoding="utf-8")


def _event_schema(event: Event, *, strict: bool) -> dict[str, Any]:
    if not strict:
        return {"title": event.name, "description": event.meaning, **_object(event.keys)}
    return {"title": event.name, **_object((*COMMON, *event.keys)), "additionalProperties": False}


def _object(keys: Iterable[Key]) -> dict[str, Any]:
    found = tuple(keys)
    return {
        "type": "object",
        "required": [key.name for key in found if key.required],
        "properties": {key.name: {"description": key.meaning, **key.kind.schema} for key in found},
    }


_INTRODUCTION = f"""\
# The events of a run log

Version {events.SCHEMA_VERSION}. This page and [the JSON Schema]({SCHEMA_NAME}) are generated from
one definition by `python -m prism.runlog._schema docs`, and a test checks every event against it.
[Logging](logging.md) shows how to log your own loop.

A log is a file of JSON objects, one a line, in UTF-8 and in the order of events. A reader must
ignore unknown events and keys: they may be added without a new version number, and an application
may write its own events into the same file. The number changes when a reader would have to change.
Keys marked "optional" may be absent; all others are always present.

## Every line
"""


def _page_lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield from _table(COMMON)
    for event in EVENTS:
        yield f"\n## `{event.name}`\n"
        yield f"Level {event.level}. {event.meaning}"
        if event.keys:
            yield ""
            yield from _table(event.keys)

    yield ""


def _table(keys: Iterable[Key]) -> Iterator[str]:
    yield "| key | value | meaning |"
    yield "|---|---|---|"
    for key in keys:
        optional = "" if key.required else ", optional"
        yield f"| `{key.name}` | {key.kind.words}{optional} | {key.meaning} |"


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="python -m prism.runlog._schema", description=__doc__)
    _parser.add_argument("folder", type=Path, help="where to write them")
    write(_parser.parse_args().folder)
