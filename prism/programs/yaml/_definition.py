"""A workflow as it was read: steps with their prompts, states, transitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import orjson

from prism.files._source import Where
from prism.programs.yaml._declarations import ComponentDeclaration, OnFailure
from prism.programs.yaml._sandbox import Condition, Program
from prism.reasoner import _words

_SIGN_AND_WIDTH = r"[+\- ]?0?[1-9]?\d?"
# a comma, a precision or a type: {x:1} alone is not told from a mapping that somebody writes down
_FORMAT = rf"{_SIGN_AND_WIDTH}(?:,(?:\.\d\d?)?[dfeg%]?|\.\d\d?[feg%]?|[dfeg%])"
_VARIABLE = re.compile(rf"\{{([^\W\d]\w*(?::{_FORMAT})?)\}}")
_DOUBLED = re.compile(rf"\{{\{{|\}}\}}|{_VARIABLE.pattern}")
_MARKED = re.compile(r"\0([^\0]+)\0")


class Template:
    """A text with ``{variables}``, whose values are shown as JSON unless they are texts.

    A number may have a plain format, ``{rate:.0%}``, which other values ignore. In a part with
    ``{{``, braces are doubled as for `str.format`.

    Args:
        parts: The parts of the text, a prompt and what joins it.

    Attributes:
        text: The text.
        variables: The names of its variables.
    """

    __slots__ = ("_marked", "text", "variables")

    def __init__(self, *parts: str) -> None:
        self.text: str = "\n".join(parts)
        self._marked = _words.Template("\n".join(map(_marked, parts)), _MARKED)
        names = (key.partition(":")[0] for key in self._marked.names)
        self.variables: tuple[str, ...] = tuple(dict.fromkeys(names))

    def fill(self, variables: Mapping[str, Any]) -> tuple[str, list[str]]:
        """Return the text with values in it, and the names of variables that are not provided.

        Raises:
            PromptError: If the prompt is too long.
        """
        # each is looked up once, whatever formats it has
        known = {name: variables[name] for name in self.variables if name in variables}
        keys = [(key, *key.partition(":")) for key in self._marked.names]
        shown = {key: _formatted(known[name], form) for key, name, _, form in keys if name in known}
        text, _ = self._marked.fill(shown)

        return text, [name for name in self.variables if name not in known]


def _marked(part: str) -> str:
    """Return a part of a prompt with its variables between marks, and its braces single."""
    pattern = _DOUBLED if "{{" in part else _VARIABLE
    clean = part.replace("\0", "\ufffd")
    return pattern.sub(lambda found: f"\0{found[1]}\0" if found[1] else found[0][0], clean)


def _formatted(value: Any, form: str) -> str:
    if form and isinstance(value, (int, float)) and not isinstance(value, bool):
        return format(int(value) if form.endswith("d") else value, form)
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)

    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()


StepKind = Literal["llm", "code", "transition"]

ANY_STATE = "*"
DEFAULT_ON_FAILURE: OnFailure = "retry"
DEFAULT_MAX_RETRIES = 3


@dataclass(frozen=True, slots=True)
class Component:
    """A fragment that joins the prompts of steps.

    Args:
        name: Its name.
        declared: What is declared of it.
        file: A file of its own; None for the workflow's.
        where: Its path in that file, for messages.
    """

    name: str
    declared: ComponentDeclaration
    file: str | None = None
    where: Where = ()


@dataclass(frozen=True, slots=True)
class Step:
    """A unit of work.

    Args:
        name: Its name, unique in the workflow.
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
    run_if: Condition | None = None
    prompt: Template | None = None
    code: Program | None = None
    output: Literal["text"] | dict[str, Any] | None = None
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
    condition: Condition | None = None
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
        components: Traits, then behaviors, then goals, in the order in which they are named.
        final_states: States in which an agent has finished.
    """

    name: str
    states: tuple[str, ...]
    initial: str
    transitions: tuple[AllowedTransition, ...]
    steps: tuple[Step, ...]
    components: tuple[Component, ...] = ()
    final_states: frozenset[str] = frozenset()

    def allows(self, source: str, target: str) -> bool:
        """Return whether a transition is allowed, on whatever condition."""
        pairs = {(item.source, item.target) for item in self.transitions}
        return not pairs or not pairs.isdisjoint({(source, target), (ANY_STATE, target)})

    def states_of(self, step: Step) -> frozenset[str]:
        """Return the states that a step runs in; in a final state none does."""
        named = frozenset(self.states) if step.in_state is None else step.in_state
        return named - self.final_states
