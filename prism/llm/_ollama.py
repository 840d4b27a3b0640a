"""Ollama's own dialect: its requests and its replies."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from prism.llm._addresses import with_port
from prism.llm._dialect import Advice, Dialect
from prism.llm._settings import RequestSettings
from prism.llm._window import window_in_running
from prism.reasoner._model_client import Chat, ChatReply, text_with_calls
from prism.reasoner._spending import count_of


def _body(settings: RequestSettings, chat: Chat, dropped: Container[str]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "messages": list(chat.messages),
        "options": _options(settings, chat),
        "stream": False,
    }
    if chat.schema is not None and "format" not in dropped:
        body["format"] = chat.schema
    if settings["think"] is not None and "think" not in dropped:
        body["think"] = settings["think"]
    if settings["keep_alive"]:
        body["keep_alive"] = settings["keep_alive"]

    return body


def _options(settings: RequestSettings, chat: Chat) -> dict[str, Any]:
    """Return the sampling options; a different ``num_ctx`` would load the model again."""
    sampling = {"temperature": settings["temperature"], "seed": settings["seed"] + chat.variation}
    limits = {
        "num_ctx": settings["window"],
        "num_predict": chat.most_tokens or settings["reply_tokens"],
    }
    return sampling | {name: limit for name, limit in limits.items() if limit is not None}


def _read(reply: Any, schema: Mapping[str, Any] | None) -> ChatReply:
    message = reply.get("message") if isinstance(reply, dict) else None
    if not isinstance(message, dict):
        raise ValueError("it has no message")

    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise ValueError("the content of its message is not text")

    calls = message.get("tool_calls")
    read, wrote = (count_of(reply.get(name)) for name in ("prompt_eval_count", "eval_count"))
    return ChatReply(
        text_with_calls(content or "", calls, schema) if calls else content or "",
        input_tokens=read,
        output_tokens=wrote,
        has_thoughts=bool(message.get("thinking")),
    )


OLLAMA = Dialect(
    advice=Advice(
        "check that 'ollama serve' is running there",
        "run  ollama pull {model}",
        "Set a larger window (--window, or OLLAMA_CONTEXT_LENGTH of the server), or shorten the "
        "prompt",
        "run  ollama signin  on that machine, or give a key in OLLAMA_API_KEY",
    ),
    key_variable="OLLAMA_API_KEY",
    full_address=with_port,
    chat="api/chat",
    body=_body,
    read=_read,
    parts={"format": ("format",), "think": ("think",)},
    listing="api/tags",
    listed=("models", ("model", "name")),
    counts=(("prompt_eval_count", "input_tokens"), ("eval_count", "output_tokens")),
    windows=[("api/ps", window_in_running)],
    version="api/version",
    show="api/show",
    load="api/generate",
    decision="v1/systemone",
    hidden="unknown: the server has no Ollama path for it; the answer will show",
)
