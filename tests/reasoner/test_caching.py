"""Keeping the answers of a model from one run to the next."""

import json
from typing import Any

import pytest

from prism.errors import ReasonerError
from prism.llm import AnswerCache
from prism.reasoner import Reasoner
from prism.statechart import Question
from prism.testing import FakeOllama, Fault
from tests.kit.clients import Model
from tests.kit.reasoners import S, Store, answer, ask, crowd, decide, outcomes
from tests.kit.servers import Connect


class BrokenStore:
    """A store that cannot be used."""

    def get(self, key: str) -> str | None:
        raise OSError("disk full")

    __setitem__ = get  # type: ignore[assignment]


@pytest.mark.parametrize(("mode", "model"), [("chat", "tiny"), ("decision", "llama3.2")])
@pytest.mark.sampled(2)
async def test_a_second_run_asks_nothing(
    mode: Any, model: str, server: FakeOllama, connect: Connect, tmp_path: Any, heard: Any
) -> None:
    """With a cache on disk a second run decides the same without the model, as its events say."""
    for _ in range(2):
        with AnswerCache(tmp_path / "answers.db") as cache:
            await Reasoner(connect(model=model), mode=mode, cache=cache).decide_many(crowd(20))
    first, second = heard[:20], heard[20:]
    assert len(server.questions) == 20
    assert [event["source"] for event in second] == ["cache"] * 20
    assert [event["chosen"] for event in second] == [event["chosen"] for event in first]
    assert [event["probabilities"] for event in second] == [
        event["probabilities"] for event in first
    ]
    assert all("attempts" not in event for event in second)


@pytest.mark.parametrize(
    ("change", "question"),
    [
        ({"model": "llama3.2"}, ask()),
        ({"seed": 1}, ask()),
        ({"mode": "decision", "model": "llama3.2"}, ask()),
        ({}, ask(options=(S.SCROLLING, S.COMPOSING))),
        ({}, ask(context="Something else")),
        ({}, ask("Ben")),
    ],
)
async def test_answers_are_kept_by_what_was_asked(
    change: Any, question: Question, server: FakeOllama, connect: Connect
) -> None:
    """An answer is used again for the same model, options, prompt and seed only."""
    store: Any = Store()
    usual = {"model": "tiny", "mode": "chat", "cache": store}
    client = connect(kind="ollama")
    await Reasoner(client, **usual).decide_many([ask()])
    (same,) = await Reasoner(client, **usual).decide_many([ask()])
    (other,) = await Reasoner(client, **{**usual, **change}).decide_many([question])
    assert (same.source, other.source, len(server.questions), len(store)) == (
        "cache",
        "model",
        2,
        2,
    )


@pytest.mark.parametrize("name", ["model", "seed", "temperature", "think"])
async def test_answers_are_kept_by_the_clients_settings(name: str) -> None:
    """Answers are kept apart by a client's model, seed, temperature and think."""
    store: Any = Store()
    for value in ("1", "2", "2"):
        client = Model(answer("scrolling"))
        setattr(client, name, value)
        await decide(client, cache=store, model=None if name == "model" else "m1")
    assert len(store) == 2


@pytest.mark.parametrize("named", [{}, {"model": None}, {"model_id": "small"}])
async def test_a_cache_needs_to_know_the_model(named: Any) -> None:
    """Answers of nobody knows which model are not kept: the client or the caller has to name it."""
    client = Model(answer("scrolling"))
    vars(client).update(named)
    with pytest.raises(
        ReasonerError, match="a cache keeps answers by model, but Model names none: give Reasoner a"
    ):
        Reasoner(client, cache=Store())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        ("tiny", Fault.says("nonsense")),
        ("tiny", Fault.says(answer("resting"))),
        ("tiny", Fault.status(500)),
    ],
)
async def test_bad_replies_are_not_kept(
    model: str, fault: Fault, server: FakeOllama, connect: Connect
) -> None:
    """What was no valid answer is asked again, and the valid one kept."""
    store: Any = Store()
    # a model whose words are of no use is asked once more, for the same decision
    server.fail(*[fault] * (1 if fault.content is None else 2))
    reasoner = Reasoner(connect(model=model), cache=store)
    kept = []
    for _ in range(3):
        (decision,) = await reasoner.decide_many([ask()])
        kept.append((decision.source, len(store)))
    assert kept == [("fallback", 0), ("model", 1), ("cache", 1)]


@pytest.mark.parametrize(
    "kept", ["no JSON", json.dumps({"text": answer("resting")}), json.dumps({"text": ""})]
)
async def test_a_kept_answer_is_validated(kept: str) -> None:
    """What a cache holds is checked like a reply, and asked again if it is none."""
    store: Any = Store()
    await decide(Model(answer("scrolling")), cache=store, model="m1")
    store.update(dict.fromkeys(store, kept))
    assert (await decide(Model(answer("scrolling")), cache=store, model="m1")).source == "model"
    assert (await decide(Model(answer("composing")), cache=store, model="m1")).source == "cache"


async def test_a_broken_cache_does_not_end_a_run(logger: Any, capture: Any) -> None:
    """A cache that raises is reported once, and the model asked as if there were none."""
    reasoner = Reasoner(Model(answer("scrolling")), cache=BrokenStore(), model="m1", logger=logger)
    assert outcomes(await reasoner.decide_many(crowd(3))) == [(S.SCROLLING, "model")] * 3
    names = [entry["event"] for entry in capture.entries]
    assert names == ["reasoner.cache_failed", *["reasoner.decision"] * 3]
