"""Steps that wait: for decisions, texts, messages, and what belongs to the event loop.

All questions of a wave are asked at once, their answers are applied in the order of the turns, and
the steps go on, in waves until none waits. So a run never depends on which answer came first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from types import coroutine
from typing import Any

from prism.errors import SimulationError
from prism.worlds._agent import Agent
from prism.worlds.decisions import Deciding, Receiving, Waits, Writing
from prism.worlds.guests import Guest

MOST_WAVES = 10_000
"""Most waves in one tick, since a step that keeps asking would never end."""

Waiting = tuple[Agent, Any, Any]
"""An agent, its step, and what the step waits for."""


async def settle_all(turns: Any, waiting: list[Waiting]) -> None:
    """Ask and continue in waves, until no step waits."""
    for _ in range(MOST_WAVES):
        if not waiting:
            break
        waiting = await wave(turns, waiting)
    else:
        problem = f"still waits after {MOST_WAVES} answers in one tick: let it end"
        raise SimulationError(f"the step of {waiting[0][0]!r} {problem}")
    turns.acting = None


def advance(
    turns: Any, agent: Agent, running: Any, value: Any, error: BaseException | None = None
) -> Waiting | None:
    """Continue a step with a value, or an error; return what it waits for, or None at its end."""
    turns.acting = agent
    try:
        waits = running.send(value) if error is None else running.throw(error)
    except StopIteration:
        return None
    except AttributeError:
        if not hasattr(running, "send"):
            # what a plain step returns, such as the state that it fired into
            return None
        raise
    return agent, running, waits


async def wave(turns: Any, waiting: list[Waiting]) -> list[Waiting]:
    """Ask everything at once, then continue the steps in the order of the turns."""
    first: dict[Agent, Deciding] = {}
    for _, _, waits in waiting:
        if type(waits) is Deciding:
            first.setdefault(waits.agent, waits)
    writing = [waits for _, _, waits in waiting if type(waits) is Writing]
    await turns.answers.ask(turns, [*first.values()], writing)

    # agents that wait for a message that nobody will send get None
    is_quiet = all(type(waits) is Receiving and not waits.agent.inbox for _, _, waits in waiting)
    following: list[Waiting] = []
    for each in waiting:
        agent, running, waits = each
        is_late = type(waits) is Deciding and first[waits.agent] is not waits
        then: Waiting | None = each
        if agent.has_left:
            if type(waits) is Deciding and not is_late:
                waits.discard("left")
            running.close()
            continue
        if is_late:
            # a second question to an agent, which has waited for the first one's answer
            settled = None if waits.is_stale else waits.settle()
            if settled is not waits:
                then = await outside(turns, advance(turns, agent, running, settled))
        elif type(waits) is not Receiving or waits.agent.inbox or is_quiet:
            then = advance(turns, agent, running, waits.result())
            # most steps end here
            then = then and await outside(turns, then)
        if then is not None:
            following.append(then)
    return following


async def outside(turns: Any, waiting: Waiting | None) -> Waiting | None:
    """Wait for what belongs to the event loop, such as a process that a guest has started."""
    while waiting is not None and not isinstance(waiting[2], Waits):
        agent, running, future = waiting
        error: BaseException | None = None
        if isinstance(agent, Guest):
            try:
                await _pass_on(future)
            except asyncio.CancelledError as cancelled:
                # of the run, or by a time limit of the guest's own
                error = cancelled
        else:
            cure = "await decide, write and receive of agents, whose answers come in order"
            error = SimulationError(f"the step of {agent!r} awaits {future!r}: {cure}")
        waiting = advance(turns, agent, running, None, error)
    return waiting


@coroutine
def _pass_on(future: Any) -> Generator[Any, Any, None]:
    """Pass a future, or None for a moment, to the event loop, and wait until it goes on.

    The step sees itself whether the future failed.
    """
    yield future
