"""The executable content of an SCXML document (SCXML, sections 4 and 6.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from prism.expressions import ExpressionError
from prism.statechart._engine.documents import PROCESSOR, SHORT_PROCESSOR, Event, Session
from prism.statechart.formats._scxml_data import (
    SYSTEM,
    ContentError,
    Datum,
    Location,
    Model,
    Value,
    plain,
    seconds_of,
)
from prism.statechart.transitions import DocumentPart
from prism.telemetry._loggers import inform_standard

_TYPES = frozenset({SHORT_PROCESSOR, PROCESSOR, PROCESSOR.partition("#")[0]})
_INTERNAL = "#_internal"


@dataclass(frozen=True)
class Run:
    """The context in which one block of content runs."""

    model: Model
    agent: Any
    event: Event

    @property
    def session(self) -> Session:
        """The agent's session."""
        assert self.event.session is not None
        return self.event.session

    def value(self, value: Value) -> Any:
        """Return what an expression gives."""
        return self.model.value(value, self.event, self.agent)

    def text(self, literal: str | None, value: Value | None) -> str | None:
        """Return an attribute that is given as it is, or by an expression."""
        if value is None:
            return literal
        found = self.value(value)
        if not isinstance(found, str):
            raise ContentError(f"{value.source!r} must evaluate to text, got {found!r}")
        return found

    def all(self, steps: Iterable[Step]) -> None:
        """Run steps, one after the other."""
        for step in steps:
            self.session.budget.spend(1)
            step.run(self)


class Step(Protocol):
    """One element of executable content."""

    def run(self, run: Run, /) -> None:
        """Do it."""


@dataclass(frozen=True)
class Block(DocumentPart):
    """The content of one ``<onentry>``, ``<onexit>`` or transition.

    A failure ends the block, and the document gets an event about it.
    """

    model: Model
    steps: tuple[Step, ...]

    def __call__(self, agent: Any, context: Any) -> None:
        """Run it."""
        run = Run(self.model, agent, context)
        try:
            run.all(self.steps)
        except ContentError as error:
            run.session.raise_event(error.event, None, "platform", error.sendid)
            raise
        except ExpressionError:
            run.session.raise_event("error.execution", None, "platform")
            raise


@dataclass(frozen=True)
class Start(DocumentPart):
    """The first content of every top-level state: it initializes the document's data."""

    model: Model
    label: ClassVar[str] = "data"

    def __call__(self, agent: Any, context: Any) -> None:  # noqa: ARG002
        """Begin, if nothing has yet."""
        self.model.start(context.session)


@dataclass(frozen=True)
class LateStart(DocumentPart):
    """The first content of a state with late binding."""

    model: Model
    state: str
    data: tuple[Datum, ...]
    label: ClassVar[str] = "data"

    def __call__(self, agent: Any, context: Any) -> None:  # noqa: ARG002
        """Give the state's variables their values when it is entered first."""
        bound = context.session.memory.setdefault("bound", [])
        if self.state not in bound:
            bound.append(self.state)
            self.model.bind(self.data, context.session)


@dataclass(frozen=True)
class Payload:
    """The data of an event: ``namelist``, ``<param>`` and ``<content>``."""

    params: tuple[tuple[str, Value], ...] = ()
    names: tuple[tuple[str, Value], ...] = ()
    content: Value | None = None
    literal: Any = field(default=None, hash=False)

    def data(self, run: Run) -> Any:
        """Return the data, without parameters that fail; the document gets an event about each."""
        if self.content is not None:
            return plain(run.value(self.content))
        if self.literal is not None:
            return plain(self.literal)
        if not (self.params or self.names):
            return None

        found = {name: plain(run.value(value)) for name, value in self.names}
        for name, value in self.params:
            try:
                found[name] = plain(run.value(value))
            except ExpressionError as error:
                run.session.raise_event("error.execution", None, "platform")
                run.session.report(error)
        return found or None


@dataclass(frozen=True)
class Done(DocumentPart):
    """The last content of a final state: it raises that the state around it is done."""

    model: Model
    state: str
    payload: Payload | None
    label: ClassVar[str] = "done"

    def __call__(self, agent: Any, context: Any) -> None:
        """Raise the events."""
        run = Run(self.model, agent, context)
        data, failure = None, None
        try:
            data = None if self.payload is None else self.payload.data(run)
        except ExpressionError as error:
            run.session.raise_event("error.execution", None, "platform")
            failure = error
        for name in run.session.done(self.state):
            run.session.raise_event(name, data, "platform")
            data = None
        if failure is not None:
            raise failure


# Elements


@dataclass(frozen=True)
class Raise:
    """``<raise>``: an event that is processed before the agent has settled."""

    event: str

    def run(self, run: Run, /) -> None:
        """Raise it."""
        run.session.raise_event(self.event)


@dataclass(frozen=True)
class Log:
    """``<log>``: a line for prism's logger of the standard library."""

    label: str
    value: Value | None

    def run(self, run: Run, /) -> None:
        """Write it."""
        shown = "" if self.value is None else run.value(self.value)
        inform_standard(f"{run.model.name}: {self.label + ': ' if self.label else ''}{shown}")


@dataclass(frozen=True)
class Assign:
    """``<assign>``: gives a variable a value."""

    location: Location | None
    problem: str
    value: Value | None
    literal: Any = field(default=None, hash=False)

    def run(self, run: Run, /) -> None:
        """Set it."""
        if self.location is None:
            raise ContentError(self.problem)
        found = self.literal if self.value is None else run.value(self.value)
        run.model.assign(self.location, found, run.event, run.agent)


@dataclass(frozen=True)
class If:
    """``<if>`` with its branches; the last may have no test."""

    branches: tuple[tuple[Value | None, tuple[Step, ...]], ...]

    def run(self, run: Run, /) -> None:
        """Run the first branch whose test holds; one that fails gives the document an event."""
        for test, steps in self.branches:
            if test is None or self._holds(test, run):
                run.all(steps)
                return

    def _holds(self, test: Value, run: Run) -> bool:
        try:
            return bool(run.value(test))
        except ExpressionError as error:
            run.session.raise_event("error.execution", None, "platform")
            run.session.report(error)
            return False


@dataclass(frozen=True)
class Foreach:
    """``<foreach>``: content for each item of a list."""

    array: Value
    item: str
    index: str | None
    steps: tuple[Step, ...]

    def run(self, run: Run, /) -> None:
        """Run the content for a copy of the list."""
        run.model.start(run.session)
        found = run.value(self.array)
        if not isinstance(found, (list, tuple)):
            raise ContentError(f"{self.array.source!r} must evaluate to a list, got {found!r}")
        for name in (self.item, self.index):
            if name is not None and (not name.isidentifier() or name in SYSTEM):
                raise ContentError(f"{name!r} cannot be a variable of <foreach>")

        data = run.session.memory["data"]
        for name in (self.item, self.index):
            if name is not None:
                data.setdefault(name, None)
        for number, each in enumerate(plain(found)):
            run.model.put(run.session, self.item, each)
            if self.index is not None:
                run.model.put(run.session, self.index, number)
            run.all(self.steps)


@dataclass(frozen=True)
class Send:
    """``<send>``: an event for the agent itself, now or later."""

    event: str | None
    event_value: Value | None
    target: str | None
    target_value: Value | None
    type: str | None
    type_value: Value | None
    delay: str | None
    delay_value: Value | None
    id: str | None
    id_location: Location | None
    id_problem: str
    payload: Payload

    def run(self, run: Run, /) -> None:
        """Send it."""
        sendid = self._sendid(run)
        try:
            self._send(run, sendid)
        except ContentError as error:
            raise ContentError(str(error), error.event, sendid or None) from None
        except ExpressionError as error:
            raise ContentError(str(error), sendid=sendid or None) from None

    def _sendid(self, run: Run) -> str:
        if self.id_problem:
            raise ContentError(self.id_problem)
        if self.id_location is None:
            return self.id or ""
        memory = run.session.memory
        number = memory["sent"] = memory.get("sent", 0) + 1
        sendid = f"send.{number}"
        run.model.assign(self.id_location, sendid, run.event, run.agent)
        return sendid

    def _send(self, run: Run, sendid: str) -> None:
        name = run.text(self.event, self.event_value)
        target = run.text(self.target, self.target_value)
        kind = run.text(self.type, self.type_value)
        delay = run.text(self.delay, self.delay_value)
        data = self.payload.data(run)
        if kind not in {None, "", *_TYPES}:
            raise ContentError(f"events of type {kind!r} cannot be sent: leave out type")
        if not name:
            raise ContentError("<send> needs an event: name it with event or eventexpr")
        seconds = seconds_of(delay) if delay else 0.0
        if seconds is None:
            raise ContentError(f"the delay must be a duration such as '1s', got {delay!r}")

        if target == _INTERNAL:
            if seconds:
                raise ContentError(f"an event to {_INTERNAL} cannot be delayed: leave out delay")
            run.session.raise_event(name, data, "internal", sendid)
        elif target in {None, "", run.model.address(run.agent)}:
            run.session.send(name, data, sendid, seconds / run.model.tick)
        elif target is not None and target.startswith("#_"):
            raise ContentError(f"nobody receives events at {target!r}", "error.communication")
        else:
            raise ContentError(f"an agent can send events only to itself, not to {target!r}")


@dataclass(frozen=True)
class Cancel:
    """``<cancel>``: drops the delayed events that were sent with an id."""

    id: str | None
    value: Value | None

    def run(self, run: Run, /) -> None:
        """Drop it."""
        sendid = run.text(self.id, self.value)
        if sendid:
            run.session.cancel(sendid)
