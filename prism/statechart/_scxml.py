"""A chart's plain data as SCXML (W3C, State Chart XML, https://www.w3.org/TR/scxml/), and back.

Only the structure is written and read; conditions and actions are names. What SCXML lacks stands in
attributes of prism's namespace, which other programs ignore: keys of the JSON form, with JSON or
plain texts as values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring
from xml.parsers import expat

from prism.errors import DefinitionError, InputError
from prism.statechart.transitions import DEFAULT_NAME, TIMING
from prism.telemetry.loggers import warn_standard

MOST_CHARACTERS = 1_000_000

_NAMESPACE = "http://www.w3.org/2005/07/scxml"
_PRISM = "urn:prism:statechart"
_STATES = ("state", "parallel", "final")

_READ = {
    "document": "<scxml>",
    "scxml": "name initial version datamodel binding <state> <parallel> <final> "
    "prism:description prism:strict prism:decision_states prism:timeouts",
    "state": "id initial prism:entry prism:exit "
    "<state> <parallel> <final> <initial> <history> <transition>",
    "parallel": "id prism:entry prism:exit <state> <parallel> <history> <transition>",
    "final": "id prism:entry prism:exit",
    "initial": "<transition>",
    "history": "id type prism:default <transition>",
    "transition": "event cond target type "
    "prism:exact prism:action prism:after prism:rate prism:probability prism:place",
    "default transition": "target type",
}
"""What is read of each element: its attributes, and elements inside.

A ``default transition`` is that of an ``initial`` or a ``history``.
"""

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
        keys = ("description", "strict", "decision_states", "timeouts")
        ids = self._ids(data["initial"])
        _set(self.root, data, *keys, name=_encoded(data["name"]), initial=ids)
        for number, transition in enumerate(data["transitions"], start=1):
            self._write_transition({"place": number, **transition})

    def _write_state(self, around: Element, data: Any) -> None:
        data = data if isinstance(data, dict) else {"state": data}
        text = data["state"]
        tag = "parallel" if data.get("parallel") else "state"
        element = SubElement(around, "final" if text in self._finals else tag)
        self._states[text] = element
        for inside in data.get("states", ()):
            self._write_state(element, inside)
        # an initial history belongs to this state, or to one inside
        ids = self._ids(data.get("initial"))
        _set(element, data, "entry", "exit", id=_encoded(text), initial=ids)

    def _write_transition(self, data: dict[str, Any]) -> None:
        element, trigger = SubElement(self._states[data["source"]], "transition"), data["trigger"]
        data["exact"] = isinstance(trigger, str)
        event = _encoded(trigger) if data["exact"] else trigger and trigger["descriptor"]
        kind = "internal" if data.get("internal") else None
        rest = {"cond": data.get("guard"), "target": self._ids(data["target"]), "type": kind}
        _set(element, data, "exact", "action", *TIMING, "place", event=event, **rest)

    def _ids(self, targets: Any) -> str | None:
        """Return the ids of states and histories; a history is written when it is first named."""
        if isinstance(targets, list):
            return " ".join(filter(None, map(self._ids, targets)))
        if not isinstance(targets, dict):
            return targets and _encoded(targets)

        key = json.dumps(targets)
        if key not in self._histories:
            self._histories[key] = f"history-{len(self._histories) + 1}"
            self._write_history(self._histories[key], targets)
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


def _set(element: Element, data: Mapping[str, Any], *keys: str, **attributes: str | None) -> None:
    """Set attributes, and prism's own to what the data say for their keys, if that is anything."""
    for key, value in [*attributes.items(), *((f"prism:{key}", data.get(key)) for key in keys)]:
        if value is None or (key not in attributes and value in (False, "", [], {})):
            continue
        is_text = isinstance(value, str) and value.isprintable() and _value(value) == value
        element.set(key, value if is_text or key in attributes else json.dumps(value))


# Reading


def read_scxml(text: str, make: Callable[[dict[str, Any]], Any]) -> Any:
    """Return what is made of the plain data of the chart that a document describes.

    Raises:
        DefinitionError: For the first part that is not read, or for what the maker refuses; names
            the lines.
        InputError: If it is not well-formed; names the line.
    """
    reader = _Reader()
    data = reader.read(text)
    try:
        return make(data)
    except DefinitionError as error:
        top = reader.lines["states", ""]
        lines = sorted({reader.lines.get(path[:2], top) for path in error.paths or [()]})
        where = ", ".join(map(str, lines))
        raise DefinitionError(f"line {where}: {error}", *error.paths) from None


class _Reader:
    """Makes the plain data of a chart while it reads a document.

    Attributes:
        lines: The lines of its states and transitions.
    """

    def __init__(self) -> None:
        self.lines: dict[tuple[str | int, ...], int] = {}
        # the namespaces of other programs, whose elements and attributes are ignored
        self._foreign: dict[str, None] = {}
        self._parser: Any = expat.ParserCreate("utf-8", "}")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = lambda *_: self._refuse("a DOCTYPE")
        # the elements around, each with its data; those of other programs have none
        self._around: list[tuple[str, Any]] = [("document", {})]
        self._ids: set[str] = set()
        self._histories: dict[str, Any] = {}
        self._chart: dict[str, Any] = {}
        # data whose targets are ids until all are known, with prism's own attributes
        self._parts: list[tuple[dict[str, Any], str, dict[str, Any]]] = []

    def read(self, text: str) -> dict[str, Any]:
        """Return the data of a document."""
        if len(text) > MOST_CHARACTERS:
            raise DefinitionError(f"the document is longer than {MOST_CHARACTERS:,} characters")
        try:
            # a text has been decoded, whatever its declaration says
            self._parser.Parse(text.encode("utf-8", "surrogatepass"), True)
        except expat.ExpatError as error:
            problem = f"is not well-formed XML: {expat.ErrorString(error.code)}"
            raise InputError(problem, line=error.lineno) from None
        if self._foreign:
            warn_standard(f"SCXML document: ignored what is of {', '.join(self._foreign)}")
        transitions = self._chart["transitions"]
        transitions.sort(key=lambda each: each.pop("place"))
        paths = {id(each): ("transitions", index) for index, each in enumerate(transitions)}
        for data, key, extras in self._parts:
            line = data.pop("line")
            path = paths.get(id(data), ("states", data.get("state", "")))
            # two ids may stand for one text
            self._refuse(f"a second {path[1]!r}", "state" in data and path in self.lines, line)
            # the first without a text is the document itself
            self.lines.setdefault(path, line)
            for each in data[key]:
                missing = f"{key} {each!r}, which no state has as its id,"
                self._refuse(missing, each not in self._ids, line)
            targets = [self._histories.get(each, _decoded(each)) for each in data[key]]
            data[key] = targets[0] if len(targets) == 1 else targets or None
            data.update(extras)
        return self._chart

    def _refuse(self, what: str, when: bool = True, line: int = 0) -> None:
        if when:
            line = line or self._parser.CurrentLineNumber
            raise DefinitionError(f"line {line}: {what} is not supported: remove it, or correct it")

    def _text(self, text: str) -> None:
        kind, data = self._around[-1]
        self._refuse(f"text of <{kind}>", data is not None and not text.isspace())

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        around, outer = self._around[-1]
        kind = name.removeprefix(f"{_NAMESPACE}}}")
        values = {each.replace(f"{_PRISM}}}", "prism:"): text for each, text in attributes.items()}
        foreign = [each for each in (kind, *values) if "}" in each]
        self._foreign.update(dict.fromkeys(each.rpartition("}")[0] for each in foreign))
        if outer is None or kind in foreign:
            self._around.append((kind, None))
            return

        is_default = kind == "transition" and around in ("initial", "history")
        reading = "default transition" if is_default else kind
        self._refuse(f"<{kind}> in <{around}>", f"<{kind}>" not in _READ[around].split())
        for each in values:
            self._refuse(f"{each} of <{kind}>", each not in (*_READ[reading].split(), *foreign))
        types = ("shallow", "deep") if kind == "history" else ("external", "internal")
        self._refuse(f"type {values.get('type')!r}", values.get("type", types[0]) not in types)
        self._around.append((reading, self._data(reading, outer, values)))

    def _end(self, _: str) -> None:
        kind, data = self._around.pop()
        if data is not None and kind in ("initial", "history"):
            # SCXML, 3.6 and 3.10
            self._refuse(f"<{kind}> without a <transition>", not _led(data))

    def _data(self, kind: str, outer: dict[str, Any], values: Mapping[str, str]) -> Any:
        """Return the data of an element by its attributes, and those of the one around it."""
        ids = values.get("initial", values.get("target", "")).split()
        self._refuse("an empty target", "target" in values and not ids)
        data: dict[str, Any] = {"line": self._parser.CurrentLineNumber}
        match kind:
            case "initial":
                return outer
            case "default transition":
                self._refuse("a transition without a target", not ids)
                self._refuse("a second initial or default state", bool(_led(outer)))
                _led(outer).extend(ids)
            case "transition":
                guard, is_internal = values.get("cond"), values.get("type") == "internal"
                data |= {"source": outer["state"], "target": ids, "internal": is_internal}
                data["guard"] = guard and guard.strip()
                for event in [None] if "event" not in values else values["event"].split() or [""]:
                    self._add_transition(event, {**data}, _extras(values))
            case "scxml":
                lists: Any = {"states": [], "transitions": [], "final_states": []}
                name = _decoded(values.get("name", DEFAULT_NAME))
                data = self._chart = {"schema": 2, **data, **lists, "name": name, "initial": ids}
            case "history":
                is_deep = values.get("type") == "deep"
                data |= {"history": outer["state"], "deep": is_deep, "default": []}
                self._histories[self._id(kind, values)] = data
            case _:
                text = _decoded(self._id(kind, values))
                data |= {"state": text, "states": [], "initial": ids}
                data["parallel"] = kind == "parallel"
                outer["states"].append(data)
                self._chart["final_states"] += [text] if kind == "final" else []
        if not kind.endswith("transition"):
            key = "default" if kind == "history" else "initial"
            self._parts.append((data, key, _extras(values)))
        return data

    def _id(self, kind: str, values: Mapping[str, str]) -> str:
        """Return the id of a state or a history, or one that is made for it."""
        name = values.get("id") or f"{kind}{len(self._parts)}"
        self._refuse(f"a second {name!r}", name in self._ids)
        self._ids.add(name)
        return name

    def _add_transition(self, name: str | None, data: dict[str, Any], more: dict[str, Any]) -> None:
        transitions, index = self._chart["transitions"], more.pop("place", None)
        is_exact = name is None or more.pop("exact", False)
        data["trigger"] = name and _decoded(name) if is_exact else {"descriptor": name}
        data["place"] = index if type(index) is int else len(transitions)
        transitions.append(data)
        self._parts.append((data, "target", more))


def _led(data: dict[str, Any]) -> Any:
    """Return the list of ids to which a history, or the initial transition of a state, leads."""
    return data["default" if "history" in data else "initial"]


def _extras(values: Mapping[str, str]) -> dict[str, Any]:
    """Return what prism's own attributes say."""
    own = (name for name in values if name.startswith("prism:"))
    return {name.removeprefix("prism:"): _value(values[name]) for name in own}
