"""Retries of a pool, and servers that are busy."""

import asyncio

import pytest

from prism.errors import (
    CircuitOpenError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    UnreachableError,
)
from prism.reasoner import Cost
from prism.reasoner._slots import (
    FAILURES_TO_OPEN,
    FIRST_HOLD_SECONDS,
    LONGEST_HOLD_SECONDS,
    Throttle,
)
from prism.reasoner._spending import random_backoff
from prism.testing import FakeOllama, Fault
from tests.kit.clocks import Clock
from tests.kit.pools import ask, at_rest, impatient, open_at_once, unpaused
from tests.kit.servers import BOTH, HELLO, Connect, Serve
from tests.kit.waiting import until


@BOTH
@pytest.mark.parametrize(
    "fault",
    [
        Fault.drop(),
        Fault.drop_midway(),
        Fault.hang(),
        *(Fault.status(code) for code in (429, 502, 503, 504)),
    ],
    ids=lambda fault: fault.name,
)
@pytest.mark.sampled(7)
async def test_a_retryable_failure_is_retried(
    server: FakeOllama, connect: Connect, fault: Fault, loop_clock: Clock
) -> None:
    """A failure that passes costs attempts, which are counted, but not the answer."""
    server.fail(fault, fault)
    pool, cost = unpaused(connect(attempts=3, timeout=5)), Cost()
    asking = asyncio.create_task(pool.chat(HELLO, cost=cost))
    for requests in (1, 2) if fault.name == "hang" else ():
        await loop_clock.passes(5, when=lambda count=requests: len(server.questions) == count)
    reply = await asking
    assert (reply.text, cost.attempts, len(server.questions)) == ("Hello.", 3, 3)


@BOTH
@pytest.mark.parametrize("fault", [Fault.drop(), Fault.status(503)], ids=lambda fault: fault.name)
async def test_the_last_attempt_raises_its_error(
    server: FakeOllama, connect: Connect, fault: Fault
) -> None:
    """After the last attempt the error itself is raised; the cost has the number of attempts."""
    server.fail_always(fault)
    cost = Cost()
    with pytest.raises((UnreachableError, OverloadedError), match=r"broke|answered 503"):
        await unpaused(connect(attempts=2)).chat(HELLO, cost=cost)
    assert (cost.attempts, len(server.questions)) == (2, 2)


@BOTH
@pytest.mark.parametrize(
    "fault",
    [
        *(Fault.status(code) for code in (400, 404)),
        Fault.status(404, "model 'tiny' not found"),
        Fault.body(b"<html>"),
        Fault.says(""),
    ],
    ids=["400", "404", "no model", "html", "empty"],
)
@pytest.mark.sampled(5)
async def test_a_permanent_failure_is_not_retried(
    server: FakeOllama, connect: Connect, fault: Fault
) -> None:
    """A refusal or a bad reply is not retried, and later questions are asked."""
    server.fail(*[fault] * (FAILURES_TO_OPEN + 1))
    pool, cost = connect(attempts=3), Cost()
    for number in range(1, FAILURES_TO_OPEN + 2):
        with pytest.raises(LLMError):
            await pool.chat(HELLO, cost=cost)
        assert cost.attempts == len(server.questions) == number
    assert (await pool.chat(HELLO)).text == "Hello."


INTERNAL = [Fault.status(500), Fault.status(520), Fault.body(b'{"error": "the runner died"}')]


@BOTH
@pytest.mark.parametrize("fault", INTERNAL, ids=["500", "520", "error in a 200"])
@pytest.mark.sampled(3)
async def test_an_internal_error_is_retried_once(
    server: FakeOllama, connect: Connect, fault: Fault
) -> None:
    """An internal error is asked about once more, not three times, and never without retries."""
    pool, cost = connect(attempts=3), Cost()
    server.fail(fault)
    assert (await pool.chat(HELLO, cost=cost)).text == "Hello."
    assert cost.attempts == len(server.questions) == 2

    for attempts, requests in ((3, 2), (1, 1)):
        server.fail(*[fault] * requests)
        cost = Cost()
        with pytest.raises(LLMError):
            await connect(attempts=attempts).chat(HELLO, cost=cost)
        assert cost.attempts == requests
    assert not pool.servers[0].breaker.is_open()


@BOTH
async def test_a_retry_goes_to_another_server(serve: Serve, connect: Connect) -> None:
    """A question that failed on one server goes to the other at once, whatever Retry-After says."""
    broken, good = serve(), serve()
    broken.fail_always(Fault.status(503, retry_after="60"))
    cost = Cost()
    reply = await connect(broken, good, attempts=2).chat(HELLO, cost=cost)
    assert (reply.host, cost.host, cost.attempts) == (good.host, good.host, 2)


@BOTH
async def test_retry_after_is_respected(
    server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """With Retry-After the second request does not come within the usual jitter."""
    server.fail(Fault.status(503, retry_after="20"))
    pool = connect(attempts=2)
    task = asyncio.create_task(pool.chat(HELLO))
    # the answer is there before the pause begins, and with it the time of the hold
    await until(lambda: pool.servers[0].traffic.throttle.seconds_left())
    await loop_clock.passes(19.9)
    assert (task.done(), len(server.questions)) == (False, 1)
    loop_clock.time += 0.1 + FIRST_HOLD_SECONDS
    await task
    assert len(server.questions) == 2


@BOTH
async def test_retry_after_is_respected_if_all_other_circuits_are_open(
    serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """A second server that cannot be asked now is no reason to pass over the wish of the first."""
    busy, dead = serve(), serve()
    busy.fail(Fault.status(503, retry_after="20"))
    pool = connect(busy, dead, attempts=2)
    open_at_once(impatient(pool, pause=60), 1)
    task = asyncio.create_task(pool.chat(HELLO))
    await until(lambda: pool.servers[0].traffic.throttle.seconds_left())
    await loop_clock.passes(19.9)
    assert (task.done(), len(busy.questions), dead.questions) == (False, 1, [])
    loop_clock.time += 0.1 + FIRST_HOLD_SECONDS
    assert (await task).host == busy.host


@pytest.mark.parametrize(("attempt", "longest"), [(1, 0.2), (2, 0.4), (3, 0.8), (20, 5.0)])
def test_backoff_grows_and_is_random(attempt: int, longest: float) -> None:
    """The pause after a failure is random; its bound doubles with every attempt up to 5 s."""
    pauses = {random_backoff(attempt) for _ in range(200)}
    assert len(pauses) > 100
    assert longest / 2 < max(pauses) <= longest


@BOTH
@pytest.mark.parametrize(("slots", "queue_limit"), [(2, 1), (1, 0)])
@pytest.mark.slow
async def test_a_busy_server_opens_no_circuit(
    serve: Serve, connect: Connect, slots: int, queue_limit: int
) -> None:
    """A server that takes fewer at once than it is asked answers all, with few refusals."""
    server = serve(slots=slots, queue_limit=queue_limit, latency=0.005)
    pool = connect(server, concurrency=8, attempts=3)
    cost = Cost()
    replies = await asyncio.gather(*(pool.chat(HELLO, cost=cost) for _ in range(40)))
    assert len(replies) == 40
    assert len(server.questions) == cost.attempts < 3 * 40
    assert not pool.servers[0].breaker.is_open()
    assert at_rest(pool)


@BOTH
@pytest.mark.parametrize("code", [429, 503])
@pytest.mark.parametrize("retry_after", [None, "0.02"])
@pytest.mark.slow
async def test_a_burst_of_refusals_loses_no_answer(
    server: FakeOllama, connect: Connect, code: int, retry_after: str | None
) -> None:
    """Questions refused together, and those that wait, are answered when the server can."""
    server.fail(*[Fault.status(code, retry_after=retry_after)] * 8)
    # by the real clock, with short holds
    pool = connect(concurrency=8, attempts=3)
    pool.servers[0].traffic.throttle = Throttle(first_hold=0.01)
    assert len(await ask(pool, 50)) == 50
    assert len(server.questions) == 58


@BOTH
async def test_other_questions_respect_retry_after_too(
    server: FakeOllama, connect: Connect
) -> None:
    """After Retry-After the other questions wait, too, instead of being refused in turn."""
    server.fail(Fault.status(429, retry_after="20"))
    pool = connect(concurrency=1, attempts=3)
    tasks = [asyncio.create_task(pool.chat(HELLO)) for _ in range(10)]
    await until(lambda: pool.waiting == 10)
    assert (len(server.questions), pool.servers[0].breaker.is_open()) == (1, False)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert at_rest(pool)


@BOTH
@pytest.mark.sampled(2)
async def test_a_server_that_is_always_busy_opens_its_circuit(
    server: FakeOllama, connect: Connect
) -> None:
    """A server that has refused everything for long counts as failing, so that questions end."""
    server.fail_always(Fault.status(503))
    pool = connect(concurrency=8, attempts=3)
    pool.servers[0].traffic.throttle = Throttle(first_hold=0.01, longest_busy=0)
    ended = await asyncio.gather(*(pool.chat(HELLO) for _ in range(100)), return_exceptions=True)
    assert {type(end) for end in ended} == {OverloadedError, CircuitOpenError}
    assert len(server.questions) < 50
    assert at_rest(pool)


@BOTH
async def test_with_patience_a_refusal_uses_up_no_attempt(
    server: FakeOllama, connect: Connect
) -> None:
    """A server that takes nothing for a moment, as behind a gateway, costs no question."""
    pool = unpaused(connect(attempts=1, patience=60))
    server.fail(*[Fault.status(503)] * 4)
    assert (await pool.chat(HELLO)).text == "Hello."


@BOTH
async def test_a_server_that_refuses_everything_is_waited_for_as_long_as_patience(
    server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """Questions end when it is over, but for the last pause, and later ones at once."""
    server.fail_always(Fault.status(529))
    pool = connect(attempts=3, patience=8)
    asking, began = asyncio.create_task(ask(pool, 20)), loop_clock()
    throttle = pool.servers[0].traffic.throttle
    while not asking.done():
        await loop_clock.passes(0.5, when=lambda: asking.done() or throttle.seconds_left())
    assert 8 <= loop_clock() - began <= 8 + LONGEST_HOLD_SECONDS + 1
    for failing in (asking, pool.chat(HELLO)):
        with pytest.raises(LLMError, match="answered 529"):
            await failing
    assert at_rest(pool)


@BOTH
@pytest.mark.slow
async def test_a_model_that_is_pulled_anew_is_waited_for(
    server: FakeOllama, connect: Connect
) -> None:
    """With patience a model that was there is waited for; that costs a few probes, no answer."""
    pool = impatient(connect(concurrency=8, patience=60), patience=60)
    await ask(pool)
    before, models = len(server.questions), server.models
    server.models = ()
    asking = asyncio.create_task(ask(pool, 60))
    await until(lambda: pool.servers[0].breaker.is_open() and pool.waiting)
    server.models = models
    assert len(await asking) == 60
    # those under way, and probes whose pauses double
    assert len(server.questions) - before <= 60 + 8 + FAILURES_TO_OPEN + 8
    assert at_rest(pool)


LOST = [
    Fault.status(500, "unable to load model: /models/blobs/sha256-0f5e"),
    Fault.status(400, "The model has crashed without additional information. (Exit code: 6)"),
    Fault.status(500, "The model has crashed without additional information. (Exit code: 6)"),
    Fault.status(400, "Model is unloaded."),
]


@BOTH
@pytest.mark.parametrize("lost", LOST, ids=["files", "crash", "crash, 500", "unloaded"])
@pytest.mark.parametrize("patience", [0, 60])
@pytest.mark.sampled(6)
async def test_a_model_that_is_lost_for_a_moment_is_waited_for(
    server: FakeOllama, connect: Connect, patience: float, lost: Fault
) -> None:
    """Files that are replaced and a crash are waited for with patience, else asked once more."""
    pool = impatient(connect(patience=patience, attempts=3), pause=0.005, patience=patience)
    await ask(pool)
    server.fail(*[lost] * (12 if patience else 1))
    assert len(await ask(pool, 20)) == 20
    assert server.asked == 21 + (12 if patience else 1)
    if not patience:
        server.fail(lost, lost)
        with pytest.raises(LLMError, match=r"unable to load|crashed|unloaded"):
            await pool.chat(HELLO)
    assert at_rest(pool)


@BOTH
@pytest.mark.parametrize("patience", [0, 60])
async def test_a_model_that_never_was_there_is_not_waited_for(
    server: FakeOllama, connect: Connect, patience: float
) -> None:
    """A wrong name costs each question one request, whatever the patience."""
    pool, cost = connect(model="vast", patience=patience), Cost()
    for _ in range(3):
        with pytest.raises(ModelMissingError):
            await pool.chat(HELLO, cost=cost)
    assert cost.attempts == len(server.questions) == 3
