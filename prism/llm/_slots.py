"""Who may ask which host now: so many questions at once on each, first come, first served."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import count

from prism.errors import LeftAloneError
from prism.llm._host import OllamaHost

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
    tried: Collection[OllamaHost]


class Slots:
    """Hands out leases, each to the host with the fewest questions under way.

    Whoever waits does so for a question under way on a host that works, or that shows whether it
    does, or for the end of a busy host's hold, and is given the slot itself then; so nobody can
    come in between, and nobody waits for something that does not happen.

    Args:
        limit: Questions under way at once on each host.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._numbers = count()
        self._queues: dict[Hosts, OrderedDict[asyncio.Future[Lease | None], _Waiter]] = {}
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """How many wait for a slot."""
        return sum(map(len, self._queues.values()))

    async def take(self, hosts: Hosts, tried: Collection[OllamaHost] = ()) -> Lease:
        """Take a slot, waiting for one if all are in use.

        Args:
            hosts: Where the question may be put.
            tried: Those to avoid while there is room elsewhere.

        Raises:
            LeftAloneError: If all hosts are being left alone; ``attempts`` is 0, for nothing was
                asked.
        """
        while (lease := self._free(hosts, tried)) is None:
            if all_hopeless(hosts):
                raise left_alone(hosts)

            given = await self._turn(hosts, tried)
            if given is not None:
                return given

        return lease

    def give_back(self, lease: Lease) -> None:
        """Give a slot back, after its host's breaker was told how it went."""
        lease.host.in_flight -= 1
        if self._queues:
            self._serve_all()

    def _free(self, hosts: Hosts, tried: Collection[OllamaHost]) -> Lease | None:
        free = [
            host
            for host in hosts
            if host.in_flight < self._limit
            and host.throttle.allows(host.in_flight)
            and host.breaker.allows()
        ]
        if not free:
            return None

        host = min(free, key=lambda host: (host in tried, host.in_flight))
        host.in_flight += 1

        return Lease(host, host.breaker.asked())

    async def _turn(self, hosts: Hosts, tried: Collection[OllamaHost]) -> Lease | None:
        """Wait in the queue; None means that there is nothing to wait for any more."""
        turn: asyncio.Future[Lease | None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(hosts, OrderedDict())[turn] = _Waiter(next(self._numbers), tried)
        self._set_alarm()

        try:
            return await turn
        except BaseException:
            self._leave(hosts, turn)
            raise

    def _leave(self, hosts: Hosts, turn: asyncio.Future[Lease | None]) -> None:
        """Give up a place in the queue, or the slot that was given to it meanwhile."""
        queue = self._queues.get(hosts, OrderedDict())
        if queue.pop(turn, None) is not None and not queue:
            del self._queues[hosts]

        lease = turn.result() if turn.done() and not turn.cancelled() else None
        if lease is not None:
            lease.host.breaker.abandoned(probe=lease.probe)
            self.give_back(lease)

    def _first_number(self, hosts: Hosts) -> int:
        return next(iter(self._queues[hosts].values())).number

    def _serve_all(self) -> None:
        for hosts in sorted(self._queues, key=self._first_number):
            self._serve(hosts)

        self._set_alarm()

    def _set_alarm(self) -> None:
        """Look at the queues again when a host's pause or hold is over, or the patience with it: nothing else tells."""
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

    def _serve(self, hosts: Hosts) -> None:
        """Give what is free to those who wait for it; wake all if there is nothing to wait for."""
        queue = self._queues[hosts]
        while queue:
            turn, waiter = next(iter(queue.items()))
            lease = None if turn.done() else self._free(hosts, waiter.tried)
            if lease is None and not turn.done() and not all_hopeless(hosts):
                return

            del queue[turn]
            if not turn.done():
                turn.set_result(lease)

        del self._queues[hosts]


def all_hopeless(hosts: Hosts) -> bool:
    """Return whether all hosts are being left alone, so that there is nobody to ask or to wait for."""
    return all(host.breaker.is_hopeless() for host in hosts)


def left_alone(hosts: Hosts) -> LeftAloneError:
    """Make the error that says so."""
    wait = min(max(host.breaker.seconds_left(), host.throttle.seconds_left()) for host in hosts)
    why = "; ".join(host.trouble for host in hosts)
    error = LeftAloneError(f"left alone for {wait:.1f} s after failing again and again: {why}")
    error.host = hosts[0].address if len(hosts) == 1 else None
    error.attempts = 0

    return error
