"""The one module that knows the ``transitions`` package.

A chart's definition becomes a real `transitions.Machine`, with guards as its conditions and actions
as its ``before`` hooks. The rows that `Statechart.fire` runs are read back from that Machine's
events, so the stock way, ``chart.machine.events[trigger].trigger(agent, context)``, and the fast
one have the same definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from transitions import EventData, Machine

from prism.errors import ReasonerError
from prism.statechart._asking import told
from prism.statechart._definition import Definition
from prism.statechart.states import state_text
from prism.statechart.transitions import Action, Edge, Guard, StateT
from prism.telemetry._instrument import GuardOutcome

ItemT = TypeVar("ItemT")

Candidate = tuple[Guard | None, Action | None, StateT, Edge]
"""One transition of one state: guard, action, target, edge. A plain tuple unpacks fastest."""

OPEN: Any = object()
"""In place of an action: which transitions a candidate stands for is decided at its event."""

EVENTLESS: Any = object()
"""Key of the eventless transitions in a row, which no caller can name."""

Rows = dict[Any, dict[str, tuple[Candidate[StateT], ...]]]
"""Candidates in definition order, by state and then by trigger."""


class Verdict(NamedTuple):
    """The result of a guard: it passed, it failed, or it raised an error."""

    outcome: GuardOutcome
    error: Exception | None = None


PASSED = Verdict("passed")
FAILED = Verdict("failed")


def evaluate(guard: Guard | None, agent: Any, context: Any) -> Verdict:
    """Evaluate a guard; a transition without one always passes.

    What must stop the program, such as a ``KeyboardInterrupt``, propagates.
    """
    if guard is None:
        return PASSED

    try:
        # the truth of the result may raise, too
        return PASSED if guard(agent, context) else FAILED
    except Exception as error:
        return Verdict("raised", error)


def distinct(items: Iterable[ItemT]) -> list[ItemT]:
    """Return items without repetitions, in their order."""
    return list(dict.fromkeys(items))


def leading_to(target: Any, candidates: list[Candidate[StateT]]) -> Candidate[StateT]:
    """Return the first candidate that leads to a target that a reasoner chose.

    Raises:
        ReasonerError: If there is none.
    """
    for candidate in candidates:
        if candidate[2] == target:
            return candidate

    options = ", ".join(distinct(state_text(found) for _, _, found, _ in candidates))
    raise ReasonerError(
        f"the reasoner chose {target!r}, which is not among the options ({options})"
    )


Failed = Callable[[Exception, Any, Edge], None]
"""``(error, agent, edge)``: reports a guard or an action that raised; raises in a strict chart."""


class _GuardCondition:
    """A guard in the form in which `transitions` calls its conditions."""

    def __init__(self, guard: Guard, edge: Edge, failed: Failed) -> None:
        self.guard = guard
        self._edge = edge
        self._failed = failed

    def __call__(self, event: EventData) -> bool:
        """Evaluate the guard on the event's agent and context; an exception counts as false."""
        verdict = evaluate(self.guard, event.model, _context_of(event))
        if verdict.error is not None:
            self._failed(verdict.error, event.model, self._edge)

        return verdict is PASSED


class _ActionHook:
    """An action in the form in which `transitions` calls its ``before`` hooks."""

    def __init__(self, action: Action, edge: Edge, failed: Failed) -> None:
        self.action = action
        self._edge = edge
        self._failed = failed

    def __call__(self, event: EventData) -> None:
        """Run the action; an exception is reported and the transition continues."""
        try:
            self.action(event.model, _context_of(event))
        except Exception as error:
            self._failed(error, event.model, self._edge)


def _context_of(event: EventData) -> Any:
    if "context" in event.kwargs:
        return event.kwargs["context"]
    return next(iter(event.args), None)


def build_machine(
    definition: Definition[Any], *, guard_failed: Failed, action_failed: Failed
) -> Machine:
    """Make the Machine of a chart; it has no model and adds no transitions of its own."""
    machine = Machine(
        model=None,
        states=[
            {"name": state, "final": state in definition.final_states}
            for state in definition.states
        ],
        initial=definition.initial,
        auto_transitions=False,
        send_event=True,
        # as in `Statechart.fire`, an event that does not apply in a state does nothing
        ignore_invalid_triggers=True,
        name=definition.name,
    )
    for item in definition.transitions:
        guard, action = (told(each, item, item.source) for each in (item.guard, item.action))
        edge = Edge(item.source, item.target, item.trigger)
        machine.add_transition(
            item.trigger,
            # a list and a name, since the Machine takes the texts "*" and "=" for its own wildcards
            [item.source],
            item.target.name,
            conditions=None if guard is None else _GuardCondition(guard, edge, guard_failed),
            before=None if action is None else _ActionHook(action, edge, action_failed),
        )

    return machine


def compile_rows(machine: Machine) -> Rows[Any]:
    """Read the candidates of every state and trigger from the Machine's own events."""
    rows: Rows[Any] = {state.value: {} for state in machine.states.values()}
    for trigger, event in machine.events.items():
        for source, found in event.transitions.items():
            state = machine.get_state(source).value
            rows[state][trigger] = tuple(_candidate(machine, trigger, item) for item in found)

    return rows


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
