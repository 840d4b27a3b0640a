"""An SCXML document as the plain data of a chart: its states, and the transitions between them.

Only the structure is read. Conditions and actions are names or texts for which the caller has
functions. Here only the XML is checked; `read_chart` says everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import Enum
from itertools import count
from reprlib import repr as brief
from typing import Any

from prism.errors import DefinitionError
from prism.files._places import nearest
from prism.files._source import Problem, Problems, Severity, Source, Where
from prism.statechart._definition import DEFAULT_NAME, Definition
from prism.statechart._nesting import DONE
from prism.statechart.formats._names import Functions
from prism.statechart.formats._reading import read_chart
from prism.statechart.formats._scxml_names import scxml_text
from prism.statechart.formats._scxml_xml import BETWEEN, OWN, Element, parse
from prism.statechart.transitions import ANY_STATE
from prism.telemetry.loggers import warn_standard

_STATES = ("state", "parallel", "final")
_GUARD = re.compile(r"_event\.data\.guard_?(\w*)")
_ACTIVE = re.compile(r"In\(\s*(['\"])([^'\"]*)\1\s*\)")
_DESCRIPTOR = re.compile(r"\.?\*|[^\s.*]+(\.[^\s.*]+)*(\.\*?)?")

_CHILDREN: Mapping[str, tuple[str, ...]] = {
    "scxml": _STATES,
    "state": (*_STATES, "transition", "initial", "history"),
    "parallel": ("state", "parallel", "transition", "history"),
    "history": ("transition",),
    "initial": ("transition",),
}
"""The elements that one may have inside."""

_ANY, _FLAG, _NUMBER = r"(?s).*", "true|false", r"[0-9]{1,9}"
_ENDS = {"id": _ANY, f"{OWN}entry": _ANY, f"{OWN}exit": _ANY}
_OF_STATES = {**_ENDS, f"{OWN}decision": _FLAG, f"{OWN}timeout": _NUMBER}
_LEADING = {"target": _ANY, "type": "external|internal"}
_DEFAULT = "default"
_ATTRIBUTES: Mapping[str, Mapping[str, str]] = {
    "scxml": {
        # those about data are of no effect where there are none
        **dict.fromkeys(("version", "name", "initial", "datamodel", "binding"), _ANY),
        **{f"{OWN}description": _ANY, f"{OWN}strict": _FLAG, f"{OWN}needs": _ANY},
    },
    "state": {**_OF_STATES, "initial": _ANY},
    "parallel": _OF_STATES,
    "final": _ENDS,
    "history": {"id": _ANY, "type": "shallow|deep", f"{OWN}implicit": _FLAG},
    "initial": {},
    _DEFAULT: _LEADING,
    "transition": {
        **_LEADING,
        **{"event": _ANY, "cond": _ANY},
        **{f"{OWN}exact": _FLAG, f"{OWN}action": _ANY, f"{OWN}source": r"\*"},
        **{f"{OWN}place": _NUMBER, f"{OWN}after": _ANY, f"{OWN}rate": _ANY},
        **{f"{OWN}probability": _ANY},
    },
}
"""The attributes that an element may have, with patterns of their values.

The transition of an ``initial`` or a ``history`` is the default one, which is always made.
"""


class _Problems(Problems):
    """The problems of a document, each with its line alone."""

    def __init__(self) -> None:
        super().__init__(Source.of(None))
        self.lines: dict[Where, tuple[int, int]] = {}

    def problem_at(
        self, where: Where, message: str, kind: str, line: int, severity: Severity
    ) -> Problem:
        """Return a problem with the line of the element that is nearest to its place."""
        line = line or (nearest(self.lines, where) or (1, 0))[0]
        return Problem("", line, 0, "", message, kind, severity)


def read_scxml(
    text: str, guards: Functions | None, actions: Functions | None, enum: type[Enum] | None
) -> Definition[Any]:
    """Read a chart: see `Statechart.from_scxml`."""
    root, is_own = parse(text)
    if root.tag != "scxml":
        raise DefinitionError(
            f"line {root.line}: the outermost element must be <scxml>, got <{root.tag}>"
        )
    reader = _Reader(root, is_own)
    definition = read_chart(reader.data(), reader.problems, guards, actions, enum)
    for namespace, line in reader.ignored.items():
        warn_standard(
            f"SCXML document, line {line}: everything of the namespace {namespace!r} is ignored"
        )
    return definition


class _Reader:
    """Makes the data of a chart from a document.

    Args:
        root: The document.
        is_own: Whether prism has written it, so that names are encoded.

    Attributes:
        problems: What the XML has that is not read.
        ignored: The foreign namespaces, with the line of the first use.
    """

    def __init__(self, root: Element, is_own: bool) -> None:
        self.problems = _Problems()
        self.ignored: dict[str, int] = {}
        self._root, self._is_own = root, is_own
        self._histories: dict[str, Any] = {}
        self._states: list[Element] = []
        self._moves: list[tuple[int, int, dict[str, Any]]] = []

    def data(self) -> dict[str, Any]:
        """Return the data; the problems say what is wrong with them."""
        root = self._root
        self.problems.lines[()] = root.line, 0
        self._require_known(root, root.tag)
        self._name_all()
        states = self._inside(root, ("states",))
        # a wildcard's transitions have one place
        moves = {place: (line, move) for place, line, move in reversed(self._moves)}
        ordered = [moves[place] for place in sorted(moves)]
        for number, (line, _) in enumerate(ordered):
            self.problems.lines["transitions", number] = line, 0

        first = [each.name for each in root.all(*_STATES)[:1]]
        return {
            "schema": 2,
            "states": states,
            "initial": self._targets(root, "initial") or first,
            "transitions": [move for _, move in ordered],
            "name": self._text(root.attributes.get("name", DEFAULT_NAME)),
            "description": root.attributes.get(f"{OWN}description", ""),
            "strict": root.is_set("strict"),
            "needs": root.attributes.get(f"{OWN}needs", "").split(),
            "decision_states": [each.name for each in self._states if each.is_set("decision")],
            "timeouts": {
                each.name: self._number(each.attributes[f"{OWN}timeout"])
                for each in self._states
                if f"{OWN}timeout" in each.attributes
            },
            "final_states": [each.name for each in self._states if each.tag == "final"],
        }

    # The shape of the XML

    def _problem(self, element: Element, message: str) -> None:
        self.problems.add((), message, line=element.line)

    def _require_known(self, element: Element, kind: str) -> None:
        """Refuse what is not read; what is of a foreign namespace is passed over."""
        known = _ATTRIBUTES[kind]
        for name, value in [*element.attributes.items()]:
            if self._is_foreign(name, element):
                continue
            if name not in known:
                self._problem(
                    element, f"{name} of <{element.tag}> is not supported: remove it, or correct it"
                )
            elif not re.fullmatch(known[name], value):
                self._problem(element, f"{name} cannot be {brief(value)}: correct it")
                del element.attributes[name]
        if element.text:
            self._problem(element, f"text in <{element.tag}> is not supported: remove it")
        for child in element.children:
            if self._is_foreign(child.tag, child):
                continue
            if child.tag in _CHILDREN.get(element.tag, ()):
                is_default = element.tag in ("initial", "history")
                self._require_known(child, _DEFAULT if is_default else child.tag)
            else:
                self._problem(
                    child, f"<{child.tag}> in <{element.tag}> is not supported: remove it"
                )

    def _is_foreign(self, name: str, element: Element) -> bool:
        """Return whether a name is of a foreign namespace, which is noted once."""
        namespace, between, _ = name.rpartition(BETWEEN)
        if between:
            self.ignored.setdefault(namespace, element.line)
        return bool(between)

    # Names

    def _text(self, name: str) -> str:
        return scxml_text(name) if self._is_own else name

    def _name_all(self) -> None:
        """Name the states, and note the histories by their ids."""
        elements = [*self._root.walk()]
        names = {self._text(each.attributes.get("id", "")) for each in elements}
        self._states = [each for each in elements if each.tag in _STATES]
        for number, each in enumerate(self._states, start=1):
            free = (text for text in map(f"{each.tag}{{}}".format, count(number)))
            given = self._text(each.attributes.get("id", ""))
            each.name = given or next(text for text in free if text not in names)
            names.add(each.name)

        texts = {each.name for each in self._states}
        for state in self._states:
            for each in state.all("history"):
                name = self._text(each.attributes.get("id", ""))
                if not name or name in self._histories or name in texts:
                    self._problem(each, f"a history needs an id of its own, got {brief(name)}")
                self._histories[name] = {
                    "history": state.name,
                    "deep": each.attributes.get("type") == "deep",
                    "default": None if each.is_set("implicit") else self._default(each),
                }

    def _default(self, element: Element) -> list[str] | None:
        """Return where the one transition of an element leads, if it has any."""
        transitions = element.all("transition")
        are_sound = all("target" in each.attributes for each in transitions)
        if not (are_sound and (element.tag == "initial") <= len(transitions) <= 1):
            self._problem(element, f"<{element.tag}> needs one <transition> with a target")
        return self._targets(transitions[0]) if transitions else None

    def _targets(self, element: Element, name: str = "target") -> Any:
        if name not in element.attributes:
            return None
        texts = map(self._text, element.attributes[name].split())
        return [self._histories.get(text, text) for text in texts]

    # States

    def _inside(self, element: Element, where: Where) -> list[Any]:
        states = element.all(*_STATES)
        return [self._state(each, (*where, number)) for number, each in enumerate(states)]

    def _state(self, element: Element, where: Where) -> Any:
        self.problems.lines[where] = element.line, 0
        self._moves += self._moves_from(element)
        data = {
            "states": self._inside(element, (*where, "states")),
            "initial": self._initial(element),
            **{
                key: [*map(self._text, element.attributes.get(OWN + key, "").split())]
                for key in ("entry", "exit")
            },
        }
        if not any(data.values()):
            return element.name
        is_parallel = element.tag == "parallel" and bool(data["states"])
        return {**data, "state": element.name, "parallel": is_parallel}

    def _initial(self, element: Element) -> Any:
        given, inside = self._targets(element, "initial"), element.all("initial")
        if len(inside) + (given is not None) > 1:
            self._problem(element, "has several initials: leave one")
        return self._default(inside[0]) if inside else given

    # Transitions

    def _moves_from(self, state: Element) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Yield the place, the line and the data of each transition of a state."""
        inside: set[str] = set()
        for number, element in enumerate(state.all("transition"), start=len(self._moves)):
            given = element.attributes
            is_exact = element.is_set("exact")
            targets = given.get("target", "").split()
            # only one that stays in a composite is internal, whatever its type
            is_internal = given.get("type") == "internal" and state.tag == "state" and targets
            if is_internal and not inside:
                inside = {
                    each.attributes.get("id", "")
                    for child in state.all(*_STATES, "history")
                    for each in child.walk()
                }
            action = given.get(f"{OWN}action")
            move = {
                "trigger": self._trigger(element),
                "descriptor": not is_exact,
                "source": ANY_STATE if given.get(f"{OWN}source") else state.name,
                "target": self._targets(element),
                "guard": self._guard(given.get("cond")),
                "action": None if action is None else self._text(action),
                "internal": bool(is_internal) and inside.issuperset(targets),
                "after": self._number(given.get(f"{OWN}after")),
                "rate": self._number(given.get(f"{OWN}rate")),
                "probability": self._number(given.get(f"{OWN}probability")),
            }
            place = given.get(f"{OWN}place", "")
            yield int(place) if place else number, element.line, move

    def _trigger(self, element: Element) -> str | None:
        event = element.attributes.get("event")
        if event is None:
            return None
        if element.is_set("exact"):
            return done_text(event)
        for each in event.split():
            if not _DESCRIPTOR.fullmatch(each):
                self._problem(
                    element,
                    f"{brief(each)} is not an event descriptor: write a name, a prefix of whole "
                    "parts such as 'error.*', or '*' for any event",
                )
        return " ".join(event.split())

    def _number(self, text: str | None) -> Any:
        """Return the number that a text is, or else the name of a function."""
        for kind in (int, float):
            with suppress(ValueError):
                return None if text is None else kind(text)
        return self._text(text or "")

    def _guard(self, source: str | None) -> Any:
        name = (source or "").strip()
        if active := _ACTIVE.fullmatch(name):
            return {"in": self._text(active[2])}
        if self._is_own and (guard := _GUARD.fullmatch(name)):
            name = guard[1] or "guard"
        return None if source is None else self._text(name)


def done_text(event: str) -> str:
    """Return the trigger that prism has written as an event's name."""
    prefix = DONE if event.startswith(DONE) else ""
    return prefix + scxml_text(event.removeprefix(prefix))
