"""A Machine as a definition: what pictures, checks and explanations of a living Machine read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, cast

from prism.statechart._definition import Definition
from prism.statechart._engine.machine import (
    ActionCallback,
    Arc,
    ChartMachine,
    EventData,
    GuardCondition,
    Machine,
)
from prism.statechart.names import own_name
from prism.statechart.states import is_state, state_enum, state_text
from prism.statechart.transitions import Transition


def callback_name(func: Any) -> str:
    """Return what messages call a callback."""
    if isinstance(func, ActionCallback):
        func = func.func
    while isinstance(func, partial):
        func = func.func
    return func if isinstance(func, str) else own_name(func) or type(func).__name__


def value_text(value: Any) -> str:
    """Return the text of a state's value, which Machines may have of any kind."""
    if isinstance(value, (list, tuple)):
        return "+".join(map(value_text, value))
    return state_text(value) if isinstance(value, str) else str(getattr(value, "name", value))


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
        rest: The other arguments of the definition, with the names of states in the Machine.
    """
    values = [each.value for each in machine.states.values()]
    members: dict[str, Any] = dict(zip(machine.states, values, strict=True))
    if not all(map(is_state, values)) or len({*map(type, values)}) > 1:
        enum = state_enum(rest["name"], [*map(value_text, values)])
        members = dict(zip(machine.states, enum, strict=True))

    arcs = arcs_of(machine)
    made = [
        Transition(
            trigger,
            members[arc.source],
            None if arc.dest is None else members[arc.dest],
            _guard_of(machine, trigger, arc),
            _action_of(arc),
        )
        for trigger, arc in arcs
    ]
    left = {arc.source for _, arc in arcs}
    whole = {
        **rest,
        "states": [*members.values()],
        "transitions": made,
        "initial": members[machine.initial or next(iter(members))],
        "timeouts": {members[name]: ticks for name, ticks in rest["timeouts"].items()},
        "decision_states": [members[name] for name in rest.get("decision_states", ())],
        "final_states": [
            members[at] for at, each in machine.states.items() if each.final and at not in left
        ],
    }
    return Definition(**whole)


def _guard_of(machine: Machine, trigger: str, arc: Arc) -> Any:
    """Return the conditions of a transition as one guard, which says nothing to anybody."""
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
    """Return the callbacks of a transition as one action, which shows them and runs none."""
    callbacks: list[Any] = [*arc.before, *arc.after]
    if len(callbacks) == 1 and type(callbacks[0]) is ActionCallback:
        return callbacks[0].func
    if not callbacks:
        return None

    def action(agent: Any, context: Any) -> None:
        """Do nothing: the Machine runs the callbacks."""

    action.__qualname__ = ", ".join(map(callback_name, callbacks))
    return action


def arcs_from(machine: Machine, agent: Any, trigger: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the transitions of an event from an agent's state, with the values of their ends."""
    source = machine.get_model_state(agent)
    event = machine.events.get(trigger) if isinstance(trigger, str) else None
    for arc in () if event is None else event.transitions.get(source.name, ()):
        target = source if arc.dest is None else machine.get_state(arc.dest)
        yield arc, source.value, target.value


def event_of(machine: Machine, trigger: str, arc: Any, agent: Any, context: Any) -> EventData:
    """Return the event in which the conditions of a transition are evaluated."""
    state, event = machine.get_state(arc.source), machine.events.get(trigger)
    is_bare = context is None and not isinstance(machine, ChartMachine)
    data = EventData(state, event, machine, agent, () if is_bare else (context,), {})
    data.transition = arc
    return data
