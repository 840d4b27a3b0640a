"""An SCXML document as a chart: its states, and the transitions between them.

Only the structure is read. Conditions and actions are names or texts for which the caller has
functions. Everything that keeps a document from being read is reported at once, with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from prism.errors import DefinitionError
from prism.statechart._definition import DEFAULT_NAME, Definition
from prism.statechart._nesting import DONE, EventDescriptor, In, State
from prism.statechart.formats._names import Functions, joined, looked_up, unknown
from prism.statechart.formats._scxml_names import scxml_text
from prism.statechart.formats._scxml_xml import BETWEEN, Element, parse
from prism.statechart.states import state_enum, state_text
from prism.statechart.transitions import ANY_STATE, History, Transition
from prism.telemetry._loggers import warn_standard

MOST_STATES = 10_000
MOST_TARGETS = 100

_STATES = ("state", "parallel", "final")
_GUARD = re.compile(r"_event\.data\.guard_?(\w*)")
_ACTIVE = re.compile(r"In\(\s*(['\"])([^'\"]*)\1\s*\)")
_DESCRIPTOR = re.compile(r"\.?\*|[^\s.*]+(\.[^\s.*]+)*(\.\*?)?")
_INSIDE: Mapping[str, frozenset[str]] = {
    "scxml": frozenset(_STATES),
    "state": frozenset({*_STATES, "transition", "initial", "history"}),
    "parallel": frozenset({"state", "parallel", "transition", "history"}),
    "final": frozenset(),
    "history": frozenset({"transition"}),
    "initial": frozenset({"transition"}),
    "transition": frozenset(),
}
"""The children that an element may have."""

_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    # those that are about data are of no effect where there are none
    "scxml": frozenset({"version", "name", "initial", "datamodel", "binding"}),
    "state": frozenset({"id", "initial"}),
    "parallel": frozenset({"id"}),
    "final": frozenset({"id"}),
    "history": frozenset({"id", "type"}),
    "initial": frozenset(),
    "transition": frozenset({"event", "cond", "target", "type"}),
}
"""The attributes that an element may have."""

_ANY, _FLAG, _NUMBER = r"(?s).*", "true|false", r"\d+"
_OF_STATES = {"entry": _ANY, "exit": _ANY, "decision": _FLAG, "timeout": _NUMBER}
_OWN: Mapping[str, Mapping[str, str]] = {
    "scxml": {"description": _ANY, "strict": _FLAG, "needs": _ANY},
    "state": _OF_STATES,
    "parallel": _OF_STATES,
    "final": {"entry": _ANY, "exit": _ANY},
    "history": {"implicit": _FLAG},
    "initial": {},
    "transition": {
        "exact": _FLAG,
        "action": _ANY,
        "source": r"\*",
        "place": _NUMBER,
        "after": _ANY,
        "rate": _ANY,
        "probability": _ANY,
    },
}
"""The attributes of prism's namespace that an element may have, with patterns of their values."""

_VALUES: Mapping[str, tuple[str, ...]] = {
    "transition": ("external", "internal"),
    "history": ("shallow", "deep"),
}
"""The values of ``type``."""


@dataclass
class _Problems:
    """The problems of a document, each with its line, and the namespaces that are passed over."""

    found: list[tuple[int, str]] = field(default_factory=list)
    passed_over: dict[str, int] = field(default_factory=dict)

    def add(self, element: Element, message: str) -> None:
        """Add a problem, which keeps the document from being read."""
        self.found.append((element.line, message))


def read_scxml(
    text: str, guards: Functions | None, actions: Functions | None, enum: type[Enum] | None
) -> Definition[Any]:
    """Read a chart: see `Statechart.from_scxml`."""
    root, is_own = parse(text)
    problems = _Problems()
    # an empty mapping may still find what it is asked
    functions = {} if guards is None else guards, {} if actions is None else actions
    reader = _Reader(root, is_own, problems, *functions, enum)
    if not problems.found:
        reader.read()
    if problems.found:
        name = root.attributes.get("name", DEFAULT_NAME)
        raise _refused(name, problems)
    for namespace, line in problems.passed_over.items():
        warn_standard(
            f"SCXML document, line {line}: everything of the namespace {namespace!r} is ignored"
        )

    return reader.definition()


def _refused(name: str, problems: _Problems) -> DefinitionError:
    told = [f"line {line}: {message}" for line, message in sorted({*problems.found})]
    if len(told) == 1:
        return DefinitionError(f"chart {name!r}: {told[0]}")
    listed = joined(told, "\n  ")
    return DefinitionError(f"chart {name!r} has {len(told)} problems:\n  {listed}")


@dataclass
class _Place:
    """One state of the document."""

    element: Element
    text: str
    inside: list[_Place]


class _Reader:
    """Makes a definition of a document."""

    def __init__(
        self,
        root: Element,
        is_own: bool,
        problems: _Problems,
        guards: Functions,
        actions: Functions,
        enum: type[Enum] | None,
    ) -> None:
        self._root = root
        self._is_own = is_own
        self._problems = problems
        self._guards, self._actions = guards, actions
        self._enum = enum
        self._ids = {each.attributes.get("id", "") for each in self._root.walk()}
        self._texts: dict[str, Element] = {}
        self._places: dict[int, _Place] = {}
        self._histories: dict[str, tuple[_Place, Element]] = {}
        self._members: dict[str, Any] = {}
        self._made: list[tuple[int, Transition[Any]]] = []
        self._top: list[_Place] = []
        self._starts: tuple[Any, ...] = ()
        if self._root.tag == "scxml":
            self._find_states()
        else:
            told = f"the outermost element must be <scxml>, got <{self._root.tag}>"
            problems.add(self._root, told)

    # States

    def _find_states(self) -> None:
        self._top = [self._place(child) for child in self._root.all(*_STATES)]
        count = len(self._places)
        if not self._top:
            self._problems.add(self._root, "there are no states: add a <state>")
        if count > MOST_STATES:
            self._problems.add(
                self._root, f"there are more than {MOST_STATES:,} states: split the document"
            )
            return
        if not self._problems.found:
            self._members = self._members_of([place.text for place in self._places.values()])

    def _members_of(self, texts: Sequence[str]) -> dict[str, Any]:
        known = self._enum or state_enum("State", texts)
        by_text = {state_text(member): member for member in known}
        missing = [repr(text) for text in texts if text not in by_text]
        if missing:
            self._problems.add(
                self._root,
                f"{known.__name__} has no members {joined(missing, ', ')}: pass an enum with all "
                "states",
            )
        return by_text

    def _place(self, element: Element) -> _Place:
        text = self._id(element) or self._unused(element.tag)
        if text in self._texts:
            line = self._texts[text].line
            self._problems.add(
                element, f"the id {text!r} is already used on line {line}: rename one of the two"
            )
        self._texts[text] = element
        place = _Place(element, text, [])
        self._places[id(element)] = place
        if len(self._places) > MOST_STATES:
            return place

        place.inside = [self._place(child) for child in element.all(*_STATES)]
        for child in element.all("history"):
            name = self._id(child)
            if not name or name in self._histories or name in self._texts:
                self._problems.add(child, f"a history needs an id of its own, got {name!r}")
            self._histories[name or ""] = (place, child)
        return place

    def _id(self, element: Element) -> str:
        return self._text(element.attributes.get("id", ""))

    def _text(self, name: str) -> str:
        return scxml_text(name) if self._is_own else name

    def _unused(self, tag: str) -> str:
        number = len(self._places) + 1
        while (text := f"{tag}{number}") in self._ids or text in self._texts:
            number += 1
        return text

    # Reading

    def read(self) -> None:
        """Read everything, and collect the problems."""
        self._require_known(self._root)
        self._tree = [self._state(place) for place in self._top]
        if "initial" in self._root.attributes:
            self._starts = self._targets(self._root, self._root.attributes["initial"])
        for place in self._places.values():
            for element in place.element.all("transition"):
                self._transition(place, element)

    def _require_known(self, element: Element) -> None:
        """Refuse what is not read; what is of a foreign namespace is passed over."""
        known, own = _ATTRIBUTES[element.tag], _OWN[element.tag]
        unknown = [name for name in element.attributes if not self._is_foreign(name, element)]
        unknown = [name for name in unknown if name not in known]
        unknown += [f"prism:{name}" for name in element.own if name not in own]
        for name in own.keys() & element.own.keys():
            if not re.fullmatch(own[name], element.own[name]):
                told = f"prism:{name} cannot be {element.own[name]!r}: correct it"
                self._problems.add(element, told)
        for name in unknown:
            self._problems.add(
                element, f"{name} of <{element.tag}> is not supported: remove it, or correct it"
            )
        if element.text:
            self._problems.add(element, f"text in <{element.tag}> is not supported: remove it")
        kind, kinds = element.attributes.get("type"), _VALUES.get(element.tag, ())
        if kinds and kind is not None and kind not in kinds:
            self._problems.add(
                element, f"type must be {' or '.join(map(repr, kinds))}, got {kind!r}"
            )
        for child in element.children:
            if self._is_foreign(child.tag, child):
                continue
            if child.tag in _INSIDE[element.tag]:
                self._require_known(child)
            else:
                self._problems.add(
                    child, f"<{child.tag}> in <{element.tag}> is not supported: remove it"
                )

    def _is_foreign(self, name: str, element: Element) -> bool:
        """Return whether a name is of a foreign namespace, which is noted once."""
        namespace, between, _ = name.rpartition(BETWEEN)
        if between:
            self._problems.passed_over.setdefault(namespace, element.line)
        return bool(between)

    def _state(self, place: _Place) -> Any:
        element = place.element
        member = self._members[place.text]
        is_parallel = element.tag == "parallel" and bool(place.inside)
        entry, leaving = self._functions(element, "entry"), self._functions(element, "exit")
        initial = self._initial(element)
        if not place.inside and not entry and not leaving:
            return member
        try:
            return State(
                member,
                map(self._state, place.inside),
                initial=initial or None,
                parallel=is_parallel,
                entry=entry,
                exit=leaving,
            )
        except DefinitionError as error:
            self._problems.add(element, str(error))
            return member

    def _initial(self, element: Element) -> tuple[Any, ...]:
        given = element.attributes.get("initial")
        inside = element.all("initial")
        if len(inside) + (given is not None) > 1:
            self._problems.add(element, "has several initials: leave one")
        if given is not None:
            return self._targets(element, given)
        if not inside:
            return ()

        transitions = inside[0].all("transition")
        if len(transitions) != 1 or "target" not in transitions[0].attributes:
            self._problems.add(inside[0], "<initial> needs one <transition> with a target")
            return ()
        self._require_unconditional(transitions[0])
        return self._targets(transitions[0], transitions[0].attributes["target"])

    def _require_unconditional(self, element: Element) -> None:
        own = [f"prism:{name}" for name in element.own]
        for name in [*(each for each in ("event", "cond") if each in element.attributes), *own]:
            self._problems.add(element, f"is always made, so it has no {name}: leave out {name}")

    def _targets(self, element: Element, names: str) -> tuple[Any, ...]:
        found = []
        for name in map(self._text, names.split()):
            if name in self._members:
                found.append(self._members[name])
            elif name in self._histories:
                found.append(self._history(*self._histories[name]))
            else:
                self._problems.add(
                    element,
                    f"names {name!r}, which is not a state: use the id of a state or history",
                )
        if not names.split():
            self._problems.add(element, "names no state: give an id, or leave the attribute out")
        if len(found) > MOST_TARGETS:
            self._problems.add(
                element, f"names more than {MOST_TARGETS} states: name one in each region"
            )
            return ()
        return tuple(found)

    def _history(self, place: _Place, element: Element) -> History[Any]:
        member, deep = self._members[place.text], element.attributes.get("type") == "deep"
        default: Any = None
        transitions = element.all("transition")
        if len(transitions) > 1:
            self._problems.add(element, "a history has at most one <transition>: leave one")
        for inside in transitions if not _is_set(element, "implicit") else ():
            self._require_unconditional(inside)
            names = inside.attributes.get("target", "")
            found = [self._members.get(self._text(name)) for name in names.split()]
            if not found or None in found:
                self._problems.add(inside, f"a history's default must name states, got {names!r}")
                return History(member, deep)
            default = found[0] if len(found) == 1 else tuple(found)
        return History(member, deep, default)

    # Transitions

    def _transition(self, place: _Place, element: Element) -> None:
        own, given = element.own, element.attributes
        targets = self._targets(element, given["target"]) or None if "target" in given else None
        probability = own.get("probability")
        try:
            item = Transition(
                self._trigger(element),
                ANY_STATE if own.get("source") == ANY_STATE else self._members[place.text],
                targets,
                self._guard(element),
                self._named(self._actions, "action", own.get("action"), element),
                internal=given.get("type") == "internal" and self._is_internal(place, targets),
                after=self._timing(int, own.get("after"), element),
                rate=self._timing(float, own.get("rate"), element),
                probability=None if probability is None else float(probability),
            )
        except (DefinitionError, ValueError) as error:
            self._problems.add(element, str(error))
            return

        self._made.append((int(own.get("place", len(self._made))), item))

    def _trigger(self, element: Element) -> str | None:
        if "event" not in element.attributes:
            return None
        events = element.attributes["event"].split()
        if _is_set(element, "exact"):
            return done_text(element.attributes["event"])
        if not events:
            self._problems.add(
                element,
                "the event is empty: name one, or leave event out of an eventless transition",
            )
            return None
        for event in events:
            if not _DESCRIPTOR.fullmatch(event):
                self._problems.add(
                    element,
                    f"{event!r} is not an event descriptor: write a name such as "
                    "'error.execution', a prefix of whole parts such as 'error.*', or '*' for any "
                    "event",
                )
        return EventDescriptor(" ".join(events))

    def _is_internal(self, place: _Place, targets: Sequence[Any] | None) -> bool:
        """Return whether a transition stays in its composite; any other is external."""
        if not targets or place.element.tag != "state" or not place.inside:
            return False
        inside = {each.text for each in _all_inside(place)}
        return all(
            state_text(each.state if isinstance(each, History) else each) in inside
            or (isinstance(each, History) and state_text(each.state) == place.text)
            for each in targets
        )

    def _guard(self, element: Element) -> Any:
        source = element.attributes.get("cond")
        if source is None:
            return None
        name = source.strip()
        if active := _ACTIVE.fullmatch(name):
            (state,) = self._targets(element, active[2]) or (None,)
            return In(state) if isinstance(state, Enum) else None
        if self._is_own and (guard := _GUARD.fullmatch(name)):
            name = guard[1] or "guard"
        return self._named(self._guards, "guard", name, element)

    def _timing(self, number: Callable[[str], Any], text: str | None, element: Element) -> Any:
        try:
            return None if text is None else number(text)
        except ValueError:
            return self._named(self._guards, "guard", text, element)

    def _functions(self, element: Element, kind: str) -> list[Any]:
        names = element.own.get(kind, "").split()
        found = [self._named(self._actions, "action", name, element) for name in names]
        return [each for each in found if each is not None]

    def _named(self, known: Functions, kind: str, name: str | None, element: Element) -> Any:
        """Return the function with a name, or with the text that the document has for it."""
        if name is None:
            return None
        text = self._text(name)
        found = looked_up(known, text)
        if found is None:
            self._problems.add(element, unknown(kind, text, known))
        return found

    # The chart

    def definition(self) -> Definition[Any]:
        """Return the chart of a document without problems."""
        own = self._root.own
        initial = self._starts or (self._members[self._top[0].text],)
        places = self._places.values()
        # a wildcard's transitions have one place
        made = dict(reversed(self._made))

        return Definition(
            self._tree,
            [made[place] for place in sorted(made)],
            initial[0] if len(initial) == 1 else initial,
            self._text(self._root.attributes.get("name", DEFAULT_NAME)),
            [self._members[each.text] for each in places if _is_set(each.element, "decision")],
            {
                self._members[each.text]: int(each.element.own["timeout"])
                for each in places
                if "timeout" in each.element.own
            },
            _is_set(self._root, "strict"),
            [self._members[each.text] for each in places if each.element.tag == "final"],
            needs=own.get("needs", "").split(),
            description=own.get("description", ""),
        )


def _is_set(element: Element, name: str) -> bool:
    return element.own.get(name) == "true"


def done_text(event: str) -> str:
    """Return the trigger that prism has written as an event's name."""
    prefix = DONE if event.startswith(DONE) else ""
    return prefix + scxml_text(event.removeprefix(prefix))


def _all_inside(place: _Place) -> Iterator[_Place]:
    for each in place.inside:
        yield each
        yield from _all_inside(each)
