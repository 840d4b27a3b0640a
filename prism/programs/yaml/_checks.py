"""Probable mistakes in a workflow that can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prism.files._source import Where
from prism.programs.yaml import _variables as variables
from prism.programs.yaml._definition import ANY_STATE, Component, WorkflowDefinition
from prism.programs.yaml._problems import WorkflowProblems

PROVIDED = frozenset({*variables.PROVIDED, "time_remaining", "progress_percent"})
"""Variables that the runner provides."""

Finding = tuple[Where, str, str]
"""A position, what is wrong there, and the name of the problem; paths begin at the workflow."""


def check(
    definition: WorkflowDefinition, problems: WorkflowProblems, provided: Iterable[str]
) -> None:
    """Note probable mistakes as warnings.

    Args:
        definition: The workflow.
        problems: Takes the warnings.
        provided: Variables that the host provides.
    """
    variables_set = _set_by_steps(definition) | PROVIDED | frozenset(provided)
    for where, message, kind in (
        *_of_variables(definition, variables_set),
        *_of_states(definition),
    ):
        problems.add((*problems.top, *where), message, kind, severity="warning")

    steps = frozenset(step.name for step in definition.steps)
    for component in definition.components:
        own_problems = problems.at(component.file)
        for where, message, kind in _of_component(component, steps, variables_set):
            own_problems.add((*component.where, *where), message, kind, severity="warning")


def _of_variables(definition: WorkflowDefinition, known: frozenset[str]) -> Iterator[Finding]:
    """Yield the variables that steps and conditions name but nobody sets."""
    for names, where, what in _named(definition):
        for name in sorted(names):
            if name not in known:
                message = f"{what} names the variable {name!r}, which nobody sets"
                yield where, message, "unknown_variable"


def _named(definition: WorkflowDefinition) -> Iterator[tuple[Iterable[str], Where, str]]:
    """Yield the variables that each part names, its position, and what it is called."""
    for number, step in enumerate(definition.steps):
        where: Where = ("steps", number)
        if step.prompt is not None:
            yield step.prompt.variables, (*where, "prompt"), f"the prompt of {step.name!r}"
        if step.run_if is not None:
            yield step.run_if.names, (*where, "run_if"), f"run_if of {step.name!r}"
        if step.code is not None:
            yield step.code.needs, (*where, "code"), f"the code of {step.name!r}"
    for item in definition.transitions:
        if item.condition is not None:
            where = ("state_machine", "transitions", item.number, "condition")
            what = f"the condition of {item.source}->{item.target}"
            yield item.condition.names, where, what


def _of_component(
    component: Component, steps: frozenset[str], known: frozenset[str]
) -> Iterator[Finding]:
    # a file serves several workflows, and names the steps of all of them
    for number, name in enumerate(component.declared.inject_into):
        if component.file is None and name not in steps:
            message = f"the component {component.name!r} joins {name!r}, which is not a step"
            yield ("inject_into", number), message, "unknown_step"
    for number, name in enumerate(component.declared.requires_context):
        if name not in known:
            message = f"{component.name!r} needs the variable {name!r}, which nobody sets"
            yield ("requires_context", number), message, "unknown_variable"


def _set_by_steps(definition: WorkflowDefinition) -> frozenset[str]:
    """Return all variables that steps set, in any order: a later turn has those of all."""
    names = {step.name for step in definition.steps}
    for step in definition.steps:
        if step.code is not None:
            names.update(step.code.assigned, step.code.stored)
    return frozenset(names)


def _of_states(definition: WorkflowDefinition) -> Iterator[Finding]:
    """Yield states that no step leads to or out of, and steps that never run or move it."""
    exits: dict[str, set[str]] = {state: set() for state in definition.states}
    for step in definition.steps:
        for state in definition.states_of(step):
            exits[state] |= {each for each in step.targets if definition.allows(state, each)}
    reached, waiting = {definition.initial}, [definition.initial]
    while waiting:
        fresh = exits[waiting.pop()] - reached
        reached |= fresh
        waiting += fresh

    for number, state in enumerate(definition.states):
        where: Where = ("state_machine", "states", number)
        if state not in reached:
            yield where, f"no step leads to the state {state!r}", "unreachable_state"
        elif state not in definition.final_states and not exits[state] - {state} and len(exits) > 1:
            message = (
                f"no step leads out of the state {state!r}: name it in final_states if it ends"
            )
            yield where, message, "no_way_out"
    yield from _of_steps(definition, reached)


def _of_steps(definition: WorkflowDefinition, reached: set[str]) -> Iterator[Finding]:
    for number, step in enumerate(definition.steps):
        sources = definition.states_of(step)
        if not sources & reached:
            yield ("steps", number), f"the step {step.name!r} never runs", "step_never_runs"
        for target in step.targets if sources else ():
            if not any(definition.allows(source, target) for source in sources):
                message = (
                    f"the step {step.name!r} names {target!r}, but no transition leads there from "
                    f"its states: it is always refused (or use {ANY_STATE!r} as the source)"
                )
                yield ("steps", number), message, "refused_transition"
