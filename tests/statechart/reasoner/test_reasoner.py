"""Deciding with a language model."""

import asyncio
import json
import math
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any

import httpx
import ollama
import pytest

from prism.errors import FieldValueError, ReasonerError, TimedOutError
from prism.llm import AnswerCache, OllamaChatClient, OllamaPool
from prism.randomness import RandomStream
from prism.statechart.reasoner import Reasoner
from prism.statechart.reasoner._budget import Budget
from prism.statechart.reasoner._prompts import chat_prompt, decision_state
from prism.statechart.reasoner._questions import Decision, Question
from prism.statechart.reasoner._requests import MOST_DECISION_BYTES
from prism.statechart.social import social_media_chart
from prism.statechart.states import AgentState
from prism.testing import Asked, FakeOllama, Fault

S = AgentState
OPTIONS = (S.COMPOSING, S.SCROLLING)
POST = SimpleNamespace(post_id="p1", author="bob", text="Rooks are overrated.")
CHAT, DECISIONS = "/api/chat", "/v1/systemone"

Connect = Callable[..., Any]
Until = Callable[[Callable[[], bool]], Awaitable[None]]


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


class BrokenStore:
    """A store that cannot be used."""

    def get(self, key: str) -> str | None:
        raise OSError("disk full")

    put = get  # type: ignore[assignment]


class Unstable(Store):
    """A store that fails when it is asked for the ninth time."""

    asked = 0

    def get(self, key: str, default: Any = None) -> str | None:
        self.asked += 1
        if self.asked == 9:
            raise OSError("disk full")
        return super().get(key, default)


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


# How it asks


@pytest.mark.parametrize(
    ("mode", "model", "paths"),
    [
        ("auto", "llama3.2", [CHAT]),
        ("auto", "nimble", [DECISIONS]),
        ("chat", "nimble", [CHAT]),
        ("decision", "nimble", [DECISIONS]),
    ],
)
@pytest.mark.parametrize("kind", ["prism", "pool", "ollama"])
async def test_decisions_are_taken_where_they_are_offered(
    kind: str, mode: Any, model: str, paths: list[str], server: FakeOllama, connect: Connect
) -> None:
    """Mode auto asks a decision model for a decision and any other to chat; the other modes do as they are told."""
    server.choose = lambda question: "scrolling"
    reasoner = Reasoner(
        connect(kind, model), model=model if kind == "ollama" else None, mode=mode, pick="argmax"
    )
    assert outcomes(await reasoner.decide_many([ask()])) == [(S.SCROLLING, "model")]
    assert asked(server) == paths


class Counting(ollama.AsyncClient):
    """Ollama's client, counting how often it was asked for a model's capabilities."""

    shown = 0

    async def show(self, model: str) -> ollama.ShowResponse:
        self.shown += 1
        return await super().show(model)


async def test_what_is_offered_is_asked_once(server: FakeOllama) -> None:
    """A hundred questions at once, together or each on its own, and those after them look once at the model."""
    client = Counting(host=server.host)
    reasoner = Reasoner(client, model="nimble")
    alone = (
        reasoner.decide(one.agent, one.state, one.trigger, list(OPTIONS)) for one in crowd(100)
    )
    await asyncio.gather(*alone, reasoner.decide_many(crowd(100)))
    await reasoner.decide_many(crowd(5))
    await client.close()
    assert client.shown == 1
    assert set(asked(server)) == {DECISIONS}


async def test_what_is_offered_is_asked_again_after_a_failure(
    server: FakeOllama, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that cannot say what it offers is asked to chat, and asked again after a while; that is told once."""
    client = Counting(host=server.host)
    reasoner = Reasoner(client, model="nimble")
    server.fail(Fault.status(500), Fault.status(500), path="/api/show")
    async with asyncio.timeout(10):
        while DECISIONS not in asked(server):
            await reasoner.decide_many([ask()])
    await client.close()
    assert client.shown == 3
    assert asked(server)[0] == CHAT
    assert len(caplog.records) == 1


async def test_who_cannot_say_is_not_asked_all_the_time(
    server: FakeOllama, caplog: pytest.LogCaptureFixture
) -> None:
    """A look that failed after a long time is not repeated with every question, and is told of once."""
    server.fail_always(Fault.hang(), path="/api/show")
    client = Counting(host=server.host)
    reasoner = Reasoner(client, model="nimble", timeout=1)
    for _ in range(5):
        await reasoner.decide_many(crowd(3))
    await client.close()
    assert client.shown == 1
    assert asked(server) == [CHAT] * 15
    assert [(record.levelname, record.__dict__["prism"]) for record in caplog.records] == [
        (
            "WARNING",
            {"event": "reasoner.mode_unknown", "error": "TimedOutError: no answer within 1 s"},
        )
    ]


async def test_an_application_hears_that_nobody_could_say(
    server: FakeOllama,
    connect: Connect,
    events: Any,
    logger: Any,
    capture: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """That a server could not say what it offers goes once to the reasoner's logger, or else to structlog."""
    server.fail_always(Fault.status(500, "boom"), path="/api/show")
    for given, told in ((None, events), (logger, capture.entries)):
        reasoner = Reasoner(connect(model="nimble"), logger=given)
        await reasoner.decide_many(crowd(2))
        await reasoner.decide_many(crowd(2))
        assert [entry["event"] for entry in told] == [
            "reasoner.mode_unknown",
            *["reasoner.decision"] * 4,
        ]
        assert told[0]["log_level"] == "warning"
        assert "boom" in told[0]["error"]
    assert len(events) == 5
    assert caplog.records == []


async def test_a_client_that_gives_up_its_look_is_asked_to_chat(events: Any) -> None:
    """A client whose look at what it offers is cancelled from within chats, and the reasoner goes on."""

    class GivesUp(Model):
        async def offers_decisions(self) -> bool:
            inner = asyncio.create_task(asyncio.sleep(3600))
            inner.cancel()
            await inner
            return True

        async def systemone(self, state: str, questions: Any) -> Any: ...

    (decision,) = await Reasoner(GivesUp(answer("scrolling"))).decide_many([ask()])
    assert (decision.chosen, decision.source) == (S.SCROLLING, "model")
    assert events[0]["error"] == "LLMError: the client gave its call up by itself"


@pytest.mark.slow
async def test_a_look_has_a_limit_of_its_own(server: FakeOllama) -> None:
    """However long an answer may take, a server that does not say what it offers is waited for only briefly."""
    server.fail_always(Fault.hang(), path="/api/show")
    client = Counting(host=server.host)
    async with asyncio.timeout(60):
        assert (await decide(client, model="nimble", timeout=600)).source == "model"
    await client.close()


async def test_no_questions_ask_nothing(server: FakeOllama) -> None:
    """Where nothing is asked the server is not even asked what it offers."""
    client = Counting(host=server.host)
    assert await Reasoner(client, model="nimble").decide_many([]) == []
    await client.close()
    assert client.shown == 0


@pytest.mark.parametrize("kind", ["prism", "ollama"])
async def test_a_refusal_is_remembered(kind: str, server: FakeOllama, connect: Connect) -> None:
    """Once a decision question was refused everything is a chat, that question first."""
    server.fail_always(Fault.status(404, body=b"no such page"), path="/api/show")
    reasoner = Reasoner(connect(kind, "llama3.2"), model="llama3.2" if kind == "ollama" else None)
    for _ in range(3):
        assert outcomes(await reasoner.decide_many([ask()])) == [(S.COMPOSING, "model")]
    assert asked(server) == [DECISIONS, CHAT, CHAT, CHAT]


@pytest.mark.parametrize("kind", ["prism", "ollama"])
async def test_a_server_without_ollamas_own_paths_decides(
    kind: str, server: FakeOllama, connect: Connect
) -> None:
    """Where only a decision question can tell whether decisions are taken, it is put, and tells."""
    for path in ("/api/show", CHAT):
        server.fail_always(Fault.status(404, body=b'{"detail":"Not Found"}'), path=path)
    reasoner = Reasoner(
        connect(kind, "nimble"), model="nimble" if kind == "ollama" else None, pick="argmax"
    )
    assert outcomes(await reasoner.decide_many([ask()])) == [(S.COMPOSING, "model")]
    assert asked(server) == [DECISIONS]


async def test_a_thinking_model_is_told_not_to(server: FakeOllama, connect: Connect) -> None:
    """A raw Ollama client asks without thoughts; of a model that refuses to be told so nothing more is said of it."""
    reasoner = Reasoner(connect("ollama"), model="llama3.2", mode="chat")
    await reasoner.decide_many([ask()])
    server.fail(Fault.status(400, '"llama3.2" takes "low", "medium" or "high" for think'))
    decisions = [(await reasoner.decide_many([ask(name)]))[0] for name in ("Ben", "Cy")]
    assert [
        (decision.source, decision.call and decision.call.attempts) for decision in decisions
    ] == [
        ("model", 2),
        ("model", 1),
    ]
    assert [question.body.get("think") for question in server.questions] == [
        False,
        False,
        None,
        None,
    ]
    assert reasoner.budget.calls == 4


def mixed(chats: FakeOllama, decides: FakeOllama, **settings: Any) -> OllamaPool:
    """Return a pool of one server that only chats with ``nimble``, and one that also decides."""
    chats.models, chats.decision_models = ("nimble",), ()
    return OllamaPool([chats.host, decides.host], "nimble", **settings)


async def test_while_those_who_decide_are_gone_others_chat(server: FakeOllama, events: Any) -> None:
    """When the one server that decides goes down nobody falls back, and when it is back it decides again."""
    with FakeOllama() as decides:
        pool = mixed(server, decides)
        reasoner = Reasoner(pool)
        assert {d.source for d in await reasoner.decide_many(crowd(20))} == {"model"}
        assert CHAT not in asked(server)
        decides.stop()
        assert {d.source for d in await reasoner.decide_many(crowd(20))} == {"model"}
        assert asked(server).count(CHAT) == 20
        assert sum(event["attempts"] for event in events) == reasoner.budget.calls
        decides.start()
        async with asyncio.timeout(10):
            while len(decides.questions) < 21:
                await reasoner.decide_many([ask()])
        await pool.close()
    assert set(asked(decides)) == {DECISIONS}


async def test_what_one_server_cannot_say_is_not_settled_by_another(server: FakeOllama) -> None:
    """While a server could not say whether it decides, that another does not is no reason to chat for good."""
    with FakeOllama() as decides:
        decides.fail(Fault.status(503), path="/api/show")
        pool = mixed(server, decides)
        reasoner = Reasoner(pool)
        async with asyncio.timeout(10):
            while DECISIONS not in asked(decides):
                await reasoner.decide_many([ask()])
        await pool.close()
    assert (asked(server) + asked(decides)).count(CHAT) >= 1


async def test_when_a_server_is_back_nobody_falls_back(
    server: FakeOllama, connect: Connect, until: Until
) -> None:
    """While one question finds out whether the server works again the others wait for it."""
    client = connect(concurrency=8)
    reasoner = Reasoner(client, mode="chat")
    server.stop()
    await reasoner.decide_many(crowd(20))
    server.start()
    server.latency = 0.01
    await until(client.only_host.breaker.allows)
    assert Counter(d.source for d in await reasoner.decide_many(crowd(100))) == {"model": 100}


async def test_a_server_that_does_not_say_is_asked_to_chat(
    server: FakeOllama, connect: Connect
) -> None:
    """A server that never says what it offers delays a decision by no more than the time-out."""
    server.fail_always(Fault.hang(), path="/api/show")
    reasoner = Reasoner(connect("ollama"), model="nimble", timeout=2)
    assert outcomes(await reasoner.decide_many([ask()])) == [(S.COMPOSING, "model")]
    assert asked(server) == [CHAT]


@pytest.mark.parametrize("kind", ["prism", "ollama"])
async def test_a_missing_endpoint_means_chat(
    kind: str, server: FakeOllama, connect: Connect
) -> None:
    """A server that turns out to have no decisions is asked to chat, at once and from then on."""
    server.decides = False
    reasoner = Reasoner(connect(kind, "nimble"), model="nimble" if kind == "ollama" else None)
    assert outcomes(await reasoner.decide_many(crowd(4))) == [(S.COMPOSING, "model")] * 4
    assert server.questions
    server.questions.clear()
    await reasoner.decide_many(crowd(4))
    assert asked(server) == [CHAT] * 4


@pytest.mark.parametrize(
    ("kind", "model"), [("prism", "llama3.2"), ("ollama", "llama3.2"), ("prism", "gone")]
)
async def test_mode_decision_never_chats(
    kind: str, model: str, server: FakeOllama, connect: Connect
) -> None:
    """In mode decision a model that does not decide, or is not there, is a fallback and not a chat."""
    reasoner = Reasoner(
        connect(kind, model), model=model if kind == "ollama" else None, mode="decision"
    )
    assert outcomes(await reasoner.decide_many([ask()])) == [(S.COMPOSING, "fallback")]
    assert set(asked(server)) == {DECISIONS}


async def test_a_chat_is_bound_to_the_options(server: FakeOllama, connect: Connect) -> None:
    """A raw Ollama client gets model, prompt, a schema whose enum is the options, and the seed inside options."""
    await decide(connect("ollama"), model="llama3.2", mode="chat", seed=7)
    body = server.questions[0].body
    assert (body["model"], body["stream"], body["options"]["seed"]) == ("llama3.2", False, 7)
    assert body["messages"] == [{"role": "user", "content": chat_prompt(ask())}]
    assert body["format"]["properties"]["next_state"]["enum"] == ["composing", "scrolling"]


@pytest.mark.parametrize("kind", ["prism", "ollama"])
async def test_pending_decisions_of_an_agent_share_a_request(
    kind: str, server: FakeOllama, connect: Connect
) -> None:
    """Several questions of one agent are one request with one state, and each gets its own answer."""
    server.choose = lambda question: question.options[-1]
    reasoner = Reasoner(
        connect(kind, "nimble"), model="nimble" if kind == "ollama" else None, pick="argmax"
    )
    agent = ask().agent
    sets = [(S.COMPOSING, S.SCROLLING), (S.RESTING, S.IDLE), (S.IDLE, S.COMPOSING, S.ENGAGING_LIKE)]
    questions = [Question(agent, S.EVALUATING, "decides", options, POST) for options in sets]
    decisions = await reasoner.decide_many([*questions[:2], ask("Ben"), questions[2]])
    assert [decision.chosen for decision in decisions] == [
        S.SCROLLING,
        S.IDLE,
        S.SCROLLING,
        S.ENGAGING_LIKE,
    ]
    shared = max(
        (question.body for question in server.questions), key=lambda body: len(body["questions"])
    )
    assert len(server.questions) == 2
    assert shared["state"] == decision_state(agent)
    assert [list(choice["criteria"]) for choice in shared["questions"].values()] == [
        [option.value for option in options] for options in sets
    ]


async def test_what_a_shared_request_cost_is_told_once(
    server: FakeOllama, connect: Connect, events: Any
) -> None:
    """The tokens and attempts of all events together are those that were spent."""
    agent = ask().agent
    reasoner = Reasoner(connect(model="nimble"))
    await reasoner.decide_many(
        [Question(agent, S.EVALUATING, "decides", OPTIONS, str(n)) for n in range(5)]
    )
    assert (
        sum(event["attempts"] for event in events)
        == reasoner.budget.calls
        == len(server.questions)
        == 1
    )
    assert sum(event["input_tokens"] for event in events) == reasoner.budget.tokens > 0


async def test_large_questions_are_split(server: FakeOllama, connect: Connect) -> None:
    """Questions of one agent that do not fit into one request are spread over several below 64 KiB."""
    agent = ask().agent
    questions = [
        Question(agent, S.EVALUATING, "decides", OPTIONS, f"{n}" + "x" * 10_000) for n in range(20)
    ]
    decisions = await Reasoner(connect(model="nimble")).decide_many(questions)
    assert [decision.source for decision in decisions] == ["model"] * 20
    assert len(server.questions) == 4
    assert all(len(json.dumps(question.body)) < 65_536 for question in server.questions)


async def test_a_question_too_large_for_any_request_is_not_asked(
    server: FakeOllama, connect: Connect
) -> None:
    """A question beyond what servers take is a fallback that gives its size, beside others that are answered."""
    agent = ask().agent
    questions = [
        Question(agent, S.EVALUATING, "decides", OPTIONS, text) for text in ("a", "x" * 70_000)
    ]
    small, large = await Reasoner(connect(model="nimble")).decide_many(questions)
    assert (small.source, large.source) == ("model", "fallback")
    assert large.reason is not None
    assert f"of {MOST_DECISION_BYTES} that a request may have" in large.reason
    assert large.call is not None
    assert (large.call.attempts, len(server.questions)) == (0, 1)


# Choosing


def weighing(**chances: float) -> Any:
    return Reasoner(Weighing(chances), mode="decision")


async def test_draws_follow_the_probabilities() -> None:
    """Over many draws each option comes about as often as its probability says, and one of zero never."""
    reasoner = Reasoner(
        Weighing({"composing": 0.3, "scrolling": 0.7, "resting": 0.0}), mode="decision"
    )
    decisions = await reasoner.decide_many(crowd(2000, options=(*OPTIONS, S.RESTING)))
    counts = Counter(decision.chosen for decision in decisions)
    spread = 5 * math.sqrt(2000 * 0.3 * 0.7)
    assert abs(counts[S.COMPOSING] - 600) < spread
    assert counts[S.COMPOSING] + counts[S.SCROLLING] == 2000
    assert all(
        d.probabilities == {"composing": 0.3, "scrolling": 0.7, "resting": 0.0} for d in decisions
    )


async def test_argmax_takes_the_likeliest() -> None:
    """With argmax the likeliest option is taken every time, the first of equals."""
    for chances, chosen in (
        ({"composing": 0.4, "scrolling": 0.6}, 1),
        ({"composing": 0.5, "scrolling": 0.5}, 0),
    ):
        decisions = await Reasoner(Weighing(chances), mode="decision", pick="argmax").decide_many(
            crowd(50)
        )
        assert {decision.chosen for decision in decisions} == {OPTIONS[chosen]}


async def test_draws_belong_to_the_agent() -> None:
    """A draw depends on seed and agent alone, not on the company it is made in; another seed gives others."""
    half = {"composing": 0.5, "scrolling": 0.5}
    together = await Reasoner(Weighing(half), mode="decision").decide_many(crowd(40))
    reasoner = Reasoner(Weighing(half), mode="decision")
    alone = [(await reasoner.decide_many([one]))[0] for one in reversed(crowd(40))]
    assert outcomes(together) == outcomes(alone[::-1])
    other = await Reasoner(Weighing(half), mode="decision", seed=1).decide_many(crowd(40))
    assert outcomes(together) != outcomes(other)


async def test_draws_come_in_the_order_of_the_questions() -> None:
    """The questions of one agent draw in their order, whichever of its requests is answered first."""
    agent = SimpleNamespace(agent_id="a1", random=RandomStream(3, "a1"))
    questions = [
        Question(agent, S.EVALUATING, "decides", OPTIONS, f"{n}" + "x" * 50_000) for n in range(10)
    ]
    decisions = await weighing(composing=0.5, scrolling=0.5).decide_many(questions)
    stream = RandomStream(3, "a1")
    assert [decision.chosen for decision in decisions] == [
        OPTIONS[stream.weighted_index([1, 1])] for _ in range(10)
    ]


class Even:
    """A decision model that gives even odds, and answers a question the later the earlier it comes in an order."""

    def __init__(self, order: Sequence[str] = (), fails: str | None = None) -> None:
        self.order, self.fails = list(order), fails

    async def systemone(self, state: str, questions: Any) -> Any:
        asked = state + str(questions)
        for mark in self.order:
            if mark in asked:
                break
            for _ in range(20):
                await asyncio.sleep(0)
        if self.fails is not None and self.fails in asked:
            raise ConnectionError("nobody there")
        chances = {option: 1 / len(OPTIONS) for option in ("composing", "scrolling")}
        return {"answers": {name: {"probabilities": chances} for name in questions}}


MARKS = [f"<{number}>" for number in range(12)]


@pytest.mark.parametrize("order", [MARKS, MARKS[::-1]])
async def test_draws_of_agents_without_a_name_come_in_the_order_of_asking(order: list[str]) -> None:
    """Who has no name draws by its place among those who asked, whichever is answered first."""
    reasoner = Reasoner(Even(order), mode="decision")
    walkers = [SimpleNamespace(interests=[mark]) for mark in MARKS]
    chosen = [
        reasoner.decide(walker, S.EVALUATING, "decides", list(OPTIONS), POST) for walker in walkers
    ]
    expected = [OPTIONS[RandomStream(0, "", place).index(2)] for place in range(1, len(MARKS) + 1)]
    assert await asyncio.gather(*chosen) == expected


@pytest.mark.parametrize("order", [MARKS, MARKS[::-1]])
async def test_draws_of_one_agent_come_in_the_order_of_asking(order: list[str]) -> None:
    """One agent's questions that are asked at once, each on its own, draw in their order, whichever answer is first."""
    reasoner = Reasoner(Even(order), mode="decision")
    ada = ask().agent
    chosen = [reasoner.decide(ada, S.EVALUATING, "decides", list(OPTIONS), mark) for mark in MARKS]
    stream = RandomStream(0, "Ada")
    assert await asyncio.gather(*chosen) == [OPTIONS[stream.index(2)] for _ in MARKS]


@pytest.mark.parametrize("together", [True, False])
async def test_a_fallback_shifts_no_later_draw(together: bool) -> None:
    """A question that got no answer has used its number up: the draws after it are those of a run without a failure."""
    questions = [
        Question(ask().agent, S.EVALUATING, "decides", OPTIONS, mark + "x" * 50_000)
        for mark in MARKS
    ]
    chosen = []
    for fails in (None, MARKS[3]):
        reasoner = Reasoner(Even(fails=fails), mode="decision")
        works = [questions] if together else [[question] for question in questions]
        decisions = [decision for work in works for decision in await reasoner.decide_many(work)]
        assert [d.source for d in decisions].count("fallback") == (fails is not None)
        chosen.append([decision.chosen for decision in decisions])
    del chosen[0][3], chosen[1][3]
    assert chosen[0] == chosen[1]
    assert set(chosen[0]) == set(OPTIONS)


async def test_chats_and_argmax_draw_nothing(server: FakeOllama, connect: Connect) -> None:
    """Where nothing is drawn an agent's stream stays as it is."""
    agent = SimpleNamespace(agent_id="a1", random=RandomStream(3, "a1"))
    client = connect(model="nimble")
    for reasoner in (
        Reasoner(client, mode="chat"),
        Reasoner(client, mode="decision", pick="argmax"),
        Reasoner(Model(answer("scrolling"))),
    ):
        await reasoner.decide(agent, S.EVALUATING, "decides", list(OPTIONS), POST)
    assert agent.random.random() == RandomStream(3, "a1").random()


@pytest.mark.parametrize(
    ("chances", "reason"),
    [
        ({"composing": 1.0}, "gives 'scrolling' the probability None"),
        ({"composing": float("nan"), "scrolling": 0.5}, "the probability nan"),
        ({"composing": -0.5, "scrolling": 0.5}, "the probability -0.5"),
        ({"composing": 1.5, "scrolling": 0.5}, "the probability 1.5"),
        ({"composing": 0.5, "scrolling": 0.5, "resting": 0.0}, "weighs 'resting'"),
        ({"composing": 0.2, "scrolling": 0.2}, "sum to 0.4 instead of 1"),
        ({"composing": "a lot", "scrolling": 0.2}, "BadReplyError"),
    ],
)
async def test_bad_probabilities_are_a_fallback(
    chances: Any, reason: str, server: FakeOllama, connect: Connect
) -> None:
    """Probabilities that are none are never drawn from: the fallback says what is wrong with them."""
    server.fail(Fault.weighs(chances))
    reasoner = Reasoner(connect(model="nimble"), fallback=S.SCROLLING)
    (decision,) = await reasoner.decide_many([ask()])
    assert (decision.chosen, decision.source) == (S.SCROLLING, "fallback")
    assert decision.reason is not None
    assert reason in decision.reason
    assert (await reasoner.decide_many([ask()]))[0].source == "model"


async def test_an_unanswered_question_leaves_the_others_their_answers() -> None:
    """A question that a decision reply forgot is a fallback, beside others that were answered."""

    class Forgetful:
        async def systemone(self, state: str, questions: Any) -> Any:
            return {"answers": {"q1": {"probabilities": {"composing": 0.0, "scrolling": 1.0}}}}

    agent = ask().agent
    questions = [Question(agent, S.EVALUATING, "decides", OPTIONS, text) for text in ("a", "b")]
    decisions = await Reasoner(Forgetful(), mode="decision").decide_many(questions)
    assert outcomes(decisions) == [(S.COMPOSING, "fallback"), (S.SCROLLING, "model")]


# When it fails


async def test_empty_options_are_an_error(server: FakeOllama, connect: Connect) -> None:
    """Asking without options is a ValueError before the model is called."""
    with pytest.raises(ValueError, match="no options"):
        await Reasoner(connect()).decide(SimpleNamespace(), S.EVALUATING, "decides", [])
    assert server.questions == []


FAILURES = [
    (Model("composing or scrolling"), "no JSON object with 'next_state'"),
    (Model('{"next_state": "flying"}'), "the reply names 'flying'"),
    (Model(ConnectionError("nobody there")), "ConnectionError: nobody there"),
    (
        Model(TimedOutError("host h gave no answer within 30 s")),
        "TimedOutError: host h gave no answer within 30 s",
    ),
    (Model(TimeoutError("pool is full")), "TimeoutError: pool is full"),
    (Silent(), "no answer within 0.01 s"),
]


@pytest.mark.parametrize(("client", "reason"), FAILURES, ids=range(len(FAILURES)))
@pytest.mark.parametrize(
    ("fallback", "chosen"),
    [
        (None, S.COMPOSING),
        (S.SCROLLING, S.SCROLLING),
        (S.RESTING, S.COMPOSING),
        ("scrolling", S.SCROLLING),
    ],
)
async def test_a_failure_is_a_fallback(
    client: Any, reason: str, fallback: Any, chosen: S, logger: Any, capture: Any
) -> None:
    """Whatever fails, the fallback or else the first option is taken, with a warning that says why."""
    decision = await decide(
        client, fallback=fallback, timeout=0.01 if isinstance(client, Silent) else 5, logger=logger
    )
    assert decision.chosen is chosen
    assert decision.source == "fallback"
    assert decision.reason is not None
    assert reason in decision.reason
    (warning,) = capture.entries
    assert (warning["event"], warning["log_level"]) == ("reasoner.decision", "warning")
    assert (warning["agent_id"], warning["trigger"], warning["chosen"]) == (
        "Ada",
        "decides",
        chosen.value,
    )
    assert (warning["source"], warning["reason"]) == ("fallback", decision.reason)


async def test_a_fallback_is_never_silent(caplog: pytest.LogCaptureFixture) -> None:
    """Without structlog the warning about a fallback goes to standard logging."""
    await decide(Model("nonsense"))
    assert [(entry.name, entry.levelname) for entry in caplog.records] == [
        ("prism.statechart", "WARNING")
    ]
    assert "reasoner.decision" in caplog.text


def test_a_fallback_is_heard_without_structlog() -> None:
    """In a program that knows neither structlog nor logging a fallback stands on standard error."""
    script = (
        "import asyncio, sys\n"
        "from types import SimpleNamespace\n"
        "from prism.statechart import AgentState, Reasoner\n"
        "class Model:\n"
        "    async def run(self, prompt): return 'nonsense'\n"
        "options = [AgentState.COMPOSING, AgentState.SCROLLING]\n"
        "asyncio.run(Reasoner(Model()).decide(SimpleNamespace(id=1), AgentState.EVALUATING, 'decides', options))\n"
        "assert 'structlog' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "reasoner.decision" in done.stderr
    assert "'source': 'fallback'" in done.stderr


async def test_one_failure_leaves_the_others_alone(server: FakeOllama, connect: Connect) -> None:
    """A question that fails falls back without disturbing those asked with it, and the next is answered."""
    server.fail(Fault.status(500, "boom"))
    reasoner = Reasoner(connect(concurrency=1))
    decisions = await reasoner.decide_many(crowd(3))
    assert Counter(decision.source for decision in decisions) == {"model": 2, "fallback": 1}
    assert outcomes(await reasoner.decide_many([ask()])) == [(S.COMPOSING, "model")]


class Detached:
    """A row of a database that is gone."""

    post_id = agent_id = "d1"

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("the row is detached")


@pytest.mark.parametrize(("mode", "model"), [("chat", "llama3.2"), ("decision", "nimble")])
@pytest.mark.parametrize(
    "unreadable",
    [
        lambda: ask(context=Detached()),
        lambda: Question(Detached(), S.EVALUATING, "decides", OPTIONS, POST),
    ],
    ids=["post", "agent"],
)
async def test_what_cannot_be_read_is_a_fallback(
    mode: Any, model: str, unreadable: Any, server: FakeOllama, connect: Connect
) -> None:
    """A post or agent that raises when it is read costs its own question the model, and no other."""
    reasoner = Reasoner(connect(model=model), mode=mode, fallback=S.SCROLLING)
    decisions = await reasoner.decide_many([ask("Ben"), unreadable(), ask("Cy")])
    assert [decision.source for decision in decisions] == ["model", "fallback", "model"]
    assert (decisions[1].chosen, decisions[1].reason) == (
        S.SCROLLING,
        "RuntimeError: the row is detached",
    )
    assert decisions[1].call is not None
    assert (decisions[1].call.attempts, len(server.questions)) == (0, 2)


class Unnamed:
    """An agent whose id cannot be read."""

    name, interests, personality = "Nan", ("tea",), "dry"

    @property
    def agent_id(self) -> str:
        raise RuntimeError("the row is detached")


class Streamless:
    """An agent whose stream cannot be read."""

    agent_id = name = "Sam"
    interests, personality = ("tea",), "dry"

    @property
    def random(self) -> Any:
        raise RuntimeError("the row is detached")


@pytest.mark.parametrize(
    ("mode", "model"), [("chat", "llama3.2"), ("decision", "nimble"), ("auto", "nimble")]
)
@pytest.mark.parametrize(
    ("kind", "needed_by"),
    [(Unnamed, ("chat", "decision", "auto")), (Streamless, ("decision", "auto"))],
)
async def test_an_agent_that_cannot_be_read_disturbs_nobody(
    kind: type,
    needed_by: Sequence[str],
    mode: Any,
    model: str,
    server: FakeOllama,
    connect: Connect,
    events: Any,
) -> None:
    """An agent whose id or stream raises falls back for that reason, under a name that it can have, and nobody else."""
    bad = kind()
    questions = [ask("Ben"), Question(bad, S.EVALUATING, "decides", OPTIONS, POST), ask("Cy")]
    decisions = await Reasoner(connect(model=model), mode=mode).decide_many(questions)
    unreadable = mode in needed_by
    assert [d.source for d in decisions] == [
        "model",
        "fallback" if unreadable else "model",
        "model",
    ]
    assert decisions[1].reason == ("RuntimeError: the row is detached" if unreadable else None)
    assert len(server.questions) == (2 if unreadable else 3)
    name = f"Unnamed@{id(bad):x}" if kind is Unnamed else "Sam"
    assert [event["agent_id"] for event in events] == ["Ben", name, "Cy"]


async def test_a_bug_leaves_nothing_running(
    server: FakeOllama, connect: Connect, until: Until
) -> None:
    """If something raises that is no failure of a model, all that was asked with it is over before the caller knows."""

    class Unwritable:
        def warning(self, event: str, **keys: Any) -> None:
            raise OSError("disk full")

    server.latency = 0.2
    client = connect(concurrency=4)
    reasoner = Reasoner(client, mode="chat", cache=Unstable(), logger=Unwritable())  # type: ignore[arg-type]
    with pytest.raises(OSError, match="disk full"):
        await reasoner.decide_many(crowd(12))
    assert len(server.questions) >= 4
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert client.only_host.in_flight == 0
    await until(lambda: server.open_connections == 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "timeout must be above 0, got 0"),
        ({"timeout": float("nan")}, "timeout must be above 0, got nan"),
        ({"concurrency": 0}, "concurrency must be above 0, got 0"),
        ({"concurrency": -1}, "concurrency must be above 0, got -1"),
        ({"mode": "guess"}, "mode must be one of auto, decision, chat, got 'guess'"),
        ({"pick": "worst"}, "pick must be one of draw, argmax, got 'worst'"),
    ],
)
def test_settings_are_checked(options: Any, message: str) -> None:
    """A setting out of range is a ValueError that names it and what was given."""
    with pytest.raises(FieldValueError, match=message):
        Reasoner(Silent(), **options)


@pytest.mark.parametrize(
    ("client", "mode", "message"),
    [
        (object(), "auto", "needs an async method chat, get_response or run; object has none"),
        (object(), "chat", "needs an async method chat, get_response or run; object has none"),
        (
            Weighing({}),
            "auto",
            "needs an async method chat, get_response or run; Weighing has none",
        ),
        (
            ollama.Client(),
            "chat",
            "Client stops the event loop while it waits for an answer: use ollama.AsyncClient",
        ),
        (
            Silent(),
            "decision",
            "mode 'decision' needs a client with an async method systemone; Silent has none",
        ),
    ],
)
def test_a_client_must_be_one(client: Any, mode: Any, message: str) -> None:
    """A client that cannot be asked in the wanted mode is refused when the reasoner is made."""
    with pytest.raises(ReasonerError, match=message):
        Reasoner(client, mode=mode)


@pytest.mark.parametrize("mode", ["auto", "chat", "decision"])
def test_a_client_that_is_told_its_model_needs_one(mode: Any) -> None:
    """Ollama's own client without a model is refused when the reasoner is made, in every mode."""
    with pytest.raises(ReasonerError, match=r"AsyncClient.* has to be told a model: give one"):
        Reasoner(ollama.AsyncClient(), mode=mode)


@pytest.mark.parametrize("mode", ["chat", "decision"])
async def test_a_time_out_of_the_client_itself_has_a_name(mode: Any, server: FakeOllama) -> None:
    """Where a raw client's own time-out comes first, the reason is its name alone, as it says no more."""
    server.fail_always(Fault.hang())
    client = ollama.AsyncClient(host=server.host, timeout=httpx.Timeout(10, read=0.1))
    assert (await decide(client, model="nimble", mode=mode)).reason == "ReadTimeout"
    await client.close()


async def test_a_reasoner_serves_a_chart(server: FakeOllama, connect: Connect) -> None:
    """A chart's afire commits what the model answered."""
    server.choose = lambda question: "engaging_like"
    agent = SimpleNamespace(state=S.EVALUATING, should_engage=lambda post: True)
    assert (
        await social_media_chart().afire(agent, "decides", POST, reasoner=Reasoner(connect()))
        is S.ENGAGING_LIKE
    )
    assert agent.state is S.ENGAGING_LIKE


@pytest.mark.parametrize(("reopens", "closed"), [(True, 1), (False, 0), (None, 0)])
async def test_closing_leaves_clients_that_stay_closed(reopens: bool | None, closed: int) -> None:
    """Closing a reasoner closes a client that can be used afterwards, and leaves any other to its owner."""

    class Closing(Silent):
        closed = 0

        async def close(self) -> None:
            self.closed += 1

    client = Closing()
    if reopens is not None:
        client.reopens = reopens  # type: ignore[attr-defined]
    reasoner = Reasoner(client)
    await reasoner.close()
    assert reasoner.client is client
    assert client.closed == closed


def test_a_reasoner_serves_one_event_loop_after_another(server: FakeOllama) -> None:
    """One reasoner answers in several event loops, each after the other."""
    reasoner = Reasoner(OllamaChatClient(server.host, "llama3.2"))

    async def once() -> list[Decision]:
        decisions = await reasoner.decide_many(crowd(3))
        await reasoner.close()
        return decisions

    assert (
        outcomes(asyncio.run(once()))
        == outcomes(asyncio.run(once()))
        == [(S.COMPOSING, "model")] * 3
    )


def test_two_event_loops_at_once_are_told_what_to_do(server: FakeOllama) -> None:
    """While one event loop asks, another that asks the same falls back and says why; the first gets its answer."""
    is_asking, may_answer = threading.Event(), threading.Event()
    decisions: list[Decision] = []

    def choose(question: Asked) -> str:
        is_asking.set()
        may_answer.wait(10)
        return "scrolling"

    server.choose = choose
    reasoner = Reasoner(OllamaChatClient(server.host, "llama3.2"), mode="chat")

    def decide_once() -> None:
        decisions.extend(asyncio.run(reasoner.decide_many([ask()])))

    thread = threading.Thread(target=decide_once)
    thread.start()
    assert is_asking.wait(10)
    decide_once()
    may_answer.set()
    thread.join(10)
    assert outcomes(decisions) == [(S.COMPOSING, "fallback"), (S.SCROLLING, "model")]
    assert decisions[0].reason is not None
    assert "make one client for each event loop" in decisions[0].reason


# Asking less


@pytest.mark.parametrize(("mode", "model"), [("chat", "llama3.2"), ("decision", "nimble")])
async def test_the_same_question_is_asked_once_at_a_time(
    mode: Any, model: str, server: FakeOllama, connect: Connect, events: Any
) -> None:
    """Agents alike that ask the same at once share one request, whose cost stands with one of them."""
    server.latency = 0.05
    reasoner = Reasoner(connect(model=model), mode=mode, pick="argmax")
    decisions = await reasoner.decide_many([ask() for _ in range(10)])
    assert outcomes(decisions) == [(S.COMPOSING, "model")] * 10
    assert len(server.questions) == 1
    assert sorted(event["attempts"] for event in events) == [0] * 9 + [1]
    await reasoner.decide_many([ask()])
    assert len(server.questions) == 2


async def test_a_shared_failure_counts_once(
    server: FakeOllama, connect: Connect, events: Any
) -> None:
    """When a shared request fails all fall back, and its attempts stand with one of them."""
    server.fail_always(Fault.status(503))
    reasoner = Reasoner(connect(attempts=2), mode="chat")
    decisions = await reasoner.decide_many([ask() for _ in range(10)])
    assert outcomes(decisions) == [(S.COMPOSING, "fallback")] * 10
    assert (
        sum(event["attempts"] for event in events)
        == len(server.questions)
        == reasoner.budget.calls
        == 2
    )


@pytest.mark.parametrize("leaver", [0, 1])
async def test_one_who_leaves_does_not_take_the_answer_along(
    leaver: int, server: FakeOllama, connect: Connect, until: Until, events: Any
) -> None:
    """Of two that share a request one may be cancelled: the other gets the answer, and bears the cost."""
    server.latency = 0.1
    reasoner = Reasoner(connect(), mode="chat")
    tasks = [asyncio.create_task(reasoner.decide_many([ask()])) for _ in range(2)]
    await until(lambda: len(server.questions) == 1)
    tasks[leaver].cancel()
    assert outcomes(await tasks[1 - leaver]) == [(S.COMPOSING, "model")]
    assert (tasks[leaver].cancelled(), len(server.questions)) == (True, 1)
    (event,) = events
    assert event["attempts"] == reasoner.budget.calls == 1
    assert event["input_tokens"] + event["output_tokens"] == reasoner.budget.tokens > 0


@pytest.mark.parametrize("kind", ["prism", "pool", "ollama"])
@pytest.mark.parametrize(("mode", "model"), [("chat", "llama3.2"), ("decision", "nimble")])
async def test_when_all_leave_the_request_ends(
    kind: str, mode: Any, model: str, server: FakeOllama, connect: Connect, until: Until
) -> None:
    """When all who share a request are cancelled it is, and no connection stays open."""
    server.fail_always(Fault.hang())
    reasoner = Reasoner(connect(kind, model), model=model if kind == "ollama" else None, mode=mode)
    tasks = [asyncio.create_task(reasoner.decide_many([ask()])) for _ in range(3)]
    await until(lambda: len(server.questions) == 1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await until(lambda: server.open_connections == 0)
    server.recover()
    assert outcomes(await reasoner.decide_many([ask()]))[0][1] == "model"


async def test_no_more_are_under_way_than_may_be(server: FakeOllama, connect: Connect) -> None:
    """At most as many questions are under way as the reasoner, or else its client, allows."""
    server.latency = 0.2
    await Reasoner(connect("ollama"), model="llama3.2", concurrency=3).decide_many(crowd(6))
    assert server.most_at_once == 3
    await Reasoner(connect(concurrency=5)).decide_many(crowd(10))
    assert server.most_at_once == 5


# Keeping answers


@pytest.mark.parametrize(("mode", "model"), [("chat", "llama3.2"), ("decision", "nimble")])
async def test_a_second_run_asks_nothing(
    mode: Any, model: str, server: FakeOllama, connect: Connect, tmp_path: Any, events: Any
) -> None:
    """With a cache on disk a second run decides the same without the model, and its events say so."""
    for _ in range(2):
        with AnswerCache(tmp_path / "answers.db") as cache:
            await Reasoner(connect(model=model), mode=mode, cache=cache).decide_many(crowd(20))
    first, second = events[:20], events[20:]
    assert len(server.questions) == 20
    assert [event["source"] for event in second] == ["cache"] * 20
    assert [event["chosen"] for event in second] == [event["chosen"] for event in first]
    assert [event["probabilities"] for event in second] == [
        event["probabilities"] for event in first
    ]
    assert all("attempts" not in event for event in second)


@pytest.mark.parametrize(
    ("change", "question"),
    [
        ({"model": "nimble"}, ask()),
        ({"seed": 1}, ask()),
        ({"mode": "decision", "model": "nimble"}, ask()),
        ({}, ask(options=(S.SCROLLING, S.COMPOSING))),
        ({}, ask(context="Something else")),
        ({}, ask("Ben")),
    ],
)
async def test_answers_are_kept_by_what_was_asked(
    change: Any, question: Question, server: FakeOllama, connect: Connect
) -> None:
    """An answer is used again for the same model, options, prompt and seed, and for nothing else."""
    store: Any = Store()
    usual = {"model": "llama3.2", "mode": "chat", "cache": store}
    client = connect("ollama")
    await Reasoner(client, **usual).decide_many([ask()])
    (same,) = await Reasoner(client, **usual).decide_many([ask()])
    (other,) = await Reasoner(client, **{**usual, **change}).decide_many([question])
    assert (same.source, other.source, len(server.questions), len(store)) == (
        "cache",
        "model",
        2,
        2,
    )


@pytest.mark.parametrize("name", ["model", "seed", "temperature", "think"])
async def test_answers_are_kept_by_the_clients_settings(name: str) -> None:
    """Where a client tells its model, seed, temperature or thinking, answers are kept apart by them."""
    store: Any = Store()
    for value in ("1", "2", "2"):
        client = Model(answer("scrolling"))
        setattr(client, name, value)
        await decide(client, cache=store, model=None if name == "model" else "m1")
    assert len(store) == 2


@pytest.mark.parametrize("named", [{}, {"model": None}, {"model_id": "small"}])
async def test_a_cache_needs_to_know_the_model(named: Any) -> None:
    """Answers of nobody knows which model are not kept: the client or the caller has to name it."""
    client = Model(answer("scrolling"))
    vars(client).update(named)
    with pytest.raises(
        ReasonerError, match="a cache keeps answers by model, and Model names none: give Reasoner a"
    ):
        Reasoner(client, cache=Store())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        ("llama3.2", Fault.says("nonsense")),
        ("llama3.2", Fault.says(answer("resting"))),
        ("llama3.2", Fault.status(500)),
        ("nimble", Fault.weighs({"composing": 1.0})),
    ],
)
async def test_bad_replies_are_not_kept(
    model: str, fault: Fault, server: FakeOllama, connect: Connect
) -> None:
    """What was no valid answer is asked again, and the valid one kept."""
    store: Any = Store()
    server.fail(fault)
    reasoner = Reasoner(connect(model=model), cache=store)
    kept = []
    for _ in range(3):
        (decision,) = await reasoner.decide_many([ask()])
        kept.append((decision.source, len(store)))
    assert kept == [("fallback", 0), ("model", 1), ("cache", 1)]


@pytest.mark.parametrize(
    "kept", ["no JSON", json.dumps({"text": answer("resting")}), json.dumps({"text": ""})]
)
async def test_a_kept_answer_is_validated(kept: str) -> None:
    """What a cache holds is checked like a reply, and asked again if it is none."""
    store: Any = Store()
    await decide(Model(answer("scrolling")), cache=store, model="m1")
    store.update(dict.fromkeys(store, kept))
    assert (await decide(Model(answer("scrolling")), cache=store, model="m1")).source == "model"
    assert (await decide(Model(answer("composing")), cache=store, model="m1")).source == "cache"


async def test_a_broken_cache_does_not_end_a_run(logger: Any, capture: Any) -> None:
    """A cache that raises is reported once, and the model asked as if there were none."""
    reasoner = Reasoner(Model(answer("scrolling")), cache=BrokenStore(), model="m1", logger=logger)
    assert outcomes(await reasoner.decide_many(crowd(3))) == [(S.SCROLLING, "model")] * 3
    events = [entry["event"] for entry in capture.entries]
    assert events == ["reasoner.cache_failed", *["reasoner.decision"] * 3]


# Spending less


@pytest.mark.parametrize(
    ("limits", "answered", "reason"),
    [
        ({"max_calls": 3}, 3, "BudgetSpentError: budget spent: 3 calls"),
        ({"max_tokens": 1}, 1, "BudgetSpentError: budget spent: 1 tokens"),
    ],
)
@pytest.mark.parametrize("mode", ["chat", "decision"])
async def test_a_spent_budget_means_fallbacks(
    mode: Any,
    limits: Any,
    answered: int,
    reason: str,
    server: FakeOllama,
    connect: Connect,
    events: Any,
) -> None:
    """When calls or tokens are spent nothing is asked any more, and decisions fall back with the reason."""
    reasoner = Reasoner(connect(model="nimble", concurrency=1), mode=mode, budget=Budget(**limits))
    await reasoner.decide_many(crowd(6))
    await reasoner.decide_many(crowd(2))
    assert len(server.questions) == answered
    assert Counter(event["source"] for event in events) == {
        "model": answered,
        "fallback": 8 - answered,
    }
    spent = [event for event in events if event["source"] == "fallback"]
    assert {(event["reason"], event["attempts"]) for event in spent} == {(reason, 0)}


async def test_retries_count(server: FakeOllama, connect: Connect) -> None:
    """Every request of a question that is tried again comes out of the budget."""
    reasoner = Reasoner(connect(attempts=3), mode="chat", budget=Budget(max_calls=4))
    server.fail(Fault.status(503, retry_after="0"), Fault.status(503, retry_after="0"))
    assert outcomes(await reasoner.decide_many([ask()])) == [(S.COMPOSING, "model")]
    assert reasoner.budget.calls == 3
    server.fail(*[Fault.status(503, retry_after="0")] * 3)
    assert outcomes(await reasoner.decide_many([ask()])) == [(S.COMPOSING, "fallback")]
    assert reasoner.budget.calls == len(server.questions) == 6
    (decision,) = await reasoner.decide_many([ask()])
    assert decision.reason == "BudgetSpentError: budget spent: 4 calls"


async def test_a_deadline_cuts_a_hanging_call_short(
    server: FakeOllama, connect: Connect, until: Until
) -> None:
    """Calls under way at the deadline end there, and nothing is asked after it, for one plain reason."""
    server.fail_always(Fault.hang())
    reasoner = Reasoner(connect(concurrency=2), mode="chat", budget=Budget(deadline=0.3))
    decisions = await reasoner.decide_many(crowd(5))
    assert {decision.reason for decision in decisions} == {
        "BudgetSpentError: budget spent: 0.3 seconds"
    }
    assert sorted(decision.call.attempts for decision in decisions if decision.call) == [
        0,
        0,
        0,
        1,
        1,
    ]
    await until(lambda: server.open_connections == 0)
    assert len(server.questions) <= 2


async def test_a_time_out_hides_no_request(
    server: FakeOllama, connect: Connect, events: Any
) -> None:
    """When the time for an answer is over the event knows the requests that were made, and the host."""
    server.fail(*[Fault.status(503, retry_after="0")] * 2, Fault.hang())
    reasoner = Reasoner(connect("pool", attempts=4), mode="chat", timeout=2)
    assert outcomes(await reasoner.decide_many([ask()])) == [(S.COMPOSING, "fallback")]
    assert events[0]["reason"] == "TimedOutError: no answer within 2 s"
    assert events[0]["attempts"] == len(server.questions) == reasoner.budget.calls == 3
    assert events[0]["host"] == server.host


async def test_who_never_got_a_slot_has_cost_nothing(
    server: FakeOllama, connect: Connect, until: Until, events: Any
) -> None:
    """Questions that time out while the client has no slot free for them count no requests."""
    server.fail_always(Fault.hang())
    client = connect("pool", concurrency=1)
    stuck = asyncio.create_task(client.chat([{"role": "user", "content": "hello"}]))
    await until(lambda: len(server.questions) == 1)
    reasoner = Reasoner(client, mode="chat", timeout=0.2)
    await reasoner.decide_many(crowd(3))
    assert [event["attempts"] for event in events] == [0, 0, 0]
    assert (reasoner.budget.calls, len(server.questions)) == (0, 1)
    stuck.cancel()
    await asyncio.wait({stuck})


@pytest.mark.parametrize("kind", ["prism", "ollama"])
async def test_a_cancelled_question_counts(
    kind: str, server: FakeOllama, connect: Connect, until: Until
) -> None:
    """A request that was made comes out of the budget, also if nobody waits for its answer any more."""
    server.fail(Fault.status(503, retry_after="0"), Fault.hang())
    reasoner = Reasoner(
        connect(kind, **({"attempts": 2} if kind == "prism" else {})), model="llama3.2", mode="chat"
    )
    if kind == "ollama":
        await reasoner.decide_many([ask("Ben")])
    task = asyncio.create_task(reasoner.decide_many([ask()]))
    await until(lambda: len(server.questions) == 2)
    task.cancel()
    await asyncio.wait({task})
    assert reasoner.budget.calls == 2


@pytest.mark.parametrize("decides", [True, False])
async def test_refusals_count(decides: bool, server: FakeOllama, events: Any) -> None:
    """The request that told that a server does not decide stands in the events and in the budget."""
    with FakeOllama() as other:
        pool = mixed(server, other, attempts=1)
        if decides:
            other.fail_always(Fault.status(503))
            await Reasoner(pool, mode="decision").decide_many([ask()])
        else:
            other.decision_models = ()
            reasoner = Reasoner(pool, mode="auto")
            server.fail(Fault.status(404, body=b"no page"), path="/api/show")
            await reasoner.decide_many([ask()])
            assert reasoner.budget.calls == 3
        await pool.close()
    assert sum(event["attempts"] for event in events) == len(server.questions) + len(
        other.questions
    )
    assert len(asked(server) + asked(other)) == (2 if decides else 3)


async def test_what_cannot_be_sent_costs_nothing(
    server: FakeOllama, connect: Connect, events: Any
) -> None:
    """A question that no request can carry is a fallback that says so, and counts as no request."""
    reasoner = Reasoner(connect(), mode="chat", budget=Budget(max_calls=1))
    await reasoner.decide_many([ask(context="half a character: \ud83d")])
    await reasoner.decide_many([ask()])
    assert [(event["source"], event["attempts"]) for event in events] == [
        ("fallback", 0),
        ("model", 1),
    ]
    assert "the question cannot be sent" in events[0]["reason"]


async def test_a_spent_budget_asks_nothing_at_all(server: FakeOllama) -> None:
    """With a spent budget not even the model's capabilities are asked for."""
    client = Counting(host=server.host)
    budget = Budget(max_calls=1)
    budget.take()
    assert (await decide(client, model="nimble", budget=budget)).source == "fallback"
    await client.close()
    assert (client.shown, server.questions) == (0, [])


# Leaving off


async def cancelled_after(steps: int, work: Any) -> bool:
    """Cancel something after so many turns of the event loop; tell whether it had ended before."""
    task = asyncio.ensure_future(work)
    for _ in range(steps):
        if task.done():
            break
        await asyncio.sleep(0)
    done = task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert done or task.cancelled()
    return done


@pytest.mark.parametrize(("mode", "model"), [("auto", "llama3.2"), ("auto", "nimble")])
async def test_a_cancelled_move_is_made_whole_or_not_at_all(
    mode: Any,
    model: str,
    server: FakeOllama,
    connect: Connect,
    until: Until,
    agent: Any,
    events: Any,
) -> None:
    """Wherever an afire is cancelled, the agent has not moved, and nothing is announced or left open."""
    chart = social_media_chart()
    agent.should_engage = lambda post: True
    steps, ended = 0, False
    while not ended:
        agent.state = S.EVALUATING
        client = connect(model=model)
        move = chart.afire(
            agent, "decides", POST, reasoner=Reasoner(client, mode=mode, pick="argmax")
        )
        ended = await cancelled_after(steps, move)
        steps = steps + 1 if steps < 40 else steps * 2
        if not ended:
            assert (agent.state, len(agent.state_history), events) == (S.EVALUATING, 0, [])
        await client.close()
    await until(lambda: server.open_connections == 0)
    assert (agent.state, len(agent.state_history)) == (S.COMPOSING, 1)
    assert [event["event"] for event in events] == ["reasoner.decision", "statechart.transition"]


@pytest.mark.parametrize("several", [False, True])
async def test_a_cancelled_decision_leaves_nothing_behind(
    several: bool, server: FakeOllama, connect: Connect, until: Until, events: Any
) -> None:
    """Wherever decide or decide_many is cancelled, no stream has been drawn from and no decision announced."""
    streams = [RandomStream(0, number) for number in range(4)]
    agents = [SimpleNamespace(agent_id=f"n{n}", random=stream) for n, stream in enumerate(streams)]
    questions = [Question(agent, S.EVALUATING, "decides", OPTIONS, POST) for agent in agents]
    client = connect(model="nimble", concurrency=2)
    steps, ended = 0, False
    while not ended:
        reasoner = Reasoner(client)
        if several:
            work: Any = reasoner.decide_many(questions)
        else:
            work = reasoner.decide(agents[0], S.EVALUATING, "decides", list(OPTIONS), POST)
        ended = await cancelled_after(steps, work)
        steps = steps + 1 if steps < 40 else steps * 2
        assert ended or events == []
    await client.close()
    await until(lambda: server.open_connections == 0)
    drawn = 4 if several else 1
    assert len(events) == drawn
    expected = [RandomStream(0, number) for number in range(4)]
    for stream in expected[:drawn]:
        stream.random()
    assert [stream.random() for stream in streams] == [stream.random() for stream in expected]


# What it says


async def test_a_decision_is_one_event(server: FakeOllama, connect: Connect, events: Any) -> None:
    """Each decision of a model is one event with its question, its answer and what it took."""
    await Reasoner(connect(model="nimble"), pick="argmax").decide_many([ask()])
    (event,) = events
    assert 0 < event.pop("latency") < 60
    assert event.pop("input_tokens") > 0
    assert event == {
        "event": "reasoner.decision",
        "log_level": "info",
        "agent_id": "Ada",
        "state": "evaluating",
        "trigger": "decides",
        "options": ["composing", "scrolling"],
        "chosen": "composing",
        "probabilities": {"composing": 0.9, "scrolling": 0.1},
        "source": "model",
        "reason": None,
        "context": {"post_id": "p1"},
        "model": "nimble",
        "host": server.host,
        "attempts": 1,
        "output_tokens": 0,
    }


async def test_a_failed_call_says_what_it_took(
    server: FakeOllama, connect: Connect, events: Any
) -> None:
    """The event of a fallback names model, host, attempts and reason."""
    server.fail(*[Fault.status(503, "busy", retry_after="0")] * 2)
    await Reasoner(connect(attempts=2), mode="chat").decide_many([ask()])
    (event,) = events
    assert (event["log_level"], event["source"], event["probabilities"]) == (
        "warning",
        "fallback",
        None,
    )
    assert (event["model"], event["host"], event["attempts"]) == ("llama3.2", server.host, 2)
    assert "503" in event["reason"]
    assert (event["input_tokens"], event["output_tokens"]) == (None, None)
