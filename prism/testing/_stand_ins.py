"""Stand-ins for tests: agents, a clock, a log to look at, and unkind reasoners."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from prism.agents import SocialAgent
from prism.reasoner import BaseReasoner, Decision, PolicyReasoner, Question
from prism.runlog.writer import DEFAULT_START, SECONDS_PER_TICK
from prism.statechart.names import agent_name
from prism.telemetry import Instrument
from prism.telemetry.events import TRANSITION

Event = dict[str, Any]

_MOST_TURNS = 20
"""Of the event loop, for which an answer waits."""


def id_text(agent: Any) -> str:
    """Return the name in the log of an agent, or of its id."""
    return str(agent) if isinstance(agent, (str, int, UUID)) else agent_name(agent)


class AgentMaker:
    """Makes social agents with an interest in music, by default ``agent_1``, ``agent_2``, ..."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self, agent_id: str | None = None, **fields: Any) -> SocialAgent:
        """Make an agent.

        Args:
            agent_id: The agent's id; None for the next ``agent_<number>``.
            fields: Further arguments of `SocialAgent`, such as ``interests`` or ``state``.
        """
        name = f"agent_{next(self._numbers)}" if agent_id is None else agent_id
        return SocialAgent(name, **{"interests": ["music"], **fields})


class FrozenClock:
    """A clock that only the test moves forward, for ``Statechart(..., clock=clock)``.

    Args:
        start: Time that the clock shows at first; UTC if it has no time zone.

    Attributes:
        now: Time that the clock shows, in UTC.
    """

    def __init__(self, start: datetime = DEFAULT_START) -> None:
        self.at(start)

    def __call__(self) -> float:
        """Return the time in seconds since the epoch."""
        return self.now.timestamp()

    def tick(self, ticks: int = 1) -> None:
        """Move the clock by a number of ticks, each a minute long, as in a simulation."""
        self.advance(ticks * SECONDS_PER_TICK)

    def advance(self, time: timedelta | float) -> None:
        """Move the clock by some time.

        Args:
            time: A timedelta, or seconds.
        """
        self.now += time if isinstance(time, timedelta) else timedelta(seconds=float(time))

    def at(self, time: datetime) -> None:
        """Set the clock to a time, in UTC if it has no time zone."""
        has_zone = time.tzinfo is not None
        self.now: datetime = time.astimezone(UTC) if has_zone else time.replace(tzinfo=UTC)


class TransitionLog(Instrument):
    """The events of prism as dicts, in the order of the log, without events that a chart refuses.

    Attributes:
        events: All of them, with their name under ``event``.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []

    def event(self, name: str, _level: str, keys: Mapping[str, Any], /) -> None:
        """Keep an event."""
        self.events.append({"event": name, **keys})

    def of(self, agent: Any) -> list[Event]:
        """Return the events of an agent, or of its id (a text, a number or a UUID)."""
        name = id_text(agent)
        return [event for event in self.events if event.get("agent_id") == name]

    def named(self, name: str) -> list[Event]:
        """Return the events of one name, such as ``statechart.guard_failed``."""
        return [event for event in self.events if event["event"] == name]

    def transitions(self, agent: Any) -> list[tuple[str, str, str]]:
        """Return the transitions of one agent as (source, trigger, target)."""
        return [
            (event["from_state"], event["trigger"], event["to_state"])
            for event in self.of(agent)
            if event["event"] == TRANSITION
        ]


class RecordingReasoner(BaseReasoner):
    """Returns another reasoner's answers, and records the questions.

    Args:
        reasoner: Answers the questions; a `PolicyReasoner` by default.

    Attributes:
        batches: The questions of each call of `answer`, in the order of the calls.
    """

    def __init__(self, reasoner: BaseReasoner | None = None) -> None:
        super().__init__()
        self.reasoner: BaseReasoner = PolicyReasoner() if reasoner is None else reasoner
        self.concurrency: int = self.reasoner.concurrency
        self.chooses_acts: bool = self.reasoner.chooses_acts
        self.batches: list[tuple[Question, ...]] = []

    @property
    def questions(self) -> list[Question]:
        """All questions, in the order in which they were asked."""
        return [question for batch in self.batches for question in batch]

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Record the questions, and return the other reasoner's answers."""
        self.batches.append(tuple(questions))

        return await self.reasoner.answer(questions)


class LateReasoner(RecordingReasoner):
    """Returns another reasoner's answers, but late, so that answers overtake each other.

    An answer waits for a random number of turns of the event loop, not for time, so tests stay fast
    and repeatable.

    Args:
        reasoner: Answers the questions; a `PolicyReasoner` by default.
        concurrency: Number of questions to ask at once; see `BaseReasoner`.
        seed: Seed of the waits.
    """

    def __init__(
        self, reasoner: BaseReasoner | None = None, *, concurrency: int = 4, seed: int = 0
    ) -> None:
        super().__init__(reasoner)
        self.concurrency = concurrency
        self._waits = random.Random(seed)

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Answer each question after its own wait."""
        self.batches.append(tuple(questions))

        return await asyncio.gather(*map(self._one, questions))

    async def _one(self, question: Question) -> Decision:
        for _ in range(self._waits.randint(0, _MOST_TURNS)):
            await asyncio.sleep(0)

        (decision,) = await self.reasoner.answer([question])
        return decision
