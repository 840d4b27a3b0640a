"""The shape of a configuration, from which both the loader and the published schema are made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from reprlib import repr as brief
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from prism.cognition._config._values import KEY_PREFIX, KEY_PREFIX_WORDS
from prism.files._declarations import (
    Declaration,
    Optionally,
    WholeNumber,
    alternatives,
    schema_of,
)
from prism.files._source import Where

SCHEMA_NAME = "cognition.schema.json"
MOST = 1_000_000_000
_EXAMPLE = "output_example"


def _prefix(value: str) -> str:
    if not re.search(KEY_PREFIX, value):
        raise ValueError(f"{KEY_PREFIX_WORDS}; got {brief(value)}")

    return value


Text = Optionally[str]
Flag = Optionally[bool]
Number = Annotated[WholeNumber, Field(ge=1, le=MOST)]
Count = Optionally[Number]
KeyPrefix = Annotated[
    str, AfterValidator(_prefix), Field(json_schema_extra={"pattern": KEY_PREFIX})
]

# what files of lkjagent hold besides: it is left out, and the file is still read
OfLkjagent = Annotated[Any, Field(deprecated=True)]


class StateDescriptions(Declaration):
    """What each state is for."""

    thinking: Text = None
    executing: Text = None
    paging: Text = None
    evaluating: OfLkjagent = None
    commanding: OfLkjagent = None


class AvailableActions(Declaration):
    """What each action does.

    Of the four memory actions only those that are named are available, if any is named.
    """

    working_memory_add: Text = None
    working_memory_remove: Text = None
    storage_load: Text = None
    storage_save: Text = None
    page_out: Text = None
    page_in: Text = None


class ThinkingLogDeclaration(Declaration):
    """The log of thoughts."""

    enable: Flag = None
    max_entries: Count = None
    key_prefix: Optionally[KeyPrefix] = None


class LimitDeclaration(Declaration):
    """A limit of the prompt's size; a bare number in its place is the limit itself."""

    enable: Flag = None
    max_tokens: Count = None


class IterateDeclaration(Declaration):
    """The most cycles of a run."""

    enable: Flag = None
    max_iterations: Count = None


class PagingDeclaration(Declaration):
    """How it is decided what leaves the working memory."""

    policy: Optionally[Literal["lru", "model"]] = None


class Texts(Declaration):
    """Texts that may stand in several places."""

    state_description: Optionally[StateDescriptions] = None
    available_actions: Optionally[AvailableActions] = None


class Settings(Texts):
    """What may stand at the top, or under ``agent``."""

    goal: Text = Field(None, description="What the agent is to achieve.")
    thinking_log: Optionally[ThinkingLogDeclaration] = None
    paging_limit: Optionally[LimitDeclaration | Number] = Field(
        None, description="The size of a prompt above which the agent pages."
    )
    hard_limit: Optionally[LimitDeclaration | Number] = Field(
        None, description="The size that no prompt exceeds."
    )
    iterate: Optionally[IterateDeclaration] = None
    paging: Optionally[PagingDeclaration] = None


class Prompt(Texts):
    """The texts of a prompt."""

    model_config = ConfigDict(
        json_schema_extra={"patternProperties": {f"^{_EXAMPLE}": {"deprecated": True}}}
    )

    purpose: OfLkjagent = None
    strategy: OfLkjagent = None
    selection_criteria: OfLkjagent = None

    @model_validator(mode="before")
    @classmethod
    def _leave_out_examples(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value

        return {key: inner for key, inner in value.items() if not key.startswith(_EXAMPLE)}


class BasePrompt(Prompt):
    """The prompt of every state."""

    role: Text = None
    instructions: Text = None


class StatePrompt(Prompt):
    """The prompt of one state."""

    role: OfLkjagent = None
    instructions: OfLkjagent = None


class Base(Declaration):
    """What every state has; a text in place of the prompt is the role."""

    prompt: Optionally[BasePrompt | str] = None


class State(Declaration):
    """What a state has; a text in place of the prompt is its description."""

    prompt: Optionally[StatePrompt | str] = None


class States(Declaration):
    """The states."""

    base: Optionally[Base] = None
    thinking: Optionally[State] = None
    executing: Optionally[State] = None
    paging: Optionally[State] = None
    evaluating: OfLkjagent = None
    commanding: OfLkjagent = None


class Agent(Settings):
    """The agent."""

    state: Optionally[States] = None
    think_log: OfLkjagent = None
    evaluation_log: OfLkjagent = None
    execution_log: OfLkjagent = None
    command_log: OfLkjagent = None
    default_status: OfLkjagent = None
    iteration: OfLkjagent = None
    max_iterate: OfLkjagent = None
    persistence: OfLkjagent = None
    prompt: OfLkjagent = None
    soft_limit: OfLkjagent = None


class ConfigDocument(Settings):
    """A configuration."""

    schema_: Text = Field(None, alias="$schema")
    agent: Optionally[Agent] = None
    version: OfLkjagent = None
    llm: OfLkjagent = None
    documentation: OfLkjagent = None
    logging: OfLkjagent = None
    monitoring: OfLkjagent = None


def left_out(
    value: Any, kind: type[BaseModel] = ConfigDocument, top: Where = ()
) -> Iterator[Where]:
    """Yield where a document has keys that prism does not use."""
    fields = _fields(kind)
    for key, inner in value.items() if isinstance(value, dict) else ():
        field = fields.get(key)
        is_example = issubclass(kind, Prompt) and key.startswith(_EXAMPLE)
        if field is None or field.deprecated:
            if is_example or field is not None:
                yield (*top, key)
            continue
        for part in _parts(field):
            yield from left_out(inner, part, (*top, key))


def known_keys(
    kind: type[BaseModel] = ConfigDocument, top: Where = ()
) -> Iterator[tuple[str, Where]]:
    """Yield every key that is used with where it stands, those nearer to the top last."""
    for key, field in reversed(_fields(kind).items()):
        if not field.deprecated:
            for part in _parts(field):
                yield from known_keys(part, (*top, key))
            yield key, (*top, key)


def _fields(kind: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field for name, field in kind.model_fields.items()}


def _parts(field: Any) -> Iterator[type[BaseModel]]:
    for each in alternatives(field.annotation):
        if isinstance(each, type) and issubclass(each, BaseModel):
            yield each


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of configurations."""
    found = schema_of(ConfigDocument, title="The configuration of a thinking agent of prism")
    note = "What is marked as deprecated belongs to lkjagent and is left out."

    return {**found, "description": note}
