"""Code steps run in worker processes of pydantic-monty; the only module that imports it.

A worker is a small interpreter of its own, without files, network or clock, with limits on memory,
time and depth. One that dies or hangs is replaced. Whatever number of agents there is shares a few
of them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

from prism.errors import InputError, MissingExtraError
from prism.files import parse_json
from prism.workflow._data import through_json
from prism.workflow._sandbox._programs import MAX_RESULT_CHARACTERS, CodeError, Program

MAX_SECONDS = 3.0
"""How long one step may compute."""

MAX_MEMORY = 32 << 20
"""Bytes that one step may use."""

MAX_DEPTH = 100

_HUNG_SECONDS = 5.0
"""After so long a worker that says nothing is killed."""

_STEPS_PER_SESSION = 200
"""A session is renewed after so many steps; it counts some of what they did for all its life."""

_MAX_PRINTED = 1000


@dataclass(frozen=True, slots=True)
class Ran:
    """What a code step left behind.

    Args:
        context: The context after the step.
        printed: What it printed, the first 1,000 characters.
    """

    context: dict[str, Any]
    printed: str


@dataclass(eq=False, slots=True)
class _Session:
    """A worker that is ours for some steps."""

    runner: Any
    steps: int = 0
    printed: str = ""

    def hear(self, _stream: str, text: str) -> None:
        # a program can print without end: what is beyond the bound is dropped as it comes
        if len(self.printed) < _MAX_PRINTED:
            self.printed = (self.printed + text)[:_MAX_PRINTED]


@dataclass(slots=True)
class Workers:
    """The workers of a process, shared by all its agents.

    Args:
        count: The most that are at work at once, for each event loop.
    """

    count: int = 2
    _pool: Any = None
    _owner: int = 0
    _idle: list[_Session] = field(default_factory=list)
    _free: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = field(
        default_factory=WeakKeyDictionary
    )

    async def run(
        self, program: Program, context: Mapping[str, Any], given: Mapping[str, Any], key: str
    ) -> Ran:
        """Run a step's code on a copy of the context.

        Args:
            program: The code.
            context: The context, plain data as JSON has it.
            given: Variables beside it that the code may look at.
            key: What the step's random numbers belong to.

        Raises:
            CodeError: If the code fails, takes too long or leaves something that is not data.
            MissingExtraError: If pydantic-monty is not installed.
        """
        monty = require_monty()
        source = program.source(context, given, key)
        inputs = {"context": dict(context), "given": dict(given)}
        loop = asyncio.get_running_loop()
        free = self._free.setdefault(loop, asyncio.Semaphore(self.count))
        async with free:
            try:
                text, printed = await self._fed(source, inputs, fresh=False)
            except monty.MontyRuntimeError as error:
                if not _is_of_limits(error):
                    raise _failure(error, program) from None
                text, printed = await self._again(monty, source, inputs, program)
            except monty.MontyError:
                text, printed = await self._again(monty, source, inputs, program)

        return Ran(_merged(context, text), printed)

    async def _again(
        self, monty: Any, source: str, inputs: dict[str, Any], program: Program
    ) -> tuple[str, str]:
        # earlier steps used up some of that session's memory, or its worker was killed: what a
        # step can do must not depend on who came before it
        try:
            return await self._fed(source, inputs, fresh=True)
        except monty.MontyError as error:
            raise _failure(error, program) from None

    async def _fed(self, source: str, inputs: dict[str, Any], *, fresh: bool) -> tuple[str, str]:
        async with self._session(fresh=fresh) as session:
            session.printed = ""
            text = await session.runner.feed_run(source, inputs=inputs, print_callback=session.hear)

            return text, session.printed

    @asynccontextmanager
    async def _session(self, *, fresh: bool) -> AsyncIterator[_Session]:
        session = self._idle.pop() if self._idle and not fresh else await self._opened()
        session.steps += 1
        try:
            yield session
        except BaseException:
            await _closed(session)
            raise

        if session.steps >= _STEPS_PER_SESSION or len(self._idle) >= self.count:
            await _closed(session)
        else:
            self._idle.append(session)

    async def _opened(self) -> _Session:
        pool = await self._opened_pool()
        runner = pool.checkout(
            script_name="code",
            limits={
                "max_memory": MAX_MEMORY,
                "max_feed_duration_secs": MAX_SECONDS,
                "max_recursion_depth": MAX_DEPTH,
                "max_total_sleep_secs": 0,
            },
            # the same at every replay, should a program find a clock or a die
            os_policy={"datetime": datetime(1970, 1, 1, tzinfo=UTC), "random_start": {"seed": 0}},
        )

        return _Session(await runner.__aenter__())

    async def _opened_pool(self) -> Any:
        # a fork of this process must not talk to its parent's workers
        if self._pool is None or self._owner != os.getpid():
            self._owner = os.getpid()
            self._idle = []
            pool = require_monty().AsyncMonty(min_processes=0, request_timeout=_HUNG_SECONDS)
            self._pool = await pool.__aenter__()

        return self._pool


@lru_cache(maxsize=1)
def require_monty() -> Any:
    """Return pydantic-monty.

    Raises:
        MissingExtraError: If it is not installed: nothing runs outside a sandbox.
    """
    try:
        return import_module("pydantic_monty")
    except ImportError as error:
        raise MissingExtraError("workflow", "pydantic-monty") from error


async def _closed(session: _Session) -> None:
    # the worker of a session that was ended by a signal has nothing left to be closed
    monty = require_monty()
    try:
        await session.runner.__aexit__(None, None, None)
    except monty.MontyError:
        return


def _is_of_limits(error: Any) -> bool:
    return isinstance(error.exception(), (MemoryError, RuntimeError))


def _failure(error: Any, program: Program) -> CodeError:
    if not hasattr(error, "traceback"):  # the worker is gone
        return CodeError(str(error).partition("\n")[0][:300], is_of_limits=True)

    frames = error.traceback()
    lines = [program.line(frame.line) for frame in frames]
    line = next((line for line in reversed(lines) if line is not None), None)

    problem = " ".join(error.display("type-msg").split())[:300]
    is_of_limits = isinstance(error.exception(), (MemoryError, TimeoutError))

    return CodeError(problem, line, is_of_limits=is_of_limits)


def _merged(before: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the context after a step: what was assigned to it wins over a bare name."""
    if len(text) > MAX_RESULT_CHARACTERS:
        raise CodeError(f"the context grew over {MAX_RESULT_CHARACTERS:,} characters")
    try:
        after, assigned = parse_json(text)
    except InputError as error:
        raise CodeError(f"left something that is not data: {error.problem}") from None
    if not isinstance(after, dict):
        raise CodeError("replaced context by something that is not a dict")

    for name, value in assigned.items():
        was_set = name in after and (name not in before or after[name] != before[name])
        if not was_set:
            after[name] = value

    try:
        return {name: through_json(value) for name, value in after.items()}
    except (TypeError, ValueError) as error:
        raise CodeError(f"left something that is not data: {error}") from None


WORKERS = Workers()
"""The workers that all agents of this process share."""
