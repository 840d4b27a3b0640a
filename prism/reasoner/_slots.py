"""Hosts: their health, and their slots, for which questions wait in a queue."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count
from math import inf
from random import uniform
from typing import Any, Generic, NamedTuple, TypeVar

from prism.errors import CircuitOpenError, LLMError
from prism.reasoner._faults import BUSY, OtherLoopError
from prism.reasoner._model_client import Chat, ChatReply, Choices, DecisionReply
from prism.reasoner._questions import ASKED_AT
from prism.reasoner._spending import Cost, loop_time

FAILURES_TO_OPEN = 5
"""More than the attempts of one question, so that a single failing one opens no breaker."""

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 30.0

PROBE_SECONDS = 10.0
"""Seconds that others wait for a probe, which may take long while a server loads the model."""

FIRST_HOLD_SECONDS = 0.2
LONGEST_HOLD_SECONDS = 5.0
LONGEST_RETRY_AFTER = 30.0

LONGEST_BUSY_SECONDS = 30.0
"""Seconds without any answer after which, without patience, a refused lone question counts."""

_ROUNDS_TO_GROW = 5
"""How often the limit must be filled with answers before it is raised by one question."""

_SECONDS_TO_GROW = 30.0
"""How long the limit stays, in any case, after a refusal that put the host on hold."""


class CircuitBreaker:
    """Decides whether a host should be asked (Nygard, "Release It!", 2007).

    While closed, it lets every question through. A few failures in a row open it, and the host is
    not asked during a pause. Then it is half-open and lets one question through as a probe. If that
    succeeds, the breaker closes; if it fails, the breaker opens for twice as long. Questions that
    were open when it opened neither prolong the pause nor end the probe. Other questions may wait
    for the probe's outcome for a while, and with patience for further probes, until the host has
    failed for too long.

    Args:
        clock: Returns a monotonic time in seconds; by default that of the event loop.
        first_pause: Seconds of the first pause.
        probe_wait: Seconds that others may wait for a probe.
        patience: Seconds after opening for which questions wait, whatever the probes show.
        changed: Called with None when it opens, and with the seconds it was open when it closes.

    Attributes:
        patience: Seconds after opening for which questions wait.
    """

    def __init__(
        self,
        clock: Callable[[], float] = loop_time,
        *,
        first_pause: float = FIRST_PAUSE_SECONDS,
        probe_wait: float = PROBE_SECONDS,
        patience: float = 0.0,
        changed: Callable[[float | None], None] = lambda _seconds: None,
    ) -> None:
        self._clock = clock
        self._changed = changed
        self._first_pause = first_pause
        self._probe_wait = probe_wait
        self.patience: float = patience
        self._failures = 0
        self._pause = first_pause
        self._open_until: float | None = None
        self._probe_began: float | None = None
        self._opened_at = 0.0
        self._patient_until = 0.0

    def allows(self) -> bool:
        """Return True if a question may be asked now."""
        if self._open_until is None:
            return True
        return self._probe_began is None and self._clock() >= self._open_until

    def is_open(self) -> bool:
        """Return True if it is open or half-open."""
        return self._open_until is not None

    def fails_fast(self) -> bool:
        """Return True if questions should fail now instead of waiting for the host."""
        if self._open_until is None:
            return False

        now = self._clock()
        is_probed = self._probe_began is not None and now < self._probe_began + self._probe_wait
        return not is_probed and now >= self._patient_until

    def seconds_left(self) -> float:
        """Return the seconds until it changes by itself, when a pause, wait or patience ends."""
        if self._open_until is None:
            return 0.0

        now = self._clock()
        changes = (
            self._open_until if self._probe_began is None else self._probe_began + self._probe_wait
        )

        return min((end - now for end in (changes, self._patient_until) if end > now), default=0.0)

    def asked(self) -> bool:
        """Record an open question; return True if it is the probe."""
        if self._open_until is None:
            return False
        self._probe_began = self._clock()
        return True

    def succeeded(self) -> None:
        """Record an answer, which closes the breaker."""
        was_open = self._open_until is not None
        self._failures = 0
        self._pause = self._first_pause
        self._open_until = None
        self._probe_began = None
        if was_open:
            self._changed(self._clock() - self._opened_at)

    def failed(self, *, probe: bool = False, was_patient: bool = False) -> None:
        """Record a failure; enough of them in a row, or a failed probe, open the breaker.

        Args:
            probe: What `asked` returned for the question.
            was_patient: Whether the host was already waited for, so that one failure is enough, and
                nobody waits any longer.
        """
        self._failures += 1
        if self._open_until is None:
            if self._failures >= FAILURES_TO_OPEN or was_patient:
                now = self._clock()
                self._opened_at = now
                self._open_until = now + self._pause
                self._patient_until = now + (0.0 if was_patient else self.patience)
                self._changed(None)
        elif probe:
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            self._open_until = self._clock() + self._pause
            self._probe_began = None

    def abandoned(self, *, probe: bool = False) -> None:
        """Record that a question ended without showing anything about the host.

        Args:
            probe: What `asked` returned for the question.
        """
        if probe:
            self._probe_began = None


class Throttle:
    """Finds how many simultaneous questions a host accepts, from its refusals when it is busy.

    A refusal sets the limit to the number of other open questions, since the host accepted these.
    Answers raise it again, one by one (additive increase, as in Jacobson, "Congestion avoidance and
    control", 1988). If no other question is open, or the host asks for a pause, it is put on hold:
    it is not asked for a time that grows with each refusal. Where it asks for a pause, one question
    too many costs that of all questions, so the limit is not raised again for a while.

    Args:
        clock: Returns a monotonic time in seconds; by default that of the event loop.
        first_hold: Maximum seconds of the first hold, before jitter.
        longest_busy: Seconds without any answer after which a refusal counts as a failure.
    """

    def __init__(
        self,
        clock: Callable[[], float] = loop_time,
        *,
        first_hold: float = FIRST_HOLD_SECONDS,
        longest_busy: float = LONGEST_BUSY_SECONDS,
    ) -> None:
        self._clock = clock
        self._first_hold = first_hold
        self._longest_busy = longest_busy
        self._limit = inf
        self._answers = 0
        self._refusals = 0
        self._busy_since: float | None = None
        self._hold_until = 0.0
        self._asked_until = 0.0
        self._grows_from = 0.0

    @property
    def is_refusing(self) -> bool:
        """Whether the host has refused questions since its last answer."""
        return self._busy_since is not None

    def allows(self, in_flight: int) -> bool:
        """Return True if one more question may be asked besides the open ones."""
        if in_flight >= self._limit:
            return False
        return not self._hold_until or self._clock() >= self._hold_until

    def seconds_left(self) -> float:
        """Return the seconds until the hold is over."""
        return max(0.0, self._hold_until - self._clock()) if self._hold_until else 0.0

    def answered(self) -> None:
        """Record an answer: the host accepts the current number of open questions."""
        if self._limit == inf:
            return

        self._refusals, self._busy_since = 0, None
        self._answers += 1
        may_grow = not self._grows_from or self._clock() >= self._grows_from
        if self._answers >= _ROUNDS_TO_GROW * self._limit and may_grow:
            self._limit += 1
            self._answers = 0

    def refused(self, others: int, patience: float = 0.0, *, asks_pause: bool = False) -> bool:
        """Record a refusal; return True if it shows that the host fails.

        Args:
            others: Open questions besides the refused one.
            patience: Seconds without any answer after which it does; 0 for the usual time.
            asks_pause: Whether the host asked for a pause, too.
        """
        now = self._clock()
        if asks_pause:
            self._grows_from = now + _SECONDS_TO_GROW
        if self._busy_since is None:
            self._busy_since = now

        self._limit = max(1, min(others, self._limit))
        self._answers = 0
        if others:
            return False

        longest = min(self._first_hold * 2.0 ** min(self._refusals, 30), LONGEST_HOLD_SECONDS)
        self._refusals += 1
        self.hold(0, jitter=longest)

        return now - self._busy_since >= (patience or self._longest_busy)

    def seconds_asked(self) -> float:
        """Return the seconds left of the pause that the host asked for, while it is on hold."""
        return max(0.0, self._asked_until - self._clock()) if self.seconds_left() else 0.0

    def hold(self, seconds: float, *, jitter: float | None = None) -> None:
        """Put the host on hold, unless it is already on hold for longer.

        Args:
            seconds: The duration, of which at most half a minute counts.
            jitter: Maximum random seconds to add, so that several runs do not return together; by
                default as for a first refusal.
        """
        pause = min(seconds, LONGEST_RETRY_AFTER) + uniform(
            0, self._first_hold if jitter is None else jitter
        )
        self._hold_until = max(self._hold_until, self._clock() + pause)
        self._asked_until = max(self._asked_until, self._clock() + seconds)


@dataclass(eq=False)
class Traffic:
    """The open questions on one server.

    Args:
        limit: Maximum number of open questions.
        in_flight: Number of open questions.
        doubts: Questions without a usable answer that are being asked elsewhere, to find whose
            fault it was.
        throttle: Limits the questions to what the server accepts.
    """

    limit: int
    in_flight: int = 0
    doubts: int = 0
    throttle: Throttle = field(default_factory=Throttle)


LOGGER: logging.Logger = logging.getLogger("prism.llm")
"""The logger for problems with everything that a host is asked, reported once."""


class Host(ABC):
    """A server or client: its health, and its open questions.

    Args:
        address: Its name in messages.
        model: The model.
        limit: Maximum number of open questions.
        patience: Seconds to wait for it when it fails.

    Attributes:
        address: Its name in messages.
        model: The model.
        traffic: Its open questions.
        breaker: Whether it may be asked now.
        trouble: Its last problem.
        unusable: Number of useless answers in a row.
        has_answered: Whether it has ever answered a question, which shows that it had the model.
        known_to_decide: Whether it supports decision questions; None if unknown.
    """

    def __init__(self, address: str, model: str, limit: int = 1, patience: float = 0.0) -> None:
        self.address: str = address
        self.traffic: Traffic = Traffic(limit)
        self.breaker: CircuitBreaker = CircuitBreaker(patience=patience, changed=self._tell_change)
        self.trouble: str = ""
        self.unusable: int = 0
        self.has_answered: bool = False
        self.known_to_decide: bool | None = None
        self.model: str = model

    @abstractmethod
    async def chat(self, chat: Chat, cost: Cost) -> ChatReply:
        """Send a conversation, sampled with the seed plus its variation."""

    @abstractmethod
    async def systemone(self, asked: Choices, cost: Cost) -> DecisionReply:
        """Ask choice questions about one state.

        Raises:
            DecisionsUnsupportedError: If it does not support them.
        """

    @abstractmethod
    async def decides(self) -> bool | None:
        """Return True if it supports decision questions; None if only an attempt can tell."""

    def _tell_change(self, seconds: float | None) -> None:
        """Report that the breaker has opened, or closed after some seconds."""
        who = f"{self.model} at {self.address}"
        if seconds is None:
            LOGGER.warning(
                "%s is failing, and will only be probed until it answers: %s", who, self.trouble
            )
        else:
            LOGGER.warning("%s answers again, after %.1f s", who, seconds)


HostT = TypeVar("HostT", bound=Host)

Hosts = tuple[HostT, ...]


@dataclass(frozen=True, slots=True)
class Lease(Generic[HostT]):
    """The right to ask a host one question.

    Args:
        host: The host.
        probe: Whether the question tests if a failing host works again.
    """

    host: HostT
    probe: bool


@dataclass(eq=False, slots=True)
class _Waiter:
    """A question that waits for a slot, with its number in the queue."""

    number: int
    turn: asyncio.Future[Lease[Any] | None]
    avoid: Collection[Host]
    cost: Cost
    run: object
    asked_at: float


class Rank(IntEnum):
    """The priority for free slots: a question that settles a doubt comes first, on any host."""

    URGENT = 0
    USUAL = 1


class _Wish(NamedTuple):
    """A request for a slot of any of these hosts."""

    hosts: tuple[Any, ...]
    rank: Rank


Queue = list[_Waiter]


class Slots:
    """Assigns slots on the hosts of a pool: each question gets one of the least busy host.

    Questions are served in order of arrival, except that a run's question of an earlier tick
    changes places with its later ones, which wait for it. A waiting question waits for an open
    question on a working or probed host, or for the end of a busy host's hold. It is then assigned
    the slot itself, so no newcomer can take it, and everything that it waits for will happen.

    A question without a usable answer keeps its slot until another host has shown whose fault it
    was, because a host that fails fast would otherwise attract all questions. The repetition
    elsewhere comes first and ignores doubts, since the slots that it waits for may be waiting for
    it.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._inside: set[object] = set()
        self._numbers = count()
        self._queues: dict[_Wish, Queue] = {}
        self._stalled: set[_Wish] = set()
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Number of questions that wait for a slot."""
        return sum(map(len, self._queues.values()))

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Claim the running event loop while a question is open in it.

        Connections and queues belong to their loop; two loops that shared them would deadlock.

        Raises:
            OtherLoopError: If a question is open in another loop.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            if self._inside and self._loop is not None and not self._loop.is_closed():
                raise OtherLoopError(
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

    async def take(
        self,
        hosts: Hosts[HostT],
        cost: Cost,
        avoid: Collection[Host] = (),
        rank: Rank = Rank.USUAL,
    ) -> Lease[HostT]:
        """Take a slot, waiting if all are in use.

        Args:
            hosts: The hosts that may be asked.
            cost: Is told when the question gets its slot, or that nobody is served.
            avoid: Hosts to avoid while there is room elsewhere.
            rank: The priority.

        Raises:
            CircuitOpenError: If the circuit breakers of all hosts are open.
            BudgetSpentError: If a budget no longer allows the question.
            LLMError: If all hosts ask for a longer pause than the question has time.
        """
        wish = _Wish(hosts, rank)
        while (lease := self._free(wish, avoid)) is None:
            if all_fail_fast(hosts):
                raise circuit_open(hosts)
            if _outlast(hosts, cost):
                raise _too_long_a_pause(hosts, cost)

            lease = await self._turn(wish, cost, avoid)
            if lease is not None:
                break

        try:
            cost.allowance.admitted()
        except BaseException:
            self.return_unused(lease)
            raise

        return lease

    def give_back(self, lease: Lease[Any]) -> None:
        """Return a slot, after the breaker of its host has recorded the outcome."""
        lease.host.traffic.in_flight -= 1
        self._serve_all()

    def return_unused(self, lease: Lease[Any]) -> None:
        """Return an unused slot."""
        lease.host.breaker.abandoned(probe=lease.probe)
        self.give_back(lease)

    def settle(self, host: Host) -> None:
        """Settle a doubt about a host, which makes room for another question."""
        host.traffic.doubts -= 1
        self._serve_all()

    def _free(self, wish: _Wish, avoid: Collection[Host]) -> Lease[Any] | None:
        free = [host for host in wish.hosts if self._is_free(host, wish)]
        if not free:
            return None

        host = min(
            free, key=lambda host: (host in avoid, host.traffic.in_flight + host.traffic.doubts)
        )
        host.traffic.in_flight += 1

        return Lease(host, host.breaker.asked())

    def _is_free(self, host: Host, wish: _Wish) -> bool:
        traffic = host.traffic
        taken = traffic.in_flight + (0 if wish.rank is Rank.URGENT else traffic.doubts)
        return (
            taken < traffic.limit
            and traffic.throttle.allows(traffic.in_flight)
            and host.breaker.allows()
        )

    async def _turn(self, wish: _Wish, cost: Cost, avoid: Collection[Host]) -> Lease[Any] | None:
        """Wait in the queue; None means that there is nothing left to wait for."""
        turn: asyncio.Future[Lease[Any] | None] = asyncio.get_running_loop().create_future()
        asked = ASKED_AT.get()
        clock, seconds = (None, 0.0) if asked is None else (asked[0], asked[1].seconds)
        waiter = _Waiter(next(self._numbers), turn, avoid, cost, clock, seconds)
        _line_up(self._queues.setdefault(wish, []), waiter)
        self._note_stall(wish)
        if wish in self._stalled:
            cost.allowance.stalled(True)

        self._set_alarm()

        try:
            return await turn
        except BaseException:
            cost.allowance.trouble = cost.allowance.trouble or _trouble_of(wish.hosts)
            self._leave(wish, waiter)
            raise

    def _leave(self, wish: _Wish, waiter: _Waiter) -> None:
        """Leave the queue, and return a slot that was assigned in the meantime."""
        turn, queue = waiter.turn, self._queues.get(wish, [])
        if waiter in queue:
            queue.remove(waiter)
            if not queue:
                self._drop(wish)

        lease = turn.result() if turn.done() and not turn.cancelled() else None
        if lease is not None:
            self.return_unused(lease)

    def _drop(self, wish: _Wish) -> None:
        del self._queues[wish]
        self._stalled.discard(wish)

    def _serve_all(self) -> None:
        """Assign free slots to waiting questions, by priority and number."""
        if not self._queues:
            return

        firsts = {wish: queue[0] for wish, queue in self._queues.items()}
        for wish in sorted(firsts, key=lambda wish: (wish.rank, firsts[wish].number)):
            self._serve(wish)

        for wish in self._queues:
            self._note_stall(wish)

        self._set_alarm()

    def _serve(self, wish: _Wish) -> None:
        """Assign free slots to waiting questions; wake all if there is nothing to wait for."""
        queue = self._queues[wish]
        while queue:
            turn, waiter = queue[0].turn, queue[0]
            lease = None if turn.done() else self._free(wish, waiter.avoid)
            is_hopeless = all_fail_fast(wish.hosts) or _outlast(wish.hosts, waiter.cost)
            if lease is None and not turn.done() and not is_hopeless:
                return

            del queue[0]
            if not turn.done():
                turn.set_result(lease)

        self._drop(wish)

    def _note_stall(self, wish: _Wish) -> None:
        """Notify waiting questions when their hosts stop serving, and when they continue."""
        is_served = any(
            host.traffic.in_flight and not host.breaker.is_open() for host in wish.hosts
        )
        if is_served != (wish in self._stalled):
            return

        if is_served:
            self._stalled.discard(wish)
        else:
            self._stalled.add(wish)

        for waiter in self._queues[wish]:
            # a finished one was cancelled, and its clock can no longer be set
            if not waiter.turn.done():
                waiter.cost.allowance.stalled(not is_served)

    def _set_alarm(self) -> None:
        """Serve again when a pause, a hold or the patience ends, since nothing else would."""
        if self._alarm is not None:
            self._alarm.cancel()

        waiting_for = (host for wish in self._queues for host in wish.hosts)
        waits = (
            wait
            for host in waiting_for
            for wait in (host.breaker.seconds_left(), host.traffic.throttle.seconds_left())
        )
        soonest = min((wait for wait in waits if wait > 0), default=None)
        # no alarm reports what has just ended since they were refused
        if any(map(self._can_serve, self._queues)):
            soonest = 0.0

        self._alarm = (
            None
            if soonest is None
            else asyncio.get_running_loop().call_later(soonest, self._serve_all)
        )

    def _can_serve(self, wish: _Wish) -> bool:
        """Return True if a waiting question would get a slot, or be told that there is none."""
        return any(self._is_free(host, wish) for host in wish.hosts) or all_fail_fast(wish.hosts)


def _line_up(queue: Queue, waiter: _Waiter) -> None:
    """Add a waiting question, which changes places with later ones of its run."""
    place = len(queue)
    queue.append(waiter)
    for before in reversed(range(place)):
        other = queue[before]
        if other.run is not waiter.run:
            continue
        if other.asked_at <= waiter.asked_at:
            return

        queue[before], queue[place] = waiter, other
        waiter.number, other.number = other.number, waiter.number
        place = before


def all_fail_fast(hosts: Hosts[Any]) -> bool:
    """Return True if no host can be asked or is worth waiting for."""
    return all(host.breaker.fails_fast() for host in hosts)


def _outlast(hosts: Hosts[Any], cost: Cost) -> bool:
    """Return True if all hosts ask for longer pauses than a question, or patience, has time."""
    left = cost.allowance.seconds_left()
    return all(
        host.traffic.throttle.seconds_asked() > max(left, host.breaker.patience) for host in hosts
    )


def _too_long_a_pause(hosts: Hosts[Any], cost: Cost) -> LLMError:
    left = max(0.0, cost.allowance.seconds_left())
    return LLMError(
        f"{_trouble_of(hosts)}: not waited for, since {left:.3g} s are left",
        host=_only(hosts),
        retry_after=min(host.traffic.throttle.seconds_asked() for host in hosts),
        status=BUSY[0],
    )


def _only(hosts: Hosts[Any]) -> str | None:
    """Return the address of the only host."""
    return hosts[0].address if len(hosts) == 1 else None


def _trouble_of(hosts: Hosts[Any]) -> str:
    """Return the problems of the hosts that are not asked now."""
    away = (h for h in hosts if h.breaker.is_open() or h.traffic.throttle.seconds_left())
    return "; ".join(host.trouble for host in away if host.trouble)


def circuit_open(hosts: Hosts[Any]) -> CircuitOpenError:
    """Return the error for open circuit breakers."""
    wait = min(
        max(host.breaker.seconds_left(), host.traffic.throttle.seconds_left()) for host in hosts
    )
    why = "; ".join(host.trouble for host in hosts)
    return CircuitOpenError(
        f"circuit open for {wait:.1f} s after repeated failures: {why}", host=_only(hosts)
    )
