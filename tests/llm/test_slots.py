"""Who may ask which host now."""

import asyncio
from datetime import UTC, datetime

import pytest

from prism.errors import BudgetSpentError, CircuitOpenError
from prism.llm._host import Host
from prism.llm._ollama import OLLAMA
from prism.llm._settings import filled_in
from prism.runlog._writer import Moment
from prism.statechart.reasoner import Cost
from prism.statechart.reasoner._questions import ASKED_AT
from prism.statechart.reasoner._slots import (
    FAILURES_TO_OPEN,
    CircuitBreaker,
    Lease,
    Slots,
    Throttle,
)
from prism.statechart.reasoner._spending import Allowance
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


async def queue_up(slots: Slots, *wishes: tuple[Host, ...]) -> list[asyncio.Task[Lease]]:
    """Let everybody wait, in this order, for one of the hosts they name."""
    tasks = []
    for wish in wishes:
        tasks.append(asyncio.create_task(slots.take(wish, Cost())))
        await asyncio.sleep(0)
    assert slots.waiting == len(wishes)
    return tasks


async def test_waiters_for_different_hosts_are_served_in_one_order(
    hosts: tuple[Host, Host],
) -> None:
    """Who came first gets the next slot, also among those who could use different hosts."""
    one, two = hosts
    slots = Slots()
    two.breaker = CircuitBreaker(first_pause=60)
    open_circuit(two)
    lease = await slots.take((one,), Cost())
    first, second, third = await queue_up(slots, (one,), (one, two), (one,))
    order = []
    for task in (first, second, third):
        slots.give_back(lease)
        lease = await asyncio.wait_for(task, 30)
        order.append([waiter.done() for waiter in (first, second, third)])
    assert order == [[True, False, False], [True, True, False], [True, True, True]]


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


async def test_the_probe_of_a_cancelled_waiter_goes_to_the_next(
    hosts: tuple[Host, Host], clock: Clock
) -> None:
    """A waiter that is cancelled as it becomes the probe leaves that to the next."""
    one, _ = hosts
    slots = Slots()
    lease = await slots.take((one,), Cost())
    first, second = await queue_up(slots, (one,), (one,))
    one.breaker = CircuitBreaker(clock, first_pause=1)
    open_circuit(one)
    clock.time += 1
    slots.give_back(lease)
    first.cancel()
    assert (await asyncio.wait_for(second, 30)).probe
    assert first.cancelled()


async def test_a_waiter_is_woken_when_a_pause_is_over(
    hosts: tuple[Host, Host],
    loop_clock: Clock,
) -> None:
    """Although no question ends, the first who waits probes a host as soon as it may."""
    two = hosts[1]
    slots = Slots()
    two.breaker = CircuitBreaker(first_pause=5)
    open_circuit(two)
    await slots.take(hosts, Cost())
    first, second = await queue_up(slots, hosts, hosts)
    loop_clock.time += 5
    lease = await first
    assert (lease.host, lease.probe, second.done()) == (two, True, False)
    two.breaker.failed(probe=True)
    slots.give_back(lease)
    loop_clock.time += 10
    again = await second
    assert (again.host, again.probe) == (two, True)


async def test_a_probe_that_lasts_too_long_fails_those_who_wait(
    hosts: tuple[Host, Host],
    loop_clock: Clock,
) -> None:
    """Although the probe does not end, those who wait for it fail after a while."""
    one, _ = hosts
    slots = Slots()
    one.breaker = CircuitBreaker(first_pause=5, probe_wait=10)
    open_circuit(one)
    loop_clock.time += 5
    assert (await slots.take((one,), Cost())).probe
    waiters = await queue_up(slots, (one,), (one,))
    loop_clock.time += 10
    for waiter in waiters:
        with pytest.raises(CircuitOpenError):
            await waiter
    assert slots.waiting == 0


async def test_the_slot_of_a_cancelled_waiter_goes_to_the_next(
    hosts: tuple[Host, Host],
) -> None:
    """A waiter that is cancelled in the very step in which it got its slot hands the slot on."""
    slots = Slots()
    lease = await slots.take(hosts[:1], Cost())
    first, second = await queue_up(slots, hosts[:1], hosts[:1])
    slots.give_back(lease)
    first.cancel()
    slots.give_back(await asyncio.wait_for(second, 30))
    assert first.cancelled()
    assert (slots.waiting, hosts[0].traffic.in_flight) == (0, 0)


async def test_a_slot_that_the_first_waiter_cannot_use_goes_to_the_next(
    hosts: tuple[Host, Host],
) -> None:
    """A slot that the first in the queue cannot use, as it waits for another host, goes on."""
    slots, (one, other) = Slots(), hosts
    leases = [await slots.take((one,), Cost()), await slots.take((other,), Cost())]
    picky, anywhere = await queue_up(slots, (one,), (one, other))
    one.breaker = CircuitBreaker(first_pause=60)
    open_circuit(one)
    slots.give_back(leases[1])
    assert (await asyncio.wait_for(anywhere, 30)).host is other
    slots.give_back(leases[0])
    with pytest.raises(CircuitOpenError):
        await asyncio.wait_for(picky, 30)


class Recorder(Allowance):
    """Keeps what slots say of a question, and may refuse it."""

    def __init__(self, refuses: bool = False) -> None:
        super().__init__()
        self.said: list[object] = []
        self.refuses = refuses

    def admitted(self) -> None:
        self.said.append("admitted")
        if self.refuses:
            raise BudgetSpentError("budget spent: 1 calls")

    def stalled(self, is_stalled: bool) -> None:
        self.said.append(is_stalled)


async def test_a_waiter_hears_when_nobody_is_served(hosts: tuple[Host, Host], clock: Clock) -> None:
    """Those who wait hear that no question is under way any more, and that one is again."""
    (one, _), slots = hosts, Slots()
    one.traffic.throttle = Throttle(clock)
    first, second, third = Recorder(), Recorder(), Recorder()
    lease = await slots.take((one,), Cost(allowance=first))
    tasks = [
        asyncio.create_task(slots.take((one,), Cost(allowance=limits)))
        for limits in (second, third)
    ]
    await asyncio.sleep(0)
    assert (first.said, second.said) == (["admitted"], [])
    one.traffic.throttle.hold(5)
    slots.give_back(lease)
    assert second.said == third.said == [True]
    clock.time += 6
    slots.give_back(await slots.take((one,), Cost()))
    slots.give_back(await tasks[0])
    slots.give_back(await tasks[1])
    assert second.said == [True, "admitted"]
    assert third.said == [True, False, "admitted"]


async def test_a_probe_serves_nobody(hosts: tuple[Host, Host], clock: Clock) -> None:
    """Those who wait while the only question under way is a probe are not being served."""
    (one, _), slots = hosts, Slots()
    one.breaker = CircuitBreaker(clock, first_pause=1, patience=60)
    open_circuit(one)
    clock.time += 1
    lease = await slots.take((one,), Cost())
    waiting = Recorder()
    task = asyncio.create_task(slots.take((one,), Cost(allowance=waiting)))
    await asyncio.sleep(0)
    assert set(waiting.said) == {True}
    one.breaker.succeeded()
    slots.give_back(lease)
    await task
    assert waiting.said[-1] == "admitted"


async def test_a_refused_question_gives_its_slot_back(
    hosts: tuple[Host, Host],
) -> None:
    """A question that the budget does not allow any more leaves its slot to the next."""
    (one, _), slots = hosts, Slots()
    lease = await slots.take((one,), Cost())
    costs = [Cost(allowance=Recorder(refuses=True)), Cost()]
    refused, other = (asyncio.create_task(slots.take((one,), cost)) for cost in costs)
    await asyncio.sleep(0)
    slots.give_back(lease)
    with pytest.raises(BudgetSpentError):
        await refused
    assert (await asyncio.wait_for(other, 30)).host is one
    assert one.traffic.in_flight == 1


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
