"""Questions by letter, in both dialects: probabilities of options, and when names are asked for."""

import asyncio
import logging
import sys
from math import log
from pathlib import Path
from typing import Any

import pytest

import prism
from prism.reasoner import Reasoner, Router
from prism.testing import FakeOllama, Fault
from tests.kit.reasoners import ask, crowd, decide
from tests.kit.servers import BOTH, Connect, Gate, Serve
from tests.kit.waiting import until


def weighing(server: FakeOllama, mass: float) -> None:
    """Give the options so much of the probability, three fifths of it to the letter A."""
    server.fail_always(Fault.weighs({"A": 0.6 * mass, "B": 0.4 * mass, "Sure": 1 - mass}))


@BOTH
async def test_the_probabilities_are_those_of_the_letters(
    server: FakeOllama, connect: Connect, heard: list[Any]
) -> None:
    """They are logged with their mass; nothing limits what they are read from, at 0 neither."""
    weighing(server, 0.6)
    await Reasoner(connect(), seed=1).decide_many([ask("ada")])
    (event,) = heard
    assert event["probabilities"] == pytest.approx({"composing": 0.6, "scrolling": 0.4})
    assert (event["option_mass"], event["question_kind"]) == (pytest.approx(0.6), "letter")
    (asked,) = server.questions
    assert (asked.body["logprobs"], asked.body["top_logprobs"]) == (True, 20)
    limits = asked.body.get("options", asked.body)
    assert [limits[name] for name in ("top_p", "top_k", "min_p")] == [1, 0, 0]
    assert asked.prompt.rstrip().endswith('{"letter": "A or B"}')
    # the server decides how much a model thinks, unless the user does
    assert not {"think", "chat_template_kwargs", "reasoning_effort"} & {*asked.body}


@BOTH
async def test_letters_with_little_mass_are_never_forced(
    server: FakeOllama, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """Below a half, the question is put by name, and so is every later one; a warning says so."""
    weighing(server, 0.1)
    reasoner = Reasoner(connect(concurrency=1))
    with caplog.at_level(logging.WARNING, "prism.llm"):
        decisions = [(await reasoner.decide_many([ask(name)]))[0] for name in ("ada", "bo", "cy")]
    assert {decision.question_kind for decision in decisions} == {"name"}
    assert {decision.probabilities for decision in decisions} == {None}
    assert ["logprobs" in asked.body for asked in server.questions] == [True, False, False, False]
    assert sum("from now on it is asked for the name" in each for each in caplog.messages) == 1


async def test_a_server_that_has_given_letters_is_asked_for_many_at_once(
    server: FakeOllama, connect: Connect
) -> None:
    """Only the first question is asked alone, to see what the server gives."""
    reasoner, gate = Reasoner(connect(concurrency=4)), Gate()
    await reasoner.decide_many([ask("ada")])
    server.latency = gate
    asking = asyncio.create_task(reasoner.decide_many(crowd(4)))
    await until(lambda: server.asked == 5)
    gate.is_open = True
    await asking


@BOTH
async def test_a_server_without_log_probabilities_is_asked_by_name(
    serve: Serve, connect: Connect
) -> None:
    """The first question shows it, at the price of a request, which is in its cost."""
    reasoner = Reasoner(connect(serve(logprobs=False, latency=0.02)))
    decisions = [(await reasoner.decide_many([ask(f"ada {each}")]))[0] for each in range(3)]
    assert {(each.source, each.question_kind) for each in decisions} == {("model", "name")}
    costs = [each.cost for each in decisions if each.cost]
    assert [cost.attempts for cost in costs] == [2, 1, 1]
    assert sum(cost.tokens for cost in costs) == reasoner.budget.tokens
    first = costs[0]
    assert (first.queue_seconds or 0) >= 0.019
    assert first.latency == pytest.approx((first.queue_seconds or 0) + (first.request_seconds or 0))


@BOTH
@pytest.mark.parametrize(
    "fault",
    [
        Fault.says("composing"),
        Fault.says('{"letter": "composing"}'),
        Fault.says("I would rather not."),
        Fault.says('{"letter": "A", "reason": "Not B, so A."}'),
        # a logarithm above 0 is no probability, nor is a sum above 1
        Fault.weighs({"A": 1.5, "B": 0.4}),
        Fault.weighs({"A": 0.9, "B": 0.9}),
    ],
)
async def test_without_the_probability_of_a_letter_a_model_is_asked_by_name(
    fault: Fault, server: FakeOllama, connect: Connect
) -> None:
    """A server may ignore the schema, or give impossible probabilities."""
    server.fail(fault)
    (decision,) = await Reasoner(connect()).decide_many([ask("ada")])
    assert (decision.source, decision.question_kind) == ("model", "name")


@BOTH
async def test_one_reply_without_a_letter_is_that_questions_fault(
    server: FakeOllama, connect: Connect
) -> None:
    """A model that has given letters is asked for them on."""
    reasoner = Reasoner(connect(concurrency=1))
    kinds = []
    for name in ("ada", "bo", "cy"):
        (decision,) = await reasoner.decide_many([ask(name)])
        kinds.append(decision.question_kind)
        if name == "ada":
            server.fail(Fault.says("I would rather not."))
    assert kinds == ["letter", "name", "letter"]


@pytest.mark.parametrize(
    ("masses", "kind"), [((0.1,), "name"), ((0.8, 0.1), "name"), ((0.8,), "letter")]
)
async def test_a_run_that_is_resumed_goes_on_with_its_kind_of_question(
    masses: tuple[float, ...], kind: str, server: FakeOllama, connect: Connect
) -> None:
    """Decisions of an earlier process say whether the letters were given up."""
    stopped, resumed = Reasoner(connect()), Reasoner(connect())
    for mass in masses:
        weighing(server, mass)
        (decision,) = await stopped.decide_many([question := ask(f"ada {mass}")])
        resumed.skip(question, decision)
    weighing(server, 0.8)
    (decision,) = await resumed.decide_many([ask("bo")])
    assert decision.question_kind == kind


@pytest.mark.parametrize("options", [tuple(map("option {}".format, range(21))), ("b", "A")])
async def test_some_options_are_asked_by_name(options: Any, connect: Connect) -> None:
    """Servers list twenty alternatives of a token at most; and an option may be called A."""
    (decision,) = await Reasoner(connect()).decide_many([question := ask("ada", options=options)])
    assert (decision.source, decision.question_kind) == ("model", "name")
    # a run that is resumed learns nothing from it
    (resumed := Reasoner(connect())).skip(question, decision)
    assert (await resumed.decide_many([ask("bo")]))[0].question_kind == "letter"


@BOTH
async def test_a_decision_of_a_run_goes_through_eight_files(
    server: FakeOllama, connect: Connect
) -> None:
    """Whoever follows a question to its answer has few files of the two rooms to read."""
    weighing(server, 0.8)
    router = Router({"all": Reasoner(connect(), rotations="drawn")}, stop_at=0.5)
    files = set()

    def note(frame: Any, _event: str, _argument: Any) -> None:
        file = Path(frame.f_code.co_filename)
        if file.parent.parent == Path(prism.__file__).parent:
            files.add((file.parent.name, file.name))

    await router.decide_many([ask("ada")])
    sys.setprofile(note)
    try:
        (decision,) = await router.decide_many([ask("bo")])
    finally:
        sys.setprofile(None)
    assert decision.question_kind == "letter"
    assert len({file for file in files if file[0] in ("reasoner", "llm")}) == 8


@pytest.mark.parametrize(
    ("last", "chances"),
    [({"A": 0.4, "B": 0.6}, {"composing": 0.4, "scrolling": 0.6}), ({"A": 0.9}, None)],
)
async def test_of_letters_in_several_tokens_the_last_is_the_answer(
    last: dict[str, float], chances: dict[str, float] | None
) -> None:
    """Thoughts may have a letter, too; one that is not among the likely tokens was forced."""

    def token(text: str, **chances: float) -> dict[str, Any]:
        listed = [{"token": each, "logprob": log(chance)} for each, chance in chances.items()]
        return {"token": text, "top_logprobs": listed}

    class Thinks:
        async def chat(self, *, messages: Any, logprobs: bool, top_logprobs: int) -> Any:
            tokens = [token("B", A=0.1, B=0.9), token('"B', **last)]
            return {"message": {"content": '{"letter": "B"}'}, "logprobs": tokens}

    decision = await decide(Thinks())
    assert decision.probabilities == (chances and pytest.approx(chances))
