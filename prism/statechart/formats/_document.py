"""A chart as plain data, and back: the JSON form.

The form holds what defines a chart and nothing that runs: guards and actions stand in it by name,
and the loader gets the functions for them. Nothing in a file is imported or evaluated. Flat charts
are written as schema 1, charts with composites as schema 2. ``docs/charts.md`` describes both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart._nesting import EventDescriptor, In, State
from prism.statechart._tree.problems import joined
from prism.statechart.formats._names import Functions, Names
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMING, History, Transition

Namer = Callable[[Any, object], str]
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def to_data(
    chart: Definition[Any], guards: Functions | None, actions: Functions | None
) -> dict[str, Any]:
    """Write a chart as plain data: see `Statechart.to_dict`."""
    guard_names, action_names = Names("guard", guards), Names("action", actions)
    data = data_of(chart, guard_names.of, action_names.of, guard_names.of)
    problems = guard_names.problems + action_names.problems
    if problems:
        raise DefinitionError(
            f"chart {chart.name!r} cannot be written as data: {joined(problems, '; ')}"
        )

    return data


def data_of(chart: Definition[Any], guard: Namer, action: Namer, timing: Namer) -> dict[str, Any]:
    """Return a chart as plain data.

    Args:
        chart: The chart.
        guard: Names a guard; gets the function and the transition.
        action: Names an action.
        timing: Names a function that returns a rate or a number of ticks.
    """
    told = chart.hierarchy
    return {
        "schema": 2,
        "name": chart.name,
        **({"description": chart.description} if chart.description else {}),
        "states": [_state_data(state, action) for state in told.states],
        "initial": _places(told.initial),
        "decision_states": [*map(state_text, told.decision_states)],
        "timeouts": {state_text(state): ticks for state, ticks in told.timeouts.items()},
        "strict": chart.strict,
        "final_states": [*map(state_text, told.final_states)],
        "needs": list(chart.needs),
        "transitions": [_transition_data(item, guard, action, timing) for item in told.transitions],
    }


def _state_data(state: Any, action: Namer) -> Any:
    if not isinstance(state, State):
        return state_text(state)

    data: dict[str, Any] = {"state": state_text(state.state)}
    if state.states:
        data["states"] = [_state_data(inside, action) for inside in state.states]
    if state.initial:
        data["initial"] = _places(state.initial)
    if state.parallel:
        data["parallel"] = True
    for key, functions in (("entry", state.entry), ("exit", state.exit)):
        names = [action(each, f"{key} of {state_text(state.state)!r}") for each in functions]
        if names:
            data[key] = names[0] if len(names) == 1 else names

    return data


def _transition_data(
    item: Transition[Any], guard: Namer, action: Namer, timing: Namer
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "trigger": item.trigger,
        "source": state_text(item.source),
        "target": _places(item.target),
    }
    if isinstance(item.trigger, EventDescriptor):
        data |= {"trigger": str(item.trigger), "descriptor": True}
    if isinstance(item.guard, In):
        data["guard"] = {"in": state_text(item.guard.state)}
    elif item.guard is not None:
        data["guard"] = guard(item.guard, item)
    if item.action is not None:
        data["action"] = action(item.action, item)
    if item.internal:
        data["internal"] = True
    for key in TIMING:
        value = getattr(item, key)
        if value is not None:
            data[key] = timing(value, item) if callable(value) else value
    return data


def _places(target: Any) -> Any:
    if target is None:
        return None
    if isinstance(target, tuple):
        places = [_places(each) for each in target]
        return places[0] if len(places) == 1 else places
    if not isinstance(target, History):
        return state_text(target)

    data = {"history": state_text(target.state), "deep": target.deep}
    return data if target.default is None else {**data, "default": _places(target.default)}


def to_text(data: Mapping[str, Any]) -> str:
    """Write plain data as JSON that people can read."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    # half a surrogate pair cannot be encoded in a file
    return _HALF_PAIR.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
