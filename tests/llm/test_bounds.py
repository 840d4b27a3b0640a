"""What bounds a request: its reply, a server's slots, and how often a run sends it."""

import asyncio
import json

import pytest

from prism.errors import BadReplyError, LLMError, OverloadedError, PromptTooLongError
from prism.reasoner import Cost, Reasoner, TextCall, Writer
from prism.testing import FakeOllama, Fault
from tests.kit.clocks import Clock
from tests.kit.reasoners import ask
from tests.kit.servers import BOTH, HELLO, Connect, Gate, Serve, unpaused
from tests.kit.waiting import until


def bounds_of(server: FakeOllama) -> list[int | None]:
    """Return the tokens that each reply of a server could have."""
    bodies = [question.body for question in server.questions]
    return [body.get("max_tokens", body.get("options", {}).get("num_predict")) for body in bodies]


@BOTH
@pytest.mark.parametrize("mode", ["chat", "auto"])
async def test_every_reply_has_a_bound(mode: str, server: FakeOllama, connect: Connect) -> None:
    """No kind of request lets a model write for ever, and what the user sets goes before."""
    for settings, most in (({}, None), ({"reply_tokens": 77}, 77), ({"window": 4000}, 1000)):
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
    written = await Writer(connect(reply_tokens=1)).write(TextCall("ada", "k", "Greet Bo."))
    assert (written.source, (written.value or "")[-1:]) == ("model", "…")


@BOTH
async def test_a_server_that_is_asked_too_much_at_once_is_asked_less(
    server: FakeOllama, connect: Connect, caplog: pytest.LogCaptureFixture, loop_clock: Clock
) -> None:
    """It gets half of what it could not answer in time, unless it is still loading its model."""
    pool = unpaused(connect(concurrency=8, timeout=5, attempts=6))
    for before in (0, 8):
        server.fail(*[Fault.hang()] * 4)
        asking = [asyncio.create_task(pool.chat(HELLO)) for _ in range(4)]
        await loop_clock.passes(5, when=lambda before=before: server.asked == before + 4)
        assert len(await asyncio.gather(*asking)) == 4
        assert ("now it is asked" in caplog.text) is bool(before)
    assert "4 questions at once in time: now it is asked 2" in caplog.text
    gate = server.latency = Gate()
    asking = [asyncio.create_task(pool.chat(HELLO)) for _ in range(4)]
    await until(lambda: pool.waiting == 2)
    gate.is_open = True
    await asyncio.gather(*asking)


async def test_an_answer_may_take_as_long_as_its_reply(
    server: FakeOllama, connect: Connect, loop_clock: Clock
) -> None:
    """Also if a slow model has more than the usual two minutes for one."""
    server.fail_always(Fault.hang())
    call = TextCall("ada", "greeting", "Say hello.")
    asking = asyncio.create_task(Writer(connect(timeout=200)).write(call))
    await loop_clock.passes(200, when=lambda: server.asked == 1)
    assert "within 200 s" in str((await asking).reason)


async def test_a_prompt_that_does_not_fit_is_a_fault(serve: Serve, connect: Connect) -> None:
    """Ollama cuts it and answers all the same; what cannot fit by the settings is not sent."""
    server = serve()
    loaded = {"models": [{"model": "tiny", "name": "tiny", "context_length": 400}]}
    server.fail_always(Fault.body(json.dumps(loaded).encode()), path="/api/ps")
    cut = {"message": {"role": "assistant", "content": "Hello."}, "prompt_eval_count": 202}
    server.fail(Fault.body(json.dumps(cut).encode()))
    prompt = [{"role": "user", "content": "ab " * 420}]
    with pytest.raises(PromptTooLongError, match="the prompt was cut to half the window"):
        await connect(server).chat(prompt)
    with pytest.raises(PromptTooLongError, match="315 tokens of the prompt exceed the room of 300"):
        await connect(server, window=400).chat(prompt)
    assert server.asked == 1
    assert (await connect(server).chat(HELLO)).text


# What is read of a reply

LONG = 4 * 2**20


@BOTH
@pytest.mark.parametrize("content", [b" ", b"x"])
@pytest.mark.sampled(2)
async def test_a_reply_is_read_to_its_bound(
    content: bytes, server: FakeOllama, connect: Connect
) -> None:
    """A reply that is too long is a bad reply, its connection is closed, and the next is read.

    It may be as long as a thought of a thousand tokens with their alternatives.
    """
    server.fail(Fault.body(b'{"message": {"role": "assistant", "content": "' + content * LONG))
    client = connect()
    with pytest.raises(BadReplyError, match=f"^{server.host} sent a reply of more than 3072000 by"):
        await client.chat(HELLO)
    await until(lambda: server.open_connections == 0)
    hello = {"message": {"role": "assistant", "content": "Hello."}}
    long = {**hello, "choices": [hello], "more": "x" * (LONG // 2)}
    server.fail(Fault.body(json.dumps(long).encode()))
    assert (await client.chat(HELLO)).text == "Hello."


@BOTH
@pytest.mark.parametrize("status", [400, 401, 500, 503])
@pytest.mark.sampled(3)
async def test_a_long_error_keeps_its_status(
    status: int, server: FakeOllama, connect: Connect
) -> None:
    """Of an error the beginning is read: its status says what is wrong, however long it is."""
    server.fail(Fault.status(status, body=b"busy" + b" " * LONG))
    with pytest.raises(LLMError, match=f"answered {status}: busy(: .*_API_KEY.*)?$") as caught:
        await connect().chat(HELLO)
    assert isinstance(caught.value, OverloadedError) is (status >= 500)
    await until(lambda: server.open_connections == 0)


async def test_a_reply_says_why_it_ended(server: FakeOllama, connect: Connect) -> None:
    """The reason why a reply ended is in its cost, cut where it is no word."""
    message = {"role": "assistant", "content": "Hello."}
    body = {"message": message, "done_reason": "x" * 1000}
    server.fail(Fault.body(json.dumps(body).encode()))
    for reason in ("x" * 40, "stop"):
        cost = Cost()
        assert (await connect().chat(HELLO, cost=cost)).text == "Hello."
        assert cost.done_reason == reason
