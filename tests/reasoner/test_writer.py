"""Texts written by models on fake servers, and by bare clients."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prism.reasoner import Budget, Reasoner, TextCall, Writer
from prism.testing import FakeOllama, Fault
from prism.testing._wire import count_tokens
from tests.kit.clients import Model
from tests.kit.reasoners import ask
from tests.kit.servers import Connect, Serve, chats_of, unpaused

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def number(text: str) -> int:
    """Return the number of a reply; anything else cannot be used."""
    return int(json.loads(text)["n"])


def call(key: str = "k", prompt: str = "How many?", **changes: Any) -> TextCall:
    return TextCall("ada", key, prompt, **{"schema": SCHEMA, "read": number, **changes})


@pytest.fixture
def counting(serve: Serve) -> FakeOllama:
    """Return a server that answers with the length of the prompt."""
    return serve(write=lambda prompt, schema: {"n": len(prompt)} if schema else prompt.upper())


Client = Callable[[], tuple[Any, dict[str, Any]]]


@pytest.fixture(params=["prism", "pool", "ollama"])
def client(request: Any, counting: FakeOllama, connect: Connect, no_pauses: None) -> Client:
    """Return a maker of each kind of client and what a writer has to be told about it."""

    def make() -> tuple[Any, dict[str, Any]]:
        kind = request.param
        asked = connect(counting, kind=kind, attempts=3)
        return (asked, {"model": "tiny"}) if kind == "ollama" else (unpaused(asked), {})

    return make


# What is sent and what comes back


@pytest.mark.parametrize(("schema", "text"), [(None, "HOW MANY?"), (SCHEMA, '{"n": 9}')])
async def test_the_schema_is_sent(
    schema: Any, text: str, client: Client, counting: FakeOllama
) -> None:
    """The prompt is the one message of a chat, with the schema as its format where there is one."""
    asked, options = client()
    read: Any = json.loads if schema else str
    written = await Writer(asked, **options).write(call(schema=schema, read=read))
    assert (written.text, written.source, written.value) == (text, "model", read(text))
    (body,) = chats_of(counting)
    assert body["messages"] == [{"role": "user", "content": "How many?"}]
    assert body.get("format") == schema


async def test_a_model_that_samples_writes_anew_for_each_call(
    counting: FakeOllama, connect: Connect
) -> None:
    """Each agent and each key has a seed of its own, the same in every run; at 0 all have one."""
    seeds: dict[float, list[int]] = {}
    for temperature in (0.0, 0.7):
        for _ in range(2):
            writer = Writer(connect(counting, temperature=temperature), seed=3)
            await writer.write_many([call("a"), call("b"), call("c", "How few?", variation=5)])
        seeds[temperature] = [body["options"]["seed"] for body in chats_of(counting)]
        counting.questions.clear()
    assert [len({*each}) for each in seeds.values()] == [2, 3]
    assert sorted(seeds[0.7][:3]) == sorted(seeds[0.7][3:])


# Faults

BUSY = Fault.status(503, headers={"Retry-After": "0"})
NONSENSE, EMPTY = Fault.says("nonsense"), Fault.says("")


@pytest.mark.parametrize(
    "faults",
    [
        [NONSENSE],
        [NONSENSE] * 3,
        [BUSY, BUSY],
        [EMPTY] * 3,
        [NONSENSE, BUSY, EMPTY],
        [Fault.drop(), NONSENSE, Fault.status(500)],
        [Fault.calls_tool(), Fault.says("[1, 2")],
    ],
    ids=lambda faults: "+".join(fault.name for fault in faults),
)
@pytest.mark.sampled(21)
async def test_faults_are_followed_by_the_text(
    faults: list[Fault], client: Client, counting: FakeOllama
) -> None:
    """Faults of any kind are followed by the text, with four tries allowed."""
    asked, options = client()
    counting.fail(*faults)
    written = await Writer(asked, **options).write(call(tries=4))
    # a useless reply is followed by a longer prompt, which says what was wrong
    told = len(counting.questions[-1].prompt)
    assert (written.value, written.source, written.reason) == (told, "model", None)
    assert written.cost is not None
    assert written.cost.attempts == counting.asked == len(faults) + 1


@pytest.mark.parametrize(("fault", "asked"), [(NONSENSE, 2), (EMPTY, 2), (BUSY, 3)])
async def test_a_text_is_asked_for_so_often(
    fault: Fault, asked: int, client: Client, counting: FakeOllama
) -> None:
    """A text of no use is asked for once more; what fails for a moment, as often as allowed."""
    counting.fail_always(fault)
    client_of_kind, options = client()
    writer = Writer(client_of_kind, **options)
    written = await writer.write(call())
    assert (written.source, written.value) == ("failed", None)
    assert written.cost is not None
    assert written.cost.attempts == counting.asked == writer.budget.calls == asked
    assert written.cost.repaired is (True if fault is not BUSY else None)


async def test_no_request_is_repeated(client: Client, counting: FakeOllama) -> None:
    """However often a model gives the same useless text, the next prompt is another one."""
    asked, options = client()
    counting.fail_always(NONSENSE)
    written = await Writer(asked, **options).write(call(tries=4))
    assert (written.source, written.failure) == ("failed", "UselessReplyError")
    assert len({question.prompt for question in counting.questions}) == 4
    assert "Your last 3 replies could not be used: Expecting" in counting.questions[-1].prompt


@pytest.mark.parametrize("limit", [None, 1])
async def test_the_last_text_is_kept_with_a_failure(
    limit: int | None, client: Client, counting: FakeOllama
) -> None:
    """Where the model wrote something, and then failed or cost too much, that is the reason."""
    asked, options = client()
    counting.fail(NONSENSE, *[Fault.status(400, "enough")] * 2)
    written = await Writer(asked, budget=Budget(max_calls=limit), **options).write(call())
    assert (written.text, written.source) == ("nonsense", "failed")
    assert "cannot be used" in str(written.reason)


async def test_a_reader_that_breaks_is_a_failure(client: Client) -> None:
    """An exception in what reads the text is a failure, and frees the slot."""

    def breaks(text: str) -> int:
        raise LookupError("no such thing")

    asked, options = client()
    writer = Writer(asked, **options)
    written = await writer.write(call(read=breaks))
    assert (written.source, written.reason) == ("failed", "LookupError: no such thing")
    assert (await writer.write(call())).value == 9


@given(st.text(st.characters(exclude_categories=()), min_size=1, max_size=20).filter(str.strip))
@example("a\ud83d b")
def test_every_text_can_be_logged(text: str) -> None:
    """What a text has of half characters is replaced, all else is kept, so that a log holds it."""
    plain = TextCall("ada", "k", "?")
    kept = asyncio.run(Writer(Model(text), model="tiny").write(plain)).text
    assert kept == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


async def test_texts_are_announced_in_the_order_of_the_calls(heard: list[Any]) -> None:
    """Each text is one event, in the order of the calls; a failed one is a warning."""
    failed = call("b", schema=None)
    plain = [TextCall("ada", key, "?") for key in "ac"]
    await Writer(Model("Hi."), model="tiny").write_many([plain[0], failed, plain[1]])
    costs = ("queue_seconds", "request_seconds", "latency", "prompt_hash")
    assert all(event.pop(each) for event in heard for each in costs)
    common = {"event": "text.written", "agent_id": "ada", "text": "Hi.", "reason": None}
    common |= {"model": "tiny", "host": None, "input_tokens": None, "output_tokens": None}
    written = {**common, "log_level": "info", "source": "model", "attempts": 1}
    reason = "the text cannot be used: Expecting value: line 1 column 1 (char 0)"
    useless = {**common, "log_level": "warning", "source": "failed", "attempts": 2}
    useless |= {"key": "b", "reason": reason, "repaired": True}
    assert heard == [{**written, "key": "a"}, useless, {**written, "key": "c"}]


# Cost and limits


@pytest.mark.sampled(3)
async def test_costs_of_all_requests_are_summed(
    client: Client, counting: FakeOllama, heard: list[Any]
) -> None:
    """Attempts, tokens and seconds of all requests of a call are in its cost and its event."""
    asked, options = client()
    counting.latency = 0.02
    counting.fail(NONSENSE, Fault.says("more nonsense"))
    writer = Writer(asked, **options)
    written = await writer.write(call(prompt="one two three", tries=4))
    cost = written.cost
    assert cost is not None
    read = sum(count_tokens(question.prompt) for question in counting.questions)
    assert (cost.attempts, cost.input_tokens, cost.output_tokens) == (3, read, 1 + 2 + 2)
    assert cost.queue_seconds is not None
    assert cost.request_seconds is not None
    assert cost.latency == pytest.approx(cost.queue_seconds + cost.request_seconds)
    # of three requests the last; a sleep may be a hair too short
    assert 0.019 <= cost.request_seconds <= cost.latency - 0.038
    assert writer.budget.tokens == read + 5
    (event,) = heard
    assert (event["attempts"], event["input_tokens"], event["output_tokens"]) == (3, read, 5)
    assert event["done_reason"] == "stop"


async def test_a_budget_is_shared_with_a_reasoner(server: FakeOllama, connect: Connect) -> None:
    """Texts and decisions are taken out of one budget; when it is spent, nothing is sent."""
    budget, pool = Budget(max_calls=3), connect()
    writer, reasoner = Writer(pool, budget=budget), Reasoner(pool, mode="chat", budget=budget)
    plain = [TextCall("ada", each, f"Hi, {each}?") for each in "ab"]
    assert [each.source for each in await writer.write_many(plain)] == ["model"] * 2
    assert (await reasoner.decide_many([ask()]))[0].source == "model"
    (decision,) = await reasoner.decide_many([ask("Bo")])
    written = await writer.write(call())
    assert decision.reason == written.reason == "BudgetSpentError: budget spent: 3 calls"
    assert decision.failure == written.failure == "BudgetSpentError"
    assert (budget.calls, server.asked) == (3, 3)
    assert written.cost is not None
    assert written.cost.attempts == 0
