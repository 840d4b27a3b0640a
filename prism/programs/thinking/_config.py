"""The configuration of a thinking agent: pydantic models, and the file that they are read from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, field, fields
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter, field_validator, model_validator
from pydantic.dataclasses import dataclass

from prism.errors import InputError
from prism.files import reading
from prism.files._source import DocumentError, Problem, Problems, Source, Where, key_of
from prism.files.declarations import WholeNumber, part_schema_of, shape_problems

SCHEMA_NAME = "cognition.schema.json"
MAX_CHARACTERS = 1_000_000
PAGING_LIMIT = 4096
HARD_LIMIT = 8192

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
STATE_DESCRIPTION: Mapping[str, str] = MappingProxyType(
    {
        "thinking": "Build reasoning chains and accumulate thinking_log entries. Analyze "
        "information and decide next actions.",
        "executing": "Perform concrete actions: working_memory_add, working_memory_remove, "
        "storage_load, storage_save, storage_search",
        "paging": "Manage memory overflow: move what matters least now from working memory to "
        "storage, or bring back what is needed.",
    }
)
MEMORY_ACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "working_memory_add": "Add new information to working memory with tags and value",
        "working_memory_remove": "Remove information from working memory using tags",
        "storage_load": "Load information from persistent storage to working memory using tags",
        "storage_save": "Save information from working memory to persistent storage using tags "
        "and value",
        "storage_search": "Find information in persistent storage by a few words, given as tags",
    }
)
PAGING_ACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "page_out": "Move information from working memory to persistent storage using tags",
        "page_in": "Bring information from persistent storage back to working memory using tags",
    }
)
AVAILABLE_ACTIONS: Mapping[str, str] = MappingProxyType({**MEMORY_ACTIONS, **PAGING_ACTIONS})
WITH_VALUE = ("working_memory_add", "storage_save")
"""The actions that take a value."""

_STRICT = ConfigDict(extra="forbid")
_Number = Annotated[WholeNumber, Field(strict=True, ge=1, le=1_000_000_000)]
_NumberOrNone = Annotated[WholeNumber, Field(strict=True, ge=0, le=1_000_000_000)]
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
    """A limit for the size of prompts; in a file, a bare number stands for the limit itself.

    Args:
        enable: Whether it applies.
        max_tokens: Maximum number of tokens.
    """

    enable: _Truth = True
    max_tokens: _Number = PAGING_LIMIT


@dataclass(frozen=True, config=_STRICT)
class Iterate:
    """Limits for the cycles of a run.

    Args:
        enable: Whether ``max_iterations`` applies.
        max_iterations: Maximum number of cycles, including failed ones.
        max_useless: Number of useless cycles in a row after which a run always stops.
        max_per_round: Maximum number of cycles in a round of a world, which ends with the first
            action.
    """

    enable: _Truth = True
    max_iterations: _Number = 1000
    max_useless: _Number = 5
    max_per_round: _Number = 4


@dataclass(frozen=True, config=_STRICT)
class Paging:
    """How to decide what leaves the working memory.

    Args:
        policy: ``lru`` for the least recently used, ``model`` to ask the model.
    """

    policy: Literal["lru", "model"] = "lru"


@dataclass(frozen=True, config=_STRICT)
class StorageLimits:
    """How much of the storage is kept and shown.

    Args:
        versions: Number of old values to keep of each memory; 0 for none.
        named: Maximum number of memories that a prompt names because they match the last thought.
    """

    versions: _NumberOrNone = 10
    named: _NumberOrNone = 8


class ConfigFileError(DocumentError):
    """A configuration cannot be loaded.

    Args:
        problems: Everything that is wrong, in the order of the file.
    """


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Config:
    """The configuration of a thinking agent; by default the specification's own texts.

    Args:
        role: What the agent is; the prompt begins with it.
        instructions: How to reply.
        goal: The agent's goal, if any.
        state_description: What each state is for; states that are left out have their defaults.
        available_actions: What each action does. If any of the memory's actions is named, only the
            named ones are available; the same holds for those of paging.
        thinking_log: The log of thoughts.
        paging_limit: The size of a prompt above which the agent pages.
        hard_limit: The size that no prompt exceeds.
        iterate: Limits for the cycles of a run.
        paging: How to decide what leaves the working memory.
        storage: How much of the storage is kept and shown.
    """

    role: _Text = ROLE
    instructions: _Text = INSTRUCTIONS
    goal: _Text | None = None
    state_description: Mapping[str, _Text] = field(default_factory=lambda: {**STATE_DESCRIPTION})
    available_actions: Mapping[str, _Text] = field(default_factory=lambda: {**AVAILABLE_ACTIONS})
    thinking_log: ThinkingLog = ThinkingLog()
    paging_limit: Limit = Limit()
    hard_limit: Limit = Limit(max_tokens=HARD_LIMIT)
    iterate: Iterate = Iterate()
    paging: Paging = Paging()
    storage: StorageLimits = StorageLimits()

    @field_validator("paging_limit", "hard_limit", mode="before")
    @classmethod
    def _bare_number(cls, value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return {"max_tokens": value} if is_number else value

    @field_validator("state_description")
    @classmethod
    def _all_states(cls, texts: Mapping[str, str]) -> Mapping[str, str]:
        _require_names(texts, STATE_DESCRIPTION)
        return {**STATE_DESCRIPTION, **texts}

    @field_validator("available_actions")
    @classmethod
    def _named_actions(cls, texts: Mapping[str, str]) -> Mapping[str, str]:
        _require_names(texts, AVAILABLE_ACTIONS)
        return {
            name: texts.get(name, text)
            for kind in (MEMORY_ACTIONS, PAGING_ACTIONS)
            for name, text in kind.items()
            if name in texts or not kind.keys() & texts.keys()
        }

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
            InputError: If it cannot be read, or is not JSON.
            ConfigFileError: (an InputError) listing everything that is wrong.
        """
        return cls.from_text(_text_of(Path(path)), name=str(path))

    @classmethod
    def from_text(cls, text: str, *, name: str = "config") -> Self:
        """Read a configuration from a text.

        Args:
            text: The configuration, a JSON file.
            name: What to call it in messages.

        Raises:
            InputError: If it is not JSON, or holds an error.
        """
        problems, config = _read(cls, text, name)
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
        problems, _ = _read(cls, _text_of(Path(path)), str(path))
        return sorted(problems)

    def to_dict(self) -> dict[str, Any]:
        """Return the configuration in the shape of a file."""
        values = asdict(self)
        prompts = {
            "base": {name: values.pop(name) for name in ("role", "instructions")},
            "thinking": {"state_description": values.pop("state_description")},
            "executing": {"available_actions": values.pop("available_actions")},
        }
        if self.goal is None:
            del values["goal"]
        states = {state: {"prompt": prompt} for state, prompt in prompts.items()}
        return {"agent": {**values, "state": states}}

    def to_json(self) -> str:
        """Return the text of a file that loads as this configuration."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"


def _require_names(texts: Mapping[str, str], known: Mapping[str, str]) -> None:
    if unknown := [name for name in texts if name not in known]:
        raise ValueError(f"has no {unknown[0]!r}: it has {', '.join(known)}")


# Files

_Setting = tuple[str | None, Where, Any]

_FIELDS: Mapping[str, Any] = {each.name: each.default for each in fields(Config)}
_STATE_KEYS = ("role", "instructions", "state_description", "available_actions")
_TEXTS: Mapping[str, Any] = {
    "state_description": STATE_DESCRIPTION,
    "available_actions": AVAILABLE_ACTIONS,
}
_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


class _ConfigProblems(Problems):
    error_class = ConfigFileError


def _text_of(file: Path) -> str:
    with reading(file), file.open(encoding="utf-8") as opened:
        return opened.read(MAX_CHARACTERS + 1)


def _read(cls: type[Config], text: str, name: str) -> tuple[_ConfigProblems, Any]:
    """Return the problems of a configuration's text, and the configuration, if there are none."""
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"has more than {MAX_CHARACTERS:,} characters", path=name)
    problems = _ConfigProblems(Source.parse(text, "json", path=name))
    values: dict[str, Any] = {}
    origins: dict[str, Where] = {}
    ignored: list[Where] = []
    for setting, where, value in _settings(problems.source.value):
        if setting is None:
            ignored.append(where)
        elif isinstance(value, dict) and isinstance(values.get(setting), dict):
            values[setting] = {**values[setting], **value}
        else:
            values[setting], origins[setting] = value, where
    if ignored:
        keys = ", ".join(key_of(where) + _meant(str(where[-1])) for where in ignored[:20])
        problems.add(ignored[0], f"prism ignores {keys}", "left_out", severity="note")

    adapter = _ADAPTERS.setdefault(cls, TypeAdapter(cls))
    try:
        return problems, adapter.validate_python(values)
    except ValueError as error:
        for where, message, kind in shape_problems(cls, values, error):  # type: ignore[arg-type]
            first, *rest = where or ("agent",)
            problems.add((*origins.get(str(first), (first,)), *rest), message, kind)
    return problems, None


def _meant(key: str) -> str:
    close = get_close_matches(key, _FIELDS, n=1, cutoff=0.8)
    return f" (did you mean {close[0]}?)" if close else ""


def _settings(document: Any) -> Iterator[_Setting]:
    """Yield each setting of a document with its position and value; None for what is ignored.

    Settings stand at the top or under ``agent``; the texts of prompts also under ``state``.
    """
    if not isinstance(document, dict):
        raise InputError("must be a mapping of keys", field="config")
    levels: dict[Where, Any] = {(): document, ("agent",): document.get("agent", {})}
    for top, level in levels.items():
        if not isinstance(level, dict):
            raise InputError("must be a mapping of keys", field="agent")
        for key, value in level.items():
            where = (*top, key)
            if key in _FIELDS:
                yield from _setting(key, where, value)
            elif key == "state" and isinstance(value, dict):
                for state, part in value.items():
                    prompt = part.get("prompt") if isinstance(part, dict) else None
                    yield from _prompt_settings(state, (*where, state, "prompt"), prompt)
            elif where not in levels and key != "$schema":
                yield None, where, value


def _setting(name: str, where: Where, value: Any) -> Iterator[_Setting]:
    """Yield a setting without the keys that it does not have, and these."""
    known = _TEXTS.get(name) or getattr(_FIELDS[name], "__dataclass_fields__", None)
    if not isinstance(value, dict) or known is None:
        yield name, where, value
        return
    yield name, where, {key: each for key, each in value.items() if key in known}
    for key in value.keys() - known.keys():
        yield None, (*where, key), value[key]


def _prompt_settings(state: str, where: Where, prompt: Any) -> Iterator[_Setting]:
    if isinstance(prompt, str):  # the role, or the description of one state
        text: Any = prompt if state == "base" else {state: prompt}
        is_known = state == "base" or state in STATE_DESCRIPTION
        name = "role" if state == "base" else "state_description"
        yield (name if is_known else None), where, text
        return
    for key, value in prompt.items() if isinstance(prompt, dict) else ():
        is_used = key in _STATE_KEYS and (state == "base" or key not in _STATE_KEYS[:2])
        if is_used:
            yield from _setting(key, (*where, key), value)
        else:
            yield None, (*where, key), value


def config_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of configurations."""
    schema = part_schema_of(Config)
    settings = dict(schema["properties"])
    for name in ("paging_limit", "hard_limit"):
        settings[name] = {"anyOf": [settings[name], {"type": "integer", "minimum": 1}]}
    prompt = {"properties": {name: settings.pop(name) for name in _STATE_KEYS}}
    state = {"properties": {"prompt": {"anyOf": [prompt, {"type": "string"}]}}}
    states = dict.fromkeys(("base", *STATE_DESCRIPTION), state)
    settings["state"] = {"type": "object", "properties": states}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The configuration of a thinking agent of prism",
        "type": "object",
        "properties": {**settings, "agent": {"type": "object", "properties": settings}},
        "$defs": schema["$defs"],
    }
