"""OpenAI's dialect (vLLM, llama.cpp, LM Studio and others): its requests and replies."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any

from prism.llm._addresses import with_version
from prism.llm._dialect import OTHER_FORM, Advice, Dialect
from prism.llm._letters import MOST_ALTERNATIVES, listed_in
from prism.llm._settings import RequestSettings
from prism.llm._window import window_in_models, window_in_props
from prism.reasoner._model_client import (
    Chat,
    ChatReply,
    declined_in,
    text_with_calls,
)
from prism.reasoner._spending import choice_in, count_of, first

_PARTS: Mapping[str, tuple[str, ...]] = {
    "logprobs": ("logprob",),
    "response_format": ("response_format", "schema", "grammar", "guided", "structured"),
    "chat_template_kwargs": ("chat_template", "think"),
    "reasoning_effort": ("reasoning", "effort", "think"),
    "seed": ("seed",),
    "temperature": ("temperature",),
    "max_completion_tokens": ("max_completion_tokens",),
    "max_tokens": ("max_tokens",),
}
"""Parts of a request that a server may refuse, and the words by which it names them."""

_FEW_ALTERNATIVES = 5
_MANY = f"more than {_FEW_ALTERNATIVES} top_logprobs"
"""Among the refused parts, stands for the usual number of alternatives."""

_A_FEW = re.compile(r"\b([5-9]|1\d)\b")
"""A number of alternatives that a server allows instead."""


def _body(settings: RequestSettings, chat: Chat, dropped: Container[str]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "messages": list(chat.messages),
        "temperature": settings["temperature"],
        "seed": settings["seed"] + chat.variation,
        **thinking(settings["think"]),
    }
    if chat.schema is not None:
        body["response_format"] = response_format(chat.schema, other=OTHER_FORM in dropped)
    if (most_tokens := chat.most_tokens or settings["reply_tokens"]) is not None:
        # OpenAI's newer models take only the other name
        body["max_completion_tokens" if "max_tokens" in dropped else "max_tokens"] = most_tokens
    if chat.chances and "logprobs" not in dropped:
        listed = _FEW_ALTERNATIVES if _MANY in dropped else MOST_ALTERNATIVES
        body |= {"logprobs": True, "top_logprobs": listed}

    return {name: part for name, part in body.items() if name not in dropped}


def thinking(think: bool | str | None) -> dict[str, Any]:
    """Return the part of a request on whether, or how much, the model may think first."""
    if think is None:
        return {}
    if isinstance(think, str):
        return {"reasoning_effort": think}

    # the first is Ollama's and OpenAI's word, the second vLLM's, llama.cpp's and SGLang's
    switch = {"chat_template_kwargs": {"enable_thinking": think}}
    return switch if think else {"reasoning_effort": "none", **switch}


def response_format(schema: Mapping[str, Any], *, other: bool = False) -> dict[str, Any]:
    """Return the part of a request with a JSON schema; strict if possible, which OpenAI requires.

    Args:
        schema: The schema.
        other: Whether to use the form of llama-cpp-python instead of OpenAI's.
    """
    if other:
        return {"type": "json_object", "schema": dict(schema)}

    named: dict[str, Any] = {"name": "answer", "schema": dict(schema)}
    if _is_flat(schema):
        # strict schemas must exclude additional properties
        named["schema"]["additionalProperties"] = False
        named["strict"] = True

    return {"type": "json_schema", "json_schema": named}


def _is_flat(schema: Mapping[str, Any]) -> bool:
    """Return True for an object that a strict schema can describe: plain members, all required."""
    members = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(members, Mapping):
        return False

    simple = all(
        isinstance(member, Mapping)
        and member.get("type") in ("string", "number", "integer")
        # which strict schemas must not have
        and "maxLength" not in member
        for member in members.values()
    )
    return simple and set(schema.get("required", ())) == set(members)


def _other_form(part: str, said: str, body: Mapping[str, Any]) -> str | None:
    """Return what stands for a part in its usual form, if a refusal names another form."""
    if part == "response_format" and "json_object" in said.lower():
        return OTHER_FORM if body[part]["type"] == "json_schema" else part
    # behind the address, which has numbers, too
    if part == "logprobs" and _A_FEW.search(said.rpartition(" answered ")[2]):
        return _MANY if body.get("top_logprobs", 0) > _FEW_ALTERNATIVES else part

    return None


def read_completion(reply: Any, schema: Mapping[str, Any] | None = None) -> ChatReply:
    """Read the reply to a conversation.

    Args:
        reply: The reply.
        schema: The JSON schema that its text should follow.

    Raises:
        ValueError: If it is not a valid reply.
    """
    choice = choice_in(reply)
    message = None if choice is reply else first(choice, "message")
    if not isinstance(message, dict):
        raise ValueError("it has no choices with a message")

    tokens = first(first(choice, "logprobs"), "content")
    tokens = tokens if isinstance(tokens, list) else []

    text, calls = _text_of(message.get("content")), message.get("tool_calls")
    usage = first(reply, "usage")
    return ChatReply(
        text_with_calls(text, calls, schema) if calls else text,
        input_tokens=count_of(first(usage, "prompt_tokens")),
        output_tokens=count_of(first(usage, "completion_tokens")),
        tokens=[token for token in tokens if isinstance(token, dict) and listed_in(token)],
        declined=declined_in(reply),
        # vLLM's and DeepSeek's name, and that of OpenRouter and Ollama
        has_thoughts=bool(first(message, "reasoning_content", "reasoning")),
    )


def _text_of(content: Any) -> str:
    """Return a message's text, which some servers send in parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))

    return content if isinstance(content, str) else ""


OPENAI = Dialect(
    advice=Advice(
        "check that the server is running, and that the port is right",
        "start the server with {model}, or name a model that it lists",
        "Start the server with a larger window, or shorten the prompt",
        "give its key in OPENAI_API_KEY, or in a variable of your own (--key-variable)",
    ),
    key_variable="OPENAI_API_KEY",
    full_address=with_version,
    chat="chat/completions",
    body=_body,
    read=read_completion,
    parts=_PARTS,
    other_form=_other_form,
    listing="models",
    listed=("data", ("id",)),
    counts=(("prompt_tokens",), ("completion_tokens",)),
    # the second is llama.cpp's, which has it beside the paths of OpenAI
    windows=[("models", window_in_models), ("../props", window_in_props)],
    # llama.cpp serves its one model by any name, gateways serve more than they list
    lists_all=False,
    hidden_decisions="unknown: it offers log-probabilities; the answer will show",
)
