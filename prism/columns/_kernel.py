"""A tick in columns: turns, transitions, decisions, and what a together world puts off.

It is the object engine's tick (`prism.worlds._ticks`, `_turns`, `_together`), transition by
transition. Its text is put behind that of a compiled world, so it knows the world's chart as
constants. All functions take the address of the run's table; agents, states and triggers are
numbers, nobody and no state -1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from prism.columns import _table as T  # noqa: N812 - as short as what it stands for
from prism.columns._example import (
    ALL_ACT,
    COMPENSATED,
    DECIDES,
    DUE_AFTER,
    GUARD,
    HAS_LIMITS,
    IN_PAIRS,
    INDEPENDENT,
    LISTED,
    N_STATES,
    N_TRIGGERS,
    NUMBER_WIDTH,
    START,
    STEP_OF,
    TARGET,
    TIMEOUT,
    TOGETHER,
    VISITED,
    begin_own,
    end_own,
    passes,
    run_step,
    write_own,
)
from prism.columns._memory import (
    get_f8,
    get_i4,
    get_i8,
    get_u1,
    get_u8,
    opaque,
    put_f8,
    put_i4,
    put_i8,
    put_u1,
    put_u8,
)

# The kernel begins here

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ONE = np.uint64(0xBF58476D1CE4E5B9)
ANOTHER = np.uint64(0x94D049BB133111EB)
BY_30, BY_27, BY_31, BY_11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
WAIT_WIDTH = T.FIRST_CHOICE + N_STATES
EVENT_WIDTH = T.FIRST_OPTION + N_STATES
MOST_WAVES = 10_000
MOST_BITS = 20


def fault(a: int, code: int, line: int) -> None:
    """End the tick: what is wrong, and where, stands in the table."""
    put_i8(a, T.FAULT, code)
    put_i8(a, T.LINE, line)
    raise RuntimeError("a fault in a step")


# Random numbers


def mixed(number: Any) -> Any:
    """Return the 64 bits that splitmix64 makes of a number."""
    number = (number ^ (number >> BY_30)) * ONE
    number = (number ^ (number >> BY_27)) * ANOTHER
    return number ^ (number >> BY_31)


def unit(number: Any) -> float:
    """Return the float from 0 to 1 that a counter gives."""
    return np.float64(mixed(number) >> BY_11) * 1.1102230246251565e-16


def draw_from(a: int, column: int, first: int) -> float:
    """Draw a number from one of an agent's streams: its key, its place, the epoch it is of."""
    epoch = get_i8(a, T.EPOCH)
    if get_i8(column, first + 2) != epoch:
        put_i8(column, first + 2, epoch)
        at = mixed(get_u8(column, first) + np.uint64(epoch) * GOLDEN)
    else:
        at = get_u8(column, first + 1)

    at = at + GOLDEN
    put_u8(column, first + 1, at)
    return unit(at)


def draw(a: int, agent: int, line: int) -> float:
    """Draw a number of an agent's steps."""
    if TOGETHER and agent != get_i8(a, T.ACTING):
        fault(a, 10, line)
    return draw_from(a, get_i8(a, T.STREAMS), 4 * agent + 1)


def draw_decision(a: int, agent: int) -> float:
    """Draw a number of an agent's decisions."""
    return draw_from(a, get_i8(a, T.DECISIONS), 4 * agent)


def draw_turn(a: int) -> float:
    """Draw a number that says whose turn it is."""
    at = get_u8(a, T.TURN_AT) + GOLDEN
    put_u8(a, T.TURN_AT, at)
    return unit(at)


def neighbour(a: int, agent: int, number: int) -> int:
    """Return one of an agent's neighbours."""
    return get_i4(get_i8(a, T.NEIGHBOURS), get_i8(get_i8(a, T.OFFSETS), agent) + number)


def degree(a: int, agent: int) -> int:
    """Return the number of an agent's neighbours."""
    offsets = get_i8(a, T.OFFSETS)
    return get_i8(offsets, agent + 1) - get_i8(offsets, agent)


def choose(a: int, whose: int, agent: int, line: int) -> int:
    """Draw one of an agent's neighbours."""
    number, among = draw(a, whose, line), degree(a, agent)
    if among == 0:
        fault(a, 5, line)
    return neighbour(a, agent, int(number * among))


def chance(a: int, whose: int, probability: float, line: int) -> bool:
    """Return True with a probability."""
    return draw(a, whose, line) < probability


def index(a: int, whose: int, length: float, line: int) -> int:
    """Draw an index below a length."""
    return truncated(a, draw(a, whose, line) * length, line)


def between(a: int, whose: int, low: float, high: float, line: int) -> float:
    """Draw a float between two."""
    return low + (high - low) * draw(a, whose, line)


def exponential(a: int, whose: int, mean: float, line: int) -> float:
    """Draw from an exponential distribution."""
    if not 0.0 <= mean < np.inf:
        fault(a, 4, line)
    return -mean * math.log1p(-draw(a, whose, line))


def count_neighbours(a: int, agent: int, state: int) -> int:
    """Return how many of an agent's neighbours are in a state."""
    found = 0
    for number in range(degree(a, agent)):
        found += state_of(a, neighbour(a, agent, number)) == state
    return found


def is_neighbour(a: int, agent: int, other: int) -> bool:
    """Return whether an agent is among the neighbours of another."""
    found = False
    for number in range(degree(a, agent)):
        found |= neighbour(a, agent, number) == other
    return found


def somebody(a: int, agent: int, line: int) -> int:
    """Return an agent that is not nobody."""
    if agent < 0:
        fault(a, 7, line)
    return agent


def own(a: int, agent: int, line: int) -> int:
    """Return an agent whose field is set: in a together world, the one whose step it is."""
    if TOGETHER and agent != get_i8(a, T.ACTING):
        fault(a, 10, line)
    return agent


# Numbers, as Python has them


def real(a: int, number: int, line: int) -> float:
    """Return a whole number as a float, which has it exactly."""
    if number > 9007199254740992 or number < -9007199254740992:
        fault(a, 3, line)
    return float(number)


def plus(a: int, one: int, other: int, line: int) -> int:
    """Add whole numbers."""
    found = one + other
    if (one ^ found) & (other ^ found) < 0:
        fault(a, 2, line)
    return found


def minus(a: int, one: int, other: int, line: int) -> int:
    """Subtract whole numbers."""
    found = one - other
    if (one ^ other) & (one ^ found) < 0:
        fault(a, 2, line)
    return found


def times(a: int, one: int, other: int, line: int) -> int:
    """Multiply whole numbers."""
    found = one * other
    about = float(one) * float(other)
    if about > 9.2e18 or about < -9.2e18:
        fault(a, 2, line)
    return found


def whole_power(a: int, base: int, exponent: int, line: int) -> int:
    """Raise a whole number to a whole power."""
    found = 1
    for _ in range(exponent):
        found = times(a, found, base, line)
    return found


def divided(a: int, one: float, other: float, line: int) -> float:
    """Divide floats."""
    if other == 0.0:
        fault(a, 1, line)
    return one / other


def float_floor(a: int, one: float, other: float, line: int) -> float:
    """Divide floats, and round down, in CPython's steps."""
    if other == 0.0:
        fault(a, 1, line)
    rest = np.fmod(one, other)
    quotient = (one - rest) / other
    if rest != 0.0 and (other < 0.0) != (rest < 0.0):
        quotient -= 1.0
    if quotient == 0.0:
        return math.copysign(0.0, one / other)
    down = math.floor(quotient) * 1.0 if abs(quotient) < 4503599627370496.0 else quotient
    return down + 1.0 if quotient - down > 0.5 else down


def float_rest(a: int, one: float, other: float, line: int) -> float:
    """Return what a division of floats leaves, with the sign of the divisor."""
    if other == 0.0:
        fault(a, 1, line)
    rest = np.fmod(one, other)
    if rest != 0.0:
        return rest + other if (other < 0.0) != (rest < 0.0) else rest
    return math.copysign(0.0, other)


def whole_floor(a: int, one: int, other: int, line: int) -> int:
    """Divide whole numbers, and round down."""
    if other == 0:
        fault(a, 1, line)
    if other == -1:
        return minus(a, 0, one, line)
    return one // other


def whole_rest(a: int, one: int, other: int, line: int) -> int:
    """Return what a division of whole numbers leaves."""
    if other == 0:
        fault(a, 1, line)
    return 0 if other == -1 else one % other


def finite(a: int, found: float, given: float, line: int) -> float:
    """Return the result of a function, unless Python would refuse what it was given."""
    if (math.isnan(found) and not math.isnan(given)) or (
        math.isinf(found) and math.isfinite(given)
    ):
        fault(a, 4, line)
    return found


def power(a: int, base: float, exponent: float, line: int) -> float:
    """Raise a float to a power."""
    return finite(a, math.pow(base, opaque(exponent)), base + exponent, line)


def whole_size(a: int, number: int, line: int) -> int:
    """Return a whole number without its sign."""
    return minus(a, 0, number, line) if number < 0 else number


def min_i(one: int, other: int) -> int:
    """Return the smaller whole number."""
    return other if other < one else one


def max_i(one: int, other: int) -> int:
    """Return the larger whole number."""
    return other if other > one else one


def min_f(one: float, other: float) -> float:
    """Return the smaller float, the first where neither is."""
    return other if other < one else one


def max_f(one: float, other: float) -> float:
    """Return the larger float, the first where neither is."""
    return other if other > one else one


def added(total: float, lost: float, more: float) -> tuple[float, float]:
    """Add to a sum as the Python that runs does: compensated since 3.12."""
    if not COMPENSATED:
        return total + more, lost
    after = total + more
    if abs(total) >= abs(more):
        lost += (total - after) + more
    else:
        lost += (more - after) + total
    return after, lost


def summed(total: float, lost: float) -> float:
    """Return what a sum came to."""
    return total + lost if lost != 0.0 and math.isfinite(lost) else total


def truncated(a: int, number: float, line: int) -> int:
    """Return a float as a whole number."""
    if not abs(number) < 9223372036854774784.0:
        fault(a, 2, line)
    return int(number)


# Transitions


def life(a: int, agent: int, which: int) -> int:
    """Return one of the numbers that `T.LIFE` has of an agent."""
    return get_i4(get_i8(a, T.LIFE), 4 * agent + which)


def set_life(a: int, agent: int, which: int, number: int) -> None:
    """Set one of the numbers that `T.LIFE` has of an agent."""
    put_i4(get_i8(a, T.LIFE), 4 * agent + which, number)


def place_of(a: int, agent: int) -> Any:
    """Return an agent's place in this tick."""
    if LISTED:
        return np.uint64(agent)
    return mixed(get_u8(get_i8(a, T.STREAMS), 4 * agent) + get_u8(a, T.SALT))


def has_had_turn(a: int, agent: int) -> bool:
    """Return whether an agent's place in the tick is over."""
    phase = get_i8(a, T.PHASE)
    return phase == T.OVER or (phase == T.UNDER_WAY and place_of(a, agent) <= get_u8(a, T.AT))


def state_of(a: int, agent: int) -> int:
    """Return an agent's state."""
    return get_u1(get_i8(a, T.STATE), agent)


def ticks_of(a: int, agent: int) -> int:
    """Return the turns that an agent has had in its state."""
    return get_i8(a, T.NOW) - (not has_had_turn(a, agent)) - life(a, agent, T.SINCE)


def add(a: int, column: int, number: int, more: int) -> None:
    """Add to a counter."""
    put_i8(get_i8(a, column), number, get_i8(get_i8(a, column), number) + more)


def new_event(a: int, kind: int, agent: int, trigger: int, context: int) -> int:
    """Begin an event; return where it stands."""
    number = get_i8(a, T.EVENTS)
    if number >= get_i8(a, T.MOST_EVENTS):
        fault(a, 8, 0)
    put_i8(a, T.EVENTS, number + 1)
    row = get_i8(a, T.EVENT_ROWS)
    at = number * EVENT_WIDTH
    put_i8(row, at + T.KIND, kind)
    put_i8(row, at + T.AGENT, agent)
    put_i8(row, at + T.BY, trigger)
    put_i8(row, at + T.ABOUT, context)
    put_u8(row, at + T.PLACE, place_of(a, agent))
    return at


def is_logged(a: int, agent: int) -> bool:
    """Return whether the log tells of an agent."""
    return get_u1(get_i8(a, T.LOGGED), agent) != 0


def set_due(a: int, agent: int, state: int) -> None:
    """Note in which tick an agent times out; in none that is over."""
    after = DUE_AFTER[state]
    due = T.NEVER
    if after >= 0:
        now = get_i8(a, T.NOW)
        due = max(life(a, agent, T.SINCE) + after, now + has_had_turn(a, agent))
    set_life(a, agent, T.DUE, min(due, T.NEVER))


def is_due(a: int, agent: int) -> bool:
    """Return whether an agent's time-out is due."""
    return HAS_LIMITS and life(a, agent, T.DUE) <= get_i8(a, T.NOW)


def put_off_time_out(a: int, agent: int) -> None:
    """Look again in the next tick at a time-out that has led to no other state."""
    if is_due(a, agent):
        set_life(a, agent, T.DUE, get_i8(a, T.NOW) + 1)


def give_turn(a: int, agent: int, state: int) -> None:
    """Give an agent its turn in this tick, if there is something to do, and it is to come."""
    if get_i8(a, T.PHASE) != T.UNDER_WAY or not (VISITED[state] or is_due(a, agent)):
        return

    place, now = place_of(a, agent), get_i8(a, T.NOW)
    if place > get_u8(a, T.AT) and life(a, agent, T.QUEUED) != now:
        set_life(a, agent, T.QUEUED, now)
        push(a, place, agent)


def move(a: int, agent: int, target: int, trigger: int, context: int) -> None:
    """Make a transition to another state."""
    left = state_of(a, agent)
    add(a, T.COUNTS, left, -1)
    add(a, T.COUNTS, target, 1)
    turns = get_i8(a, T.NOW) - (not has_had_turn(a, agent))
    dwell = turns - life(a, agent, T.SINCE)
    set_life(a, agent, T.SINCE, turns)
    put_u1(get_i8(a, T.STATE), agent, target)
    put_i4(get_i8(a, T.LIFE), 4 * agent + T.MOVES, life(a, agent, T.MOVES) + 1)
    if HAS_LIMITS:
        set_due(a, agent, target)
    give_turn(a, agent, target)
    put_i8(a, T.MOVED, get_i8(a, T.MOVED) + 1)

    if is_logged(a, agent):
        at = new_event(a, T.TRANSITION, agent, trigger, context)
        row = get_i8(a, T.EVENT_ROWS)
        put_i8(row, at + T.FROM, left)
        put_i8(row, at + T.TO, target)
        put_i8(row, at + T.DWELL, dwell)


def fire_now(a: int, agent: int, trigger: int, context: int) -> int:
    """Make the first transition that an event enables; return the state, or -1 for none."""
    state = state_of(a, agent)
    row = state * N_TRIGGERS + trigger
    for each in range(START[row], START[row + 1]):
        if GUARD[each] < 0 or passes(a, GUARD[each], agent, context):
            target = TARGET[each]
            if target != state:
                move(a, agent, target, trigger, context)
            return target

    return -1


def fire(a: int, agent: int, trigger: int, context: int) -> int:
    """Fire an event, or put it off to the end of the tick in a together world."""
    if TOGETHER and get_i8(a, T.PUTTING) != 0:
        put_off(a, agent, trigger, context, -1)
        return -1
    return fire_now(a, agent, trigger, context)


def fire_to(a: int, agent: int, trigger: int, target: int, context: int, asked_in: int) -> int:
    """Make the transition that was chosen, if it still applies; return the state, or -1."""
    state = state_of(a, agent)
    if state != asked_in:
        discard(a, agent, trigger, context, asked_in, target, T.HAS_MOVED)
        return -1

    row = state * N_TRIGGERS + trigger
    for each in range(START[row], START[row + 1]):
        is_it = TARGET[each] == target
        if is_it and (GUARD[each] < 0 or passes(a, GUARD[each], agent, context)):
            if target != state:
                move(a, agent, target, trigger, context)
            return target

    discard(a, agent, trigger, context, asked_in, target, T.NOT_ENABLED)
    return -1


def discard(
    a: int, agent: int, trigger: int, context: int, asked_in: int, chosen: int, reason: int
) -> None:
    """Note that an answer no longer applies."""
    if is_logged(a, agent):
        at = new_event(a, T.DISCARDED, agent, trigger, context)
        row = get_i8(a, T.EVENT_ROWS)
        put_i8(row, at + T.FROM, asked_in)
        put_i8(row, at + T.TO, chosen)
        put_i8(row, at + T.REASON, reason)
        put_i8(row, at + T.OPTIONS, 1)
        put_i8(row, at + T.FIRST_OPTION, state_of(a, agent))


# Decisions


def new_slot(a: int, me: int, step: int, other: int) -> int:
    """Begin to keep a step that is going to wait."""
    slot = get_i8(a, T.SLOTS)
    put_i8(a, T.SLOTS, slot + 1)
    waits, at = get_i8(a, T.WAITS), slot * WAIT_WIDTH
    put_i4(waits, at + T.OWNER, me)
    put_i4(waits, at + T.OTHER, other)
    put_i4(waits, at + T.STEP, step)
    return slot


def ask(a: int, slot: int, whom: int, trigger: int, context: int, weighted: int, line: int) -> int:
    """Carry out what leaves nothing to decide, and return the state; else note the question."""
    waits, at = get_i8(a, T.WAITS), slot * WAIT_WIDTH
    put_i8(a, T.LAST, slot)
    put_i4(waits, at + T.WHOM, whom)
    put_i4(waits, at + T.TRIGGER, trigger)
    put_i4(waits, at + T.CONTEXT, context)
    put_i4(waits, at + T.WEIGHTED, weighted)
    put_i4(waits, at + T.LATE, 0)
    put_i4(waits, at + T.OPEN, 0)
    put_i4(waits, at + T.ANSWER, -1)
    return settle(a, slot, line)


def settle(a: int, slot: int, line: int) -> int:
    """Look what a question leaves to decide; if nothing, carry it out, and return the state."""
    waits, at = get_i8(a, T.WAITS), slot * WAIT_WIDTH
    whom, trigger = get_i4(waits, at + T.WHOM), get_i4(waits, at + T.TRIGGER)
    context, state = get_i4(waits, at + T.CONTEXT), state_of(a, whom)
    if DECIDES[state]:
        choices = 0
        row = state * N_TRIGGERS + trigger
        for each in range(START[row], START[row + 1]):
            is_new = True
            for earlier in range(choices):
                if get_i4(waits, at + T.FIRST_CHOICE + earlier) == TARGET[each]:
                    is_new = False
            guard = GUARD[each]
            if is_new and (guard < 0 or passes(a, guard, whom, context)):
                put_i4(waits, at + T.FIRST_CHOICE + choices, TARGET[each])
                choices += 1

        if choices > 1:
            put_i4(waits, at + T.CHOICES, choices)
            put_i4(waits, at + T.ASKED_IN, state)
            put_i4(waits, at + T.MOVES_THEN, life(a, whom, T.MOVES))
            if get_i4(waits, at + T.WEIGHTED):
                require_weights(a, slot, line)
            return T.ASKED

    return fire(a, whom, trigger, context)


def require_weights(a: int, slot: int, line: int) -> None:
    """Refuse weights that say nothing."""
    numbers, waits, at = get_i8(a, T.WAIT_NUMBERS), get_i8(a, T.WAITS), slot * WAIT_WIDTH
    for state in range(N_STATES):
        weight = get_f8(numbers, slot * NUMBER_WIDTH + state)
        if not 0.0 <= weight < np.inf:
            fault(a, 6, line)
    for each in range(get_i4(waits, at + T.CHOICES)):
        option = get_i4(waits, at + T.FIRST_CHOICE + each)
        if get_f8(numbers, slot * NUMBER_WIDTH + option) > 0.0:
            return
    fault(a, 6, line)


def decide(a: int, slot: int) -> int:
    """Draw one of the targets that are open, by the weights, as the policy does."""
    numbers, waits, at = get_i8(a, T.WAIT_NUMBERS), get_i8(a, T.WAITS), slot * WAIT_WIDTH
    choices, first = get_i4(waits, at + T.CHOICES), slot * NUMBER_WIDTH
    is_weighted = get_i4(waits, at + T.WEIGHTED) != 0
    total, lost = 0.0, 0.0
    for each in range(choices):
        option = get_i4(waits, at + T.FIRST_CHOICE + each)
        weight = get_f8(numbers, first + option) if is_weighted else 1.0
        put_f8(numbers, first + N_STATES + each, weight)
        total, lost = added(total, lost, weight)
    total = summed(total, lost)

    for each in range(choices):
        place = first + N_STATES + each
        put_f8(numbers, place, get_f8(numbers, place) / total)

    number, in_all = draw_decision(a, get_i4(waits, at + T.WHOM)), 0.0
    for each in range(choices):
        in_all += get_f8(numbers, first + N_STATES + each)
    chosen, so_far = choices - 1, 0.0
    for each in range(choices):
        so_far += get_f8(numbers, first + N_STATES + each)
        if number * in_all < so_far:
            chosen = each
            break

    return get_i4(waits, at + T.FIRST_CHOICE + chosen)


def tell_decision(a: int, slot: int, chosen: int) -> None:
    """Note a decision for the log."""
    numbers, waits, at = get_i8(a, T.WAIT_NUMBERS), get_i8(a, T.WAITS), slot * WAIT_WIDTH
    whom, choices = get_i4(waits, at + T.WHOM), get_i4(waits, at + T.CHOICES)
    if not is_logged(a, whom):
        return

    event = new_event(
        a, T.DECISION, whom, get_i4(waits, at + T.TRIGGER), get_i4(waits, at + T.CONTEXT)
    )
    row, chances = get_i8(a, T.EVENT_ROWS), get_i8(a, T.EVENT_CHANCES)
    put_i8(row, event + T.FROM, get_i4(waits, at + T.ASKED_IN))
    put_i8(row, event + T.TO, chosen)
    put_i8(row, event + T.OPTIONS, choices)
    for each in range(choices):
        option = get_i4(waits, at + T.FIRST_CHOICE + each)
        chance = get_f8(numbers, slot * NUMBER_WIDTH + N_STATES + each)
        put_i8(row, event + T.FIRST_OPTION + each, option)
        put_f8(chances, (get_i8(a, T.EVENTS) - 1) * N_STATES + each, chance)


def waves(a: int) -> None:
    """Ask, and let steps go on in the order of the turns, until nobody waits."""
    for _ in range(MOST_WAVES):
        count = get_i8(a, T.WAITING)
        if count == 0:
            return

        # the list of those who wait becomes this wave, and the other one the next
        wave, following = get_i8(a, T.WAIT_LIST), get_i8(a, T.WAIT_NEXT)
        put_i8(a, T.WAIT_LIST, following)
        put_i8(a, T.WAIT_NEXT, wave)
        put_i8(a, T.WAITING, 0)
        put_i8(a, T.WAVE, get_i8(a, T.WAVE) + 1)
        if TOGETHER:
            waits, keys = get_i8(a, T.WAITS), get_i8(a, T.PLACES)
            for each in range(count):
                owner = get_i4(waits, get_i4(wave, each) * WAIT_WIDTH + T.OWNER)
                put_u8(keys, each, place_of(a, owner))
            sort(a, count, keys, wave)
        open_questions(a, wave, count)
        answer_questions(a, wave, count)
        go_on(a, wave, count)

    fault(a, 11, 0)


def open_questions(a: int, wave: int, count: int) -> None:
    """Choose what is asked in a wave: one question an agent; others wait for the next."""
    waits, taken, number = get_i8(a, T.WAITS), get_i8(a, T.DECISIONS), get_i8(a, T.WAVE)
    for each in range(count):
        slot = get_i4(wave, each)
        at = slot * WAIT_WIDTH
        whom = get_i4(waits, at + T.WHOM)
        if get_i8(taken, 4 * whom + T.TAKEN) == number:
            put_i4(waits, at + T.LATE, 2)
            continue

        is_open = 1
        if get_i4(waits, at + T.LATE) != 0:
            put_i8(a, T.ACTING, get_i4(waits, at + T.OWNER))
            put_i4(waits, at + T.LATE, 1)
            answer = -1
            if life(a, whom, T.MOVES) == get_i4(waits, at + T.MOVES_THEN):
                answer = settle(a, slot, 0)
            is_open = 1 if answer == T.ASKED else 0
            put_i4(waits, at + T.ANSWER, answer)

        put_i4(waits, at + T.OPEN, is_open)
        if is_open:
            put_i8(taken, 4 * whom + T.TAKEN, number)


def answer_questions(a: int, wave: int, count: int) -> None:
    """Decide whatever is open, before anything is carried out."""
    waits = get_i8(a, T.WAITS)
    for each in range(count):
        slot = get_i4(wave, each)
        at = slot * WAIT_WIDTH
        if get_i4(waits, at + T.OPEN) and get_i4(waits, at + T.LATE) != 2:
            chosen = decide(a, slot)
            put_i4(waits, at + T.ANSWER, chosen)
            put_i8(a, T.DECIDED, get_i8(a, T.DECIDED) + 1)
            tell_decision(a, slot, chosen)


def go_on(a: int, wave: int, count: int) -> None:
    """Carry out what was decided, and let the steps that waited go on."""
    waits = get_i8(a, T.WAITS)
    for each in range(count):
        slot = get_i4(wave, each)
        at = slot * WAIT_WIDTH
        if get_i4(waits, at + T.LATE) == 2:
            put_i4(waits, at + T.LATE, 1)
            wait(a, slot)
            continue

        answer = get_i4(waits, at + T.ANSWER)
        put_i8(a, T.ACTING, get_i4(waits, at + T.OWNER))
        if get_i4(waits, at + T.OPEN):
            put_i4(waits, at + T.OPEN, 0)
            answer = carry_out(a, slot, answer)
        advance(a, slot, answer)


def carry_out(a: int, slot: int, chosen: int) -> int:
    """Make the transition that was decided for; return the state, or -1 if it no longer applies."""
    waits, at = get_i8(a, T.WAITS), slot * WAIT_WIDTH
    whom, trigger = get_i4(waits, at + T.WHOM), get_i4(waits, at + T.TRIGGER)
    context, asked_in = get_i4(waits, at + T.CONTEXT), get_i4(waits, at + T.ASKED_IN)
    if TOGETHER:
        put_off(a, whom, trigger, context, chosen)
        return chosen
    if life(a, whom, T.MOVES) != get_i4(waits, at + T.MOVES_THEN):
        discard(a, whom, trigger, context, asked_in, chosen, T.HAS_MOVED)
        return -1

    return fire_to(a, whom, trigger, chosen, context, asked_in)


def wait(a: int, slot: int) -> None:
    """Let a step wait for the next wave."""
    number = get_i8(a, T.WAITING)
    put_i8(a, T.WAITING, number + 1)
    put_i4(get_i8(a, T.WAIT_LIST), number, slot)


def advance(a: int, slot: int, answer: int) -> None:
    """Let a step go on with its answer."""
    waits, at = get_i8(a, T.WAITS), slot * WAIT_WIDTH
    owner, step = get_i4(waits, at + T.OWNER), get_i4(waits, at + T.STEP)
    begin_own(a, owner)
    other, piece = get_i4(waits, at + T.OTHER), get_i4(waits, at + T.PIECE)
    piece = run_step(a, step, owner, other, piece, slot, answer)
    if piece:
        put_i4(waits, at + T.PIECE, piece)
        wait(a, slot)
    take_back(a, owner)


# Turns


def take_turn(a: int, agent: int, other: int) -> None:
    """Give an agent its turn: its time-out if one is due, else its step."""
    put_i8(a, T.ACTING, agent)
    state = state_of(a, agent)
    if is_due(a, agent):
        if TOGETHER:
            put_off(a, agent, TIMEOUT, -1, -1)
            return
        has_fired = fire_now(a, agent, TIMEOUT, -1) >= 0
        put_off_time_out(a, agent)
        if has_fired:
            add(a, T.TIMED_OUT, state, 1)
            return
        if not ALL_ACT and agent != get_i8(a, T.DRAWN_AGENT):
            return

    step = STEP_OF[state]
    if step < 0:
        return

    begin_own(a, agent)
    piece = run_step(a, step, agent, other, 0, -1, -1)
    if piece:
        slot = get_i8(a, T.LAST)
        put_i4(get_i8(a, T.WAITS), slot * WAIT_WIDTH + T.PIECE, piece)
        wait(a, slot)
    take_back(a, agent)


def take_back(a: int, agent: int) -> None:
    """Keep what an agent has written of itself for the end of the tick, in a together world."""
    if TOGETHER and end_own(a, agent):
        marks = get_i8(a, T.HAS_WRITTEN)
        if get_u1(marks, agent) != 2:
            number = get_i8(a, T.WRITTEN)
            put_i8(a, T.WRITTEN, number + 1)
            put_i4(get_i8(a, T.WRITERS), number, agent)
        put_u1(marks, agent, 1)


def collect(a: int) -> int:
    """List those who have something to do in this tick; return how many they are."""
    acts, now = get_i8(a, T.ACTS), get_i8(a, T.NOW)
    count = 0
    for agent in range(get_i8(a, T.SIZE)):
        if (ALL_ACT and VISITED[state_of(a, agent)]) or is_due(a, agent):
            put_i4(acts, count, agent)
            set_life(a, agent, T.QUEUED, now)
            count += 1

    if not LISTED:
        keys = get_i8(a, T.PLACES)
        for each in range(count):
            put_u8(keys, each, place_of(a, get_i4(acts, each)))
        sort(a, count, keys, acts)

    return count


def turns(a: int, count: int) -> None:
    """Give turns in the order of the places, to those who get something to do meanwhile, too."""
    acts, places = get_i8(a, T.ACTS), get_i8(a, T.PLACES)
    put_i8(a, T.PHASE, T.UNDER_WAY)
    each = 0
    while True:
        newcomers = get_i8(a, T.NEWCOMERS)
        if each == count and newcomers == 0:
            break
        agent, place = -1, np.uint64(0)
        if each < count:
            agent = get_i4(acts, each)
            place = np.uint64(agent) if LISTED else get_u8(places, each)
        if agent < 0 or (newcomers and get_u8(get_i8(a, T.HEAP_PLACES), 0) < place):
            place = get_u8(get_i8(a, T.HEAP_PLACES), 0)
            agent = pop(a)
        else:
            each += 1

        put_u8(a, T.AT, place)
        take_turn(a, agent, -1)

    put_i8(a, T.PHASE, T.OVER)


def apart(a: int) -> None:
    """Give turns in the order of the list, where that decides nothing."""
    put_i8(a, T.PHASE, T.OVER)
    for agent in range(get_i8(a, T.SIZE)):
        if VISITED[state_of(a, agent)] or is_due(a, agent):
            take_turn(a, agent, -1)


def drawn_turn(a: int) -> None:
    """Draw an agent, or a pair; give turns to those who time out, then to the one that is drawn."""
    put_i8(a, T.PHASE, T.OVER)
    size, canonical = get_i8(a, T.SIZE), get_i8(a, T.CANONICAL)
    place = int(draw_turn(a) * size)
    agent, other = get_i4(canonical, place), -1
    if IN_PAIRS and get_i8(a, T.HAS_NETWORK):
        among = degree(a, agent)
        if among:
            other = neighbour(a, agent, int(draw_turn(a) * among))
    elif IN_PAIRS and size > 1:
        away = place - 1 - int(draw_turn(a) * (size - 1))
        other = get_i4(canonical, away + size if away < 0 else away)
    if IN_PAIRS and other < 0:
        agent = -1
    put_i8(a, T.DRAWN_AGENT, agent)

    count = collect(a) if HAS_LIMITS else 0
    for each in range(count):
        take_turn(a, get_i4(get_i8(a, T.ACTS), each), other)
    waves(a)
    if agent < 0 or (count and get_i8(a, T.STOPPED)):
        return

    # who timed out has had its turn
    is_over = HAS_LIMITS and life(a, agent, T.QUEUED) == get_i8(a, T.NOW)
    if not is_over:
        take_turn(a, agent, other)
        waves(a)


def tick(a: int) -> int:
    """Run one tick."""
    put_i8(a, T.SLOTS, 0)
    put_i8(a, T.WAITING, 0)
    put_i8(a, T.NEWCOMERS, 0)
    if not ALL_ACT:
        drawn_turn(a)
    elif TOGETHER:
        put_i8(a, T.PUTTING, 1)
        apart(a)
        waves(a)
        put_i8(a, T.PUTTING, 0)
        finish(a)
    elif INDEPENDENT:
        apart(a)
    else:
        turns(a, collect(a))
        waves(a)

    return 0


def fire_from_outside(a: int, agent: int, trigger: int, context: int) -> int:
    """Fire an event for a hook."""
    return fire_now(a, agent, trigger, context)


# Together


def put_off(a: int, agent: int, trigger: int, context: int, chosen: int) -> None:
    """Keep what somebody fires for the end of the tick."""
    number = get_i8(a, T.MADE)
    if number >= get_i8(a, T.MOST_MADE):
        fault(a, 9, 0)
    put_i8(a, T.MADE, number + 1)
    row, at = get_i8(a, T.PUT_OFF), 4 * number
    put_i4(row, at, agent)
    put_i4(row, at + 1, trigger)
    put_i4(row, at + 2, context)
    put_i4(row, at + 3, chosen)
    put_u8(get_i8(a, T.PUT_OFF_PLACES), number, place_of(a, get_i8(a, T.ACTING)))
    put_i4(get_i8(a, T.PUT_OFF_ORDER), number, number)


def finish(a: int) -> None:
    """Write and fire, in the order of the places of those who did."""
    marks = get_i8(a, T.HAS_WRITTEN)
    for each in range(get_i8(a, T.WRITTEN)):
        agent = get_i4(get_i8(a, T.WRITERS), each)
        if get_u1(marks, agent) == 1:
            write_own(a, agent)
        put_u1(marks, agent, 0)
    put_i8(a, T.WRITTEN, 0)

    count, row, order = get_i8(a, T.MADE), get_i8(a, T.PUT_OFF), get_i8(a, T.PUT_OFF_ORDER)
    put_i8(a, T.MADE, 0)
    sort(a, count, get_i8(a, T.PUT_OFF_PLACES), order)
    began = get_i8(a, T.BEGAN)
    for each in range(count):
        agent = get_i4(row, 4 * each)
        put_u1(began, agent, state_of(a, agent))

    for each in range(count):
        at = 4 * get_i4(order, each)
        agent, trigger = get_i4(row, at), get_i4(row, at + 1)
        context, chosen = get_i4(row, at + 2), get_i4(row, at + 3)
        asked_in = get_u1(began, agent)
        if chosen >= 0:
            fire_to(a, agent, trigger, chosen, context, asked_in)
        elif fire_now(a, agent, trigger, context) >= 0 and trigger == TIMEOUT:
            add(a, T.TIMED_OUT, asked_in, 1)
        if trigger == TIMEOUT:
            put_off_time_out(a, agent)


# Orders


def sort(a: int, count: int, keys: int, items: int) -> None:
    """Sort items by keys that are spread evenly over 64 bits; equal keys keep their order."""
    bits = 0
    while bits < MOST_BITS and (1 << bits) < count:
        bits += 1
    if bits > 4:
        scatter(a, count, keys, items, bits)

    for each in range(1, count):
        key, item, place = get_u8(keys, each), get_i4(items, each), each
        while place > 0 and get_u8(keys, place - 1) > key:
            put_u8(keys, place, get_u8(keys, place - 1))
            put_i4(items, place, get_i4(items, place - 1))
            place -= 1
        put_u8(keys, place, key)
        put_i4(items, place, item)


def scatter(a: int, count: int, keys: int, items: int, bits: int) -> None:
    """Put items into about as many buckets as there are items, by the first bits of their keys."""
    buckets, shift = get_i8(a, T.BUCKETS), np.uint64(64 - bits)
    spare_keys, spare_items = get_i8(a, T.SPARE_KEYS), get_i8(a, T.SPARE_ITEMS)
    for each in range((1 << bits) + 1):
        put_i4(buckets, each, 0)
    for each in range(count):
        key = get_u8(keys, each)
        bucket = np.int64(key >> shift) + 1
        put_i4(buckets, bucket, get_i4(buckets, bucket) + 1)
        put_u8(spare_keys, each, key)
        put_i4(spare_items, each, get_i4(items, each))
    for each in range(1 << bits):
        put_i4(buckets, each + 1, get_i4(buckets, each + 1) + get_i4(buckets, each))
    for each in range(count):
        key = get_u8(spare_keys, each)
        bucket = np.int64(key >> shift)
        place = get_i4(buckets, bucket)
        put_i4(buckets, bucket, place + 1)
        put_u8(keys, place, key)
        put_i4(items, place, get_i4(spare_items, each))


def push(a: int, place: Any, agent: int) -> None:
    """Put a newcomer among those whose turn is to come."""
    heap, places, at = get_i8(a, T.HEAP), get_i8(a, T.HEAP_PLACES), get_i8(a, T.NEWCOMERS)
    put_i8(a, T.NEWCOMERS, at + 1)
    while at > 0 and get_u8(places, (at - 1) // 2) > place:
        put_u8(places, at, get_u8(places, (at - 1) // 2))
        put_i4(heap, at, get_i4(heap, (at - 1) // 2))
        at = (at - 1) // 2
    put_u8(places, at, place)
    put_i4(heap, at, agent)


def pop(a: int) -> int:
    """Take out the newcomer whose turn is next."""
    heap, places, size = get_i8(a, T.HEAP), get_i8(a, T.HEAP_PLACES), get_i8(a, T.NEWCOMERS) - 1
    put_i8(a, T.NEWCOMERS, size)
    first, agent, place, at = get_i4(heap, 0), get_i4(heap, size), get_u8(places, size), 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and get_u8(places, child + 1) < get_u8(places, child):
            child += 1
        if get_u8(places, child) >= place:
            break
        put_u8(places, at, get_u8(places, child))
        put_i4(heap, at, get_i4(heap, child))
        at = child
    put_u8(places, at, place)
    put_i4(heap, at, agent)

    return first
