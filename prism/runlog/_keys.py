"""The keys of a run log's events: what their values may be, and those that several events have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

WORLD_EVENTS = "world."
"""How the names of a world's own events begin."""


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
        meaning: When it is written.
        keys: Its keys, besides `COMMON`.
        level: ``info``, ``warning`` or ``error``.
    """

    name: str
    meaning: str
    keys: tuple[Key, ...] = ()
    level: str = "info"


def or_null(kind: Kind) -> Kind:
    """Return a kind that may also be null."""
    return Kind(f"{kind.words} or null", {**kind.schema, "type": [kind.schema["type"], "null"]})


def one_of(*texts: str) -> Kind:
    """Return the kind of a value that is one of some texts."""
    return Kind(" ".join(f"`{text}`" for text in texts), {"type": "string", "enum": list(texts)})


def each(words: str, value: Kind) -> Kind:
    """Return the kind of an object whose values are all of one kind."""
    return Kind(words, {"type": "object", "additionalProperties": value.schema})


def optional(keys: Iterable[Key]) -> tuple[Key, ...]:
    """Return keys that an event may lack."""
    return tuple(replace(key, required=False) for key in keys)


TEXT = Kind("text", {"type": "string"})
TEXTS = Kind("list of texts", {"type": "array", "items": TEXT.schema})
WHOLE = Kind("whole number", {"type": "integer"})
COUNT = Kind("whole number, 0 or more", {"type": "integer", "minimum": 0})
NUMBER = Kind("number", {"type": "number"})
SECONDS = Kind("number, 0 or more", {"type": "number", "minimum": 0})
SHARE = Kind("number from 0 to 1", {"type": "number", "minimum": 0, "maximum": 1})
CHANCES = each(
    "object: a number from 0 to 1 for each text",
    Kind("", {"type": "number", "minimum": 0, "maximum": 1}),
)
COUNTS = each("object: a whole number, 0 or more, for each text", COUNT)
OBJECT = Kind("object", {"type": "object"})
OBJECTS = Kind("list of objects", {"type": "array", "items": OBJECT.schema})
HASH = Kind("16 hexadecimal digits", {"type": "string", "pattern": "^[0-9a-f]{16}$"})
TIME = Kind("time", {"type": "string", "format": "date-time", "pattern": "Z$"})

COMMON = (
    Key("event", TEXT, "Name of the event."),
    Key(
        "timestamp",
        TIME,
        "Time in UTC as ISO 8601: simulated time in a simulation, else real time.",
    ),
    Key(
        "round",
        COUNT,
        "Round, counted from 1; 0 before the first. Always in a simulation, else if it is bound.",
        required=False,
    ),
    Key(
        "tick",
        COUNT,
        "Tick of the round, counted from 1; 0 before the first. Present like the round.",
        required=False,
    ),
)
"""Keys of every line."""

CHART = Key("chart", TEXT, "Name of the chart.")
AGENT = Key("agent_id", TEXT, "Id of the agent.")
TRIGGER = Key("trigger", TEXT, "Trigger that was fired.")
FROM = Key("from_state", TEXT, "Source state of the transition.")
TO = Key("to_state", TEXT, "Target state.")
POST = Key("post_id", TEXT, "Id of the post.")
CONTEXT = Key(
    "context", or_null(OBJECT), 'Identifying fields of the context, such as `{"post_id": "p1"}`.'
)
COSTS = Key(
    "costs",
    each("object: an object for each text", COUNTS),
    "Costs by model, where agents have models of their own: `answers` (without fallbacks), "
    "`calls` (requests), `input_tokens` and `output_tokens`.",
)
TURN = Key("turn", COUNT, "Turn of the agent, counted from 1; 0 before the first.")
STEP = Key("step", TEXT, "Name of the step.")
CYCLE = Key("cycle", COUNT, "Cycle, counted from 1 over the life of the agent's memory.")
COGNITIVE_STATE = one_of("thinking", "executing", "paging")
ASKED = (
    Key("type", TEXT, "Type of the action, such as `working_memory_add`; empty if it has none."),
    Key("tags", TEXT, "Tags of the memory; empty if the action has none."),
)
TRUE = Kind("true", {"type": "boolean", "const": True})
ERROR = Key("error", TEXT, "The exception on one line: its type and message.")
TRACEBACK = Key("exception", TEXT, "Its traceback, on several lines.")
FAULT = (ERROR, CHART, AGENT, FROM, TO, TRIGGER, TRACEBACK)
COUNTED = (
    Key("agent_ticks", COUNT, "Steps taken: agents times ticks."),
    Key("transitions", COUNT, "Transitions between states."),
)
COUNTED_IN_FEED = (
    Key("posts", COUNT, "Posts published that are neither replies nor reshares."),
    Key("replies", COUNT, "Replies published."),
    Key("reshares", COUNT, "Reshares published."),
    Key("likes", COUNT, "Likes given."),
    Key("decisions_asked", COUNT, "Questions asked of the reasoner."),
    Key("decisions_answered", COUNT, "Questions it answered; the others took the fallback."),
    Key("timeouts", COUNTS, "Time-outs, by the state that the agent left."),
    Key(
        "fallbacks",
        COUNTS,
        "Decisions that took the fallback, by the kind of reason and the server; in earlier logs "
        "by the reason itself.",
    ),
    Key(
        "fallback_examples",
        each("object: a text for each text", TEXT),
        "The first reason of each of these, in full; absent where no decision fell back.",
        required=False,
    ),
)
WORD_SOURCES = ("model", "cache", "replay", "script", "fallback")
"""Who may have written the words of a post."""

TEXT_SOURCES = (*WORD_SOURCES, "template")
"""Who may have written a text that was of use."""

TEXTS_WRITTEN = Key(
    "texts",
    COUNTS,
    "Texts, by their source as in `text.written`; absent where none were asked for.",
    required=False,
)
COST = (
    Key(
        "latency",
        SECONDS,
        "Seconds from asking the model to its answer: `queue_seconds` and `request_seconds`.",
    ),
    Key("model", or_null(TEXT), "Model that was asked, where known."),
    Key("host", or_null(TEXT), "Address of the server that was asked, where known."),
    Key(
        "attempts",
        COUNT,
        "Requests it took; 0 if none was made for this decision, such as when another's answer "
        "served it, too.",
    ),
    Key(
        "input_tokens",
        or_null(COUNT),
        "Tokens that the model read for this decision, where known.",
    ),
    Key("output_tokens", or_null(COUNT), "Tokens that it wrote, where known."),
)
KNOWN_COST = (
    Key(
        "queue_seconds",
        SECONDS,
        "Seconds of the latency before and after the last request: waiting for a slot, pauses "
        "between attempts, requests that failed before.",
    ),
    Key("request_seconds", SECONDS, "Seconds that the last request took; 0 if none was sent."),
    Key(
        "total_duration",
        COUNT,
        "Nanoseconds that the server says the reply took it, as the next two where it says so.",
    ),
    Key("load_duration", COUNT, "Of these, nanoseconds of loading the model."),
    Key("eval_duration", COUNT, "Of these, nanoseconds of writing the reply."),
    Key(
        "done_reason",
        TEXT,
        "Why the model ended its reply, such as `stop`; `length` if it ran out of tokens.",
    ),
    Key(
        "repaired",
        TRUE,
        "True where the question was put once more in other words, as a reply was of no use.",
    ),
)
DECISION_ID = Key(
    "decision_id",
    TEXT,
    "Id of the decision, where prompts are recorded: the agent's id, a colon, and the number of "
    "decisions and texts that it asked for until then.",
)
TEXT_ID = Key("text_id", TEXT, "Id of the text, where prompts are recorded; as `decision_id`.")
CUT = Key(
    "cut",
    TRUE,
    "True where what was taken is only a part of `text`, which was longer than it might be.",
)
