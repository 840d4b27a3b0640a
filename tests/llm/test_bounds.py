"""What bounds a request: its reply, a server's slots, and how often a run sends it."""

import asyncio

import pytest

from prism import Model, Run
from prism.reasoner import Reasoner
from prism.statechart import TextCall, Writer
from prism.testing import FakeOllama
from tests.kit.reasoners import ask
from tests.kit.servers import BOTH, HELLO, Connect, Serve


def bounds_of(server: FakeOllama) -> list[int | None]:
    """Return the tokens that each reply of a server could have."""
    bodies = [question.body for question in server.questions]
    return [body.get("max_tokens", body.get("options", {}).get("num_predict")) for body in bodies]


@BOTH
@pytest.mark.parametrize("mode", ["chat", "auto"])
async def test_every_reply_has_a_bound(mode: str, server: FakeOllama, connect: Connect) -> None:
    """No kind of request lets a model write for ever, and what the user sets goes before."""
    for settings, most in (({}, None), ({"reply_tokens": 77}, 77)):
        server.questions.clear()
        pool = connect(**settings)
        await Reasoner(pool, mode=mode).decide_many([ask()])  # type: ignore[arg-type]
        await Writer(pool).write(TextCall("ada", "greeting", "Say hello."))
        bounds = bounds_of(server)
        assert len(bounds) == 2
        assert all(bounds)
        assert most is None or bounds == [most, most]


@BOTH
async def test_a_reply_that_is_cut_is_asked_for_in_other_words(
    server: FakeOllama, connect: Connect
) -> None:
    """The reason says that the model was still writing; the second request is not the first."""
    (decision,) = await Reasoner(connect(reply_tokens=4), mode="chat").decide_many([ask()])
    assert decision.source == "fallback"
    assert "the model was still writing after" in (decision.reason or "")
    first, second = (question.prompt for question in server.questions)
    assert second.startswith(first.rstrip())
    assert len(second) > len(first)


@BOTH
async def test_a_server_that_is_asked_too_much_at_once_is_asked_less(
    serve: Serve, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """One slot where four questions are put at once loses none of them."""
    pool = connect(serve(slots=1, latency=0.1), concurrency=4, timeout=0.25, attempts=6)
    await pool.chat(HELLO)
    replies = await asyncio.gather(*(pool.chat(HELLO) for _ in range(12)))
    assert len(replies) == 12
    assert pool.servers[0].limit < 4
    assert "questions at once in time: from now on it is asked" in caplog.text


def test_equal_questions_are_asked_once_in_a_run() -> None:
    """At temperature 0 a prompt is sent once, however many agents and rounds have it."""
    sent = {}
    for temperature in (0.0, 0.7):
        with FakeOllama(models=["tiny"], choose=lambda asked: "undecided") as server:
            model = Model("tiny", server.host, mode="chat", temperature=temperature)
            totals = Run("vaccination", 10, rounds=6, seed=1, model=model).run().totals()
        assert totals["decisions_asked"] == totals["decisions_answered"] == 60
        sent[temperature] = [question.prompt for question in server.questions]
    assert len(sent[0.0]) == len({*sent[0.0]}) == len({*sent[0.7]}) < 60
    assert len(sent[0.7]) == 60
