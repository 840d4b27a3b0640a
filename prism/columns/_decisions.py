"""Decisions in compiled code: steps that wait, and waves in which they are answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prism.columns import _table as T  # noqa: N812
from prism.columns import _world as W  # noqa: N812

if TYPE_CHECKING:
    from prism.columns._numbers import added, draw_decision, fault, state_of, summed
    from prism.columns._orders import AHEAD, sort
    from prism.columns._transitions import (
        discard,
        fire,
        fire_to,
        new_event,
        place_of,
        put_off,
        take_back,
    )

# The kernel begins here

MOST_WAVES = 10_000


def new_slot(run: Any, me: int, step: int, other: int) -> int:
    """Begin to keep a step that is going to wait."""
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
    """Carry out what leaves nothing to decide, and return the state; else note the question."""
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
    """Look what a question leaves to decide; if nothing, carry it out, and return the state."""
    slot = W.slot_at(run, number)
    whom, trigger, context = W.whole(slot.whom), W.whole(slot.trigger), W.whole(slot.context)
    state = state_of(run, whom)
    if W.DECIDES[state] and list_choices(run, number, state) > 1:
        slot.asked_in = state
        slot.moves_then = W.agent_at(run, whom).moves
        if slot.weighted:
            require_weights(run, number, line)
        return T.ASKED

    return fire(run, whom, trigger, context)


def list_choices(run: Any, number: int, state: int) -> int:
    """List the targets that are open to who is asked; return how many they are."""
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
    """Refuse weights that say nothing."""
    for state in range(W.N_STATES):
        if not 0.0 <= W.get_f8(run.weights, number * W.N_STATES + state) < np.inf:
            fault(run, T.WEIGHTS, line)
    for choice in range(W.slot_at(run, number).choices):
        if weight_of(run, number, choice) > 0.0:
            return
    fault(run, T.WEIGHTS, line)


def decide(run: Any, number: int) -> int:
    """Draw one of the targets that are open, by the weights, as the policy does."""
    slot, total, lost, in_all = W.slot_at(run, number), 0.0, 0.0, 0.0
    for choice in range(slot.choices):
        total, lost = added(total, lost, weight_of(run, number, choice))
    total = summed(total, lost)
    for choice in range(slot.choices):
        in_all += weight_of(run, number, choice) / total

    drawn_at, so_far = draw_decision(run, W.whole(slot.whom)) * in_all, 0.0
    chosen = slot.choices - 1
    for choice in range(slot.choices):
        so_far += weight_of(run, number, choice) / total
        if drawn_at < so_far:
            chosen = choice
            break

    found = W.get_u1(run.choices, number * W.N_STATES + chosen)
    run.decided += 1
    if W.get_u1(run.logged, slot.whom):
        tell_decision(run, number, found, total)
    return found


def tell_decision(run: Any, number: int, chosen: int, total: float) -> None:
    """Note a decision for the log."""
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
    """Ask, and let steps go on in the order of the turns, until nobody waits."""
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
    """Fetch who is asked soon; return the step that asks."""
    later = W.slot_at(run, W.get_i4(wave, min(number + AHEAD, count - 1)))
    W.fetch(run.agents + later.whom * W.AGENT_SIZE)
    return later


def open_questions(run: Any, wave: int, count: int) -> None:
    """Choose what is asked in a wave: one question an agent; others wait for the next."""
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
    """Decide whatever is open, before anything is carried out."""
    for each in range(count):
        number = W.get_i4(wave, each)
        slot = W.slot_at(run, number)
        fetch_asked(run, wave, each, count)
        if slot.open and slot.late != 2:
            slot.answer = decide(run, number)


def go_on(run: Any, wave: int, count: int) -> None:
    """Carry out what was decided, and let the steps that waited go on."""
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
    """Make the transition that was decided for; return the state, or -1 if it no longer applies."""
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
    """Let a step wait for the next wave."""
    W.put_i4(run.wait_list, run.waiting, number)
    run.waiting += 1


def advance(run: Any, number: int, answer: int) -> None:
    """Let a step continue with its answer."""
    slot = W.slot_at(run, number)
    owner, other = W.whole(slot.owner), W.whole(slot.other)
    W.begin_own(run, owner)
    piece = W.run_step(run, W.whole(slot.step), owner, other, W.whole(slot.piece), number, answer)
    if piece:
        slot.piece = piece
        wait(run, number)
    take_back(run, owner)
