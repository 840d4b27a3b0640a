"""Reading a reply: XML or JSON, whole or cut, and what had to be mended."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
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
from prism.cognition._replies._elements import Element, Elements
from prism.cognition._replies._tags import Markup, TooManyTagsError, resolved
from prism.cognition._settings import AVAILABLE_ACTIONS
from prism.statechart.reasoner._replies._objects import excerpt, without_thoughts

_ARGUMENTS = ("arguments", "parameters", "params", "args", "input", "kwargs")
_NAMES = ("name", "function", "tool", "tool_name")
_OF_AGENT = frozenset({"next_state", "thinking_log", "action"})
_CALLS = ("tool_calls", "tool_call", "function_call", "function")
MOST_CALL = 20_000
_MOST_SUFFIX = 40

_PREFIX = re.compile(r"\A\s*+(?:<\|python_tag\|>|\[TOOL_CALLS\]|```\w*+|<tool_call>)\s*+")
_SUFFIX = re.compile(r"\s*+(?:```|</tool_call>|<\|eo[mt]_id\|>|</s>)\s*+\Z")
_WITH_ARGS = re.compile(r"(\w{1,60})\s*+\[ARGS\]\s*+(?=\{)|<function=(\w{1,60})>\s*+(?=\{)")
_FUNCTION = re.compile(r"<function=(\w{1,60})>(.*)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=(\w{1,60})>((?:[^<]|<(?!/?parameter))*+)</parameter>")
_CALL = re.compile(r"\[?\s*+([A-Za-z_]\w{0,60})\s*+\(")
_LINE = re.compile(
    r"[ \t>*#-]{0,6}+[*_`\"]{0,3}+(next[ _-]?state|thinking[ _-]?log|action|type|tags?|value)"
    r"[*_`\"]{0,3}+\s{0,2}+[:=][*_`]{0,3}+[ \t]*+(.*)",
    re.IGNORECASE,
)


def call_in(data: Pairs, *, depth: int = 0) -> Pairs | None:
    """Return what a tool call in JSON asks for, as an agent; None if it is none.

    The forms are those of OpenAI (``tool_calls``, ``function_call``, arguments as text), of Qwen
    and Mistral (``name`` and ``arguments``) and of Llama (``name`` and ``parameters``).
    """
    inner = _wrapped_call(data)
    if inner is not None:
        return call_in(inner, depth=depth + 1) if depth < _MOST_DEPTH else None

    name, given = _first(data, _NAMES, str), _first(data, _ARGUMENTS, object)
    given = _loaded(given) if isinstance(given, str) else given
    if name is None or not isinstance(given, Pairs):
        return None

    return given if _OF_AGENT & given.keys() else _agent_of(name, given)


def _wrapped_call(data: Pairs) -> Pairs | None:
    """Return the call, the first of several, that an object holds under one of the usual keys."""
    for key in _CALLS:
        inner = data.get(key)
        inner = inner[0] if isinstance(inner, list) and inner else inner
        if isinstance(inner, Pairs):
            return inner

    return None


def _first(data: Pairs, keys: Sequence[str], kind: type) -> Any:
    return next((data[key] for key in keys if key in data and isinstance(data[key], kind)), None)


def _loaded(text: str) -> Any:
    """Return the value of a text of JSON; None if it is none."""
    try:
        return json.loads(text, strict=False, object_pairs_hook=Pairs)
    except (ValueError, RecursionError):
        return None


def rewritten(text: str, names: Collection[str]) -> str | None:
    """Return a reply that is nothing but a call, or lines of names and values, as JSON or XML.

    Args:
        text: The reply, without thoughts.
        names: Names of actions.
    """
    if len(text) > MOST_CALL:
        return None

    bare = _PREFIX.sub("", text.strip(), count=1)
    ending = _SUFFIX.search(bare, max(0, len(bare) - _MOST_SUFFIX))
    bare = (bare[: ending.start()] if ending is not None else bare).strip()

    return (
        _with_args(bare)
        or _with_parameters(bare)
        or _python_call(bare, names)
        or _named_element(bare, names)
        or _lines(bare)
    )


def _agent_of(name: str, given: Mapping[str, Any]) -> Pairs:
    parts = [(key, value) for key, value in given.items() if key != "type"]
    return Pairs([("action", Pairs([("type", name), *parts]))])


def _with_args(text: str) -> str | None:
    """Return ``name[ARGS]{...}`` and ``<function=name>{...}`` as JSON."""
    found = _WITH_ARGS.match(text)
    if found is None:
        return None
    try:
        given, end = json.JSONDecoder(strict=False).raw_decode(text, found.end())
    except (ValueError, RecursionError):
        return None
    if not isinstance(given, dict) or text[end:].strip() not in ("", "</function>"):
        return None

    return json.dumps(_agent_of(found[1] or found[2], given))


def _with_parameters(text: str) -> str | None:
    """Return ``<function=name><parameter=tags>...</parameter></function>`` as JSON."""
    found = _FUNCTION.fullmatch(text)
    if found is None or _PARAMETER.sub("", found[2]).strip():
        return None
    given = [(name, value.strip("\n")) for name, value in _PARAMETER.findall(found[2])]
    if len(dict(given)) < len(given):
        return None  # nobody can tell which is meant

    return json.dumps(_agent_of(found[1], dict(given)))


def _python_call(text: str, names: Collection[str]) -> str | None:
    """Return ``[name(tags="...")]`` as JSON."""
    found = _CALL.match(text)
    if found is None or found[1] not in names:
        return None
    try:
        body = ast.parse(text, mode="eval").body
        calls = body.elts if isinstance(body, ast.List) else [body]
        first = calls[0]
        if not all(isinstance(each, ast.Call) for each in calls) or not isinstance(first, ast.Call):
            return None
        keywords = {each.arg: ast.literal_eval(each.value) for each in first.keywords if each.arg}
        places = dict(zip(("tags", "value"), map(ast.literal_eval, first.args), strict=False))
        return json.dumps(_agent_of(found[1], {**places, **keywords}))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None


def _named_element(text: str, names: Collection[str]) -> str | None:
    """Return ``<storage_load>alice</storage_load>`` as an action, if there is no more than that."""
    known = "|".join(map(re.escape, names))
    found = re.fullmatch(
        rf"(?:<agent>\s*+)?(?:<action>\s*+)?<({known})(\s[^<>]{{0,500}}?)?(?:/>|>(.*)</\1\s*>)"
        r"\s*+(?:</action>\s*+)?(?:</agent>)?",
        text,
        re.DOTALL,
    )
    if found is None:
        return None

    name, attributes, body = found.groups("")
    if any(sign in body for sign in (f"<{name}", f"</{name}", "<action", "<type")):
        return None
    if "{" in body and "<" not in body:
        given = _loaded(body)
        return json.dumps(_agent_of(name, given)) if isinstance(given, Pairs) else None
    if body.strip() and "{" not in body and not re.search(r"<\w", body):
        body = f"<tags>{body}</tags>"

    return f'<agent><action type="{name}"{attributes}>{body}</action></agent>'


def _lines(text: str) -> str | None:
    """Return lines of ``name: value`` as JSON, if all lines are such, or go on a value."""
    parts = _named_lines(text)
    whole = {key: "\n".join(lines).strip() for key, lines in parts.items()}
    # behind a blank line, a model may have gone on to say something else
    if "" in parts.get("value", [])[1:]:
        return None
    if any("\n" in said for key, said in whole.items() if key not in ("value", "thinking_log")):
        return None

    kind = whole.get("type") or whole.get("action") or "<"
    told: dict[str, Any] = _picked(whole, "next_state", "thinking_log")
    if not re.search(r"[{<]", kind):
        told["action"] = {"type": kind, **_picked(whole, "tags", "value")}

    return json.dumps(told) if {"next_state", "action"} & told.keys() else None


def _picked(whole: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: whole[name] for name in names if name in whole}


def _named_lines(text: str) -> dict[str, list[str]]:
    """Return the lines of each name; none if there is a doubt whose they are."""
    parts: dict[str, list[str]] = {}
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        key = None if found is None else key_of(found[1])
        if key in parts or (key is None and not parts):
            return {}
        if found is not None and key is not None:
            parts[key] = [found[2].strip()]
        else:
            [*parts.values()][-1].append(line)

    return parts


MOST_CHARACTERS = 200_000
"""How much of a reply is read."""

MOST_DEFECTS = 20
_MOST_DEPTH = 3
"""How often one language may hold the other, escaped XML, or an object around the answer."""
_MOST_KEYS = 100
_MOST_SIGNS_OF_CALL = 200

_SAID = re.compile(r"</(?:think|thinking|thoughts?|reasoning)>", re.IGNORECASE)
_DATA_FIRST = re.compile(r"\s*+(?:(?:```|~~~)\w*+\s*+|json\b\s*+)?+[{\[\"]", re.IGNORECASE)
_ELEMENT = re.compile(r"<\s{0,3}(?:agent|action|next[-_ ]?state|type)[\s/>]", re.IGNORECASE)
_ESCAPED = re.compile(r"&(?:amp;){0,2}lt;\s{0,3}/?(?:agent|action|next_state|type)", re.IGNORECASE)
_NAMED_TYPE = re.compile(r"<([A-Za-z]\w{2,40})\s*+/?>\s*+(?:</\1>)?|([A-Za-z]\w{2,40})")
_LETTER = re.compile(r"[^\W\d_]")
_KEY = re.compile(
    r"[\"'](?:agent|next[-_ ]?state|action|arguments|parameters)\\{0,3}[\"']", re.IGNORECASE
)


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
    defects: list[str] = []
    readable = _readable(text, defects)
    reply = _read_call(readable, names, defects) or _read(readable, defects, 0)
    defects.extend(reply.defects)

    return replace(reply, defects=tuple(dict.fromkeys(defects))[:MOST_DEFECTS])


def _read_call(text: str, names: Sequence[str], defects: list[str]) -> AgentReply | None:
    """Return what a reply asks for that is nothing but a call; None if it is none."""
    if len(text) > MOST_CALL or text.count("<") > _MOST_SIGNS_OF_CALL:
        return None

    known = (*AVAILABLE_ACTIONS, *names)
    call = rewritten(without_thoughts(text) if "<" in text else text, known)
    if call is None:
        return None

    reply = _read(call, defects, 1)
    defects.append("the reply is not an agent element, but asks for an action in another form")
    return reply


def _readable(text: str, defects: list[str]) -> str:
    """Return a text that can be read in bounded time, and written as UTF-8."""
    if len(text) > MOST_CHARACTERS:
        defects.append(f"the reply has more than {MOST_CHARACTERS:,} characters")
        # what counts comes behind the thoughts, which are what makes replies so long
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

    is_element_first = _is_action(elements.loose) and elements.loose_start < text.find("{")
    is_data = not (is_data_first or is_element_first)
    reply = _read_data(text, defects, depth) if is_data else None

    return _without_agents(text, elements, defects, depth) if reply is None else reply


def _without_agents(text: str, elements: Elements, defects: list[str], depth: int) -> AgentReply:
    """Return what a text says that has neither an agent element nor an object with its keys."""
    if not elements.loose.is_empty:
        return _of_loose(elements, defects)
    if _ESCAPED.search(text):
        defects.append("the XML is escaped")
        return _read(resolved(text), defects, depth + 1)

    defects.extend(elements.defects)

    return AgentReply(
        is_truncated=elements.is_thinking or _is_half_an_object(text),
        defects=("there is no agent element and no object with its keys",),
    )


# --- elements -------------------------------------------------------------------------------------


def _of_agents(elements: Elements, defects: list[str], depth: int) -> AgentReply:
    """Return what the last complete agent element says, or else the last."""
    agents = elements.agents
    # models correct themselves, but begin once more and are cut off, too
    telling = list(filter(_says_something, agents))
    closed = [each for each in telling if each.is_closed]
    agent = (closed or telling or agents)[-1]
    if len(agents) > 1:
        defects.append(f"{len(agents)} agent elements; the last complete one is read")

    defects.extend(elements.defects)
    if _holds_reply(agent):
        return _truncated_if(_read(agent.stray, defects, depth + 1), not agent.is_closed)

    if not agent.is_closed:
        defects.append("the agent element is not closed")
    if closed[-2:-1] and _goes_on(closed[-2], agent):
        defects.append("state and thought are in an element of their own")
        agent.leaves = {**closed[-2].leaves, **agent.leaves}

    return _of_element(agent, defects, not agent.is_closed)


def _says_something(agent: Element) -> bool:
    return not agent.is_empty or bool(agent.stray.strip())


def _holds_reply(agent: Element) -> bool:
    """Return True for an agent element around an answer that is not read yet."""
    return agent.is_empty and ("{" in agent.stray or _ELEMENT.search(agent.stray) is not None)


def _goes_on(before: Element, agent: Element) -> bool:
    """Return True for an agent that only acts, after one that only thinks."""
    thinking = {"next_state", "thinking_log"}
    thinks = not before.actions and {*before.leaves, *before.attributes} <= thinking

    return thinks and not {*agent.leaves, *agent.attributes} & thinking


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
        defects.append("the end of the value is unclear, so the action is ignored")
        return replace(reply, action=None)

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
    if text.lstrip().startswith('"') and _mentions_keys(text):
        quoted = _loaded(text)
        if isinstance(quoted, str):
            return _read(quoted, defects, depth + 1)
    if not holds_objects(text):
        return None

    found = valid_objects(text)
    if not (found.is_valid and found.objects):
        found = objects_nearly(text)

    return _of_objects(found, defects, depth)


def _of_objects(found: FoundData, defects: list[str], depth: int) -> AgentReply | None:
    agent = _telling(found.objects)
    if agent is None:
        return None
    if not found.is_valid:
        defects.append("the JSON is not valid")
    if isinstance(agent, str):
        return _truncated_if(_read(agent, defects, depth + 1), not found.is_closed)
    if not found.is_closed:
        defects.append("the object is not closed")

    leaves = leaves_of(agent, defects)
    return reply_of(leaves, defects, is_truncated=not found.is_closed, is_valid=found.is_valid)


def _telling(objects: list[Pairs]) -> Pairs | str | None:
    """Return what counts of several objects, or of the texts in them; None if nothing does."""
    # models correct themselves, so the last one counts that says anything
    said = [agent for data in objects if (agent := _agent_in(data, 0)) is not None]
    telling = [each for each in said if each] or said
    if not telling:
        return None

    # of several calls of one turn the first counts, as of several actions
    are_calls = all(call_in(data) is not None for data in objects)
    return telling[0 if are_calls else -1]


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

    return _agent_in_object(data, depth)


def _agent_in_object(data: Pairs, depth: int) -> Pairs | str | None:
    known = leaves_of(data, [])
    if not known.keys() & {"agent", *_OF_AGENT} and (call := call_in(data)) is not None:
        return _agent_in_object(call, depth + 1)
    if "agent" in known:
        inner = known["agent"]
        agent = _agent_in(inner, depth + 1)
        return inner if agent is None and isinstance(inner, Pairs) else agent
    if known.keys() & _OF_AGENT or known.keys() >= {"type", "tags"}:
        return data

    # an answer in something around it
    return _agent_in(next(iter(data.values())), depth + 1) if len(data) == 1 else None


def _mentions_keys(text: str) -> bool:
    return _ELEMENT.search(text) is not None or _KEY.search(text) is not None


def _truncated_if(reply: AgentReply, is_truncated: bool) -> AgentReply:
    return replace(reply, is_truncated=reply.is_truncated or is_truncated)
