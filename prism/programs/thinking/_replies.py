"""Reading a reply: the last agent element of XML, one object of JSON, or one tool call.

Anything else asks for nothing, and so does a reply that could mean two things, is cut off within
its action, or only repeats its prompt: what is stored must be what the model wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from prism.programs._documents import OWN_WORDS, require_content
from prism.programs.thinking._memory import as_tag, to_text
from prism.reasoner.replies import spoken
from prism.reasoner.texts import whole_characters

MOST_CHARACTERS = 200_000
"""How much of a reply is read."""

_FORM = "Respond in the form that is shown above. Write "
HOW_AGAIN = {
    "thinking": f"{_FORM}what you think about the goal, in a sentence of your own.",
    "executing": f"{_FORM}one action, with words of your own in its fields.",
}
"""How a model should respond whose reply was not read, in each state."""

_LEAST_COPIED = 20
"""How long a text is, at least, that is refused because the instructions contain it."""

_INSTRUCTION = re.compile(r"\[/?INST\]|<<?/?SYS>>?")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]")
_BARE_AND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")
_OBJECT = re.compile(r"(?:\[\s{0,20})?\{")
_TAG = re.compile(r"<(?:action|next_state|thinking_log|type|tags|value)\b")
_WORD = re.compile(r"\W*+(\w+(?:-\w+)*+)\s*+([|/]?)")
_PARTS = ("type", "tags", "value")
_NO_AGENT = "there is no agent element and no object with its keys"
_KEYS = ("next_state", "thinking_log", "action")


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """The action in a reply, not yet checked.

    Attributes:
        type: Its type, in lower case; empty if there is none.
        fields: What else it has, by name.
    """

    type: str
    fields: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def tags(self) -> str:
        """The memory that it concerns, for logs; empty if there is none."""
        tags = self.fields.get("tags")
        return as_tag(tags) if isinstance(tags, str) else ""

    @property
    def content(self) -> Mapping[str, Any]:
        """What it has to say; a text says the same under any tag."""
        ignored = "tags" if len(str(self.fields.get("value", ""))) >= _LEAST_COPIED else None
        return {key: part for key, part in sorted(self.fields.items()) if key != ignored}


@dataclass(frozen=True, slots=True)
class AgentReply:
    """The reply of a model.

    Attributes:
        next_state: The state that it names, in lower case; None if it names none.
        thinking_log: The thought to keep; None if there is none.
        action: What to do; None if nothing is asked for.
    """

    next_state: str | None = None
    thinking_log: str | None = None
    action: ActionRequest | None = None


def reader(state: str, instructions: str, schema: Mapping[str, Any]) -> Callable[[str], AgentReply]:
    """Return the reader of a state's replies, which refuses what the state has no use for.

    Args:
        state: The state.
        instructions: What the prompt says besides the memory, which is no content of a reply.
        schema: The JSON Schema of the replies, whose values are no placeholders.
    """
    fixed = folded(f"{instructions} {HOW_AGAIN[state]}")

    def read(text: str) -> AgentReply:
        # problems do not quote the reply: small models would write it again
        reply = read_reply(text)
        content = _content_in(state, reply)
        _require_content(content, fixed)
        require_content(content, schema, state)
        return reply

    return read


def _content_in(state: str, reply: AgentReply) -> Mapping[str, Any]:
    """Return what a reply gives a state to keep or to do, by name."""
    if state == "thinking":
        if (reply.next_state, reply.thinking_log, reply.action) == (None, None, None):
            raise ValueError("there is neither next_state nor thinking_log")
        return {"thinking_log": reply.thinking_log}
    if reply.action is None:
        raise ValueError("it asks for no action")
    return reply.action.fields


def _require_content(content: Mapping[str, Any], fixed: str) -> None:
    for name, text in content.items():
        if isinstance(text, str) and len(text) >= _LEAST_COPIED and folded(text) in fixed:
            raise ValueError(f"{name} repeats the instructions; {OWN_WORDS}")
    tags, value = (folded(str(content.get(name) or "")) for name in ("tags", "value"))
    if value and value == tags:
        raise ValueError(f"value only repeats the tags; {OWN_WORDS}")


def folded(text: str) -> str:
    """Return a text in lower case, with one space between its words."""
    return " ".join(text.casefold().replace("_", " ").split())


def read_reply(text: str) -> AgentReply:
    """Return what a reply says.

    Args:
        text: The reply; what is beyond 200,000 characters is not read.

    Raises:
        ValueError: If it is not one clear reply.
    """
    turn = _INSTRUCTION.sub("", spoken(clean(text[:MOST_CHARACTERS])))
    try:
        if "<agent" in turn and not turn.startswith(("{", "[")):
            return _of_agent(_of_xml(turn))
        if (start := _OBJECT.search(turn)) is not None:
            return _of_agent(_of_json(turn, start.start()))
    except RecursionError:
        raise ValueError("the reply is nested too deeply") from None
    raise ValueError(_NO_AGENT)


# XML


def _of_xml(turn: str) -> dict[str, Any]:
    """Read the last agent element, which must be well-formed but for bare ampersands."""
    start, end = turn.rfind("<agent"), turn.rfind("</agent>")
    if turn.count("<agent", 0, start) > turn.count("</agent>", 0, start):
        raise ValueError("an agent element stands in another one, or is not closed")
    closed = turn[start:end] if end > start else turn[start:].rstrip("`~ \n")
    agent = _parsed(closed + "</agent>")
    actions = [_leaves_of(each) for each in agent if each.tag == "action"]
    data = _leaves_of(agent, but="action")
    return {**data, "action": actions} if actions else data


def _parsed(text: str) -> Element:
    # comments would otherwise be dropped without a word
    builder = ElementTree.TreeBuilder(insert_comments=True, insert_pis=True)
    whole = text if "<![CDATA[" in text else _BARE_AND.sub("&amp;", text)
    try:
        return ElementTree.fromstring(whole, ElementTree.XMLParser(target=builder))
    except (ElementTree.ParseError, ValueError) as error:
        problem = f"the agent element is cut off, or not XML ({error}): write &lt; for < in a text"
        raise ValueError(problem) from None


def _leaves_of(element: Element, but: str = "") -> dict[str, Any]:
    """Return the texts of the elements in an element, which holds no more than these."""
    leaves: dict[str, Any] = {}
    for part in element:
        if part.tag == but:
            continue
        if not isinstance(part.tag, str) or len(part) or part.attrib or part.tag in leaves:
            raise ValueError(f"{element.tag} holds markup of another kind, or a part twice")
        leaves[part.tag] = part.text or ""

    stray = (element.text or "") + "".join(part.tail or "" for part in element)
    if stray.strip() or (element.attrib and not but):
        raise ValueError(f"{element.tag} holds text that belongs to none of its elements")
    return leaves


# JSON


def _of_json(turn: str, start: int) -> dict[str, Any]:
    """Read the only object, or a list of nothing but one."""
    if _TAG.search(turn, 0, start) is not None:
        raise ValueError("there are tags that belong to no agent element")
    try:
        data, end = _DECODER.raw_decode(turn, start)
    except ValueError as error:
        is_cut = not turn.rstrip("`~ \n").endswith(("}", "]"))
        what = "the reply is cut off" if is_cut else f"the JSON is not valid: {error}"
        raise ValueError(what) from None
    if _OBJECT.search(turn, end) is not None or (isinstance(data, list) and len(data) > 1):
        raise ValueError("there is more than one object: reply with one")
    return _agent_in(data[0] if isinstance(data, list) else data)


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
        raise ValueError(_NO_AGENT)
    if agent is not data or any(key in data for key in _KEYS):
        return agent

    name, arguments = data.get("name"), data.get("arguments", data.get("parameters"))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}", strict=False, object_pairs_hook=_pairs)
        except ValueError:
            raise ValueError("the arguments of the tool call are not JSON") from None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise ValueError(_NO_AGENT)
    if any(key in arguments for key in ("agent", *_KEYS)):
        return _agent_in(arguments)
    # a tool called action has the type among its arguments
    kind = arguments.get("type", name) if name == "action" else name
    return {"action": {**arguments, "type": kind}}


# What both say


def _of_agent(agent: Mapping[str, Any]) -> AgentReply:
    if any(part in agent for part in _PARTS):
        raise ValueError("parts of the action stand outside of it")
    thought, action = agent.get("thinking_log"), agent.get("action")
    if isinstance(action, list):
        if len(action) > 1:
            raise ValueError("there is more than one action: ask for one")
        action = action[0] if action else None
    return AgentReply(
        _word(agent.get("next_state")) or None,
        None if thought is None else clean(to_text(thought)).strip() or None,
        _action_of(action) if isinstance(action, dict) else None,
    )


def _action_of(action: Mapping[str, Any]) -> ActionRequest:
    fields = {key: clean(part) if isinstance(part, str) else part for key, part in action.items()}
    return ActionRequest(_word(fields.pop("type", "")), fields)


def clean(text: str) -> str:
    """Return a text that can be written as UTF-8, without control characters."""
    return _CONTROLS.sub("", whole_characters(text))


def _word(value: Any) -> str:
    """Return the leading word of a text, in lower case; nothing if it offers a choice."""
    word = _WORD.match(value) if isinstance(value, str) else None
    return "" if word is None or word[2] else word[1].replace("-", "_").lower()
