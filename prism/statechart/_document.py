"""A chart as plain data, and back: the JSON form, which ``docs/charts.md`` describes.

The data are the arguments of the chart's parts by their names. States stand in them as texts, and
functions by names, for which whoever reads the data has the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from functools import lru_cache
from inspect import signature
from reprlib import repr as brief
from typing import Any

from prism.errors import DefinitionError
from prism.files.records import Where, key_of
from prism.statechart._definition import Definition
from prism.statechart._extending import with_members
from prism.statechart._parts import History, State, with_insides
from prism.statechart.names import did_you_mean, function_name
from prism.statechart.states import joined, state_enum, state_text
from prism.statechart.transitions import EventDescriptor, Transition

Functions = Mapping[str, Callable[[Any, Any], object]]
"""Guards or actions by the names under which charts are written and read."""

_SCHEMA = 2
_LISTS = ("states", "transitions", "decision_states", "final_states")
_FUNCTIONS = dict.fromkeys(("guard", "after", "rate"), "guards")
_FUNCTIONS |= dict.fromkeys(("action", "entry", "exit"), "actions")
_SCALARS: dict[str, Any] = dict.fromkeys(("deep", "internal", "parallel", "strict"), bool)
_SCALARS |= {"name": str, "description": str, "timeouts": Mapping}
"""The values under keys whose values the parts of a chart do not check themselves."""


# Writing


def to_data(chart: Definition[Any]) -> dict[str, Any]:
    """Write a chart as plain data: see `Statechart.to_dict`."""
    functions: dict[tuple[str, str], object] = {}
    data = {key: _plain(each, key, chart.name, functions) for key, each in chart.arguments.items()}
    return {"schema": _SCHEMA, **data}


def _plain(value: Any, key: str, owner: object, functions: dict[tuple[str, str], object]) -> Any:
    """Return a part of a chart as plain data.

    Args:
        value: The part.
        key: The key under which it stands.
        owner: What it belongs to, for messages.
        functions: Gets the functions by kind and name.
    """
    match value:
        case EventDescriptor():
            return {"descriptor": str(value)}
        case str() | Enum():
            return state_text(value)
        case None | bool() | int() | float():
            return value
        case tuple():
            return [_plain(each, key, owner, functions) for each in value]
        case dict():
            return {state_text(each): ticks for each, ticks in value.items()}
        case History() | State() | Transition():
            items = ((field, getattr(value, field.name)) for field in fields(value))
            data = {
                field.name: _plain(each, field.name, value, functions)
                for field, each in items
                if field.default is MISSING or each not in (None, False, ())
            }
            return {"history": data.pop("state"), **data} if isinstance(value, History) else data

    name, kind = function_name(value), _FUNCTIONS[key]
    if name is None:
        problem = f"has no name ({brief(value)}): use 'def', or set its __name__"
        raise DefinitionError(f"the {key} of {owner} {problem}")
    if functions.setdefault((kind, name), value) != value:
        raise DefinitionError(f"two {kind} are called {name!r}, one of them in {owner}")
    return name


# Reading


def read_chart(
    data: Any, guards: Functions | None, actions: Functions | None, enum: type[Enum] | None
) -> dict[str, Any]:
    """Return the arguments of the chart that a document describes: see `Statechart.from_dict`.

    Args:
        data: The document.
        guards: The functions for the names of guards.
        actions: The functions for the names of actions.
        enum: The class of the states; None for one made from the texts.

    Raises:
        DefinitionError: For the first part of the document that is wrong.
    """
    if not isinstance(data, Mapping) or data.get("schema") is not _SCHEMA:
        raise DefinitionError(f"schema: must be {_SCHEMA}: write a mapping with that key")
    for key in _LISTS:
        if not isinstance(value := data.get(key, ()), (list, tuple)):
            raise _wrong((key,), f"must be a list, got {brief(value)}")
    rest = {key: value for key, value in data.items() if key != "schema"}
    arguments = _Reader(guards=guards, actions=actions).part(Definition, rest, ()).arguments
    states = [each.state for each in with_insides(arguments["states"])]
    return with_members(arguments, enum or state_enum("State", states))


def _history(history: Any, deep: bool = False, default: Any = None) -> History[Any]:
    return History(history, deep, default)


_PARTS: dict[str, Callable[..., Any]] = {"states": State, "transitions": Transition}
_PARTS |= dict.fromkeys(("initial", "target", "default"), _history)


_form_of = lru_cache(signature)


class _Reader:
    """Makes the parts of a chart, in which states are texts.

    Args:
        functions: The functions by name, as ``guards`` and ``actions``.
    """

    def __init__(self, **functions: Functions | None) -> None:
        self._functions = {kind: {} if each is None else each for kind, each in functions.items()}

    def part(self, make: Callable[..., Any], data: Mapping[str, Any], where: Where) -> Any:
        """Make a part of the chart from its fields; bind those of the chart itself."""
        keys = _form_of(make).parameters
        if make is State and isinstance(data.get("state"), str):
            where = ("states", data["state"])
        for key in data:
            if key not in keys:
                raise _wrong((*where, key), f"is no key{did_you_mean(key, [*keys])}")
        values = {key: self._value(key, each, (*where, key)) for key, each in data.items()}
        try:
            return _form_of(make).bind(**values) if make is Definition else make(**values)
        except (TypeError, DefinitionError) as error:
            raise _wrong(where, str(error)) from None

    def _value(self, key: str, value: Any, where: Where) -> Any:
        match value:
            case list() | tuple() if key not in _SCALARS:
                each = enumerate(value)
                return tuple([self._value(key, part, (*where, index)) for index, part in each])
            case {"descriptor": text} if key == "trigger":
                return EventDescriptor(text)
            case Mapping() if key in _PARTS:
                return self.part(_PARTS[key], value, where)
            case str() if key in _FUNCTIONS:
                return self._function(_FUNCTIONS[key], value, where)
        kinds = _SCALARS.get(key, (str, int, float, type(None)))
        if isinstance(value, kinds) and key != "transitions":
            return value
        raise _wrong(where, f"cannot be {brief(value)}")

    def _function(self, kind: str, name: str, where: Where) -> Any:
        functions = self._functions[kind]
        try:
            # an empty mapping may still have what it is asked for
            return functions[name]
        except KeyError:
            names = joined([*map(brief, functions)]) or "nothing"
            problem = f"unknown function {brief(name)}: pass it in {kind}=, which has {names}"
            raise _wrong(where, problem) from None


def _wrong(where: Where, problem: str) -> DefinitionError:
    return DefinitionError(": ".join(filter(None, (key_of(where), problem))), where)
