"""The configuration of a thinking agent: pydantic models, and the file that they are read from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.dataclasses import dataclass

from prism.files._source import Problem, Problems, Source
from prism.files.declarations import Declaration, WholeNumber
from prism.programs._documents import read_known

ROLE = (
    "An AI state machine that utilizes a finite working memory to output both next_state and "
    "thinking_log, while managing infinite storage. You are the ultimate librarian-like system "
    "that manages information intelligently."
)
INSTRUCTIONS = (
    "Always respond with valid XML containing an 'agent' tag. In thinking state, provide "
    "'next_state' and 'thinking_log'. In executing state, provide 'action' with 'type', 'tags', "
    "and optionally 'value'."
)
StateName = Literal["thinking", "executing", "paging"]
ActionName = Literal[
    "working_memory_add",
    "working_memory_remove",
    "storage_load",
    "storage_save",
    "storage_search",
    "page_out",
    "page_in",
]

STATE_DESCRIPTION: Mapping[StateName, str] = MappingProxyType(
    {
        "thinking": "Build reasoning chains and accumulate thinking_log entries. Analyze "
        "information and decide next actions.",
        "executing": "Perform concrete actions: working_memory_add, working_memory_remove, "
        "storage_load, storage_save, storage_search",
        "paging": "Manage memory overflow: move what matters least now from working memory to "
        "storage, or bring back what is needed.",
    }
)
MEMORY_ACTIONS: Mapping[ActionName, str] = MappingProxyType(
    {
        "working_memory_add": "Add new information to working memory with tags and value",
        "working_memory_remove": "Remove information from working memory using tags",
        "storage_load": "Load information from persistent storage to working memory using tags",
        "storage_save": "Save information from working memory to persistent storage using tags "
        "and value",
        "storage_search": "Find information in persistent storage by a few words, given as tags",
    }
)
PAGING_ACTIONS: Mapping[ActionName, str] = MappingProxyType(
    {
        "page_out": "Move information from working memory to persistent storage using tags",
        "page_in": "Bring information from persistent storage back to working memory using tags",
    }
)
AVAILABLE_ACTIONS: Mapping[ActionName, str] = MappingProxyType({**MEMORY_ACTIONS, **PAGING_ACTIONS})
WITH_VALUE = ("working_memory_add", "storage_save")
"""The actions that take a value."""

_STRICT = ConfigDict(extra="forbid")
_Number = Annotated[WholeNumber, Field(strict=True, ge=1, le=1_000_000_000)]
_Truth = Annotated[bool, Field(strict=True)]
_Text = Annotated[str, Field(strict=True, min_length=1)]


@dataclass(frozen=True, config=_STRICT)
class ThinkingLog:
    """The log of thoughts.

    Args:
        enable: Whether thoughts are kept, and shown in the prompt.
        max_entries: How many are kept; the oldest rotates out.
        key_prefix: Prefix of their keys in the memory, before a number; it ends in no digit.
    """

    enable: _Truth = True
    max_entries: _Number = 10
    key_prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]*[A-Za-z_.-]$")] = "thinking_log_"


@dataclass(frozen=True, config=_STRICT)
class Limit:
    """A limit for the size of prompts.

    Args:
        enable: Whether it applies.
        max_tokens: Maximum number of tokens.
    """

    enable: _Truth = True
    max_tokens: _Number = 4096


@dataclass(frozen=True, config=_STRICT)
class Iterate:
    """A limit for the cycles of a run.

    Args:
        enable: Whether it applies.
        max_iterations: Maximum number of cycles, including failed ones.
    """

    enable: _Truth = True
    max_iterations: _Number = 1000


@dataclass(frozen=True, config=_STRICT)
class Paging:
    """How to decide what leaves the working memory.

    Args:
        policy: ``lru`` for the least recently used, ``model`` to ask the model.
    """

    policy: Literal["lru", "model"] = "lru"


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Config:
    """The configuration of a thinking agent; by default the specification's own texts.

    Args:
        role: What the agent is; the prompt begins with it.
        instructions: How to reply.
        goal: The agent's goal, if any.
        state_description: What each state is for; states that are left out have their defaults.
        available_actions: What each action of the memory does that is available; those of paging
            always are.
        thinking_log: The log of thoughts.
        paging_limit: The size of a prompt above which the agent pages.
        hard_limit: The size that no prompt exceeds.
        iterate: A limit for the cycles of a run.
        paging: How to decide what leaves the working memory.
    """

    role: _Text = ROLE
    instructions: _Text = INSTRUCTIONS
    goal: _Text | None = None
    state_description: Mapping[StateName, _Text] = field(
        default_factory=lambda: dict(STATE_DESCRIPTION)
    )
    available_actions: Mapping[ActionName, _Text] = field(
        default_factory=lambda: dict(AVAILABLE_ACTIONS)
    )
    thinking_log: ThinkingLog = ThinkingLog()
    paging_limit: Limit = Limit()
    hard_limit: Limit = Limit(max_tokens=8192)
    iterate: Iterate = Iterate()
    paging: Paging = Paging()

    @field_validator("state_description")
    @classmethod
    def _all_states(cls, texts: Mapping[StateName, str]) -> Mapping[StateName, str]:
        return {**STATE_DESCRIPTION, **texts}

    @field_validator("available_actions")
    @classmethod
    def _all_of_paging(cls, texts: Mapping[ActionName, str]) -> Mapping[ActionName, str]:
        return {**PAGING_ACTIONS, **texts}

    @model_validator(mode="after")
    def _limits_agree(self) -> Self:
        soft, hard = self.paging_limit, self.hard_limit
        if soft.enable and hard.enable and hard.max_tokens < soft.max_tokens:
            limits = f"hard_limit ({hard.max_tokens}) must not be below paging_limit"
            raise ValueError(f"{limits} ({soft.max_tokens}): set both")
        return self

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a configuration from a file.

        Args:
            path: The file, JSON.

        Raises:
            InputError: If it cannot be read, is not JSON, or is wrong; the message lists what is.
        """
        return cls._of(Source.read(path, "json"))

    @classmethod
    def from_text(cls, text: str, *, name: str = "config") -> Self:
        """Read a configuration from a text.

        Args:
            text: The configuration, a JSON file.
            name: What to call it in messages.

        Raises:
            InputError: If it is not JSON, or holds an error.
        """
        return cls._of(Source.parse(text, "json", path=name))

    @classmethod
    def _of(cls, source: Source) -> Self:
        problems, config = Problems(source), None
        config = _read(cls, problems)
        problems.raise_if_any()
        assert isinstance(config, cls)
        return config

    @classmethod
    def check(cls, path: Path | str) -> list[Problem]:
        """Return everything that is wrong with a file, and a note on what is ignored.

        Args:
            path: The file, JSON.

        Raises:
            InputError: If it cannot be read, or is not JSON.
        """
        problems = Problems(Source.read(path, "json"))
        _read(cls, problems)
        return sorted(problems)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration in the shape of a file."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        prompts = {
            "base": {name: values.pop(name) for name in ("role", "instructions")},
            "thinking": {"state_description": values.pop("state_description")},
            "executing": {"available_actions": values.pop("available_actions")},
        }
        states = {state: {"prompt": prompt} for state, prompt in prompts.items()}
        return {"agent": {**values, "state": states}}

    def to_json(self) -> str:
        """Return the text of a file that loads as this configuration."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"


# The shape of a file


def _keyed(names: Iterable[str], kind: Any) -> Any:
    """Return the class of a mapping with some keys, all of which may be left out."""
    fields: Any = dict.fromkeys(names, (kind | None, None))
    return create_model("Keyed", __base__=Declaration, **fields)


_States: Any = _keyed(STATE_DESCRIPTION, _Text)
_Actions: Any = _keyed(AVAILABLE_ACTIONS, _Text)


class _Prompt(Declaration):
    role: _Text | None = None
    instructions: _Text | None = None
    state_description: _States | None = None
    available_actions: _Actions | None = None


class _State(Declaration):
    prompt: _Prompt | _Text | None = None


_Prompts: Any = _keyed(("base", *STATE_DESCRIPTION), _State)


class _Agent(Declaration):
    goal: _Text | None = None
    state: _Prompts | None = None
    thinking_log: ThinkingLog | None = None
    paging_limit: Limit | None = None
    hard_limit: Limit | None = None
    iterate: Iterate | None = None
    paging: Paging | None = None


class _File(Declaration):
    agent: _Agent


def _read(cls: type[Config], problems: Problems) -> Config | None:
    """Return the configuration of a document; None if something is wrong."""
    document = problems.source.value
    is_inside = isinstance(document, dict) and "agent" in document
    file = read_known(_File if is_inside else _Agent, document, problems)
    if file is None:
        return None
    agent = file.agent if is_inside else file
    settings = {name: value for name, value in dict(agent).items() if value is not None}
    for state, part in settings.pop("state", {}):
        prompt = part and part.prompt
        text: dict[str, Any]
        if isinstance(prompt, str):  # the role, or the description of one state
            text = {"role": prompt} if state == "base" else {"state_description": {state: prompt}}
        else:
            text = prompt.model_dump(exclude_none=True) if prompt else {}
        for name, value in text.items():
            is_text = isinstance(value, str)
            settings[name] = value if is_text else {**settings.get(name, {}), **value}
    try:
        return cls(**settings)
    except ValidationError as error:
        problems.add(("agent",), error.errors()[0]["msg"].removeprefix("Value error, "))
        return None
