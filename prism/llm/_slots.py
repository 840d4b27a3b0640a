"""Who may ask which host now: so many questions at once on each, first come, first served."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from prism.errors import CircuitOpenError, LLMError
from prism.llm._host import OllamaHost
from prism.statechart.reasoner._cost import Cost

Hosts = tuple[OllamaHost, ...]


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to put one question to a host.

    Args:
        host: The host.
        probe: Whether the question shows if a failing host works again.
    """

    host: OllamaHost
    probe: bool


@dataclass(frozen=True, slots=True)
class _Waiter:
    number: int
    avoid: Collection[OllamaHost]
    cost: Cost


Queue = OrderedDict[asyncio.Future[Lease | None], _Waiter]


class Slots:
    """Hands out leases, each of the host with the fewest questions under way.

    Those who wait do so for a question under way on a host that works, or that shows whether it
    does, or for the end of a busy host's hold, and are given the slot itself then; so no newcomer
    gets it before them, and each waits for something that will happen.

    Args:
        limit: Questions under way at once on each host.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._numbers = count()
        self._queues: dict[Hosts, Queue] = {}
        self._stalled: set[Hosts] = set()
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many wait for a slot."""
        return sum(map(len, self._queues.values()))

    async def take(self, hosts: Hosts, cost: Cost, avoid: Collection[OllamaHost] = ()) -> Lease:
        """Take a slot, waiting for one if all are in use.

        Args:
            hosts: Where the question may be put.
            cost: Hears that the question has its slot, or that nobody is served.
            avoid: Hosts not to take while there is room elsewhere.

        Raises:
            CircuitOpenError: If the circuit breakers of all hosts are open.
            BudgetSpentError: If a budget does not allow the question any more.
        """
        while (lease := self._free(hosts, avoid)) is None:
            if all_fail_fast(hosts):
                raise circuit_open(hosts)

            lease = await self._turn(hosts, cost, avoid)
            if lease is not None:
                break

        try:
            cost.admitted()
        except BaseException:
            self._return_unused(lease)
            raise

        return lease

    def give_back(self, lease: Lease) -> None:
        """Return a slot, after the breaker of its host has noted the outcome."""
        lease.host.in_flight -= 1
        if self._queues:
            self._serve_all()

    def _return_unused(self, lease: Lease) -> None:
        lease.host.breaker.abandoned(probe=lease.probe)
        self.give_back(lease)

    def _free(self, hosts: Hosts, avoid: Collection[OllamaHost]) -> Lease | None:
        free = [
            host
            for host in hosts
            if host.in_flight < self._limit
            and host.throttle.allows(host.in_flight)
            and host.breaker.allows()
        ]
        if not free:
            return None

        host = min(free, key=lambda host: (host in avoid, host.in_flight))
        host.in_flight += 1

        return Lease(host, host.breaker.asked())

    async def _turn(self, hosts: Hosts, cost: Cost, avoid: Collection[OllamaHost]) -> Lease | None:
        """Wait in the queue; None means that there is nothing to wait for any more."""
        turn: asyncio.Future[Lease | None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(hosts, Queue())[turn] = _Waiter(next(self._numbers), avoid, cost)
        self._note_stall(hosts)
        if hosts in self._stalled:
            cost.stalled(True)

        self._set_alarm()

        try:
            return await turn
        except BaseException:
            self._leave(hosts, turn)
            raise

    def _leave(self, hosts: Hosts, turn: asyncio.Future[Lease | None]) -> None:
        """Leave the queue, and return the slot if one was assigned meanwhile."""
        queue = self._queues.get(hosts, Queue())
        if queue.pop(turn, None) is not None and not queue:
            self._drop(hosts)

        lease = turn.result() if turn.done() and not turn.cancelled() else None
        if lease is not None:
            self._return_unused(lease)

    def _drop(self, hosts: Hosts) -> None:
        del self._queues[hosts]
        self._stalled.discard(hosts)

    def _first_number(self, hosts: Hosts) -> int:
        return next(iter(self._queues[hosts].values())).number

    def _serve_all(self) -> None:
        for hosts in sorted(self._queues, key=self._first_number):
            self._serve(hosts)

        for hosts in self._queues:
            self._note_stall(hosts)

        self._set_alarm()

    def _serve(self, hosts: Hosts) -> None:
        """Assign free slots to those who wait; wake all if there is nothing to wait for."""
        queue = self._queues[hosts]
        while queue:
            turn, waiter = next(iter(queue.items()))
            lease = None if turn.done() else self._free(hosts, waiter.avoid)
            if lease is None and not turn.done() and not all_fail_fast(hosts):
                return

            del queue[turn]
            if not turn.done():
                turn.set_result(lease)

        self._drop(hosts)

    def _note_stall(self, hosts: Hosts) -> None:
        """Notify those who wait when their hosts stop serving anybody, and when they go on."""
        is_served = any(host.in_flight and not host.breaker.is_open() for host in hosts)
        if is_served != (hosts in self._stalled):
            return

        if is_served:
            self._stalled.discard(hosts)
        else:
            self._stalled.add(hosts)

        for turn, waiter in self._queues[hosts].items():
            # one that is done was cancelled, and its clock cannot be set any more
            if not turn.done():
                waiter.cost.stalled(not is_served)

    def _set_alarm(self) -> None:
        """Serve again when a pause, a hold or the patience ends, as nothing else would do it."""
        if self._alarm is not None:
            self._alarm.cancel()

        waiting_for = (host for hosts in self._queues for host in hosts)
        waits = (
            wait
            for host in waiting_for
            for wait in (host.breaker.seconds_left(), host.throttle.seconds_left())
        )
        soonest = min((wait for wait in waits if wait > 0), default=None)
        self._alarm = (
            None
            if soonest is None
            else asyncio.get_running_loop().call_later(soonest, self._serve_all)
        )


class OneLoop:
    """Refuses an event loop while another one is using the same client.

    Connections and queues belong to their loop: two loops that share them wait for each other
    without end.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inside: set[object] = set()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Claim the running loop while something is under way in it.

        Raises:
            LLMError: If something is under way in another loop.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._inside and self._loop is not None and not self._loop.is_closed():
                raise LLMError(
                    "the client is in use by another event loop: "
                    "make one client for each event loop"
                )

            self._loop, self._inside = loop, set()

        inside, token = self._inside, object()
        inside.add(token)

        try:
            yield
        finally:
            inside.discard(token)


def all_fail_fast(hosts: Hosts) -> bool:
    """Return True if no host can be asked, and none is worth waiting for."""
    return all(host.breaker.fails_fast() for host in hosts)


def circuit_open(hosts: Hosts) -> CircuitOpenError:
    """Return the error that says so."""
    wait = min(max(host.breaker.seconds_left(), host.throttle.seconds_left()) for host in hosts)
    why = "; ".join(host.trouble for host in hosts)
    error = CircuitOpenError(f"circuit open for {wait:.1f} s after repeated failures: {why}")
    error.host = hosts[0].address if len(hosts) == 1 else None

    return error
