"""Ollama's wire format: questions read from requests, and the replies to them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from prism.testing._server.tokens import count_tokens

CHAT = "/api/chat"
DECIDE = "/v1/systemone"
LOAD = "/api/generate"

CHOSEN_PROBABILITY = 0.9
"""Probability of the option that was chosen; the others have the rest in equal parts."""

_TOKEN_NANOSECONDS = 1_000_000
_CREATED = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that reached the server.

    Args:
        path: ``/api/chat``, ``/v1/systemone`` or ``/v1/chat/completions``.
        model: Model asked.
        prompt: The last message of a chat; the state of a decision and, when choosing, its
            instructions.
        options: The allowed answers: the schema's enum, or the criteria.
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
    if path == DECIDE:
        prompt = _text(body["state"])
        options = [
            option for question in body["questions"].values() for option in question["criteria"]
        ]
    elif path == CHAT:
        prompt = str(body["messages"][-1]["content"])
        options = options_in(body.get("format"))
    else:
        prompt = body.get("prompt", "")

    return Asked(path, body["model"], prompt, tuple(dict.fromkeys(options)), body)


def options_in(schema: Any) -> list[str]:
    """Return the states that a schema allows as an answer, if it is a schema of states."""
    if not isinstance(schema, dict):
        return []

    members = schema.get("properties", {})
    options: list[str] = members.get(key_in(schema), {}).get("enum", [])
    return options


def key_in(schema: Any) -> str:
    """Return the key under which a schema asks for a choice: that of a state, or of its letter."""
    return "letter" if "letter" in schema.get("properties", {}) else "next_state"


def read_choices(asked: Asked) -> Iterator[tuple[str, Asked]]:
    """Return the choices of a decision by name, each as a question of its own."""
    for name, question in asked.body["questions"].items():
        prompt = f"{asked.prompt}\n\n{_text(question['instructions'])}"
        yield name, Asked(asked.path, asked.model, prompt, tuple(question["criteria"]), asked.body)


def chat_reply(asked: Asked, said: Said) -> dict[str, Any]:
    """Return the whole reply to a chat."""
    message = {"role": "assistant", "content": said.text}
    return {**_envelope(asked.model), **_counts(said), "message": message}


def choice_reply(
    chosen: str, options: tuple[str, ...], probabilities: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the answer to one choice of a decision, with the usual probabilities if None."""
    return {
        "type": "choice",
        "choice": chosen,
        "probabilities": weights_of(chosen, options) if probabilities is None else probabilities,
        "confidence": CHOSEN_PROBABILITY,
    }


def decision_reply(asked: Asked, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reply to a decision, given the answers to its choices."""
    usage = {"input_tokens": len(asked.prompt.split()), "output_tokens": 0}
    return {"model": asked.model, "answers": answers, "usage": usage}


def load_reply(asked: Asked) -> dict[str, Any]:
    """Return the reply to a request that only loads a model."""
    return {**_envelope(asked.model), "response": "", "done_reason": "load"}


def model_list(models: tuple[str, ...]) -> dict[str, Any]:
    """Return the models that the server has."""
    return {"models": [{"model": name, "name": name} for name in models]}


def model_details(*, decides: bool, window: int | None = None) -> dict[str, Any]:
    """Return the server's details of a model, with the longest window that it was trained for."""
    capabilities = ["completion", "decision"] if decides else ["completion"]
    known = {"general.architecture": "fake", "fake.context_length": window}
    return {
        "model_info": {} if window is None else known,
        "details": {"family": "fake"},
        "capabilities": capabilities,
    }


def running_models(windows: Mapping[str, int]) -> dict[str, Any]:
    """Return the models that are loaded, each with its window."""
    loaded = [{"model": name, "name": name, "context_length": windows[name]} for name in windows]
    return {"models": loaded}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content)


def weights_of(chosen: str, options: tuple[str, ...]) -> dict[str, float]:
    if len(options) == 1:
        return {chosen: 1.0}

    others = (1 - CHOSEN_PROBABILITY) / (len(options) - 1)
    return {option: CHOSEN_PROBABILITY if option == chosen else others for option in options}


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
