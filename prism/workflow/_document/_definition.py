"""A workflow as it was read: steps with their prompts, states, transitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import orjson

from prism.expressions import Expression
from prism.files._source import Where
from prism.statechart.reasoner import _own_prompts
from prism.workflow._sandbox._programs import Program

_SIGN_AND_WIDTH = r"[+\- ]?0?[1-9]?\d?"
# a comma, a precision or a type: {x:1} alone is not told from a mapping that somebody writes down
_FORMAT = rf"{_SIGN_AND_WIDTH}(?:,(?:\.\d\d?)?[dfeg%]?|\.\d\d?[feg%]?|[dfeg%])"
_VARIABLE = re.compile(rf"\{{([^\W\d]\w*(?::{_FORMAT})?)\}}")
_DOUBLED = re.compile(rf"\{{\{{|\}}\}}|{_VARIABLE.pattern}")
_MARKED = re.compile(r"\0([^\0]+)\0")


class Template(_own_prompts.Template):
    """A text with ``{variables}``, whose values are shown as JSON unless they are texts.

    A number may have a plain format, ``{rate:.0%}``; any other value is shown as without one. A
    part that has ``{{`` doubles its braces, as `str.format` wants it: they are single ones, then.

    Args:
        parts: The parts of the text, a prompt and what joins it.

    Attributes:
        variables: The names of its variables.
    """

    __slots__ = ("variables",)

    def __init__(self, *parts: str) -> None:
        super().__init__("\n".join(map(_marked, parts)), _MARKED)
        self.text = "\n".join(parts)
        self.variables: tuple[str, ...] = tuple(dict.fromkeys(map(_name, self.names)))

    def fill(
        self, variables: Mapping[str, Any], shown: Callable[[Any], str] = str
    ) -> tuple[str, list[str]]:
        """Return the text with its variables, and the names that there are no variables for."""
        # each is looked up once, whatever formats it has
        known = {name: variables[name] for name in self.variables if name in variables}
        text, _ = super().fill(_Shown(known), shown)

        return text, [name for name in self.variables if name not in known]


def _marked(part: str) -> str:
    """Return a part of a prompt with its variables between marks, and its braces single."""
    pattern = _DOUBLED if "{{" in part else _VARIABLE
    clean = part.replace("\0", "\ufffd")
    return pattern.sub(lambda found: f"\0{found[1]}\0" if found[1] else found[0][0], clean)


class _Shown(Mapping[str, str]):
    """Values as a prompt shows them, by their names or by ``name:format``."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> str:
        name, _, form = key.partition(":")
        return _formatted(self._values[name], form)

    def __contains__(self, key: object) -> bool:
        return _name(str(key)) in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _name(key: str) -> str:
    return key.partition(":")[0]


def _formatted(value: Any, form: str) -> str:
    if form and isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return format(int(value) if form.endswith("d") else value, form)
        except OverflowError:  # a whole number that no float can hold
            return str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)

    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


StepKind = Literal["llm", "code", "transition"]
OnFailure = Literal["retry", "skip", "fail"]

ANY_STATE = "*"
DEFAULT_ON_FAILURE: OnFailure = "retry"
DEFAULT_MAX_RETRIES = 3


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a component is written, for messages.

    Args:
        file: A file of its own; None for the workflow's.
        where: Its path in that file.
    """

    file: str | None = None
    where: Where = ()


@dataclass(frozen=True, slots=True)
class Component:
    """A fragment that joins the prompts of steps.

    Args:
        name: Its name.
        inject_into: Names of the steps whose prompts it joins.
        fragment: The text.
        requires_context: Variables that it needs.
        origin: Where it is written.
    """

    name: str
    inject_into: tuple[str, ...]
    fragment: str
    requires_context: tuple[str, ...] = ()
    origin: Origin = Origin()


@dataclass(frozen=True, slots=True)
class Step:
    """A unit of work.

    Args:
        name: Its name, of which there is one in a workflow.
        kind: ``llm``, ``code`` or ``transition``.
        in_state: States it runs in; None for any.
        run_if: What must hold for it to run; None for always.
        prompt: What the model is asked, components included.
        code: What runs in the sandbox.
        output: ``text``, or the JSON Schema of the reply; None for reasoning and an action.
        transition_to: State that follows.
        transition_map: State that follows each answer.
        on_failure: What follows when it fails.
        max_retries: Requests beyond the first, in all.
    """

    name: str
    kind: StepKind
    in_state: frozenset[str] | None = None
    run_if: Expression | None = None
    prompt: Template | None = None
    code: Program | None = None
    output: Literal["text"] | Mapping[str, Any] | None = None
    transition_to: str | None = None
    transition_map: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    on_failure: OnFailure = DEFAULT_ON_FAILURE
    max_retries: int = DEFAULT_MAX_RETRIES

    @property
    def targets(self) -> tuple[str, ...]:
        """The states that may follow the step."""
        own = () if self.transition_to is None else (self.transition_to,)
        return tuple(dict.fromkeys((*own, *self.transition_map.values())))


@dataclass(frozen=True, slots=True)
class AllowedTransition:
    """A transition that the workflow allows.

    Args:
        source: State it leaves, or ``*``.
        target: Target state.
        condition: What must hold; None for always.
        number: Its place in the list of transitions, for messages.
    """

    source: str
    target: str
    condition: Expression | None = None
    number: int = 0


@dataclass(frozen=True, slots=True)
class WorkflowDefinition:
    """A workflow as data.

    Args:
        name: Its name.
        states: The states, in order.
        initial: The state it starts in.
        transitions: What may follow what; empty where any state may follow any.
        steps: The steps, in order.
        components: Traits, then goals, as they are named.
        final_states: States in which an agent has finished.
    """

    name: str
    states: tuple[str, ...]
    initial: str
    transitions: tuple[AllowedTransition, ...]
    steps: tuple[Step, ...]
    components: tuple[Component, ...] = ()
    final_states: frozenset[str] = frozenset()

    def states_of(self, step: Step) -> frozenset[str]:
        """Return the states that a step runs in; in a final state none does."""
        named = frozenset(self.states) if step.in_state is None else step.in_state
        return named - self.final_states
