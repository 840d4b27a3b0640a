"""Reading a reply: XML or JSON, whole or cut, and what had to be mended."""

from __future__ import annotations

import json
import re
from typing import Any

from prism.cognition._replies._answer import (
    UNREAD,
    AgentReply,
    Leaves,
    key_of,
    leaves_of,
    reply_of,
    written,
)
from prism.cognition._replies._data import (
    FoundData,
    Pairs,
    holds_objects,
    is_balanced,
    objects_nearly,
    valid_objects,
)
from prism.cognition._replies._elements import Element, Elements, read_elements
from prism.cognition._replies._tags import Markup, TooManyTagsError, resolved
from prism.statechart.reasoner._replies._objects import excerpt

MOST_CHARACTERS = 200_000
"""How much of a reply is read."""

MOST_DEFECTS = 20
_MOST_DEPTH = 3
"""How often one language may hold the other, escaped XML, or an object around the answer."""
_MOST_KEYS = 100

_SAID = re.compile(r"</(?:think|thinking|thoughts?|reasoning)>", re.IGNORECASE)
_DATA_FIRST = re.compile(r"\s*+(?:(?:```|~~~)\w*+\s*+|json\b\s*+)?+[{\[\"]", re.IGNORECASE)
_ELEMENT = re.compile(r"<\s{0,3}(?:agent|action|next[-_ ]?state|type)[\s/>]", re.IGNORECASE)
_ESCAPED = re.compile(r"&(?:amp;){0,2}lt;\s{0,3}/?(?:agent|action|next_state|type)", re.IGNORECASE)
_NAMED_TYPE = re.compile(r"<([A-Za-z]\w{2,40})\s*+/?>\s*+(?:</\1>)?|([A-Za-z]\w{2,40})")
_LETTER = re.compile(r"[^\W\d_]")
_KEY = re.compile(r"[\"'](?:agent|next[-_ ]?state|action)\\{0,3}[\"']", re.IGNORECASE)


def read_reply(text: str) -> AgentReply:
    """Return what a reply says; never raises, whatever the text is.

    XML and JSON are read however sloppily they are written, with the same names. Of several agent
    elements or objects the last that is complete counts, of several actions in one the first.
    Thoughts before the answer, and what a model writes after the end of its turn, do not count.

    Args:
        text: The reply; what is beyond 200,000 characters is not read.

    Returns:
        What the reply asks for. Texts are as the reply has them, line breaks and markup too,
        without control characters, and can be written as UTF-8.
    """
    defects: list[str] = []
    reply = _read(_readable(text, defects), defects, 0)
    defects.extend(reply.defects)

    return AgentReply(
        next_state=reply.next_state,
        thinking_log=reply.thinking_log,
        action=reply.action,
        is_truncated=reply.is_truncated,
        defects=tuple(dict.fromkeys(defects))[:MOST_DEFECTS],
    )


def _readable(text: str, defects: list[str]) -> str:
    """Return a text that can be read in bounded time, and written as UTF-8."""
    if len(text) > MOST_CHARACTERS:
        defects.append(f"the reply has more than {MOST_CHARACTERS:,} characters")
        text = _SAID.split(text[: 10 * MOST_CHARACTERS])[-1][:MOST_CHARACTERS]

    return written(_without_older_thoughts(text), defects)


def _without_older_thoughts(text: str) -> str:
    """Drop thoughts that no tags enclose: those of servers that drop special tokens, or print."""
    begins = text.lstrip()
    if begins.startswith("analysis"):
        return text.rpartition("assistantfinal")[2]
    if begins.startswith("Thinking..."):
        before, done, after = text.partition("...done thinking.")
        return after if done else before

    return text


def _read(text: str, defects: list[str], depth: int) -> AgentReply:
    """Return what a text says, in whichever language it says it."""
    if depth > _MOST_DEPTH:
        return AgentReply(defects=("what the reply holds is nested too deeply",))

    is_data_first = _DATA_FIRST.match(text) is not None
    reply = _read_data(text, defects, depth) if is_data_first else None
    if reply is not None:
        return reply

    try:
        elements = read_elements(Markup(text))
    except TooManyTagsError:
        return AgentReply(defects=("the reply holds too many tags to be read",))

    if elements.agents:
        return _of_agents(elements, defects, depth)

    is_element_first = _is_action(elements.loose) and elements.loose_start < text.find("{")
    is_data = not (is_data_first or is_element_first)
    reply = _read_data(text, defects, depth) if is_data else None
    if reply is not None:
        return reply
    if not elements.loose.is_empty:
        return _of_loose(elements, defects)
    if _ESCAPED.search(text):
        defects.append("the XML is escaped")
        return _read(resolved(text), defects, depth + 1)

    defects.extend(elements.defects)

    return AgentReply(
        is_truncated=elements.is_thinking or (is_data_first and _is_half_an_object(text)),
        defects=("there is no agent element and no object with its keys",),
    )


# --- elements -------------------------------------------------------------------------------------


def _of_agents(elements: Elements, defects: list[str], depth: int) -> AgentReply:
    """Return what the last complete agent element says, or else the last."""
    agents = elements.agents
    closed = [agent for agent in agents if agent.is_closed and _says_something(agent)]
    agent = (closed or [each for each in agents if _says_something(each)] or agents)[-1]
    if len(agents) > 1:
        defects.append(f"{len(agents)} agent elements; the last complete one is read")

    defects.extend(elements.defects)
    if agent.is_empty and ("{" in agent.stray or _ELEMENT.search(agent.stray)):
        inner = _read(agent.stray, defects, depth + 1)
        return _truncated_if(inner, not agent.is_closed)

    if not agent.is_closed:
        defects.append("the agent element is not closed")
    if closed[-2:-1] and _goes_on(closed[-2], agent):
        defects.append("state and thought stand in an element of their own")
        agent.leaves = {**closed[-2].leaves, **agent.leaves}

    return _of_element(agent, defects, not agent.is_closed)


def _goes_on(before: Element, agent: Element) -> bool:
    """Return True for an agent that only acts, after one that only thinks."""
    parts = {*before.leaves, *before.attributes}
    thinks = not before.actions and parts <= {"next_state", "thinking_log"}

    return thinks and not {*agent.leaves, *agent.attributes} & {"next_state", "thinking_log"}


def _says_something(agent: Element) -> bool:
    return not agent.is_empty or bool(agent.stray.strip())


def _of_loose(elements: Elements, defects: list[str]) -> AgentReply:
    """Return what elements say that have no agent element around them."""
    loose = elements.loose
    defects.append("there is no agent element around the others")
    defects.extend(elements.defects)

    # without an element around it nobody knows whether an action is whole
    is_bare = "type" in loose.leaves and not loose.actions
    is_cut = loose.is_cut or not all(action.is_closed for action in loose.actions)

    return _of_element(loose, defects, is_bare or is_cut)


def _is_action(loose: Element) -> bool:
    return any("type" in each.leaves for each in (loose, *loose.actions))


def _of_element(agent: Element, defects: list[str], is_truncated: bool) -> AgentReply:
    leaves = _leaves_of_element(agent, defects)
    _note_stray(agent, leaves, defects)
    is_clear = agent.is_clear

    if agent.actions:
        action = agent.actions[0]
        is_clear = is_clear and action.is_clear
        if len(agent.actions) > 1:
            defects.append(f"{len(agent.actions)} actions; the first is read")
        leaves["action"] = _leaves_of_action(action, defects)

    reply = reply_of(leaves, defects, is_truncated=is_truncated)
    if reply.action is not None and not is_clear:
        defects.append("where the value ends cannot be told, so the action does not count")
        return _without_action(reply)

    return reply


def _leaves_of_action(action: Element, defects: list[str]) -> Leaves:
    if action.is_empty and "{" in action.stray:
        found = valid_objects(action.stray)
        if found.objects:
            defects.append("the action is JSON")
            return leaves_of(found.objects[-1], defects)

    leaves = _leaves_of_element(action, defects)
    named = _NAMED_TYPE.fullmatch(action.stray.strip())
    if "type" not in leaves and named is not None:
        defects.append("the type has no element of its own")
        leaves["type"] = named[1] or named[2]
    else:
        _note_stray(action, leaves, defects)

    return leaves


def _leaves_of_element(element: Element, defects: list[str]) -> Leaves:
    """Return the texts of its elements, or of attributes that stand for them."""
    given = {key: text for key, text in element.attributes.items() if key not in element.leaves}
    if given:
        defects.append(f"attributes instead of elements: {', '.join(given)}")

    return {**given, **element.leaves}


def _note_stray(element: Element, leaves: Leaves, defects: list[str]) -> None:
    """Note the text in an element that belongs to no element in it."""
    text = element.stray.strip()
    if text:
        defects.append(f"{UNREAD}: {excerpt(text)}")
    if element.is_mended or _LETTER.search(text):
        leaves[UNREAD] = text


# --- objects --------------------------------------------------------------------------------------


def _read_data(text: str, defects: list[str], depth: int) -> AgentReply | None:
    """Return what the last object with the keys of an agent says; None if there is none."""
    quoted = _quoted_text(text)
    if quoted is not None:
        return _read(quoted, defects, depth + 1)
    if not holds_objects(text):
        return None

    found = valid_objects(text)
    if not (found.is_valid and found.objects):
        found = objects_nearly(text)

    return _of_objects(found, defects, depth)


def _quoted_text(text: str) -> str | None:
    """Return the text that a reply is which consists of one text in JSON."""
    if not text.lstrip().startswith('"') or not _mentions_keys(text):
        return None

    try:
        data = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None

    return data if isinstance(data, str) else None


def _of_objects(found: FoundData, defects: list[str], depth: int) -> AgentReply | None:
    said = [agent for data in found.objects if (agent := _agent_in(data, 0)) is not None]
    for agent in ([each for each in said if each] or said)[-1:]:
        if not found.is_valid:
            defects.append("the JSON is not valid")
        if isinstance(agent, str):
            return _truncated_if(_read(agent, defects, depth + 1), not found.is_closed)
        if not found.is_closed:
            defects.append("the object is not closed")

        leaves = leaves_of(agent, defects)
        return reply_of(leaves, defects, is_truncated=not found.is_closed, is_valid=found.is_valid)

    return None


def _is_half_an_object(text: str) -> bool:
    """Return True for a text that begins as an object does and ends before that does."""
    begins = _DATA_FIRST.match(text)
    said = text[begins.end() - 1 :] if begins is not None else ""

    return said.startswith("{") and not is_balanced(said.rstrip("`~ \n"))


def _agent_in(data: Any, depth: int) -> Pairs | str | None:
    """Return the object with the keys of an agent, or a text that holds an answer."""
    if isinstance(data, str):
        return data if _mentions_keys(data) else None
    if isinstance(data, list):
        data = data[-1] if data else None
    if not isinstance(data, Pairs) or len(data) > _MOST_KEYS or depth > _MOST_DEPTH:
        return None

    keys = {key_of(key) for key in data}
    if "agent" in keys:
        inner = next(value for key, value in data.items() if key_of(key) == "agent")
        agent = _agent_in(inner, depth + 1)
        return inner if agent is None and isinstance(inner, Pairs) else agent
    if keys & {"next_state", "thinking_log", "action"} or keys >= {"type", "tags"}:
        return data

    # an answer in something around it
    return _agent_in(next(iter(data.values())), depth + 1) if len(data) == 1 else None


def _mentions_keys(text: str) -> bool:
    return _ELEMENT.search(text) is not None or _KEY.search(text) is not None


def _truncated_if(reply: AgentReply, is_truncated: bool) -> AgentReply:
    return AgentReply(
        reply.next_state,
        reply.thinking_log,
        reply.action,
        reply.is_truncated or is_truncated,
        reply.defects,
    )


def _without_action(reply: AgentReply) -> AgentReply:
    return AgentReply(reply.next_state, reply.thinking_log, None, reply.is_truncated, reply.defects)
