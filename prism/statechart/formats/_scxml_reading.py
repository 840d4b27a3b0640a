"""An SCXML document as a chart: its states, and the transitions between them.

Everything that keeps a document from being read is reported at once, with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from prism.errors import DefinitionError
from prism.statechart._definition import DEFAULT_NAME, Definition
from prism.statechart._nesting import (
    DONE,
    DocumentHistory,
    DocumentState,
    EventDescriptor,
    In,
    State,
)
from prism.statechart.formats._names import Functions, joined, looked_up, unknown
from prism.statechart.formats._scxml_actions import ContentReader, Problems
from prism.statechart.formats._scxml_content import Done, LateStart, Start
from prism.statechart.formats._scxml_data import (
    DEFAULT_LANGUAGE,
    DIALECTS,
    Condition,
    Model,
    require_tick,
)
from prism.statechart.formats._scxml_names import scxml_text
from prism.statechart.formats._scxml_xml import Document, Element, parse
from prism.statechart.states import state_enum, state_text
from prism.statechart.transitions import ANY_STATE, DocumentPart, History, Transition
from prism.telemetry._loggers import warn_standard

MOST_STATES = 10_000
MOST_TARGETS = 100

_STATES = ("state", "parallel", "final")
_GUARD = re.compile(r"_event\.data\.guard_?(\w*)")
_ACTIVE = re.compile(r"In\(\s*(['\"])([^'\"]*)\1\s*\)")
_PLAIN = re.compile(r"[^\s*]+")
_DESCRIPTOR = re.compile(r"\.?\*|[^\s.*]+(\.[^\s.*]+)*(\.\*?)?")
_INSIDE: Mapping[str, frozenset[str]] = {
    "scxml": frozenset({*_STATES, "datamodel"}),
    "state": frozenset(
        {*_STATES, "datamodel", "onentry", "onexit", "transition", "initial", "history"}
    ),
    "parallel": frozenset(
        {"state", "parallel", "datamodel", "onentry", "onexit", "transition", "history"}
    ),
    "final": frozenset({"onentry", "onexit", "donedata"}),
    "history": frozenset({"transition"}),
    "initial": frozenset({"transition"}),
}
"""The children that an element of the structure may have."""

_VALUES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "scxml": ("binding", ("early", "late")),
    "transition": ("type", ("external", "internal")),
    "history": ("type", ("shallow", "deep")),
}
"""The attribute of an element that has one of a few values."""


def read_scxml(
    text: str,
    guards: Functions | None,
    actions: Functions | None,
    enum: type[Enum] | None,
    tick: str,
) -> Definition[Any]:
    """Read a chart: see `Statechart.from_scxml`."""
    seconds = require_tick(tick)
    document = parse(text)
    problems = Problems()
    reader = _Reader(document, problems, guards or {}, actions or {}, enum, seconds)
    if not problems.found:
        reader.read()
    if problems.found:
        name = document.root.attributes.get("name", DEFAULT_NAME)
        raise _refused(name, problems)
    for line, message in problems.notes:
        warn_standard(f"SCXML document, line {line}: {message}")

    return reader.definition()


def _refused(name: str, problems: Problems) -> DefinitionError:
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
        document: Document,
        problems: Problems,
        guards: Functions,
        actions: Functions,
        enum: type[Enum] | None,
        tick: float,
    ) -> None:
        self._root = document.root
        self._is_own = document.is_own
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
        self._require_root()
        if problems.found:
            return

        self._find_states()
        language = self._root.attributes.get("datamodel", DEFAULT_LANGUAGE)
        self._content = ContentReader(self._model(language, tick), problems)

    def _require_root(self) -> None:
        root = self._root
        if root.tag != "scxml":
            self._problems.add(root, f"the outermost element must be <scxml>, got <{root.tag}>")
            return
        language = root.attributes.get("datamodel", DEFAULT_LANGUAGE)
        if language not in DIALECTS:
            self._problems.add(
                root,
                f"the data model {language!r} is not supported: use one of {', '.join(DIALECTS)}",
            )
        for element in root.walk():
            if "src" in element.attributes or "srcexpr" in element.attributes:
                self._problems.add(
                    element,
                    f"<{element.tag}> has a src, which is not fetched: write its content into the "
                    "document",
                )

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

    def _model(self, language: str, tick: float) -> Model:
        inside: dict[str, frozenset[str]] = {}

        def collect(place: _Place) -> frozenset[str]:
            found = [collect(each) for each in place.inside]
            inside[place.text] = frozenset().union(*found) if found else frozenset({place.text})
            return inside[place.text]

        if not self._problems.found:
            for place in self._top:
                collect(place)
        name = self._text(self._root.attributes.get("name", DEFAULT_NAME))
        is_late = self._root.attributes.get("binding") == "late"
        return Model(name, DIALECTS[language], tick, (), inside, is_late)

    # Reading

    def read(self) -> None:
        """Read everything, and collect the problems."""
        self._require_known_children()
        self._require_known_values()
        self._content.declare(self._root)
        self._tree = [self._state(place) for place in self._top]
        if "initial" in self._root.attributes:
            self._starts = self._targets(self._root, self._root.attributes["initial"])
        for place in self._places.values():
            for element in place.element.all("transition"):
                self._transition(place, element)
        if not self._problems.found:
            self._simplify()

    def _require_known_children(self) -> None:
        for element in self._root.walk():
            known = _INSIDE.get(element.tag)
            for child in element.children if known is not None else ():
                if " " in child.tag:
                    self._problems.note(child, f"<{child.tag}> is ignored")
                elif known is not None and child.tag not in known:
                    self._problems.add(
                        child, f"<{child.tag}> in <{element.tag}> is not supported: remove it"
                    )

    def _require_known_values(self) -> None:
        for element in self._root.walk():
            name, values = _VALUES.get(element.tag, ("", ()))
            value = element.attributes.get(name)
            if value is not None and value not in values:
                self._problems.add(
                    element, f"{name} must be {' or '.join(map(repr, values))}, got {value!r}"
                )

    def _state(self, place: _Place) -> Any:
        element = place.element
        member = self._members[place.text]
        is_parallel = element.tag == "parallel" and bool(place.inside)
        entry = self._entry(place)
        leaving = [*self._functions(element, "exit"), *self._blocks(element, "onexit")]

        initial, start = self._initial(place)
        if not place.inside and not entry and not leaving:
            return member
        if start or (is_parallel and len(place.inside) == 1):
            return DocumentState(
                member,
                tuple(map(self._state, place.inside)),
                initial,
                is_parallel,
                tuple(entry),
                tuple(leaving),
                start,
            )
        return State(
            member,
            map(self._state, place.inside),
            initial=initial or None,
            parallel=is_parallel,
            entry=entry,
            exit=leaving,
        )

    def _entry(self, place: _Place) -> list[Any]:
        element, model = place.element, self._content.model
        entry = [*self._functions(element, "entry"), *self._blocks(element, "onentry")]
        if model.is_late and (data := self._content.data_of(element)):
            entry.insert(0, LateStart(model, place.text, data))
        if element.tag == "final" and place not in self._top:
            entry.append(Done(model, place.text, self._content.donedata(element)))
        return entry

    def _initial(self, place: _Place) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        element = place.element
        given = element.attributes.get("initial")
        inside = element.all("initial")
        if given is not None:
            return self._targets(element, given), ()
        if not inside:
            return (), ()

        transitions = inside[0].all("transition")
        if len(transitions) != 1 or "target" not in transitions[0].attributes:
            self._problems.add(inside[0], "<initial> needs one <transition> with a target")
            return (), ()
        self._require_unconditional(transitions[0])
        content = self._content.block(transitions[0])
        targets = self._targets(transitions[0], transitions[0].attributes["target"])
        return targets, () if content is None else (content,)

    def _require_unconditional(self, element: Element) -> None:
        for name in ("event", "cond"):
            if name in element.attributes:
                self._problems.add(
                    element, f"is always made, so it has no {name}: leave out {name}"
                )

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
        content = None
        for inside in element.all("transition") if "implicit" not in element.own else ():
            self._require_unconditional(inside)
            content = self._content.block(inside)
            names = inside.attributes.get("target", "")
            found = [self._members.get(self._text(name)) for name in names.split()]
            if not found or None in found:
                self._problems.add(inside, f"a history's default must name states, got {names!r}")
                return History(member, deep)
            default = found[0] if len(found) == 1 else tuple(found)
        if content is not None:
            return DocumentHistory(member, deep, default, content)
        return History(member, deep, default)

    # Transitions

    def _transition(self, place: _Place, element: Element) -> None:
        own, given = element.own, element.attributes
        targets = self._targets(element, given["target"]) or None if "target" in given else None
        probability, rate = own.get("probability"), own.get("rate")
        try:
            item = Transition(
                self._trigger(element),
                ANY_STATE if own.get("source") == ANY_STATE else self._members[place.text],
                targets,
                self._guard(element),
                self._action(element),
                internal=given.get("type") == "internal" and self._is_internal(place, targets),
                after=int(own["after"]) if "after" in own else None,
                rate=None if rate is None else self._rate(rate, element),
                probability=None if probability is None else float(probability),
            )
        except (DefinitionError, ValueError) as error:
            self._problems.add(element, str(error))
            return

        number = own.get("place", "")
        self._made.append((int(number) if number.isdecimal() else len(self._made), item))

    def _trigger(self, element: Element) -> str | None:
        if "event" not in element.attributes:
            return None
        events = element.attributes["event"].split()
        if self._is_own:
            # behind it stands what its timer sends
            return done_text(events[0]) if events else ""
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
        active, guard = _ACTIVE.fullmatch(source.strip()), _GUARD.fullmatch(source.strip())
        if active and self._text(active[2]) in self._members:
            return In(self._members[self._text(active[2])])
        if guard and self._is_own:
            return self._named(self._guards, "guard", scxml_text(guard[1]) or "guard", element)

        value = self._content.value(element, source)
        return None if value is None else Condition(self._content.model, value)

    def _rate(self, text: str, element: Element) -> Any:
        try:
            return float(text)
        except ValueError:
            return self._named(self._guards, "guard", scxml_text(text), element)

    def _action(self, element: Element) -> Any:
        name = element.own.get("action")
        content = self._content.block(element)
        if name is None:
            return content
        if content is not None:
            self._problems.add(
                element, "has both prism:action and other content: remove one of the two"
            )
        return self._named(self._actions, "action", scxml_text(name), element)

    def _functions(self, element: Element, kind: str) -> list[Any]:
        names = element.own.get(kind, "").split()
        found = [self._named(self._actions, "action", scxml_text(name), element) for name in names]
        return [each for each in found if each is not None]

    def _blocks(self, element: Element, tag: str) -> list[Any]:
        found = [self._content.block(each, self._is_own) for each in element.all(tag)]
        return [each for each in found if each is not None]

    def _named(self, known: Functions, kind: str, name: str, element: Element) -> Any:
        found = looked_up(known, name)
        if found is None:
            self._problems.add(element, unknown(kind, name, known))
        return found

    # The chart

    def _simplify(self) -> None:
        """Take descriptors for plain triggers where nothing else is particular to documents."""
        if self._is_plain():
            self._tree = [_without_done(state) for state in self._tree]
            self._made = [(place, _plainly(item)) for place, item in self._made]
        else:
            model = self._content.model
            self._tree = [_started(state, Start(model)) for state in self._tree]

    def _is_plain(self) -> bool:
        """Return whether the document says nothing that a chart written in Python could not."""
        if self._content.has_data or any(map(_does_more, self._all_functions())):
            return False

        triggers = [item.trigger for _, item in self._made if item.trigger is not None]
        return self._is_own or _are_plain(triggers)

    def _all_functions(self) -> Iterator[Any]:
        """Yield every guard and every content of the document."""
        for _, item in self._made:
            yield from (item.guard, item.action)
        for state in self._tree:
            yield from _functions_of(state)
        for _, history in self._histories.values():
            yield from map(self._content.block, history.all("transition"))

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
            self._content.model.name,
            [self._members[each.text] for each in places if "decision" in each.element.own],
            {
                self._members[each.text]: int(each.element.own["timeout"])
                for each in places
                if each.element.own.get("timeout", "").isdecimal()
            },
            own.get("strict") == "true",
            [self._members[each.text] for each in places if each.element.tag == "final"],
            needs=own.get("needs", "").split(),
            description=own.get("description", ""),
        )


def done_text(event: str) -> str:
    """Return the trigger that prism has written as an event's name."""
    prefix = DONE if event.startswith(DONE) else ""
    return prefix + scxml_text(event.removeprefix(prefix))


def _all_inside(place: _Place) -> Iterator[_Place]:
    for each in place.inside:
        yield each
        yield from _all_inside(each)


def _functions_of(state: Any) -> Iterator[Any]:
    if isinstance(state, State):
        yield from (*state.entry, *state.exit, *state.start)
        for each in state.states:
            yield from _functions_of(each)


def _does_more(part: Any) -> bool:
    """Return whether content of a document does more than to say what is done."""
    is_done = isinstance(part, Done) and not part.payload
    return isinstance(part, DocumentPart) and not is_done


def _are_plain(triggers: Sequence[str]) -> bool:
    """Return whether descriptors are names, none of which begins another, which it would match."""
    names = {*triggers}
    return all(map(_PLAIN.fullmatch, names)) and not any(
        name[:place] in names for name in names for place, sign in enumerate(name) if sign == "."
    )


def _plainly(item: Transition[Any]) -> Transition[Any]:
    return item if item.trigger is None else replace(item, trigger=str(item.trigger))


def _without_done(state: Any) -> Any:
    if not isinstance(state, State):
        return state
    entry = tuple(each for each in state.entry if not isinstance(each, Done))
    states = tuple(map(_without_done, state.states))
    if not states and not entry and not state.exit:
        return state.state
    return replace(state, states=states, entry=entry)


def _started(state: Any, start: Callable[[Any, Any], object]) -> Any:
    if not isinstance(state, State):
        return State(state, entry=start)
    return replace(state, entry=(start, *state.entry))
