"""The actions that a reply can ask for while executing, and their results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, Literal

from prism.cognition._memory._memory import Memory
from prism.cognition._memory._values import as_tag
from prism.cognition._own_actions import OwnAction
from prism.cognition._replies import AskedAction
from prism.cognition._settings import MEMORY_ACTIONS

ActionOutcome = Literal["done", "missing", "refused", "unusable", "failed"]

MOST_FOUND = 5
"""Memories that a search shows."""

_SUGGESTED = 3
_LOOKED_AT = 20

_OF_EXAMPLE = "name_of_the_memory"
"""The tag in the form that prompts show; models that echo their prompt reply with it."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """The result of an action that a reply asked for.

    Args:
        type: The kind of action, such as ``working_memory_add``; empty if the reply does not say.
        tags: The memory that it concerns.
        outcome: ``done``; ``missing`` if this memory does not exist; ``refused`` if it could not be
            carried out. In a prompt also ``unusable`` if the reply was useless, and ``failed`` if
            none came.
        reason: Why it was not done, or had no effect.
        answer: The result of an action of the application.
        found: Tags of the memories that a search found, best first.
    """

    type: str
    tags: str
    outcome: ActionOutcome = "done"
    reason: str | None = None
    answer: str | None = None
    found: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, without empty keys."""
        told = asdict(self) | {"found": list(self.found)}
        return {key: value for key, value in told.items() if value not in (None, "", [])}


def carry_out(memory: Memory, asked: AskedAction) -> ActionResult:
    """Carry out an action of the memory that has no problem."""
    tags, value = _tag_meant(memory, asked), value_of(asked)
    before = _held(memory, tags)
    match asked.type:
        case "storage_search":
            return _search(memory, asked)
        case "working_memory_add":
            memory.add(tags, value)
            is_there = True
        case "working_memory_remove":
            is_there = memory.remove(tags)
        case "storage_load":
            is_there = memory.load(tags)
        case _:
            is_there = memory.save(tags, value)

    if not is_there:
        return ActionResult(asked.type, tags, "missing", _missing(memory, asked))

    memory.touch([tags])
    is_same = _held(memory, tags) == before
    return ActionResult(asked.type, tags, reason="nothing has changed by it" if is_same else None)


def tag_in(memory: Memory, tag: str, *, is_stored: bool) -> str | None:
    """Return the tag of a memory that a tag names, in any case; None if none or several are meant.

    Args:
        memory: The memory.
        tag: A tag.
        is_stored: Whether it is looked for in storage, otherwise in working memory.
    """
    known: Collection[str] = memory.working
    if is_stored and memory.stored(tag) is not None:
        known = [tag]
    elif is_stored:
        known = [match.tag for match in memory.search(tag.replace("_", " "), _LOOKED_AT)]
    alike = [tag] if tag in known else [it for it in known if it.casefold() == tag.casefold()]

    return alike[0] if len(alike) == 1 else None


def _tag_meant(memory: Memory, asked: AskedAction) -> str:
    """Return the tag of an action, as the memory that it concerns is called if there is one."""
    is_new = asked.type in ("working_memory_add", "storage_save") and value_of(asked) is not None
    is_stored = asked.type == "storage_load"
    found = None if is_new else tag_in(memory, as_tag(asked.tags), is_stored=is_stored)
    return asked.tags if found in (None, as_tag(asked.tags)) else str(found)


def _held(memory: Memory, tags: str) -> tuple[Any, Any]:
    return memory.working.get(as_tag(tags)), memory.stored(tags)


def problem_of(
    asked: AskedAction | None,
    memory: Memory,
    available: Collection[str],
    own: Mapping[str, OwnAction],
    fits: Callable[[str, Any], bool],
) -> str | None:
    """Return why an action cannot be carried out while executing; None if it can.

    Args:
        asked: What the reply asks for, if anything.
        memory: The memory.
        available: Types of action that the configuration has.
        own: Actions of the application.
        fits: Whether a prompt has room for a memory, if it has no other.
    """
    if asked is None:
        return "the reply asks for no action"
    if asked.type in own:
        return None  # its fields are checked when it is carried out

    known = [*filter(available.__contains__, MEMORY_ACTIONS), *own]
    if asked.type not in known:
        return _unknown(asked.type, known)

    tag = as_tag(_tag_meant(memory, asked))
    if asked.type == "storage_search":
        return None if tag or value_of(asked) else "the search has no words"
    if not tag:
        return "the action has no tags"
    if tag == _OF_EXAMPLE:
        return "the reply repeats the example of the prompt: name the memory that is meant"

    return _problem_of_value(asked, tag, memory, fits)


def _unknown(name: str, known: list[str]) -> str:
    what = f"{name!r} is no action" if name else "the action has no type"
    close = get_close_matches(name, known, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    return f"{what} that can be carried out: {', '.join(known) or 'none is available'}{meant}"


def value_of(asked: AskedAction) -> str | None:
    """Return the value that an action has; an element that is left empty has none."""
    return asked.value if asked.value and asked.value.strip() else None


def _problem_of_value(
    asked: AskedAction, tag: str, memory: Memory, fits: Callable[[str, Any], bool]
) -> str | None:
    value: Any = value_of(asked)
    if asked.type == "working_memory_add" and value is None:
        return "the action has no value"
    if asked.type == "storage_save" and value is None and tag not in memory.working:
        return "the action has no value, and neither has working memory"

    if asked.type == "storage_load":
        value = memory.stored(tag)
    if asked.type in ("working_memory_add", "storage_load") and not fits(tag, value):
        return "the value alone exceeds the hard limit"

    return None


def _search(memory: Memory, asked: AskedAction) -> ActionResult:
    words = " ".join(filter(None, (asked.tags.replace("_", " "), value_of(asked))))
    found = tuple(match.tag for match in memory.search(words, MOST_FOUND))
    if not found:
        none = "no memory in storage contains any of these words"
        return ActionResult(asked.type, asked.tags, "missing", none)

    last = memory.last_action or {}
    is_same = (last.get("type"), last.get("tags")) == (asked.type, asked.tags)
    reason = "it repeats the last search" if is_same else None
    return ActionResult(asked.type, asked.tags, reason=reason, found=found)


def _missing(memory: Memory, asked: AskedAction) -> str:
    """Say what is not there, and what comes near to it."""
    if asked.type == "storage_load":
        close = [match.tag for match in memory.search(asked.tags.replace("_", " "), _SUGGESTED)]
        near = f"; storage has {', '.join(close)}" if close else ""
        return f"there is no {asked.tags!r} in storage{near}"

    return f"there is no {asked.tags!r} in working memory"
