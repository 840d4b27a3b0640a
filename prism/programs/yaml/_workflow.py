"""A workflow, and how it is read from YAML; all problems of a file are reported together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Self

from prism.errors import InputError
from prism.files.records import Where
from prism.files.source import Language, Problem, Problems, Source
from prism.programs import _layer as layer
from prism.programs._documents import Document, keys_of, note_unknown, read_part
from prism.programs.yaml._file import (
    AgentFile,
    ComponentFile,
    LevelFile,
    StepFile,
    StepReply,
    Template,
    WorkflowFile,
    reply_of,
)
from prism.programs.yaml._sandbox import CodeError, Condition, Program, require_monty
from prism.statechart import Statechart, Transition, state_enum

TRIGGER = "step"
"""The one trigger of a workflow's chart: a step names the target."""

ANY_STATE = "*"

_FOLDERS = ("", "components", "_components", "../_components")
"""Where components may lie, from the folder of the file."""

_DEFAULT_RETRIES = 3
_DEFAULT_TRANSITION_PROMPT = """\
Decide how to go on: continue with what you are doing, pivot to something else, or ship what you \
have.
State: {state}. Last result: {last_action_result}"""


@dataclass(frozen=True, kw_only=True)
class Step(layer.Step):
    """A step of a workflow.

    Args:
        run_if: What must hold for it to run; None for always.
        prompt: What the model is asked, components included.
        reply: How the model's reply is read.
        reply_tokens: Tokens that a reply may have; None for the usual number.
        code: What runs in the sandbox.
        transition_to: State that follows.
        transition_map: State that follows each answer.
    """

    run_if: Condition | None
    prompt: Template | None
    reply: StepReply | None
    reply_tokens: int | None
    code: Program | None
    transition_to: str | None
    transition_map: Mapping[str, str]


@dataclass(frozen=True)
class Workflow(Document):
    """A workflow, read from YAML, which any number of agents can share.

    Components are read from files beside it. Without the extra ``programs``, reading one raises
    `prism.errors.MissingExtraError`.

    Args:
        name: Its name.
        chart: Its states and transitions, with the conditions as guards.
        steps: Its steps, in order.
        files: The files that it was read from: its own, then its components'.
        problems: Warnings of the reader, and notes on keys that are left out.
    """

    language: ClassVar[Language] = "yaml"

    name: str
    chart: Statechart[StrEnum] = field(repr=False)
    steps: tuple[Step, ...] = field(repr=False)
    files: tuple[Path, ...] = ()
    problems: tuple[Problem, ...] = ()

    @classmethod
    def _of(cls, problems: Problems, file: Path | None, name: str) -> Self:
        document = problems.source.value
        is_inside = isinstance(document, dict) and "workflow" in document
        kind: type[AgentFile | WorkflowFile] = AgentFile if is_inside else WorkflowFile
        shape = read_part(kind, document, problems)
        note_unknown(document, keys_of(AgentFile) | keys_of(kind), problems)
        problems.raise_if_any()
        assert shape is not None

        reader = _Reader(shape, problems, file)
        name = next((level.name for level in reader.levels.values() if level.name), name)
        steps = reader.steps()
        transitions = reader.transitions()
        problems.raise_if_any()
        reader.warn_of_refusals(transitions)
        chart = _chart(name, reader.workflow, transitions)
        return cls(name, chart, steps, tuple(reader.files), tuple(sorted(problems)))


AllowedTransition = tuple[str, str, Condition | None]
"""The state that it leaves; the target; what must hold, if anything."""


def _chart(
    name: str, workflow: WorkflowFile, transitions: Iterable[AllowedTransition]
) -> Statechart[StrEnum]:
    machine = workflow.state_machine
    states = state_enum("State", machine.states)
    rows = [
        Transition(TRIGGER, states(source), states(target), _guard(condition))
        for source, target, condition in transitions
    ]
    return Statechart(states, rows, states(machine.initial_state or machine.states[0]), name=name)


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

    def __init__(
        self, shape: AgentFile | WorkflowFile, problems: Problems, file: Path | None
    ) -> None:
        self.workflow: WorkflowFile = shape.workflow if isinstance(shape, AgentFile) else shape
        self._top: Where = () if self.workflow is shape else ("workflow",)
        # what goes for the whole workflow stands in it, or beside it
        self.levels: dict[Where, LevelFile] = {self._top: self.workflow, (): shape}
        self.files: dict[Path, None] = {} if file is None else {file: None}
        self._problems, self._folder = problems, file and file.parent
        self._fragments: defaultdict[str, list[str]] = defaultdict(list)
        # which states follow others, and where the file says so
        self._targets: list[tuple[Where, Sequence[str], str]] = []

    # States and transitions

    def transitions(self) -> list[AllowedTransition]:
        """Return the allowed transitions, which lead from one state to one other."""
        machine, top = self.workflow.state_machine, (*self._top, "state_machine")
        self._require_distinct(machine.states, (*top, "states"), "states")
        self._require_states([machine.initial_state], (*top, "initial_state"))
        allowed: list[AllowedTransition] = []
        for number, item in enumerate(machine.transitions):
            where = (*top, "transitions", number)
            condition = self._condition(item.condition, (*where, "condition"))
            self._require_states([item.target], (*where, "to"))
            for source in item.source:
                self._require_states([None if source == ANY_STATE else source], (*where, "from"))
                sources = machine.states if source == ANY_STATE else [source]
                allowed += [(each, item.target, condition) for each in sources]
        return allowed if machine.transitions else self._possible()

    def _possible(self) -> list[AllowedTransition]:
        """Return what steps can name, once each, where any state may follow any other."""
        pairs = dict.fromkeys(
            (state, target) for _, states, target in self._targets for state in states
        )
        return [(source, target, None) for source, target in pairs]

    def warn_of_refusals(self, transitions: Iterable[AllowedTransition]) -> None:
        """Warn of targets that no transition leads to from any state of their step."""
        pairs = {(source, target) for source, target, _ in transitions}
        for where, states, target in self._targets:
            if pairs.isdisjoint((state, target) for state in states):
                message = f"no transition leads from {' or '.join(states[:20])} to {target!r}"
                self._problems.add(where, message, "refused", severity="warning")

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
                    component = self._of_file(kind, name, (*top, "components", kind, number))
                    if component is not None:
                        yield component

    def _of_file(self, kind: str, name: str, where: Where) -> ComponentFile | None:
        """Return the component of a file."""
        folder = self._folder
        folders = map(folder.joinpath, _FOLDERS) if folder and Path(name).name == name else []
        paths = [each / kind / f"{name}.yaml" for each in folders]
        path = next((each for each in paths if each.is_file()), None)
        if path is None:
            # the prompts still stand without it
            message = f"there is no component {kind}/{name}.yaml in {folder or 'this text'}"
            self._problems.add(where, message, "missing_component", severity="warning")
            return None

        self.files[path] = None
        try:
            source = Source.read(path, "yaml")
        except InputError as error:
            self._problems.add(where, str(error), "component")
            return None
        beside = Problems(source, beside=self._problems)
        component = read_part(ComponentFile, source.value, beside)
        note_unknown(source.value, keys_of(ComponentFile), beside)
        return component

    # Steps

    def steps(self) -> tuple[Step, ...]:
        """Return the steps."""
        for component in self._components():
            for step in component.inject_into:
                self._fragments[step].append(component.prompt_fragment)
        steps, where = self.workflow.steps, (*self._top, "steps")
        self._require_distinct((step.name for step in steps), where, "steps")
        return tuple(self._step(step, (*where, number)) for number, step in enumerate(steps))

    def _step(self, step: StepFile, where: Where) -> Step:
        self._require_states(step.in_state or (), (*where, "in_state"))
        answers, targets = step.transition_map or {}, dict[Where, str]()
        if step.transition_to is not None:
            targets[*where, "transition_to"] = step.transition_to
        for answer, state in answers.items():
            targets[*where, "transition_map", answer] = state
        states = sorted({*(step.in_state or self.workflow.state_machine.states)})
        for key, state in targets.items():
            self._require_states([state], key)
            self._targets.append((key, states, state))
        retries = step.max_retries
        if retries is None:
            retries = self._usual(_DEFAULT_RETRIES, "max_retries", "default_max_retries")
        asks, program, prompt = step.type != "code", None, None
        if asks:
            parts = [step.prompt or _DEFAULT_TRANSITION_PROMPT, *self._fragments[step.name]]
            prompt = Template(*(part.rstrip("\n") for part in parts))
        else:
            require_monty()  # without its sandbox it is not loaded: it would have to fail
            program = self._made(Program, step.code or "", (*where, "code"), "the code")
        return Step(
            name=step.name,
            kind=step.type,
            states=None if step.in_state is None else frozenset(step.in_state),
            asks=asks,
            on_failure=step.on_failure or self._usual("retry", "default_on_failure"),
            max_retries=retries,
            run_if=self._condition(step.run_if, (*where, "run_if")),
            prompt=prompt,
            reply=self._made(reply_of, step, (*where, "output"), "the output"),
            reply_tokens=step.reply_tokens,
            code=program,
            transition_to=step.transition_to,
            transition_map=answers,
        )

    def _usual(self, otherwise: Any, *names: str) -> Any:
        """Return what holds for all steps by one of some names: the nearest that is declared."""
        for level in self.levels.values():
            for declared in (level.error_handling, level):
                for name in names:
                    if (value := getattr(declared, name, None)) is not None:
                        return value
        return otherwise

    def _condition(self, source: str | None, where: Where) -> Condition | None:
        if source is None:
            return None
        made: Condition | None
        made = self._made(Condition, source, where, f"the condition {source[:80]!r}")
        return made

    def _made(self, make: Callable[[Any], Any], part: Any, where: Where, what: str) -> Any:
        """Return what is made of a value of the file; None, with the reason noted, on failure."""
        try:
            return make(part)
        except CodeError as error:
            line = error.line or 0
            self._problems.add(where, f"{what} {error.problem}", str(where[-1]), line=line)
            return None

    def _require_states(self, names: Iterable[str | None], where: Where) -> None:
        states = self.workflow.state_machine.states
        for name in names:
            if name is not None and name not in states:
                message = f"{name!r} is not a state: states are {', '.join(states[:20])}"
                self._problems.add(where, message, "unknown_state")

    def _require_distinct(self, names: Iterable[str], where: Where, what: str) -> None:
        for name, number in Counter(names).items():
            if number > 1:
                message = f"{number} {what} are called {name!r}: give each its own name"
                self._problems.add(where, message, "repeated")
