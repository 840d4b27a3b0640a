"""Reading a reply: XML or JSON, whole or cut, what its names mean, and what had to be mended."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import punctuation
from typing import Any

from prism.cognition._memory._values import to_text
from prism.cognition._replies._calls import MOST_CALL, OF_AGENT, call_in, rewritten
from prism.cognition._replies._data import Pairs, found_in, is_balanced, loaded, valid_objects
from prism.cognition._replies._elements import Element, Elements
from prism.cognition._replies._tags import Markup, TooManyTagsError, key_of, resolved
from prism.cognition._settings import AVAILABLE_ACTIONS, WITH_VALUE
from prism.statechart.reasoner._replies._objects import excerpt, without_thoughts
from prism.statechart.reasoner._texts import whole_characters

MOST_CHARACTERS = 200_000
"""How much of a reply is read."""

MOST_DEFECTS = 20
_MOST_DEPTH = 3
"""How often one language may hold the other, escaped XML, or an object around the answer."""
_MOST_KEYS = 100
_MOST_SIGNS_OF_CALL = 200

_SAID = re.compile(r"</(?:think|thinking|thoughts?|reasoning)>", re.IGNORECASE)
# thoughts that no tags enclose: those of servers that drop special tokens, or print
_UNTAGGED = re.compile(
    r"\A\s*+(?:analysis.*assistantfinal|Thinking\.\.\..*?\.\.\.done thinking\.)", re.DOTALL
)
_DATA_FIRST = re.compile(r"\s*+(?:(?:```|~~~)\w*+\s*+|json\b\s*+)?+[{\[\"]", re.IGNORECASE)
_ELEMENT = re.compile(r"<\s{0,3}(?:agent|action|next[-_ ]?state|type)[\s/>]", re.IGNORECASE)
_ESCAPED = re.compile(r"&(?:amp;){0,2}lt;\s{0,3}/?(?:agent|action|next_state|type)", re.IGNORECASE)
_NAMED_TYPE = re.compile(r"<([A-Za-z]\w{2,40})\s*+/?>\s*+(?:</\1>)?|([A-Za-z]\w{2,40})")
_LETTER = re.compile(r"[^\W\d_]")
_KEY = re.compile(
    r"[\"'](?:agent|next[-_ ]?state|action|arguments|parameters)\\{0,3}[\"']", re.IGNORECASE
)


class Defects(list[str]):
    """What had to be mended in a reply.

    Attributes:
        surplus: What is wrong with a reply that asks for several actions; None if it does not.
    """

    surplus: str | None = None

    def note_several(self, count: int) -> None:
        """Note a number of actions, if there are more than one."""
        if count > 1:
            told = f"{count} actions; the first is read"
            self.surplus = self.surplus or told
            self.append(told)


def read_reply(text: str, names: Sequence[str] = ()) -> AgentReply:
    """Return what a reply says; never raises, whatever the text is.

    XML and JSON are read however sloppily they are written, with the same names. Of several agent
    elements or objects the last that is complete counts, of several actions in one the first.
    Thoughts before the answer, and what a model writes after the end of its turn, do not count.

    Args:
        text: The reply; what is beyond 200,000 characters is not read.
        names: Names of actions beside those of the memory.

    Returns:
        What the reply asks for. Texts are as the reply has them, line breaks and markup too,
        without control characters, and can be written as UTF-8.
    """
    defects = Defects()
    if len(text) > MOST_CHARACTERS:
        defects.append(f"the reply has more than {MOST_CHARACTERS:,} characters")
        # what counts comes behind the thoughts, which are what makes replies so long
        text = _SAID.split(text[: 10 * MOST_CHARACTERS])[-1][:MOST_CHARACTERS]
    text = written(_UNTAGGED.sub("", text), defects)

    call = None
    if len(text) <= MOST_CALL and text.count("<") <= _MOST_SIGNS_OF_CALL:
        call = rewritten(without_thoughts(text), (*AVAILABLE_ACTIONS, *names))
    reply = _read(text if call is None else call, defects, 0 if call is None else 1)
    if call is not None:
        defects.append("the reply is not an agent element, but asks for an action in another form")
    defects.extend(reply.defects)

    told = tuple(dict.fromkeys(defects))[:MOST_DEFECTS]
    return replace(reply, defects=told, surplus=defects.surplus)


def _read(text: str, defects: Defects, depth: int) -> AgentReply:
    """Return what a text says, in whichever language it says it."""
    if depth > _MOST_DEPTH:
        return AgentReply(defects=("the reply is nested too deeply",))

    is_data_first = _DATA_FIRST.match(text) is not None
    reply = _read_data(text, defects, depth) if is_data_first else None
    if reply is not None:
        return reply

    try:
        elements = Elements(Markup(text))
    except TooManyTagsError:
        return AgentReply(defects=("the reply has too many tags",))

    if elements.agents:
        return _of_agents(elements, defects, depth)

    loose = elements.loose
    is_action = any("type" in each.leaves for each in (loose, *loose.actions))
    if not is_data_first and not (is_action and elements.loose_start < text.find("{")):
        reply = _read_data(text, defects, depth)
    if reply is not None:
        return reply
    if not loose.is_empty:
        defects.extend(["there is no agent element around the others", *elements.defects])
        # without an element around it nobody knows whether an action is whole
        is_bare = "type" in loose.leaves and not loose.actions
        loose.is_closed &= not is_bare and all(action.is_closed for action in loose.actions)
        return _of_element(loose, defects)
    if _ESCAPED.search(text):
        defects.append("the XML is escaped")
        return _read(resolved(text), defects, depth + 1)

    defects.extend(elements.defects)
    return AgentReply(
        is_truncated=elements.is_thinking or _is_half_an_object(text),
        defects=("there is no agent element and no object with its keys",),
    )


# --- elements -------------------------------------------------------------------------------------


def _of_agents(elements: Elements, defects: Defects, depth: int) -> AgentReply:
    """Return what the last complete agent element says, or else the last."""
    agents = elements.agents
    # models correct themselves, but begin once more and are cut off, too
    telling = [each for each in agents if not each.is_empty or each.stray.strip()]
    closed = [each for each in telling if each.is_closed]
    agent = (closed or telling or agents)[-1]
    if len(agents) > 1:
        defects.append(f"{len(agents)} agent elements; the last complete one is read")
    defects.extend(elements.defects)

    if agent.is_empty and ("{" in agent.stray or _ELEMENT.search(agent.stray) is not None):
        inner = _read(agent.stray, defects, depth + 1)
        return replace(inner, is_truncated=inner.is_truncated or not agent.is_closed)

    if not agent.is_closed:
        defects.append("the agent element is not closed")
    if closed[-2:-1] and _goes_on(closed[-2], agent):
        defects.append("state and thought are in an element of their own")
        agent.leaves = {**closed[-2].leaves, **agent.leaves}

    return _of_element(agent, defects)


def _goes_on(before: Element, agent: Element) -> bool:
    """Return True for an agent that only acts, after one that only thinks."""
    thinking = {"next_state", "thinking_log"}
    thinks = not before.actions and {*before.leaves, *before.attributes} <= thinking

    return thinks and not {*agent.leaves, *agent.attributes} & thinking


def _of_element(agent: Element, defects: Defects) -> AgentReply:
    leaves = _leaves_of(agent, defects)
    for action in agent.actions[:1]:
        defects.note_several(len(agent.actions))
        leaves["action"] = _leaves_of(action, defects)

    reply = reply_of(leaves, defects, is_truncated=not agent.is_closed)
    is_clear = all(each.is_clear for each in (agent, *agent.actions[:1]))
    if reply.action is not None and not is_clear:
        defects.append("the end of the value is unclear, so the action is ignored")
        return replace(reply, action=None)

    return reply


def _leaves_of(element: Element, defects: list[str]) -> Leaves:
    """Return the texts of the elements in an element, or of what stands for them."""
    is_action, text = element.name == "action", element.stray.strip()
    objects = valid_objects(text).objects if is_action and element.is_empty else []
    if objects:
        defects.append("the action is JSON")
        return leaves_of(objects[-1], defects)

    given = {key: said for key, said in element.attributes.items() if key not in element.leaves}
    if given:
        defects.append(f"attributes instead of elements: {', '.join(given)}")
    leaves: Leaves = {**given, **element.leaves}

    named = _NAMED_TYPE.fullmatch(text)
    if is_action and "type" not in leaves and named is not None:
        defects.append("the type has no element of its own")
        leaves["type"] = named[1] or named[2]
        return leaves
    if text:
        defects.append(f"{UNREAD}: {excerpt(text)}")
    if element.is_mended or _LETTER.search(text):
        leaves[UNREAD] = text

    return leaves


# --- objects --------------------------------------------------------------------------------------


def _read_data(text: str, defects: Defects, depth: int) -> AgentReply | None:
    """Return what the last object with the keys of an agent says; None if there is none."""
    quoted = loaded(text) if text.lstrip().startswith('"') and _mentions_keys(text) else None
    if isinstance(quoted, str):
        return _read(quoted, defects, depth + 1)

    found = found_in(text)
    # models correct themselves, so the last one counts that says anything
    said = [agent for data in found.objects if (agent := _agent_in(data, 0)) is not None]
    telling = [each for each in said if each] or said
    if not telling:
        return None

    # of several calls of one turn the first counts, as of several actions
    if all(call_in(data) is not None for data in found.objects):
        defects.note_several(len(telling))
        telling = telling[:1]
    agent = telling[-1]
    if not found.is_valid:
        defects.append("the JSON is not valid")
    if isinstance(agent, str):
        inner = _read(agent, defects, depth + 1)
        return replace(inner, is_truncated=inner.is_truncated or not found.is_closed)
    if not found.is_closed:
        defects.append("the object is not closed")

    leaves = leaves_of(agent, defects)
    return reply_of(leaves, defects, is_truncated=not found.is_closed, is_valid=found.is_valid)


def _is_half_an_object(text: str) -> bool:
    """Return True for a text that begins as an object does and ends before that does."""
    begins = _DATA_FIRST.match(text)
    said = text[begins.end() - 1 :] if begins is not None else ""

    # a fence may be closed although the object in it is not
    return said.startswith("{") and not is_balanced(said.rstrip("`~ \n"))


def _agent_in(data: Any, depth: int) -> Pairs | str | None:
    """Return the object with the keys of an agent, or a text that holds an answer."""
    if isinstance(data, str):
        return data if _mentions_keys(data) else None
    if isinstance(data, list):
        data = data[-1] if data else None
    if not isinstance(data, Pairs) or len(data) > _MOST_KEYS or depth > _MOST_DEPTH:
        return None

    known = leaves_of(data, [])
    if not known.keys() & {"agent", *OF_AGENT} and (call := call_in(data)) is not None:
        return _agent_in(call, depth + 1)
    if "agent" in known:
        inner = known["agent"]
        agent = _agent_in(inner, depth + 1)
        return inner if agent is None and isinstance(inner, Pairs) else agent
    if known.keys() & OF_AGENT or known.keys() >= {"type", "tags"}:
        return data

    # an answer in something around it
    return _agent_in(next(iter(data.values())), depth + 1) if len(data) == 1 else None


def _mentions_keys(text: str) -> bool:
    return _ELEMENT.search(text) is not None or _KEY.search(text) is not None


# --- what the names mean ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskedAction:
    """The request in a reply, not yet checked against the available actions.

    Attributes:
        type: The leading word of the type, in lower case; empty if there is none.
        tags: The identifier: stripped, each run of spaces an underscore; empty if there is none.
        value: The text to store, exactly as it was given; None if there is none. JSON values other
            than text are compact JSON.
        fields: What else the action has, by name, as an action of the application may need it;
            tags and value, too, if they are lists or objects.
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
        surplus: The one of them about several actions, if there were several.
    """

    next_state: str | None = None
    thinking_log: str | None = None
    action: AskedAction | None = None
    is_truncated: bool = False
    defects: tuple[str, ...] = ()
    surplus: str | None = None


Leaves = dict[str, Any]
"""The names that the specification knows, and what a reply gives for each."""

UNREAD = "text of no element"
"""The name under which an element's own text stands among the names in it."""

_PARTS = ("type", "tags", "value")
_OF_AGENT = ("next_state", "thinking_log", "action", "agent")
_OF_MEMORY = (*AVAILABLE_ACTIONS, "")


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
    leaves: Leaves, defects: Defects, *, is_truncated: bool, is_valid: bool = True
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


def _parts_of(leaves: Leaves, defects: Defects) -> Leaves | None:
    """Return what a reply gives for type, tags and value, wherever; None if it has no action."""
    asked = leaves.get("action")
    if isinstance(asked, list) and asked:
        defects.note_several(len(asked))
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
    return action.type in (*WITH_VALUE, "") or (is_own and not action.fields)


def _fields_of(parts: Leaves) -> dict[str, Any]:
    """Return what an action has beside type, tags and value, and those of the two that are data."""
    fields = {
        key: value
        for key, value in parts.items()
        if key not in (*_PARTS, *_OF_AGENT, UNREAD)
        or (key in ("tags", "value") and isinstance(value, list | dict))
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
