"""Reading a choice from a reply: one object, or one name, with nothing else beside it.

A reply with words around its answer is refused, since they may retract it; then the model is asked
once more. Servers that follow a schema send no such words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any
from unicodedata import normalize

from prism.errors import ReasonerError
from prism.reasoner._replies._objects import (
    FENCE,
    CutText,
    Members,
    excerpt,
    objects_in,
    parse_whole,
    what_is_said,
)
from prism.statechart.states import state_text

MOST_REPLY_CHARACTERS = 10_000
"""How long what a model says may be, without its thoughts, where it is not JSON as a whole."""

_MARK = re.compile(
    r"</?(?:answer|final_answer|output|response|tool_call|next_state|state|choice|decision|json|end)>"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>|<\|python_(?:start|end|tag)\|>",
    re.IGNORECASE,
)
"""Marks of a template that servers leave in a reply."""

_ARGUMENTS = frozenset({"arguments", "args", "parameters", "input", "function"})
"""Keys of a tool call that hold its arguments."""

_TOOL = re.compile(
    r"(?:choose|choice|pick|select|selection|set|submit|decide|decision|answer|respond|response"
    r"|reply|return|transition|move|to|next|new|final|state|action|option|json|output|result|tool)+"
)
"""Names of tools that say no more than that an answer follows."""

_BRACKETS = "[]{}() \t\r\n"
_BESIDE = re.compile(r"reason|explanation|rationale|why|because|thought|justification")
"""Keys of texts beside the answer that leave no doubt about it."""

_MOST_NESTING = 3
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_DASH = re.compile("[\u2010-\u2015]")
_JOINED = re.compile(r"(?<=[^\W_])[\s_\-'\u2019]+(?=[^\W_])")
_SIGNS = " \t\r\n\"'`*_.<>[]()\u201c\u201d\u2018\u2019\u3002"
"""Signs that models put around a name."""


def parse_reasoner_response(response_text: str, options: list[Any]) -> Any:
    """Read the chosen state from a model's reply.

    The reply is an object with the key ``next_state``, or consists of one option. The object may
    stand in a code fence, behind closed thoughts (``<think>`` and the like) or in a tool call, and
    may have a reason beside the state. The state may be written in any case, with spaces or
    hyphens, or as a member of its enum. A state outside the options is never accepted.

    Args:
        response_text: The raw reply.
        options: The states to choose from.

    Returns:
        One of the options.

    Raises:
        ReasonerError: (a ValueError) if the reply is neither.
    """
    return read_choice(response_text, options)


def read_choice(
    response_text: str,
    options: Sequence[Any],
    *,
    key: str = "next_state",
    labels: Mapping[str, Any] | None = None,
) -> Any:
    """Read a choice from a model's reply: see `parse_reasoner_response`.

    Args:
        response_text: The raw reply.
        options: What there was to choose from: states, or texts.
        key: Under which key the answer was asked for.
        labels: Options by the letters or numbers under which they were offered.

    Returns:
        One of the options.

    Raises:
        ReasonerError: (a ValueError) if the reply names no option, or not clearly one.
    """
    reply, chosen = str(response_text), []
    for data in _parsed(reply):
        given = _answer_in(data, key, options, reply)
        option = _named(given, options, labels or {})
        if option is None:
            names = ", ".join(map(state_text, options))
            raise ReasonerError(f"the reply names {excerpt(given)}, which is not one of {names}")
        chosen.append(option)

    if any(option != chosen[0] for option in chosen):
        raise ReasonerError(f"the reply {excerpt(reply)} names several options")
    return chosen[0]


def _parsed(reply: str) -> list[Any]:
    """Return the objects that a reply consists of, or else its words; a model may repeat itself.

    Raises:
        ReasonerError: If it is too long, or has words beside data.
    """
    whole = parse_whole(reply.strip("\ufeff \t\r\n"))
    if whole is not None:
        return [whole]

    said = _MARK.sub("", FENCE.sub("", what_is_said(reply))).strip("\ufeff \t\r\n`")
    if len(said) > MOST_REPLY_CHARACTERS:
        raise ReasonerError(
            f"the reply {excerpt(reply)} is longer than {MOST_REPLY_CHARACTERS} characters"
        )
    if "{" not in said:
        return [said]

    found, read_until, beside = list(objects_in(said)), 0, ""
    if not found:
        return [said]
    for each in found:
        beside += said[read_until : each.start]
        read_until = each.end
    if any(each.has_comment for each in found) or (beside + said[read_until:]).strip(_BRACKETS):
        raise ReasonerError(
            f"the reply {excerpt(reply)} has words around its answer that may retract it"
        )

    return [each.members for each in found]


def _answer_in(data: Any, key: str, options: Sequence[Any], reply: str, depth: int = 0) -> Any:
    """Return the answer in data: itself, or what an object has under a key.

    Raises:
        ReasonerError: If an object has no such key, has it twice, or has keys that may limit it.
    """
    if isinstance(data, list) and not isinstance(data, Members) and len(data) == 1:
        (data,) = data
    if not isinstance(data, Members):
        return data

    answers = [value for each, value in data if _folded_key(each) == _folded_key(key)]
    calls = [value for each, value in data if _folded_key(each) in _ARGUMENTS]
    tools = [value for each, value in data if each == "name" and isinstance(value, str)]
    if not answers and len(calls) == 1 and depth < _MOST_NESTING:
        if not all(_TOOL.fullmatch(_folded_key(tool)) for tool in tools):
            raise ReasonerError(f"the reply {excerpt(reply)} calls a tool that nobody offered")
        inner = parse_whole(calls[0]) if isinstance(calls[0], str) else calls[0]
        return _answer_in(inner, key, options, reply, depth + 1)
    if len(answers) != 1:
        count = "several" if answers else "no"
        raise ReasonerError(f"the JSON of the reply {excerpt(reply)} has {count} {key!r}")
    for each, value in data:
        is_doubtful = isinstance(value, (str, bool)) and value not in ("", answers[0])
        if is_doubtful and not _BESIDE.search(_folded_key(each)) and not _named(each, options, {}):
            raise ReasonerError(f"the reply {excerpt(reply)} has {each!r}, which may limit it")

    answer = answers[0]
    is_single = isinstance(answer, list) and len(answer) == 1 and isinstance(answer[0], str)
    return answer[0] if is_single else answer


def _named(given: Any, options: Sequence[Any], labels: Mapping[str, Any]) -> Any | None:
    """Return the one option that a value names: exactly, or spelled as models do."""
    if isinstance(given, (bool, int, float)):
        given = str(given).lower()
    if not isinstance(given, str) or isinstance(given, CutText):
        return None

    spellings = [(state_text(option), option) for option in options]
    spellings += [
        (f"{type(option).__name__}.{option.name}", option)
        for option in options
        if isinstance(option, Enum)
    ]
    spells: tuple[Callable[[str], str], ...] = (str, str.strip, _in_any_case, _compact)
    for spell in spells:
        alike = [option for text, option in spellings if spell(text) == spell(given)]
        if alike:
            return alike[0] if all(option == alike[0] for option in alike) else None

    label, _, name = re.sub(r"^option\s+", "", _in_any_case(given)).partition(" ")
    label = label.rstrip(".:)")
    labelled = labels.get(label, labels.get(label.upper()))
    if labelled is None or not name:
        return labelled

    return labelled if _named(name, options, {}) == labelled else None


def _in_any_case(text: str) -> str:
    plain = _DASH.sub("-", normalize("NFKC", _INVISIBLE.sub("", text)))
    return plain.lstrip(_SIGNS).rstrip(_SIGNS + "!").casefold()


def _compact(text: str) -> str:
    """Return a name as it is without the signs between its words, and a whole number as such."""
    plain = _in_any_case(text)
    return _JOINED.sub("", re.sub(r"^(-?\d{1,15})\.0$", r"\1", plain))


def _folded_key(key: str) -> str:
    return re.sub(r"[\W_]+", "", key).casefold()


ROUNDING = 0.05
"""How far from one the sum of probabilities may be, as rounding makes it."""


def read_probabilities(given: Any, options: list[Any]) -> dict[str, float]:
    """Check a decision model's probabilities, and make them sum to one.

    Args:
        given: Probability of every option by its text; other entries are refused.
        options: The states to choose from.

    Returns:
        The probabilities, in the options' order.

    Raises:
        ReasonerError: (a ValueError) if one is missing, is not a number from 0 to 1 or belongs to
            no option, or if they do not sum to one.
    """
    texts = [state_text(option) for option in options]
    if not isinstance(given, Mapping):
        raise ReasonerError(f"the reply has {excerpt(given)} instead of probabilities")

    _require_chances(given, texts)
    total = sum(given[text] for text in texts)
    if abs(total - 1) > ROUNDING:
        raise ReasonerError(f"the reply's probabilities sum to {total:g} instead of 1")

    return {text: given[text] / total for text in texts}


def _require_chances(given: Mapping[Any, Any], texts: Sequence[str]) -> None:
    """Refuse an option without a probability, and a probability without an option."""
    for text in texts:
        value = given.get(text)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise ReasonerError(
                f"the reply gives {text!r} the probability {excerpt(value)}, "
                "which is not a number from 0 to 1"
            )

    stranger = next((text for text in given if text not in texts), None)
    if stranger is not None:
        raise ReasonerError(
            f"the reply gives a probability to {excerpt(stranger)}, which is not one of "
            f"{', '.join(texts)}"
        )


_KEYS = ("reason", "reasons", "reasoning", "explanation", "rationale", "why", "because")
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def read_reason(reply: str, most_characters: int) -> str | None:
    """Return the reason in a reply on one line, without what a terminal or a log would obey.

    Args:
        reply: The raw reply.
        most_characters: How long it may be; what is longer is cut.

    Returns:
        The reason; None if there is none.
    """
    reason = next((text for text in map(_reason_among, _members_in(reply)) if text), None)
    if reason is None:
        return None

    printable = "".join(sign if sign.isprintable() else " " for sign in reason)
    line = " ".join(printable.split())

    return (
        line if len(line) <= most_characters else f"{line[: most_characters - 1]}{_ELLIPSIS}"
    ) or None


def _members_in(reply: str) -> list[Members]:
    """Return the objects in a reply, the last one first."""
    whole = parse_whole(reply)
    if whole is not None:
        return [whole] if isinstance(whole, Members) else []

    return [found.members for found in objects_in(what_is_said(reply))][::-1]


def _reason_among(members: Members) -> str | None:
    named = {key.casefold(): value for key, value in members}
    return next(
        (value for key in _KEYS if isinstance(value := named.get(key), str) and value.strip()), None
    )
