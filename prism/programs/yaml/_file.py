"""What a workflow file says: its shape, the prompts of its steps, and how replies are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BeforeValidator, Field, model_validator

from prism.errors import FieldValueError, ReasonerError
from prism.files.declarations import Declaration, WholeNumber
from prism.programs._documents import is_placeholder, require_content
from prism.programs._layer import OnFailure, StepFailedError
from prism.programs.yaml._sandbox import CodeError
from prism.reasoner.prompts import number_in_words
from prism.reasoner.replies import read_choice, spoken
from prism.reasoner.wording import read_data, validator_of

StepKind = Literal["llm", "code", "transition"]

_Text = Annotated[str, Field(min_length=1)]
_Version = str | int | float


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _as_source(value: Any) -> Any:
    # YAML reads a bare `false` as a truth value
    return (None if value else "False") if isinstance(value, bool) else value


_Texts = Annotated[list[_Text], BeforeValidator(_as_list), Field(min_length=1)]
_Expression = Annotated[str | None, BeforeValidator(_as_source)]
_Retries = Annotated[WholeNumber, Field(ge=0, le=100)]


_PARTS_OF = {
    "llm": ["prompt"],
    "code": ["code"],
    "transition": ["transition_map", "transition_to"],
}


class TransitionFile(Declaration):
    """A transition that the workflow allows: a mapping, or ``a -> b``."""

    source: _Texts = Field(alias="from")
    target: _Text = Field(alias="to")
    condition: _Expression = None

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        source, arrow, target = value.partition("->")
        if not arrow:
            raise ValueError("must be 'a -> b' or a mapping of from and to")
        return {"from": source.strip(), "to": target.strip()}


class StateMachineFile(Declaration):
    """The states and what may follow what."""

    states: Annotated[list[_Text], Field(min_length=1)]
    initial_state: _Text | None = None
    transitions: list[TransitionFile] = Field(default=[])


class StepFile(Declaration):
    """A step: one that asks a model, runs code, or lets a model choose the next state."""

    name: _Text
    type: StepKind = "code"
    in_state: _Texts | None = None
    run_if: _Expression = None
    prompt: _Text | None = None
    code: str | None = None
    output: Literal["text"] | dict[str, Any] | None = None
    reply_tokens: Annotated[WholeNumber, Field(ge=1)] | None = None
    transition_to: _Text | None = None
    transition_map: Annotated[dict[_Text, _Text], Field(min_length=1)] | None = None
    on_failure: OnFailure | None = None
    max_retries: _Retries | None = None

    @model_validator(mode="after")
    def _has_its_part(self) -> Self:
        parts = _PARTS_OF[self.type]
        if all(getattr(self, part) is None for part in parts):
            raise ValueError(f"a step of type {self.type} needs {' or '.join(map(repr, parts))}")
        return self


class ComponentFile(Declaration):
    """A fragment that is added to the prompts of the steps in ``inject_into``."""

    name: _Text | None = None
    type: Literal["trait", "behavior", "goal"] | None = None
    version: _Version | None = None
    description: str | None = None
    inject_into: list[_Text] = Field(default=[])
    prompt_fragment: _Text
    requires_context: list[_Text] = Field(default=[])


_Components = list[_Text] | dict[_Text, ComponentFile]


class ComponentsFile(Declaration):
    """Names of components, each a file of its own, or the components themselves by name."""

    traits: _Components = Field(default=[])
    behaviors: _Components = Field(default=[])
    goals: _Components = Field(default=[])


class FailuresFile(Declaration):
    """What follows a failure where a step does not say."""

    default_on_failure: OnFailure | None = None
    max_retries: _Retries | None = None
    default_max_retries: _Retries | None = None


class LevelFile(FailuresFile):
    """What may stand in a workflow, or beside it."""

    name: _Text | None = None
    version: _Version | None = None
    description: str | None = None
    components: ComponentsFile | _Text | None = None
    error_handling: FailuresFile | None = None


class WorkflowFile(LevelFile):
    """A workflow, which may be the whole file."""

    state_machine: StateMachineFile = StateMachineFile(states=["active"])
    steps: Annotated[list[StepFile], Field(min_length=1)]


class AgentFile(LevelFile):
    """A file that has a workflow under its key, and what goes with it."""

    workflow: WorkflowFile


# Prompts

MAX_CHARACTERS = 4_000_000
"""Maximum length of the values in a prompt, since a few lines can name a long one many times."""

_SIGN_AND_WIDTH = r"[+\- ]?0?[1-9]?\d?"
# a comma, a precision or a type: {x:1} alone is not told from a mapping that somebody writes down
_FORMAT = rf"{_SIGN_AND_WIDTH}(?:,(?:\.\d\d?)?[dfeg%]?|\.\d\d?[feg%]?|[dfeg%])"
_VARIABLE = re.compile(rf"\{{([^\W\d]\w*(?::{_FORMAT})?)\}}")
_DOUBLED = re.compile(rf"\{{\{{|\}}\}}|{_VARIABLE.pattern}")

Schema = dict[str, Any]

_NEXT_FOCUS = re.compile(r'("next_focus"\s*:\s*)"(?:[^"\\]|\\.)*"')
_LABEL = re.compile(r"\A\W*(?:option\s+)?(?:[a-z]|\d\d?)[).:]\s+", re.IGNORECASE)
_TEXT: Schema = {"type": "string"}
_FORM = "Respond with one JSON object of this form, and fill in its parts:"
_ACTION: Schema = {
    "type": "object",
    "properties": {"reasoning": _TEXT, "action": {"type": "object"}},
    "required": ["reasoning", "action"],
}


class Template:
    """A text with ``{variables}``, whose values are shown as JSON unless they are texts.

    A number may have a plain format, ``{rate:.0%}``, which other values ignore. In a part with
    ``{{``, braces are doubled as for `str.format`.

    Args:
        parts: The parts of the text, a prompt and what joins it.

    Attributes:
        reads: Names of the variables.
        is_warned_of: Whether somebody was warned of variables that nobody has set.
    """

    def __init__(self, *parts: str) -> None:
        self._parts = [(part, _DOUBLED if "{{" in part else _VARIABLE) for part in parts]
        keys = (each[1] for part, pattern in self._parts for each in pattern.finditer(part))
        self._keys = [key for key in keys if key]
        self.reads: list[str] = [*dict.fromkeys(key.partition(":")[0] for key in self._keys)]
        self.is_warned_of: bool = False

    def fill(self, values: Mapping[str, Any]) -> str:
        """Return the text with values in it; a variable without one stays as it is.

        Raises:
            StepFailedError: If it is too long.
        """
        forms = ((key, *key.partition(":")[::2]) for key in dict.fromkeys(self._keys))
        texts = {key: _formatted(values[name], form) for key, name, form in forms if name in values}
        if sum(len(texts.get(key, "")) for key in self._keys) > MAX_CHARACTERS:
            problem = f"the values in the prompt have more than {MAX_CHARACTERS:,} characters"
            raise StepFailedError(problem)

        def filled(match: re.Match[str]) -> str:
            return texts.get(match[1], match[0]) if match[1] else match[0][0]

        return "\n".join(pattern.sub(filled, part) for part, pattern in self._parts)


def _formatted(value: Any, form: str) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if form and is_number:
        return format(int(value) if form.endswith("d") else value, form)
    if is_number:
        return number_in_words(value) if isinstance(value, float) else str(value)
    return value if isinstance(value, str) else orjson.dumps(value).decode()


# Replies


@dataclass(frozen=True, slots=True)
class StepReply:
    """How a step's reply is asked for and read.

    Args:
        schema: JSON Schema of the reply, for clients that accept one; None for a text.
        read: Returns the value of a reply; raises a ValueError if it cannot be used.
        how: How to respond, for asking again; by the schema if empty.
    """

    schema: Schema | None
    read: Callable[[str], Any]
    how: str = ""


def reply_of(step: StepFile) -> StepReply:
    """Return how the reply of a step that asks a model is asked for and read.

    Raises:
        CodeError: If its schema is none.
    """
    if step.type == "transition":
        return _decision_of(list(step.transition_map or ()))
    if step.output is None:
        return StepReply(_ACTION, _read_action, f'{_FORM}\n{{"reasoning": "", "action": {{}}}}')
    if step.output == "text":
        return StepReply(None, _read_text)
    return _data_of(step.output)


# Texts and data


def _read_text(text: str) -> str:
    reply = spoken(text).strip()
    if is_placeholder(reply):
        raise ValueError("the reply is empty, or only a placeholder")
    return reply


def _read_action(text: str) -> dict[str, Any]:
    """Return reasoning and action; a reply without an action, or cut off, is not used."""
    reply = read_data(text, {**_ACTION, "required": ["action"]})
    require_content(reply["action"], {}, "action")
    return {"reasoning": _text_in(reply, "reasoning"), "action": reply["action"]}


def _data_of(schema: Schema) -> StepReply:
    try:
        validator_of(orjson.dumps(schema).decode())
    except FieldValueError as error:
        raise CodeError(str(error)) from None

    def read(text: str) -> Any:
        data = read_data(text, schema)
        require_content(data, schema, "")
        return data

    return StepReply(schema, read)


def _text_in(reply: Mapping[str, Any], key: str) -> str:
    value = reply.get(key)
    return value if isinstance(value, str) and not is_placeholder(value, key) else ""


# Decisions


def _decision_of(answers: list[str]) -> StepReply:
    decision = _TEXT | {"enum": answers} if answers else _TEXT
    schema = {
        "type": "object",
        "properties": {"decision": decision, "reasoning": _TEXT, "next_focus": _TEXT},
        "required": ["decision"],
    }
    how = f"Respond with one of these words alone: {', '.join(answers)}" if answers else ""
    return StepReply(schema, partial(_read_decision, answers=answers), how)


def _read_decision(text: str, answers: list[str]) -> dict[str, Any]:
    """Return the decision; a ValueError if it is not one of the answers."""
    data: dict[str, Any] = {}
    with suppress(ValueError):
        data = read_data(text, {"type": "object"})
    return {
        "decision": _decided(text, answers) if answers else _text_in(data, "decision"),
        "reasoning": _text_in(data, "reasoning") or ("" if data else spoken(text).strip()),
        "next_focus": _text_in(data, "next_focus"),
    }


def _decided(text: str, answers: list[str]) -> str:
    # the next focus is no part of the answer, whatever it mentions; a label is none either
    answer = _LABEL.sub("", _NEXT_FOCUS.sub(r'\1""', text))
    try:
        return str(read_choice(answer, answers, key="decision"))
    except ReasonerError:
        raise ValueError(f"the answer is none of {', '.join(answers)}") from None
