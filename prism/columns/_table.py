"""The data of compiled code: records of a run, its agents, waiting steps and events.

A run has one record, with its numbers and the addresses of its columns. A column holds plain
numbers, or records. What is looked at together stands in one record, since a visit to an agent
costs mostly the time of fetching it from memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

NUMBERS = (
    *("size", "now", "epoch", "round", "tick", "phase", "acting", "fault", "line", "stopped"),
    *("putting", "drawn_agent", "has_network", "moved", "decided", "newcomers", "written"),
    *("told", "most_told", "made", "most_made", "kept", "last_kept", "waiting", "wave"),
)
"""Numbers of a run, such as the tick; how much of its columns is in use."""

PLACES = ("place", "salt", "turn_at")
"""Numbers of a run with 64 bits and no sign."""

COLUMNS: Mapping[str, str] = {
    "agents": "",
    **dict.fromkeys(("state", "logged", "choices"), "u1"),
    **dict.fromkeys(("due", "neighbours", "canonical", "writers", "acts"), "i4"),
    **dict.fromkeys(("spare_items", "buckets", "heap", "wait_list", "wait_next"), "i4"),
    **dict.fromkeys(("deed_order", "options"), "i4"),
    **dict.fromkeys(("places", "spare_keys", "heap_places", "deed_places"), "u8"),
    **dict.fromkeys(("offsets", "counts", "timed_out", "interrupted"), "i8"),
    **dict.fromkeys(("weights", "chances"), "f8"),
    **dict.fromkeys(("slots", "deeds", "events"), ""),
}
"""Columns, each with the kind of its numbers; records have none."""

AGENT: Mapping[str, str] = {
    **dict.fromkeys(("key_place", "key_step"), "u8"),
    **dict.fromkeys(("since", "moves", "queued", "drawn_in", "drawn"), "i4"),
}
AGENT_THAT_DECIDES: Mapping[str, str] = {
    "key_decision": "u8",
    **dict.fromkeys(("decided_in", "decided", "taken"), "i4"),
}
AGENT_TOGETHER: Mapping[str, str] = {"began": "u1", "has_written": "u1"}

SLOT: Mapping[str, str] = {
    **dict.fromkeys(("owner", "other", "whom", "context", "moves_then"), "i4"),
    **dict.fromkeys(("piece", "step", "trigger", "answer", "asked_in"), "i2"),
    **dict.fromkeys(("weighted", "late", "open", "choices"), "u1"),
}
"""A step that waits."""

DEED: Mapping[str, str] = {"agent": "i4", "context": "i4", "trigger": "i2", "chosen": "i2"}
"""An event that is put off to the end of the tick."""

EVENT: Mapping[str, str] = {
    "place": "u8",
    **dict.fromkeys(("kind", "agent", "first", "then", "trigger", "context"), "i4"),
    **dict.fromkeys(("dwell", "reason", "options"), "i4"),
}
"""Something for the log."""

TRANSITION, DECISION, DISCARDED = range(3)
HAS_MOVED, NOT_ENABLED = range(2)

NOT_BEGUN, UNDER_WAY, OVER = range(3)
"""Phases of a tick: nobody has had a turn yet, some have, all have."""

NEVER = 2**31 - 1
ASKED = -2
"""The result of asking if there is a question to wait for."""

DIVISION, WHOLE, EXACT, DOMAIN, EMPTY, WEIGHTS, NOBODY, EVENTS, FIRES, OTHERS, WAVES = range(1, 12)
UNDECIDED, INTERRUPTED = 12, 13
FAULTS: Mapping[int, str] = {
    DIVISION: "division by zero",
    WHOLE: "a whole number of more than 64 bits, which a column cannot hold",
    EXACT: "a whole number above 2**53 among floats, which columns cannot keep exactly",
    DOMAIN: "a number outside the domain of this function, or a result too large",
    EMPTY: "there is nobody to choose from",
    WEIGHTS: "the weights must be numbers, 0 or more, and above 0 for at least one enabled target",
    UNDECIDED: "the first of several enabled transitions would be made, whatever the weights: add "
    "the state to the chart's decision_states",
    NOBODY: "the context is nobody here",
    EVENTS: "too many events in one tick: log fewer agents, with log_agents",
    FIRES: "too many events are fired in one tick: run this world without columns",
    OTHERS: "in a together world, agents change only themselves, and draw only from their own "
    "random numbers",
    INTERRUPTED: "interrupted",
    WAVES: "a step still waits after 10,000 answers in one tick: end it, and continue in the next",
}


def packed(fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the fields of a record, the wide ones first, so that there are no gaps."""
    return sorted(fields.items(), key=lambda each: -int(each[1][1:] or 1))


def run_record(values: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the fields of a run's record, with values of the world."""
    places = dict.fromkeys(PLACES, "u8")
    return [*dict.fromkeys((*NUMBERS, *COLUMNS), "i8").items(), *places.items(), *values]
