"""Objects of other classes that take part in a world by ``act(world)``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from time import time
from typing import Any, Generic, TypeVar, cast

from prism.errors import AgentError, SimulationError
from prism.reasoner import BaseWriter, TextCall, Written
from prism.reasoner.texts import ForwardingWriter
from prism.statechart import Statechart
from prism.statechart.names import identify
from prism.telemetry.loggers import EventLogger
from prism.worlds._agent import Agent
from prism.worlds.decisions import Writing

ObjectT = TypeVar("ObjectT")


@dataclass(frozen=True, slots=True)
class Services:
    """What a run provides to an object that takes part in it.

    Args:
        writer: Answers its text calls, together with all others of the tick.
        logger: Where the run's events go.
        clock: Returns the run's time, in seconds since the epoch.
        seed: Seed of the run's random numbers.
    """

    writer: BaseWriter
    logger: EventLogger | None = None
    clock: Callable[[], float] = time
    seed: int = 0


class Presence(StrEnum):
    """The only state of an object whose class has no chart."""

    PRESENT = "present"


PRESENT_CHART = Statechart(Presence, [], initial=Presence.PRESENT, name="present")


class Guest(Agent, Generic[ObjectT]):
    """An agent that stands for an object of another class, whose step is ``object.act(world)``.

    Everything else works as for any agent: random numbers, neighbours, messages, and `Agent.fire`
    and `Agent.decide` with the object's chart. In ``act``, the guest is ``world.acting``. The
    guest gets attributes that it lacks from the object.

    Args:
        object: The object.

    Attributes:
        object: The object.

    Raises:
        AgentError: If the object has no ``act(world)``.
    """

    object: ObjectT
    chart = PRESENT_CHART

    def __new__(cls, *, object: ObjectT, **_others: Any) -> Guest[ObjectT]:  # noqa: A002
        """Make a guest of the kind of its object."""
        if not callable(getattr(object, "act", None)):
            raise AgentError(f"{object!r} is no agent, and has no act(self, world)")
        chart = getattr(object, "chart", PRESENT_CHART)
        kind: Any = cast(Any, _kind_of)(cls, type(object), chart)
        return cast("Guest[ObjectT]", super().__new__(kind))

    def __getattr__(self, name: str) -> Any:
        """Look up in the object what the guest lacks."""
        if name.startswith("_") or "object" not in vars(self):
            raise AttributeError(name)
        return getattr(self.object, name)

    def act(self, world: Any) -> Any:
        """Let the object take its turn."""
        return cast(Any, self.object).act(world)

    @property
    def state(self) -> Any:
        """The object's state."""
        is_plain = self.chart is PRESENT_CHART
        return Presence.PRESENT if is_plain else getattr(self.object, "state", None)

    @property
    def state_history(self) -> Any:  # type: ignore[override]
        """The object's last transitions; without any, its state."""
        return list(getattr(self.object, "state_history", ())) or [self.state]

    def _begin(self) -> None:
        """Do nothing, as the object has its own state."""

    def described(self) -> Mapping[str, Any]:
        """Return what the log says about the object when it joins: its attributes."""
        return {"attributes": identify(self.attributes)} if self.attributes else {}

    def persona(self) -> str:
        """Describe the object: what its own ``persona()`` returns, if it has one."""
        describe = getattr(self.object, "persona", None)
        return str(describe()) if callable(describe) else super().persona()


@lru_cache(maxsize=256)
def _kind_of(cls: type, of: type, chart: Any) -> Any:
    """Return the kind of guests for objects of a class."""
    if vars(cls).get("_of") is not None:
        return cls
    body = {"__module__": of.__module__, "chart": chart, "_of": of}
    return type(of.__name__, (cls,), body)


class GuestChart:
    """The chart of objects, driven through the guests that stand for them.

    Args:
        chart: The chart.
    """

    def __init__(self, chart: Any) -> None:
        self._chart = chart

    def __getattr__(self, name: str) -> Any:
        """Return a method of the chart that takes the object of a guest, or anything else."""
        value = getattr(self._chart, name)
        if name not in ("fire", "fire_to", "enabled_targets"):
            return value
        return lambda guest, *arguments, **named: value(_subject(guest), *arguments, **named)


def _subject(guest: Any) -> Any:
    return guest if guest.chart is PRESENT_CHART else guest.object


def lend(guest: Any, logger: EventLogger | None, clock: Any, seed: int) -> None:
    """Pass what the run provides to an object with a method ``join``."""
    join = getattr(guest.object, "join", None)
    if callable(join):
        join(Services(TurnWriter(guest), logger, clock, seed))


class TurnWriter(ForwardingWriter):
    """The writer of an object of another class, whose calls are asked with those of the tick.

    Args:
        guest: The agent that stands for the object.
    """

    def __init__(self, guest: Any) -> None:
        super().__init__()
        self._guest = guest

    @property
    def part(self) -> Any:
        """The run's writer."""
        return self._guest.world._run_turns.answers.writer

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Answer text calls, in their order.

        Raises:
            SimulationError: If the run has no writer, without which such an agent cannot act.
        """
        if not self._guest.world._run_turns.answers.has_writer:
            cure = "pass Run(..., writer=...), or --writer ollama:MODEL on the command line"
            problem = f"asks a model, but the run has no writer: {cure}"
            raise SimulationError(f"agent {self._guest.agent_id!r} {problem}")
        return [await Writing(self._guest, call) for call in calls]

    def announce(self, *_calls: Any, **_options: Any) -> None:
        """Log nothing, as the run logs the texts."""
