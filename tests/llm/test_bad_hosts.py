"""A pool of a server that works and one that fails fast, in every way that servers have."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from prism.errors import LLMError
from prism.reasoner import Reasoner
from prism.reasoner.servers import FAILURES_TO_REST
from prism.testing import Asked, FakeOllama, Fault
from prism.testing._model_server import RefusedError
from tests.kit.reasoners import S, ask, crowd
from tests.kit.servers import BOTH, HELLO, Connect, Serve, at_rest, impatient
from tests.kit.waiting import MOST_SECONDS

CONCURRENCY = FAILURES_TO_REST
INTERNAL = ("error in a 200", "500", "520")
USELESS = ("prose", "no option", "empty", "tool call")
"""Faults of what a model says: it is asked once more, in other words."""

FAULTS = {
    "prose": Fault.says("I would rather not choose, thank you."),
    "no option": Fault.says('{"next_state": "flying"}'),
    "empty": Fault.says(""),
    "tool call": Fault.calls_tool(),
    "no bytes": Fault.body(b""),
    "not JSON": Fault.body(b"<html><body>Sign in</body></html>"),
    "JSON, but no reply": Fault.body(b"[1, 2]"),
    "error in a 200": Fault.body(b'{"error": "the runner has died"}'),
    **{str(code): Fault.status(code) for code in (400, 403, 500)},
    **{str(code): Fault.status(code, body=b"<html>") for code in (401, 404, 413, 520)},
    "bad gzip": Fault.body(b"this is not gzip", headers={"Content-Encoding": "gzip"}),
    "100,000 brackets": Fault.body(b"[" * 100_000),
    "redirect loop": Fault.status(307, headers={"Location": "?"}),
}
"""Ways for a server to fail fast."""


async def wave(pool: Any, size: int, mode: Any = "chat") -> Counter[str]:
    """Decide many questions at once; return how they were decided."""
    reasoner = Reasoner(pool, mode=mode, fallback=S.SCROLLING)
    return Counter(decision.source for decision in await reasoner.decide_many(crowd(size)))


async def waves_until_open(pool: Any, host: str, mode: str) -> None:
    """Decide waves of questions, at least two, until a server is only probed."""
    (useless,) = (server for server in pool.servers if server.address.endswith(host))
    # the time that the test takes brings no slot back
    useless.backoff = lambda _failures: MOST_SECONDS
    for number in range(30):
        assert await wave(pool, 20, mode) == {"model": 20}
        if number and useless.is_gone:
            return


@BOTH
@pytest.mark.parametrize("is_first", [True, False], ids=["named first", "named last"])
@pytest.mark.parametrize("mode", ["chat", "auto"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.sampled(144, long=12)
async def test_a_server_that_fails_fast_draws_no_decisions(
    fault: str, mode: str, is_first: bool, serve: Serve, connect: Connect
) -> None:
    """Whatever a server answers at once instead of a reply, the other one decides everything."""
    good, useless = serve(latency=0.005), serve()
    useless.fail_always(FAULTS[fault])
    hosts = [useless.host, good.host] if is_first else [good.host, useless.host]
    pool = connect(*hosts, attempts=3, concurrency=CONCURRENCY)
    await waves_until_open(pool, useless.host, mode)
    # each redirect is a request as well
    each = 21 if fault == "redirect loop" else 1
    assert useless.asked <= each * CONCURRENCY
    assert [bool(host.failures) for host in pool.servers] == [is_first, not is_first]
    assert at_rest(pool)


@BOTH
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.sampled(14)
async def test_a_lone_server_is_not_asked_again(fault: str, serve: Serve, connect: Connect) -> None:
    """Only internal errors and no JSON are worth a retry on one host, useless words a repair."""
    useless = serve()
    useless.fail_always(FAULTS[fault])
    pool = connect(useless.host, attempts=3)
    (decision,) = await Reasoner(pool, mode="chat").decide_many(crowd(1))
    assert decision.source == "fallback"
    assert decision.cost is not None
    attempts = 3 if fault in INTERNAL else 2 if fault in USELESS else 1
    assert decision.cost.attempts == attempts
    assert at_rest(pool)


async def test_a_question_that_fails_among_others_is_not_waited_for(
    server: FakeOllama, connect: Connect
) -> None:
    """A server that answers others in the meantime is well: the fault is the question's own."""

    def choose(asked: Asked) -> str:
        if "You are poison" in asked.prompt:
            raise RefusedError(500, "cannot")
        return asked.options[0]

    server.choose = choose
    pool = impatient(connect(concurrency=1, attempts=3), pause=0.001, patience=600)
    async with asyncio.timeout(MOST_SECONDS):
        questions = [ask("poison"), *crowd(20)]
        first, *others = await Reasoner(pool, mode="chat").decide_many(questions)
    assert (first.source, {each.source for each in others}) == ("fallback", {"model"})


@BOTH
@pytest.mark.parametrize(
    "fault", [Fault.status(401), Fault.status(403), Fault.status(400, "loading model")]
)
async def test_a_refusal_may_be_an_outage_once_a_server_has_answered(
    fault: Fault, server: FakeOllama, connect: Connect
) -> None:
    """Patience is for a server that restarts; a key that it never accepted is refused at once."""
    pool = impatient(connect(attempts=3), pause=0.001, patience=600)
    server.fail(*[fault] * 4)
    with pytest.raises(LLMError, match=r"answered 40[013]"):
        await pool.chat(HELLO)
    server.recover()
    await pool.chat(HELLO)
    server.fail(*[fault] * 4)
    await pool.chat(HELLO)
    server.fail(fault)
    with pytest.raises(LLMError, match=r"answered 40[013]"):
        await impatient(pool).chat(HELLO)
    assert server.asked == 8


async def test_patience_counts_from_the_first_failure(server: FakeOllama, connect: Connect) -> None:
    """However often the server is probed, it ends."""
    pool = impatient(connect(), pause=0.01, patience=0.05)
    server.fail_always(Fault.drop())
    async with asyncio.timeout(MOST_SECONDS):
        with pytest.raises(LLMError):
            await pool.chat(HELLO)


@BOTH
async def test_a_refusal_stands_if_the_other_server_is_gone(serve: Serve, connect: Connect) -> None:
    """What is raised is what the one server said that could be asked, and it is not charged."""
    useless, gone = serve(), serve()
    useless.fail_always(Fault.status(400, "no"))
    gone.stop()
    pool = connect(useless, gone)
    for _ in range(2 * FAILURES_TO_REST):
        with pytest.raises(LLMError, match=r"answered 400: no|cannot reach"):
            await pool.chat(HELLO)
    assert [host.is_gone for host in pool.servers] == [False, True]
    with pytest.raises(LLMError, match="answered 400: no"):
        await pool.chat(HELLO)
    assert at_rest(pool)
