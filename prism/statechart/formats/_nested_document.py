"""A chart with composites as plain data: schema 2 of the JSON form."""

from __future__ import annotations

from typing import Any

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart._nesting import In, State
from prism.statechart.formats._names import Names
from prism.statechart.states import state_text
from prism.statechart.transitions import History, Transition

NESTED_VERSION = 2


def nested_data(chart: Definition[Any], guards: Names, actions: Names) -> dict[str, Any]:
    """Return what a document has of a chart with composites beside what all charts have."""
    tree = chart.tree
    assert tree is not None
    if tree.is_document:
        raise DefinitionError(
            f"chart {chart.name!r} was read from SCXML with content of its own, which JSON "
            "cannot hold: keep its document"
        )

    return {
        "states": [_state_data(state, actions) for state in tree.states],
        "initial": _places(tree.initial),
        "decision_states": [*map(state_text, tree.decision_states)],
        "timeouts": {state_text(state): ticks for state, ticks in tree.timeouts.items()},
        "final_states": [*map(state_text, tree.final_states)],
        "transitions": [_transition_data(item, guards, actions) for item in tree.transitions],
    }


def _state_data(state: Any, actions: Names) -> Any:
    if not isinstance(state, State):
        return state_text(state)

    data: dict[str, Any] = {"state": state_text(state.state)}
    if state.states:
        data["states"] = [_state_data(inside, actions) for inside in state.states]
    if state.initial:
        data["initial"] = _places(state.initial)
    if state.parallel:
        data["parallel"] = True
    for key, functions in (("entry", state.entry), ("exit", state.exit)):
        names = [actions.of(each, f"{key} of {state_text(state.state)!r}") for each in functions]
        if names:
            data[key] = names[0] if len(names) == 1 else names

    return data


def _transition_data(item: Transition[Any], guards: Names, actions: Names) -> dict[str, Any]:
    data: dict[str, Any] = {
        "trigger": item.trigger,
        "source": state_text(item.source),
        "target": _places(item.target),
    }
    if isinstance(item.guard, In):
        data["guard"] = {"in": state_text(item.guard.state)}
    elif item.guard is not None:
        data["guard"] = guards.of(item.guard, item)
    if item.action is not None:
        data["action"] = actions.of(item.action, item)
    if item.internal:
        data["internal"] = True
    if callable(item.rate):
        data["rate"] = guards.of(item.rate, item)

    rare = {"after": item.after, "rate": item.rate, "probability": item.probability}
    return data | {
        key: value for key, value in rare.items() if value is not None and key not in data
    }


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
