"""Options by letter: what one token of a reply, and its alternatives, say about each of them.

Several options may begin with the same token, such as ``engaging_like`` and ``engaging_reply``, so
the probabilities of their own first tokens would not tell them apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import exp
from string import ascii_uppercase
from typing import Any

from prism.errors import ReasonerError
from prism.reasoner._messages import ChatReply, Reply, first
from prism.reasoner._replies._reading import read_choice

KEY = "letter"
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


def letters_for(options: Sequence[str]) -> dict[str, str]:
    """Return the options by letters."""
    return dict(zip(ascii_uppercase, options, strict=False))


def letter_schema(letters: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON schema of a reply with a letter, which says what each letter stands for."""
    told = json.dumps(letters, ensure_ascii=False)
    letter = {"type": "string", "enum": list(letters), "description": told}
    return {"type": "object", "properties": {KEY: letter}, "required": [KEY]}


def either(letters: Sequence[str]) -> str:
    """Return letters as a choice in words, such as ``A, B or C``."""
    return " or ".join(filter(None, (", ".join(letters[:-1]), letters[-1])))


def read_letter(reply: ChatReply, letters: Mapping[str, str]) -> Reply:
    """Return the probabilities of the options, by their texts.

    They are None if the options have too little mass, or if the letter that the model wrote is not
    among its likely tokens: it was forced on the model.

    Args:
        reply: The reply.
        letters: The options by letter.

    Raises:
        ReasonerError: If the reply names no option.
    """
    letter = _letter_in(reply.text, letters)
    if letter is None:
        return Reply(reply.text)

    likely = _alternatives(_last_token(reply.tokens, letter))
    listed = {each: likely[each] for each in letters if each in likely}
    mass = min(1.0, sum(listed.values()))
    if mass < LEAST_MASS or letter not in listed:
        return Reply(reply.text, option_mass=round(mass, 6))

    return Reply(reply.text, _chances(letters, listed, likely), option_mass=round(mass, 6))


def _letter_in(text: str, letters: Mapping[str, str]) -> str | None:
    """Return the letter that a reply chooses; None if it names the option instead.

    Raises:
        ReasonerError: If it does neither.
    """
    try:
        return str(read_choice(text, list(letters), key=KEY))
    except ReasonerError:
        read_choice(text, list(letters.values()), key=KEY)
        return None


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


def _last_token(tokens: Sequence[Any], letter: str) -> Any:
    """Return the last token with a letter, since thoughts before the answer may have some, too."""
    return next((each for each in reversed(tokens) if _text(each) == letter), None)


def _text(token: Any) -> str:
    text = first(token, "token")
    return text.strip(_WRAPPING) if isinstance(text, str) else ""


def _alternatives(token: Any) -> dict[str, float]:
    """Return the most likely tokens at a token's position, with their probabilities."""
    found: dict[str, float] = {}
    for each in first(token, "top_logprobs") or ():
        # a letter may be listed in several spellings, with a space or a quote before it
        text = _text(each)
        found[text] = found.get(text, 0.0) + _probability(first(each, "logprob"))

    return found


def _probability(logarithm: Any) -> float:
    is_number = isinstance(logarithm, (int, float)) and not isinstance(logarithm, bool)
    # NaN and positive values are not logarithms of a probability
    return exp(max(logarithm, _NEVER)) if is_number and logarithm <= 0 else 0.0
