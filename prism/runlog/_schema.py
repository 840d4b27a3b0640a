"""The published schema of a run log: every event and its keys, defined once.

``python -m prism.runlog._schema docs`` writes the JSON Schema and the page of documentation.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from prism.runlog._keys import (
    AGENT,
    ASKED,
    CHANCES,
    CHART,
    COGNITIVE_STATE,
    COMMON,
    CONTEXT,
    COST,
    COSTS,
    COUNT,
    COUNTED,
    COUNTED_IN_FEED,
    COUNTS,
    CYCLE,
    DECISION_ID,
    ERROR,
    FAULT,
    FROM,
    KNOWN_COST,
    OBJECT,
    OBJECTS,
    POST,
    SECONDS,
    SHARE,
    STEP,
    TEXT,
    TEXT_ID,
    TEXT_SOURCES,
    TEXTS,
    TEXTS_WRITTEN,
    TO,
    TRIGGER,
    TURN,
    WHOLE,
    WORD_SOURCES,
    WORLD_EVENTS,
    Event,
    Key,
    Kind,
    each,
    one_of,
    optional,
    or_null,
)
from prism.telemetry import events

SCHEMA_NAME = "events.schema.json"
PAGE_NAME = "events.md"

_ANY = Kind("any value", {"type": ["string", "number", "boolean", "object", "array", "null"]})

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
            *optional(
                (
                    CHART,
                    Key("agents", COUNT, "Number of agents."),
                    Key("rounds", COUNT, "Rounds to run."),
                    Key("ticks_per_round", COUNT, "Steps of each agent in a round."),
                    Key("seed", WHOLE, "Seed of all random numbers."),
                    Key("world", TEXT, "Name of the world's class."),
                    Key("parameters", OBJECT, "The world's parameters, by name."),
                    Key(
                        "models",
                        OBJECTS,
                        "Who is asked for which agents, where they have models of their own: "
                        "`for` whom, how many `agents`, `asked` for `decisions` or `texts`, and "
                        "`model`, `temperature`, `think` and `hosts` as far as they are known.",
                    ),
                )
            ),
        ),
    ),
    Event(
        events.AGENT_JOINED,
        "info",
        "An agent joins a run, before the first round. In a social feed all keys but `chart` are "
        "present, and `attributes` only if there are any.",
        (
            AGENT,
            *optional(
                (
                    CHART,
                    Key("display_name", TEXT, "Display name."),
                    Key("archetype", or_null(TEXT), "Archetype of its behaviour, if any."),
                    Key("interests", TEXTS, "Topics that interest it."),
                    Key("following", COUNT, "Number of agents that it follows."),
                )
            ),
            Key("state", TEXT, "Initial state."),
            *optional(
                (
                    Key(
                        "timeout_threshold",
                        COUNT,
                        "Longest dwell time in ticks, in a state for which the chart sets no "
                        "limit.",
                    ),
                    Key("attributes", OBJECT, "What else is known of it, if anything."),
                )
            ),
        ),
    ),
    Event(events.ROUND_STARTED, "info", "A round of a simulation begins."),
    Event(
        events.ROUND_ENDED,
        "info",
        "A round of a simulation ends, or a turn of a workflow; the counts are of this round. The "
        "optional ones are those of a social feed.",
        (
            Key(
                "states",
                COUNTS,
                "Agents in each state at the last tick, before all return to idle.",
            ),
            *COUNTED,
            *optional(COUNTED_IN_FEED),
            TEXTS_WRITTEN,
            Key("measures", OBJECT, "What a world's measures came to, by name.", required=False),
        ),
    ),
    Event(
        events.TREATMENT_APPLIED,
        "info",
        "A treatment was applied at the beginning of a round.",
        (
            Key("treatment", TEXT, "Name of the treatment."),
            Key("parameters", OBJECT, "The world's parameters that it changed, as they are now."),
        ),
    ),
    Event(
        events.POST_PUBLISHED,
        "info",
        "A post is published. Posts of round 0, tick 0 are older than the simulation.",
        (
            Key("agent_id", TEXT, "Id of its author."),
            POST,
            Key("kind", one_of("post", "reply", "reshare"), "Kind of post."),
            Key("parent_id", or_null(TEXT), "Id of the post that it replies to or reshares."),
            Key("root_id", TEXT, "Id of the first post of its cascade, which may be itself."),
            Key("topics", TEXTS, "Its topics."),
            Key("text", TEXT, "Its text."),
            Key(
                "source",
                one_of(*WORD_SOURCES),
                "Who wrote it, as in `text.written`. Only where a writer was given.",
                required=False,
            ),
            Key(
                "template",
                TEXT,
                "What the composer would have written, by which the post is weighed, so that a "
                "model's words move nobody. Only where a writer was given.",
                required=False,
            ),
        ),
    ),
    Event(
        events.POST_LIKED,
        "info",
        "An agent likes a post.",
        (AGENT, POST, Key("author_id", TEXT, "Id of the post's author.")),
    ),
    Event(
        events.POST_WEIGHED,
        "info",
        "An agent weighs a post. Below the threshold it scrolls on; from there on a decision "
        "follows.",
        (
            AGENT,
            POST,
            Key(
                "relevance",
                or_null(SHARE),
                "Relevance of the post to the agent; null if the agent's class weighs posts in a "
                "way of its own.",
            ),
            Key("threshold", or_null(SHARE), "Relevance from which the agent engages."),
        ),
    ),
    Event(
        events.TRANSITION,
        "info",
        "An agent changes its state.",
        (
            CHART,
            AGENT,
            FROM,
            TO,
            TRIGGER,
            Key(
                "ticks_in_state",
                or_null(COUNT),
                "Dwell time in the source state, in ticks; null if the agent does not count them.",
            ),
            CONTEXT,
        ),
    ),
    Event(
        events.DECISION,
        "info",
        "An ambiguous event is decided; a warning if the source is `fallback`. The keys from "
        "`latency` to `output_tokens` are present, all or none, if a model was to be asked; those "
        "after them where they are known.",
        (
            AGENT,
            Key("state", TEXT, "State of the agent."),
            TRIGGER,
            Key("options", TEXTS, "Target states of the enabled transitions, in chart order."),
            Key("chosen", TEXT, "Target state that was chosen."),
            Key(
                "source",
                one_of("model", "cache", "replay", "policy", "fallback"),
                "Origin of the choice: a model, its cached or logged answer, a policy (also any "
                "reasoner that has only `decide`), or none.",
            ),
            Key("reason", or_null(TEXT), "Why the fallback was taken; null otherwise."),
            Key("probabilities", or_null(CHANCES), "Probability of each option, if known."),
            CONTEXT,
            Key(
                "said",
                TEXT,
                "The reason that the model gave beside its choice, where the run asks for one.",
                required=False,
            ),
            *optional((*COST, *KNOWN_COST, DECISION_ID)),
        ),
    ),
    Event(
        events.TEXT_WRITTEN,
        "info",
        "A text was written, or JSON of a schema; a warning if the source is `failed` or "
        "`fallback`. The keys from `latency` on are as those of a decision, with those of all "
        "requests of the call added up; durations are of the last reply.",
        (
            AGENT,
            Key("key", TEXT, "What it is for; with the agent, the name of the call."),
            Key(
                "prompt_hash",
                Kind("16 hexadecimal digits", {"type": "string", "pattern": "^[0-9a-f]{16}$"}),
                "The beginning of the SHA-256 of the prompt in UTF-8.",
            ),
            Key("text", or_null(TEXT), "What the model wrote last; null if it wrote nothing."),
            Key(
                "source",
                one_of(*TEXT_SOURCES, "failed"),
                "Origin of the text: a model, its cached or logged answer, a script of a test; "
                "the `template`, as nobody was to be asked; the `fallback`, as no usable text "
                "came; `failed` if there was none, either.",
            ),
            Key(
                "reason",
                or_null(TEXT),
                "Why it failed, or why the fallback was taken; null otherwise.",
            ),
            *optional((*COST, *KNOWN_COST, TEXT_ID)),
        ),
    ),
    Event(
        events.WORKFLOW_STEP,
        "info",
        "A step of an agent's workflow has run; a warning if it failed.",
        (
            AGENT,
            TURN,
            STEP,
            Key("type", one_of("llm", "code", "transition"), "Type of the step."),
            Key("state", TEXT, "State it ran in."),
            Key(
                "outcome",
                one_of("done", "skipped", "failed"),
                "`done`, also if its transition was refused; if it failed, `skipped` or `failed` "
                "by its policy.",
            ),
            Key("moved_to", or_null(TEXT), "State that it led to; null if it led to none."),
            Key(
                "reason",
                or_null(TEXT),
                "Why it failed, or why its transition was refused; null otherwise.",
            ),
            Key("seconds", SECONDS, "Seconds that the model or the code took."),
            Key("input_tokens", or_null(COUNT), "Tokens that the model read, where known."),
            Key("output_tokens", or_null(COUNT), "Tokens that it wrote, where known."),
            Key("unknown_variables", TEXTS, "Variables of its prompt that nobody provides."),
        ),
    ),
    Event(
        events.WORKFLOW_ACTION,
        "info",
        "The host application has carried out an action that a step of a workflow asked for, or "
        "has failed to.",
        (
            AGENT,
            TURN,
            STEP,
            Key("key", TEXT, "Name of the action; the same where a turn is taken again."),
            Key("action", OBJECT, "What the model asked for."),
            Key("result", _ANY, "What the host returned, or why it failed."),
            Key("succeeded", Kind("boolean", {"type": "boolean"}), "Whether it did not fail."),
        ),
    ),
    Event(
        events.WORKFLOW_REFUSED,
        "warning",
        "A transition that a step asked for was refused, or the condition on which it runs failed.",
        (
            AGENT,
            TURN,
            STEP,
            Key("state", TEXT, "State of the agent."),
            Key(
                "target",
                or_null(TEXT),
                "State that the step named; null if it named none, or was not to run at all.",
            ),
            Key(
                "reason",
                TEXT,
                "Why: which condition was false or failed, or what the answer was none of.",
            ),
        ),
    ),
    Event(
        events.WORKFLOW_RESET,
        "warning",
        "An agent was restored in a state that its workflow does not declare, and begins anew in "
        "the initial state.",
        (
            AGENT,
            TURN,
            Key("state", TEXT, "State of the agent, which is the initial one."),
            Key("from_state", TEXT, "State that it was to be restored in."),
            Key("to_state", TEXT, "The initial state."),
        ),
    ),
    Event(
        events.COGNITION_CYCLE,
        "info",
        "A cycle of an agent that thinks, executes and pages has ended; a warning if its "
        "reply was unusable, or an error was raised.",
        (
            AGENT,
            CYCLE,
            Key("state", COGNITIVE_STATE, "State that it ran in."),
            Key("next_state", COGNITIVE_STATE, "State after it."),
            Key(
                "outcome",
                one_of("done", "refused", "unusable", "failed"),
                "`refused` if the reply asked for nothing but what could not be done, `unusable` "
                "if it held nothing of use, `failed` if none came, or an error was raised.",
            ),
            Key("reason", or_null(TEXT), "Why it was not done; null otherwise."),
            Key(
                "prompt_tokens",
                or_null(COUNT),
                "Tokens of the prompt by the agent's own count; null if no model was asked.",
            ),
            Key("input_tokens", or_null(COUNT), "Tokens that the model read, where known."),
            Key("output_tokens", or_null(COUNT), "Tokens that it wrote, where known."),
            Key("memories", COUNT, "Entries of working memory after the cycle."),
            Key("thoughts", COUNT, "Entries of the thinking log after the cycle."),
            Key("stored", COUNT, "Entries of storage after the cycle."),
            Key("defects", TEXTS, "What had to be mended in the reply, or made up for."),
        ),
    ),
    Event(
        events.COGNITION_ACTION,
        "info",
        "A memory operation that a reply asked for was carried out.",
        (
            AGENT,
            CYCLE,
            *ASKED,
            Key(
                "outcome",
                one_of("done", "missing"),
                "`missing` if there is no memory of these tags, so that nothing was done.",
            ),
            Key("reason", or_null(TEXT), "Why nothing was done; null otherwise."),
        ),
    ),
    Event(
        events.COGNITION_REFUSED,
        "warning",
        "An action that a reply asked for was not carried out, or none was asked for where one was "
        "due.",
        (
            AGENT,
            CYCLE,
            Key("state", one_of("thinking", "executing"), "State that the cycle ran in."),
            *ASKED,
            Key("reason", TEXT, "Why."),
        ),
    ),
    Event(
        events.COGNITION_PAGED,
        "info",
        "Memories were moved between working memory and storage.",
        (
            AGENT,
            CYCLE,
            Key(
                "why",
                one_of("soft_limit", "hard_limit", "asked"),
                "The limit that was passed; `asked` if a reply named paging as the next state.",
            ),
            Key(
                "by",
                one_of("lru", "model"),
                "Who decided: the least recently used went, or the model named them.",
            ),
            Key(
                "went",
                TEXTS,
                "Tags of memories, and keys of thoughts, that went to storage, in this order.",
            ),
            Key("came", TEXTS, "Tags of memories that came back."),
            Key(
                "kept_older",
                each("object: a text for each text", TEXT),
                "Of these that went, those under whose tag storage had another value, with the tag "
                "under which that is kept.",
            ),
            Key("tokens_before", COUNT, "Tokens of the prompt before."),
            Key("tokens_after", COUNT, "Tokens of the prompt after."),
            Key("limit", or_null(COUNT), "The limit in tokens; null if there is none."),
            Key(
                "reason",
                or_null(TEXT),
                "Why the model did not decide although it was asked; null otherwise.",
            ),
        ),
    ),
    Event(
        events.COGNITION_RESET,
        "warning",
        "The memory held a state that there is not, and the agent begins anew in thinking.",
        (
            AGENT,
            CYCLE,
            Key("from_state", TEXT, "State that the memory held."),
            Key("to_state", one_of("thinking"), "The initial state."),
        ),
    ),
    Event(
        events.COGNITION_MEMORY_CHANGED,
        "warning",
        "A run that was resumed found its memory changed by somebody else, and goes on with it as "
        "it is. The folder of the run keeps a copy.",
        (
            AGENT,
            Key("cycle", COUNT, "Cycles of the memory as it is."),
            Key("expected_cycle", COUNT, "Cycles that it had when the run was stopped."),
        ),
    ),
    Event(
        events.ANSWER_DISCARDED,
        "warning",
        "An answer no longer applied when it came, or when it was its turn, and was discarded.",
        (
            CHART,
            AGENT,
            TRIGGER,
            Key("asked_in", TEXT, "State in which the agent was asked."),
            Key("now_in", TEXT, "State of the agent when the answer came."),
            Key("chosen", TEXT, "Target state that was chosen."),
            Key(
                "reason",
                one_of("moved", "not_enabled"),
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
        (ERROR,),
    ),
    Event(
        events.MODE_UNKNOWN,
        "warning",
        "A reasoner in mode `auto` could not find out whether server and model support decision "
        "questions. It asks by chat until it can, checks again later, and reports only the first "
        "failure.",
        (ERROR,),
    ),
    Event(
        events.GUARD_FAILED,
        "error",
        "A guard raised an exception; its transition is not enabled.",
        FAULT,
    ),
    Event(
        events.ACTION_FAILED,
        "error",
        "An action raised an exception; the transition took place nevertheless.",
        FAULT,
    ),
    Event(
        events.RUN_ENDED,
        "info",
        "The log is complete; without this event it was cut off or is still being written. "
        "A simulation adds its counts.",
        optional((*COUNTED, *COUNTED_IN_FEED, TEXTS_WRITTEN, COSTS)),
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
    # the events of a world are named by its author
    own = {"pattern": f"^{re.escape(WORLD_EVENTS)}"}
    names = {"anyOf": [{"enum": [event.name for event in EVENTS]}, own]}
    known = {"properties": {"event": names}} if strict else {}
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
Keys marked "optional" may be absent; all others are always present. Names that begin with `world.`
are those of a world's own events, with keys of its own.

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
