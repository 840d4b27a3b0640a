"""The data of an SCXML document, and its expressions (SCXML, section 5).

Data lie in the agent's memory, as JSON has them. Expressions are evaluated by `prism.expressions`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from prism.errors import DefinitionError
from prism.expressions import Budget, Dialect, Expression, ExpressionError, MalformedError
from prism.statechart._engine.documents import PROCESSOR, SHORT_PROCESSOR, Event, Session
from prism.statechart._engine.memory import FIELD
from prism.statechart._identity import given_name
from prism.statechart._nesting import leaf_texts
from prism.statechart.transitions import DocumentPart

DIALECTS: Mapping[str, Dialect] = {
    "python": Dialect(frozenset({"In"}), frozenset({"_event", "_ioprocessors"})),
    "ecmascript": Dialect(frozenset({"In"}), None, is_ecmascript=True),
    "null": Dialect(frozenset({"In"})),
}
"""Data models that are read."""

DEFAULT_LANGUAGE = "ecmascript"
"""The data model of a document that names none, as in other tools."""

SYSTEM = frozenset({"_event", "_name", "_sessionid", "_ioprocessors", "In"})
"""Variables that nobody may set."""

MOST_IN_A_VALUE = 200_000
"""Characters that one variable may hold, as `Budget` counts them."""

_STEP = 4
_DELAY = re.compile(r"\+?(\d+\.?\d*|\.\d+)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class ContentError(ExpressionError):
    """Content of a document failed; the document gets an event about it (SCXML, 5.10.2).

    Args:
        problem: What is wrong.
        event: Name of the event.
        sendid: The id of the ``<send>`` that failed.
    """

    def __init__(
        self, problem: str, event: str = "error.execution", sendid: str | None = None
    ) -> None:
        super().__init__(problem)
        self.event: str = event
        self.sendid: str | None = sendid


def seconds_of(delay: str) -> float | None:
    """Return a duration such as ``1.5s`` in seconds; None for any other text (CSS 2, 4.3.11)."""
    found = _DELAY.fullmatch(delay.strip())
    return float(found[1]) * _SECONDS[found[2]] if found else None


@dataclass(frozen=True)
class Value:
    """An expression of a document.

    Args:
        source: The expression as it is written.
        expression: The expression; None if the source is not one.
        problem: Why it is not one, which is told when it is evaluated.
    """

    source: str
    expression: Expression | None
    problem: str = ""

    @classmethod
    def read(cls, source: str, dialect: Dialect) -> Value:
        """Read an expression; a source that is not one fails when it is evaluated.

        Raises:
            ExpressionError: If the expression does what documents may not do.
        """
        try:
            return cls(source, Expression(source, dialect))
        except MalformedError as error:
            return cls(source, None, str(error))


class Datum(NamedTuple):
    """A variable that a document declares: its name and its first value."""

    name: str
    value: Value | None = None
    literal: Any = None


@dataclass(frozen=True)
class Model:
    """The data and names that all content of a document shares.

    Args:
        name: The document's name.
        dialect: How its expressions are written.
        tick: Seconds of one tick.
        data: Its variables.
        inside: The leaves inside each state, for ``In`` where no step is made.
        is_late: Whether variables of a state get their values when it is entered first.
        first: The variables that get them at the beginning.
    """

    name: str
    dialect: Dialect
    tick: float
    data: tuple[Datum, ...] = field(default=(), hash=False)
    inside: Mapping[str, frozenset[str]] = field(default_factory=dict, hash=False)
    is_late: bool = False
    first: tuple[Datum, ...] = field(default=(), hash=False)

    def value(self, value: Value, event: Event, agent: Any) -> Any:
        """Return what an expression gives now.

        Raises:
            ExpressionError: If it fails.
        """
        session = event.session
        budget = Budget() if session is None else session.budget
        budget.spend(_STEP)
        if value.expression is None:
            raise ExpressionError(f"{value.source!r} {value.problem}")

        return value.expression.value(self._variables(event, agent), budget)

    def _variables(self, event: Event, agent: Any) -> dict[str, Any]:
        session = event.session
        if session is not None:
            self.start(session)
            data = session.memory["data"]
        else:
            data = (getattr(agent, FIELD, None) or {}).get("data", {})

        own = self.address(agent)
        address = {"location": own}
        # python-statemachine, whose data model is Python, calls it by its short name
        processor = PROCESSOR if self.dialect.is_ecmascript else SHORT_PROCESSOR
        return {
            **data,
            "_event": event.fields(own, processor),
            "_name": self.name,
            "_sessionid": self.session_id(agent),
            "_ioprocessors": {SHORT_PROCESSOR: address, PROCESSOR: address},
            "In": _Active(self, event, agent),
        }

    def session_id(self, agent: Any) -> str:
        """Return what the document calls the agent's session."""
        return given_name(agent) or "session"

    def address(self, agent: Any) -> str:
        """Return where events for the agent go."""
        return f"#_scxml_{self.session_id(agent)}"

    def start(self, session: Session) -> None:
        """Set the variables to their first values, once."""
        memory = session.memory
        if "data" in memory:
            return

        memory["data"] = {datum.name: None for datum in self.data}
        self.bind(self.first, session)

    def bind(self, data: Iterable[Datum], session: Session) -> None:
        """Set variables to their first values; the document gets an event about each failure."""
        for datum in data:
            try:
                found = datum.literal
                if datum.value is not None:
                    event = Event(None, session=session)
                    found = self.value(datum.value, event, session.agent)
                self.put(session, datum.name, found)
            except ExpressionError as error:
                session.raise_event("error.execution", None, "platform")
                session.report(error)

    def put(self, session: Session, name: str, value: Any) -> None:
        """Set a variable to a copy of a value.

        Raises:
            ExpressionError: If it holds what JSON does not have, or too much.
        """
        Budget(MOST_IN_A_VALUE).look_through(value)
        session.budget.look_through(value)
        session.memory["data"][name] = plain(value)

    def assign(self, location: Location, value: Any, event: Event, agent: Any) -> None:
        """Set what a location names.

        Raises:
            ExpressionError: If there is no such location, or the value cannot be kept.
        """
        session = event.session
        assert session is not None
        self.start(session)
        data = session.memory["data"]
        if location.name not in data:
            raise ContentError(
                f"there is no variable {location.name!r} to assign to: declare it with <data>"
            )
        if not location.parts:
            self.put(session, location.name, value)
            return

        whole = plain(data[location.name])
        at = whole
        keys = [
            part if isinstance(part, str) else self.value(part, event, agent)
            for part in location.parts
        ]
        try:
            for key in keys[:-1]:
                at = at[key]
            at[keys[-1]] = value
        except (KeyError, IndexError, TypeError) as error:
            raise ContentError(
                f"there is no {location.source!r} to assign to: {type(error).__name__}"
            ) from None
        self.put(session, location.name, whole)


class _Active(dict[str, bool]):
    """The function ``In`` of expressions, as a look-up."""

    def __init__(self, model: Model, event: Event, agent: Any) -> None:
        super().__init__()
        self._model = model
        self._event = event
        self._agent = agent

    def __missing__(self, text: Any) -> bool:
        """Return whether a state is active."""
        session = self._event.session
        if session is not None:
            return session.is_in(str(text))
        leaves = self._model.inside.get(str(text), frozenset())
        return not leaves.isdisjoint(leaf_texts(self._agent.state))


class Location(NamedTuple):
    """The target of ``<assign>``: a variable, or something inside it.

    Args:
        source: The location as it is written.
        name: The variable.
        parts: Keys and indices inside it.
    """

    source: str
    name: str
    parts: tuple[str | Value, ...] = ()

    @classmethod
    def read(cls, source: str, dialect: Dialect) -> Location:
        """Read a location.

        Raises:
            ExpressionError: If it is not one.
        """
        try:
            node: ast.expr = ast.parse(source.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise MalformedError(f"{source!r} is not a location") from None

        parts: list[str | Value] = []
        while not isinstance(node, ast.Name):
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
            elif isinstance(node, ast.Subscript):
                parts.append(Value.read(ast.unparse(node.slice), _python_of(dialect)))
            else:
                raise MalformedError(f"{source!r} is not a location")
            node = node.value
        if node.id in SYSTEM or node.id.startswith("_"):
            raise MalformedError(f"{source!r} is a read-only variable")

        return cls(source, node.id, tuple(reversed(parts)))


def _python_of(dialect: Dialect) -> Dialect:
    return Dialect(dialect.look_ups, dialect.dotted)


@dataclass(frozen=True)
class Condition(DocumentPart):
    """The ``cond`` of a transition."""

    model: Model
    test: Value

    @property
    def __name__(self) -> str:
        """Its name in logs, pictures and explanations."""
        return self.test.source

    def __call__(self, agent: Any, context: Any) -> bool:
        """Return whether it holds; the document gets an event about a failure."""
        event = Session.event_at(None, context)
        try:
            return bool(self.model.value(self.test, event, agent))
        except ExpressionError:
            if event.session is not None and id(self) not in event.session.failed:
                event.session.failed.add(id(self))
                event.session.raise_event("error.execution", None, "platform")
            raise


def plain(value: Any) -> Any:
    """Return a copy of a value that shares nothing with it.

    Raises:
        ExpressionError: If it holds what JSON does not have.
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict) and not isinstance(value, _Active):
        if all(isinstance(key, str) for key in value):
            return {key: plain(each) for key, each in value.items()}
        raise ContentError("the keys of a mapping must be text, as in JSON")
    raise ContentError(f"values must have a type of JSON, got {type(value).__name__}")


def literal_of(text: str, dialect: Dialect) -> Any:
    """Return what the text of ``<data>`` or ``<content>`` stands for: JSON, a value, or itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return plain(Expression(text, dialect).value({}))
    except ExpressionError:
        return " ".join(text.split())


def require_tick(tick: object) -> float:
    """Return the seconds of a tick.

    Raises:
        DefinitionError: If it is not a duration.
    """
    seconds = seconds_of(tick) if isinstance(tick, str) else None
    if not seconds:
        raise DefinitionError(f"tick must be a duration such as '1s' or '100ms', got {tick!r}")
    return seconds
