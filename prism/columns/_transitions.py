"""Transitions in compiled code, what they tell the log, and what a together world puts off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prism.columns import _table as T  # noqa: N812
from prism.columns import _world as W  # noqa: N812

if TYPE_CHECKING:
    from prism.columns._numbers import fault, mixed, state_of
    from prism.columns._orders import push

# The kernel begins here


def place_of(run: Any, agent: int) -> Any:
    """Return an agent's place in this tick."""
    if W.LISTED:
        return np.uint64(agent)
    return mixed(W.agent_at(run, agent).key_place + run.salt)


def has_had_turn(run: Any, agent: int) -> bool:
    """Return whether an agent's place in the tick is over."""
    if run.phase == T.UNDER_WAY:
        return place_of(run, agent) <= run.place
    return run.phase == T.OVER


def turns_of(run: Any, agent: int) -> int:
    """Return how many turns an agent has had in the run."""
    return run.now - (not has_had_turn(run, agent))


def ticks_of(run: Any, agent: int) -> int:
    """Return the turns that an agent has had in its state."""
    return turns_of(run, agent) - W.agent_at(run, agent).since


def add(column: int, number: int, more: int) -> None:
    """Add to a counter."""
    W.put_i8(column, number, W.get_i8(column, number) + more)


# Time-outs


def set_due(run: Any, agent: int, state: int) -> None:
    """Note in which tick an agent times out; in none that is over."""
    due, after = T.NEVER, W.DUE_AFTER[state]
    if after >= 0:
        first = run.now + has_had_turn(run, agent)
        due = min(max(W.agent_at(run, agent).since + after, first), T.NEVER)
    W.put_i4(run.due, agent, due)


def is_due(run: Any, agent: int) -> bool:
    """Return whether an agent's time-out is due."""
    return W.HAS_LIMITS and W.get_i4(run.due, agent) <= run.now


def put_off_time_out(run: Any, agent: int) -> None:
    """Look again in the next tick at a time-out that has led to no other state."""
    if is_due(run, agent):
        W.put_i4(run.due, agent, run.now + 1)


# Transitions


def give_turn(run: Any, agent: int, state: int) -> None:
    """Give an agent its turn in this tick, if there is something to do, and it is to come."""
    if run.phase != T.UNDER_WAY or not (W.VISITED[state] or is_due(run, agent)):
        return

    me, place = W.agent_at(run, agent), place_of(run, agent)
    if place > run.place and me.queued != run.now:
        me.queued = run.now
        push(run, place, agent)


def move(run: Any, agent: int, target: int, trigger: int, context: int) -> None:
    """Make a transition to another state."""
    me, left = W.agent_at(run, agent), state_of(run, agent)
    add(run.counts, left, -1)
    add(run.counts, target, 1)
    turns = turns_of(run, agent)
    dwell = turns - me.since
    me.since = turns
    me.moves += 1
    W.put_u1(run.state, agent, target)
    if W.HAS_LIMITS:
        set_due(run, agent, target)
    give_turn(run, agent, target)
    run.moved += 1

    if W.get_u1(run.logged, agent):
        event = new_event(run, T.TRANSITION, agent, trigger, context, left, target)
        event.dwell = dwell


def fire_now(run: Any, agent: int, trigger: int, context: int) -> int:
    """Make the first transition that an event enables; return the state, or -1 for none."""
    state = state_of(run, agent)
    row = state * W.N_TRIGGERS + trigger
    for each in range(W.START[row], W.START[row + 1]):
        if W.GUARD[each] < 0 or W.passes(run, W.GUARD[each], agent, context):
            target = W.TARGET[each]
            if target != state:
                move(run, agent, target, trigger, context)
            return target

    return -1


def fire(run: Any, agent: int, trigger: int, context: int) -> int:
    """Fire an event, or put it off to the end of the tick in a together world."""
    if W.TOGETHER and run.putting:
        put_off(run, agent, trigger, context, -1)
        return -1
    return fire_now(run, agent, trigger, context)


def fire_to(run: Any, agent: int, trigger: int, target: int, context: int, asked_in: int) -> int:
    """Make the transition that was chosen, if it still applies; return the state, or -1."""
    state = state_of(run, agent)
    if state != asked_in:
        discard(run, agent, trigger, context, asked_in, target, T.HAS_MOVED)
        return -1

    row = state * W.N_TRIGGERS + trigger
    for each in range(W.START[row], W.START[row + 1]):
        is_it = W.TARGET[each] == target
        if is_it and (W.GUARD[each] < 0 or W.passes(run, W.GUARD[each], agent, context)):
            if target != state:
                move(run, agent, target, trigger, context)
            return target

    discard(run, agent, trigger, context, asked_in, target, T.NOT_ENABLED)
    return -1


def put_off(run: Any, agent: int, trigger: int, context: int, chosen: int) -> None:
    """Keep what somebody fires for the end of the tick."""
    number = run.made
    if number >= run.most_made:
        fault(run, T.FIRES, 0)
    run.made = number + 1
    deed = W.deed_at(run, number)
    deed.agent = agent
    deed.trigger = trigger
    deed.context = context
    deed.chosen = chosen
    W.put_u8(run.deed_places, number, place_of(run, run.acting))
    W.put_i4(run.deed_order, number, number)


def take_back(run: Any, agent: int) -> None:
    """Keep what an agent has written of itself for the end of the tick, in a together world."""
    if W.TOGETHER and W.end_own(run, agent):
        me = W.agent_at(run, agent)
        if me.has_written != 2:
            W.put_i4(run.writers, run.written, agent)
            run.written += 1
        me.has_written = 1


# The log


def new_event(
    run: Any, kind: int, agent: int, trigger: int, context: int, first: int, then: int
) -> Any:
    """Note something for the log."""
    number = run.told
    if number >= run.most_told:
        fault(run, T.EVENTS, 0)
    run.told = number + 1
    event = W.event_at(run, number)
    event.kind = kind
    event.agent = agent
    event.trigger = trigger
    event.context = context
    event.first = first
    event.then = then
    event.options = 0
    event.place = place_of(run, agent)
    return event


def discard(
    run: Any, agent: int, trigger: int, context: int, asked_in: int, chosen: int, reason: int
) -> None:
    """Note that an answer no longer applies."""
    if W.get_u1(run.logged, agent):
        event = new_event(run, T.DISCARDED, agent, trigger, context, asked_in, chosen)
        event.reason = reason
        W.put_i4(run.options, (run.told - 1) * W.N_STATES, state_of(run, agent))
