"""Questions to put, and models that answer them, for the tests of reasoners."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import ollama

from prism.llm import OllamaPool
from prism.statechart.reasoner import Reasoner
from prism.statechart.reasoner._questions import Decision, Question
from prism.statechart.states import AgentState
from prism.testing import FakeOllama

S = AgentState


OPTIONS = (S.COMPOSING, S.SCROLLING)


POST = SimpleNamespace(post_id="p1", author="bob", text="Rooks are overrated.")


class Model:
    """A client that gives the same reply every time, or raises."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply

    async def run(self, prompt: str) -> str:
        await asyncio.sleep(0)
        if isinstance(self.reply, BaseException):
            raise self.reply
        return str(self.reply)


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


class Store(dict[str, str]):
    """A store of answers in memory."""

    put = dict.__setitem__


def answer(state: str) -> str:
    return json.dumps({"next_state": state})


def ask(name: str = "Ada", **changes: Any) -> Question:
    agent = SimpleNamespace(agent_id=name, name=name, interests=["chess"], personality="dry")
    return Question(
        agent, S.EVALUATING, "decides", **{"options": OPTIONS, "context": POST, **changes}
    )


def crowd(size: int, **changes: Any) -> list[Question]:
    return [ask(f"n{number}", **changes) for number in range(size)]


async def decide(client: Any, **options: Any) -> Decision:
    return (await Reasoner(client, **options).decide_many([ask()]))[0]


def outcomes(decisions: list[Decision]) -> list[tuple[Any, str]]:
    return [(decision.chosen, decision.source) for decision in decisions]


def asked(server: FakeOllama) -> list[str]:
    return [question.path for question in server.questions]


class Counting(ollama.AsyncClient):
    """Ollama's client, counting how often it was asked for a model's capabilities."""

    shown = 0

    async def show(self, model: str) -> ollama.ShowResponse:
        self.shown += 1
        return await super().show(model)


def mixed(chats: FakeOllama, decides: FakeOllama, **settings: Any) -> OllamaPool:
    """Return a pool of one server that only chats with ``nimble``, and one that also decides."""
    chats.models, chats.decision_models = ("nimble",), ()
    return OllamaPool([chats.host, decides.host], "nimble", **settings)


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
