"""Parts of a configuration and their defaults: the specification's own figures and texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from reprlib import repr as brief
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, cast, get_type_hints

from pydantic import AfterValidator, Field, ValidationError, create_model

from prism.errors import FieldValueError
from prism.files.declarations import Declaration, Optionally, WholeNumber, shape_problems

PagingPolicy = Literal["lru", "model"]

PAGING_LIMIT = 4096
HARD_LIMIT = 8192
MOST = 1_000_000_000
"""The largest number that a configuration may have."""

# a number follows, so it must not end in one; (?![\s\S]) is the end of the text
KEY_PREFIX = r"^[A-Za-z0-9_.-]*[A-Za-z_.-](?![\s\S])"

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
WITH_VALUE = ("working_memory_add", "storage_save")
"""The actions that take a value."""

AVAILABLE_ACTIONS: Mapping[str, str] = MappingProxyType({**MEMORY_ACTIONS, **PAGING_ACTIONS})


def _key_prefix(value: str) -> str:
    if not re.search(KEY_PREFIX, value):
        wanted = "a key prefix must be letters, digits, '_', '.' and '-', and not end in a digit"
        raise FieldValueError(f"{wanted}; got {brief(value)}")

    return value


Number = Annotated[WholeNumber, Field(ge=1, le=MOST)]
NumberOrNone = Annotated[WholeNumber, Field(ge=0, le=MOST)]
KeyPrefix = Annotated[
    str, AfterValidator(_key_prefix), Field(json_schema_extra={"pattern": KEY_PREFIX})
]


@cache
def declared(block: type[Any]) -> type[Declaration]:
    """Return what reads a part of a configuration: its fields are keys, none of them needed."""
    hints, optional = get_type_hints(block), cast(Any, Optionally)
    kinds = {each.name: hints[each.name] for each in fields(block)}
    keys: Any = {name: (optional[block.narrower.get(it, it)], None) for name, it in kinds.items()}
    told = str(block.__doc__).partition("\n")[0]
    return create_model(f"{block.__name__}Declaration", __base__=Declaration, __doc__=told, **keys)


class _Block:
    """A part of a configuration, which is checked as in a file, with narrower types of fields."""

    __slots__ = ()
    narrower: ClassVar[Mapping[Any, Any]] = {int: Number}

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        given = {each.name: getattr(self, each.name) for each in fields(cast(Any, self))}
        kind = declared(cast(Any, type(self)))
        try:
            kind.model_validate(given)
        except ValidationError as error:
            (name, *_), problem, _ = next(shape_problems(kind, given, error))
            raise FieldValueError(f"{name}: {problem}") from None
        if fractions := [name for name, value in given.items() if isinstance(value, float)]:
            raise FieldValueError(f"{fractions[0]}: must be an int, which only files write as 5.0")


@dataclass(frozen=True, slots=True)
class ThinkingLog(_Block):
    """The log of thoughts.

    Args:
        enable: Whether thoughts are kept, and shown in the prompt.
        max_entries: How many are kept; the oldest rotates out.
        key_prefix: Prefix of their keys in the memory, before a number.

    Raises:
        FieldValueError: If ``max_entries`` is not a positive whole number, or the prefix is empty,
            holds anything but letters, digits, ``_``, ``.`` and ``-``, or ends in a digit.
    """

    narrower: ClassVar[Mapping[Any, Any]] = {int: Number, str: KeyPrefix}

    enable: bool = True
    max_entries: int = 10
    key_prefix: str = "thinking_log_"


@dataclass(frozen=True, slots=True)
class Limit(_Block):
    """A limit for the size of prompts; in a file, a bare number stands for the limit itself.

    Args:
        enable: Whether it applies.
        max_tokens: Maximum number of tokens.

    Raises:
        FieldValueError: If ``max_tokens`` is not a positive whole number.
    """

    enable: bool = True
    max_tokens: int = PAGING_LIMIT


@dataclass(frozen=True, slots=True)
class Iterate(_Block):
    """Limits for the cycles of a run.

    Args:
        enable: Whether ``max_iterations`` applies.
        max_iterations: Maximum number of cycles, including failed ones.
        max_useless: Number of useless cycles in a row after which a run always stops.
        max_per_round: Maximum number of cycles in a round of a world, which ends with the first
            action.

    Raises:
        FieldValueError: If one of them is not a positive whole number.
    """

    enable: bool = True
    max_iterations: int = 1000
    max_useless: int = 5
    max_per_round: int = 4


@dataclass(frozen=True, slots=True)
class Paging(_Block):
    """How to decide what leaves the working memory.

    Args:
        policy: ``lru`` for the least recently used, ``model`` to ask the model.

    Raises:
        FieldValueError: If there is no such policy.
    """

    policy: PagingPolicy = "lru"


@dataclass(frozen=True, slots=True)
class StorageLimits(_Block):
    """How much of the storage is kept and shown.

    Args:
        versions: Number of old values to keep of each memory; 0 for none.
        named: Maximum number of memories that a prompt names because they match the last thought.

    Raises:
        FieldValueError: If one of them is not a whole number from 0 on.
    """

    narrower: ClassVar[Mapping[Any, Any]] = {int: NumberOrNone}

    versions: int = 10
    named: int = 8


BLOCKS: Mapping[str, Any] = {
    "thinking_log": ThinkingLog,
    "paging_limit": Limit,
    "hard_limit": Limit,
    "iterate": Iterate,
    "paging": Paging,
    "storage": StorageLimits,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTexts:
    """The part of a configuration that prompts use: see `Config`."""

    role: str = ROLE
    instructions: str = INSTRUCTIONS
    goal: str | None = None
    state_description: Mapping[str, str] = field(default_factory=dict)
    available_actions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Fill in what is left out.

        If any of the memory's actions is given, only the given ones of them are available. The
        same holds for those of paging.
        """
        texts, given = self.state_description, self.available_actions
        _require_known("state_description", texts, STATE_DESCRIPTION)
        _require_known("available_actions", given, AVAILABLE_ACTIONS)
        available = {
            name: given.get(name, text)
            for kind in (MEMORY_ACTIONS, PAGING_ACTIONS)
            for name, text in kind.items()
            if name in given or not kind.keys() & given.keys()
        }
        described = MappingProxyType({**STATE_DESCRIPTION, **texts})
        object.__setattr__(self, "state_description", described)
        object.__setattr__(self, "available_actions", MappingProxyType(available))


def _require_known(name: str, given: Mapping[str, str], known: Mapping[str, str]) -> None:
    if unknown := [key for key in given if key not in known]:
        raise FieldValueError(f"{name} has no {unknown[0]!r}: it has {', '.join(known)}")
