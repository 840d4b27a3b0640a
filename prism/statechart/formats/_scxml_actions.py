"""The executable content and the data of an SCXML document, read from its elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from reprlib import repr as brief
from typing import Any

from prism.expressions import ExpressionError, MalformedError
from prism.statechart.formats._scxml_content import (
    Assign,
    Block,
    Cancel,
    Foreach,
    If,
    Log,
    Payload,
    Raise,
    Send,
    Step,
)
from prism.statechart.formats._scxml_data import (
    DIALECTS,
    SYSTEM,
    Datum,
    Location,
    Model,
    Value,
    literal_of,
    seconds_of,
)
from prism.statechart.formats._scxml_xml import Element

OWN_TIMER = "prism."
"""Beginning of the ids of events that prism's own documents send for ``after``."""

_NOT_HERE = ("http:", "https:", "#_parent")


@dataclass
class Problems:
    """The problems of a document, and notes on it, each with its line."""

    found: list[tuple[int, str]] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)

    def add(self, element: Element, message: str) -> None:
        """Add a problem, which keeps the document from being read."""
        self.found.append((element.line, message))

    def note(self, element: Element, message: str) -> None:
        """Add a note, which does not."""
        self.notes.append((element.line, message))


class ContentReader:
    """Reads content, and collects the problems.

    Args:
        model: What all content has in common; with the data once they are declared.
        problems: Where problems go.
    """

    def __init__(self, model: Model, problems: Problems) -> None:
        self.model: Model = model
        self._problems = problems
        self._blocks: dict[int, Block | None] = {}

    # Data

    def declare(self, root: Element) -> None:
        """Read the variables of all data models."""
        models = [each for each in root.walk() if each.tag == "datamodel"]
        found = tuple(datum for each in models for datum in self._data(each))
        self._require_distinct(models)
        first = self.data_of(root) if self.model.is_late else found
        self.model = replace(self.model, data=found, first=first)

    def _require_distinct(self, models: Iterable[Element]) -> None:
        lines: dict[str, int] = {}
        for element in (each for model in models for each in model.all("data")):
            name = element.attributes.get("id", "")
            # one without a name is told already
            if name and name in lines:
                self._problems.add(
                    element,
                    f"the variable {name!r} is already declared on line {lines[name]}: rename one "
                    "of the two",
                )
            lines[name] = element.line

    @property
    def has_data(self) -> bool:
        """Whether the document has variables."""
        return bool(self.model.data)

    def data_of(self, element: Element) -> tuple[Datum, ...]:
        """Return the variables that a state declares."""
        return tuple(datum for each in element.all("datamodel") for datum in self._data(each))

    def _data(self, model: Element) -> Iterator[Datum]:
        for element in model.children:
            if element.tag != "data":
                self._problems.add(
                    element, f"<{element.tag}> in <datamodel> is not supported: use <data>"
                )
                continue
            name = element.attributes.get("id", "")
            if not name.isidentifier() or name in SYSTEM:
                self._problems.add(
                    element,
                    f"{name!r} cannot be the id of a variable: use a Python identifier other than "
                    f"{', '.join(sorted(SYSTEM))}",
                )
                continue
            value, literal = self._given(element)
            yield Datum(name, value, literal)

    def _given(self, element: Element) -> tuple[Value | None, Any]:
        """Return what an element's ``expr`` or its text stands for."""
        if element.children:
            self._problems.add(
                element, f"XML in <{element.tag}> is not supported: write it as text"
            )
        if "expr" in element.attributes:
            return self.value(element, element.attributes["expr"]), None
        text = element.text.strip()
        return None, literal_of(text, self.model.dialect) if text else None

    def value(self, element: Element, source: str, *, is_location: bool = False) -> Value | None:
        """Read an expression, or what a location names."""
        if self.model.dialect == DIALECTS["null"] and "In(" not in source:
            self._problems.add(
                element,
                f"the null data model has no expressions except In('state'), got {source!r}",
            )
            return None
        try:
            dialect = self.model.dialect
            value = Value.read(source, replace(dialect, dotted=None) if is_location else dialect)
        except ExpressionError as error:
            self._problems.add(element, f"the expression {brief(source)} {error}")
            return None
        if value.expression is None:
            self._problems.note(
                element, f"{brief(source)} {value.problem}, and fails when it is reached"
            )
        return value

    # Content

    def block(self, element: Element, is_own: bool = False) -> Block | None:
        """Read the content of an element; None if it has none.

        Args:
            element: Such as ``<onentry>``.
            is_own: Whether prism has written the document, whose timers are its own.
        """
        if id(element) not in self._blocks:
            children = [each for each in element.children if not (is_own and _is_timer(each))]
            steps = self._steps(children)
            self._blocks[id(element)] = Block(self.model, steps) if steps else None
        return self._blocks[id(element)]

    def donedata(self, element: Element) -> Payload | None:
        """Return what a final state says when the state around it is done."""
        for each in element.all("donedata"):
            return self._payload(each)
        return None

    def _steps(self, elements: Iterable[Element]) -> tuple[Step, ...]:
        found = [self._step(each) for each in elements]
        return tuple(each for each in found if each is not None)

    def _step(self, element: Element) -> Step | None:
        read = getattr(self, f"_{element.tag}", None) if element.tag in _READ else None
        if " " in element.tag:
            self._problems.note(element, f"<{element.tag}> is ignored")
        elif read is None:
            self._problems.add(element, f"<{element.tag}> is not supported: remove it")
        else:
            found: Step | None = read(element)
            return found
        return None

    def _raise(self, element: Element) -> Step | None:
        event = element.attributes.get("event", "")
        if not event:
            self._problems.add(element, "<raise> needs the attribute event: name the event")
        return Raise(event)

    def _log(self, element: Element) -> Step | None:
        return Log(element.attributes.get("label", ""), self._optional(element, "expr"))

    def _assign(self, element: Element) -> Step | None:
        value, literal = self._given(element)
        location, problem = self._location(element, element.attributes.get("location", ""))
        return Assign(location, problem, value, literal)

    def _location(self, element: Element, source: str) -> tuple[Location | None, str]:
        try:
            return Location.read(source, self.model.dialect), ""
        except MalformedError as error:
            self._problems.note(element, f"{error}, and fails when it is reached")
            return None, str(error)
        except ExpressionError as error:
            self._problems.add(element, f"the location {brief(source)} {error}")
            return None, ""

    def _if(self, element: Element) -> Step | None:
        branches: list[tuple[Value | None, list[Element]]] = [(self._test(element), [])]
        has_else = False
        for child in element.children:
            if child.tag in {"elseif", "else"}:
                if has_else:
                    self._problems.add(
                        child, f"<{child.tag}> stands behind <else>: <else> comes last, and once"
                    )
                has_else = has_else or child.tag == "else"
                test = self._test(child) if child.tag == "elseif" else None
                branches.append((test, []))
            else:
                branches[-1][1].append(child)
        return If(tuple((test, self._steps(inside)) for test, inside in branches))

    def _test(self, element: Element) -> Value | None:
        if "cond" not in element.attributes:
            self._problems.add(
                element, f"<{element.tag}> needs the attribute cond: write its condition there"
            )
            return None
        return self.value(element, element.attributes["cond"])

    def _foreach(self, element: Element) -> Step | None:
        given = element.attributes
        for name in ("array", "item"):
            if name not in given:
                self._problems.add(
                    element,
                    f"<foreach> has no {name}: give the list as array and a variable as item",
                )
                return None
        array = self.value(element, given["array"])
        steps = self._steps(element.children)
        if array is None:
            return None
        return Foreach(array, given["item"], given.get("index"), steps)

    def _cancel(self, element: Element) -> Step | None:
        return Cancel(element.attributes.get("sendid"), self._optional(element, "sendidexpr"))

    def _send(self, element: Element) -> Step | None:
        given = element.attributes
        target = given.get("target", "")
        if target.startswith(_NOT_HERE):
            self._problems.add(
                element,
                f"an agent can send events only to itself, not to {target!r}: remove the <send>",
            )
        if "basichttp" in given.get("type", "").lower():
            self._problems.add(
                element, "the Basic HTTP processor is not supported: remove the <send>"
            )
        delay = given.get("delay")
        if delay is not None and seconds_of(delay) is None:
            self._problems.add(
                element, f"the delay must be a duration such as '1s' or '500ms', got {delay!r}"
            )
        id_location, id_problem = None, ""
        if "idlocation" in given:
            id_location, id_problem = self._location(element, given["idlocation"])
        return Send(
            given.get("event"),
            self._optional(element, "eventexpr"),
            given.get("target"),
            self._optional(element, "targetexpr"),
            given.get("type"),
            self._optional(element, "typeexpr"),
            delay,
            self._optional(element, "delayexpr"),
            given.get("id"),
            id_location,
            id_problem,
            self._payload(element),
        )

    def _optional(self, element: Element, name: str) -> Value | None:
        source = element.attributes.get(name)
        return None if source is None else self.value(element, source)

    def _payload(self, element: Element) -> Payload:
        names = [
            (name, value)
            for name in element.attributes.get("namelist", "").split()
            if (value := self.value(element, name)) is not None
        ]
        params = []
        for each in element.all("param"):
            place = each.attributes.get("location")
            value = (
                self.value(each, each.attributes.get("expr", ""))
                if place is None
                else self.value(each, place, is_location=True)
            )
            if value is not None:
                params.append((each.attributes.get("name", ""), value))
        content, literal = None, None
        for each in element.all("content"):
            content, literal = self._given(each)

        return Payload(tuple(params), tuple(names), content, literal)


_READ = frozenset({"raise", "log", "assign", "if", "foreach", "cancel", "send"})


def _is_timer(element: Element) -> bool:
    sendid = element.attributes.get("id", element.attributes.get("sendid", ""))
    return element.tag in {"send", "cancel"} and sendid.startswith(OWN_TIMER)
