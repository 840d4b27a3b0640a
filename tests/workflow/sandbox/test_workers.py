"""Code steps in their sandbox: what they can do, and what comes of those that go wrong."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.errors import FieldValueError, MissingExtraError
from prism.workflow._sandbox import _workers
from prism.workflow._sandbox._programs import CodeError, Program
from prism.workflow._sandbox._workers import Workers, workers_of
from tests.kit.waiting import MOST_SECONDS, until, wait_until
from tests.kit.writers import agent_of

CONTEXT: dict[str, Any] = {"total": 4, "successes": 1, "items": [1, 2], "text": "a\nb"}


async def run(code: str, context: dict[str, Any] = CONTEXT, **given: Any) -> dict[str, Any]:
    return await workers_of(None).run(Program(code), context, given, "k")


SPECIFICATION = """\
success_rate = context.get('successes', 0) / max(context.get('total', 1), 1)
should_pivot = success_rate < 0.3
context['success_rate'] = success_rate
context['should_pivot'] = should_pivot
"""


async def test_what_only_says_again_what_is_given_stays_given() -> None:
    """A name that is assigned what the runner provides is the runner's again in the next step."""
    assert await run("tick = tick\nbalance = balance + 1", {}, tick=3, balance=1) == {"balance": 2}
    assert await run("tick = 4", {"tick": 3}) == {"tick": 4}


async def test_locals_are_all_variables() -> None:
    """`locals()` has the context and all that is given beside it, by names as texts."""
    code = (
        "_known = locals()\nnotes = _known.get('notes') or {}\ntick = _known.get('tick', 0)\n"
        "aim = notes.get('aim', '') if isinstance(notes, dict) else ''\n"
        "due = tick % 4 == 0\nmissing = _known.get('nobody', 7)"
    )
    after = await run(code, {"notes": {"aim": "sell"}}, tick=8)
    assert after == {"notes": {"aim": "sell"}, "aim": "sell", "due": True, "missing": 7}


async def test_nothing_of_a_step_outlives_it() -> None:
    """Functions, helpers and overwritten builtins of one step are unknown to the next."""
    await run("def helper():\n    return 1\nmax = None\n_secret = 7\nimport json")
    for name in ("helper()", "_secret", "json"):
        with pytest.raises(CodeError, match="not defined"):
            await run(f"x = {name}")
    assert await run("x = max(1, 2)", {}) == {"x": 2}


async def test_what_is_printed_is_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    """Printed text is no part of the context, and never reaches stdout."""
    program = Program("for i in range(900):\n    print('ab')\nx = 1")
    assert await workers_of(None).run(program, {}, {}, "k") == {"x": 1}
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("x = 1/0", "line 1 of the code: ZeroDivisionError"),
        ("\n\nx = nobody", "line 3 of the code: NameError: name 'nobody' is not defined"),
        ("x = context['nowhere']", "KeyError"),
        ("context = 3", "replaced context"),
        ("x = {1, 2}", "not JSON serializable"),
        ("x = lambda: 1", "not JSON serializable"),
        ("x = float('nan')", "left a value that is not data"),
        ("x = 'a' * 1100000", "the context grew over 1,000,000 characters"),
        ("x = [2 ** 70]", "left a value that is not data: Integer exceeds 64-bit range"),
        (r"raise ValueError('a\nb')", "line 1 of the code: ValueError: a b"),
    ],
)
async def test_a_step_that_fails_says_where_and_why(code: str, problem: str) -> None:
    """The error has the line of the step's own code, and the exception."""
    with pytest.raises(CodeError, match=problem):
        await run(code)


async def test_a_worker_that_dies_is_replaced() -> None:
    """A step whose worker was killed runs again in another one; nobody notices."""
    workers = Workers(count=1)
    program = Program("x = 1")
    await workers.run(program, {}, {}, "k")
    before = children()
    assert before
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert await workers.run(program, {}, {}, "k") == {"x": 1}


@pytest.mark.slow
async def test_a_worker_that_hangs_is_replaced() -> None:
    """A step whose worker says nothing any more runs again in another one, after some seconds."""
    workers = Workers(count=1)
    program = Program("x = 1")
    others = children()
    await workers.run(program, {}, {}, "k")
    (hung,) = set(children()) - set(others)
    os.kill(hung, signal.SIGSTOP)
    # the signal arrives when the worker's processor gets to it, which may be after an answer
    await until(lambda: ") T " in stat_of(hung))
    began = perf_counter()
    assert await workers.run(program, {}, {}, "k") == {"x": 1}
    assert perf_counter() - began < 60
    await until(lambda: hung not in children())


@pytest.mark.slow
async def test_a_thousand_agents_share_a_few_workers() -> None:
    """However many steps are asked for at once, the limit on processes holds."""
    workers = Workers(count=2)
    before = len(children())
    program = Program("x = n + 1")
    found = await asyncio.gather(
        *(workers.run(program, {"n": number}, {}, "k") for number in range(1000))
    )
    assert [context["x"] for context in found] == list(range(1, 1001))
    assert len(children()) - before <= 2


async def test_code_that_takes_too_long_fails_in_the_same_words_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing of how long it took, or where it was, makes the log of a replay another one."""
    monkeypatch.setattr(_workers, "MAX_SECONDS", 0.05)
    workers, endless = Workers(count=1), Program("x = 0\nwhile True:\n    x = 1\n    x = 2")
    for _ in range(3):
        with pytest.raises(CodeError, match=r"^TimeoutError: the code takes more than 0\.05 s$"):
            await workers.run(endless, {}, {}, "k")
    with pytest.raises(CodeError, match=r"TimeoutError: mine"):
        await workers.run(Program("raise TimeoutError('mine')"), {}, {}, "k")


async def test_who_names_a_number_of_workers_shares_them() -> None:
    """Agents of one number have the same, those that name none have the process's own two."""
    assert workers_of(None) is workers_of(None)
    assert workers_of(3) is workers_of(3)
    agent = agent_of("steps: [{name: s, code: 'x = 1'}]\n", workers=3)
    await agent.turn()
    assert agent.context == {"x": 1}
    with pytest.raises(FieldValueError, match="workers must be 1 or more, got 0"):
        agent_of("steps: [{name: s, code: 'x = 1'}]\n", workers=0)


async def test_a_cancelled_step_lets_its_worker_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for an endless step can stop waiting; the next step does not wait for its end."""
    monkeypatch.setattr(_workers, "MAX_SECONDS", 10 * MOST_SECONDS)
    workers = Workers(count=1)
    others = children()
    await workers.run(Program("x = 1"), {}, {}, "k")
    (worker,) = set(children()) - set(others)
    before = ticks_of(worker)
    endless = asyncio.create_task(workers.run(Program("while True:\n    x = 1"), {}, {}, "k"))
    waiting = asyncio.create_task(workers.run(Program("x = 3"), {}, {}, "k"))
    await until(lambda: ticks_of(worker) > before)
    endless.cancel()
    waiting.cancel()
    for task in (endless, waiting):
        with pytest.raises(asyncio.CancelledError):
            await task
    async with asyncio.timeout(MOST_SECONDS):
        assert (await workers.run(Program("x = 2"), {}, {}, "k")) == {"x": 2}


async def test_memory_that_earlier_steps_used_is_no_fault_of_a_step() -> None:
    """A step that needs most of the memory succeeds after a hundred that left theirs behind."""
    large = Program("x = len('a' * 20_000_000)")
    for _ in range(5):
        assert await workers_of(None).run(large, {}, {}, "k") == {"x": 20_000_000}


def test_workers_serve_one_event_loop_after_another() -> None:
    """Runs that each have an event loop of their own share the workers of the process."""
    for number in range(3):
        assert asyncio.run(run(f"x = {number}", {})) == {"x": number}


_ENDING = """
import asyncio, sys
from pathlib import Path
from prism.workflow._sandbox._programs import Program
from prism.workflow._sandbox._workers import workers_of

async def run():
    program = Program("x = 1")
    await asyncio.gather(*(workers_of(None).run(program, {}, {}, "k") for _ in range(3)))
    endless = workers_of(None).run(Program("while True: pass"), {}, {}, "k")
    if "timeout" in sys.argv:
        async with asyncio.timeout(0.1):
            await endless
    endless.close()
    print(*(path.read_text() for path in Path("/proc/self/task").glob("*/children")))

asyncio.run(run())
"""


@pytest.mark.parametrize(
    "number",
    [pytest.param(4, marks=pytest.mark.slow), pytest.param(300, marks=pytest.mark.long)],
)
def test_processes_that_ran_code_end_well(number: int) -> None:
    """The interpreter ends with status 0, and no worker is left; nothing aborts at exit."""
    for _ in range(number):
        command = [sys.executable, "-c", _ENDING]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")
        pids = ended.stdout.split()
        assert pids
        wait_until(lambda pids=pids: not any(map(is_worker, pids)))


@pytest.mark.slow
def test_an_endless_step_does_not_keep_a_process() -> None:
    """A process whose step is cancelled ends at once, long before the step's time is over."""
    command = [sys.executable, "-c", _ENDING, "timeout"]
    began = perf_counter()
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr.endswith("TimeoutError\n")
    assert perf_counter() - began < 30


async def test_without_the_sandbox_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pydantic-monty is missing a step is an error that says how to install it."""
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    _workers.require_monty.cache_clear()
    try:
        with pytest.raises(MissingExtraError, match=r"prism-statecharts\[workflow\]"):
            await Workers().run(Program("x = 1"), {}, {}, "k")
    finally:
        monkeypatch.undo()
        _workers.require_monty.cache_clear()


def children() -> list[int]:
    """Return the process ids of the workers that this process has started, in any thread."""
    threads = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    found = [pid for thread in threads for pid in thread.read_text(encoding="ascii").split()]
    return [int(pid) for pid in found if is_worker(pid)]


def stat_of(pid: int) -> str:
    """Return what the system says of a process."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii")


def ticks_of(pid: int) -> int:
    """Return how long a process has computed, in ticks of the system."""
    return int(stat_of(pid).rpartition(")")[2].split()[11])


def is_worker(pid: str) -> bool:
    """Return whether a process is a worker that is there still."""
    try:
        return "monty" in Path(f"/proc/{pid}/comm").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
