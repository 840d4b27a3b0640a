"""What fake model servers are asked and say, and its tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, log
from typing import Any, Literal

_WRITTEN = re.compile(r"\w+|[^\w\s]+|\s+")
_COUNTED = re.compile(r"[^\W\d_]+|\d{1,3}|[^\w\s]|_|\n+")
_LETTERS_PER_TOKEN = 7

_NEVER = -9999.0
"""OpenAI's value for the logarithm of 0, which JSON cannot represent."""

_MOST_ALTERNATIVES = 20
"""Maximum number of tokens that a server lists for a place; the choice may not be among them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that reached the server.

    Args:
        path: ``/api/chat`` or ``/v1/chat/completions``.
        model: Model asked.
        prompt: The last message of a chat.
        body: The whole request.
    """

    path: str
    model: str
    prompt: str
    body: Mapping[str, Any] = field(repr=False)

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """JSON Schema for a chat's answer; None for a text."""
        schema = self.body.get("format")
        requested = self.body.get("response_format")
        if isinstance(requested, dict):
            # in the form of OpenAI, or in that of llama-cpp-python
            schema = requested.get("json_schema", requested).get("schema")

        return schema if isinstance(schema, dict) else None

    @property
    def letters(self) -> dict[str, str]:
        """The allowed answers by their letters; empty if the question asks for no letter."""
        description = self._members.get("letter", {}).get("description")
        letters: dict[str, str] = {} if description is None else json.loads(description)
        return letters

    @property
    def options(self) -> tuple[str, ...]:
        """The allowed answers: the schema's letters or enum."""
        options = self.letters.values() or self._members.get("next_state", {}).get("enum", ())
        return tuple(dict.fromkeys(options))

    @property
    def _members(self) -> Mapping[str, Any]:
        members: Mapping[str, Any] = (self.schema or {}).get("properties", {})
        return members


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply to a question.

    Args:
        text: Its reply.
        read: Number of prompt tokens that it has read.
        written: Number of tokens that it has written.
        ended: ``stop`` if the reply is complete, ``length`` if it was cut for lack of room.
    """

    text: str
    read: int
    written: int
    ended: Literal["stop", "length"] = "stop"


def likely_tokens(
    question: Asked, text: str, probabilities: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Return the tokens of a reply with their alternatives: those of its letter, if it has one.

    Args:
        question: The question.
        text: The reply.
        probabilities: Those of the options or of other tokens; if None, the letter is certain.
    """
    by_text = {state: letter for letter, state in question.letters.items()}
    written = _WRITTEN.findall(text)
    chosen = next((letter for letter in question.letters if letter in written), "")
    weights: Mapping[str, Any] = {chosen: 1.0}
    if probabilities is not None:
        weights = {by_text.get(each, each): chance for each, chance in probabilities.items()}

    return [_with_alternatives(each, weights) for each in written]


def _with_alternatives(text: str, weights: Mapping[str, Any]) -> dict[str, Any]:
    likely = weights if text in weights else {text: 1.0}
    alternatives = [_token(each, chance) for each, chance in likely.items()]
    token = next(each for each in alternatives if each["token"] == text)
    return {**token, "top_logprobs": alternatives[:_MOST_ALTERNATIVES]}


def _token(text: str, chance: Any) -> dict[str, Any]:
    is_possible = isinstance(chance, (int, float)) and chance > 0
    logarithm = log(chance) if is_possible else _NEVER if chance == 0 else chance
    return {"token": text, "logprob": logarithm, "bytes": list(text.encode())}


def count_tokens(text: str) -> int:
    """Count tokens as servers roughly do: a short word, three digits or a mark is one."""
    return sum(_tokens_in(match[0]) for match in _COUNTED.finditer(text))


def first_tokens(text: str, most: int) -> tuple[str, int]:
    """Return the beginning of a text that has so many tokens at most, and how many it has."""
    count = 0
    for match in _COUNTED.finditer(text):
        more = _tokens_in(match[0])
        if count + more > most:
            return text[: match.start()], count
        count += more

    return text, count


def _tokens_in(piece: str) -> int:
    return ceil(len(piece) / _LETTERS_PER_TOKEN)
