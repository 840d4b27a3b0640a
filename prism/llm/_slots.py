"""Who may ask which host now: so many questions at once on each, first come, first served."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from prism.errors import CircuitOpenError, FieldValueError, LLMError
from prism.llm._addresses import server_key, shown_address
from prism.llm._health import Traffic
from prism.llm._host import ModelHost
from prism.statechart.reasoner._cost import Cost

Hosts = tuple[ModelHost, ...]


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to put one question to a host.

    Args:
        host: The host.
        probe: Whether the question shows if a failing host works again.
    """

    host: ModelHost
    probe: bool


@dataclass(frozen=True, slots=True)
class _Waiter:
    number: int
    avoid: Collection[ModelHost]
    cost: Cost


class _Wish(NamedTuple):
    """What some wait for.

    Args:
        hosts: Any of these.
        urgent: Whether before all others, in spite of doubts about a host.
    """

    hosts: Hosts
    urgent: bool


Queue = OrderedDict[asyncio.Future[Lease | None], _Waiter]
Spares = OrderedDict[asyncio.Future[Lease], tuple[Hosts, Collection[ModelHost]]]


class Slots:
    """Hands out slots on servers: to one pool, or to all that are given the same `Slots`.

    A server has one limit on the questions under way at once, whatever models it is asked for, in
    whatever dialect, and by how many pools::

        slots = Slots()
        small = OllamaPool(["http://127.0.0.1:11434"], "llama3.2", slots=slots)
        large = OllamaPool(["http://127.0.0.1:11434"], "llama3.3", slots=slots)

    Every question gets a lease of the host with the fewest under way.

    Those who wait do so for a question under way on a host that works, or that shows whether it
    does, or for the end of a busy host's hold, and are given the slot itself then; so no newcomer
    gets it before them, and each waits for something that will happen.

    A question that a host gave no usable answer to goes on taking up room there until another host
    has shown whose fault it was: a host that fails fast would draw all questions otherwise. Those
    that are asked elsewhere for it come first and look at slots alone, as the room they wait for
    may be waiting for them.
    """

    def __init__(self) -> None:
        self._traffic: dict[object, Traffic] = {}
        self._loop = OneLoop()
        self._numbers = count()
        self._queues: dict[_Wish, Queue] = {}
        self._spares: Spares = OrderedDict()
        self._stalled: set[_Wish] = set()
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many wait for a slot."""
        return sum(map(len, self._queues.values()))

    def traffic_of(self, address: str, limit: int) -> Traffic:
        """Return what is under way on a server, the same for all spellings of its address.

        Args:
            address: Address of the server, with what its dialect adds.
            limit: Questions under way at once on it.

        Raises:
            FieldValueError: If another pool has set another limit for it.
        """
        traffic = self._traffic.setdefault(server_key(address), Traffic(limit))
        if traffic.limit != limit:
            raise FieldValueError(
                f"concurrency must be the same for all who ask {shown_address(address)}, as it is "
                f"one server: got {traffic.limit} and {limit}"
            )

        return traffic

    def entered(self) -> AbstractContextManager[None]:
        """Claim the running event loop while something is under way in it.

        Raises:
            LLMError: If something is under way in another loop.
        """
        return self._loop.entered()

    async def take(
        self,
        hosts: Hosts,
        cost: Cost,
        avoid: Collection[ModelHost] = (),
        *,
        urgent: bool = False,
    ) -> Lease:
        """Take a slot, waiting for one if all are in use.

        Args:
            hosts: Where the question may be put.
            cost: Hears that the question has its slot, or that nobody is served.
            avoid: Hosts not to take while there is room elsewhere.
            urgent: Whether the question was put elsewhere before, where a doubt waits for it.

        Raises:
            CircuitOpenError: If the circuit breakers of all hosts are open.
            BudgetSpentError: If a budget does not allow the question any more.
        """
        wish = _Wish(hosts, urgent)
        while (lease := self._free(wish, avoid)) is None:
            if all_fail_fast(hosts):
                raise circuit_open(hosts)

            lease = await self._turn(wish, cost, avoid)
            if lease is not None:
                break

        return self._admitted(lease, cost)

    async def take_spare(
        self, hosts: Hosts, cost: Cost, avoid: Collection[ModelHost] = ()
    ) -> Lease:
        """Take a slot that nobody else wants, however long it takes until there is one.

        Args:
            hosts: Where the question may be put.
            cost: Hears that the question has one more slot.
            avoid: Hosts not to take while there is room elsewhere.

        Raises:
            BudgetSpentError: If a budget does not allow the question any more.
        """
        lease = self._free(_Wish(hosts, urgent=False), avoid)
        return self._admitted(lease or await self._spare_turn(hosts, avoid), cost)

    def _admitted(self, lease: Lease, cost: Cost) -> Lease:
        try:
            cost.admitted()
        except BaseException:
            self.return_unused(lease)
            raise

        return lease

    async def _spare_turn(self, hosts: Hosts, avoid: Collection[ModelHost]) -> Lease:
        turn: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        self._spares[turn] = (hosts, avoid)
        try:
            return await turn
        except BaseException:
            self._spares.pop(turn, None)
            if turn.done() and not turn.cancelled():
                self.return_unused(turn.result())
            raise

    def give_back(self, lease: Lease) -> None:
        """Return a slot, after the breaker of its host has noted the outcome."""
        lease.host.traffic.in_flight -= 1
        self._serve_those_who_wait()

    def return_unused(self, lease: Lease) -> None:
        """Return a slot in which nothing was asked."""
        lease.host.breaker.abandoned(probe=lease.probe)
        self.give_back(lease)

    def settle(self, host: ModelHost) -> None:
        """Note that a doubt about a host is settled: there is room for another question."""
        host.traffic.doubts -= 1
        self._serve_those_who_wait()

    def _free(self, wish: _Wish, avoid: Collection[ModelHost]) -> Lease | None:
        free = [host for host in wish.hosts if self._is_free(host, wish)]
        if not free:
            return None

        host = min(
            free, key=lambda host: (host in avoid, host.traffic.in_flight + host.traffic.doubts)
        )
        host.traffic.in_flight += 1

        return Lease(host, host.breaker.asked())

    def _is_free(self, host: ModelHost, wish: _Wish) -> bool:
        traffic = host.traffic
        taken = traffic.in_flight + (0 if wish.urgent else traffic.doubts)
        return (
            taken < traffic.limit
            and traffic.throttle.allows(traffic.in_flight)
            and host.breaker.allows()
        )

    async def _turn(self, wish: _Wish, cost: Cost, avoid: Collection[ModelHost]) -> Lease | None:
        """Wait in the queue; None means that there is nothing to wait for any more."""
        turn: asyncio.Future[Lease | None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(wish, Queue())[turn] = _Waiter(next(self._numbers), avoid, cost)
        self._note_stall(wish)
        if wish in self._stalled:
            cost.stalled(True)

        self._set_alarm()

        try:
            return await turn
        except BaseException:
            self._leave(wish, turn)
            raise

    def _leave(self, wish: _Wish, turn: asyncio.Future[Lease | None]) -> None:
        """Leave the queue, and return the slot if one was assigned meanwhile."""
        queue = self._queues.get(wish, Queue())
        if queue.pop(turn, None) is not None and not queue:
            self._drop(wish)

        lease = turn.result() if turn.done() and not turn.cancelled() else None
        if lease is not None:
            self.return_unused(lease)

    def _drop(self, wish: _Wish) -> None:
        del self._queues[wish]
        self._stalled.discard(wish)

    def _rank(self, wish: _Wish) -> tuple[bool, int]:
        return not wish.urgent, next(iter(self._queues[wish].values())).number

    def _serve_those_who_wait(self) -> None:
        if self._queues or self._spares:
            self._serve_all()

    def _serve_all(self) -> None:
        for wish in sorted(self._queues, key=self._rank):
            self._serve(wish)

        for wish in self._queues:
            self._note_stall(wish)

        self._serve_spares()
        self._set_alarm()

    def _serve(self, wish: _Wish) -> None:
        """Assign free slots to those who wait; wake all if there is nothing to wait for."""
        queue = self._queues[wish]
        while queue:
            turn, waiter = next(iter(queue.items()))
            lease = None if turn.done() else self._free(wish, waiter.avoid)
            if lease is None and not turn.done() and not all_fail_fast(wish.hosts):
                return

            del queue[turn]
            if not turn.done():
                turn.set_result(lease)

        self._drop(wish)

    def _serve_spares(self) -> None:
        """Assign slots that are free still, as nobody waits for them."""
        for turn, (hosts, avoid) in list(self._spares.items()):
            lease = None if turn.done() else self._free(_Wish(hosts, urgent=False), avoid)
            if lease is not None:
                turn.set_result(lease)
            if turn.done():
                del self._spares[turn]

    def _note_stall(self, wish: _Wish) -> None:
        """Notify those who wait when their hosts stop serving anybody, and when they go on."""
        is_served = any(
            host.traffic.in_flight and not host.breaker.is_open() for host in wish.hosts
        )
        if is_served != (wish in self._stalled):
            return

        if is_served:
            self._stalled.discard(wish)
        else:
            self._stalled.add(wish)

        for turn, waiter in self._queues[wish].items():
            # one that is done was cancelled, and its clock cannot be set any more
            if not turn.done():
                waiter.cost.stalled(not is_served)

    def _set_alarm(self) -> None:
        """Serve again when a pause, a hold or the patience ends, as nothing else would do it."""
        if self._alarm is not None:
            self._alarm.cancel()

        waiting_for = (host for wish in self._queues for host in wish.hosts)
        waits = (
            wait
            for host in waiting_for
            for wait in (host.breaker.seconds_left(), host.traffic.throttle.seconds_left())
        )
        soonest = min((wait for wait in waits if wait > 0), default=None)
        # what ended since they were refused, a moment ago, is told by no alarm any more
        if any(map(self._can_serve, self._queues)):
            soonest = 0.0

        self._alarm = (
            None
            if soonest is None
            else asyncio.get_running_loop().call_later(soonest, self._serve_all)
        )

    def _can_serve(self, wish: _Wish) -> bool:
        """Return True if one who waits would be given a slot, or told that there is none."""
        return any(self._is_free(host, wish) for host in wish.hosts) or all_fail_fast(wish.hosts)


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
    wait = min(
        max(host.breaker.seconds_left(), host.traffic.throttle.seconds_left()) for host in hosts
    )
    why = "; ".join(host.trouble for host in hosts)
    error = CircuitOpenError(f"circuit open for {wait:.1f} s after repeated failures: {why}")
    error.host = hosts[0].address if len(hosts) == 1 else None

    return error
