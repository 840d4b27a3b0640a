"""Steps that wait: for decisions, texts, messages, and what belongs to the event loop.

All questions of a wave are asked at once, their answers are applied in the order of the turns, and
the steps go on, in waves until none waits. So a run never depends on which answer came first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Sequence
from typing import Any

from prism.errors import SimulationError
from prism.reasoner import Written
from prism.worlds._agent import Agent
from prism.worlds._decisions import Asked, Receiving, Waits, Writing, apply, discard, settle
from prism.worlds._guests import Guest

MOST_WAVES = 10_000
"""Most waves in one tick, since a step that keeps asking would never end."""

Waiting = tuple[Agent, Any, Any]
"""An agent, its step, and what the step waits for."""


async def settle_all(turns: Any, waiting: list[Waiting]) -> None:
    """Ask and continue in waves, until no step waits."""
    for _ in range(MOST_WAVES):
        if not waiting:
            break
        waiting = await _wave(turns, waiting)
    else:
        raise SimulationError(
            f"the step of {waiting[0][0]!r} still waits after {MOST_WAVES} answers in one "
            "tick: let it end"
        )
    turns.acting = None


def advance(
    turns: Any, agent: Agent, running: Any, value: Any, error: BaseException | None = None
) -> Waiting | None:
    """Continue a step with a value, or an error; return what it waits for, or None at its end."""
    turns.acting = agent
    try:
        waits = running.send(value) if error is None else running.throw(error)
    except StopIteration:
        if turns.unawaited:
            raise unawaited(turns.unawaited) from None
        return None
    except AttributeError:
        if not hasattr(running, "send"):
            # what a plain step returns, such as the state that it fired into
            return None
        raise
    return agent, running, waits


async def outside(turns: Any, waiting: Waiting | None) -> Waiting | None:
    """Wait for what belongs to the event loop, such as a process that a guest has started."""
    while waiting is not None and not isinstance(waiting[2], Waits):
        agent, running, future = waiting
        error: BaseException | None = None
        if isinstance(agent, Guest):
            try:
                await _Outside(future)
            except asyncio.CancelledError as cancelled:
                # of the run, or by a time limit of the guest's own
                error = cancelled
        else:
            error = SimulationError(
                f"the step of {agent!r} awaits {future!r}: await decide, write and receive of "
                "agents, whose answers come in the order of turns"
            )
        waiting = advance(turns, agent, running, None, error)
    return waiting


class _Outside:
    """Passes what a step awaits to the event loop.

    Args:
        future: A future, or None for a moment.
    """

    def __init__(self, future: Any) -> None:
        self._future = future

    def __await__(self) -> Generator[Any, Any, None]:
        """Wait until the event loop goes on; the step sees itself whether the future failed."""
        yield self._future


async def _wave(turns: Any, waiting: Sequence[Waiting]) -> list[Waiting]:
    """Ask everything at once, then continue the steps in the order of the turns."""
    first: dict[Agent, Asked] = {}
    late: set[int] = set()
    for _, _, waits in waiting:
        # a second question to an agent waits for the first one's answer
        if type(waits) is Asked and first.setdefault(waits.agent, waits) is not waits:
            late.add(id(waits))
    writing = [waits for _, _, waits in waiting if type(waits) is Writing]
    await turns.answers.ask(turns, [*first.values()], writing)

    # agents that wait for a message that nobody will send get None
    is_quiet = all(type(waits) is Receiving and not waits.agent.inbox for _, _, waits in waiting)
    following: list[Waiting] = []
    for each in waiting:
        then = _go_on(turns, each, is_quiet=is_quiet, is_late=id(each[2]) in late)
        if then is not None and not isinstance(then[2], Waits):
            then = await outside(turns, then)
        if then is not None:
            following.append(then)
    return following


def _go_on(turns: Any, waiting: Waiting, *, is_quiet: bool, is_late: bool) -> Waiting | None:
    """Continue a step with what it has waited for, unless it must wait longer."""
    agent, running, waits = waiting
    if agent.has_left:
        if type(waits) is Asked:
            discard(turns, waits)
        running.close()
        return None
    if type(waits) is Receiving and not (waits.agent.inbox or is_quiet):
        return waiting
    if not is_late:
        return advance(turns, agent, running, value_of(turns, waits))
    settled = None if waits.is_stale else settle(turns, waits)
    return waiting if settled is waits else advance(turns, agent, running, settled)


def value_of(turns: Any, waits: Any) -> Any:
    """Carry out a decision; return the value with which its step continues."""
    if type(waits) is Receiving:
        return None
    if type(waits) is not Asked:
        written: Written = waits.answer
        if turns.remembers and isinstance(written.value, str):
            waits.agent._note(f'You wrote: "{written.value}"')
        return written
    if turns.deferred is None:
        return apply(turns, waits)
    turns.defer(lambda: apply(turns, waits), waits.agent)
    return waits.answer


def unawaited(decisions: Iterable[Asked]) -> SimulationError:
    """Return the error about the first of the decisions that nobody awaited."""
    decision = next(iter(decisions))
    return SimulationError(
        f"the decision of {decision.agent!r} on {decision.trigger!r} was not awaited, so it was "
        f"never made: write  await agent.decide({decision.trigger!r})  in an async step"
    )
