"""Steps that wait: for decisions, texts, messages, and what belongs to the event loop.

All questions of a wave are asked at once, their answers are applied in the order of the turns, and
the steps go on, in waves until none waits. So a run never depends on which answer came first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from prism._faults import place_in
from prism.errors import SimulationError
from prism.statechart import Written
from prism.worlds._agent import Agent
from prism.worlds._decisions import apply, discard, is_stale, question_of, settle
from prism.worlds._fields import parameter_values
from prism.worlds._guests import Guest
from prism.worlds._waiting import Asked, Receiving, Waits, Writing

MOST_WAVES = 10_000
"""Most waves in one tick, since a step that keeps asking would never end."""

Waiting = tuple[Agent, Any, Any]
"""An agent, its step, and what the step waits for."""


async def settle_all(turns: Any, waiting: list[Waiting]) -> None:
    """Ask and continue in waves, until no step waits."""
    try:
        for _ in range(MOST_WAVES):
            if not waiting:
                break
            waiting = await _wave(turns, waiting)
        else:
            raise SimulationError(
                f"the step of {waiting[0][0]!r} still waits after {MOST_WAVES} answers in one "
                "tick: let it end"
            )
    finally:
        close(waiting)
    turns.acting = None


def advance(turns: Any, agent: Agent, running: Any, value: Any) -> Waiting | None:
    """Continue a step; return what it waits for, or None if it has ended."""
    turns.acting = agent
    try:
        waits = running.send(value)
    except StopIteration:
        if turns.unawaited is not None:
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
        if not isinstance(agent, Guest):
            _refuse_outside(waiting)
        try:
            if future is None:
                await asyncio.sleep(0)
            else:
                future._asyncio_future_blocking = False
                await asyncio.wait([future])
        except asyncio.CancelledError as error:
            # of the run, or by a time limit of the guest's own
            waiting = advance(turns, agent, _Throwing(running, error), None)
        else:
            waiting = advance(turns, agent, running, None)
    return waiting


async def _wave(turns: Any, waiting: Sequence[Waiting]) -> list[Waiting]:
    """Ask everything at once, then continue the steps in the order of the turns."""
    first: dict[Agent, Asked] = {}
    late: set[int] = set()
    for _, _, waits in waiting:
        # a second question to an agent waits for the first one's answer
        if type(waits) is Asked and first.setdefault(waits.agent, waits) is not waits:
            late.add(id(waits))
    writing = [waits for _, _, waits in waiting if type(waits) is Writing]
    await ask(turns, [*first.values()], writing)

    # agents that wait for a message that nobody will send get None
    is_quiet = all(type(waits) is Receiving and not waits.agent.inbox for _, _, waits in waiting)
    following: list[Waiting] = []
    try:
        for each in waiting:
            then = _go_on(turns, each, is_quiet=is_quiet, is_late=id(each[2]) in late)
            if then is not None and not isinstance(then[2], Waits):
                then = await outside(turns, then)
            if then is not None:
                following.append(then)
    except BaseException:
        close([*waiting, *following])
        raise
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
    chart = turns.population.kinds[type(waits.agent)].chart
    settled = None if is_stale(chart, waits) else settle(turns, waits)
    return waiting if settled is waits else advance(turns, agent, running, settled)


async def ask(turns: Any, asked: Sequence[Asked], writing: Sequence[Writing]) -> None:
    turns.acting = None
    policy = turns.answers.policy
    if policy is not None and asked:
        for each, chosen in zip(asked, policy.choose(asked, turns.events.logger), strict=True):
            each.answer = chosen
        turns.answers.count_drawn(len(asked))
        if not writing:
            return
        asked = ()
    if asked or writing:
        parameters = parameter_values(turns.world)
        questions = [question_of(turns, each, parameters) for each in asked]
        decisions, texts = await turns.answers.ask(
            questions, [each.call for each in writing], turns.events.logger
        )
        for each, decision in zip(asked, decisions, strict=True):
            each.answer = decision.chosen
        for text, written in zip(writing, texts, strict=True):
            text.answer = written


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


def close(waiting: Iterable[Waiting]) -> None:
    for _, running, _ in waiting:
        running.close()


class _Throwing:
    """A step that continues with an exception.

    Args:
        running: The step.
        error: The exception.
    """

    def __init__(self, running: Any, error: BaseException) -> None:
        self._running, self._error = running, error
        self.close = running.close

    def send(self, value: Any) -> Any:
        """Raise the exception in the step, the first time."""
        error, self._error = self._error, None  # type: ignore[assignment]
        return self._running.send(value) if error is None else self._running.throw(error)


def _refuse_outside(waiting: Waiting) -> None:
    """Refuse what a step awaits that is not an agent's.

    Raises:
        SimulationError: Always.
    """
    agent, running, future = waiting
    frame = running.cr_frame
    place = None if frame is None else place_in(running.cr_code, frame.f_lasti)
    running.close()
    where = "" if place is None else f"{place}: "
    raise SimulationError(
        f"{where}the step of {agent!r} awaits {future!r}: await decide, write and receive of "
        "agents, whose answers come in the order of turns"
    )


def unawaited(asked: Asked) -> SimulationError:
    return SimulationError(
        f"the decision of {asked.agent!r} on {asked.trigger!r} was not awaited, so it was never "
        f"made: write  await agent.decide({asked.trigger!r})  in an async step"
    )
