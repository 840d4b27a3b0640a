"""A chart as plain data: the JSON form, which ``docs/charts.md`` describes.

The data are the arguments of the chart's parts by their names. Functions stand in them by name too,
and whoever reads the data has functions for the names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from reprlib import repr as brief
from typing import Any

from prism.errors import DefinitionError
from prism.statechart._definition import Definition, arguments_of
from prism.statechart._identity import own_name
from prism.statechart._nesting import EventDescriptor, In, State
from prism.statechart.states import joined, state_text
from prism.statechart.transitions import History, Transition

Functions = Mapping[str, Callable[[Any, Any], object]]
"""Guards or actions by the names under which charts are written and read."""

_REQUIRED = ("state", "trigger", "source", "target")


def to_data(
    chart: Definition[Any], guards: Functions | None, actions: Functions | None
) -> dict[str, Any]:
    """Write a chart as plain data: see `Statechart.to_dict`."""
    writer = _Writer(guards or {}, actions or {})
    parts = arguments_of(chart).items()
    data = {"schema": 2, **{key: writer.plain(value, key, chart.name) for key, value in parts}}
    if writer.problems:
        raise DefinitionError(
            f"chart {chart.name!r} cannot be written as data: {joined(writer.problems, '; ')}"
        )
    return data


def to_text(data: Mapping[str, Any]) -> str:
    """Write plain data as JSON that people can read."""
    return json.dumps(data, indent=2, ensure_ascii=False)


class _Writer:
    """Writes the parts of one chart, and collects the functions that cannot be named.

    Args:
        guards: Guards, rates and delays by name.
        actions: Actions by name.
    """

    def __init__(self, guards: Functions, actions: Functions) -> None:
        self.problems: list[str] = []
        self._registered = {"guard": guards, "action": actions}
        self._named: dict[tuple[str, str], object] = {}

    def plain(self, value: Any, key: str, owner: object) -> Any:
        """Return a value as plain data.

        Args:
            value: The value.
            key: The key under which it stands.
            owner: What it belongs to, for messages.
        """
        match value:
            case None | bool() | int() | float():
                return value
            case EventDescriptor():
                return {"descriptor": str(value)}
            case str():
                return state_text(value)
            case tuple() | list():
                return [self.plain(each, key, owner) for each in value]
            case Mapping():
                return {state_text(each): ticks for each, ticks in value.items()}
            case In():
                return {"in": state_text(value.state)}
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
        kind = "action" if key in ("action", "entry", "exit") else "guard"
        registered = self._registered[kind]
        names = (name for name, known in registered.items() if known == function)
        name = next(names, None) or own_name(function)
        advice = f"register it, {kind}s={{'some_name': function}}"
        if name is None:
            self.problems.append(
                f"the {key} of {owner} has no name of its own ({brief(function)}): {advice}"
            )
        elif (
            registered.get(name, function) != function
            or self._named.setdefault((kind, name), function) != function
        ):
            self.problems.append(
                f"two {kind}s are called {name!r}, one of them in {owner}; for that one, {advice}"
            )
        return name
