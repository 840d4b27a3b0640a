"""The table that compiled code works on: where each number of a run, and each column, stands."""

from __future__ import annotations

from itertools import count

_next = count().__next__

# Numbers of the run
SIZE, NOW, EPOCH, PHASE, AT, SALT, ACTING, LINE, FAULT = (_next() for _ in range(9))
ROUND, TICK, STOPPED, PUTTING, TURN_AT, DRAWN_AGENT, HAS_NETWORK = (_next() for _ in range(7))
MOVED, DECIDED, EVENTS, MOST_EVENTS, MADE, MOST_MADE, SLOTS, LAST = (_next() for _ in range(8))
WAITING, WAVE, NEWCOMERS, WRITTEN = (_next() for _ in range(4))

# Columns with a value for each agent
STATE, LIFE, STREAMS, DECISIONS, BEGAN, LOGGED = (_next() for _ in range(6))
OFFSETS, NEIGHBOURS, CANONICAL, HAS_WRITTEN, WRITERS = (_next() for _ in range(5))

# What a tick works with
ACTS, PLACES, SPARE_ITEMS, SPARE_KEYS, BUCKETS, HEAP, HEAP_PLACES = (_next() for _ in range(7))
WAITS, WAIT_NUMBERS, WAIT_WHOLE, WAIT_LIST, WAIT_NEXT = (_next() for _ in range(5))
PUT_OFF, PUT_OFF_PLACES, PUT_OFF_ORDER, EVENT_ROWS, EVENT_CHANCES = (_next() for _ in range(5))
COUNTS, TIMED_OUT = (_next() for _ in range(2))

FIRST_OWN: int = _next()
"""Where the columns of the user's fields, and the values of the world, begin."""

SINCE, DUE, MOVES, QUEUED = range(4)
"""What `LIFE` has of each agent, four numbers beside each other, as they are looked at together."""

KEY_PLACE, KEY_STEP, DRAWN, DRAWN_IN = range(4)
"""What `STREAMS` has of each agent."""

KEY_DECISION, DECISION_DRAWN, DECISION_DRAWN_IN, TAKEN = range(4)
"""What `DECISIONS` has of each agent."""

NOT_BEGUN, UNDER_WAY, OVER = range(3)
"""Phases of a tick: nobody has had a turn yet, some have, all have."""

NEVER = 2**31 - 1
ASKED = -2
"""What asking returns where there is a question to wait for."""

OWNER, OTHER, STEP, PIECE, WHOM, TRIGGER, CONTEXT, MOVES_THEN = range(8)
LATE, OPEN, ANSWER, WEIGHTED, ASKED_IN, CHOICES, FIRST_CHOICE = range(8, 15)
"""A step that waits, number by number."""

TRANSITION, DECISION, DISCARDED = range(3)
KIND, AGENT, FROM, TO, BY, DWELL, ABOUT, OPTIONS, PLACE, FIRST_OPTION = range(10)
"""An event, number by number."""

REASON = DWELL
HAS_MOVED, NOT_ENABLED = range(2)

FAULTS = {
    "division": "division by zero",
    "whole": "a whole number of more than 64 bits, which a column cannot hold",
    "exact": "a whole number above 2**53 among floats, which columns cannot keep exactly",
    "domain": "a number outside the domain of this function, or a result too large",
    "empty": "there is nobody to choose from",
    "weights": "the weights must be numbers, 0 or more, and above 0 for at least one enabled "
    "target",
    "nobody": "the context is nobody here",
    "events": "too many events in one tick: log fewer agents, with log_agents",
    "fires": "too many events are fired in one tick: run this world without columns",
    "others": "in a together world, agents change only themselves, and draw only from their own "
    "random numbers",
    "waves": "a step still waits after 10,000 answers in one tick: end it, and continue in the "
    "next",
    "negative": "ticks, lengths and steps of a range must not be negative or zero here",
}
CODES = {name: number for number, name in enumerate(FAULTS, 1)}
