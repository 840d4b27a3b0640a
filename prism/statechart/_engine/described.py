"""A Machine as a definition, for pictures, checks and explanations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from prism.statechart._definition import Definition
from prism.statechart._engine.machine import ActionCallback, Arc, GuardCondition, Machine, event_of
from prism.statechart.names import own_name
from prism.statechart.states import is_state, state_enum, state_text
from prism.statechart.transitions import Transition


def callback_name(func: Any) -> str:
    """Return what messages call a callback."""
    while isinstance(func, (ActionCallback, partial)):
        func = func.func
    return func if isinstance(func, str) else own_name(func) or type(func).__name__


def arcs_of(machine: Machine) -> list[tuple[str, Any]]:
    """Return triggers and transitions, without the ``to_x`` that a Machine adds by itself.

    A Machine that has no others moves by those. A transition from or to a state that the Machine
    does not have never moves anybody.
    """
    every = [
        (trigger, arc)
        for trigger, event in machine.events.items()
        for arcs in event.transitions.values()
        for arc in arcs
        if arc.source in machine.states and (arc.dest is None or arc.dest in machine.states)
    ]
    added = f"to_{machine.model_attribute}_" if machine.model_attribute != "state" else "to_"
    own = [
        (trigger, arc)
        for trigger, arc in every
        if not (machine.auto_transitions and trigger.removeprefix(added) == arc.dest)
    ]
    return own or every


def snapshot_of(machine: Machine) -> list[Any]:
    """Return what a definition says of a Machine, to tell whether it has changed since."""
    return [
        [*machine.states],
        *(
            (trigger, arc, arc.source, arc.dest, *arc.conditions, *arc.before, *arc.after)
            for trigger, arc in arcs_of(machine)
        ),
    ]


def definition_of(machine: Machine, rest: Mapping[str, Any]) -> Definition[Any]:
    """Return a Machine's states and transitions as a definition.

    A final state of a Machine can be left, which one of a definition cannot; such a state counts as
    any other.

    Args:
        machine: The Machine.
        rest: The other arguments of the definition, with states as texts.
    """
    values = [each.value for each in machine.states.values()]
    if not all(map(is_state, values)) or len({*map(type, values)}) > 1:
        values = [*state_enum(rest["name"], [*map(state_text, values)])]
    members: dict[str, Any] = dict(zip(machine.states, values, strict=True))
    by_text = {state_text(member): member for member in values}

    arcs = arcs_of(machine)
    left = {arc.source for _, arc in arcs}
    ends = [at for at, each in machine.states.items() if each.final and at not in left]
    changed: dict[str, Any] = {
        "states": values,
        "transitions": [
            Transition(
                trigger,
                members[arc.source],
                None if arc.dest is None else members[arc.dest],
                _guard_of(machine, trigger, arc),
                _action_of(arc),
            )
            for trigger, arc in arcs
        ],
        "initial": members[machine.initial or next(iter(members))],
        "timeouts": {by_text[state_text(at)]: limit for at, limit in rest["timeouts"].items()},
        "decision_states": [by_text[state_text(at)] for at in rest.get("decision_states", ())],
        "final_states": [members[at] for at in ends],
    }
    return Definition(**{**rest, **changed})


def _guard_of(machine: Machine, trigger: str, arc: Arc) -> Any:
    """Return the conditions of a transition as one guard, which reports nothing."""
    conditions: list[Any] = arc.conditions
    if not conditions:
        return None
    if len(conditions) == 1 and type(conditions[0]) is GuardCondition:
        return conditions[0].func

    def guard(agent: Any, context: Any) -> bool:
        event = event_of(machine, trigger, arc, agent, context)
        return all(
            # a chart's own guard past its condition, which reports what it raises
            cast(Any, each).func(agent, context)
            if type(each) is GuardCondition
            else each.check(event)
            for each in conditions
        )

    guard.__qualname__ = " and ".join(
        ("" if each.target else "not ") + callback_name(each.func) for each in conditions
    )
    return guard


def _action_of(arc: Arc) -> Any:
    """Return the callbacks of a transition as one action, which names them and runs none."""
    callbacks: list[Any] = [*arc.before, *arc.after]
    if len(callbacks) == 1 and type(callbacks[0]) is ActionCallback:
        return callbacks[0].func
    if not callbacks:
        return None

    def action(agent: Any, context: Any) -> None:
        """Do nothing: the Machine runs the callbacks."""

    action.__qualname__ = ", ".join(map(callback_name, callbacks))
    return action
