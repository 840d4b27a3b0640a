"""Servers that fail: a pool with open circuit breakers."""

import asyncio
from collections import Counter

import pytest

from prism.errors import (
    CircuitOpenError,
    LLMError,
    OverloadedError,
    UnreachableError,
)
from prism.reasoner import Cost
from prism.reasoner._slots import FAILURES_TO_OPEN
from prism.testing import FakeOllama, Fault
from tests.kit.clocks import Clock
from tests.kit.pools import (
    ask,
    at_rest,
    impatient,
    open_at_once,
    open_breaker,
)
from tests.kit.servers import BOTH, HELLO, Connect, Gate, Serve
from tests.kit.waiting import until


@BOTH
@pytest.mark.slow
async def test_a_failing_server_opens_its_circuit_and_is_probed_once(
    server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """After five failures nothing is asked, then one question probes; its success admits all."""
    pool, cost = impatient(connect(concurrency=8), pause=2), Cost()
    await open_breaker(server, pool)
    with pytest.raises(
        CircuitOpenError, match=r"circuit open for 2\.0 s after repeated failures: .* broke"
    ) as caught:
        await pool.chat(HELLO, cost=cost)
    assert (cost.attempts, caught.value.host, len(server.questions)) == (
        0,
        server.host,
        FAILURES_TO_OPEN,
    )
    loop_clock.time += 2
    gate = server.latency = Gate()
    asking = asyncio.create_task(ask(pool, 40))
    await until(lambda: len(server.questions) == FAILURES_TO_OPEN + 1)
    assert pool.waiting == 39
    gate.is_open = True
    assert len(await asking) == 40


@BOTH
async def test_a_failed_probe_fails_those_who_wait_for_it(
    server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """Those who waited for a probe fail at once when it does, and have asked nothing."""
    pool = impatient(connect(concurrency=8), pause=2)
    await open_breaker(server, pool)
    loop_clock.time += 2
    server.fail_always(Fault.drop())
    costs = [Cost() for _ in range(5)]
    first, *others = await asyncio.gather(
        *(pool.chat(HELLO, cost=cost) for cost in costs), return_exceptions=True
    )
    assert isinstance(first, UnreachableError)
    assert [type(other) for other in others] == [CircuitOpenError] * 4
    assert [cost.attempts for cost in costs] == [1, 0, 0, 0, 0]
    assert at_rest(pool)


@BOTH
async def test_waiting_for_a_probe_has_a_limit(
    server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """A probe that is not answered delays the others only for a moment, later ones not at all."""
    pool = impatient(connect(concurrency=8, timeout=60), pause=2, probe_wait=10)
    await open_breaker(server, pool)
    loop_clock.time += 2
    server.fail_always(Fault.hang())
    probe, *others = [asyncio.create_task(pool.chat(HELLO)) for _ in range(5)]
    await loop_clock.passes(10, when=lambda: len(server.questions) > FAILURES_TO_OPEN)
    ended = await asyncio.gather(*others, return_exceptions=True)
    ended += await asyncio.gather(pool.chat(HELLO), return_exceptions=True)
    assert {type(end) for end in ended} == {CircuitOpenError}
    assert (probe.done(), len(server.questions)) == (False, FAILURES_TO_OPEN + 1)
    probe.cancel()
    await asyncio.wait({probe})


@BOTH
@pytest.mark.sampled(2)
async def test_a_cancelled_probe_is_replaced(server: FakeOllama, connect: Connect) -> None:
    """When the question that probes is given up one of those who wait for it takes its place."""
    pool = impatient(connect())
    await open_breaker(server, pool)
    await until(pool.servers[0].breaker.allows)
    server.fail(Fault.hang())
    probe, other = (asyncio.create_task(pool.chat(HELLO)) for _ in range(2))
    await until(lambda: len(server.questions) == FAILURES_TO_OPEN + 1)
    probe.cancel()
    assert (await other).text == "Hello."


@BOTH
async def test_a_question_that_waits_for_one_server_probes_another(
    serve: Serve, connect: Connect, loop_clock: Clock
) -> None:
    """A question that waits for a hanging server goes to the one whose pause is over."""
    slow, back = serve(), serve()
    slow.fail_always(Fault.hang())
    pool = impatient(connect(slow, back, concurrency=1, timeout=60), pause=2)
    open_at_once(pool, 1)
    stuck = asyncio.create_task(pool.chat(HELLO))
    asking = asyncio.create_task(ask(pool, 4))
    await loop_clock.passes(2, when=lambda: pool.waiting == 4)
    assert await asking == [back.host] * 4
    stuck.cancel()
    await asyncio.wait({stuck})


@BOTH
@pytest.mark.parametrize("state", ["closed", "open"])
@pytest.mark.sampled(4)
async def test_a_question_that_was_not_sent_changes_no_circuit(
    server: FakeOllama, connect: Connect, state: str
) -> None:
    """Questions that cannot be sent neither open nor close a circuit, and are no probe."""
    pool = impatient(connect(), pause=0.05 if state == "open" else 60)
    breaker, cost = pool.servers[0].breaker, Cost()
    if state == "open":
        await open_breaker(server, pool)
    for _ in range(FAILURES_TO_OPEN + 1):
        await until(breaker.allows)
        with pytest.raises(LLMError, match="cannot be sent"):
            await pool.chat([{"role": "user", "content": "\ud83d"}], cost=cost)
        assert cost.attempts == 0
        assert breaker.is_open() == (state == "open")
    assert (await pool.chat(HELLO)).text == "Hello."


@BOTH
async def test_a_failed_probe_doubles_the_pause(
    server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """A probe that fails is an error like any other, and the pause is twice as long."""
    pool = impatient(connect(), pause=2)
    await open_breaker(server, pool)
    breaker = pool.servers[0].breaker
    loop_clock.time += 2
    server.fail(Fault.status(502))
    with pytest.raises(OverloadedError):
        await pool.chat(HELLO)
    assert breaker.seconds_left() == pytest.approx(4)
    assert not breaker.allows()


@BOTH
async def test_when_the_last_circuit_opens_waiting_questions_fail(
    server: FakeOllama, connect: Connect
) -> None:
    """When the last circuit opens, those who wait fail at once, without being asked."""
    server.fail_always(Fault.status(504))
    pool = connect(concurrency=1)
    ended = await asyncio.gather(*(pool.chat(HELLO) for _ in range(50)), return_exceptions=True)
    assert Counter(type(end).__name__ for end in ended) == {
        "OverloadedError": FAILURES_TO_OPEN,
        "CircuitOpenError": 50 - FAILURES_TO_OPEN,
    }
    assert len(server.questions) == FAILURES_TO_OPEN
    assert at_rest(pool)


@BOTH
async def test_retries_end_when_all_circuits_are_open(server: FakeOllama, connect: Connect) -> None:
    """A question that opened the only circuit ends with its own error, not that of the circuit."""
    server.fail_always(Fault.status(502))
    pool, cost = connect(attempts=10), Cost()
    pool.backoff = lambda state: 0.0
    with pytest.raises(OverloadedError):
        await pool.chat(HELLO, cost=cost)
    assert cost.attempts == FAILURES_TO_OPEN


@BOTH
@pytest.mark.slow
async def test_with_patience_an_outage_is_waited_out(server: FakeOllama, connect: Connect) -> None:
    """During an outage shorter than the patience nothing fails, not even what probes."""
    pool = impatient(connect(concurrency=2, attempts=1), patience=60)
    server.stop()
    open_at_once(pool)
    costs = [Cost() for _ in range(30)]
    tasks = [asyncio.create_task(pool.chat(HELLO, cost=cost)) for cost in costs]
    await until(lambda: sum(cost.attempts for cost in costs) > 2)
    server.start()
    async with asyncio.timeout(20):
        ended = await asyncio.gather(*tasks)
    assert {reply.text for reply in ended} == {"Hello."}
    assert at_rest(pool)


@BOTH
@pytest.mark.sampled(2)
async def test_a_question_that_meets_a_server_that_is_gone_is_not_lost(
    server: FakeOllama, connect: Connect
) -> None:
    """With patience, connections that are refused use up no attempts of a lone question."""
    pool = impatient(connect(attempts=2, patience=60), patience=60)
    pool.backoff = lambda state: 0.0
    server.stop()
    cost = Cost()
    asking = asyncio.create_task(pool.chat(HELLO, cost=cost))
    await until(lambda: cost.attempts == FAILURES_TO_OPEN)
    server.start()
    pool.servers[0].breaker.succeeded()
    assert (await asking).text == "Hello."


@BOTH
async def test_a_server_that_fails_and_comes_back_is_two_lines(
    server: FakeOllama, connect: Connect, loop_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once that a server fails, however often it is probed, and once that it is back."""
    pool = connect(attempts=1)
    await open_breaker(server, pool)
    for pause in (1, 2):
        loop_clock.time += pause
        server.fail(Fault.status(502))
        with pytest.raises(OverloadedError):
            await pool.chat(HELLO)
    loop_clock.time += 4
    assert (await pool.chat(HELLO)).text == "Hello."
    who = f"{pool.model} at {server.host}"
    opened, closed = (
        record.getMessage() for record in caplog.records if record.name == "prism.llm"
    )
    assert opened.startswith(
        f"{who} is failing, and will only be probed until it answers: the connection to"
    )
    assert closed == f"{who} answers again, after 7.0 s"
