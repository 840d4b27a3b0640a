"""Schema 2 of a chart's JSON form as it is declared, and read: charts with composites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from reprlib import repr as brief
from typing import Any, Literal

from pydantic import Field

from prism.errors import DefinitionError
from prism.files._declarations import AnyText, Declaration, WholeNumber, shaped
from prism.files._source import Problems, Source, Where
from prism.statechart._definition import Definition
from prism.statechart._nesting import In, State
from prism.statechart.formats._names import Functions, looked_up, unknown
from prism.statechart.states import state_enum, state_text
from prism.statechart.transitions import ANY_STATE, History, Transition

MOST_LEVELS = 100
"""Levels of states inside states that a document may have."""

Names = AnyText | list[AnyText]


class StateDocument(Declaration):
    """A state with others inside, or with actions; they stand in it by name."""

    state: AnyText
    states: list[AnyText | StateDocument] = Field(default_factory=list)
    initial: Names | None = None
    parallel: bool = False
    entry: Names | None = None
    exit: Names | None = None


class HistoryDocument(Declaration):
    """A history as a target."""

    history: AnyText
    deep: bool = False
    default: Names | None = None


class InDocument(Declaration):
    """A guard: a state is active."""

    state: AnyText = Field(alias="in")


Place = AnyText | HistoryDocument


class NestedTransitionDocument(Declaration):
    """One entry of ``transitions``; guard, action and a rate are names of functions."""

    trigger: AnyText | None
    source: AnyText
    target: Place | list[Place] | None
    guard: AnyText | InDocument | None = None
    action: AnyText | None = None
    internal: bool = False
    after: WholeNumber | None = None
    rate: float | AnyText | None = None
    probability: float | None = None


class NestedChartDocument(Declaration):
    """The document: ``docs/charts.md`` describes it."""

    version: Literal[2] = Field(alias="schema")
    states: list[AnyText | StateDocument] = Field(min_length=1)
    initial: Names
    transitions: list[NestedTransitionDocument]
    name: AnyText = "statechart"
    description: AnyText = ""
    decision_states: list[AnyText] = Field(default_factory=list)
    timeouts: dict[AnyText, WholeNumber] = Field(default_factory=dict)
    strict: bool = False
    final_states: list[AnyText] = Field(default_factory=list)
    needs: list[AnyText] = Field(default_factory=list)


def read_nested(
    source: Source,
    guards: Functions,
    actions: Functions,
    enum: type[Enum] | None,
    told: Callable[[str, Problems], DefinitionError],
) -> Definition[Any]:
    """Read a chart with composites: see `Statechart.from_dict`.

    Args:
        source: The document.
        guards: The functions for the names of guards and rates.
        actions: The functions for the names of actions.
        enum: The enum of the states; None to make one.
        told: Returns the error for what is wrong.
    """
    value = source.value
    name = brief(value.get("name", "statechart"))
    if _depth(value.get("states")) > MOST_LEVELS:
        raise DefinitionError(
            f"chart {name}: states are nested more than {MOST_LEVELS} levels deep"
        )

    problems = Problems(source)
    document = shaped(NestedChartDocument, value, problems)
    if document is None:
        raise told(name, problems)

    reader = _Reader(document, guards, actions, enum)
    for where, message in reader.problems():
        problems.add(where, message)
    if problems.found:
        raise told(name, problems)

    return reader.definition()


def _depth(states: Any) -> int:
    """Return how deep states lie, without recursion, as nobody has looked at the document yet."""
    depth, level = 0, [states]
    while level and depth <= MOST_LEVELS:
        inside = [each for one in level if isinstance(one, list) for each in one]
        level = [each.get("states") for each in inside if isinstance(each, Mapping)]
        depth += 1
    return depth


class _Reader:
    """Makes the definition of a document whose shape is right."""

    def __init__(
        self,
        document: NestedChartDocument,
        guards: Functions,
        actions: Functions,
        enum: type[Enum] | None,
    ) -> None:
        self._document = document
        self._functions = {"guard": guards, "action": actions}
        self._texts = [*_texts(document.states)]
        self._enum = enum

    def problems(self) -> Iterator[tuple[Where, str]]:
        """Yield where the document names something unknown."""
        known = set(self._texts)
        twice = [text for text, count in Counter(self._texts).items() if count > 1]
        if twice:
            yield ("states",), f"names {', '.join(map(brief, twice))} twice: remove one"
        if not all(self._texts):
            yield ("states",), "a state must not be an empty text"
        if self._enum is not None and (missing := known - set(map(state_text, self._enum))):
            listing = ", ".join(map(brief, sorted(missing)))
            yield ("states",), f"{self._enum.__name__} has no members {listing}"

        for where, text in self._named():
            is_wildcard = where[-1] == "source" and text == ANY_STATE
            if text not in known and not is_wildcard:
                yield where, f"names {brief(text)}, which is not among the states"
        for where, kind, text in self._functions_named():
            if self._function(kind, text) is None:
                yield where, unknown(kind, text, self._functions[kind])

    def _named(self) -> Iterator[tuple[Where, str]]:
        document = self._document
        yield from ((("initial",), text) for text in _list(document.initial))
        for key in ("decision_states", "final_states", "timeouts"):
            yield from (((key,), text) for text in getattr(document, key))
        for state in _documents(document.states):
            yield from ((("states",), text) for text in _list(state.initial))
        for number, item in enumerate(document.transitions):
            where = ("transitions", number)
            yield (*where, "source"), item.source
            if isinstance(item.guard, InDocument):
                yield (*where, "guard"), item.guard.state
            for place in _list(item.target):
                if isinstance(place, HistoryDocument):
                    yield (*where, "target"), place.history
                    yield from (((*where, "target"), text) for text in _list(place.default))
                else:
                    yield (*where, "target"), place

    def _functions_named(self) -> Iterator[tuple[Where, str, str]]:
        for state in _documents(self._document.states):
            for text in (*_list(state.entry), *_list(state.exit)):
                yield ("states",), "action", text
        for number, item in enumerate(self._document.transitions):
            for key, kind in (("guard", "guard"), ("action", "action"), ("rate", "guard")):
                found = getattr(item, key)
                if isinstance(found, str):
                    yield ("transitions", number, key), kind, found

    def _function(self, kind: str, name: str | None) -> Any:
        return looked_up(self._functions[kind], name)

    # What it says

    def definition(self) -> Definition[Any]:
        """Return the definition of a document in which nothing is wrong."""
        document = self._document
        enum = self._enum or state_enum("State", self._texts)
        by_text = {state_text(member): member for member in enum}

        def place(given: Any) -> Any:
            if given is None:
                return None
            if isinstance(given, list):
                return tuple(map(place, given))
            if isinstance(given, HistoryDocument):
                return History(by_text[given.history], given.deep, place(given.default))
            return by_text[given]

        def state(given: Any) -> Any:
            if not isinstance(given, StateDocument):
                return by_text[given]
            return State(
                by_text[given.state],
                map(state, given.states),
                initial=place(given.initial),
                parallel=given.parallel,
                entry=[self._function("action", name) for name in _list(given.entry)],
                exit=[self._function("action", name) for name in _list(given.exit)],
            )

        def transition(item: NestedTransitionDocument) -> Transition[Any]:
            guard = item.guard
            rate = item.rate
            return Transition(
                item.trigger,
                by_text.get(item.source, ANY_STATE),
                place(item.target),
                In(by_text[guard.state])
                if isinstance(guard, InDocument)
                else self._function("guard", guard),
                self._function("action", item.action),
                internal=item.internal,
                after=item.after,
                rate=self._function("guard", rate) if isinstance(rate, str) else rate,
                probability=item.probability,
            )

        return Definition(
            map(state, document.states),
            map(transition, document.transitions),
            place(document.initial),
            document.name,
            map(by_text.__getitem__, document.decision_states),
            {by_text[text]: ticks for text, ticks in document.timeouts.items()},
            document.strict,
            map(by_text.__getitem__, document.final_states),
            needs=document.needs,
            description=document.description,
        )


def _list(given: Any) -> list[Any]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _documents(states: list[Any]) -> Iterator[StateDocument]:
    for state in states:
        if isinstance(state, StateDocument):
            yield state
            yield from _documents(state.states)


def _texts(states: list[Any]) -> Iterator[str]:
    for state in states:
        if isinstance(state, StateDocument):
            yield state.state
            yield from _texts(state.states)
        else:
            yield state
