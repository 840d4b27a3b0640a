"""A chart as plain data, and back: the JSON form.

The form holds what defines a chart and nothing that runs: guards and actions stand in it by name,
and the loader gets the functions for them. Nothing in a file is imported or evaluated.
``docs/charts.md`` describes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping
from typing import Any

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart.formats._names import Functions, Names, joined
from prism.statechart.formats._nested_document import NESTED_VERSION, nested_data
from prism.statechart.states import state_text
from prism.statechart.transitions import Transition

SCHEMA_VERSION = 1
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def to_data(
    chart: Definition[Any], guards: Functions | None, actions: Functions | None
) -> dict[str, Any]:
    """Write a chart as plain data: see `Statechart.to_dict`."""
    guard_names, action_names = Names("guard", guards), Names("action", actions)
    write = _flat_data if chart.tree is None else nested_data
    own = write(chart, guard_names, action_names)
    problems = guard_names.problems + action_names.problems
    if problems:
        raise DefinitionError(f"chart {chart.name!r} cannot be written as data: {joined(problems)}")

    return {
        "schema": SCHEMA_VERSION if chart.tree is None else NESTED_VERSION,
        "name": chart.name,
        # only where there is one, so that earlier readers take all other charts
        **({"description": chart.description} if chart.description else {}),
        "states": own["states"],
        "initial": own["initial"],
        "decision_states": own["decision_states"],
        "timeouts": own["timeouts"],
        "strict": chart.strict,
        "final_states": own["final_states"],
        "needs": list(chart.needs),
        "transitions": own["transitions"],
    }


def _flat_data(chart: Definition[Any], guards: Names, actions: Names) -> dict[str, Any]:
    return {
        "states": [state_text(state) for state in chart.states],
        "initial": state_text(chart.initial),
        "decision_states": _texts(chart, chart.decision_states),
        "timeouts": {
            state_text(state): chart.timeouts[state]
            for state in chart.states
            if state in chart.timeouts
        },
        "final_states": _texts(chart, chart.final_states),
        "transitions": [_transition_data(item, guards, actions) for item in chart.transitions],
    }


def _texts(chart: Definition[Any], states: Container[Any]) -> list[str]:
    return [state_text(state) for state in chart.states if state in states]


def _transition_data(item: Transition[Any], guards: Names, actions: Names) -> dict[str, Any]:
    data = {
        "trigger": item.trigger,
        "source": state_text(item.source),
        "target": state_text(item.target),
    }
    for names, function in ((guards, item.guard), (actions, item.action)):
        if function is not None:
            data[names.kind] = names.of(function, item)

    return data


def to_text(data: Mapping[str, Any]) -> str:
    """Write plain data as JSON that people can read."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    # half a surrogate pair cannot be encoded in a file
    return _HALF_PAIR.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
