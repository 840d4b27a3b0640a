"""Who may ask which host now."""

import asyncio
from datetime import UTC, datetime

import pytest

from prism.errors import CircuitOpenError
from prism.llm._host import Host
from prism.llm._ollama import OLLAMA
from prism.llm._settings import filled_in
from prism.reasoner import Cost
from prism.reasoner._questions import ASKED_AT
from prism.reasoner._slots import (
    FAILURES_TO_OPEN,
    CircuitBreaker,
    Lease,
    Slots,
    Throttle,
)
from prism.runlog._writer import Moment
from tests.kit.clocks import Clock

SETTINGS = filled_in({"timeout": 5, "load_timeout": 5, "concurrency": 1})


@pytest.fixture
def hosts() -> tuple[Host, Host]:
    """Return two hosts that nobody asks, with short pauses."""
    one, two = (Host(name, "tiny", SETTINGS, OLLAMA) for name in ("one", "two"))
    for host in (one, two):
        host.breaker = CircuitBreaker(first_pause=0.1)
    return one, two


def open_circuit(host: Host) -> None:
    """Open a host's breaker."""
    for _ in range(FAILURES_TO_OPEN):
        host.breaker.failed()


async def test_earlier_ticks_of_a_run_are_served_first_in_the_places_of_that_run(
    hosts: tuple[Host, Host],
) -> None:
    """A run's earlier tick takes the place of its later one; another run's place stays its own."""
    slots, order = Slots(), []
    lease = await slots.take(hosts[:1], Cost())

    async def wait_for(run: str, tick: float) -> None:
        ASKED_AT.set((run, Moment(datetime.fromtimestamp(tick, UTC))))
        taken = await slots.take(hosts[:1], Cost())
        order.append((run, tick))
        slots.give_back(taken)

    asked = [("a", 3.0), ("b", 9.0), ("a", 1.0), ("b", 9.5), ("a", 2.0), ("b", 8.0)]
    waiters = []
    for run, tick in asked:
        waiters.append(asyncio.create_task(wait_for(run, tick)))
        await asyncio.sleep(0)
    slots.give_back(lease)
    await asyncio.wait_for(asyncio.gather(*waiters), 30)
    assert order == [("a", 1.0), ("b", 8.0), ("a", 2.0), ("b", 9.0), ("a", 3.0), ("b", 9.5)]


class Ticking:
    """A clock on which every reading is a moment later than the one before."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.time = 0.0

    def __call__(self) -> float:
        """Return the time, and let a moment pass."""
        self.time += self.step
        return self.time


async def served(taking: asyncio.Task[Lease], loop_clock: Clock) -> asyncio.Task[Lease]:
    """Let the time of every alarm come, until somebody is served or told that there is nothing."""
    for _ in range(100):
        if taking.done():
            break
        loop_clock.time += 1
        await asyncio.sleep(0)
    assert taking.done()
    return taking


@pytest.mark.parametrize("moments", range(12))
async def test_a_hold_may_end_at_any_moment_while_somebody_begins_to_wait(
    hosts: tuple[Host, Host], moments: int, loop_clock: Clock
) -> None:
    """Who finds the host on hold is served, though the hold has ended before he has queued."""
    one, _ = hosts
    clock = Ticking(0.01)
    one.traffic.throttle = Throttle(clock, first_hold=0)
    one.traffic.throttle.hold(moments * clock.step)
    taking = asyncio.create_task(Slots().take((one,), Cost()))
    assert (await served(taking, loop_clock)).result().host is one


@pytest.mark.parametrize("moments", range(12))
async def test_patience_may_end_at_any_moment_while_somebody_begins_to_wait(
    hosts: tuple[Host, Host], moments: int, loop_clock: Clock
) -> None:
    """Who finds that waiting is worth while is told, or served, though it ends as he queues."""
    one, _ = hosts
    clock = Ticking(0.01)
    patience = moments * clock.step
    one.breaker = CircuitBreaker(clock, first_pause=2 * patience + clock.step, patience=patience)
    open_circuit(one)
    taking = asyncio.create_task(Slots().take((one,), Cost()))
    told = (await served(taking, loop_clock)).exception()
    assert isinstance(told, CircuitOpenError) or taking.result().host is one
