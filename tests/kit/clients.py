"""Clients of language models, most of which need no server."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from math import log
from typing import Any

import ollama


class Model:
    """A client that gives the same reply every time, or raises."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply

    async def run(self, prompt: str) -> str:
        await asyncio.sleep(0)
        if isinstance(self.reply, BaseException):
            raise self.reply
        return str(self.reply)


class Client:
    """A client that gives replies, or raises, in order, and keeps the prompts that it is asked."""

    def __init__(self, replies: Iterable[str | Exception]) -> None:
        self.prompts: list[str] = []
        self._replies = iter(replies)

    async def run(self, prompt: str) -> str:
        self.prompts.append(prompt)
        reply = next(self._replies)
        if isinstance(reply, Exception):
            raise reply
        return reply


class Silent:
    """A client that never answers."""

    async def run(self, prompt: str) -> str:
        await asyncio.Event().wait()
        raise AssertionError


def weighed(schema: Any, chances: Mapping[str, float]) -> dict[str, Any]:
    """Return the reply of a model that gives the options these probabilities, by letter."""
    letters = json.loads(schema["properties"]["letter"]["description"])
    tokens = [
        {"token": each, "logprob": log(chances[name]) if chances[name] else -9999.0}
        for each, name in letters.items()
    ]
    best = max(tokens, key=lambda each: each["logprob"])
    text = json.dumps({"letter": best["token"]})
    said = {**best, "top_logprobs": tokens}
    return {"message": {"content": text}, "logprobs": [said]}


class Weighing:
    """A model that gives the same probabilities to all, the first questions last."""

    temperature = 0

    def __init__(self, chances: Any) -> None:
        self.chances, self.waiting = chances, 0

    async def chat(self, messages: Any, format: Any, logprobs: bool = False) -> Any:  # noqa: A002
        self.waiting += 1
        for _ in range(30 - 2 * self.waiting):
            await asyncio.sleep(0)
        return weighed(format, self.chances)


def bare(host: str, kind: type[ollama.AsyncClient] = ollama.AsyncClient, **settings: Any) -> Any:
    """Return Ollama's own client of a server that speaks plain HTTP."""
    # certificates are read for every client otherwise, which takes longer than most tests
    return kind(host=host, verify=False, **settings)


class ScriptedClient:
    """A client that keeps what it was told and answers with a given reply."""

    def __init__(self, reply: Any = "yes") -> None:
        self.reply, self.told = reply, None
