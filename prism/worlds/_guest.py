"""Agents that are objects of other classes, and what a run provides to them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from enum import Enum, StrEnum
from operator import attrgetter
from reprlib import repr as brief
from typing import Any, Generic, TypeVar, cast

from prism.errors import AgentError, SimulationError
from prism.reasoner._texts import BaseWriter, TextCall, Written
from prism.runs._lent import Lent
from prism.statechart import Statechart
from prism.telemetry.loggers import EventLogger
from prism.worlds._agent import Agent, Writing, require_heard_of
from prism.worlds._fields import Fields

ObjectT = TypeVar("ObjectT")

KEPT = "_kept"
OBJECT = "object"
_REFERENTS_OF_A_DICT = 2


class Presence(StrEnum):
    """The only state of an object whose class has no chart."""

    PRESENT = "present"


PRESENT_CHART = Statechart(Presence, [], initial=Presence.PRESENT, name="present")


class Proxy(Agent, Generic[ObjectT]):
    """An agent that represents an object of another class, with the object's state and history.

    Its attribute ``_kept`` names the values that are kept besides its fields.

    Args:
        object: The object.

    Attributes:
        object: The object.
    """

    object: ObjectT

    def fire(self, trigger: str, context: Any = None) -> Any:
        """Make the first transition of the object's chart that an event enables.

        Args:
            trigger: Name of the event.
            context: The event's payload, such as another agent.

        Raises:
            UnknownTriggerError: If no transition of any chart in the world has the trigger.
        """
        host = self._host or self._joined("fire")
        if host.fires is None:
            made = self._chart.fire(self.object, trigger, context)
        else:
            made = host.fires(self, trigger, context, None)
        if made is None:
            require_heard_of(host, trigger)

        return made

    def persona(self) -> str:
        """Describe the object: what its own ``persona()`` returns, if it has one."""
        own = getattr(self.object, "persona", None)
        return str(own()) if callable(own) else super().persona()

    @property
    def ticks_in_state(self) -> int:
        """The ticks since the last transition, if the object counts them."""
        return int(getattr(self.object, "ticks_in_state", 0))

    @ticks_in_state.setter
    def ticks_in_state(self, ticks: int) -> None:
        """Set the object's own count."""
        cast(Any, self.object).ticks_in_state = ticks

    @property
    def _subject(self) -> Any:
        return self if type(self).chart is PRESENT_CHART else self.object

    @property
    def _state(self) -> Any:
        subject = self._subject
        return Presence.PRESENT if subject is self else subject.state

    @_state.setter
    def _state(self, state: Enum) -> None:
        subject = self._subject
        if subject is not self:
            subject.state = state

    @property
    def _state_history(self) -> Sequence[Any]:
        # if the object has no history, its state shows whether it has moved
        return getattr(self.object, "state_history", None) or (self._state,)


class Guest(Proxy[ObjectT]):
    """An agent that represents an object of another class, such as one that carries out a workflow.

    The object's ``act(world)`` is its step in every state, and ``snapshot()`` and ``restore(data)``
    define what is kept. Everything else works as for any agent: random numbers, neighbours,
    messages, and `Agent.fire` and `Agent.decide` with the object's chart. In ``act``, the guest is
    ``world.acting``. Attributes that the guest lacks are looked up in the object.

    Args:
        object: The object.

    Attributes:
        object: The object.
    """

    def __getattr__(self, name: str) -> Any:
        """Look up in the object what the guest lacks."""
        if name.startswith("_") or name == OBJECT:
            raise AttributeError(name)

        return getattr(self.object, name)

    @property
    def _kept(self) -> Any:
        return cast(Any, self.object).snapshot()

    @_kept.setter
    def _kept(self, data: Any) -> None:
        cast(Any, self.object).restore(data)


def as_agent(someone: Any, where: str, kinds: dict[Any, type]) -> Agent:
    """Return an agent for any member of a population. A guest gets the kind of its object.

    Args:
        someone: An agent, or an object of another class.
        where: Where it comes from, for messages.
        kinds: Kinds of guests. New ones are added.

    Raises:
        AgentError: If it cannot be an agent; the message says what its class lacks.
    """
    agent = someone if isinstance(someone, Agent) else _invited(someone, where)
    if isinstance(agent, Guest):
        _require_participant(agent.object)
        chart = getattr(agent.object, "chart", PRESENT_CHART)
        cls = type(agent)
        key = cls, type(agent.object), id(chart)
        if key not in kinds:
            kinds[key] = _kind_of(cls, type(agent.object), chart)

        agent.__class__ = kinds[key]

    return agent


def join(guests: Iterable[Any], lend: Callable[[BaseWriter], Lent]) -> None:
    """Give objects of other classes access to the run, once, before the first round.

    Raises:
        AgentError: If an object cannot be restored from its snapshot.
    """
    checked: set[type] = set()
    for guest in guests:
        take = getattr(guest.object, "join", None)
        if callable(take):
            take(lend(TurnWriter(guest)))
        if type(guest) not in checked:
            checked.add(type(guest))
            _require_restoring(guest.object)


def _require_restoring(someone: Any) -> None:
    kept = someone.snapshot()
    someone.restore(deepcopy(kept))
    again = someone.snapshot()
    if again != kept:
        raise AgentError(
            f"{type(someone).__name__}.restore does not restore what snapshot() returned: "
            f"{brief(kept)} became {brief(again)}"
        )


class TurnWriter(BaseWriter):
    """The writer of an object of another class, whose calls are asked with those of the tick.

    Args:
        guest: The agent that represents the object.
    """

    def __init__(self, guest: Any) -> None:
        super().__init__()
        self._guest = guest

    async def answer(self, calls: Sequence[TextCall]) -> list[Written]:
        """Answer text calls, in their order.

        Raises:
            SimulationError: If the run has no writer, without which such an agent cannot act.
        """
        if not self._guest._host.has_writer:
            raise SimulationError(
                f"agent {self._guest.agent_id!r} asks a model, but the run has no writer: pass "
                "Run(..., writer=...), or --writer ollama:MODEL on the command line"
            )

        return [await Writing(self._guest, call) for call in calls]

    async def write_many(
        self,
        calls: Sequence[TextCall],
        *,
        logger: EventLogger | None = None,  # noqa: ARG002 - the run announces texts
    ) -> list[Written]:
        """Answer text calls, in their order. The run logs the texts."""
        return await self.answer(calls)


def act(world: Any, guest: Any) -> Any:
    """Let an object take its turn; this is the step of every guest."""
    return guest.object.act(world)


def timed(steps: Mapping[Any, Callable[[Any, Any], Any]]) -> Callable[[Any, Any], Any]:
    """Return the turn of a proxy: a time-out if one is due, or else the step of its object's state.

    Args:
        steps: The steps by state.
    """

    def turn(world: Any, proxy: Any) -> Any:
        before = proxy.object.state
        if proxy._chart.tick(proxy.object) is not None:
            proxy._host.count_timeout(before)
            return None

        step = steps.get(before)
        return None if step is None else step(world, proxy)

    return turn


def passed_on(cls: type[Proxy[Any]], objects: Iterable[Any]) -> dict[str, property]:
    """Return a property for each public attribute of objects that a class of proxies lacks.

    With them, proxies need no method that looks up missing attributes, which would slow down every
    attribute.
    """
    sizes: dict[type, int] = {}
    names: dict[str, None] = {}
    for each in objects:
        kind, size = type(each), _plain_size(each)
        if kind not in sizes:
            sizes[kind] = size
            names.update(dict.fromkeys(dir(each)))
        elif size == 0 or size != sizes[kind]:
            names.update(dict.fromkeys(getattr(each, "__dict__", ())))

    lacked = (name for name in names if not (name.startswith("_") or hasattr(cls, name)))
    return {name: _passed_on(name) for name in lacked}


def _plain_size(each: Any) -> int:
    """Return how many attributes an object has, or 0 if objects of equal size might differ.

    To ask for its ``__dict__`` would slow down every access to the object from then on.
    """
    # objects of prism's own classes have all their attributes from the start, and perhaps more
    if not type(each).__module__.startswith("prism."):
        return 0

    # an object whose attributes are in a dict refers only to the dict and its class
    size = len(gc.get_referents(each))
    return size if size > _REFERENTS_OF_A_DICT else 0


def _passed_on(name: str) -> property:
    place = f"{OBJECT}.{name}"

    def refuse(proxy: Proxy[Any], _value: Any) -> None:
        kind = type(proxy.object).__name__
        raise AttributeError(f"{name!r} is an attribute of {kind}: set it there, as .{place} = ...")

    return property(attrgetter(place), refuse)


def _invited(someone: Any, where: str) -> Guest[Any]:
    if not callable(getattr(someone, "act", None)):
        raise AgentError(
            f"{where} must return agents, or objects with act(world), snapshot() and "
            f"restore(data); got {someone!r}"
        )

    return Guest(object=someone)


_WANTED: Mapping[str, str] = {
    "act": "act(self, world), its turn in every tick",
    "snapshot": "snapshot(self), which returns the object's state as plain data",
    "restore": "restore(self, data), which restores the object from that data",
}


def _require_participant(someone: Any) -> None:
    lacks = [text for name, text in _WANTED.items() if not callable(getattr(someone, name, None))]
    if lacks:
        raise AgentError(
            f"{type(someone).__name__} cannot take part in a world, since its state would be "
            f"lost on resuming: give it {'; '.join(lacks)}"
        )


def _kind_of(cls: type, of: type, chart: Any) -> type:
    body = {"__slots__": (), "__module__": of.__module__, "chart": chart}
    return cast(type, Fields(of.__name__, (cls,), body))
