"""Deciding with a language model."""

import asyncio
from types import SimpleNamespace
from typing import Any

import ollama
import pytest

from prism.errors import FieldTypeError, FieldValueError, ReasonerError
from prism.llm import Model
from prism.randomness import RandomStream
from prism.reasoner import Question, Reasoner
from prism.testing import FakeOllama
from tests.kit.clients import Silent
from tests.kit.modules import Later
from tests.kit.reasoners import OPTIONS, POST, S, ask, crowd
from tests.kit.servers import Connect
from tests.kit.waiting import until

openai = Later("openai")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "timeout must be a number above 0, got 0"),
        ({"timeout": float("nan")}, "timeout must be a number above 0, got nan"),
        ({"timeout": "30"}, "timeout must be a number above 0, got '30'"),
        ({"concurrency": 0}, "concurrency must be a number above 0, got 0"),
        ({"mode": "guess"}, "mode must be one of auto, chat, got 'guess'"),
        ({"memory": "5"}, "memory must be a number above 0, got '5'"),
    ],
)
def test_settings_are_checked(options: Any, message: str) -> None:
    """A setting out of range is a ValueError that names it and what was given."""
    with pytest.raises(FieldValueError, match=message):
        Reasoner(Silent(), **options)


def test_a_question_needs_options() -> None:
    """A question without options is a ValueError that names agent and trigger, with advice."""
    message = "agent 'Ada' was asked what to do on 'decides' with no options: ask only when chart"
    with pytest.raises(ValueError, match=message) as caught:
        ask(options=())
    assert isinstance(caught.value, ReasonerError)


async def test_what_is_misspelt_or_of_another_kind_is_refused() -> None:
    """Neither waits until a server is down to decide in silence for the first option."""
    with pytest.raises(ReasonerError, match="fallback 'scroling' is no state of AgentState"):
        await Reasoner(Silent(), fallback="scroling").decide_many([ask()])
    with pytest.raises(TypeError, match="unexpected keyword argument 'timout'"):
        Reasoner(Silent(), timout=3)  # type: ignore[call-arg]
    with pytest.raises(FieldTypeError, match=r"budget must be a Budget\(max_calls=...\), got 20"):
        Reasoner(Silent(), budget=20)  # type: ignore[arg-type]


def test_a_client_with_slots_takes_no_concurrency() -> None:
    """A concurrency for a client that has one of its own is an error that gives both."""
    pool = Model("tiny", ["localhost"], concurrency=3).as_client()
    with pytest.raises(FieldValueError, match="concurrency must be omitted, got 5: set it on"):
        Reasoner(Model("tiny", ["localhost"], concurrency=3), concurrency=5)
    with pytest.raises(FieldValueError, match="attempts must be omitted, got 2"):
        Reasoner(pool, attempts=2)
    assert Reasoner(pool).concurrency == 3
    assert Reasoner(Silent()).concurrency == 16


THERE = {"base_url": "http://127.0.0.1:1/v1", "api_key": "x"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (object, "needs an async method chat, get_response or run; object has none"),
        (ollama.Client, "Client stops the event loop .*: use ollama.AsyncClient"),
        (lambda: openai.OpenAI(**THERE), r"use openai\.AsyncOpenAI"),
        (ollama.AsyncClient, "AsyncClient.* needs the name of a model: give one"),
        (lambda: openai.AsyncOpenAI(**THERE), r"AsyncOpenAI\.chat needs the name of a model"),
    ],
)
def test_an_unusable_client_is_refused(make: Any, message: str) -> None:
    """A client that cannot be asked is refused when the reasoner is made."""
    with pytest.raises(ReasonerError, match=message):
        Reasoner(make())


async def test_an_unexpected_exception_leaves_no_task_running(
    server: FakeOllama, connect: Connect
) -> None:
    """If a template names what one agent lacks, all requests are over before the caller knows."""
    questions = crowd(40)
    for question in questions[:-1]:
        question.agent.age = 5
    server.latency = 60
    client = connect(concurrency=4)
    with pytest.raises(ReasonerError, match="which agent 'n39' does not have"):
        await Reasoner(client, mode="chat", prompt="{agent.age}").decide_many(questions)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert client.servers[0].open == 0
    await client.close()
    await until(lambda: server.open_connections == 0)


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


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.sampled(2)
async def test_a_cancelled_decision_leaves_nothing_behind(
    several: bool, server: FakeOllama, connect: Connect, heard: Any
) -> None:
    """Wherever a decision is cancelled, no stream was drawn from and nothing is announced."""
    streams = [RandomStream(0, number) for number in range(4)]
    agents = [SimpleNamespace(agent_id=f"n{n}", random=stream) for n, stream in enumerate(streams)]
    questions = [Question(agent, S.EVALUATING, "decides", OPTIONS, POST) for agent in agents]
    client = connect(model="llama3.2", concurrency=2)
    steps, ended = 0, False
    while not ended:
        reasoner = Reasoner(client)
        if several:
            work: Any = reasoner.decide_many(questions)
        else:
            work = reasoner.decide(agents[0], S.EVALUATING, "decides", list(OPTIONS), POST)
        ended = await cancelled_after(steps, work)
        steps = steps + 1 if steps < 40 else steps * 2
        assert ended or heard == []
    await client.close()
    await until(lambda: server.open_connections == 0)
    drawn = 4 if several else 1
    assert len(heard) == drawn
    expected = [RandomStream(0, number) for number in range(4)]
    for stream in expected[:drawn]:
        stream.random()
    assert [stream.random() for stream in streams] == [stream.random() for stream in expected]


async def test_decisions_are_silent_without_configuration(
    server: FakeOllama, connect: Connect, capsys: Any, caplog: Any
) -> None:
    """Without a logger and without configured structlog a decision prints and logs nothing."""
    await Reasoner(connect()).decide_many([ask()])
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []


async def test_a_decision_is_one_event(server: FakeOllama, connect: Connect, heard: Any) -> None:
    """Each decision of a model is one event with its question, its answer and what it took."""
    await Reasoner(connect(model="llama3.2")).decide_many([ask()])
    (event,) = heard
    assert 0 < event["latency"] < 60
    parts = event.pop("queue_seconds") + event.pop("request_seconds")
    assert parts == pytest.approx(event.pop("latency"))
    assert event.pop("input_tokens") > 0
    assert len(event.pop("prompt_hash")) == 16
    question = {"agent_id": "Ada", "state": "evaluating", "trigger": "decides"}
    question |= {"options": ["composing", "scrolling"], "context": {"post_id": "p1"}}
    answer = {"chosen": "composing", "probabilities": {"composing": 1.0, "scrolling": 0.0}}
    answer |= {"question_kind": "letter", "option_mass": 1.0, "source": "model", "reason": None}
    cost = {"model": "llama3.2", "host": server.host, "attempts": 1, "output_tokens": 2}
    log = {"event": "reasoner.decision", "log_level": "info", "done_reason": "stop"}
    assert event == {**log, **question, **answer, **cost}
