"""The one module that knows the ``transitions`` package.

A chart's definition becomes a real `transitions.Machine`, with guards as its conditions and actions
as its ``before`` hooks. The rows that `Statechart.fire` runs are read back from that Machine's
events, so the stock way, ``chart.machine.events[trigger].trigger(agent, context)``, and the fast
one have the same definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from transitions import EventData, Machine

from prism.errors import DefinitionError, ReasonerError
from prism.statechart._asking import told
from prism.statechart._definition import Definition
from prism.statechart._nesting import DONE
from prism.statechart.states import state_text
from prism.statechart.transitions import Action, Edge, Guard, StateT
from prism.telemetry._instrument import GuardOutcome

if TYPE_CHECKING:
    from prism.statechart._tree.hierarchy import Hierarchy

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
    return machine_over(
        definition,
        (
            hooks(
                told(item.guard, item, item.source),
                () if item.action is None else (told(item.action, item, item.source),),
                (),
                Edge(item.source, item.target, item.trigger),
                guard_failed=guard_failed,
                action_failed=action_failed,
            )
            for item in definition.transitions
        ),
    )


def machine_over(definition: Definition[Any], transitions: Iterable[Mapping[str, Any]]) -> Machine:
    """Make a Machine of a chart's states and of transitions as `transitions` takes them."""
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
    for each in transitions:
        machine.add_transition(**each)

    return machine


def hooks(
    guard: Guard | None,
    before: Iterable[Action],
    after: Iterable[Action],
    edge: Edge,
    *,
    guard_failed: Failed,
    action_failed: Failed,
) -> dict[str, Any]:
    """Return one transition as `transitions` takes it."""
    return {
        "trigger": edge.trigger,
        # a list and a name, since the Machine takes the texts "*" and "=" for its own wildcards
        "source": [edge.from_state],
        "dest": edge.to_state.name,
        "conditions": None if guard is None else _GuardCondition(guard, edge, guard_failed),
        "before": [_ActionHook(action, edge, action_failed) for action in before],
        "after": [_ActionHook(action, edge, action_failed) for action in after],
    }


def nested_machine(
    definition: Definition[Any], rows: Rows[Any], guard_failed: Failed, action_failed: Failed
) -> Machine:
    """Make a Machine over the leaves of a chart.

    Raises:
        DefinitionError: Saying why there is none.
    """
    assert definition.tree is not None
    reasons = [*_beyond(definition.tree)]
    if reasons:
        raise DefinitionError(
            f"chart {definition.name!r} has no Machine, because a flat Machine of the package "
            f"transitions does not support {' or '.join(reasons)}: use chart.fire"
        )

    def made() -> Iterator[dict[str, Any]]:
        for state in definition.states:
            for candidates in rows[state].values():
                for guard, _, _, edge in candidates:
                    yield hooks(
                        guard,
                        (action for action, _ in edge.plan.before),
                        (action for action, _ in edge.plan.after),
                        edge,
                        guard_failed=guard_failed,
                        action_failed=action_failed,
                    )

    return machine_over(definition, made())


def _beyond(hierarchy: Hierarchy) -> Iterator[str]:
    if hierarchy.is_document:
        yield "content of SCXML documents"
    if hierarchy.tree.has_regions:
        yield "regions"
    if hierarchy.planner.kept:
        yield "histories"
    if hierarchy.planner.reacting:
        yield "eventless transitions"
    if any(trigger.startswith(DONE) for trigger in hierarchy.triggers):
        yield "transitions on done"
    if any(item.probability is not None for item in hierarchy.transitions):
        yield "probabilities"


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
