"""A workflow, and how it is read from YAML; all problems of a file are reported together."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self, TypeVar

from prism.errors import InputError
from prism.files._records import shown_path
from prism.files._source import DocumentError, Problem, Problems, Source, Where
from prism.files._yaml import yaml_text
from prism.programs._documents import read_known
from prism.programs._layer import OnFailure
from prism.programs.yaml._file import (
    AgentFile,
    ComponentFile,
    StateMachineFile,
    StepFile,
    TransitionFile,
    WorkflowFile,
)
from prism.programs.yaml._replies import OutputError, StepReply, Template, reply_of
from prism.programs.yaml._sandbox import CodeError, Condition, Program, require_monty
from prism.reasoner._words import MAX_CHARACTERS
from prism.statechart import Statechart, Transition, state_enum

LOGGER: logging.Logger = logging.getLogger("prism.programs")
"""Gets the warnings of a file, once; they are not part of a run's log."""

TRIGGER = "step"
"""The one trigger of a workflow's chart: a step names the target."""

ANY_STATE = "*"

_FOLDERS = ("components", "_components", "../_components")
"""Where components may lie, from the folder of the file."""

_ONE_STATE = StateMachineFile.model_validate({"states": ["active"]})
_DEFAULT_RETRIES = 3
_DEFAULT_TRANSITION_PROMPT = """\
Decide how to go on: continue with what you are doing, pivot to something else, or ship what you \
have.
State: {state}. Last result: {last_action_result}"""

_PartT = TypeVar("_PartT")
_MadeT = TypeVar("_MadeT")


@dataclass(frozen=True, slots=True)
class Step:
    """A unit of work.

    Args:
        name: Its name, unique in the workflow.
        kind: ``llm``, ``code`` or ``transition``.
        in_state: States it runs in; None for any.
        run_if: What must hold for it to run; None for always.
        prompt: What the model is asked, components included.
        reply: How the model's reply is read.
        code: What runs in the sandbox.
        transition_to: State that follows.
        transition_map: State that follows each answer.
        on_failure: What follows when it fails.
        max_retries: Requests beyond the first, in all.
    """

    name: str
    kind: str
    in_state: frozenset[str] | None
    run_if: Condition | None
    prompt: Template | None
    reply: StepReply | None
    code: Program | None
    transition_to: str | None
    transition_map: Mapping[str, str]
    on_failure: OnFailure
    max_retries: int


@dataclass(frozen=True, slots=True)
class Workflow:
    """A workflow, read from YAML by `load` or `from_text`, which any number of agents can share.

    Args:
        name: Its name.
        chart: Its states and transitions, with the conditions as guards.
        steps: Its steps, in order.
        files: The files that it was read from: its own, then its components'.
        problems: Warnings of the reader, and notes on keys that are left out.
    """

    name: str
    chart: Statechart[StrEnum] = field(repr=False)
    steps: tuple[Step, ...] = field(repr=False)
    files: tuple[Path, ...] = ()
    problems: tuple[Problem, ...] = ()

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a workflow from a file, and its components from folders beside it.

        What is probably wrong, or left out, is logged to the standard logger ``prism.programs``.

        Args:
            path: The file, YAML.

        Raises:
            InputError: If it cannot be read, is not YAML, or is wrong; the message lists what is,
                with line and column.
            MissingExtraError: If the extra ``workflow`` is not installed.
        """
        workflow = cls._of_file(Path(path))
        for problem in workflow.problems:
            LOGGER.warning("%s", problem)
        return workflow

    @classmethod
    def from_text(cls, text: str, *, name: str = "workflow") -> Self:
        """Read a workflow from a text, with components inline.

        Args:
            text: The workflow, in YAML.
            name: Its name if the text has none, and its name in messages.

        Raises:
            InputError: If it is not YAML, or holds an error.
        """
        return cls._of(Source.parse(text, "yaml", path=name), name)

    @classmethod
    def check(cls, path: Path | str) -> Sequence[Problem]:
        """Return what is wrong with a workflow file and its components, and what is left out.

        Args:
            path: The file, YAML.

        Raises:
            InputError: If it cannot be read, or is not YAML.
        """
        try:
            return cls._of_file(Path(path)).problems
        except DocumentError as error:
            return error.problems

    @classmethod
    def _of_file(cls, file: Path) -> Self:
        source = Source.parse(yaml_text(file), "yaml", path=file)
        return cls._of(source, file.stem, file.parent, file)

    @classmethod
    def _of(
        cls, source: Source, name: str, folder: Path | None = None, file: Path | None = None
    ) -> Self:
        problems = Problems(source)
        document = source.value
        is_inside = isinstance(document, dict) and "workflow" in document
        shape = read_known(AgentFile if is_inside else WorkflowFile, document, problems)
        problems.raise_if_any()
        reader = _Reader(shape, ("workflow",) if is_inside else (), problems, folder)
        name = next((level.name for level in reader.levels.values() if level.name), name)
        steps = reader.steps()
        transitions = list(reader.transitions())
        problems.raise_if_any()
        chart = _chart(name, reader.machine, transitions, steps)
        files = (*([] if file is None else [file]), *reader.files)
        return cls(name, chart, steps, files, tuple(sorted(problems)))


AllowedTransition = tuple[str, str, Condition | None]
"""The state that it leaves, or ``*``; the target; what must hold, if anything."""


def _chart(
    name: str,
    machine: StateMachineFile,
    transitions: Iterable[AllowedTransition],
    steps: Iterable[Step],
) -> Statechart[StrEnum]:
    # a class cannot be called by what no UTF-8 has, as a file may be
    words = shown_path(name).replace("-", " ").replace("\0", " ").split()
    states = state_enum("".join(map(str.capitalize, words)) or "Workflow", machine.states)
    left = [state for state in machine.states if state not in machine.final_states]
    rows = [
        Transition(
            TRIGGER,
            states(source),
            states(target),
            None if condition is None else _guard(condition),
        )
        for start, target, condition in transitions or _possible(left, steps)
        for source in (left if start == ANY_STATE else [start])
    ]
    initial = states(machine.initial_state or machine.states[0])
    final = map(states, machine.final_states)
    return Statechart(states, rows, initial, name=name, final_states=final)


def _possible(states: Iterable[str], steps: Iterable[Step]) -> Iterator[AllowedTransition]:
    """Yield what steps can name, once each, where any state may follow any other."""
    for state in states:
        here = [step for step in steps if step.in_state is None or state in step.in_state]
        targets = (target for s in here for target in (s.transition_to, *s.transition_map.values()))
        for target in dict.fromkeys(filter(None, targets)):
            yield state, target, None


def _guard(condition: Condition | None) -> Callable[[Any, Any], bool] | None:
    """Return a condition as a guard; the agent notes why it refuses."""
    if condition is None:
        return None

    def guard(agent: Any, _context: Any) -> bool:
        return bool(agent.allows(condition))

    guard.__name__ = guard.__qualname__ = condition.source
    return guard


class _Reader:
    """Reads one workflow whose shape is right."""

    def __init__(self, file: Any, top: Where, problems: Problems, folder: Path | None) -> None:
        self._workflow: WorkflowFile = file.workflow if top else file
        # what goes for the whole workflow stands in it, or beside it
        self.levels: dict[Where, Any] = {top: self._workflow, (): file}
        self.machine: StateMachineFile = self._workflow.state_machine or _ONE_STATE
        self.files: dict[Path, ComponentFile | None] = {}
        self._top, self._problems, self._folder = top, problems, folder
        self._states = frozenset(self.machine.states)
        self._fragments: defaultdict[str, list[str]] = defaultdict(list)
        self._prompt_characters = 0

    # States and transitions

    def transitions(self) -> Iterator[AllowedTransition]:
        """Yield the allowed transitions."""
        machine, top = self.machine, (*self._top, "state_machine")
        self._require_distinct(machine.states, (*top, "states"), "states")
        if ANY_STATE in machine.states:
            self._problems.add((*top, "states"), 'a state cannot be called "*"', "state_name")
        self._require_states([machine.initial_state], (*top, "initial_state"))
        self._require_states(machine.final_states, (*top, "final_states"))
        for number, item in enumerate(machine.transitions):
            where = (*top, "transitions", number)
            if isinstance(item, str):
                source, _, target = map(str.strip, item.partition("->"))
                item = TransitionFile.model_validate({"from": source, "to": target})
            condition = self._condition(item.condition, (*where, "condition"))
            self._require_states([item.target], (*where, "to"))
            for source in _listed(item.source):
                self._require_states([None if source == ANY_STATE else source], (*where, "from"))
                if source in machine.final_states:
                    message = f"the transition leaves {source!r}, which is a final state"
                    self._problems.add((*where, "from"), message, "leaves_final_state")
                yield source, item.target, condition

    # Components

    def _components(self) -> Iterator[ComponentFile]:
        """Yield the traits, behaviors and goals, each kind in the order in which it is named."""
        for kind in ("traits", "behaviors", "goals"):
            for top, level in self.levels.items():
                named = getattr(level.components, kind, ())
                if isinstance(named, Mapping):
                    yield from named.values()
                    continue
                for number, name in enumerate(named):
                    found = self._of_file(kind, name, (*top, "components", kind, number))
                    if found is not None:
                        yield found

    def _of_file(self, kind: str, name: str, where: Where) -> ComponentFile | None:
        """Return the component of a file, which is read once."""
        folder = self._folder
        folders = () if folder is None else (folder, *map(folder.__truediv__, _FOLDERS))
        paths = [each / kind / f"{name}.yaml" for each in folders if Path(name).name == name]
        path = next((each for each in paths if each.is_file()), None)
        if path is None:
            # the prompts still stand without it
            message = f"there is no component {kind}/{name}.yaml in {folder or 'this text'}"
            self._problems.add(where, message, "missing_component", severity="warning")
            return None

        if path not in self.files:
            self.files[path] = None
            try:
                source = Source.parse(yaml_text(path), "yaml", path=path)
            except InputError as error:
                self._problems.add(where, str(error), "component")
                return None
            beside = Problems(source, beside=self._problems)
            self.files[path] = read_known(ComponentFile, source.value, beside)
        return self.files[path]

    # Steps

    def steps(self) -> tuple[Step, ...]:
        """Return the steps."""
        for component in self._components():
            for step in component.inject_into:
                self._fragments[step].append(component.prompt_fragment)
        steps, where = self._workflow.steps, (*self._top, "steps")
        self._require_distinct((step.name for step in steps), where, "steps")
        return tuple(self._step(step, (*where, number)) for number, step in enumerate(steps))

    def _step(self, step: StepFile, where: Where) -> Step:
        in_state = None if step.in_state is None else frozenset(_listed(step.in_state))
        self._require_states(sorted(in_state or ()), (*where, "in_state"))
        self._require_states([step.transition_to], (*where, "transition_to"))
        answers = step.transition_map or {}
        for answer, state in answers.items():
            self._require_states([state], (*where, "transition_map", answer))
        if len({" ".join(answer.casefold().split()) for answer in answers}) < len(answers):
            message = "answers must differ in more than case or spaces"
            self._problems.add((*where, "transition_map"), message, "ambiguous_answers")

        retries = step.max_retries
        if retries is None:
            retries = self._usual(_DEFAULT_RETRIES, "max_retries", "default_max_retries")
        asks, program = step.type != "code", None
        if not asks:
            require_monty()  # without its sandbox it is not loaded: it would have to fail
            program = self._made(Program, step.code or "", (*where, "code"), "the code")
        reply = self._made(reply_of, step, (*where, "output"), "the output schema")
        return Step(
            step.name,
            step.type,
            in_state,
            self._condition(step.run_if, (*where, "run_if")),
            self._prompt(step, where) if asks else None,
            reply if asks else None,
            program,
            step.transition_to,
            answers,
            step.on_failure or self._usual("retry", "default_on_failure"),
            retries,
        )

    def _usual(self, otherwise: Any, *names: str) -> Any:
        """Return what holds for all steps by one of some names: the nearest that is declared."""
        for level in self.levels.values():
            for declared in (level.error_handling, level):
                for name in names:
                    if (found := getattr(declared, name, None)) is not None:
                        return found
        return otherwise

    def _prompt(self, step: StepFile, where: Where) -> Template:
        """Return a step's prompt: its own text, then the components that join it, line by line."""
        parts = [step.prompt or _DEFAULT_TRANSITION_PROMPT, *self._fragments.get(step.name, ())]
        self._prompt_characters += sum(map(len, parts))
        if self._prompt_characters > MAX_CHARACTERS:
            message = f"the prompts with their components exceed {MAX_CHARACTERS:,} characters"
            self._problems.add((*where, "prompt"), message, "prompt")
            return Template("")
        return Template(*(part.rstrip("\n") for part in parts))

    def _condition(self, source: str | bool | None, where: Where) -> Condition | None:
        if source is None or source is True:
            return None
        # YAML reads a bare `false` as a truth value
        return self._made(Condition, str(source), where, f"the condition {str(source)[:80]!r}")

    def _made(
        self, make: Callable[[_PartT], _MadeT], part: _PartT, where: Where, what: str
    ) -> _MadeT | None:
        """Return what is made of a value of the file; None, with the reason noted, on failure."""
        try:
            return make(part)
        except OutputError as error:
            problem, line = str(error), 0
        except CodeError as error:
            problem, line = error.problem, error.line or 0
        self._problems.add(where, f"{what} {problem}", str(where[-1]), line=line)
        return None

    def _require_states(self, names: Iterable[str | None], where: Where) -> None:
        for name in names:
            if name is not None and name not in self._states:
                message = (
                    f"{name!r} is not a state: states are {', '.join(self.machine.states[:20])}"
                )
                self._problems.add(where, message, "unknown_state")

    def _require_distinct(self, names: Iterable[str], where: Where, what: str) -> None:
        seen: set[str] = set()
        for number, name in enumerate(names):
            if name in seen:
                message = f"two {what} are called {name!r}: give each its own name"
                self._problems.add((*where, number), message, "repeated")
            seen.add(name)


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
