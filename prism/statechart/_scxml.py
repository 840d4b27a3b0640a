"""A chart's plain data as SCXML (W3C, State Chart XML, https://www.w3.org/TR/scxml/), and back.

Only the structure is written and read; conditions and actions are names. What SCXML lacks stands in
attributes of prism's namespace, which other programs ignore: keys of the JSON form, with JSON or
plain texts as values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from operator import itemgetter
from typing import Any, NoReturn
from xml.etree.ElementTree import Element, SubElement, TreeBuilder, indent, tostring
from xml.parsers import expat

from prism.errors import DefinitionError, InputError
from prism.files.records import Where
from prism.statechart._document import MOST_LEVELS, Functions, read_chart
from prism.statechart._parts import TIMING
from prism.statechart.transitions import DEFAULT_NAME
from prism.telemetry.loggers import warn_standard

MOST_CHARACTERS = 1_000_000
MOST_ELEMENTS = 20_000

_NAMESPACE = "http://www.w3.org/2005/07/scxml"
_PRISM = "urn:prism:statechart"
_OWN = f"{_PRISM}}}"
_STATES = ("state", "parallel", "final")
_REFUSED = "is not supported: remove it, or correct it"

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.]|^[0-9.]|_(?=x[0-9A-F]{4})")
_CODE = re.compile(r"_x([0-9A-F]{4,5}|10[0-9A-F]{4})_")


def _encoded(text: str) -> str:
    """Return a text as a name, with codes such as ``_x0020_`` for blanks, as .NET writes them."""
    return _NOT_IN_NAMES.sub(lambda match: f"_x{ord(match[0]):04X}_", text)


def _decoded(name: str) -> str:
    return _CODE.sub(lambda match: chr(int(match[1], 16)), name)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


# Writing


def to_scxml(data: Mapping[str, Any]) -> str:
    """Write the plain data of a chart as an SCXML document."""
    root = _Writer(data).root
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


class _Writer:
    """Writes one chart.

    Args:
        data: The chart as plain data.

    Attributes:
        root: The outermost element.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.root = Element("scxml", {"xmlns": _NAMESPACE, "xmlns:prism": _PRISM, "version": "1.0"})
        self._finals = data["final_states"]
        self._states: dict[str, Element] = {}
        self._histories: dict[str, str] = {}
        for state in data["states"]:
            self._write_state(self.root, state)
        _set(self.root, name=_encoded(data["name"]), initial=self._ids(data["initial"]))
        _set_own(self.root, data, "description", "strict", "decision_states", "timeouts")
        for index, transition in enumerate(data["transitions"]):
            self._write_transition({"place": index, **transition})

    def _write_state(self, around: Element, data: Any) -> None:
        data = data if isinstance(data, dict) else {"state": data}
        text = data["state"]
        tag = "parallel" if data.get("parallel") else "state"
        element = SubElement(around, "final" if text in self._finals else tag)
        self._states[text] = element
        for inside in data.get("states", ()):
            self._write_state(element, inside)
        # an initial history belongs to this state, or to one inside
        _set(element, id=_encoded(text), initial=self._ids(data.get("initial")))
        _set_own(element, data, "entry", "exit")

    def _write_transition(self, data: dict[str, Any]) -> None:
        trigger = data["trigger"]
        data["exact"] = isinstance(trigger, str)
        element = SubElement(self._states[data["source"]], "transition")
        _set(
            element,
            event=_encoded(trigger) if data["exact"] else trigger and trigger["descriptor"],
            cond=data.get("guard"),
            target=self._ids(data["target"]),
            type="internal" if data.get("internal") else None,
        )
        _set_own(element, data, "exact", "action", *TIMING, "place")

    def _ids(self, places: Any) -> str | None:
        """Return the ids of states and histories; a history is written when it is first named."""
        if isinstance(places, list):
            return " ".join(filter(None, map(self._ids, places)))
        if not isinstance(places, dict):
            return places and _encoded(places)

        key = json.dumps(places)
        if key not in self._histories:
            self._histories[key] = f"history-{len(self._histories) + 1}"
            self._write_history(self._histories[key], places)
        return self._histories[key]

    def _write_history(self, name: str, data: Mapping[str, Any]) -> None:
        owner = self._states[data["history"]]
        kind = "deep" if "deep" in data else "shallow"
        history = SubElement(owner, "history", id=name, type=kind)
        default = self._ids(data.get("default"))
        if default is None:
            # SCXML asks for one
            inside = [each.attrib["id"] for each in owner if each.tag in _STATES]
            default = " ".join(inside if owner.tag == "parallel" else inside[:1])
            history.set("prism:default", "null")
        SubElement(history, "transition", target=default)


def _set(element: Element, **attributes: str | None) -> None:
    element.attrib.update((key, text) for key, text in attributes.items() if text is not None)


def _set_own(element: Element, data: Mapping[str, Any], *keys: str) -> None:
    """Set prism's own attributes to what the data say for these keys."""
    for key in keys:
        value = data.get(key)
        if value is None or value is False or value in ("", [], {}):
            continue
        is_plain = isinstance(value, str) and value.isprintable() and _value(value) == value
        element.set(f"prism:{key}", value if is_plain else json.dumps(value))


# Reading


def read_scxml(
    text: str, guards: Functions | None, actions: Functions | None, enum: type[Enum] | None
) -> dict[str, Any]:
    """Return the arguments of the chart that a document describes: see `Statechart.from_scxml`."""
    reader = _Reader(_parse(text))
    data, foreign = reader.data(), set[str]()
    unread = [*reader.unread(reader.root, foreign)]
    arguments = read_chart(data, guards, actions, enum, reader.line_of, unread)
    if foreign:
        warn_standard(f"SCXML document: ignored what is of {', '.join(sorted(foreign))}")
    return arguments


def _parse(text: str) -> dict[Element, int]:
    """Return all elements of a document in order, each with its line.

    Raises:
        DefinitionError: If it is beyond a bound, or has a document type.
        InputError: If it is not well-formed; names the line.
    """
    lines: dict[Element, int] = {}
    parser: Any = expat.ParserCreate(namespace_separator="}")
    builder = TreeBuilder()

    def refuse(problem: str) -> NoReturn:
        raise DefinitionError(f"line {parser.CurrentLineNumber}: the document {problem}")

    def start(name: str, attributes: dict[str, str]) -> None:
        element = builder.start(name.removeprefix(f"{_NAMESPACE}}}"), attributes)
        lines[element] = parser.CurrentLineNumber
        if len(lines) > MOST_ELEMENTS:
            refuse(f"has more than {MOST_ELEMENTS:,} elements: split it")

    parser.StartElementHandler = start
    parser.EndElementHandler, parser.CharacterDataHandler = builder.end, builder.data
    parser.StartDoctypeDeclHandler = lambda *_: refuse("has a DOCTYPE: remove it")
    if len(text) > MOST_CHARACTERS:
        refuse(f"is longer than {MOST_CHARACTERS:,} characters: split it")
    try:
        # a text has been decoded, whatever its declaration says
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        problem = f"is not well-formed XML: {expat.ErrorString(error.code)}"
        raise InputError(problem, line=error.lineno) from None
    return lines


def _foreign(name: str) -> str:
    """Return the namespace of a name, if it is neither SCXML's nor prism's."""
    return "" if name.startswith(_OWN) else name.rpartition("}")[0]


class _Reader:
    """Makes the plain data of a chart, and takes from the elements what it has read.

    Args:
        lines: The elements in order, with the line of each.

    Attributes:
        root: The outermost element.
    """

    def __init__(self, lines: Mapping[Element, int]) -> None:
        self.root: Element = next(iter(lines))
        if self.root.tag != "scxml":
            raise DefinitionError(f"the outermost element must be <scxml>, got <{self.root.tag}>")
        self._lines = lines
        self._marks: dict[Where, int] = {(): lines[self.root]}
        self._read = {self.root}
        self._transitions: list[tuple[Any, int, dict[str, Any]]] = []
        self._names = {
            element: _decoded(element.attrib.pop("id", "") or f"{element.tag}{number}")
            for number, element in enumerate(lines)
            if element.tag in _STATES
        }
        self._histories: dict[str, Any] = {}
        for element, name in self._names.items():
            for history in element.findall("history"):
                if history.get("id", "") not in {"", *self._histories}:
                    self._read_history(history, name)

    def line_of(self, where: Where) -> int:
        """Return the line of a part of the data, or of what is around it."""
        while where not in self._marks:
            where = where[:-1]
        return self._marks[where]

    def unread(self, element: Element, foreign: set[str]) -> Iterator[tuple[int, str, str]]:
        """Yield what nothing has read of an element, with its line.

        Args:
            element: The element.
            foreign: Gets the namespaces of what nobody has to read.
        """
        line = self._lines[element]
        names = [*element.attrib, *(child.tag for child in element)]
        foreign.update(filter(None, map(_foreign, names)))
        unread = [name for name in element.attrib if not _foreign(name)]
        texts = (element.text, *(child.tail for child in element))
        if any(text and not text.isspace() for text in texts):
            unread.append("text")
        yield from ((line, "", f"{name} of <{element.tag}> {_REFUSED}") for name in unread)
        for child in element:
            if child in self._read:
                yield from self.unread(child, foreign)
            elif not _foreign(child.tag):
                yield self._lines[child], "", f"<{child.tag}> in <{element.tag}> {_REFUSED}"

    def data(self) -> dict[str, Any]:
        """Return the data."""
        root = self.root
        for of_no_effect in ("version", "datamodel", "binding"):
            root.attrib.pop(of_no_effect, None)
        states = self._inside(root, ("states",))
        ordered = sorted(self._transitions, key=itemgetter(0))
        for number, (_, line, _) in enumerate(ordered):
            self._marks["transitions", number] = line
        return {
            "schema": 2,
            "name": _decoded(root.attrib.pop("name", DEFAULT_NAME)),
            "states": states,
            "initial": self._targets(root, "initial") or next(iter(self._names.values()), []),
            "transitions": [data for *_, data in ordered],
            "final_states": [name for each, name in self._names.items() if each.tag == "final"],
            **self._own_attributes(root),
        }

    def _own_attributes(self, element: Element) -> dict[str, Any]:
        """Return what prism's own attributes say."""
        names = [name for name in element.attrib if name.startswith(_OWN)]
        return {name.removeprefix(_OWN): _value(element.attrib.pop(name)) for name in names}

    # States

    def _inside(self, element: Element, where: Where) -> list[Any]:
        if len(where) > 2 * MOST_LEVELS:
            raise DefinitionError(f"states are nested more than {MOST_LEVELS} levels deep")
        states = [each for each in element if each.tag in _STATES]
        self._read.update(states)
        return [self._state(each, (*where, number)) for number, each in enumerate(states)]

    def _state(self, element: Element, where: Where) -> Any:
        self._marks[where] = self._lines[element]
        name = self._names[element]
        for transition in element.findall("transition"):
            self._read_transition(transition, name)
        initial = self._targets(element, "initial")
        data = {
            "states": self._inside(element, (*where, "states")),
            "initial": self._default(element.find("initial")) if initial is None else initial,
            "parallel": element.tag == "parallel",
        }
        attributes = self._own_attributes(element)
        return {"state": name, **data, **attributes} if attributes or any(data.values()) else name

    def _read_history(self, element: Element, composite: str) -> None:
        self._read.add(element)
        kind = element.attrib.pop("type", "shallow")
        self._histories[element.attrib.pop("id")] = {
            "history": composite,
            "deep": {"deep": True, "shallow": False}.get(kind, kind),
            "default": self._default(element),
            **self._own_attributes(element),
        }

    def _default(self, around: Element | None) -> Any:
        """Return where the one transition of an ``initial`` or a ``history`` leads."""
        transition = None if around is None else around.find("transition[@target]")
        if around is None or transition is None:
            return None
        self._read |= {around, transition}
        transition.attrib.pop("type", None)
        return self._targets(transition, "target")

    def _targets(self, element: Element, name: str) -> Any:
        value = element.attrib.pop(name, None)
        if value is None:
            return None
        places = [self._histories.get(each, _decoded(each)) for each in value.split()]
        return places[0] if len(places) == 1 else places

    # Transitions

    def _read_transition(self, element: Element, source: str) -> None:
        self._read.add(element)
        attributes, take = self._own_attributes(element), element.attrib.pop
        event, cond, kind = take("event", None), take("cond", None), take("type", "external")
        is_placed = type(attributes.get("place")) is int
        index = attributes.pop("place") if is_placed else len(self._transitions)
        triggers: list[Any] = [None]
        if attributes.pop("exact", False):
            triggers = [_decoded(event or "")]
        elif event is not None:
            triggers = [{"descriptor": name} for name in event.split() or [""]]
        data = {
            "source": source,
            "target": self._targets(element, "target"),
            "guard": cond and cond.strip(),
            "internal": {"internal": True, "external": False}.get(kind, kind),
            **attributes,
        }
        line = self._lines[element]
        self._transitions += [(index, line, {"trigger": each, **data}) for each in triggers]
