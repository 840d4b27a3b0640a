"""Probable mistakes in a workflow that can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prism.files._source import Where
from prism.workflow import _variables as variables
from prism.workflow._document._definition import (
    ANY_STATE,
    Component,
    WorkflowDefinition,
)
from prism.workflow._document._problems import WorkflowProblems

PROVIDED = frozenset({*variables.PROVIDED, "time_remaining", "progress_percent"})
"""Variables that the runner provides."""

OF_HOST = frozenset({"balance", "artifacts", "my_artifacts", "economic_context"})
"""Variables of the specification that only the host application can know."""


_MOST_PAIRS = 500_000
"""The most states times steps for which it is checked how states are reached."""


Found = tuple[Where, str, str]
"""A place, what is wrong there, and the name of the problem; paths begin at the workflow."""


def check(definition: WorkflowDefinition, problems: WorkflowProblems, known: Iterable[str]) -> None:
    """Note probable mistakes as warnings.

    Args:
        definition: The workflow.
        problems: Takes the warnings.
        known: Variables that the host provides.
    """
    there = _set_by_steps(definition) | PROVIDED | frozenset(known)
    own = [*_of_variables(definition, there)]
    if len(definition.states) * len(definition.steps) <= _MOST_PAIRS:
        ways = _Ways(definition)
        own += [*ways.of_states(), *ways.of_steps()]
    for where, message, kind in own:
        problems.add((*problems.top, *where), message, kind, severity="warning")

    steps = frozenset(step.name for step in definition.steps)
    for component in definition.components:
        own_problems = problems.at(component.file)
        for where, message, kind in _of_component(component, steps, there):
            place = (*component.where, *where)
            own_problems.add(place, message, kind, severity="warning")


def _of_variables(definition: WorkflowDefinition, there: frozenset[str]) -> Iterator[Found]:
    """Yield the variables that steps and conditions name but nobody sets."""
    for names, where, what in _named(definition):
        for name in names:
            if name not in there:
                yield where, _unset(what, name), "unknown_variable"


def _named(definition: WorkflowDefinition) -> Iterator[tuple[Iterable[str], Where, str]]:
    """Yield the variables that each part names, its place, and what it is called."""
    for number, step in enumerate(definition.steps):
        where: Where = ("steps", number)
        if step.prompt is not None:
            yield step.prompt.variables, (*where, "prompt"), f"the prompt of {step.name!r}"
        if step.run_if is not None:
            yield sorted(step.run_if.names), (*where, "run_if"), f"run_if of {step.name!r}"
        if step.code is not None:
            yield step.code.needs, (*where, "code"), f"the code of {step.name!r}"

    for item in definition.transitions:
        if item.condition is not None:
            where = ("state_machine", "transitions", item.number, "condition")
            what = f"the condition of {item.source}->{item.target}"
            yield sorted(item.condition.names), where, what


def _of_component(
    component: Component, steps: frozenset[str], there: frozenset[str]
) -> Iterator[Found]:
    # a file serves several workflows, and names the steps of all of them
    is_inline = component.file is None
    for number, name in enumerate(component.declared.inject_into):
        if is_inline and name not in steps:
            message = f"the component {component.name!r} joins {name!r}, which is not a step"
            yield ("inject_into", number), message, "unknown_step"

    for number, name in enumerate(component.declared.requires_context):
        if name not in there:
            message = _unset(f"the component {component.name!r}", name)
            yield ("requires_context", number), message, "unknown_variable"


def _unset(what: str, name: str) -> str:
    hint = "the host has to provide it" if name in OF_HOST else "nobody sets it"
    return f"{what} names the variable {name!r}: {hint}"


def _set_by_steps(definition: WorkflowDefinition) -> frozenset[str]:
    """Return all variables that steps set, in any order: a later turn knows those of all."""
    names: set[str] = set()
    for step in definition.steps:
        names.add(step.name)
        if step.code is not None:
            names.update(step.code.assigned, step.code.stored)

    return frozenset(names)


class _Ways:
    """The states that may follow each other, if a step asks for it."""

    def __init__(self, definition: WorkflowDefinition) -> None:
        self._definition = definition
        self._allowed = {(item.source, item.target) for item in definition.transitions}
        self._out: dict[str, list[str]] = {state: [] for state in definition.states}
        for step in definition.steps:
            for state in definition.states_of(step):
                self._out[state] += [
                    target
                    for target in step.targets
                    if target != state and self._allows(state, target)
                ]

        self._reached = self._reached_from(definition.initial)

    def _reached_from(self, initial: str) -> set[str]:
        reached, waiting = {initial}, [initial]
        while waiting:
            fresh = [target for target in self._out[waiting.pop()] if target not in reached]
            reached.update(fresh)
            waiting += fresh

        return reached

    def _allows(self, source: str, target: str) -> bool:
        pairs = {(source, target), (ANY_STATE, target)}
        return not self._allowed or not self._allowed.isdisjoint(pairs)

    def of_states(self) -> Iterator[Found]:
        """Yield the states that no step leads to, or out of."""
        states, final = self._definition.states, self._definition.final_states
        for number, state in enumerate(states):
            where: Where = ("state_machine", "states", number)
            if state not in self._reached:
                message = f"no step leads to the state {state!r}: the workflow never gets there"
                yield where, message, "unreachable_state"
            elif state not in final and not self._out[state] and len(states) > 1:
                message = (
                    f"no step leads out of the state {state!r}: give one a way out, or name the "
                    "state in final_states"
                )
                yield where, message, "no_way_out"

    def of_steps(self) -> Iterator[Found]:
        """Yield the steps that never run, or that ask for what is always refused."""
        for number, step in enumerate(self._definition.steps):
            sources = self._definition.states_of(step)
            if not sources & self._reached:
                reason = "its states are never reached"
                reason = reason if sources else "no step runs in a final state"
                message = f"the step {step.name!r} never runs: {reason}"
                yield ("steps", number), message, "step_never_runs"
            for target in step.targets if sources else ():
                if not any(self._allows(source, target) for source in sources):
                    message = (
                        f"the step {step.name!r} asks for {target!r}, but no transition leads "
                        "there from the states it runs in: it is always refused"
                    )
                    yield ("steps", number), message, "refused_transition"
