"""Agents travel with their states, and the chart stays."""

import copy
import multiprocessing
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.kit import processes

Load = Callable[..., ModuleType]

CLONES = [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))]
PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)

WORK = """

def look(walker):
    return walker.name, id(chart), bump(walker)


def ways():
    walkers = [bump(Walker(f"w{number}", patience=number % 10)) for number in range(20)]
    for method in sys.argv[1:]:
        with ProcessPoolExecutor(max_workers=1, mp_context=get_context(method)) as pool:
            found = list(pool.map(look, [copy.deepcopy(walker) for walker in walkers]))
        assert [name for name, _, _ in found] == [walker.name for walker in walkers]
        assert len({chart for _, chart, _ in found}) == 1
        for walker, (_, _, moved) in zip(walkers, found, strict=True):
            assert moved.state == walker.state
            assert list(moved.state_history) == list(walker.state_history)


if __name__ == "__main__":
    import sys

    ways()
"""


@pytest.fixture
def guide(load: Load) -> ModuleType:
    """Import the guide's code."""
    return load("copies")


@pytest.mark.slow
def test_agents_of_the_main_program_travel(script: Callable[..., Path]) -> None:
    """Agents of the main program come back complete, and each process has one chart."""
    path = script("copies")
    path.write_text(path.read_text(encoding="utf-8") + WORK, encoding="utf-8")
    methods = [
        method for method in multiprocessing.get_all_start_methods() if method != "forkserver"
    ]
    done = processes.run(
        [sys.executable, path, *methods], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_pickle_protocol_includes_the_state(protocol: int, guide: ModuleType) -> None:
    """State, ticks, thresholds and bounded history survive every protocol."""
    agent = guide.bump(guide.Walker("Ada"))
    agent.ticks_in_state, agent.timeout_threshold, agent.max_history_depth = 4, 9, 7
    twin = pickle.loads(pickle.dumps(agent, protocol))
    assert vars(twin) == vars(agent)
    assert twin.state_history.maxlen == 7


@pytest.mark.parametrize("clone", CLONES)
def test_an_agent_does_not_refer_to_the_chart(
    clone: Callable[[Any], Any], guide: ModuleType
) -> None:
    """Agents and records do not refer to the chart, so guards need not be picklable."""
    agent = guide.bump(guide.Walker("Ada"))
    assert b"Statechart" not in pickle.dumps(agent).replace(b"StatechartMixin", b"")
    assert guide.chart.fire(clone(agent), "bumped", 5) is None
    with pytest.raises((pickle.PicklingError, AttributeError), match="<lambda>"):
        pickle.dumps(guide.chart)
