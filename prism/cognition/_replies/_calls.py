"""Actions in other forms: as models call tools, as elements of their own names, and as lines."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from prism.cognition._replies._data import Pairs, loaded
from prism.cognition._replies._tags import key_of

MOST_CALL = 20_000
_MOST_SUFFIX = 40
_MOST_WRAPPED = 3

_CALLS = ("tool_calls", "tool_call", "function_call", "function")
_NAMES = ("name", "function", "tool", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "params", "args", "input", "kwargs")
OF_AGENT = frozenset({"next_state", "thinking_log", "action"})

_PREFIX = re.compile(r"\A\s*+(?:<\|python_tag\|>|\[TOOL_CALLS\]|```\w*+|<tool_call>)\s*+")
_SUFFIX = re.compile(r"\s*+(?:```|</tool_call>|<\|eo[mt]_id\|>|</s>)\s*+\Z")
_FUNCTION = re.compile(
    r"(?:(\w{1,60})\s*+\[ARGS\]|<function=(\w{1,60})>)(.*?)(</function>)?", re.DOTALL
)
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
    wrapped = (data.get(key) for key in _CALLS)
    firsts = (each[0] if isinstance(each, list) and each else each for each in wrapped)
    inner = next((each for each in firsts if isinstance(each, Pairs)), None)
    if inner is not None:
        return call_in(inner, depth=depth + 1) if depth < _MOST_WRAPPED else None

    name, given = _first(data, _NAMES, str), _first(data, _ARGUMENTS, object)
    given = loaded(given) if isinstance(given, str) else given
    if name is None or not isinstance(given, Pairs):
        return None

    return given if OF_AGENT & given.keys() else _agent_of(name, given)


def _first(data: Pairs, keys: Sequence[str], kind: type) -> Any:
    return next((data[key] for key in keys if key in data and isinstance(data[key], kind)), None)


def _agent_of(name: str, given: dict[str, Any]) -> Pairs:
    # a tool called action has the type among its arguments
    kind = given.get("type", name) if name == "action" else name
    return Pairs([("action", Pairs([*(given | {"type": kind}).items()]))])


def rewritten(text: str, names: Collection[str]) -> str | None:
    """Return a reply that is nothing but a call, or lines of names and values, as JSON or XML.

    Args:
        text: The reply, without thoughts.
        names: Names of actions.
    """
    bare = _PREFIX.sub("", text.strip(), count=1)
    ending = _SUFFIX.search(bare, max(0, len(bare) - _MOST_SUFFIX))
    bare = (bare[: ending.start()] if ending is not None else bare).strip()

    return next(filter(None, (form(bare, names) for form in _FORMS)), None)


def _function(text: str, _names: Collection[str]) -> str | None:
    """Return ``name[ARGS]{...}``, or ``<function=name>`` with an object or parameters, as JSON."""
    found = _FUNCTION.fullmatch(text)
    if found is None:
        return None

    given = loaded(found[3])
    if found[4] and not _PARAMETER.sub("", found[3]).strip():
        given = Pairs([(key, value.strip("\n")) for key, value in _PARAMETER.findall(found[3])])
    if not isinstance(given, Pairs) or given.repeated:
        return None  # nobody can tell which is meant

    return json.dumps(_agent_of(found[1] or found[2], given))


def _python_call(text: str, names: Collection[str]) -> str | None:
    """Return ``[name(tags="...")]`` as JSON."""
    found = _CALL.match(text)
    if found is None or found[1] not in names:
        return None
    try:
        body = ast.parse(text, mode="eval").body
        calls = body.elts if isinstance(body, ast.List) else [body]
        if not all(isinstance(each, ast.Call) for each in calls):
            return None
        first: Any = calls[0]
        given = dict(zip(("tags", "value"), map(ast.literal_eval, first.args), strict=False))
        given |= {each.arg: ast.literal_eval(each.value) for each in first.keywords if each.arg}
        return json.dumps(_agent_of(found[1], given))
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
        given = loaded(body)
        return json.dumps(_agent_of(name, given)) if isinstance(given, Pairs) else None
    if body.strip() and "{" not in body and not re.search(r"<\w", body):
        body = f"<tags>{body}</tags>"

    return f'<agent><action type="{name}"{attributes}>{body}</action></agent>'


def _lines(text: str, _names: Collection[str]) -> str | None:
    """Return lines of ``name: value`` as JSON, if all lines are such, or go on a value."""
    parts: dict[str, str] = {}
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        key = next(reversed(parts), None) if found is None else key_of(found[1])
        # behind a blank line, a model may have gone on to say something else
        is_gone_on = found is None and key == "value" and not line
        if key is None or is_gone_on or (found is not None and key in parts):
            return None
        parts[key] = f"{parts[key]}\n{line}" if found is None else found[2].strip()

    whole = {key: said.strip() for key, said in parts.items()}
    if any("\n" in said for key, said in whole.items() if key not in ("value", "thinking_log")):
        return None

    kind = whole.get("type") or whole.get("action") or "<"
    told: dict[str, Any] = _picked(whole, "next_state", "thinking_log")
    if not re.search(r"[{<]", kind):
        told["action"] = {"type": kind, **_picked(whole, "tags", "value")}

    return json.dumps(told) if {"next_state", "action"} & told.keys() else None


def _picked(whole: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: whole[name] for name in names if name in whole}


_FORMS: tuple[Callable[[str, Collection[str]], str | None], ...] = (
    _function,
    _python_call,
    _named_element,
    _lines,
)
