"""The published schema of a run log: every event and its keys, defined once.

``python -m prism.runlog._schema docs`` writes the JSON Schema and the page that are made from the
definition.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prism.telemetry.events import (
    ACTION_FAILED,
    AGENT_JOINED,
    ANSWER_DISCARDED,
    CACHE_FAILED,
    DECISION,
    GUARD_FAILED,
    MODE_UNKNOWN,
    POST_LIKED,
    POST_PUBLISHED,
    ROUND_ENDED,
    ROUND_STARTED,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
    TRANSITION,
)

SCHEMA_NAME = "events.schema.json"
PAGE_NAME = "events.md"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value may be.

    Args:
        words: For people.
        schema: As JSON Schema.
    """

    words: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Key:
    """One key of an event.

    Args:
        name: The key.
        kind: What its value may be.
        meaning: What it says, with its unit.
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
        name: What stands under ``event``.
        level: How serious it is: ``info``, ``warning`` or ``error``.
        meaning: What it says.
        keys: What it says it with, besides `COMMON`.
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
        "When, in UTC as ISO 8601: simulated time with a simulation's clock, else real time.",
    ),
    Key(
        "round",
        _COUNT,
        "Round, counted from 1; 0 before the first. There in a simulation, else if bound.",
        required=False,
    ),
    Key(
        "tick",
        _COUNT,
        "Tick of the round, from 1; 0 before the first. There in a simulation, else if bound.",
        required=False,
    ),
)
"""Keys of every line."""

_CHART = Key("chart", _TEXT, "Name of the chart.")
_AGENT = Key("agent_id", _TEXT, "Id of the agent.")
_TRIGGER = Key("trigger", _TEXT, "Event of the chart that was fired.")
_FROM = Key("from_state", _TEXT, "State that the move starts from.")
_TO = Key("to_state", _TEXT, "State that it leads to.")
_POST = Key("post_id", _TEXT, "Id of the post.")
_CONTEXT = Key(
    "context",
    _or_null(_OBJECT),
    'What it was about, by what identifies it, such as `{"post_id": "p1"}`.',
)
_ERROR = Key("error", _TEXT, "The exception on one line: its type and message.")
_TRACEBACK = Key("exception", _TEXT, "Its traceback, over many lines.")
_FAULT = (_ERROR, _CHART, _AGENT, _FROM, _TO, _TRIGGER, _TRACEBACK)
_ACTIVITY = (
    Key("agent_ticks", _COUNT, "Steps taken: agents times ticks."),
    Key("transitions", _COUNT, "Moves between states."),
    Key("posts", _COUNT, "Posts of their own that agents published."),
    Key("replies", _COUNT, "Replies they published."),
    Key("reshares", _COUNT, "Reshares they published."),
    Key("likes", _COUNT, "Posts they liked."),
    Key("decisions_asked", _COUNT, "Questions put to the reasoner."),
    Key(
        "decisions_answered", _COUNT, "Those that it answered itself; the others took the fallback."
    ),
    Key("timeouts", _COUNTS, "Time-outs that moved an agent on, by the state it was in."),
    Key("fallbacks", _COUNTS, "Decisions that took the fallback, by the reason."),
)
_COST = (
    Key("latency", _SECONDS, "Seconds from asking the model to its answer."),
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

EVENTS = (
    Event(
        RUN_STARTED,
        "info",
        "A log begins. A simulation says what it will run; `prism.runlog.configure` knows the version alone.",
        (
            Key(
                "schema",
                Kind(f"`{SCHEMA_VERSION}`", {"const": SCHEMA_VERSION}),
                "Version of this schema.",
            ),
            *_optional(
                (
                    _CHART,
                    Key("agents", _COUNT, "Number of agents."),
                    Key("rounds", _COUNT, "Rounds to run."),
                    Key("ticks_per_round", _COUNT, "Steps that each agent takes in a round."),
                    Key("seed", _WHOLE, "Seed of all random numbers."),
                )
            ),
        ),
    ),
    Event(
        AGENT_JOINED,
        "info",
        "An agent of a simulation, before the first round.",
        (
            _AGENT,
            Key("display_name", _TEXT, "What others call it."),
            Key("archetype", _or_null(_TEXT), "Kind of user that it behaves like."),
            Key("interests", _TEXTS, "Topics it cares about."),
            Key("following", _COUNT, "Number of agents that it follows."),
            Key("state", _TEXT, "State it starts in."),
            Key(
                "timeout_threshold",
                _COUNT,
                "Ticks it may dwell in a state for which the chart sets no limit.",
            ),
        ),
    ),
    Event(ROUND_STARTED, "info", "A round of a simulation begins."),
    Event(
        ROUND_ENDED,
        "info",
        "A round of a simulation is over; the counts are of this round.",
        (
            Key(
                "states",
                _COUNTS,
                "Agents in each state at the last tick, before all are sent to idle.",
            ),
            *_ACTIVITY,
        ),
    ),
    Event(
        POST_PUBLISHED,
        "info",
        "A post appears. Those with tick 0 of round 0 were there before the simulation began.",
        (
            Key("agent_id", _TEXT, "Id of its author."),
            _POST,
            Key("kind", _one_of("post", "reply", "reshare"), "Whether it stands for itself."),
            Key("parent_id", _or_null(_TEXT), "Id of the post that it replies to or reshares."),
            Key(
                "root_id",
                _TEXT,
                "Id of the post that its cascade began with; its own if it began one.",
            ),
            Key("topics", _TEXTS, "What it is about."),
            Key("text", _TEXT, "What it says."),
        ),
    ),
    Event(
        POST_LIKED,
        "info",
        "An agent likes a post.",
        (_AGENT, _POST, Key("author_id", _TEXT, "Id of the post's author.")),
    ),
    Event(
        TRANSITION,
        "info",
        "An agent has moved from one state to another.",
        (
            _CHART,
            _AGENT,
            _FROM,
            _TO,
            _TRIGGER,
            Key(
                "ticks_in_state",
                _or_null(_COUNT),
                "Ticks that the agent had dwelt in the state it left; null if it does not count them.",
            ),
            _CONTEXT,
        ),
    ),
    Event(
        DECISION,
        "info",
        "Several moves were open, and one was chosen; a warning where the source is `fallback`. The keys from "
        "`latency` on are there if a model was to be asked: all or none.",
        (
            _AGENT,
            Key("state", _TEXT, "State that the agent was in."),
            _TRIGGER,
            Key("options", _TEXTS, "States that it could move to, in the chart's order."),
            Key("chosen", _TEXT, "The one that was chosen."),
            Key(
                "source",
                _one_of("model", "cache", "replay", "policy", "fallback"),
                "Who chose: a model, a cache or an earlier log of one, a policy, or nobody.",
            ),
            Key("reason", _or_null(_TEXT), "Why nobody chose; null otherwise."),
            Key(
                "probabilities",
                _or_null(_CHANCES),
                "How likely each option was, where the chooser knows.",
            ),
            _CONTEXT,
            *_optional(_COST),
        ),
    ),
    Event(
        ANSWER_DISCARDED,
        "warning",
        "An answer came after the agent had moved on, and was not followed.",
        (
            _CHART,
            _AGENT,
            _TRIGGER,
            Key("asked_in", _TEXT, "State in which the agent was asked."),
            Key("now_in", _TEXT, "State in which the answer found it."),
            Key("chosen", _TEXT, "What was chosen."),
        ),
    ),
    Event(
        CACHE_FAILED,
        "warning",
        "The store of a model's answers failed, and is used no more.",
        (_ERROR,),
    ),
    Event(
        MODE_UNKNOWN,
        "warning",
        "A reasoner in mode `auto` could not find out whether server and model take decision questions. Its questions "
        "are chats until it can: it looks again after a while, and tells of the first failure only.",
        (_ERROR,),
    ),
    Event(
        GUARD_FAILED, "error", "A guard raised an exception; the move counts as not open.", _FAULT
    ),
    Event(
        ACTION_FAILED,
        "error",
        "An action raised an exception; the move was made all the same.",
        _FAULT,
    ),
    Event(
        RUN_ENDED,
        "info",
        "The log is complete; one without this was cut off, or is still being written. A simulation adds its counts.",
        _optional(_ACTIVITY),
    ),
)
"""Every event that prism writes."""


def json_schema(*, strict: bool = False) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one line of a log.

    Args:
        strict: Refuse events and keys that prism does not write. Readers must not: a later version
            may add some, and an application may write its own.
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
        "$id": f"urn:prism-statecharts:run-log:{SCHEMA_VERSION}{':strict' if strict else ''}",
        "title": f"A line of a prism run log, version {SCHEMA_VERSION}",
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

Version {SCHEMA_VERSION}. This page and [the JSON Schema]({SCHEMA_NAME}) are made from one definition by
`python -m prism.runlog._schema docs`; a test holds every event that prism writes to it. How to get a log from a loop of
your own is told in [Logging](logging.md).

A log is a file of JSON objects, one a line, in UTF-8, in the order in which things happened. A reader must ignore
events and keys that it does not know: a version may gain some without a new number, and an application may write
events of its own into the same file. The number rises when a reader would have to change. Keys marked "optional" may be
absent; all others are always there.

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
