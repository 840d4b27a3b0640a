"""The view that the content of an SCXML document has of a step, and what it can do there.

Its guards and actions get an `Event` as context. Through the event's session they ask which states
are active, raise events, send some that come later, and reach the data, which lie in the agent's
memory (SCXML, section 5).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from prism.expressions import Budget
from prism.statechart._engine.machine import EVENTLESS
from prism.statechart._engine.memory import memory_of
from prism.statechart._identity import identify
from prism.statechart.transitions import ALWAYS, Edge

PROCESSOR = "http://www.w3.org/TR/scxml/#SCXMLEventProcessor"
"""The processor that sends events to the agent itself (SCXML, appendix C.1)."""

SHORT_PROCESSOR = "scxml"
"""Its short name."""

_NO_EVENT = ("begin", ALWAYS)


class Event(dict[str, Any]):
    """An event as content of a document sees it: ``_event`` (SCXML, 5.10.1).

    As a dict it has the event's data, which is what logs and histories keep of it.

    Args:
        name: Its name; None while nothing has happened yet.
        data: Its data, as JSON has them.
        kind: ``platform``, ``internal`` or ``external``.
        sendid: The id of what sent it.
        session: The agent's session; None where nothing is done.
    """

    __slots__ = ("data", "kind", "name", "sendid", "session")

    def __init__(
        self,
        name: str | None,
        data: Any = None,
        kind: str = "external",
        sendid: str | None = None,
        session: Session | None = None,
    ) -> None:
        super().__init__(identify(data) or {})
        self.name: str | None = name
        self.data: Any = data
        self.kind: str = kind
        self.sendid: str | None = sendid
        self.session: Session | None = session

    def fields(self, own_address: str, processor: str) -> dict[str, Any] | None:
        """Return what expressions see; None while nothing has happened.

        Args:
            own_address: Where events for the agent go.
            processor: What the document calls what sends them.
        """
        if self.name is None:
            return None
        is_sent = self.kind == "external" and self.sendid is not None
        return {
            "name": self.name,
            "type": self.kind,
            "sendid": (self.sendid or None) if self.kind != "internal" else None,
            "origin": own_address if is_sent else None,
            "origintype": processor if is_sent else None,
            "invokeid": None,
            "data": self.data,
        }


class Session:
    """One step of one agent, with all steps that follow without another event.

    Args:
        chart: The chart's interpreter.
        agent: The agent.
        raised: Where internal events are queued.

    Attributes:
        agent: The agent.
        budget: What all expressions of the step may make and look at.
        failed: Guards that have failed since the last step; each says so once.
    """

    def __init__(self, chart: Any, agent: Any, raised: deque[tuple[str, Any]]) -> None:
        self._chart = chart
        self._raised = raised
        self.agent = agent
        self.budget: Budget = Budget()
        self.failed: set[int] = set()

    @property
    def memory(self) -> dict[str, Any]:
        """The chart's memory of the agent."""
        return memory_of(self._chart.definition.name, self.agent)

    def event_of(self, trigger: Any, context: Any) -> Event:
        """Return an event of this session that was fired with a context."""
        event = self.event_at(trigger, context)
        event.session = self
        return event

    @staticmethod
    def event_at(trigger: Any, context: Any) -> Event:
        """Return a fired event as a document sees it, with its context as data."""
        if isinstance(context, Event):
            return context
        name = None if trigger is EVENTLESS or trigger in _NO_EVENT else trigger
        is_scalar = context is None or isinstance(context, (str, int, float))
        return Event(name, context if is_scalar else identify(context))

    def is_in(self, text: str) -> bool:
        """Return whether a state is active at this instant; an unknown one never is."""
        number = self._chart._nested.tree.numbers.get(text)
        return number is not None and number in self._chart._active_now(self.agent)

    def done(self, text: str) -> Iterator[str]:
        """Yield the events of what is done when a final state is entered."""
        planner = self._chart._nested.planner
        parent = planner.tree.nodes[planner.tree.numbers[text]].parent
        yield from planner.done(parent, self._chart._active_now(self.agent))

    def raise_event(
        self, name: str, data: Any = None, kind: str = "internal", sendid: str | None = None
    ) -> None:
        """Queue an internal event, which is processed before the agent has settled."""
        self._raised.append((name, Event(name, data, kind, sendid, self)))

    def send(self, name: str, data: Any, sendid: str, ticks: float) -> None:
        """Send an event to the agent itself, behind this step or after some ticks."""
        if ticks <= 0:
            event = Event(name, data, sendid=sendid)
            self._chart._fire_or_queue(self.agent, name, event)
            return

        memory = self.memory
        due = memory.setdefault("ticks", 0) + ticks
        waiting = memory.setdefault("sends", [])
        waiting.append({"due": due, "event": name, "data": data, "id": sendid})

    def cancel(self, sendid: str) -> None:
        """Drop the delayed events that were sent with an id."""
        memory = self.memory
        waiting = memory.get("sends", [])
        memory["sends"] = [each for each in waiting if each["id"] != sendid]

    def report(self, error: Exception) -> None:
        """Log a fault; the rest of the step goes on."""
        state = self.agent.state
        self._chart._reporter.action_failed(error, self.agent, Edge(state, state, "content"))


def next_due(memory: Mapping[str, Any]) -> dict[str, Any] | None:
    """Remove and return the event that is due first; None if none is due."""
    waiting: list[dict[str, Any]] = memory.get("sends", [])
    due = [each for each in waiting if each["due"] <= memory.get("ticks", 0)]
    if not due:
        return None

    first = min(due, key=lambda each: float(each["due"]))
    waiting.remove(first)
    return first
