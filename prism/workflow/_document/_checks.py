"""What is probably not meant in a workflow that can run."""

from __future__ import annotations

from collections.abc import Iterable

from prism.files._source import Where
from prism.workflow._document._definition import ANY_STATE, Step, WorkflowDefinition
from prism.workflow._document._reading import Reading

PROVIDED = frozenset(
    {
        "agent_id",
        "tick",
        "state",
        "_current_state",
        "time_remaining",
        "progress_percent",
        "action_history",
        "last_action_result",
        "success_rate",
    }
)
"""Variables that the runner provides."""

OF_HOST = frozenset({"balance", "artifacts", "my_artifacts", "economic_context"})
"""Variables of the specification that only the host application can know."""


_MOST_PAIRS = 500_000
"""States times steps up to which it is looked for how states are reached."""


def check(found: Reading, known: Iterable[str]) -> None:
    """Note what is probably not meant, as warnings.

    Args:
        found: The workflow; its problems take the warnings.
        known: Variables that the host provides.
    """
    _Check(found, frozenset(known)).run()


class _Check:
    def __init__(self, found: Reading, known: frozenset[str]) -> None:
        self._definition = found.definition
        self._problems = found.problems
        self._top = found.top
        self._there = _set_by_steps(found.definition) | PROVIDED | known

    def run(self) -> None:
        definition = self._definition
        if len(definition.states) * len(definition.steps) <= _MOST_PAIRS:
            self._moves()
        for number, step in enumerate(definition.steps):
            self._variables((*self._top, "steps", number), step)
        self._conditions()
        self._components()

    def _moves(self) -> None:
        ways = _Ways(self._definition)
        reached = ways.reached_from(self._definition.initial)
        self._states(ways, reached)
        for number, step in enumerate(self._definition.steps):
            where = (*self._top, "steps", number)
            self._runs(where, step, ways.states_of(step), reached)
            self._asked_for(where, step, ways)

    def _states(self, ways: _Ways, reached: frozenset[str]) -> None:
        for number, state in enumerate(self._definition.states):
            where = (*self._top, "state_machine", "states", number)
            if state not in reached:
                message = f"no step leads to the state {state!r}: the workflow never gets there"
                self._warn(where, message, "unreachable_state")
            elif self._is_trap(state, ways):
                message = (
                    f"no step leads out of the state {state!r}: give one a way out, or name the "
                    "state in final_states"
                )
                self._warn(where, message, "no_way_out")

    def _is_trap(self, state: str, ways: _Ways) -> bool:
        is_final = state in self._definition.final_states
        return not is_final and not ways.out_of(state) and len(self._definition.states) > 1

    def _runs(
        self, where: Where, step: Step, states: frozenset[str], reached: frozenset[str]
    ) -> None:
        if not states & reached:
            reason = "its states are never reached" if states else "no step runs in a final state"
            message = f"the step {step.name!r} never runs: {reason}"
            self._warn(where, message, "step_never_runs")

    def _asked_for(self, where: Where, step: Step, ways: _Ways) -> None:
        """Warn of targets that no transition of the list allows from any state of the step."""
        sources = ways.states_of(step)
        for target in step.targets if self._definition.transitions and sources else ():
            if not any(ways.allows(source, target) for source in sources):
                message = (
                    f"the step {step.name!r} asks for {target!r}, but no transition leads there "
                    "from the states it runs in: it is always refused"
                )
                self._warn(where, message, "refused_transition")

    def _variables(self, where: Where, step: Step) -> None:
        for name in step.prompt.variables if step.prompt is not None else ():
            self._require(name, (*where, "prompt"), f"the prompt of {step.name!r}")
        if step.run_if is not None:
            for name in sorted(step.run_if.names):
                self._require(name, (*where, "run_if"), f"run_if of {step.name!r}")

        if step.code is not None:
            for name in step.code.needs:
                self._require(name, (*where, "code"), f"the code of {step.name!r}")

    def _conditions(self) -> None:
        for item in self._definition.transitions:
            for name in sorted(item.condition.names if item.condition is not None else ()):
                where = (*self._top, "state_machine", "transitions", item.number, "condition")
                what = f"the condition of {item.source}->{item.target}"
                self._require(name, where, what)

    def _require(self, name: str, where: Where, what: str, file: str | None = None) -> None:
        if name in self._there:
            return
        hint = "the host has to provide it" if name in OF_HOST else "nobody sets it"
        message = f"{what} names the variable {name!r}: {hint}"
        self._warn(where, message, "unknown_variable", file)

    def _components(self) -> None:
        steps = {step.name for step in self._definition.steps}
        for component in self._definition.components:
            file, top = component.origin.file, component.origin.where
            for number, name in enumerate(component.inject_into):
                # a file serves several workflows, and names the steps of all of them
                if file is None and name not in steps:
                    message = (
                        f"the component {component.name!r} joins {name!r}, which is not a step"
                    )
                    self._warn((*top, "inject_into", number), message, "unknown_step", file)
            for number, name in enumerate(component.requires_context):
                where = (*top, "requires_context", number)
                self._require(name, where, f"the component {component.name!r}", file)

    def _warn(self, where: Where, message: str, kind: str, file: str | None = None) -> None:
        self._problems.at(file).add(where, message, kind, severity="warning")


def _set_by_steps(definition: WorkflowDefinition) -> frozenset[str]:
    """Return every variable that some step sets; in a later turn its place is no matter."""
    names: set[str] = set()
    for step in definition.steps:
        names.add(step.name)
        if step.code is not None:
            names.update(step.code.assigned, step.code.stored)

    return frozenset(names)


class _Ways:
    """What may follow what, if a step asks for it."""

    def __init__(self, definition: WorkflowDefinition) -> None:
        self._is_open = not definition.transitions
        self._allowed = {(item.source, item.target) for item in definition.transitions}
        self._anywhere = frozenset(definition.states) - definition.final_states
        self._final = definition.final_states
        self._out: dict[str, list[str]] = {state: [] for state in definition.states}
        for step in definition.steps:
            for state in self.states_of(step):
                self._out[state] += [
                    target
                    for target in step.targets
                    if target != state and self.allows(state, target)
                ]

    def states_of(self, step: Step) -> frozenset[str]:
        """Return the states that a step runs in; in a final state none does."""
        return self._anywhere if step.in_state is None else step.in_state - self._final

    def allows(self, source: str, target: str) -> bool:
        pairs = ((source, target), (ANY_STATE, target))
        return self._is_open or any(pair in self._allowed for pair in pairs)

    def out_of(self, state: str) -> list[str]:
        return self._out[state]

    def reached_from(self, state: str) -> frozenset[str]:
        reached, new = {state}, [state]
        while new:
            fresh = [target for target in self._out[new.pop()] if target not in reached]
            reached.update(fresh)
            new += fresh

        return frozenset(reached)
