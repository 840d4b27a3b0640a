"""The meaning of the names in a reply, in whichever dialect they were given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from string import punctuation
from typing import Any

from prism.cognition._memory._values import to_text
from prism.cognition._replies._data import Pairs
from prism.cognition._replies._tags import key_of
from prism.cognition._settings import AVAILABLE_ACTIONS
from prism.statechart.reasoner._replies._objects import excerpt
from prism.statechart.reasoner._texts import whole_characters


@dataclass(frozen=True, slots=True)
class AskedAction:
    """The request in a reply, not yet checked against the available actions.

    Attributes:
        type: The leading word of the type, in lower case; empty if there is none.
        tags: The identifier: stripped, each run of spaces an underscore; empty if there is none.
        value: The text to store, exactly as it was given; None if there is none. JSON values other
            than text are compact JSON.
        fields: What else the action has, by name, as an action of the application may need it.
    """

    type: str
    tags: str
    value: str | None
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class AgentReply:
    """The reply of a model.

    Attributes:
        next_state: The leading word of ``next_state``, in lower case; None if there is none.
        thinking_log: The thought to keep, stripped; None if there is none.
        action: What to do; None if nothing is asked for. Not to be carried out if `is_truncated`.
        is_truncated: Whether the reply ended before what it says was closed.
        defects: What was wrong with the reply, and how it was read anyway.
    """

    next_state: str | None = None
    thinking_log: str | None = None
    action: AskedAction | None = None
    is_truncated: bool = False
    defects: tuple[str, ...] = ()


Leaves = dict[str, Any]
"""The names that the specification knows, and what a reply gives for each."""

UNREAD = "text of no element"
"""The name under which an element's own text stands among the names in it."""

_PARTS = ("type", "tags", "value")
_OF_AGENT = ("next_state", "thinking_log", "action", "agent")
_OF_MEMORY = (*AVAILABLE_ACTIONS, "")
_WITH_VALUE = ("working_memory_add", "storage_save", "")
"""The actions that do something else where a value is missing."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FIELD = re.compile(r"<([A-Za-z]\w{0,60})>([^<>]*+)</\1\s*+>")
_TAG = re.compile(r"<[^<>]{1,40}+>")
_WORD = re.compile(r"\W*+(\w+(?:-\w+)*+)\s*+([|/]?)")


def leaves_of(data: Pairs, defects: list[str]) -> Leaves:
    """Return what an object says by the names that the specification knows."""
    leaves: Leaves = {}
    for key, value in data.items():
        leaves.setdefault(key_of(key), value)
    defects.extend(
        f"the key {excerpt(key)} appears twice; the first is read" for key in data.repeated
    )

    return leaves


def reply_of(
    leaves: Leaves, defects: list[str], *, is_truncated: bool, is_valid: bool = True
) -> AgentReply:
    """Return what the names stand for.

    Args:
        leaves: What the reply gives for each name.
        defects: What had to be mended; more is added.
        is_truncated: Whether the reply is cut off.
        is_valid: Whether it is what a strict parser reads, so that a missing value is missing.
    """
    log = leaves.get("thinking_log")
    if isinstance(log, list) and all(isinstance(line, str) for line in log):
        log = "\n".join(log)
    thought = _text_of(log, defects) or ""
    state = _word(leaves.get("next_state"), "next_state", defects)
    parts = _parts_of(leaves, defects)
    action = None if parts is None else _action_of(parts, defects, is_valid)

    # what is to be stored may be what could not be read; of a reply that is cut off it is to come
    is_whole = parts is None or (is_valid and parts.keys() <= {*_PARTS}) or "value" in parts
    if action is not None and _needs_value(action) and not (is_whole or is_truncated):
        defects.append("there is text but no value, so the action is ignored")
        action = None

    return AgentReply(state or None, thought.strip() or None, action, is_truncated)


def _parts_of(leaves: Leaves, defects: list[str]) -> Leaves | None:
    """Return what a reply gives for type, tags and value, wherever; None if it has no action."""
    asked = leaves.get("action")
    if isinstance(asked, list) and asked:
        if len(asked) > 1:
            defects.append(f"{len(asked)} actions; the first is read")
        asked = asked[0]
    if isinstance(asked, str) and asked.strip():
        asked = {"type": asked}
    elif isinstance(asked, Pairs):
        asked = leaves_of(asked, defects)

    if isinstance(asked, dict):
        parts = {**{key: leaves[key] for key in _PARTS if key in leaves}, **asked}
        is_outside = len(parts) > len(asked)
    else:
        parts = {key: given for key, given in leaves.items() if key not in _OF_AGENT}
        is_outside = "type" in parts
        if not is_outside:
            return None
    if is_outside:
        defects.append("parts of the action stand outside of it")

    return parts


def _action_of(parts: Leaves, defects: list[str], is_valid: bool) -> AskedAction:
    tags = _tags_of(parts.get("tags"), defects)
    kind = _word(parts.get("type"), "type", defects)
    return AskedAction(
        kind,
        # signs around an identifier are what is left of quotes that were not read as such
        tags if is_valid else tags.strip(punctuation),
        _text_of(parts.get("value"), defects),
        {} if kind in _OF_MEMORY else _fields_of(parts),
    )


def _needs_value(action: AskedAction) -> bool:
    """Return whether an action does something else where a value is missing."""
    is_own = action.type not in _OF_MEMORY
    return action.type in _WITH_VALUE or (is_own and not action.fields)


def _fields_of(parts: Leaves) -> dict[str, Any]:
    """Return what an action has beside type, tags and value."""
    fields = {
        key: value for key, value in parts.items() if key not in (*_PARTS, *_OF_AGENT, UNREAD)
    }
    stray = parts.get(UNREAD)
    for found in _FIELD.finditer(stray) if isinstance(stray, str) else ():
        fields.setdefault(found[1], found[2].strip())

    return fields


def _word(given: Any, name: str, defects: list[str]) -> str:
    """Return the leading word of a text, in lower case; nothing if it offers a choice."""
    if isinstance(given, list) and len(given) == 1:
        given = given[0]
    if given is None:
        return ""

    found = _WORD.match(_TAG.sub(" ", given)) if isinstance(given, str) else None
    if found is None:
        defects.append(f"{name} has no word: {excerpt(given)}")
        return ""
    if found[2]:
        defects.append(f"{name} leaves a choice: {excerpt(given)}")
        return ""

    return found[1].replace("-", "_").lower()


def _tags_of(given: Any, defects: list[str]) -> str:
    if isinstance(given, list):
        defects.append("the tags are a list; they are put together")
        given = " ".join(part for part in given if isinstance(part, str))

    text = _text_of(given, defects) or ""
    if "<" in text:
        text = " ".join(re.sub(r"</?tags?>", " ", text).split())

    return "_".join(text.split())


def _text_of(given: Any, defects: list[str]) -> str | None:
    if given is None:
        return None

    return written(to_text(given), defects)


def written(text: str, defects: list[str]) -> str:
    """Return a text that can be written as UTF-8, without control characters."""
    clean = _CONTROLS.sub("", text)
    if len(clean) < len(text):
        defects.append("control characters were dropped")

    whole = whole_characters(clean)
    if whole is not clean:
        defects.append("invalid characters were replaced")

    return whole
