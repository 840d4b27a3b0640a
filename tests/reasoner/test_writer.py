"""Texts written by models on fake servers, and by bare clients."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from prism.statechart import Budget, Reasoner, TextCall, Writer
from prism.testing import FakeOllama, Fault
from prism.testing._server.tokens import count_tokens
from tests.kit.clients import Model, Silent
from tests.kit.pools import unpaused
from tests.kit.reasoners import ask
from tests.kit.servers import Connect, Serve, chats_of
from tests.kit.waiting import until

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def number(text: str) -> int:
    """Return the number of a reply; anything else cannot be used."""
    return int(json.loads(text)["n"])


def call(key: str = "k", prompt: str = "How many?", **changes: Any) -> TextCall:
    return TextCall("ada", key, prompt, **{"schema": SCHEMA, "read": number, **changes})


def calls(size: int, **changes: Any) -> list[TextCall]:
    return [call(f"k{each}", f"How many, {each}?", **changes) for each in range(size)]


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


def refuse(text: str) -> int:
    raise ValueError(f"{text} is of no use")


async def test_a_model_that_samples_writes_anew_on_each_occasion(
    counting: FakeOllama, connect: Connect
) -> None:
    """One agent that is asked the same again gets a text of its own, and the same in every run."""
    seeds: dict[float, list[int]] = {}
    for temperature in (0.0, 0.7):
        for _ in range(2):
            writer = Writer(connect(counting, temperature=temperature), seed=3)
            await writer.write_many([call(occasion=occasion) for occasion in (1, 2, 1)])
        seeds[temperature] = [body["options"]["seed"] for body in chats_of(counting)]
        counting.questions.clear()
    # both runs asked the same, and of the three the last is the first once more
    assert [len({*each}) for each in seeds.values()] == [1, 2]
    assert sorted(seeds[0.7][:3]) == sorted(seeds[0.7][3:])


async def test_every_request_for_a_text_has_a_seed_of_its_own(
    client: Client, counting: FakeOllama
) -> None:
    """A call says what is added to the seed; each further request for it adds one more."""
    asked, options = client()
    asked.temperature = 0
    await Writer(asked, **options).write(call(read=refuse, most_requests=3, variation=10))
    assert [body["options"]["seed"] for body in chats_of(counting)] == [10, 11, 12]


async def test_any_client_with_run_can_write() -> None:
    """A client that only takes a prompt writes, too, and its cost is what is known of it."""
    written = await Writer(Model('{"n": 4}')).write(call())
    assert (written.value, written.source) == (4, "model")
    assert written.cost is not None
    assert (written.cost.attempts, written.cost.input_tokens) == (1, None)


# Faults

BUSY = Fault.status(503, retry_after="0")
NONSENSE, EMPTY, WRONG = Fault.says("nonsense"), Fault.says(""), Fault.says('{"m": 1}')


@pytest.mark.parametrize(
    "faults",
    [
        [NONSENSE],
        [NONSENSE] * 3,
        [BUSY],
        [BUSY] * 3,
        [EMPTY] * 3,
        [WRONG, BUSY, EMPTY],
        [BUSY, BUSY, NONSENSE],
        [Fault.drop(), NONSENSE, Fault.status(500)],
        [Fault.drop_midway(), Fault.status(502, retry_after="0")],
        [Fault.calls_tool(), Fault.says("[1, 2")],
    ],
    ids=lambda faults: "+".join(fault.name for fault in faults),
)
@pytest.mark.sampled(35)
async def test_faults_are_followed_by_the_text(
    faults: list[Fault], client: Client, counting: FakeOllama
) -> None:
    """Up to three faults of any kind are followed by the text, with four requests allowed."""
    asked, options = client()
    counting.fail(*faults)
    written = await Writer(asked, **options).write(call(most_requests=4))
    # a useless reply is followed by a longer prompt, which says what was wrong
    told = len(counting.questions[-1].prompt)
    assert (written.value, written.source, written.reason) == (told, "model", None)
    assert written.cost is not None
    assert written.cost.attempts == counting.asked == len(faults) + 1


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("attempts", [1, 3, 5])
@pytest.mark.parametrize("kind", ["prism", "two", "ollama"])
@pytest.mark.parametrize("fault", [BUSY, NONSENSE, EMPTY, Fault.drop(), Fault.status(500)])
@pytest.mark.sampled(44, long=8)
async def test_no_more_requests_are_sent_than_may_be(
    fault: Fault,
    kind: str,
    attempts: int,
    most: int,
    counting: FakeOllama,
    serve: Serve,
    connect: Connect,
    no_pauses: None,
) -> None:
    """A call is asked as often as it may be in all, the client's own retries among them."""
    servers = [counting, serve()] if kind == "two" else [counting]
    for server in servers:
        server.fail_always(fault)
    client = connect(*servers, kind="pool" if kind == "two" else kind, attempts=attempts)
    if kind != "ollama":
        unpaused(client)
    writer = Writer(client, model="tiny", attempts=attempts if kind == "ollama" else None)
    written = await writer.write(call(most_requests=most))
    assert (written.source, written.value) == ("failed", None)
    assert written.reason
    assert written.cost is not None
    sent = sum(server.asked for server in servers)
    assert written.cost.attempts == sent == writer.budget.calls == most


async def test_a_call_without_a_number_is_asked_as_the_client_asks(
    counting: FakeOllama, connect: Connect
) -> None:
    """Without a number of requests, a text of no use is asked for once more, in other words."""
    counting.fail(BUSY, NONSENSE, NONSENSE)
    written = await Writer(unpaused(connect(counting, attempts=3))).write(call())
    assert (written.text, written.source, counting.asked) == ("nonsense", "failed", 3)
    assert written.cost is not None
    assert written.cost.repaired


async def test_a_text_is_not_asked_for_once_more_with_the_budget_spent(
    counting: FakeOllama, connect: Connect
) -> None:
    """The reason of the failure is the reply that came, and not the budget."""
    counting.fail(NONSENSE)
    written = await Writer(connect(counting), budget=Budget(max_calls=1)).write(call())
    assert (written.source, counting.asked) == ("failed", 1)
    assert "cannot be used" in (written.reason or "")


@pytest.mark.parametrize("said", ["no", "no: the prompt is too long"])
@pytest.mark.parametrize("status", [400, 401, 404, 413])
@pytest.mark.sampled(6)
async def test_what_a_server_refuses_is_not_asked_again(
    status: int, said: str, client: Client, counting: FakeOllama
) -> None:
    """A prompt that a server refuses is not put to it again: it would say the same."""
    asked, options = client()
    counting.fail_always(Fault.status(status, said))
    written = await Writer(asked, **options).write(call(most_requests=4))
    assert written.has_failed
    assert (written.text, counting.asked) == (None, 1)
    assert "no" in str(written.reason)


@pytest.mark.parametrize("most", [1, 2])
async def test_where_one_server_lacks_the_model_another_is_asked(
    most: int, counting: FakeOllama, serve: Serve, connect: Connect
) -> None:
    """A server without the model costs a call none of its requests, though it is counted."""
    other = serve(models=["another"])
    written = await Writer(connect(other, counting)).write(call(most_requests=most))
    assert (written.value, written.source) == (9, "model")
    assert written.cost is not None
    assert written.cost.attempts == other.asked + counting.asked == 2


async def test_the_last_text_is_kept_with_a_failure(client: Client, counting: FakeOllama) -> None:
    """Where the model wrote something and then failed, the failure has the text and the reason."""
    asked, options = client()
    counting.fail(NONSENSE, *[Fault.status(400, "enough")] * 2)
    written = await Writer(asked, **options).write(call(most_requests=3))
    assert (written.text, written.source) == ("nonsense", "failed")
    assert "enough" in str(written.reason)


async def test_a_reader_that_breaks_is_a_failure(client: Client) -> None:
    """An exception in what reads the text is a failure, and frees the slot."""

    def breaks(text: str) -> int:
        raise LookupError("no such thing")

    asked, options = client()
    writer = Writer(asked, **options)
    written = await writer.write(call(read=breaks))
    assert (written.source, written.reason) == ("failed", "LookupError: no such thing")
    assert (await writer.write(call())).value == 9


# Cost and limits


@pytest.mark.sampled(3)
async def test_costs_of_all_requests_are_summed(
    client: Client, counting: FakeOllama, logger: Any, capture: Any
) -> None:
    """Attempts, tokens and seconds of all requests of a call are in its cost and its event."""
    asked, options = client()
    counting.latency = 0.02
    counting.fail(NONSENSE, Fault.says("more nonsense"))
    writer = Writer(asked, **options)
    written = await writer.write(call(prompt="one two three", most_requests=4), logger=logger)
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
    (event,) = capture.entries
    assert (event["attempts"], event["input_tokens"], event["output_tokens"]) == (3, read, 5)
    assert event["repaired"] is True
    assert (event["model"], event["done_reason"]) == ("tiny", "stop")


async def test_a_budget_is_shared_with_a_reasoner(server: FakeOllama, connect: Connect) -> None:
    """Texts and decisions are taken out of one budget; when it is spent, nothing is sent."""
    budget, pool = Budget(max_calls=3), connect()
    writer, reasoner = Writer(pool, budget=budget), Reasoner(pool, mode="chat", budget=budget)
    plain = [TextCall("ada", each, "Hi?") for each in "ab"]
    assert [each.source for each in await writer.write_many(plain)] == ["model"] * 2
    assert (await reasoner.decide_many([ask()]))[0].source == "model"
    (decision,) = await reasoner.decide_many([ask("Bo")])
    written = await writer.write(call(most_requests=4))
    assert decision.reason == written.reason == "BudgetSpentError: budget spent: 3 calls"
    assert (budget.calls, server.asked) == (3, 3)
    assert written.cost is not None
    assert written.cost.attempts == 0


async def test_a_text_that_takes_too_long_fails() -> None:
    """A client that never answers is given up after the time-out, for each request."""
    written = await Writer(Silent(), timeout=0.02).write(call(most_requests=2))
    assert written.reason == "TimedOutError: no answer within 0.02 s"
    assert written.cost is not None
    assert (written.cost.attempts, written.cost.latency >= 0.039) == (2, True)


@pytest.mark.sampled(3)
async def test_a_cancelled_call_closes_its_connection(client: Client, counting: FakeOllama) -> None:
    """A call that is cancelled is over, its connection closed, and the writer of use still."""
    asked, options = client()
    counting.fail(Fault.hang())
    writer = Writer(asked, **options)
    task = asyncio.create_task(writer.write(call(most_requests=4)))
    await until(lambda: counting.asked == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: counting.open_connections == 0)
    assert ((await writer.write(call())).value, writer.budget.calls) == (9, 2)
