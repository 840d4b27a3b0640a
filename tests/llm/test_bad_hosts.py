"""A pool of a server that works and one that fails fast, in every way that servers have."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from random import Random
from typing import Any

import pytest

from prism.errors import LLMError
from prism.reasoner._slots import FAILURES_TO_REST
from prism.statechart import Reasoner
from prism.testing import Asked, Fault
from tests.kit.pools import at_rest
from tests.kit.raw_servers import FAULTS, Canned, RawServer, raw_server
from tests.kit.reasoners import S, crowd
from tests.kit.servers import BOTH, HELLO, Connect, Serve

CONCURRENCY = 4
INTERNAL = ("error in a 200", "500", "520")
USELESS = ("prose", "no option", "empty", "tool call without content", "tool call, content null")
"""Faults of what a model says, as Ollama puts it: it is asked once more, in other words."""


def is_useless(fault: str, dialect: str) -> bool:
    """Return whether a reply is one of the model's own; all are written in Ollama's words."""
    return fault in USELESS and dialect == "ollama"


FAKED = {
    "prose": Fault.says("I would rather not choose."),
    "empty": Fault.says(""),
    "not JSON": Fault.body(b"<html>"),
    "error in a 200": Fault.body(b'{"error": "the runner died"}'),
    "tool call": Fault.calls_tool(),
    **{str(code): Fault.status(code) for code in (400, 401, 403, 413, 500)},
    "bad gzip": Fault.body(b"not gzip", headers={"Content-Encoding": "gzip"}),
    "brackets": Fault.body(b"[" * 100_000),
    "redirect loop": Fault.status(307, headers={"Location": "/api/chat"}),
}


@pytest.fixture
def bad() -> Iterator[Callable[[Canned], RawServer]]:
    """Return a maker of servers that always send the same bytes."""
    with ExitStack() as servers:
        yield lambda canned: servers.enter_context(raw_server(canned))


async def wave(pool: Any, size: int, mode: Any = "chat") -> Counter[str]:
    """Decide many questions at once; return how they were decided."""
    reasoner = Reasoner(pool, mode=mode, fallback=S.SCROLLING)
    return Counter(decision.source for decision in await reasoner.decide_many(crowd(size)))


async def waves_until_open(pool: Any, host: str) -> None:
    """Decide waves of questions, at least two, until a server is only probed."""
    (useless,) = (server for server in pool.servers if server.address.endswith(host))
    for number in range(30):
        assert await wave(pool, 20) == {"model": 20}
        if number and useless.is_gone:
            return


@BOTH
@pytest.mark.parametrize("is_first", [True, False], ids=["named first", "named last"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.sampled(78, long=6)
async def test_a_server_that_fails_fast_draws_no_decisions(
    fault: str, is_first: bool, serve: Serve, connect: Connect, bad: Callable[[Canned], RawServer]
) -> None:
    """Whatever a server answers at once instead of a reply, the other one decides everything."""
    good, useless = serve(latency=0.005), bad(FAULTS[fault])
    hosts = [useless.host, good.host] if is_first else [good.host, useless.host]
    pool = connect(*hosts, attempts=3, concurrency=CONCURRENCY)
    await waves_until_open(pool, useless.host)
    # each redirect is a request as well
    each = 21 if fault == "redirect loop" else 1
    assert useless.posts <= each * (FAILURES_TO_REST + CONCURRENCY)
    assert [bool(host.failures) for host in pool.servers] == [is_first, not is_first]
    assert at_rest(pool)


@pytest.mark.parametrize(
    "fault",
    [Fault.says('{"letter": "Z"}'), Fault.status(400), Fault.status(401), Fault.body(b"{}")],
    ids=["no letter", "400", "401", "no answers"],
)
@pytest.mark.sampled(4)
async def test_questions_by_letter_are_asked_elsewhere_too(
    fault: Fault, serve: Serve, connect: Connect
) -> None:
    """Letters that are none, or refused, come from the other server."""
    good, useless = serve(latency=0.005), serve()
    useless.fail_always(fault)
    pool = connect(useless, good, concurrency=CONCURRENCY)
    assert await wave(pool, 20, "auto") == {"model": 20}
    assert pool.servers[0].failures
    assert at_rest(pool)


@BOTH
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.sampled(14)
async def test_a_lone_server_is_not_asked_again(
    fault: str, connect: Connect, bad: Callable[[Canned], RawServer], dialect: str
) -> None:
    """Only internal errors and no JSON are worth a retry on one host, useless words a repair."""
    useless = bad(FAULTS[fault])
    pool = connect(useless.host, attempts=3)
    (decision,) = await Reasoner(pool, mode="chat").decide_many(crowd(1))
    assert decision.source == "fallback"
    assert decision.cost is not None
    attempts = 3 if fault in INTERNAL else 2 if is_useless(fault, dialect) else 1
    assert decision.cost.attempts == attempts
    assert at_rest(pool)


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


@BOTH
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
async def test_with_one_good_server_any_mixture_of_faults_is_answered(
    seed: int, serve: Serve, connect: Connect
) -> None:
    """Whatever another server does with each question, the model decides what it would decide."""
    dice = Random(seed)

    def choose(asked: Asked) -> str:
        return asked.options[sum(asked.prompt.encode()) % len(asked.options)]

    good, other = serve(latency=0.002, choose=choose), serve(choose=choose)
    alone = await Reasoner(connect(good), mode="chat").decide_many(crowd(30))
    faults = [*FAKED.values(), Fault.drop(), Fault.drop_midway()]
    for _ in range(100):
        other.fail(dice.choice(faults))
    pool = connect(*dice.sample([good, other], 2), attempts=3, concurrency=dice.randint(1, 5))
    pool.backoff = lambda state: 0.0
    together = await Reasoner(pool, mode="chat").decide_many(crowd(30))
    assert [decision.chosen for decision in together] == [decision.chosen for decision in alone]
    assert {decision.source for decision in together} == {"model"}
    assert at_rest(pool)
