"""Ticks of a world whose agents all act on the state at the beginning of the tick.

What an agent fires, sends and writes into its own fields takes effect at the end of the tick. After
its turn, its fields get their earlier values back until all agents have acted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from operator import attrgetter, is_not
from typing import Any

from prism.errors import SimulationError
from prism.randomness import RandomStream
from prism.statechart.transitions import TIMEOUT
from prism.telemetry.loggers import EventLogger
from prism.worlds._agent import Agent, Asked, Message, Waited, refuse_unawaited
from prism.worlds._asking import Answerers
from prism.worlds._fields import derived, slot_of
from prism.worlds._host import RunHost
from prism.worlds._kinds import Kind
from prism.worlds._ticks import Ticks
from prism.worlds._world import World

_CONTAINERS = frozenset((list, dict, deque, tuple))

_TICK: Any = object()
"""Stands in for a trigger: a tick of the agent's chart."""


class TogetherTicks(Ticks):
    """Runs the ticks of a world whose agents all act on the state at the beginning of the tick."""

    def __init__(
        self, world: World[Any], host: RunHost, answerers: Answerers, logger: EventLogger | None
    ) -> None:
        super().__init__(world, host, answerers, logger)
        self._made: list[tuple[tuple[int, str], Any, str, Any, Any]] = []
        self._sent: list[tuple[tuple[int, str], Message, Any]] = []
        self._written: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        self._fields = {id(kind): _OwnFields(kind) for kind in self.roster.kinds}
        for agent in host.agents:
            agent.__class__ = self._fields[id(agent._kind)].guarded

    def _steps(self, agents: Iterable[Any]) -> None:
        host, world, step_of = self._host, self._world, self._activation.step_of
        host.receive_events(self._put_off)
        host.sends = self._put_off_message
        # actions are carried out at the end of the tick, when all agents have had their turn
        turns = list(agents)
        for agent in turns:
            host.acting = agent
            step = step_of(agent)
            if step is None:
                continue

            own = self._fields[id(agent._kind)]
            before = own.lend(agent)
            running = step(world, agent)
            if running is not None:
                super()._advance(agent, running, None)
            elif host.unawaited is not None:
                refuse_unawaited(host, step)

            self._take_back(agent, own, before)

        host.acting = None

    def _time_out(self, world: Any, agent: Any) -> Any:
        """Defer a due time-out, which replaces the step, to the end of the tick.

        A tick of the chart is deferred, too, but the step still runs, since it is not yet known
        whether the tick will move the agent.
        """
        if not agent._kind.is_ticked:
            self._put_off(agent, TIMEOUT, None, None)
            return None

        self._made.append((self._place(agent), agent, _TICK, None, None))
        step = self._activation.own_step_of(agent)
        return None if step is None else step(world, agent)

    def _advance(self, owner: Any, running: Coroutine[Any, Any, Any], value: Any) -> None:
        own = self._fields[id(owner._kind)]
        before = own.lend(owner)
        if owner._place in self._written:
            own.write(owner, self._written.pop(owner._place)[1])

        super()._advance(owner, running, value)
        self._take_back(owner, own, before)

    def _take_back(self, agent: Any, own: _OwnFields, before: tuple[Any, ...]) -> None:
        """Defer what an agent wrote into its own fields to the end of the tick."""
        after = own.read(agent)
        if any(map(_differs, after, before)):
            self._written[agent._place] = agent, after

        own.write(agent, before)

    def _apply(self, asked: Asked, chosen: Any) -> Any:
        if self._host.remembers:
            self._remember_staying(asked, chosen)
        self._put_off(asked.agent, asked.trigger, asked.context, chosen)
        return chosen

    def _put_off(self, agent: Any, trigger: str, context: Any, chosen: Any) -> None:
        actor = self._host.acting or agent
        self._made.append((self._place(actor), agent, trigger, context, chosen))

    def _place(self, agent: Any) -> tuple[int, str]:
        return self.roster.place_of(agent), agent.agent_id

    def _put_off_message(self, message: Message, to: Any) -> None:
        self._sent.append((self._place(message.sender), message, to))

    def _finish(self) -> None:
        """Carry out what agents wrote, fired and sent, in the order of their places."""
        self._host.receive_events(None)
        self._host.sends = self._host.acting = None
        for agent, values in self._written.values():
            self._fields[id(agent._kind)].write(agent, values)
        self._written.clear()

        made, self._made = sorted(self._made, key=lambda each: each[0]), []
        began_in = {id(each[1]): each[1]._state for each in made}
        for _, agent, trigger, context, chosen in made:
            if trigger is _TICK:
                self._tick(agent)
            elif chosen is not None:
                state = began_in[id(agent)]
                agent._chart.fire_to(agent, trigger, chosen, context, asked_in=state)
            elif agent._chart.fire(agent, trigger, context) is not None and trigger == TIMEOUT:
                self._host.count_timeout(began_in[id(agent)])
            if trigger == TIMEOUT:
                self.roster.put_off(agent)

        sent, self._sent = sorted(self._sent, key=lambda each: each[0]), []
        for _, message, to in sent:
            self._host.deliver(message, to)

    def _in_order(self, waiting: list[Waited]) -> list[Waited]:
        return sorted(waiting, key=lambda each: self._place(each.owner))


class _OwnFields:
    """The fields of a kind, read and written together, and protected from other agents.

    Args:
        kind: The kind.

    Attributes:
        guarded: A class of the same agents that refuses what another agent writes.
    """

    def __init__(self, kind: Kind) -> None:
        names = [name for name in kind.cls.fields if name not in Agent.fields]
        self._slots = [slot_of(kind.cls, name) for name in names]
        self._read: Callable[[Any], Any] = attrgetter(*names) if names else lambda _: ()
        self._is_single = len(names) == 1
        self.guarded: type = _guarded(kind.cls)

    def read(self, agent: Any) -> tuple[Any, ...]:
        """Return the values of all fields."""
        values: Any = self._read(agent)
        return (values,) if self._is_single else values

    def lend(self, agent: Any) -> tuple[Any, ...]:
        """Return the values of all fields, and give the agent copies of the mutable ones."""
        values = self.read(agent)
        if any(type(value) in _CONTAINERS for value in values):
            self.write(agent, [_copied(each) for each in values])

        return values

    def write(self, agent: Any, values: Sequence[Any]) -> None:
        """Set all fields, bypassing the guard."""
        for slot, value in zip(self._slots, values, strict=True):
            slot.__set__(agent, value)


def _guarded(cls: type[Agent]) -> type:
    def own_random(self: Any) -> RandomStream:
        acting = self._host.acting
        if acting is not None and acting is not self:
            raise SimulationError(
                f"random of {self.agent_id!r} cannot be drawn from in the step of "
                f"{acting.agent_id!r}: in a together world, each step may draw only from its own "
                "agent's"
            )

        stream: RandomStream = cls.random.__get__(self)
        return stream

    def refuse_others(self: Any, name: str, value: Any) -> None:
        host = self._host
        if host.acting is not None and host.acting is not self:
            raise SimulationError(
                f"{cls.__name__}.{name} of {self.agent_id!r} cannot be set in the step of "
                f"{host.acting.agent_id!r}: in a together world, agents may change only "
                "themselves; send a message, or use tick_ends"
            )

        object.__setattr__(self, name, value)

    own: dict[str, Any] = {"__setattr__": refuse_others, "random": property(own_random)}
    guarded: type = derived(cls, **own)
    return guarded


def _copied(value: Any) -> Any:
    """Return a deep copy of a list, dict, deque or tuple, or else the value itself."""
    kind = type(value)
    if kind not in _CONTAINERS:
        return value
    if not _holds_containers(value):
        return value if kind is tuple else value.copy()
    if kind is dict:
        return {key: _copied(each) for key, each in value.items()}
    if kind is deque:
        return deque(map(_copied, value), value.maxlen)

    return kind(map(_copied, value))


def _differs(new: Any, old: Any) -> bool:
    """Return whether a step has changed a field; an untouched copy is no change."""
    if new is old:
        return False
    if type(new) is not type(old) or type(new) not in _CONTAINERS or len(new) != len(old):
        return True
    if getattr(new, "maxlen", None) != getattr(old, "maxlen", None):
        return True

    differ = _differs if _holds_containers(old) else is_not
    if type(new) is not dict:
        return any(map(differ, new, old))

    # a dict with another order differs, too
    return any(map(is_not, new, old)) or any(map(differ, new.values(), old.values()))


def _holds_containers(value: Any) -> bool:
    inside = value.values() if type(value) is dict else value
    return not _CONTAINERS.isdisjoint(map(type, inside))
