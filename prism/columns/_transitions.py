"""Transitions in compiled code: fired, decided in waves, deferred and logged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prism.columns import _table as T  # noqa: N812
from prism.columns import _world as W  # noqa: N812

if TYPE_CHECKING:
    from prism.columns._numbers import draw_decision, fault, mixed, state_of
    from prism.columns._orders import AHEAD, push, sort

# The kernel begins here

MOST_WAVES = 10_000


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
    """Return the number of turns that an agent has had in the run."""
    return run.now - (not has_had_turn(run, agent))


def ticks_of(run: Any, agent: int) -> int:
    """Return the number of turns that an agent has had in its state."""
    return turns_of(run, agent) - W.agent_at(run, agent).since


def add(column: int, number: int, more: int) -> None:
    """Add to a counter."""
    W.put_i8(column, number, W.get_i8(column, number) + more)


# Time-outs


def set_due(run: Any, agent: int, state: int) -> None:
    """Record the tick in which an agent times out, if it is still to come."""
    due, after = T.NEVER, W.DUE_AFTER[state]
    if after >= 0:
        first = run.now + has_had_turn(run, agent)
        due = min(max(W.agent_at(run, agent).since + after, first), T.NEVER)
    W.put_i4(run.due, agent, due)


def is_due(run: Any, agent: int) -> bool:
    """Return whether an agent's time-out is due."""
    return W.HAS_LIMITS and W.get_i4(run.due, agent) <= run.now


def put_off_time_out(run: Any, agent: int) -> None:
    """Retry in the next tick a time-out that led to no other state."""
    if is_due(run, agent):
        W.put_i4(run.due, agent, run.now + 1)


# Transitions


def give_turn(run: Any, agent: int, state: int) -> None:
    """Give an agent a turn in this tick, if it has something to do and its place is to come."""
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


def fire_now(run: Any, agent: int, trigger: int, context: int, wanted: int) -> int:
    """Make the first transition that an event enables, and return its target, or -1 for none.

    If a state is wanted, and not -1, only transitions to it count.
    """
    state = state_of(run, agent)
    row = state * W.N_TRIGGERS + trigger
    for each in range(W.START[row], W.START[row + 1]):
        target, guard = W.TARGET[each], W.GUARD[each]
        is_wanted = wanted < 0 or target == wanted
        if is_wanted and (guard < 0 or W.passes(run, guard, agent, context)):
            if target != state:
                move(run, agent, target, trigger, context)
            return target

    return -1


def fire(run: Any, agent: int, trigger: int, context: int) -> int:
    """Fire an event; in a together world, defer it to the end of the tick."""
    if W.TOGETHER and run.putting:
        put_off(run, agent, trigger, context, -1)
        return -1
    return fire_now(run, agent, trigger, context, -1)


def fire_to(run: Any, agent: int, trigger: int, target: int, context: int, asked_in: int) -> int:
    """Make the chosen transition if it still applies, and return its target, or -1."""
    if state_of(run, agent) != asked_in:
        discard(run, agent, trigger, context, asked_in, target, T.HAS_MOVED)
        return -1

    found = fire_now(run, agent, trigger, context, target)
    if found < 0:
        discard(run, agent, trigger, context, asked_in, target, T.NOT_ENABLED)
    return found


def put_off(run: Any, agent: int, trigger: int, context: int, chosen: int) -> None:
    """Defer a fired event to the end of the tick."""
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
    """In a together world, defer what an agent wrote into its own fields to the end of the tick."""
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
    """Add an event to the log."""
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
    """Record that an answer no longer applies."""
    if W.get_u1(run.logged, agent):
        event = new_event(run, T.DISCARDED, agent, trigger, context, asked_in, chosen)
        event.reason = reason
        W.put_i4(run.options, (run.told - 1) * W.N_STATES, state_of(run, agent))


# Decisions: steps that wait


def new_slot(run: Any, me: int, step: int, other: int) -> int:
    """Allocate a record for a step that is going to wait."""
    number = run.kept
    run.kept = number + 1
    slot = W.slot_at(run, number)
    slot.owner = me
    slot.other = other
    slot.step = step
    return number


def ask(
    run: Any, number: int, whom: int, trigger: int, context: int, weighted: int, line: int
) -> int:
    """Carry out a question without alternatives and return the state, or record the question."""
    run.last_kept = number
    slot = W.slot_at(run, number)
    slot.whom = whom
    slot.trigger = trigger
    slot.context = context
    slot.weighted = weighted
    slot.late = 0
    slot.open = 0
    slot.answer = -1
    return settle(run, number, line)


def settle(run: Any, number: int, line: int) -> int:
    """If a question leaves nothing to decide, carry it out and return the state."""
    slot = W.slot_at(run, number)
    whom, trigger, context = W.whole(slot.whom), W.whole(slot.trigger), W.whole(slot.context)
    state = state_of(run, whom)
    looks = W.DECIDES[state] or slot.weighted
    if looks and list_choices(run, number, state) > 1:
        if not W.DECIDES[state]:
            fault(run, T.UNDECIDED, line)
        slot.asked_in = state
        slot.moves_then = W.agent_at(run, whom).moves
        if slot.weighted:
            require_weights(run, number, line)
        return T.ASKED

    return fire(run, whom, trigger, context)


def list_choices(run: Any, number: int, state: int) -> int:
    """List the targets that are open to the asked agent, and return their number."""
    slot, first, choices = W.slot_at(run, number), number * W.N_STATES, 0
    whom, trigger, context = W.whole(slot.whom), W.whole(slot.trigger), W.whole(slot.context)
    row = state * W.N_TRIGGERS + trigger
    for each in range(W.START[row], W.START[row + 1]):
        is_new = True
        for earlier in range(choices):
            if W.get_u1(run.choices, first + earlier) == W.TARGET[each]:
                is_new = False
        guard = W.GUARD[each]
        if is_new and (guard < 0 or W.passes(run, guard, whom, context)):
            W.put_u1(run.choices, first + choices, W.TARGET[each])
            choices += 1

    slot.choices = choices
    return choices


def weight_of(run: Any, number: int, choice: int) -> float:
    """Return the weight of a choice."""
    if W.slot_at(run, number).weighted == 0:
        return 1.0
    return W.get_f8(
        run.weights, number * W.N_STATES + W.get_u1(run.choices, number * W.N_STATES + choice)
    )


def require_weights(run: Any, number: int, line: int) -> None:
    """Refuse weights that are all 0."""
    for state in range(W.N_STATES):
        if not 0.0 <= W.get_f8(run.weights, number * W.N_STATES + state) < np.inf:
            fault(run, T.WEIGHTS, line)
    for choice in range(W.slot_at(run, number).choices):
        if weight_of(run, number, choice) > 0.0:
            return
    fault(run, T.WEIGHTS, line)


def decide(run: Any, number: int) -> int:
    """Draw one of the open targets by its weight, as the policy does."""
    slot, total = W.slot_at(run, number), 0.0
    for choice in range(slot.choices):
        total += weight_of(run, number, choice)

    drawn_at, so_far = draw_decision(run, W.whole(slot.whom)) * total, 0.0
    chosen = slot.choices - 1
    for choice in range(slot.choices):
        so_far += weight_of(run, number, choice)
        if drawn_at < so_far:
            chosen = choice
            break

    found = W.get_u1(run.choices, number * W.N_STATES + chosen)
    run.decided += 1
    if W.get_u1(run.logged, slot.whom):
        tell_decision(run, number, found, total)
    return found


def tell_decision(run: Any, number: int, chosen: int, total: float) -> None:
    """Add a decision to the log."""
    slot = W.slot_at(run, number)
    whom, trigger, context = W.whole(slot.whom), W.whole(slot.trigger), W.whole(slot.context)
    event = new_event(run, T.DECISION, whom, trigger, context, W.whole(slot.asked_in), chosen)
    event.options = slot.choices
    first = (run.told - 1) * W.N_STATES
    for choice in range(slot.choices):
        W.put_i4(run.options, first + choice, W.get_u1(run.choices, number * W.N_STATES + choice))
        W.put_f8(run.chances, first + choice, weight_of(run, number, choice) / total)


# Waves


def waves(run: Any) -> None:
    """Ask, and continue steps in the order of the turns, until no agent waits."""
    for _ in range(MOST_WAVES):
        count = run.waiting
        if count == 0:
            return

        # the list of those who wait becomes this wave, and the other one the next
        wave = run.wait_list
        run.wait_list = run.wait_next
        run.wait_next = wave
        run.waiting = 0
        run.wave += 1
        if W.TOGETHER:
            for each in range(count):
                owner = W.whole(W.slot_at(run, W.get_i4(wave, each)).owner)
                W.put_u8(run.places, each, place_of(run, owner))
            sort(run, count, run.places, wave)
        open_questions(run, wave, count)
        answer_questions(run, wave, count)
        go_on(run, wave, count)

    fault(run, T.WAVES, 0)


def fetch_asked(run: Any, wave: int, number: int, count: int) -> Any:
    """Prefetch the agent that is asked next, and return the asking step."""
    later = W.slot_at(run, W.get_i4(wave, min(number + AHEAD, count - 1)))
    W.fetch(run.agents + later.whom * W.AGENT_SIZE)
    return later


def open_questions(run: Any, wave: int, count: int) -> None:
    """Choose the questions of a wave: one for each agent. Others wait for the next wave."""
    for each in range(count):
        number = W.get_i4(wave, each)
        slot = W.slot_at(run, number)
        fetch_asked(run, wave, each, count)
        asked = W.agent_at(run, slot.whom)
        if asked.taken == run.wave:
            slot.late = 2
            continue

        slot.open = 1
        if slot.late:
            run.acting = slot.owner
            slot.late = 1
            answer = -1
            if asked.moves == slot.moves_then:
                answer = settle(run, number, 0)
            slot.answer = answer
            slot.open = answer == T.ASKED
        if slot.open:
            asked.taken = run.wave


def answer_questions(run: Any, wave: int, count: int) -> None:
    """Decide all open questions before anything is carried out."""
    for each in range(count):
        number = W.get_i4(wave, each)
        slot = W.slot_at(run, number)
        fetch_asked(run, wave, each, count)
        if slot.open and slot.late != 2:
            slot.answer = decide(run, number)


def go_on(run: Any, wave: int, count: int) -> None:
    """Carry out the decisions, and continue the steps that waited."""
    for each in range(count):
        number = W.get_i4(wave, each)
        slot = W.slot_at(run, number)
        later = fetch_asked(run, wave, each, count)
        W.fetch(run.agents + later.owner * W.AGENT_SIZE)
        if slot.late == 2:
            slot.late = 1
            wait(run, number)
            continue

        answer = W.whole(slot.answer)
        run.acting = slot.owner
        if slot.open:
            slot.open = 0
            answer = carry_out(run, number, answer)
        advance(run, number, answer)


def carry_out(run: Any, number: int, chosen: int) -> int:
    """Make the decided transition, and return its target, or -1 if it no longer applies."""
    slot = W.slot_at(run, number)
    whom, trigger, context = W.whole(slot.whom), W.whole(slot.trigger), W.whole(slot.context)
    asked_in = W.whole(slot.asked_in)
    if W.TOGETHER:
        put_off(run, whom, trigger, context, chosen)
        return chosen
    if W.agent_at(run, whom).moves != slot.moves_then:
        discard(run, whom, trigger, context, asked_in, chosen, T.HAS_MOVED)
        return -1

    return fire_to(run, whom, trigger, chosen, context, asked_in)


def wait(run: Any, number: int) -> None:
    """Make a step wait for the next wave."""
    W.put_i4(run.wait_list, run.waiting, number)
    run.waiting += 1


def advance(run: Any, number: int, answer: int) -> None:
    """Continue a step with its answer."""
    slot = W.slot_at(run, number)
    owner, other = W.whole(slot.owner), W.whole(slot.other)
    W.begin_own(run, owner)
    piece = W.run_step(run, W.whole(slot.step), owner, other, W.whole(slot.piece), number, answer)
    if piece:
        slot.piece = piece
        wait(run, number)
    take_back(run, owner)
