"""The memory operations that a reply can ask for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from prism.cognition._memory._memory import Memory
from prism.cognition._memory._values import as_tag
from prism.cognition._replies import AskedAction

ActionOutcome = Literal["done", "missing", "refused"]

Operation = Callable[[Memory, str, str | None], bool]
"""``operation(memory, tags, value)``: returns False if there is no such memory."""


@dataclass(frozen=True, slots=True)
class CarriedOut:
    """What became of an action that a reply asked for.

    Args:
        type: What was to be done, such as ``working_memory_add``; empty if the reply does not say.
        tags: To which memory.
        outcome: ``done``; ``missing`` if there is no such memory; ``refused`` if it could not be
            carried out.
        reason: Why it was not done.
    """

    type: str
    tags: str
    outcome: ActionOutcome = "done"
    reason: str | None = None


def _add(memory: Memory, tags: str, value: str | None) -> bool:
    memory.add(tags, value)
    return True


def _remove(memory: Memory, tags: str, _value: str | None) -> bool:
    return memory.remove(tags)


def _load(memory: Memory, tags: str, _value: str | None) -> bool:
    return memory.load(tags)


def _save(memory: Memory, tags: str, value: str | None) -> bool:
    return memory.save(tags, value)


OPERATIONS: Mapping[str, Operation] = {
    "working_memory_add": _add,
    "working_memory_remove": _remove,
    "storage_load": _load,
    "storage_save": _save,
}
"""By the type of the action."""

PAGING_TYPES = ("page_out", "page_in")
"""Types of action that a reply may ask for while paging."""

_HOLDERS = {"working_memory_remove": "working memory", "storage_load": "storage"}


def carry_out(operation: Operation, memory: Memory, asked: AskedAction) -> CarriedOut:
    """Carry out an action that has no problem.

    Args:
        operation: What to do.
        memory: To which memory.
        asked: What the reply asks for.
    """
    if not operation(memory, asked.tags, _value_of(asked)):
        reason = f"there is no {asked.tags!r} in {_HOLDERS.get(asked.type, 'working memory')}"
        return CarriedOut(asked.type, asked.tags, "missing", reason)

    memory.touch([asked.tags])

    return CarriedOut(asked.type, asked.tags)


def problem_of(
    asked: AskedAction | None,
    memory: Memory,
    available: Collection[str],
    *,
    is_truncated: bool,
    fits: Callable[[str, Any], bool],
) -> str | None:
    """Return why an action cannot be carried out while executing; None if it can.

    Args:
        asked: What the reply asks for, if anything.
        memory: The memory.
        available: Types of action that the configuration has.
        is_truncated: Whether the reply was cut off.
        fits: Whether a prompt has room for a memory, if it has no other.
    """
    if is_truncated:
        return "the reply is cut off, and with it perhaps the action"
    if asked is None:
        return "the reply asks for no action"

    known = [name for name in OPERATIONS if name in available]
    if asked.type not in known:
        what = f"{asked.type!r} is no action" if asked.type else "the action has no type"
        return f"{what} that can be carried out: {', '.join(known) or 'none is available'}"

    tag = as_tag(asked.tags)
    if not tag:
        return "the action has no tags"

    return _problem_of_value(asked, tag, memory, fits)


def _problem_of_value(
    asked: AskedAction, tag: str, memory: Memory, fits: Callable[[str, Any], bool]
) -> str | None:
    value: Any = _value_of(asked)
    if asked.type == "working_memory_add" and value is None:
        return "the action has no value"
    if asked.type == "storage_save" and value is None and tag not in memory.working:
        return "the action has no value, and working memory has none either"

    if asked.type == "storage_load":
        value = memory.stored(tag)
    if asked.type in ("working_memory_add", "storage_load") and not fits(tag, value):
        return "the value alone is larger than the hard limit has room for"

    return None


def _value_of(asked: AskedAction) -> str | None:
    """Return the value that an action has; an element that is left empty has none."""
    return asked.value if asked.value and asked.value.strip() else None
