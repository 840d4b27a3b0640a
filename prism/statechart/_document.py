"""A chart as plain data, and back: the JSON form, which ``docs/charts.md`` describes.

The data are the arguments of the chart's parts by their names. States stand in them as texts, and
functions by names, for which whoever reads the data has the functions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from enum import Enum
from inspect import signature
from reprlib import repr as brief
from typing import Any

from prism.errors import DefinitionError
from prism.files.records import Where, key_of
from prism.statechart._definition import Definition
from prism.statechart._parts import History, State
from prism.statechart.names import own_name
from prism.statechart.states import joined, state_enum, state_text
from prism.statechart.transitions import ANY_STATE, DEFAULT_NAME, EventDescriptor, Transition

Functions = Mapping[str, Callable[[Any, Any], object]]
"""Guards or actions by the names under which charts are written and read."""

MOST_LEVELS = 100
"""Levels of states inside states that a document may have."""

_SCHEMA = 2
_REQUIRED = ("state", "trigger", "source", "target")

_LISTS = ("states", "transitions", "decision_states", "final_states")
_STATES = ("state", "source", "initial", "target", "default")
_KINDS = {
    **dict.fromkeys(("guard", "after", "rate"), "guard"),
    **dict.fromkeys(("action", "entry", "exit"), "action"),
}
_MAY_BE_SEVERAL = ("initial", "target", "default", "entry", "exit")
_TYPES: dict[str, Any] = {
    **dict.fromkeys(_LISTS, (list, tuple)),
    **dict.fromkeys(("deep", "internal", "parallel", "strict"), bool),
    **dict.fromkeys(("name", "description"), str),
    "timeouts": Mapping,
}
_PARTS: dict[str, Callable[..., Any]] = {"states": State, "transitions": Transition}


# Writing


def to_data(chart: Definition[Any]) -> dict[str, Any]:
    """Write a chart as plain data: see `Statechart.to_dict`."""
    writer = _Writer()
    data = {
        "schema": _SCHEMA,
        **{key: writer.plain(value, key, chart.name) for key, value in chart.arguments.items()},
    }
    if writer.problems:
        raise DefinitionError(
            f"chart {chart.name!r} cannot be written as data: {joined(writer.problems, '; ')}"
        )
    return data


def to_text(data: Mapping[str, Any]) -> str:
    """Write plain data as JSON that people can read."""
    return json.dumps(data, indent=2, ensure_ascii=False)


class _Writer:
    """Writes the parts of one chart, and collects the functions that cannot be named."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._named: dict[tuple[str, str], object] = {}

    def plain(self, value: Any, key: str, owner: object) -> Any:
        """Return a value as plain data.

        Args:
            value: The value.
            key: The key under which it stands.
            owner: What it belongs to, for messages.
        """
        match value:
            case EventDescriptor():
                return {"descriptor": str(value)}
            case str() | Enum():
                return state_text(value)
            case None | bool() | int() | float():
                return value
            case tuple() | list():
                return [self.plain(each, key, owner) for each in value]
            case Mapping():
                return {state_text(each): ticks for each, ticks in value.items()}
            case History():
                data = self._part(value, f"history of {state_text(value.state)!r}")
                return {"history": data.pop("state"), **data}
            case State():
                return self._part(value, f"state {state_text(value.state)!r}")
            case Transition():
                return self._part(value, value)
        return self._name(value, key, owner)

    def _part(self, part: Any, owner: object) -> dict[str, Any]:
        """Return the fields of a part of the chart that are required, or say something."""
        values = ((field.name, getattr(part, field.name)) for field in fields(part))
        return {
            key: self.plain(value, key, owner)
            for key, value in values
            if key in _REQUIRED or value not in (None, False, ())
        }

    def _name(self, function: Any, key: str, owner: object) -> str | None:
        kind, name = _KINDS[key], own_name(function)
        if name is None:
            self.problems.append(
                f"the {key} of {owner} has no name of its own ({brief(function)}): define it with "
                "'def', or set its __name__"
            )
        elif self._named.setdefault((kind, name), function) != function:
            self.problems.append(f"two {kind}s are called {name!r}, one of them in {owner}")
        return name


# Reading


def read_chart(
    data: Any,
    guards: Functions | None,
    actions: Functions | None,
    enum: type[Enum] | None,
    line_of: Callable[[Where], int] = lambda _: 0,
    problems: Iterable[tuple[int, str, str]] = (),
) -> dict[str, Any]:
    """Return the arguments of the chart that a document describes: see `Statechart.from_dict`.

    Args:
        data: The document.
        guards: The functions for the names of guards.
        actions: The functions for the names of actions.
        enum: The class of the states; None for one made from the texts.
        line_of: Returns the line of a place in the document; 0 if it has no lines.
        problems: What is wrong with it already: line, key and problem.

    Raises:
        DefinitionError: Listing what is wrong with the document.
    """
    reader = _Reader(line_of, {} if guards is None else guards, {} if actions is None else actions)
    reader.problems += problems
    arguments = reader.chart(data, enum)
    if arguments is None or reader.problems:
        name = data.get("name", DEFAULT_NAME) if isinstance(data, Mapping) else DEFAULT_NAME
        raise DefinitionError(f"chart {brief(name)}: {_listed(reader.problems)}")
    return arguments


class _Reader:
    """Makes the parts of a chart, and collects what is wrong with them by line, key and problem."""

    def __init__(
        self, line_of: Callable[[Where], int], guards: Functions, actions: Functions
    ) -> None:
        self.problems: list[tuple[int, str, str]] = []
        self._line_of = line_of
        self._functions = {"guard": guards, "action": actions}
        self._states: dict[str, Any] = {}

    def chart(self, data: Any, enum: type[Enum] | None) -> dict[str, Any] | None:
        """Return the arguments of a chart, unless something is wrong with it."""
        if not isinstance(data, Mapping) or data.get("schema") is not _SCHEMA:
            self._note(("schema",), f"must be {_SCHEMA}: write a mapping with that key")
            return None
        try:
            texts = [*_texts(data)]
            members: Iterable[Any] = enum or (state_enum("State", texts) if texts else ())
        except DefinitionError as error:
            self._note(("states",), str(error))
            return None
        self._states = {state_text(member): member for member in members}
        rest = {key: value for key, value in data.items() if key != "schema"}
        bound = self._part(signature(Definition).bind, rest, ())
        return bound and dict(bound.arguments)

    def _note(self, where: Where, problem: str) -> None:
        self.problems.append((self._line_of(where), key_of(where), problem))

    def _part(self, make: Callable[..., Any], data: Mapping[str, Any], where: Where) -> Any:
        """Make a part of the chart from its fields, unless something is wrong with them."""
        sound = len(self.problems)
        values = {key: self._value(key, value, (*where, key)) for key, value in data.items()}
        if len(self.problems) > sound:
            return None
        try:
            return make(**values)
        except (TypeError, DefinitionError) as error:
            return self._note(where, str(error))

    def _value(self, key: str, value: Any, where: Where) -> Any:
        are_several = isinstance(value, (list, tuple))
        # an item of a list is no list
        may_be_several = where[-1] == key and key in (*_LISTS, *_MAY_BE_SEVERAL)
        is_misplaced = are_several and not may_be_several
        if is_misplaced or not isinstance(value, _TYPES.get(key, object)):
            return self._note(where, f"cannot be {brief(value)}")
        if are_several:
            read = self._item if key in _LISTS else self._value
            return tuple([read(key, each, (*where, at)) for at, each in enumerate(value)])
        if isinstance(value, Mapping):
            return self._mapping(key, value, where)
        if isinstance(value, str) and key in _STATES:
            is_any = key == "source" and value == ANY_STATE and ANY_STATE not in self._states
            return value if is_any else self._state(value, where)
        if isinstance(value, str) and key in _KINDS:
            return self._function(_KINDS[key], value, where)
        return value

    def _mapping(self, key: str, value: Mapping[str, Any], where: Where) -> Any:
        if key == "timeouts":
            return {self._state(each, (*where, each)): value[each] for each in value}
        if key == "trigger" and isinstance(text := value.get("descriptor"), str):
            return EventDescriptor(text)
        if "history" not in value or key not in ("initial", "target", "default"):
            return self._note(where, f"cannot be {brief(value)}")
        fields = {"state" if name == "history" else name: each for name, each in value.items()}
        return self._part(History, fields, where)

    def _item(self, key: str, value: Any, where: Where) -> Any:
        if key in _PARTS and isinstance(value, Mapping):
            return self._part(_PARTS[key], value, where)
        return self._state(value, where)

    def _state(self, text: Any, where: Where) -> Any:
        if isinstance(text, str) and text in self._states:
            return self._states[text]
        return self._note(where, f"names {brief(text)}, which is not among the states")

    def _function(self, kind: str, name: str, where: Where) -> Any:
        functions = self._functions[kind]
        try:
            # an empty mapping may still find what it is asked
            return functions[name]
        except KeyError:
            names = joined([*map(brief, functions)]) or "nothing"
            return self._note(
                where, f"unknown {kind} {brief(name)}: pass it in {kind}s=, which has {names}"
            )


def _texts(inside: Any, level: int = 0) -> Iterator[str]:
    """Yield the texts of the states inside, in document order; what is misshapen is passed over."""
    if level > MOST_LEVELS:
        raise DefinitionError(f"are nested more than {MOST_LEVELS} levels deep: split the chart")
    states = inside.get("states") if isinstance(inside, Mapping) else ()
    for each in states if isinstance(states, (list, tuple)) else ():
        text = each.get("state") if isinstance(each, Mapping) else each
        if isinstance(text, str):
            yield text
        yield from _texts(each, level + 1)


def _listed(problems: Iterable[tuple[int, str, str]]) -> str:
    """Return what is wrong with a document as a line for each problem."""
    lines = []
    for line, key, problem in sorted(problems):
        where = ", ".join(filter(None, (f"line {line}" if line else "", key)))
        lines.append(f"{where}: {problem}" if where else problem)
    return lines[0] if len(lines) == 1 else f"{len(lines)} problems:" + joined(["", *lines], "\n  ")
