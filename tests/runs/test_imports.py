"""What a program pays that imports the rooms of runs: nothing of models, until one is asked."""

import subprocess
import sys

import pytest

HEAVY = {"httpx", "ollama", "openai", "pydantic", "polars", "numpy"}


def loaded_by(code: str) -> set[str]:
    """Return the modules that code loads in an interpreter of its own."""
    line = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]
    return set(subprocess.run(line, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("room", ["runs", "runlog", "llm"])
@pytest.mark.sampled(3)
def test_a_room_loads_nothing_before_a_name_is_used(room: str) -> None:
    """Importing a room loads no other module of prism but what its names are found by."""
    loaded = loaded_by(f"import prism.{room}")
    assert {name for name in loaded if name.split(".")[0] == "prism"} == {
        "prism",
        "prism._lazy",
        "prism._version",
        f"prism.{room}",
    }


def test_a_run_without_a_model_loads_nothing_that_asks_one() -> None:
    """A world runs and is kept without the packages that speak to servers and read documents."""
    loaded = loaded_by(
        "import prism.runs, prism.worlds\n"
        "from prism.examples import Rumour\n"
        "prism.worlds.Run(Rumour, 20, rounds=1).run()"
    )
    assert "prism.worlds.loop" in loaded
    unused = {"structlog", "prism.llm.pool", "prism.runs.makers", "prism.social"}
    assert not loaded & (HEAVY | unused)


@pytest.mark.slow
def test_structlog_knows_the_round_as_soon_as_it_is_imported() -> None:
    """A world that imports structlog in its second round finds round and tick in its context."""
    loaded_by(
        "from prism.runlog import SimulatedClock\n"
        "clock = SimulatedClock()\n"
        "with clock.bound():\n"
        "    clock.begin_round(1)\n"
        "    from structlog.contextvars import get_contextvars\n"
        "    clock.begin_round(2)\n"
        "    assert get_contextvars() == {'round': 2, 'tick': 0}\n"
        "assert get_contextvars() == {}"
    )
