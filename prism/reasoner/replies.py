"""Reading the text of a reply: one option by its name or its letter, or an object of a form.

A reply with other words is refused, since they may retract its answer; then the model is asked once
more. Servers that follow a schema send no such words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from math import exp
from typing import Any
from unicodedata import normalize

from prism.errors import ReasonerError
from prism.reasoner.requests import Token, first
from prism.statechart.states import state_text

_THOUGHT = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection)\|?[>\]▷]"

_END_OF_THOUGHT = re.compile(rf"[<\[◁]\|?(?:/|end_(?:of_)?){_THOUGHT}", re.IGNORECASE)

_OPEN_THOUGHT = re.compile(
    rf"[<\[◁]\|?(?:(?:begin|start)_(?:of_)?)?{_THOUGHT}|<\|channel\|>", re.IGNORECASE
)

_FINAL_CHANNEL = re.compile(
    r"<\|channel\|>\s{0,9}final\b[^<]{0,40}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
)

_END_OF_TURN = re.compile(
    r"<\|(?:im_end|eot_id|endoftext|end_of_text|end_of_turn|end|return)\|>|</s>|<end_of_turn>"
)

_TAG = re.compile(
    r"</?(?:answer|output|response|tool_call|json)>"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>|<start_of_turn>model\b"
    r"|<\|(?:im_)?start\|>assistant\b|<\|[\w:]{1,30}\|>",
    re.IGNORECASE,
)
"""Marks of a template that servers leave in a reply."""

_FENCE = re.compile(r"\A(?:```|~~~)[A-Za-z]*|(?:```|~~~)\Z|\A`|`\Z")

_SPACE = "\ufeff \t\r\n"

_MOST_QUOTED = 120

_ARGUMENTS = ("arguments", "parameters")
"""Keys of a tool call under which its arguments stand."""

_TOOLS = ("answer", "choose", "decide", "respond", "select")
"""Names of tools that merely announce an answer."""

_REASON = re.compile(r"reason|explanation|rationale|why|because|thought", re.IGNORECASE)
"""Keys of texts that explain an answer without limiting it."""

_DASH = re.compile("[\u2010-\u2015]")

_BETWEEN_WORDS = re.compile(r"(?<=[^\W_])[\s_-]+(?=[^\W_])")

_SIGNS = " \t\r\n\"'`*.()[]\u201c\u201d\u2018\u2019\u3002\u200b\ufeff"
"""Quotation marks, full stops and the like around a name; behind it, exclamation marks, too."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model's reply says, as it is kept.

    Args:
        text: Its text.
        chosen: The text of the option that it names.
        chances: Probabilities of the options, by their texts, or None.
        option_mass: The probability of all options together.
    """

    text: str = ""
    chosen: str | None = None
    chances: Mapping[str, float] | None = None
    option_mass: float | None = None


def spoken(reply: str) -> str:
    """Return a model's own turn, without its thoughts and the marks of a template.

    A model that goes on after the end of its turn writes the turns of others.
    """
    text = _END_OF_THOUGHT.split(_FINAL_CHANNEL.split(reply)[-1])[-1]
    turn = next((each for each in _END_OF_TURN.split(text) if each.strip()), "")
    words = _TAG.sub("", _OPEN_THOUGHT.split(turn, maxsplit=1)[0]).strip(_SPACE)
    return _FENCE.sub("", words).strip(_SPACE)


def find_json(reply: str) -> Any:
    """Return the data in a model's reply: all of it, or the one object with words around it.

    Raises:
        ValueError: If there is none, or only a part.
    """
    words = spoken(reply)
    for text in (reply.strip(_SPACE), words, words[words.find("{") : words.rfind("}") + 1]):
        with suppress(ValueError, RecursionError):
            return json.loads(text, object_pairs_hook=_object)

    # not quoted, as small models would write it again
    raise ValueError("there is no whole JSON in the reply")


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


def read_choice(reply: str, options: Sequence[Any], *, key: str = "next_state") -> Any:
    """Read a choice from a model's reply: see `parse_reasoner_response`.

    Args:
        reply: The raw reply.
        options: What there was to choose from: states, or texts.
        key: The key of the answer.

    Returns:
        One of the options.

    Raises:
        ReasonerError: (a ValueError) if the reply names no option, or not clearly one.
    """
    name = _answer_in(_parsed(str(reply)), key)
    option = None if name is None else _named(name, options)
    if option is None:
        names = ", ".join(map(state_text, options))
        raise ReasonerError(f"the reply {quoted(reply)} does not name one of {names} alone")
    return option


def _parsed(reply: str) -> Any:
    """Return the data of a reply that is JSON, or else its words."""
    text = reply.strip(_SPACE)
    for each in (text, spoken(text)):
        try:
            return json.loads(each, object_pairs_hook=_object)
        except ReasonerError:
            raise
        except (ValueError, RecursionError):
            text = each
    return text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ReasonerError(f"the reply has a key twice: {quoted(dict(pairs))}")
    return members


def _answer_in(data: Any, key: str) -> str | None:
    """Return what an object has under a key, or the data itself, if it may be a name.

    Raises:
        ReasonerError: If an object has no such key, or a further text that may limit the answer.
    """
    if isinstance(data, list) and len(data) == 1:
        (data,) = data
    if isinstance(data, dict):
        data = _member(_arguments_in(data, key), key)
    if isinstance(data, (int, float)) and not isinstance(data, bool):
        return json.dumps(data)
    return data if isinstance(data, str) else None


def _arguments_in(data: dict[str, Any], key: str) -> Any:
    """Return the arguments of a tool call, or any other object itself."""
    arguments = [data[each] for each in _ARGUMENTS if each in data]
    if len(arguments) != 1 or folded(key) in map(folded, data):
        return data
    if (tool := data.get("name")) is not None and tool not in (*_TOOLS, key):
        raise ReasonerError(f"the reply calls {quoted(tool)}, which is no tool for its answer")
    return _parsed(arguments[0]) if isinstance(arguments[0], str) else arguments[0]


def _member(data: Any, key: str) -> Any:
    members = data if isinstance(data, dict) else {}
    names = [name for name in members if name == key or folded(name) == folded(key)]
    answers = [members[name] for name in names]
    if len(answers) != 1:
        raise ReasonerError(f"the reply has not one {key!r}: {quoted(data)}")
    for name, value in members.items():
        is_text = isinstance(value, (str, bool)) and value not in ("", answers[0])
        if is_text and not _REASON.search(name):
            problem = f"the reply has {name!r}, which may limit its answer"
            raise ReasonerError(f"{problem}: {quoted(data)}")
    return answers[0]


def _named(name: str, options: Sequence[Any]) -> Any | None:
    """Return the one option that a name stands for: exactly, or spelled as models do."""
    spellings = [(state_text(option), option) for option in options]
    spellings += [
        (f"{type(option).__name__}.{option.name}", option)
        for option in options
        if isinstance(option, Enum)
    ]
    for text, option in spellings:
        if text == name:
            return option

    alike = [option for text, option in spellings if folded(text) == folded(name)]
    return alike[0] if alike and all(option == alike[0] for option in alike) else None


def folded(name: str) -> str:
    """Return a name in lower case, without quotation marks, full stops and what joins its words."""
    plain = _DASH.sub("-", normalize("NFKC", name)).lstrip(_SIGNS).rstrip(f"{_SIGNS}!").casefold()
    return _BETWEEN_WORDS.sub("", re.sub(r"^(-?\d{1,15})\.0$", r"\1", plain))


def quoted(value: Any) -> str:
    """Return the repr of something, shortened, for a message."""
    text = repr(value)
    return text if len(text) <= _MOST_QUOTED else text[: _MOST_QUOTED - 3] + "..."


# Options by letter: what one token of a reply, and its alternatives, say about each of them. Names
# of several options may begin with the same token (engaging_like, engaging_reply).

LETTER = "letter"
"""The key under which a model answers with a letter."""

LEAST_MASS = 0.5
"""Least probability of all options together. Below it, the model would rather say something else,
so its preference among the options means little."""

_NEVER = -10_000.0
"""A logarithm whose probability is 0, since JSON may contain one that no float can hold."""

_WRAPPING = " \t\n\"'`:{}▁Ġ"
"""Characters that may share a token with an option's letter, as in ``"B`` and ``B"`` in JSON.

The last two are how some servers show a space.
"""


def read_letter(text: str, tokens: Sequence[Token], letters: Mapping[str, str]) -> Reply:
    """Return the probabilities of the options, by their texts.

    They are None if the options have too little mass, or more than all; or if the letter that the
    model wrote is not among its likely tokens: it was forced on the model. What stands behind the
    answer may have its letter, too, whose probabilities are others: nothing may.

    Args:
        text: The text of the reply.
        tokens: The tokens of the reply with their alternatives.
        letters: The options by letter.

    Raises:
        ReasonerError: If the reply names no option.
    """
    letter = read_choice(text, [*letters, *letters.values()], key=LETTER)
    ending = rf"(?:{LETTER}|\A)\W*{re.escape(letter)}\W*\Z"
    if letter not in letters or not re.search(ending, spoken(text), re.IGNORECASE):
        return Reply(text)

    # thoughts before the answer may have tokens with a letter, too; and words behind it
    likely = _probabilities(next((each for token, each in reversed(tokens) if token == letter), ()))
    listed = {each: likely[each] for each in letters if each in likely}
    mass = sum(listed.values())
    # a little more than 1 is rounding; much more, a token that is listed twice
    is_possible = LEAST_MASS <= mass <= 1.01 and letter in listed
    chances = _chances(letters, listed, likely) if is_possible else None
    return Reply(text, chances=chances, option_mass=round(mass, 6))


def _chances(
    letters: Mapping[str, str], listed: Mapping[str, float], likely: Mapping[str, float]
) -> dict[str, float]:
    """Return the probabilities of the options, which add up to 1.

    An option that is not listed is not impossible: its probability is at most that of the last
    listed token, and all unlisted tokens together have the remaining probability.
    """
    unlisted = max(1, len(letters) - len(listed))
    left = max(0.0, 1.0 - sum(likely.values()))
    bound = min(*likely.values(), left / unlisted) if len(likely) > 1 else left / unlisted

    weights = {option: listed.get(each, bound) for each, option in letters.items()}
    total = sum(weights.values())
    return {option: weight / total for option, weight in weights.items()}


def tokens_of(choice: Any) -> list[Token]:
    """Return the tokens of a reply with their alternatives; none if its server gives none."""
    logprobs = first(choice, "logprobs")
    listed = first(logprobs, "content") if not isinstance(logprobs, Sequence) else logprobs
    likely = ((each, first(each, "top_logprobs")) for each in listed or ())
    return [(_letter_in(each), alternatives) for each, alternatives in likely if alternatives]


def _probabilities(alternatives: Sequence[Any]) -> dict[str, float]:
    """Return the probabilities of a token's alternatives."""
    likely: dict[str, float] = {}
    for each in alternatives:
        # a letter may be listed in several spellings, with a space or a quote before it
        text = _letter_in(each)
        likely[text] = likely.get(text, 0.0) + _probability(first(each, "logprob"))
    return likely


def _letter_in(token: Any) -> str:
    text = first(token, "token")
    return text.strip(_WRAPPING) if isinstance(text, str) else ""


def _probability(logarithm: Any) -> float:
    is_number = isinstance(logarithm, (int, float)) and not isinstance(logarithm, bool)
    # NaN and positive values are not logarithms of a probability
    return exp(max(logarithm, _NEVER)) if is_number and logarithm <= 0 else 0.0
