"""Ollama's wire format: questions read from requests, and the replies to them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, log
from typing import Any, Literal

CHAT = "/api/chat"
LOAD = "/api/generate"

TOKEN = re.compile(r"\w+|[^\w\s]+|\s+")
_COUNTED = re.compile(r"[^\W\d_]+|\d{1,3}|[^\w\s]|_|\n+")
_LETTERS_PER_TOKEN = 7
_COUNTED = re.compile(r"[^\W\d_]+|\d{1,3}|[^\w\s]|_|\n+")
_LETTERS_PER_COUNTED = 7

_NEVER = -9999.0
"""OpenAI's value for the logarithm of 0, which JSON cannot represent."""

_MOST_ALTERNATIVES = 20
"""Maximum number of tokens that a server lists for a place; the choice may not be among them."""

_TOKEN_NANOSECONDS = 1_000_000
_CREATED = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that reached the server.

    Args:
        path: ``/api/chat`` or ``/v1/chat/completions``.
        model: Model asked.
        prompt: The last message of a chat.
        options: The allowed answers: the schema's enum.
        body: The whole request.
    """

    path: str
    model: str
    prompt: str
    options: tuple[str, ...]
    body: Mapping[str, Any] = field(repr=False)

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """JSON Schema for a chat's answer; None for a text."""
        schema = self.body.get("format")
        asked_for = self.body.get("response_format")
        if isinstance(asked_for, dict):
            # in the form of OpenAI, or in that of llama-cpp-python
            schema = asked_for.get("json_schema", asked_for).get("schema")

        return schema if isinstance(schema, dict) else None


@dataclass(frozen=True, slots=True)
class Said:
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

    @classmethod
    def simply(cls, asked: Asked, text: str) -> Said:
        """Return a complete reply to a question, counting each word as a token."""
        return cls(text, count_tokens(asked.prompt), len(text.split()))


def read_question(path: str, body: Any) -> Asked:
    """Return the question of a request.

    Raises:
        AttributeError, IndexError, KeyError, TypeError: If the request lacks a part of it.
    """
    options: list[str] = []
    if path == CHAT:
        prompt = str(body["messages"][-1]["content"])
        options = options_in(body.get("format"))
    else:
        prompt = body.get("prompt", "")

    return Asked(path, body["model"], prompt, tuple(dict.fromkeys(options)), body)


def options_in(schema: Any) -> list[str]:
    """Return the states that a schema allows as an answer, if it is a schema of states."""
    if letters := letters_in(schema):
        return list(letters.values())
    members = schema.get("properties", {}) if isinstance(schema, dict) else {}
    options: list[str] = members.get("next_state", {}).get("enum", [])
    return options


def letters_in(schema: Any) -> dict[str, str]:
    """Return the states by the letters that a schema allows; nothing if it asks for no letter."""
    members = schema.get("properties", {}) if isinstance(schema, dict) else {}
    told = members.get("letter", {}).get("description")
    letters: dict[str, str] = {} if told is None else json.loads(told)
    return letters


def chosen_reply(asked: Asked, chosen: str) -> dict[str, str]:
    """Return the reply to a question, in the form that its schema asks for."""
    letters = letters_in(asked.schema)
    if not letters:
        return {"next_state": chosen}
    return {"letter": next((each for each, text in letters.items() if text == chosen), chosen)}


def likely_tokens(
    asked: Asked, text: str, probabilities: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """Return the tokens of a reply with their alternatives: those of its letter, if it has one.

    Args:
        asked: The question.
        text: The reply.
        probabilities: Those of the options or of other tokens; if None, the letter is certain.
    """
    letters = letters_in(asked.schema)
    by_text = {state: letter for letter, state in letters.items()}
    written = TOKEN.findall(text)
    chosen = next((letter for letter in letters if letter in written), "")
    weights: Mapping[str, Any] = {chosen: 1.0}
    if probabilities is not None:
        weights = {by_text.get(each, each): chance for each, chance in probabilities.items()}

    return [_with_alternatives(each, weights) for each in written]


def _with_alternatives(text: str, weights: Mapping[str, Any]) -> dict[str, Any]:
    likely = weights if text in weights else {text: 1.0}
    alternatives = [_token(each, chance) for each, chance in likely.items()]
    own = next(each for each in alternatives if each["token"] == text)
    return {**own, "top_logprobs": alternatives[:_MOST_ALTERNATIVES]}


def _token(text: str, chance: Any) -> dict[str, Any]:
    is_possible = isinstance(chance, (int, float)) and chance > 0
    logarithm = log(chance) if is_possible else _NEVER if chance == 0 else chance
    return {"token": text, "logprob": logarithm, "bytes": list(text.encode())}


def chat_reply(
    asked: Asked, said: Said, tokens: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the whole reply to a chat, with the log-probabilities of its tokens, if any."""
    message = {"role": "assistant", "content": said.text}
    chances = {} if tokens is None else {"logprobs": tokens}
    return {**_envelope(asked.model), **_counts(said), "message": message, **chances}


def load_reply(asked: Asked) -> dict[str, Any]:
    """Return the reply to a request that only loads a model."""
    return {**_envelope(asked.model), "response": "", "done_reason": "load"}


def model_list(models: tuple[str, ...]) -> dict[str, Any]:
    """Return the models that the server has."""
    return {"models": [{"model": name, "name": name} for name in models]}


def model_details(window: int | None = None) -> dict[str, Any]:
    """Return the server's details of a model, with the longest window that it was trained for."""
    known = {"general.architecture": "fake", "fake.context_length": window}
    return {
        "model_info": {} if window is None else known,
        "details": {"family": "fake"},
        "capabilities": ["completion"],
    }


def running_models(windows: Mapping[str, int]) -> dict[str, Any]:
    """Return the models that are loaded, each with its window."""
    loaded = [{"model": name, "name": name, "context_length": windows[name]} for name in windows]
    return {"models": loaded}


def _envelope(model: str) -> dict[str, Any]:
    return {"model": model, "created_at": _CREATED, "done": True}


def _counts(said: Said) -> dict[str, Any]:
    # each token takes a millisecond
    return {
        "done_reason": said.ended,
        "total_duration": (said.read + said.written) * _TOKEN_NANOSECONDS,
        "load_duration": 0,
        "prompt_eval_count": said.read,
        "prompt_eval_duration": said.read * _TOKEN_NANOSECONDS,
        "eval_count": said.written,
        "eval_duration": said.written * _TOKEN_NANOSECONDS,
    }


# Tokens of a text, counted as servers roughly do


def count_tokens(text: str) -> int:
    """Count tokens as servers roughly do: a short word, three digits or a mark is one."""
    return sum(_tokens_in(found[0]) for found in _COUNTED.finditer(text))


def first_tokens(text: str, most: int) -> tuple[str, int]:
    """Return the beginning of a text that has so many tokens at most, and how many it has."""
    count = 0
    for found in _COUNTED.finditer(text):
        more = _tokens_in(found[0])
        if count + more > most:
            return text[: found.start()], count
        count += more

    return text, count


def last_tokens(text: str, most: int) -> str:
    """Return the end of a text that has so many tokens at most."""
    count = 0
    for found in reversed(list(_COUNTED.finditer(text))):
        count += _tokens_in(found[0])
        if count > most:
            return text[found.end() :]

    return text


def _tokens_in(piece: str) -> int:
    return ceil(len(piece) / _LETTERS_PER_TOKEN)
