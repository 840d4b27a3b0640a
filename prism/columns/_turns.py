"""A tick in compiled code: which agents have a turn, in which order, and what a turn is.

It is the object engine's tick (`prism.worlds._ticks`, `_turns`, `_together`), transition by
transition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prism.columns import _table as T  # noqa: N812
from prism.columns import _world as W  # noqa: N812

if TYPE_CHECKING:
    from prism.columns._numbers import degree, draw_turn, neighbour, state_of
    from prism.columns._orders import fetch_ahead, pop, sort
    from prism.columns._transitions import (
        add,
        fire_now,
        fire_to,
        is_due,
        place_of,
        put_off,
        put_off_time_out,
        take_back,
        wait,
        waves,
    )

# The kernel begins here


def tick(run: Any) -> int:
    """Run one tick."""
    run.kept = 0
    run.waiting = 0
    run.newcomers = 0
    if W.TOGETHER:
        run.putting = 1
        in_order_of_the_list(run)
        answer(run)
        run.putting = 0
        finish(run)
    elif not W.ALL_ACT:
        drawn_turn(run)
    elif W.INDEPENDENT:
        in_order_of_the_list(run)
    else:
        in_order_of_places(run, collect(run))
        answer(run)

    return 0


def fire_from_outside(run: Any, agent: int, trigger: int, context: int) -> int:
    """Fire an event for a hook."""
    return fire_now(run, agent, trigger, context, -1)


def answer(run: Any) -> None:
    """Answer waiting agents, if steps can wait."""
    if W.USES_WAITS:
        waves(run)


# A turn


def take_turn(run: Any, agent: int, other: int) -> None:
    """Give an agent its turn: its time-out if one is due, or else its step."""
    run.acting = agent
    state = state_of(run, agent)
    if is_due(run, agent):
        if W.TOGETHER:
            put_off(run, agent, W.TIMEOUT, -1, -1)
            return
        has_fired = fire_now(run, agent, W.TIMEOUT, -1, -1) >= 0
        put_off_time_out(run, agent)
        if has_fired:
            add(run.timed_out, state, 1)
            return

    # one that was due may have moved since
    if not W.ALL_ACT and agent != run.drawn_agent:
        return

    step = W.STEP_OF[state]
    if step < 0:
        return

    W.begin_own(run, agent)
    piece = W.run_step(run, step, agent, other, 0, -1, -1)
    if W.USES_WAITS and piece:
        W.slot_at(run, run.last_kept).piece = piece
        wait(run, run.last_kept)
    take_back(run, agent)


# Orders of turns


def collect(run: Any) -> int:
    """List the agents that have something to do in this tick, and return their number."""
    count = 0
    for agent in range(run.size):
        if (W.ALL_ACT and W.VISITED[state_of(run, agent)]) or is_due(run, agent):
            W.put_i4(run.acts, count, agent)
            W.agent_at(run, agent).queued = run.now
            W.put_u8(run.places, count, place_of(run, agent))
            count += 1

    if not W.LISTED:
        sort(run, count, run.places, run.acts)

    return count


def in_order_of_places(run: Any, count: int) -> None:
    """Give turns in the order of the places, also to agents that get something to do meanwhile."""
    run.phase = T.UNDER_WAY
    each = 0
    while each < count or run.newcomers:
        if run.newcomers and (
            each == count or W.get_u8(run.heap_places, 0) < W.get_u8(run.places, each)
        ):
            run.place = W.get_u8(run.heap_places, 0)
            agent = pop(run)
        else:
            run.place = W.get_u8(run.places, each)
            agent = W.get_i4(run.acts, each)
            fetch_ahead(run, each, count)
            each += 1

        take_turn(run, agent, -1)

    run.phase = T.OVER


def in_order_of_the_list(run: Any) -> None:
    """Give turns in the order of the list if the order does not matter."""
    run.phase = T.OVER
    for agent in range(run.size):
        if W.VISITED[state_of(run, agent)] or is_due(run, agent):
            take_turn(run, agent, -1)


def drawn_turn(run: Any) -> None:
    """Draw an agent or a pair; give turns to the agents that time out, then to the drawn one."""
    run.phase = T.OVER
    place = int(draw_turn(run) * run.size)
    agent = W.get_i4(run.canonical, place)
    other = drawn_partner(run, agent, place) if W.IN_PAIRS else -1
    if W.IN_PAIRS and other < 0:
        agent = -1
    run.drawn_agent = agent

    count = collect(run) if W.HAS_LIMITS else 0
    for each in range(count):
        take_turn(run, W.get_i4(run.acts, each), other)
    answer(run)
    if agent < 0 or (count and run.stopped):
        return

    # who timed out has had its turn
    if W.agent_at(run, agent).queued != run.now:
        take_turn(run, agent, other)
        answer(run)


def drawn_partner(run: Any, agent: int, place: int) -> int:
    """Draw a partner for an agent: a neighbour, or any agent if there is no network."""
    if run.has_network:
        among = degree(run, agent)
        return neighbour(run, agent, int(draw_turn(run) * among)) if among else -1
    if run.size < 2:
        return -1

    away = place - 1 - int(draw_turn(run) * (run.size - 1))
    return W.get_i4(run.canonical, away + run.size if away < 0 else away)


# Together


def finish(run: Any) -> None:
    """Write and fire, in the order of the agents' places."""
    for each in range(run.written):
        agent = W.get_i4(run.writers, each)
        if W.agent_at(run, agent).has_written == 1:
            W.write_own(run, agent)
        W.agent_at(run, agent).has_written = 0
    run.written = 0

    count = run.made
    run.made = 0
    sort(run, count, run.deed_places, run.deed_order)
    for each in range(count):
        agent = W.whole(W.deed_at(run, each).agent)
        W.agent_at(run, agent).began = state_of(run, agent)

    for each in range(count):
        deed = W.deed_at(run, W.get_i4(run.deed_order, each))
        agent, trigger = W.whole(deed.agent), W.whole(deed.trigger)
        context, chosen = W.whole(deed.context), W.whole(deed.chosen)
        began = W.whole(W.agent_at(run, agent).began)
        if chosen >= 0:
            fire_to(run, agent, trigger, chosen, context, began)
        elif fire_now(run, agent, trigger, context, -1) >= 0 and trigger == W.TIMEOUT:
            add(run.timed_out, began, 1)
        if trigger == W.TIMEOUT:
            put_off_time_out(run, agent)
