"""Code steps run in worker processes of pydantic-monty; the only module that imports it.

A worker is a small interpreter of its own, without files, network or clock, with limits on memory,
time and depth. One that dies or hangs is replaced. All agents of a process share a few workers.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from threading import Lock
from typing import Any
from weakref import finalize

from prism._lazy import import_extra
from prism.errors import FieldValueError, InputError
from prism.files import parse_json
from prism.workflow._sandbox._programs import MAX_RESULT_CHARACTERS, CodeError, Program
from prism.workflow._threads import outcome_of, settle
from prism.workflow._variables import through_json

MAX_SECONDS = 1.0
"""How long one step may compute."""

_OVERTIME = "TimeoutError: feed time limit exceeded"
"""What monty says of a step that computes longer."""

MAX_MEMORY = 32 << 20
"""Bytes that one step may use."""

MAX_DEPTH = 100

_HUNG_SECONDS = 5.0
"""After so long a worker that says nothing is killed."""

_STEPS_PER_SESSION = 200
"""A session is renewed after so many steps; it counts some of what they did for all its life."""


class _Job:
    """One step on its way through a thread.

    Args:
        source: The program.
        inputs: What the program is given.

    Attributes:
        outcome: The text that it leaves behind.
    """

    def __init__(self, source: str, inputs: dict[str, Any]) -> None:
        self.source = source
        self.inputs = inputs
        self.outcome: Future[str] = Future()
        self._is_cancelled = False
        self._pid: int | None = None
        self._lock = Lock()

    @contextmanager
    def at_work(self, pid: int | None) -> Iterator[None]:
        """Let `cancel` end the worker inside; outside it the process may be someone else's."""
        with self._lock:
            if self._is_cancelled:
                raise CancelledError
            self._pid = pid
        try:
            yield
        finally:
            with self._lock:
                self._pid = None

    def cancel(self) -> None:
        """End the step, wherever it is: nobody waits for it any more."""
        with self._lock:
            self._is_cancelled = True
            if self._pid is not None:
                # a thread in the middle of a step listens to nothing but the end of its worker
                with suppress(ProcessLookupError):
                    os.kill(self._pid, getattr(signal, "SIGKILL", signal.SIGTERM))


_Session = tuple[Any, int]
"""A worker that is ours for some steps, and how many those were."""


class _Crew:
    """The threads and the workers of one process.

    The asynchronous class of pydantic-monty has a runtime whose threads outlive the interpreter,
    which then aborts. The threads here are ours, and the interpreter waits for them.

    Args:
        count: The most steps that are at work at once.
    """

    def __init__(self, count: int) -> None:
        self.owner = os.getpid()
        self.threads = ThreadPoolExecutor(count, thread_name_prefix="prism-code")
        self._idle: list[_Session] = []
        # a session keeps its process: with fewer of them than threads a thread would wait for ever
        self._pool = require_monty().Monty(
            min_processes=0, max_processes=count, request_timeout=_HUNG_SECONDS
        )
        self._pool.__enter__()
        finalize(self, _dismiss, self.owner, self.threads, self._idle, self._pool)

    def put(self, job: _Job) -> None:
        """Have a step run as soon as a thread is free."""
        self.threads.submit(settle, job.outcome, partial(self._run, job))

    def _run(self, job: _Job) -> str:
        """Run a step in a worker, and again in a fresh one if that is in doubt."""
        monty, session = require_monty(), None
        with suppress(IndexError):  # another thread may take the last one at any time
            session = self._idle.pop()
        try:
            return self._fed(job, session or self._opened())
        except monty.MontyRuntimeError as error:
            if not isinstance(error.exception(), (MemoryError, RuntimeError)):
                raise
        except monty.MontyError:
            pass

        # earlier steps used up some of that session's memory, or its worker was killed: what a
        # step can do must not depend on who came before it
        return self._fed(job, self._opened())

    def _fed(self, job: _Job, session: _Session) -> str:
        runner, steps = session
        try:
            with job.at_work(runner.worker_pid):
                # what it prints is dropped as it comes: it can print without end
                text: str = runner.feed_run(
                    job.source, inputs=job.inputs, print_callback=lambda *_: None
                )
        except BaseException:
            _close(runner)
            raise

        if steps + 1 < _STEPS_PER_SESSION:
            self._idle.append((runner, steps + 1))
        else:
            _close(runner)

        return text

    def _opened(self) -> _Session:
        runner = self._pool.checkout(
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
        runner.__enter__()

        return runner, 0


def _close(runner: Any) -> None:
    # the worker of a session that was ended by a signal has nothing left to be closed
    with suppress(require_monty().MontyError):
        runner.__exit__(None, None, None)


def _dismiss(owner: int, threads: ThreadPoolExecutor, idle: list[_Session], pool: Any) -> None:
    """End the threads and workers of a crew, at the latest when the interpreter ends."""
    if owner != os.getpid():  # a fork leaves its parent's alone
        return

    threads.shutdown(wait=False, cancel_futures=True)
    for runner, _ in idle:
        _close(runner)
    pool.__exit__(None, None, None)


class Workers:
    """The workers of a process, shared by all its agents.

    Args:
        count: The most steps that are at work at once.
    """

    def __init__(self, count: int = 2) -> None:
        self._count = count
        self._crew: _Crew | None = None
        self._lock = Lock()

    async def run(
        self, program: Program, context: Mapping[str, Any], given: Mapping[str, Any], key: str
    ) -> dict[str, Any]:
        """Run a step's code on a copy of the context, and return the context after it.

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
        job = _Job(source, {"context": dict(context), "given": dict(given)})
        self._ours().put(job)
        try:
            text = await outcome_of(job.outcome)
        except asyncio.CancelledError:
            job.cancel()
            raise
        except monty.MontyError as error:
            raise _failure(error, program) from None

        return _merged(context, given, text)

    def _ours(self) -> _Crew:
        # runs in several threads share one crew; a fork must not talk to its parent's workers
        with self._lock:
            if self._crew is None or self._crew.owner != os.getpid():
                self._crew = _Crew(self._count)

            return self._crew


@lru_cache(maxsize=1)
def require_monty() -> Any:
    """Return pydantic-monty.

    Raises:
        MissingExtraError: If it is not installed: nothing runs outside a sandbox.
    """
    return import_extra("pydantic_monty", "workflow")


def _failure(error: Any, program: Program) -> CodeError:
    if not hasattr(error, "traceback"):  # the worker is gone
        return CodeError(str(error).partition("\n")[0][:300], is_of_limits=True)

    frames = error.traceback()
    lines = [program.line(frame.line) for frame in frames]
    line = next((line for line in reversed(lines) if line is not None), None)

    problem = " ".join(error.display("type-msg").split())[:300]
    is_of_limits = isinstance(error.exception(), (MemoryError, TimeoutError))
    if problem.startswith(_OVERTIME):
        # monty says to the nanosecond how long it took, and where: no replay repeats that
        problem, line = f"TimeoutError: the code takes more than {MAX_SECONDS:g} s", None

    return CodeError(problem, line, is_of_limits=is_of_limits)


def _merged(before: Mapping[str, Any], given: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the context after a step; what was assigned to it takes precedence over bare names.

    A bare name that only repeats what the agent or the host provides does not become part of the
    context, where its value would never change again.
    """
    after, assigned = _left_in(text)
    for name, value in assigned.items():
        was_set = name in after and (name not in before or after[name] != before[name])
        is_given = name in given and given[name] == value
        if not was_set and not is_given:
            after[name] = value

    try:
        return {name: through_json(value) for name, value in after.items()}
    except (TypeError, ValueError) as error:
        raise CodeError(f"left a value that is not data: {error}") from None


def _left_in(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the context after a step, and the bare names that the step has assigned."""
    if len(text) > MAX_RESULT_CHARACTERS:
        raise CodeError(f"the context grew over {MAX_RESULT_CHARACTERS:,} characters")
    try:
        after, assigned = parse_json(text)
    except InputError as error:
        raise CodeError(f"left a value that is not data: {error.problem}") from None
    if not isinstance(after, dict):
        raise CodeError("replaced context with something other than a dict")

    return after, assigned


@cache
def workers_of(count: int | None) -> Workers:
    """Return the workers that are shared by all agents that want this number; None for 2.

    Raises:
        FieldValueError: If the number is less than 1.
    """
    if count is not None and count < 1:
        raise FieldValueError(f"workers must be 1 or more, got {count}")

    return Workers() if count is None else Workers(count)
