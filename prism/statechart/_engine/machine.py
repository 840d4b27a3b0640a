"""The one module that knows the ``transitions`` package.

A chart's definition becomes a real `transitions.Machine`, with guards as its conditions and actions
as its ``before`` hooks. The rows that `Statechart.fire` runs are read back from that Machine's
events, so the stock way, ``chart.machine.events[trigger].trigger(agent, context)``, and the fast
one share one definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import Any, cast

from transitions import EventData, Machine

from prism.statechart.transitions import Action, Edge, Guard, StateT, Transition
from prism.telemetry._watching import watched

GuardFailed = Callable[[BaseException, Any, Edge], None]
"""``(error, agent, edge)``: called when a guard or an action raised; raises again if the chart is strict."""


Candidate = tuple[Guard | None, Action | None, StateT, Edge]
"""One transition of one state, ready to be tried: guard, action, target, edge. A plain tuple unpacks fastest."""

Rows = dict[Any, dict[str, tuple[Candidate[StateT], ...]]]
"""Candidates in definition order, by state and then by trigger."""


class GuardCondition:
    """A guard in the form in which `transitions` calls its conditions."""

    def __init__(self, guard: Guard, edge: Edge, failed: GuardFailed) -> None:
        self.guard = guard
        self._edge = edge
        self._failed = failed

    def __call__(self, event: EventData) -> bool:
        """Evaluate the guard on the event's agent and context; an exception counts as false."""
        try:
            return bool(self.guard(event.model, _context_of(event)))
        except Exception as error:
            self._failed(error, event.model, self._edge)
            return False


class ActionHook:
    """An action in the form in which `transitions` calls its ``before`` hooks."""

    def __init__(self, action: Action, edge: Edge, failed: GuardFailed) -> None:
        self.action = action
        self._edge = edge
        self._failed = failed

    def __call__(self, event: EventData) -> None:
        """Run the action; an exception is reported and the transition goes on."""
        try:
            self.action(event.model, _context_of(event))
        except Exception as error:
            self._failed(error, event.model, self._edge)


def _context_of(event: EventData) -> Any:
    if "context" in event.kwargs:
        return event.kwargs["context"]
    return next(iter(event.args), None)


def build_machine(
    name: str,
    states: Sequence[Enum],
    transitions: Iterable[Transition[Any]],
    initial: Enum,
    *,
    guard_failed: GuardFailed,
    action_failed: GuardFailed,
) -> Machine:
    """Make the Machine of a chart; it has no model and adds no transitions of its own.

    An event that does not apply in a state leaves the agent alone, as in `Statechart.fire`. Ends
    are given so that the Machine cannot take a state with the text ``"*"`` or ``"="`` for one of
    its wildcards.
    """
    machine = Machine(
        model=None,
        states=list(states),
        initial=initial,
        auto_transitions=False,
        send_event=True,
        ignore_invalid_triggers=True,
        name=name,
    )
    for item in transitions:
        edge = Edge(item.source, item.target, item.trigger)
        machine.add_transition(
            trigger=item.trigger,
            source=[item.source],
            dest=item.target.name,
            conditions=None
            if item.guard is None
            else GuardCondition(item.guard, edge, guard_failed),
            before=None if item.action is None else ActionHook(item.action, edge, action_failed),
        )

    return machine


def compile_rows(machine: Machine) -> Rows[Any]:
    """Read the candidates of every state and trigger from the Machine's own events."""
    rows: Rows[Any] = {state.value: {} for state in machine.states.values()}
    for trigger, event in machine.events.items():
        for source, found in event.transitions.items():
            state = machine.get_state(source).value
            rows[state][trigger] = tuple(_candidate(machine, trigger, item) for item in found)

    return cast("Rows[Any]", watched(machine.name.removesuffix(": "), rows))


def _candidate(machine: Machine, trigger: str, item: Any) -> Candidate[Any]:
    source, target = machine.get_state(item.source).value, machine.get_state(item.dest).value
    guards = [condition.func.guard for condition in item.conditions]
    actions = [hook.action for hook in item.before]

    return (
        guards[0] if guards else None,
        actions[0] if actions else None,
        target,
        Edge(source, target, trigger),
    )
