"""What survives: restarts, errors, and whatever stops an agent in the middle of a cycle."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from prism.programs.thinking import Memory
from prism.statechart import BaseWriter, TextCall, Written
from tests.kit.cognition import FIXED, action, add, letters, limited, thinker, thought

CONFIG = limited(FIXED + 900, FIXED + 1500)


def say(call: TextCall) -> str:
    """Reply by the number of the cycle alone."""
    number, _, state = call.key.partition(":")
    if state == "thinking":
        return thought(f"cycle {number}, m{int(number) % 7}", "executing")

    replies = (
        add(f"m{int(number) % 11}", number * 30),
        action("storage_save", f"s{int(number) % 5}", number),
        action("storage_load", f"s{int(number) % 7}"),
        action("working_memory_remove", f"m{int(number) % 13}"),
    )
    return replies[int(number) // 2 % 4]


async def run(path: Path, cycles: int) -> None:
    """Run an agent on a memory that is opened for it."""
    with Memory.open(path) as memory:
        await thinker(say, memory, CONFIG, count=letters).run(cycles)


@pytest.mark.parametrize("cycles", [30, pytest.param(100, marks=pytest.mark.slow)])
async def test_restarts_end_where_one_long_run_ends(tmp_path: Path, cycles: int) -> None:
    """An agent that is started for every cycle leaves the same memory, to the byte."""
    await run(tmp_path / "long", cycles)
    for _ in range(cycles):
        await run(tmp_path / "short", 1)
    with Memory.read(tmp_path / "long") as one, Memory.read(tmp_path / "short") as other:
        assert one.to_dict() == other.to_dict()
        assert one.stored_count > 2
        assert one.cycle == cycles
    assert (tmp_path / "long").read_bytes() == (tmp_path / "short").read_bytes()


async def test_every_cycle_is_in_the_file(tmp_path: Path) -> None:
    """The memory is committed after each cycle: another process reads it as it is."""
    with Memory.open(tmp_path / "memory.json") as memory:
        agent = thinker(say, memory, CONFIG, count=letters)
        for _ in range(30):
            await agent.cycle()
            with Memory.read(tmp_path / "memory.json") as seen:
                assert seen.to_dict() == memory.to_dict()


class Failing(BaseWriter):
    """Raises an error instead of an answer, from a number of calls on."""

    def __init__(self, error: BaseException, after: int) -> None:
        super().__init__()
        self._error = error
        self._left = after

    async def answer(self, calls: Any) -> list[Written]:
        if self._left == 0:
            raise self._error

        self._left -= 1
        return [Written(text := say(call), "script", call.read(text)) for call in calls]


ERRORS = [ZeroDivisionError("a bug"), KeyboardInterrupt(), asyncio.CancelledError()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.sampled(3)
async def test_an_error_leaves_the_cycle_before(tmp_path: Path, error: BaseException) -> None:
    """What is raised while a reply is awaited leaves the memory, and its file, as it was."""
    await run(tmp_path / "whole.json", 12)
    for after in (0, 1, 4, 9):
        path = tmp_path / f"{after}.json"
        with Memory.open(path) as memory:
            agent = thinker(Failing(error, after), memory, CONFIG, count=letters)
            with pytest.raises(type(error)):
                await agent.run(100)
            held = memory.to_dict()
            assert agent.state == memory.state
        with Memory.read(path) as memory:
            assert memory.to_dict() == held

        # another agent takes the cycle again, as if nothing had been
        await run(path, 12 - held["prism"]["cycle"])
        assert path.read_bytes() == (tmp_path / "whole.json").read_bytes()


async def test_an_error_while_the_memory_changes_is_raised_told_and_saved(
    tmp_path: Path, logger: Any, capture: Any
) -> None:
    """A fault of the program after the reply ends the cycle: what there is is in the file."""

    def count(text: str) -> int:
        if "boom" in text:
            raise ZeroDivisionError("a bug")
        return len(text)

    with Memory.open(tmp_path / "memory.json") as memory:
        memory.state = "executing"
        memory.add("kept", "safe")
        agent = thinker([add("boom", "x")], memory, CONFIG, count=count, logger=logger)
        with pytest.raises(ZeroDivisionError):
            await agent.cycle()
    told = capture.entries[-1]
    assert (told["event"], told["log_level"]) == ("cognition.cycle", "warning")
    assert (told["outcome"], told["reason"]) == ("failed", "ZeroDivisionError: a bug")
    with Memory.read(tmp_path / "memory.json") as memory:
        assert (memory.working, memory.cycle, memory.state) == ({"kept": "safe"}, 1, "executing")


async def test_a_state_that_was_set_from_outside_counts(tmp_path: Path) -> None:
    """The state is the memory's: an agent takes it at the beginning of every cycle."""
    with Memory.open(tmp_path / "memory.json") as memory:
        agent = thinker([thought("on", "executing"), add("a", "1")], memory)
        await agent.cycle()
        memory.state = "thinking"
        assert (await agent.cycle()).state == "thinking"
