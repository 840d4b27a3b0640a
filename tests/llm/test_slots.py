"""Who may ask which host now."""

import asyncio

import pytest

from prism.errors import LeftAloneError
from prism.llm._breaker import FAILURES_TO_OPEN, CircuitBreaker
from prism.llm._host import ModelSettings, OllamaHost
from prism.llm._slots import Lease, Slots

SETTINGS = ModelSettings("tiny", 5, 5, 0.0, 0, think=False, keep_alive="1m")


@pytest.fixture
def hosts() -> tuple[OllamaHost, OllamaHost]:
    """Return two hosts that nobody asks, with short pauses."""
    one, two = (OllamaHost(name, SETTINGS) for name in ("one", "two"))
    for host in (one, two):
        host.breaker = CircuitBreaker(first_pause=0.3)
    return one, two


def leave_alone(host: OllamaHost) -> None:
    """Open a host's breaker."""
    for _ in range(FAILURES_TO_OPEN):
        host.breaker.failed()


async def queue_up(slots: Slots, *wishes: tuple[OllamaHost, ...]) -> list[asyncio.Task[Lease]]:
    """Let everybody wait, in this order, for one of the hosts they name."""
    tasks = []
    for wish in wishes:
        tasks.append(asyncio.create_task(slots.take(wish)))
        await asyncio.sleep(0)
    assert slots.waiting == len(wishes)
    return tasks


async def test_those_who_wish_for_other_hosts_are_served_in_one_order(
    hosts: tuple[OllamaHost, OllamaHost],
) -> None:
    """Who came first gets the next slot, also among those who could use different hosts."""
    one, two = hosts
    slots = Slots(1)
    two.breaker = CircuitBreaker(first_pause=60)
    leave_alone(two)
    lease = await slots.take((one,))
    first, second, third = await queue_up(slots, (one,), (one, two), (one,))
    order = []
    for task in (first, second, third):
        slots.give_back(lease)
        lease = await asyncio.wait_for(task, 5)
        order.append([waiter.done() for waiter in (first, second, third)])
    assert order == [[True, False, False], [True, True, False], [True, True, True]]


async def test_a_probe_given_to_one_who_is_cancelled_goes_to_the_next(
    hosts: tuple[OllamaHost, OllamaHost],
) -> None:
    """A waiter that is cancelled in the very step in which it became the probe leaves it to the next."""
    one, _ = hosts
    slots = Slots(1)
    lease = await slots.take((one,))
    first, second = await queue_up(slots, (one,), (one,))
    leave_alone(one)
    while not one.breaker.allows():
        await asyncio.sleep(0.01)
    slots.give_back(lease)
    first.cancel()
    assert (await asyncio.wait_for(second, 5)).probe
    assert first.cancelled()


async def test_who_waits_is_woken_when_a_pause_is_over(
    hosts: tuple[OllamaHost, OllamaHost],
) -> None:
    """Without any question coming to its end, the first who waits probes a host as soon as it may be."""
    two = hosts[1]
    slots = Slots(1)
    leave_alone(two)
    await slots.take(hosts)
    first, second = await queue_up(slots, hosts, hosts)
    lease = await asyncio.wait_for(first, 5)
    assert (lease.host, lease.probe, second.done()) == (two, True, False)
    two.breaker.failed(probe=True)
    slots.give_back(lease)
    again = await asyncio.wait_for(second, 5)
    assert (again.host, again.probe) == (two, True)


async def test_who_waits_for_a_probe_is_woken_when_it_lasts_too_long(
    hosts: tuple[OllamaHost, OllamaHost],
) -> None:
    """Without the probe coming to its end, those who wait for it fail when they have waited long enough."""
    one, _ = hosts
    slots = Slots(1)
    one.breaker = CircuitBreaker(first_pause=0.01, probe_wait=0.3)
    leave_alone(one)
    while not one.breaker.allows():
        await asyncio.sleep(0.005)
    assert (await slots.take((one,))).probe
    for waiter in await queue_up(slots, (one,), (one,)):
        with pytest.raises(LeftAloneError) as caught:
            await asyncio.wait_for(waiter, 5)
        assert caught.value.attempts == 0
    assert slots.waiting == 0
