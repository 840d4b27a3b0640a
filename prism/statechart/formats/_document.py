"""A chart as plain data, and back: the JSON form.

The form holds what defines a chart and nothing that runs: guards and actions stand in it by name,
and the loader gets the functions for them. Nothing in a file is imported or evaluated.
``docs/charts.md`` describes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import repr as brief
from typing import Any

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart._identity import own_name
from prism.statechart.states import state_text
from prism.statechart.transitions import Transition

SCHEMA_VERSION = 1
_MOST_LISTED = 20
_HALF_PAIR = re.compile("[\ud800-\udfff]")

Functions = Mapping[str, Callable[[Any, Any], object]]
"""Guards or actions by the names under which charts are written and read."""


def to_data(
    chart: Definition[Any], guards: Functions | None, actions: Functions | None
) -> dict[str, Any]:
    """Write a chart as plain data: see `Statechart.to_dict`."""
    guard_names, action_names = _Names("guard", guards), _Names("action", actions)
    transitions = [_transition_data(item, guard_names, action_names) for item in chart.transitions]
    problems = guard_names.problems + action_names.problems
    if problems:
        raise DefinitionError(f"chart {chart.name!r} cannot be written as data: {joined(problems)}")

    return {
        "schema": SCHEMA_VERSION,
        "name": chart.name,
        # only where there is one, so that earlier readers take all other charts
        **({"description": chart.description} if chart.description else {}),
        "states": [state_text(state) for state in chart.states],
        "initial": state_text(chart.initial),
        "decision_states": _texts(chart, chart.decision_states),
        "timeouts": {
            state_text(state): chart.timeouts[state]
            for state in chart.states
            if state in chart.timeouts
        },
        "strict": chart.strict,
        "final_states": _texts(chart, chart.final_states),
        "needs": list(chart.needs),
        "transitions": transitions,
    }


def _texts(chart: Definition[Any], states: Container[Any]) -> list[str]:
    return [state_text(state) for state in chart.states if state in states]


def _transition_data(item: Transition[Any], guards: _Names, actions: _Names) -> dict[str, Any]:
    data = {
        "trigger": item.trigger,
        "source": state_text(item.source),
        "target": state_text(item.target),
    }
    for names, function in ((guards, item.guard), (actions, item.action)):
        if function is not None:
            data[names.kind] = names.of(function, item)

    return data


@dataclass
class _Names:
    """Names the functions of one kind, each name for one function, and collects the problems."""

    kind: str
    given: Functions | None
    problems: list[str] = field(default_factory=list)
    _taken: dict[str, object] = field(default_factory=dict)
    _known: dict[int, str] = field(default_factory=dict)

    def of(self, function: object, item: Transition[Any]) -> str:
        """Name a function; one that cannot be named goes among the problems, once."""
        name = self._known.get(id(function))
        if name is None:
            name = self._known[id(function)] = self._found(function, item)
        return name

    def _found(self, function: object, item: Transition[Any]) -> str:
        registered = next(
            (name for name, known in (self.given or {}).items() if known == function), None
        )
        name = registered or own_name(function)
        advice = f"register it, {self.kind}s={{'some_name': function}}"
        if name is None:
            self.problems.append(
                f"the {self.kind} of {item} has no name of its own ({brief(function)}): {advice}"
            )
            return ""

        if (self.given or {}).get(name, function) != function or self._taken.setdefault(
            name, function
        ) != function:
            self.problems.append(
                f"two {self.kind}s are called {name!r}, one of them in {item}: {advice}"
            )

        return name


def to_text(data: Mapping[str, Any]) -> str:
    """Write plain data as JSON that people can read."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    # half a surrogate pair cannot be encoded in a file
    return _HALF_PAIR.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def joined(items: Sequence[str], separator: str = "; ") -> str:
    """Return several texts as one; of very many only the first ones are in it."""
    more = len(items) - _MOST_LISTED
    return separator.join([*items[:_MOST_LISTED], f"and {more} more"] if more > 0 else items)
