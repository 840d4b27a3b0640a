"""The events of workflows, for the schema of a run log."""

from __future__ import annotations

from prism.runlog._keys import (
    AGENT,
    COUNT,
    OBJECT,
    SECONDS,
    STEP,
    TEXT,
    TEXTS,
    TURN,
    Event,
    Key,
    Kind,
    one_of,
    or_null,
)
from prism.telemetry import events

_ANY = Kind("any value", {"type": ["string", "number", "boolean", "object", "array", "null"]})

WORKFLOW_EVENTS = (
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
)
"""What a turn of a workflow agent says."""
