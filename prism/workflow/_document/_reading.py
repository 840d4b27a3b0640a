"""From a workflow's text to its definition; whatever is wrong is collected and told at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from prism.errors import MissingExtraError
from prism.expressions import Expression, ExpressionError
from prism.files._declarations import adapter, note_ignored
from prism.files._source import Source, Where
from prism.statechart.reasoner._own_prompts import MAX_CHARACTERS
from prism.workflow._document._components import ComponentReader
from prism.workflow._document._declarations import (
    AgentDeclaration,
    AnyDocument,
    CodeStepDeclaration,
    ComponentsDeclaration,
    LlmStepDeclaration,
    NamedWorkflowDeclaration,
    StateMachineDeclaration,
    StepDeclaration,
    TransitionDeclaration,
    TransitionStepDeclaration,
    WorkflowDeclaration,
)
from prism.workflow._document._definition import (
    ANY_STATE,
    DEFAULT_MAX_RETRIES,
    DEFAULT_ON_FAILURE,
    AllowedTransition,
    Component,
    OnFailure,
    Step,
    StepKind,
    Template,
    WorkflowDefinition,
)
from prism.workflow._document._problems import WorkflowProblems, key_meant
from prism.workflow._sandbox._outputs import OutputError, require_schema
from prism.workflow._sandbox._programs import CodeError, Program
from prism.workflow._sandbox._workers import require_monty

IMPLIED_STATE = "active"
"""The one state of a workflow that declares none."""

_ONE_STATE = StateMachineDeclaration.model_validate({"states": [IMPLIED_STATE]})

_DEFAULT_TRANSITION_PROMPT = """\
Decide how to go on: continue with what you are doing, pivot to something else, or ship what you \
have.
State: {state}. Last result: {last_action_result}"""

_SpecialT = TypeVar("_SpecialT")


@dataclass(frozen=True, slots=True)
class Reading:
    """A workflow that was read, and where it stands.

    Args:
        definition: The workflow.
        problems: What the reader noticed, none of which keeps it from running.
        top: Path of the workflow in its document.
        component_files: The files of its components.
    """

    definition: WorkflowDefinition
    problems: WorkflowProblems
    top: Where
    component_files: tuple[Path, ...] = ()


def read_workflow(
    source: Source,
    name: str,
    folder: Path | None,
    *,
    components: Path | None = None,
) -> Reading:
    """Return the workflow that a document holds.

    Args:
        source: The document.
        name: What it is called if it does not say.
        folder: Where the document is; None if it has no place.
        components: Where the components' files are, whatever the document says of it.

    Raises:
        WorkflowFileError: If something is wrong with the workflow.
    """
    problems = WorkflowProblems(source)
    file = _shaped(source.value, problems)
    if file is None:
        problems.raise_if_any()

    assert file is not None
    note_ignored(type(file), problems, "note")
    reader = _Reader(file, problems, folder, components, name)
    definition = reader.definition()
    problems.raise_if_any()

    return Reading(definition, problems, reader.top, tuple(reader.files))


def _shaped(
    value: Any, problems: WorkflowProblems
) -> AgentDeclaration | NamedWorkflowDeclaration | None:
    """Return the file; if only single steps or transitions are wrong, with others in their place.

    So what is wrong with the rest of it can be told at the same time.
    """
    try:
        return _validated(value)
    except ValidationError as error:
        wrong = problems.add_shape(error)
    if problems.is_full:
        return None

    mended = deepcopy(value)
    for where, name in wrong:
        is_unknown = name == "extra_forbidden"
        if not _mend(mended, where) and not (is_unknown and _rename(mended, where)):
            return None
    try:
        return _validated(mended)
    except ValidationError:
        return None


def _validated(value: Any) -> AgentDeclaration | NamedWorkflowDeclaration:
    found = adapter(cast("Any", AnyDocument)).validate_python(value)
    return cast("AgentDeclaration | NamedWorkflowDeclaration", found)


def _rename(document: Any, where: Where) -> bool:
    """Give an unknown key the name that was probably meant, or leave it out."""
    *path, name = where
    value = document
    for part in path:
        value = value[part]

    given, near = value.pop(name), key_meant(AnyDocument, where, document)
    if near is not None:
        value.setdefault(near, given)

    return True


def _mend(value: Any, where: Where) -> bool:
    """Put something harmless in the place of a wrong step or transition."""
    top = 1 if where[:1] == ("workflow",) else 0
    workflow = value["workflow"] if top else value
    match where[top : top + 3]:
        case ("steps", int(number), *_):
            step = workflow["steps"][number]
            name = step.get("name") if isinstance(step, dict) else None
            name = name if isinstance(name, str) and name else f"step {number + 1}"
            workflow["steps"][number] = {"name": name, "type": "llm", "prompt": "."}
            return True
        case ("state_machine", "transitions", int(number)):
            machine = workflow["state_machine"]
            first = machine["states"][0] if machine.get("states") else ""
            machine["transitions"][number] = {"from": ANY_STATE, "to": first}
            return True

    return False


class _Reader:
    """Reads one workflow whose shape is right."""

    def __init__(
        self,
        file: AgentDeclaration | NamedWorkflowDeclaration,
        problems: WorkflowProblems,
        folder: Path | None,
        components: Path | None,
        stem: str,
    ) -> None:
        self._file = file
        self._workflow: WorkflowDeclaration = (
            file.workflow if isinstance(file, AgentDeclaration) else file
        )
        self.top: Where = ("workflow",) if isinstance(file, AgentDeclaration) else ()
        self._problems = problems
        self._folder = folder
        self._components_folder = components
        self._stem = stem
        self.files: list[Path] = []
        self._fragments: dict[str, list[str]] = {}
        self._prompt_characters = 0
        self._on_failure, self._max_retries = self._defaults()
        self._machine = self._workflow.state_machine or _ONE_STATE
        self._states = frozenset(self._machine.states)
        self._final_states = frozenset(self._machine.final_states)

    def definition(self) -> WorkflowDefinition:
        self._check_states()
        components = self._components()
        for component in components:
            for step in component.inject_into:
                self._fragments.setdefault(step, []).append(component.fragment)
        steps = tuple(
            self._step(declared, (*self.top, "steps", number))
            for number, declared in enumerate(self._workflow.steps)
            if not self._problems.is_full
        )
        self._require_distinct(steps)

        return WorkflowDefinition(
            name=self._file.name or self._stem,
            states=tuple(self._machine.states),
            initial=self._machine.initial_state or self._machine.states[0],
            transitions=tuple(self._transitions()),
            steps=steps,
            components=components,
            final_states=self._final_states,
        )

    # What goes for the whole workflow

    def _defaults(self) -> tuple[OnFailure, int]:
        """Return what follows a failure, from the innermost place that says so."""
        places: list[Any] = [self._workflow.error_handling, self._workflow]
        if isinstance(self._file, AgentDeclaration):
            places += [self._file.error_handling, self._file]

        policies = (getattr(place, "default_on_failure", None) for place in places)
        numbers = (
            getattr(place, name, None)
            for place in places
            for name in ("max_retries", "default_max_retries")
        )
        return _first(policies, DEFAULT_ON_FAILURE), _first(numbers, DEFAULT_MAX_RETRIES)

    def _components(self) -> tuple[Component, ...]:
        places: list[tuple[Where, Any]] = [((*self.top, "components"), self._workflow.components)]
        if isinstance(self._file, AgentDeclaration):
            places.append((("components",), self._file.components))

        named = [place for _, place in places if isinstance(place, str)]
        given = [(where, each) for where, each in places if isinstance(each, ComponentsDeclaration)]
        named += [each.folder for _, each in given if each.folder is not None]
        reader = ComponentReader(self._place_of_components(named), self._problems)
        found = reader.components(given)
        self.files = reader.files

        return found

    def _place_of_components(self, named: list[str]) -> Path | None:
        if self._components_folder is not None or not named:
            return self._components_folder or self._folder

        return Path(named[0]) if self._folder is None else self._folder / named[0]

    # States and transitions

    def _check_states(self) -> None:
        machine: Where = (*self.top, "state_machine")
        seen: set[str] = set()
        for number, state in enumerate(self._machine.states):
            if state in seen:
                where = (*machine, "states", number)
                self._problems.add(where, f"the state {state!r} appears twice", "repeated_state")
            if state == ANY_STATE:
                message = 'a state cannot be called "*", which means any state'
                self._problems.add((*machine, "states", number), message, "state_name")
            seen.add(state)

        if self._machine.initial_state is not None:
            self._require_state(self._machine.initial_state, (*machine, "initial_state"))
        for number, state in enumerate(self._machine.final_states):
            self._require_state(state, (*machine, "final_states", number))

    def _transitions(self) -> Iterator[AllowedTransition]:
        for number, item in enumerate(self._machine.transitions):
            where = (*self.top, "state_machine", "transitions", number)
            if isinstance(item, str):
                source, _, target = (part.strip() for part in item.partition("->"))
                item = TransitionDeclaration.model_validate({"from": source, "to": target})
                sources, targets = where, where
            else:
                sources, targets = (*where, "from"), (*where, "to")

            condition = self._condition(item.condition, (*where, "condition"))
            self._require_state(item.target, targets)
            for source in _listed(item.source):
                if source != ANY_STATE:
                    self._require_state(source, sources)
                if source in self._final_states:
                    message = (
                        f"the transition {source}->{item.target} leaves {source!r}, which is a "
                        "final state: remove it, or take the state out of final_states"
                    )
                    self._problems.add(sources, message, "leaves_final_state")
                yield AllowedTransition(source, item.target, condition, number)

    def _require_state(self, state: str, where: Where) -> None:
        if state not in self._states:
            known = ", ".join(self._machine.states[:20])
            message = f"{state!r} is not a state: states are {known}"
            self._problems.add(where, message, "unknown_state")

    # Steps

    def _step(self, declared: StepDeclaration, where: Where) -> Step:
        if declared.transition_to is not None:
            self._require_state(declared.transition_to, (*where, "transition_to"))

        step = Step(
            name=declared.name,
            kind=cast("StepKind", getattr(declared, "type", "code")),
            in_state=self._in_state(declared.in_state, (*where, "in_state")),
            run_if=self._condition(declared.run_if, (*where, "run_if")),
            transition_to=declared.transition_to,
            on_failure=declared.on_failure or self._on_failure,
            max_retries=self._max_retries if declared.max_retries is None else declared.max_retries,
        )
        if isinstance(declared, CodeStepDeclaration):
            return replace(step, code=self._program(declared.code, (*where, "code")))
        if isinstance(declared, LlmStepDeclaration):
            output = _required(declared.output, (*where, "output"), self._problems)
            return replace(step, prompt=self._prompt(declared.prompt, step, where), output=output)

        assert isinstance(declared, TransitionStepDeclaration)
        prompt = self._prompt(declared.prompt or _DEFAULT_TRANSITION_PROMPT, step, where)

        return replace(step, prompt=prompt, transition_map=self._map(declared, where))

    def _prompt(self, prompt: str, step: Step, where: Where) -> Template:
        """Return a step's prompt: its own, then the components that name it, by newlines."""
        parts = [prompt, *self._fragments.get(step.name, ())]
        self._prompt_characters += sum(map(len, parts))
        if self._prompt_characters > MAX_CHARACTERS:
            message = (
                f"the prompts have more than {MAX_CHARACTERS:,} characters in total, including "
                "components: shorten them"
            )
            self._problems.add((*where, "prompt"), message, "prompt")
            return Template("")

        return Template(*(part.rstrip("\n") for part in parts))

    def _in_state(self, given: str | list[str] | None, where: Where) -> frozenset[str] | None:
        if given is None:
            return None

        states = frozenset(_listed(given))
        for state in sorted(states):
            self._require_state(state, where)
        return states

    def _map(self, declared: TransitionStepDeclaration, where: Where) -> Mapping[str, str]:
        given = declared.transition_map or {}
        if not given and declared.transition_to is None:
            message = "a step of type transition needs 'transition_map' or 'transition_to'"
            self._problems.add(where, message, "missing")

        for answer, state in given.items():
            self._require_state(state, (*where, "transition_map", answer))
        folded = [" ".join(answer.casefold().split()) for answer in given]
        if len(set(folded)) < len(folded):
            message = "answers must differ in more than case or spaces"
            self._problems.add((*where, "transition_map"), message, "ambiguous_answers")

        return MappingProxyType(dict(given))

    def _require_distinct(self, steps: tuple[Step, ...]) -> None:
        seen: set[str] = set()
        for number, step in enumerate(steps):
            if step.name in seen:
                where = (*self.top, "steps", number, "name")
                message = f"two steps are called {step.name!r}: give each its own name"
                self._problems.add(where, message, "repeated_step")
            seen.add(step.name)

    # What is evaluated

    def _condition(self, source: str | bool | None, where: Where) -> Expression | None:
        if source is None or source is True:
            return None

        try:
            # YAML reads a bare `false` as a truth value
            return Expression(str(source))
        except MissingExtraError:
            raise
        except ExpressionError as error:
            self._problems.add(where, f"the condition {str(source)[:80]!r} {error}", "condition")
            return None

    def _program(self, code: str, where: Where) -> Program | None:
        require_monty()  # a code step without its sandbox is not loaded: it would have to fail
        try:
            return Program(code)
        except CodeError as error:
            self._problems.add(where, f"the code {error.problem}", "code", line=error.line or 0)
            return None


def _required(given: Any, where: Where, problems: WorkflowProblems) -> Any:
    """Return what a step asks for; note what is wrong with it, if it is a schema."""
    if isinstance(given, dict):
        try:
            require_schema(given)
        except OutputError as error:
            problems.add(where, f"the output schema {error}", "output")

    return given


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _first(values: Iterable[_SpecialT | None], default: _SpecialT) -> _SpecialT:
    return next((value for value in values if value is not None), default)
