"""A refusal without a reason: the request is sent again without what was never accepted."""

import logging

import pytest

from prism.errors import LLMError, OverloadedError
from prism.statechart.reasoner import Cost, Reasoner
from prism.testing import FakeOllama, Fault
from tests.kit.reasoners import ask
from tests.kit.servers import BOTH, HELLO, Connect

SCHEMA = {"type": "object", "properties": {"next_state": {"enum": ["idle"]}}}
EXTRAS = {"format", "think", "response_format", "chat_template_kwargs", "reasoning_effort"}


def extras_sent(server: FakeOllama) -> list[bool]:
    """Return whether each request had parts that an answer does not need."""
    return [bool(EXTRAS & set(asked.body)) for asked in server.questions]


@BOTH
@pytest.mark.parametrize(
    "said",
    [
        *("Bad Request", "Invalid request.", "invalid_request_error"),
        *("Request contains an invalid argument.", "Provider returned error"),
    ],
)
async def test_what_is_refused_without_a_reason_is_asked_again_with_less(
    said: str, server: FakeOllama, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """Schema and thinking are left out from then on, and a warning tells of it."""
    server.fail(Fault.status(400, said))
    pool, costs = connect(), [Cost(), Cost()]
    with caplog.at_level(logging.WARNING, "prism.llm"):
        for cost in costs:
            await pool.chat(HELLO, format=SCHEMA, cost=cost)

    assert [cost.attempts for cost in costs] == [2, 1]
    assert extras_sent(server) == [True, False, False]
    (warning,) = caplog.messages
    assert " is asked without " in warning
    assert all(part in warning for part in EXTRAS & set(server.questions[0].body))


@BOTH
async def test_a_refusal_with_a_reason_is_no_matter_of_form(
    server: FakeOllama, connect: Connect
) -> None:
    """What a server explains is not asked again."""
    server.fail_always(Fault.status(400, "Bad Request: this user was banned"))
    with pytest.raises(LLMError, match="was banned"):
        await connect().chat(HELLO, format=SCHEMA)
    assert server.asked == 1


@BOTH
async def test_a_server_that_has_answered_refuses_the_question(
    server: FakeOllama, connect: Connect
) -> None:
    """Its form was accepted before, so the question is not asked again."""
    pool = connect()
    await pool.chat(HELLO, format=SCHEMA)
    server.fail(Fault.status(400, "Bad Request"))
    with pytest.raises(LLMError, match="answered 400: Bad Request"):
        await pool.chat(HELLO, format=SCHEMA)
    await pool.chat(HELLO, format=SCHEMA)
    assert extras_sent(server) == [True, True, True]


@BOTH
async def test_what_was_accepted_stays(server: FakeOllama, connect: Connect) -> None:
    """A server that has taken all but the schema is asked without that alone."""
    pool = connect()
    await pool.chat(HELLO)
    server.fail(Fault.status(422, "Unprocessable Entity"))
    await pool.chat(HELLO, format=SCHEMA)
    bodies = [asked.body for asked in server.questions]
    assert set(bodies[1]) - set(bodies[2]) <= {"format", "response_format"}
    assert bodies[0].keys() == bodies[2].keys()


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
async def test_a_server_that_refuses_log_probabilities_without_a_reason_is_chatted_with(
    server: FakeOllama, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """Where schema and thinking are not the reason, log-probabilities may be; the others stay."""
    bad = Fault.status(400, "Bad Request")
    server.fail(bad, bad)
    (decision,) = await Reasoner(connect()).decide_many([ask()])
    assert decision.source == "model"
    assert any(" is asked without logprobs and top_logprobs " in each for each in caplog.messages)
    assert ["logprobs" in asked.body for asked in server.questions] == [True, True, False, False]
    assert extras_sent(server) == [True, False, False, True]


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
async def test_log_probabilities_that_a_second_refusal_names_are_asked_for_no_more(
    server: FakeOllama, connect: Connect
) -> None:
    """The question is a chat at once, which has neither of their parts."""
    server.fail(Fault.status(400, "Bad Request"), Fault.status(400, "no logprobs here"))
    (decision,) = await Reasoner(connect()).decide_many([ask()])
    assert decision.source == "model"
    assert ["top_logprobs" in asked.body for asked in server.questions] == [True, True, False]


@BOTH
async def test_less_is_tried_once(server: FakeOllama, connect: Connect) -> None:
    """A server that refuses everything in this way gets no second request for each question."""
    server.fail_always(Fault.status(400, "Bad Request"))
    pool = connect()
    for asked in (2, 3):
        with pytest.raises(LLMError, match="answered 400: Bad Request"):
            await pool.chat(HELLO, format=SCHEMA)
        assert server.asked == asked


@BOTH
async def test_where_less_does_not_help_nothing_is_left_out(
    server: FakeOllama, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """The first refusal is the error, and the next request has all of its parts."""
    server.fail(Fault.status(400, "Bad Request"), Fault.status(403, "banned"))
    pool = connect()
    with pytest.raises(LLMError, match="answered 400: Bad Request"):
        await pool.chat(HELLO, format=SCHEMA)
    await pool.chat(HELLO, format=SCHEMA)
    assert extras_sent(server) == [True, False, True]
    assert not caplog.messages


@BOTH
async def test_a_fault_that_may_pass_is_told_as_one(server: FakeOllama, connect: Connect) -> None:
    """A server that is busy when less is tried is one that can be asked again."""
    server.fail(Fault.status(400, "Bad Request"), Fault.status(503, "busy"))
    pool = connect()
    with pytest.raises(OverloadedError, match="answered 503: busy"):
        await pool.chat(HELLO, format=SCHEMA)
    await pool.chat(HELLO, format=SCHEMA)
    assert extras_sent(server) == [True, False, True]


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
async def test_a_part_that_the_second_refusal_names_is_left_out(
    server: FakeOllama, connect: Connect
) -> None:
    """A reason that comes late counts like any other: the next request lacks that part."""
    server.fail(Fault.status(400, "Bad Request"), Fault.status(400, "temperature is not allowed"))
    pool = connect()
    await pool.chat(HELLO, format=SCHEMA)
    assert ["temperature" in asked.body for asked in server.questions] == [True, True, False]


@pytest.mark.parametrize("dialect", ["openai"], indirect=True)
async def test_each_set_of_parts_is_told(
    server: FakeOllama, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """What is left out later, such as a schema after thinking, has a warning of its own."""
    pool = connect()
    server.fail(Fault.status(400, "Bad Request"))
    await pool.chat(HELLO)
    server.fail(Fault.status(400, "Bad Request"))
    await pool.chat(HELLO, format=SCHEMA)
    first, second = caplog.messages
    assert "response_format" not in first
    assert "response_format" in second
