"""From a workflow's text to its definition; all problems are reported together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, cast

from prism.files._source import Severity, Source, Where
from prism.files.declarations import note_ignored, shaped
from prism.programs.yaml._components import ComponentReader
from prism.programs.yaml._declarations import (
    AgentDeclaration,
    AnyDocument,
    CodeStepDeclaration,
    ComponentsDeclaration,
    LlmStepDeclaration,
    NamedWorkflowDeclaration,
    StateMachineDeclaration,
    StepDeclaration,
    TransitionStepDeclaration,
    WorkflowDeclaration,
)
from prism.programs.yaml._definition import (
    ANY_STATE,
    DEFAULT_MAX_RETRIES,
    DEFAULT_ON_FAILURE,
    AllowedTransition,
    Component,
    Step,
    StepKind,
    Template,
    WorkflowDefinition,
)
from prism.programs.yaml._outputs import OutputError, Validator
from prism.programs.yaml._problems import WorkflowProblems
from prism.programs.yaml._sandbox import CodeError, Condition, Program, require_monty
from prism.reasoner._words import MAX_CHARACTERS

IMPLIED_STATE = "active"
"""The one state of a workflow that declares none."""

_ONE_STATE = StateMachineDeclaration.model_validate({"states": [IMPLIED_STATE]})

_DEFAULT_TRANSITION_PROMPT = """\
Decide how to go on: continue with what you are doing, pivot to something else, or ship what you \
have.
State: {state}. Last result: {last_action_result}"""

_AnyFile = AgentDeclaration | NamedWorkflowDeclaration
_GivenT = TypeVar("_GivenT")
_MadeT = TypeVar("_MadeT")
_UsualT = TypeVar("_UsualT")


def read_workflow(
    source: Source,
    name: str,
    folder: Path | None,
    *,
    components: Path | str | None = None,
) -> tuple[WorkflowDefinition, WorkflowProblems]:
    """Return the workflow of a document, and the problems that do not prevent a run.

    Args:
        source: The document.
        name: Its name if the document has none.
        folder: Where the document is; None if it is not a file.
        components: Folder of the components' files, overriding the document.

    Raises:
        WorkflowFileError: If something is wrong with the workflow.
    """
    problems = WorkflowProblems(source)
    file: _AnyFile | None = shaped(AnyDocument, source.value, problems)
    problems.raise_if_any()
    assert file is not None

    note_ignored(type(file), problems, "note")
    _note_keys_of_steps(problems)
    definition = _Reader(file, problems).definition(
        file.name or name, folder, None if components is None else Path(components)
    )
    problems.raise_if_any()

    return definition, problems


def _note_keys_of_steps(problems: WorkflowProblems) -> None:
    """Add one note on the keys of steps that prism ignores; a warning if one looks misspelt."""
    outer = problems.source.value
    steps = (outer["workflow"] if problems.top else outer)["steps"]
    ignored = [
        (number, str(key), get_close_matches(str(key), known, n=1, cutoff=_MISSPELT))
        for number, step in enumerate(steps)
        if (known := _KEYS_OF_STEPS[step.get("type", "code")])
        for key in step.keys() - known
    ]
    if not ignored:
        return
    names = [
        f"{key} of {steps[number]['name']!r}" + (f" (did you mean {near[0]}?)" if near else "")
        for number, key, near in sorted(ignored)[:_MOST_LISTED]
    ]
    where = (*problems.top, "steps", *min(ignored)[:2])
    severity: Severity = "warning" if any(near for _, _, near in ignored) else "note"
    problems.add(where, f"prism ignores {', '.join(names)}", "left_out", severity=severity)


_MISSPELT = 0.8
_MOST_LISTED = 20
_KEYS_OF_STEPS: Mapping[str, Sequence[str]] = {
    "llm": tuple(LlmStepDeclaration.model_fields),
    "code": tuple(CodeStepDeclaration.model_fields),
    "transition": tuple(TransitionStepDeclaration.model_fields),
}


class _Reader:
    """Reads one workflow whose shape is right."""

    def __init__(self, file: _AnyFile, problems: WorkflowProblems) -> None:
        self._workflow: WorkflowDeclaration = (
            file.workflow if isinstance(file, AgentDeclaration) else file
        )
        self._problems = problems
        self._machine = self._workflow.state_machine or _ONE_STATE
        self._states = frozenset(self._machine.states)
        self._fragments: defaultdict[str, list[str]] = defaultdict(list)
        self._prompt_characters = 0
        # what goes for the whole workflow stands in it, or beside it
        self._levels: dict[Where, Any] = {self._problems.top: self._workflow, (): file}
        self._on_failure = self._usual(DEFAULT_ON_FAILURE, "default_on_failure")
        self._max_retries = self._usual(DEFAULT_MAX_RETRIES, "max_retries", "default_max_retries")

    def _usual(self, otherwise: _UsualT, *names: str) -> _UsualT:
        """Return what holds for all steps by one of some names: the nearest that is declared."""
        for level in self._levels.values():
            for declared in (level.error_handling, level):
                for name in names:
                    if (found := getattr(declared, name, None)) is not None:
                        return cast("_UsualT", found)

        return otherwise

    def definition(
        self, name: str, folder: Path | None, components_folder: Path | None
    ) -> WorkflowDefinition:
        machine: Where = (*self._problems.top, "state_machine")
        self._require_distinct(
            self._machine.states, (*machine, "states"), "the state {!r} appears twice", "state"
        )
        if ANY_STATE in self._states:
            where = (*machine, "states", self._machine.states.index(ANY_STATE))
            message = 'a state cannot be called "*", which means any state'
            self._problems.add(where, message, "state_name")
        self._require_state(self._machine.initial_state, (*machine, "initial_state"))
        for number, state in enumerate(self._machine.final_states):
            self._require_state(state, (*machine, "final_states", number))

        components = self._components(folder, components_folder)
        for component in components:
            for step in component.declared.inject_into:
                self._fragments[step].append(component.declared.prompt_fragment)

        where = (*self._problems.top, "steps")
        steps = tuple(
            self._step(declared, (*where, number))
            for number, declared in enumerate(self._workflow.steps)
            if not self._problems.is_full
        )
        names = [step.name for step in steps]
        message = "two steps are called {!r}: give each its own name"
        self._require_distinct(names, where, message, "step", "name")

        return WorkflowDefinition(
            name=name,
            states=tuple(self._machine.states),
            initial=self._machine.initial_state or self._machine.states[0],
            transitions=tuple(self._transitions((*machine, "transitions"))),
            steps=steps,
            components=components,
            final_states=frozenset(self._machine.final_states),
        )

    def _components(self, folder: Path | None, given_folder: Path | None) -> tuple[Component, ...]:
        found = {(*top, "components"): level.components for top, level in self._levels.items()}
        declared = {
            where: each for where, each in found.items() if isinstance(each, ComponentsDeclaration)
        }
        named = [each for each in found.values() if isinstance(each, str)]
        named += [each.folder for each in declared.values() if each.folder is not None]
        if given_folder is None and named:
            given_folder = (folder or Path()) / named[0]

        reader = ComponentReader(given_folder or folder, self._problems)

        return tuple(reader.components(declared))

    def _transitions(self, places: Where) -> Iterator[AllowedTransition]:
        for number, item in enumerate(self._machine.transitions):
            where = (*places, number)
            if isinstance(item, str):
                start, _, target = (part.strip() for part in item.partition("->"))
                starts, condition, at_source, at_target = [start], None, where, where
            else:
                starts, target = _listed(item.source), item.target
                at_source, at_target = (*where, "from"), (*where, "to")
                condition = self._condition(item.condition, (*where, "condition"))

            self._require_state(target, at_target)
            for source in starts:
                self._require_state(source if source != ANY_STATE else None, at_source)
                if source in self._machine.final_states:
                    message = (
                        f"the transition {source}->{target} leaves {source!r}, which is a "
                        "final state: remove it, or take the state out of final_states"
                    )
                    self._problems.add(at_source, message, "leaves_final_state")
                yield AllowedTransition(source, target, condition, number)

    def _step(self, declared: StepDeclaration, where: Where) -> Step:
        self._require_state(declared.transition_to, (*where, "transition_to"))
        in_state = None if declared.in_state is None else frozenset(_listed(declared.in_state))
        for state in sorted(in_state or ()):
            self._require_state(state, (*where, "in_state"))

        return Step(
            name=declared.name,
            kind=cast("StepKind", getattr(declared, "type", "code")),
            in_state=in_state,
            run_if=self._condition(declared.run_if, (*where, "run_if")),
            transition_to=declared.transition_to,
            on_failure=declared.on_failure or self._on_failure,
            max_retries=self._max_retries if declared.max_retries is None else declared.max_retries,
            **self._of_kind(declared, where),
        )

    def _of_kind(self, declared: StepDeclaration, where: Where) -> dict[str, Any]:
        """Return what only a step of this kind has."""
        match declared:
            case CodeStepDeclaration():
                require_monty()  # without its sandbox it is not loaded: it would have to fail
                return {"code": self._made(Program, declared.code, (*where, "code"), "the code")}
            case LlmStepDeclaration():
                asked = self._prompt(declared.prompt, declared.name, where)
                if isinstance(declared.output, dict):
                    place = (*where, "output")
                    self._made(Validator, declared.output, place, "the output schema")
                return {"prompt": asked, "output": declared.output}
            case TransitionStepDeclaration():
                prompt = declared.prompt or _DEFAULT_TRANSITION_PROMPT
                return {
                    "prompt": self._prompt(prompt, declared.name, where),
                    "transition_map": self._map(declared, where),
                }

        return {}

    def _prompt(self, prompt: str, step: str, where: Where) -> Template:
        """Return a step's prompt: its own text, then the components that join it, line by line."""
        parts = [prompt, *self._fragments.get(step, ())]
        self._prompt_characters += sum(map(len, parts))
        if self._prompt_characters > MAX_CHARACTERS:
            message = (
                f"the prompts have more than {MAX_CHARACTERS:,} characters in total, including "
                "components: shorten them"
            )
            self._problems.add((*where, "prompt"), message, "prompt")
            return Template("")

        return Template(*(part.rstrip("\n") for part in parts))

    def _map(self, declared: TransitionStepDeclaration, where: Where) -> Mapping[str, str]:
        given = declared.transition_map or {}
        if not given and declared.transition_to is None:
            message = "a step of type transition needs 'transition_map' or 'transition_to'"
            self._problems.add(where, message, "missing")

        for answer, state in given.items():
            self._require_state(state, (*where, "transition_map", answer))
        if len({" ".join(answer.casefold().split()) for answer in given}) < len(given):
            message = "answers must differ in more than case or spaces"
            self._problems.add((*where, "transition_map"), message, "ambiguous_answers")

        return MappingProxyType(dict(given))

    def _condition(self, source: str | bool | None, where: Where) -> Condition | None:
        if source is None or source is True:
            return None

        # YAML reads a bare `false` as a truth value
        text = str(source)
        return self._made(Condition, text, where, f"the condition {text[:80]!r}", "condition")

    def _made(
        self,
        make: Callable[[_GivenT], _MadeT],
        given: _GivenT,
        where: Where,
        what: str,
        kind: str = "",
    ) -> _MadeT | None:
        """Return what is made of a value of the file; None, with the reason noted, on failure."""
        try:
            return make(given)
        except OutputError as error:
            problem, line = str(error), 0
        except CodeError as error:
            problem, line = error.problem, error.line or 0

        self._problems.add(where, f"{what} {problem}", kind or str(where[-1]), line=line)

        return None

    def _require_state(self, state: str | None, where: Where) -> None:
        if state is not None and state not in self._states:
            known = ", ".join(self._machine.states[:20])
            message = f"{state!r} is not a state: states are {known}"
            self._problems.add(where, message, "unknown_state")

    def _require_distinct(
        self, names: Iterable[str], where: Where, message: str, kind: str, *key: str
    ) -> None:
        seen: set[str] = set()
        for number, name in enumerate(names):
            if name in seen:
                place = (*where, number, *key)
                self._problems.add(place, message.format(name), f"repeated_{kind}")
            seen.add(name)


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
