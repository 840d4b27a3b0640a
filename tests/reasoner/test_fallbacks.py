"""What happens when a model gives no valid answer."""

import asyncio
import re
import threading
from typing import Any

import pytest

import prism
from prism.errors import LLMError, TimedOutError
from prism.llm import OllamaChatClient
from prism.reasoner import Decision, Question, Reasoner, TextCall, Writer
from prism.testing import Asked, FakeOllama, Fault
from tests.kit.clients import Model, Silent
from tests.kit.reasoners import OPTIONS, POST, S, ask, decide, outcomes
from tests.kit.servers import Connect

FAILURES = [
    (Model("composing or scrolling"), "the reply 'composing or scrolling' does not name"),
    (Model('{"next_state": "flying"}'), "flying"),
    (Model(ConnectionError("nobody there")), "nobody there"),
    (Model(TimedOutError("host h is silent")), "TimedOutError: host h is silent"),
    (Model(TimeoutError("pool is full")), "pool is full"),
    (Silent(), "no answer within 0.01 s"),
]


@pytest.mark.parametrize(("client", "reason"), FAILURES, ids=range(len(FAILURES)))
@pytest.mark.parametrize(
    ("fallback", "chosen"),
    [
        (None, S.COMPOSING),
        (S.SCROLLING, S.SCROLLING),
        (S.RESTING, S.COMPOSING),
        ("scrolling", S.SCROLLING),
    ],
)
@pytest.mark.sampled(6)
async def test_a_failure_is_a_fallback(
    client: Any, reason: str, fallback: Any, chosen: S, logger: Any, capture: Any, no_pauses: None
) -> None:
    """Whatever fails, the fallback or the first option is taken, with a warning that says why."""
    seconds = 0.01 if isinstance(client, Silent) else 5
    decision = await decide(client, fallback=fallback, timeout=seconds, logger=logger)
    assert (decision.chosen, decision.source) == (chosen, "fallback")
    assert reason in (decision.reason or "")
    (warning,) = capture.entries
    told = {"event": "reasoner.decision", "log_level": "warning", "agent_id": "Ada"}
    told |= {"trigger": "decides", "chosen": chosen.value, "source": "fallback"}
    assert warning.items() >= {**told, "reason": decision.reason}.items()


async def test_the_model_is_told_what_was_wrong(
    server: FakeOllama, connect: Connect, heard: list[Any]
) -> None:
    """The second question has the first, the reply's fault and how to answer; the log counts it."""
    server.fail(Fault.says("I'd rather not say."))
    assert (await decide(connect(), mode="chat")).source == "model"
    first, second = (asked.prompt for asked in server.questions)
    told = second.removeprefix(first)
    assert 'could not be used: the reply "I\'d rather not say." does not name' in told
    assert "Choose one of composing, scrolling." in told
    assert (heard[0]["repaired"], heard[0]["attempts"]) == (True, 2)


def test_a_run_that_no_log_hears_shows_each_kind_of_fallback_once(
    server: FakeOllama, caplog: pytest.LogCaptureFixture
) -> None:
    """In one line; how many there were is in the results."""
    server.fail_always(Fault.says("I would rather not."))
    model = prism.Model("tiny", server.host, stop_at_fallbacks="never")
    prism.Run("vaccination", 6, rounds=2, seed=1, model=model).run()
    (first,) = (each for each in caplog.messages if "reasoner.decision" in each)
    assert re.match("reasoner.decision of parent_[1-6]: UselessReplyError: the reply 'I w", first)


def detached(*_: object) -> Any:
    raise RuntimeError("the row is detached")


Detached: Any = type("Detached", (), {"post_id": "d1", "agent_id": "d1", "__getattr__": detached})
Unnamed: Any = type("Unnamed", (), {"agent_id": property(detached)})
Streamless: Any = type("Streamless", (), {"agent_id": "Sam", "random": property(detached)})


def about(agent: Any) -> Question:
    return Question(agent, S.EVALUATING, "decides", OPTIONS, POST)


@pytest.mark.parametrize("mode", ["chat", "auto"])
@pytest.mark.parametrize(
    ("unreadable", "name"),
    [
        (lambda: ask(context=Detached()), "Ada"),
        (lambda: about(Detached()), "d1"),
        (lambda: about(Streamless()), "Sam"),
    ],
    ids=["post", "agent", "stream"],
)
async def test_an_unreadable_post_or_agent_is_a_fallback(
    mode: Any, unreadable: Any, name: str, server: FakeOllama, connect: Connect, heard: list[Any]
) -> None:
    """A post or agent that raises when read makes its own question a fallback, and no other."""
    reasoner = Reasoner(connect(), mode=mode, fallback=S.SCROLLING)
    decisions = await reasoner.decide_many([ask("Ben"), unreadable(), ask("Cy")])
    assert [decision.source for decision in decisions] == ["model", "fallback", "model"]
    assert decisions[1].chosen is S.SCROLLING
    where = r"RuntimeError: the row is detached \(.*test_fallbacks\.py:\d+, in "
    assert re.match(where, str(decisions[1].reason))
    assert decisions[1].cost is not None
    assert (decisions[1].cost.attempts, len(server.questions)) == (0, 2)
    assert re.fullmatch(f"Ben {name} Cy", " ".join(event["agent_id"] for event in heard))


async def test_an_agent_whose_id_cannot_be_read_gets_a_name(
    connect: Connect, heard: list[Any]
) -> None:
    """It is asked, and the log calls it by a name that no other object has."""
    assert (await Reasoner(connect()).decide_many([about(Unnamed())]))[0].source == "model"
    assert re.fullmatch(r"Unnamed@[0-9a-f]+", heard[0]["agent_id"])


def test_a_second_event_loop_at_once_is_refused_with_advice(server: FakeOllama) -> None:
    """A second loop that asks at the same time gets an error; the first one its answer."""
    is_asking, may_answer = threading.Event(), threading.Event()
    decisions: list[Decision] = []

    def choose(question: Asked) -> str:
        is_asking.set()
        may_answer.wait(10)
        return "scrolling"

    server.choose = choose
    reasoner = Reasoner(OllamaChatClient(server.host, "tiny"), mode="chat")

    def decide_once() -> None:
        decisions.extend(asyncio.run(reasoner.decide_many([ask()])))

    thread = threading.Thread(target=decide_once)
    thread.start()
    assert is_asking.wait(10)
    advice = "make one client for each event loop"
    with pytest.raises(LLMError, match=advice):
        decide_once()
    with pytest.raises(LLMError, match=advice):
        asyncio.run(Writer(reasoner.client).write(TextCall("ada", "post", "Write.")))
    may_answer.set()
    thread.join(10)
    assert outcomes(decisions) == [(S.SCROLLING, "model")]
