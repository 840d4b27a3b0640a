"""A chart as plain data, and back: the JSON form, which ``docs/charts.md`` describes.

The data are the arguments of the chart's parts by their names. States stand in them as texts, and
functions by names, for which whoever reads the data has the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from enum import Enum
from inspect import signature
from reprlib import repr as brief
from typing import Any

from prism.errors import DefinitionError
from prism.files.records import Where, key_of
from prism.statechart._definition import Definition
from prism.statechart._parts import TIMING, History, State
from prism.statechart.names import own_name
from prism.statechart.states import joined, state_enum, state_text
from prism.statechart.transitions import ANY_STATE, EventDescriptor, Transition

Functions = Mapping[str, Callable[[Any, Any], object]]
"""Guards or actions by the names under which charts are written and read."""

_SCHEMA = 2
_REQUIRED = ("state", "trigger", "source", "target")
_LISTS = ("states", "transitions", "decision_states", "final_states")
_MAY_BE_SEVERAL = (*_LISTS, "initial", "target", "default", "entry", "exit")
_STATES = (*_LISTS, "state", "source", "initial", "target", "default", "history")
_FUNCTIONS = {
    **dict.fromkeys(("guard", "after", "rate"), "guards"),
    **dict.fromkeys(("action", "entry", "exit"), "actions"),
}
_PLAIN: dict[str, Any] = {
    **dict.fromkeys(("name", "description", "trigger"), str),
    **dict.fromkeys(("deep", "internal", "parallel", "strict"), bool),
    **dict.fromkeys(TIMING, (int, float)),
}
_MAY_BE_NULL = ("trigger", "target", "guard", "action", *TIMING, "initial", "default")


# Writing


def to_data(chart: Definition[Any]) -> dict[str, Any]:
    """Write a chart as plain data: see `Statechart.to_dict`."""
    functions: dict[tuple[str, str], object] = {}
    arguments = chart.arguments.items()
    return {
        "schema": _SCHEMA,
        **{key: _plain(value, key, chart.name, functions) for key, value in arguments},
    }


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
            items = ((field.name, getattr(value, field.name)) for field in fields(value))
            data = {
                name: _plain(each, name, value, functions)
                for name, each in items
                if name in _REQUIRED or each not in (None, False, ())
            }
            return {"history": data.pop("state"), **data} if isinstance(value, History) else data

    name, kind = own_name(value), _FUNCTIONS[key]
    if name is None:
        raise DefinitionError(
            f"the {key} of {owner} has no name of its own ({brief(value)}): define it with 'def', "
            "or set its __name__"
        )
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
    states: Iterable[Any] = enum or state_enum("State", _texts(data.get("states")))
    functions = {"guards": {} if guards is None else guards}
    functions["actions"] = {} if actions is None else actions
    reader = _Reader({state_text(state): state for state in states}, functions)
    rest = {key: value for key, value in data.items() if key != "schema"}
    return dict(reader.part(signature(Definition).bind, rest, ()).arguments)


def _history(history: Any, **options: Any) -> History[Any]:
    return History(history, **options)


_PARTS: dict[str, Callable[..., Any]] = {
    **{"states": State, "transitions": Transition},
    **dict.fromkeys(("initial", "target", "default"), _history),
}


class _Reader:
    """Makes the parts of a chart.

    Args:
        states: The states by text.
        functions: The functions by name, as ``guards`` and ``actions``.
    """

    def __init__(self, states: Mapping[str, Any], functions: Mapping[str, Functions]) -> None:
        self._states, self._functions = states, functions

    def part(self, make: Callable[..., Any], data: Mapping[str, Any], where: Where) -> Any:
        """Make a part of the chart from its fields."""
        values = {key: self._values(key, each, (*where, key)) for key, each in data.items()}
        try:
            return make(**values)
        except (TypeError, DefinitionError) as error:
            raise _wrong(where, str(error)) from None

    def _values(self, key: str, value: Any, where: Where) -> Any:
        if key in _MAY_BE_SEVERAL and isinstance(value, (list, tuple)):
            return tuple([self._value(key, each, (*where, at)) for at, each in enumerate(value)])
        if key in _LISTS:
            raise _wrong(where, f"must be a list, got {brief(value)}")
        return self._value(key, value, where)

    def _value(self, key: str, value: Any, where: Where) -> Any:
        if key in _PARTS and isinstance(value, Mapping):
            return self.part(_PARTS[key], value, where)
        if key == "timeouts" and isinstance(value, Mapping):
            return {self._state(each, (*where, each)): value[each] for each in value}
        if key == "trigger" and isinstance(value, Mapping) and "descriptor" in value:
            return EventDescriptor(value["descriptor"])
        if key == "source" and value == ANY_STATE:
            return self._states.get(value, value)
        if key in _STATES and isinstance(value, str):
            return self._state(value, where)
        if key in _FUNCTIONS and isinstance(value, str):
            return self._function(_FUNCTIONS[key], value, where)
        if isinstance(value, _PLAIN.get(key, ())) or (value is None and key in _MAY_BE_NULL):
            return value
        raise _wrong(where, f"is no key of a chart, or cannot be {brief(value)}")

    def _state(self, text: str, where: Where) -> Any:
        if text not in self._states:
            raise _wrong(where, f"names {brief(text)}, which is not among the states")
        return self._states[text]

    def _function(self, kind: str, name: str, where: Where) -> Any:
        functions = self._functions[kind]
        try:
            # an empty mapping may still have what it is asked for
            return functions[name]
        except KeyError:
            names = joined([*map(brief, functions)]) or "nothing"
            raise _wrong(
                where, f"unknown function {brief(name)}: pass it in {kind}=, which has {names}"
            ) from None


def _wrong(where: Where, problem: str) -> DefinitionError:
    return DefinitionError(": ".join(filter(None, (key_of(where), problem))))


def _texts(states: Any) -> Iterator[str]:
    """Yield the texts of states and those inside, in order; what is misshapen is passed over."""
    for each in states if isinstance(states, (list, tuple)) else ():
        data = each if isinstance(each, Mapping) else {"state": each}
        if isinstance(text := data.get("state"), str):
            yield text
        yield from _texts(data.get("states"))
