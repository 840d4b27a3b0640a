"""Clients of language models, most of which need no server."""

import asyncio
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


class NeverSampled(Model):
    """The same, which says that it samples nothing: equal questions share an answer."""

    temperature = 0


class Silent:
    """A client that never answers."""

    async def run(self, prompt: str) -> str:
        await asyncio.Event().wait()
        raise AssertionError


class Weighing:
    """A decision model that gives the same probabilities to all, the first questions last."""

    def __init__(self, chances: Any) -> None:
        self.chances, self.waiting = chances, 0

    async def systemone(self, state: str, questions: Any) -> Any:
        self.waiting += 1
        for _ in range(30 - 2 * self.waiting):
            await asyncio.sleep(0)
        return {"answers": {name: {"probabilities": self.chances} for name in questions}}


class Counting(ollama.AsyncClient):
    """Ollama's client, counting how often it was asked for a model's capabilities."""

    shown = 0

    async def show(self, model: str) -> ollama.ShowResponse:
        self.shown += 1
        return await super().show(model)


def bare(host: str, kind: type[ollama.AsyncClient] = ollama.AsyncClient, **settings: Any) -> Any:
    """Return Ollama's own client of a server that speaks plain HTTP."""
    # certificates are read for every client otherwise, which takes longer than most tests
    return kind(host=host, verify=False, **settings)


class Told:
    """A client that keeps what it was told and answers with a given reply."""

    def __init__(self, reply: Any = "yes") -> None:
        self.reply, self.told = reply, None


class Deciding(Told):
    """A client that answers decision questions with a given reply, or raises it."""

    async def systemone(self, state: str, questions: Any) -> Any:
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


async def cancel_itself() -> None:
    """Wait for something that is cancelled, though nobody has cancelled who waits."""
    inner = asyncio.get_running_loop().create_future()
    inner.cancel()
    await inner
