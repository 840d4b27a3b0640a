"""Parts of a configuration and their defaults: the specification's own figures and texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from prism.errors import FieldValueError

PagingPolicy = Literal["lru", "model"]

PAGING_LIMIT = 4096
HARD_LIMIT = 8192

# a number follows, so it must not end in one; (?![\s\S]) is the end of the text
KEY_PREFIX = r"^[A-Za-z0-9_.-]*[A-Za-z_.-](?![\s\S])"
KEY_PREFIX_WORDS = "must be letters, digits, '_', '.' and '-', and not end in a digit"

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
        "storage_load, storage_save",
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
    }
)
PAGING_ACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "page_out": "Move information from working memory to persistent storage using tags",
        "page_in": "Bring information from persistent storage back to working memory using tags",
    }
)
AVAILABLE_ACTIONS: Mapping[str, str] = MappingProxyType({**MEMORY_ACTIONS, **PAGING_ACTIONS})


@dataclass(frozen=True, slots=True)
class ThinkingLog:
    """The log of thoughts.

    Args:
        enable: Whether thoughts are kept, and shown in the prompt.
        max_entries: How many are kept; the oldest rotates out.
        key_prefix: What their keys in the memory begin with; a number follows.

    Raises:
        FieldValueError: If ``max_entries`` is not a positive whole number, or the prefix is empty,
            holds anything but letters, digits, ``_``, ``.`` and ``-``, or ends in a digit.
    """

    enable: bool = True
    max_entries: int = 10
    key_prefix: str = "thinking_log_"

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        _require_positive("max_entries", self.max_entries)
        if not re.search(KEY_PREFIX, self.key_prefix):
            raise FieldValueError(f"key_prefix {KEY_PREFIX_WORDS}; got {self.key_prefix!r}")


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of the prompt's size.

    Args:
        enable: Whether it holds.
        max_tokens: The most tokens.

    Raises:
        FieldValueError: If ``max_tokens`` is not a positive whole number.
    """

    enable: bool = True
    max_tokens: int = PAGING_LIMIT

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        _require_positive("max_tokens", self.max_tokens)


@dataclass(frozen=True, slots=True)
class Iterate:
    """A limit of the cycles of a run.

    Args:
        enable: Whether it holds.
        max_iterations: The most cycles; one that failed counts.

    Raises:
        FieldValueError: If ``max_iterations`` is not a positive whole number.
    """

    enable: bool = True
    max_iterations: int = 1000

    def __post_init__(self) -> None:
        """Refuse values outside their range."""
        _require_positive("max_iterations", self.max_iterations)


@dataclass(frozen=True, slots=True)
class Paging:
    """How it is decided what leaves the working memory.

    Args:
        policy: ``lru`` for the least recently used, ``model`` to ask the model.

    Raises:
        FieldValueError: If there is no such policy.
    """

    policy: PagingPolicy = "lru"

    def __post_init__(self) -> None:
        """Refuse an unknown policy."""
        if self.policy not in ("lru", "model"):
            raise FieldValueError(f"policy must be 'lru' or 'model', got {self.policy!r}")


def _require_positive(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise FieldValueError(f"{name} must be a positive whole number, got {value!r}")
