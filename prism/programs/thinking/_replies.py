"""Reading a reply: the last agent element of XML, one object of JSON, or one tool call.

Anything else asks for nothing, and so does a reply that could mean two things or is cut off within
its action: what is stored must be what the model wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from prism.programs.thinking._config import WITH_VALUE
from prism.programs.thinking._memory import as_tag, to_text
from prism.reasoner._replies import spoken
from prism.reasoner._texts import whole_characters

MOST_CHARACTERS = 200_000
"""How much of a reply is read."""

_INSTRUCTION = re.compile(r"\[/?INST\]|<<?/?SYS>>?")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_BARE_AND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")
_OBJECT = re.compile(r"(?:\[\s{0,20})?\{")
_TAG = re.compile(r"<(?:action|next_state|thinking_log|type|tags|value)\b")
_WORD = re.compile(r"\W*+(\w+(?:-\w+)*+)\s*+([|/]?)")
_PLACEHOLDER = re.compile(
    r"[.…\s]*|<[^<>]{0,60}>|\[[^\[\]]{0,60}\]|\{[^{}:]{0,60}\}"
    r"|(?:your|the) (?:value|text|tags?|thought)",
    re.IGNORECASE,
)
_PARTS = ("type", "tags", "value")
_KEYS = ("next_state", "thinking_log", "action")


class UnreadReplyError(ValueError):
    """A reply is not read; the message says why."""


@dataclass(frozen=True, slots=True)
class AskedAction:
    """The action in a reply, not yet checked against the available ones.

    Attributes:
        type: Its type, in lower case; empty if there is none.
        tags: The memory that it concerns; empty if there is none.
        value: The text to store; None if there is none.
        fields: What else the action has, by name.
    """

    type: str
    tags: str
    value: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class AgentReply:
    """The reply of a model.

    Attributes:
        next_state: The state that it names, in lower case; None if it names none.
        thinking_log: The thought to keep; None if there is none.
        action: What to do; None if nothing is asked for.
        surplus: How many actions it has, if it has several; the first is read.
    """

    next_state: str | None = None
    thinking_log: str | None = None
    action: AskedAction | None = None
    surplus: str | None = None


def is_placeholder(text: str) -> bool:
    """Return whether a text only stands for what a model should have written."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


def read_reply(text: str) -> AgentReply:
    """Return what a reply says.

    Args:
        text: The reply; what is beyond 200,000 characters is not read.

    Raises:
        UnreadReplyError: If it is not one clear reply.
    """
    turn = _INSTRUCTION.sub("", spoken(_clean(text[:MOST_CHARACTERS])))
    try:
        if "<agent" in turn and not turn.startswith(("{", "[")):
            return _of_xml(turn)
        if (start := _OBJECT.search(turn)) is not None:
            return _of_json(turn, start.start())
    except RecursionError:
        raise UnreadReplyError("the reply is nested too deeply") from None
    raise UnreadReplyError("there is no agent element and no object with its keys")


# XML


def _of_xml(turn: str) -> AgentReply:
    """Read the last agent element, which must be well-formed but for bare ampersands."""
    start, end = turn.rfind("<agent"), turn.rfind("</agent>")
    if turn.count("<agent", 0, start) > turn.count("</agent>", 0, start):
        raise UnreadReplyError("an agent element stands in another one, or is not closed")
    closed = turn[start:end] if end > start else turn[start:].rstrip("`~ \n")
    agent = _parsed(closed + "</agent>", is_whole=end > start)
    actions = [_leaves_of(each) for each in agent if each.tag == "action"]
    data = _leaves_of(agent, but="action")
    return _of_agent({**data, "action": actions} if actions else data)


def _parsed(text: str, *, is_whole: bool) -> Element:
    # comments would otherwise be dropped without a word
    builder = ElementTree.TreeBuilder(insert_comments=True, insert_pis=True)
    try:
        return ElementTree.fromstring(
            text if "<![CDATA[" in text else _BARE_AND.sub("&amp;", text),
            ElementTree.XMLParser(target=builder),
        )
    except (ElementTree.ParseError, ValueError) as error:
        if not is_whole:
            raise UnreadReplyError("the reply is cut off, perhaps with its action") from None
        problem = f"the agent element is not XML ({error}): write &lt; for < in a text"
        raise UnreadReplyError(problem) from None


def _leaves_of(element: Element, but: str = "") -> dict[str, Any]:
    """Return the texts of the elements in an element, which holds no more than these."""
    leaves: dict[str, Any] = {}
    for part in element:
        if part.tag == but:
            continue
        if not isinstance(part.tag, str) or len(part) or part.attrib or part.tag in leaves:
            raise UnreadReplyError(f"{element.tag} holds markup of another kind, or a part twice")
        leaves[part.tag] = part.text or ""

    stray = (element.text or "") + "".join(part.tail or "" for part in element)
    if stray.strip() or (element.attrib and not but):
        raise UnreadReplyError(f"{element.tag} holds text that belongs to none of its elements")
    return leaves


# JSON


def _of_json(turn: str, start: int) -> AgentReply:
    if _TAG.search(turn, 0, start) is not None:
        raise UnreadReplyError("there are tags that belong to no agent element")
    try:
        data, end = _DECODER.raw_decode(turn, start)
    except ValueError as error:
        is_cut = not turn.rstrip("`~ \n").endswith(("}", "]"))
        what = "the reply is cut off" if is_cut else f"the JSON is not valid: {error}"
        raise UnreadReplyError(what) from None
    if _OBJECT.search(turn, end) is not None:
        raise UnreadReplyError("there is more than one object: reply with one")

    first, *others = data if isinstance(data, list) and data else [data]
    agent = _agent_in(first)
    if others:
        agent = {**agent, "action": [agent.get("action"), *others]}
    return _of_agent(agent)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if twice := [key for key, value in pairs if data[key] != value]:
        raise ValueError(f"the key {twice[0]!r} occurs twice")
    return data


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_pairs)


def _agent_in(data: Any) -> dict[str, Any]:
    """Return the object with the keys of an agent, also as the action that a tool call asks for."""
    agent = data.get("agent", data) if isinstance(data, dict) else None
    if not isinstance(agent, dict):
        raise UnreadReplyError("the reply is not an object with the keys of an agent")
    if agent is not data or any(key in data for key in _KEYS):
        return agent

    name = data.get("name")
    arguments = data.get("arguments", data.get("parameters"))
    if not isinstance(name, str) or arguments is None:
        raise UnreadReplyError("there is no agent element and no object with its keys")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}", strict=False, object_pairs_hook=_pairs)
        except ValueError:
            raise UnreadReplyError("the arguments of the tool call are not JSON") from None
    if not isinstance(arguments, dict):
        raise UnreadReplyError("the arguments of the tool call are not an object")
    if any(key in arguments for key in ("agent", *_KEYS)):
        return _agent_in(arguments)
    # a tool called action has the type among its arguments
    return {
        "action": {**arguments, "type": arguments.get("type", name) if name == "action" else name}
    }


# What both say


def _of_agent(agent: Mapping[str, Any]) -> AgentReply:
    if any(part in agent for part in _PARTS):
        raise UnreadReplyError("parts of the action stand outside of it")
    thought, asked = agent.get("thinking_log"), agent.get("action")
    if isinstance(thought, list) and all(isinstance(line, str) for line in thought):
        thought = "\n".join(thought)
    surplus = None
    if isinstance(asked, list) and asked:
        surplus = f"{len(asked)} actions; the first is read" if len(asked) > 1 else None
        asked = asked[0]
    return AgentReply(
        _word(agent.get("next_state")) or None,
        None if thought is None else _clean(to_text(thought)).strip() or None,
        _action_of(asked) if isinstance(asked, dict) else None,
        surplus,
    )


def _action_of(asked: Mapping[str, Any]) -> AskedAction:
    kind, tags, value = _word(asked.get("type")), asked.get("tags"), asked.get("value")
    words = [each for each in (tags if isinstance(tags, list) else [tags]) if isinstance(each, str)]
    fields = {key: each for key, each in asked.items() if key not in _PARTS}
    if kind in WITH_VALUE and value is None and fields:
        raise UnreadReplyError(f"the action has no value, but {', '.join(fields)}")
    data = {key: asked[key] for key in _PARTS[1:] if isinstance(asked.get(key), (list, dict))}
    return AskedAction(
        kind,
        as_tag(_clean(" ".join(words))),
        None if value is None else _clean(to_text(value)),
        {**fields, **data},
    )


def _clean(text: str) -> str:
    """Return a text that can be written as UTF-8, without control characters."""
    return _CONTROLS.sub("", whole_characters(text))


def _word(value: Any) -> str:
    """Return the leading word of a text, in lower case; nothing if it offers a choice."""
    word = _WORD.match(value) if isinstance(value, str) else None
    return "" if word is None or word[2] else word[1].replace("-", "_").lower()
