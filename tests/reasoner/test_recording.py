"""What a reasoner and a writer record of what they ask, by the ids that their events get."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from prism.llm import Model
from prism.statechart import Question, Reasoner, TextCall, Writer
from prism.testing import FakeOllama, FakeOpenAI, Fault
from tests.kit import clients
from tests.kit.clients import NeverSampled, Weighing
from tests.kit.pools import unpaused
from tests.kit.reasoners import OPTIONS, POST, S, answer, ask, crowd
from tests.kit.servers import Connect, Serve


class Kept(list[dict[str, Any]]):
    """A record in memory, which numbers as a run's does."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []

    def new_id(self, agent_id: str) -> str:
        earlier = sum(one.startswith(f"{agent_id}:") for one in self.given)
        self.given.append(f"{agent_id}:{earlier + 1}")
        return self.given[-1]

    def keep(self, record: dict[str, Any]) -> None:
        json.dumps(record)
        self.append(record)


@pytest.fixture
def kept() -> Kept:
    """Return an empty record."""
    return Kept()


async def test_a_chat_is_recorded_as_it_was_sent(
    server: FakeOllama, connect: Connect, kept: Kept
) -> None:
    """The record has the prompt, the body that the server read, the raw reply and its tokens."""
    reasoner = Reasoner(connect(server), mode="chat", record=kept)
    (decision,) = await reasoner.decide_many([ask()])
    (record,) = kept
    (attempt,) = record["attempts"]
    assert decision.decision_id == record["id"] == "Ada:1"
    assert (record["chosen"], record["source"]) == (decision.chosen.value, "model")
    assert (record["state"], record["context"]) == ("evaluating", {"post_id": "p1"})
    body = server.questions[0].body
    assert json.loads(attempt["request"]).items() <= body.items()
    assert json.loads(attempt["request"])["messages"][0]["content"] == record["prompt"]
    assert json.loads(attempt["reply"])["message"]["content"] == record["reply"]
    assert (attempt["host"], attempt["model"]) == (server.host, "tiny")
    assert (attempt["input_tokens"], attempt["output_tokens"]) == (
        decision.cost.input_tokens,  # type: ignore[union-attr]
        decision.cost.output_tokens,  # type: ignore[union-attr]
    )


async def test_equal_questions_of_two_agents_share_a_request(kept: Kept) -> None:
    """What one request answered for two agents is recorded once, and both have prompt and reply."""
    agents = [SimpleNamespace(agent_id=each, name="Ada", interests=[]) for each in "ab"]
    questions = [Question(agent, S.EVALUATING, "decides", OPTIONS, POST) for agent in agents]
    client = NeverSampled(answer("composing"))
    await Reasoner(client, record=kept).decide_many(questions)
    assert [record["id"] for record in kept] == ["a:1", "b:1"]
    assert [len(record["attempts"]) for record in kept] == [1, 0]
    assert kept[1]["reply"] == kept[0]["reply"] == answer("composing")


@pytest.mark.parametrize("kind", ["pool", "ollama"])
@pytest.mark.sampled(2)
async def test_every_attempt_has_its_reply_or_its_fault(
    kind: str, server: FakeOllama, connect: Connect, kept: Kept, no_pauses: None
) -> None:
    """A server that is busy and then drops the connection leaves two failed attempts."""
    server.fail(Fault.status(503), Fault.drop())
    client = connect(server, kind=kind, attempts=3)
    if kind == "pool":
        unpaused(client)
    model = "tiny" if kind == "ollama" else None
    reasoner = Reasoner(client, mode="chat", model=model, record=kept)
    await reasoner.decide_many([ask()])
    (record,) = kept
    assert record["source"] == "model"
    assert ["fault" in attempt for attempt in record["attempts"]] == [True, True, False]
    assert "reply" not in record["attempts"][1]
    assert record["attempts"][0]["fault"] != record["attempts"][1]["fault"]


async def test_a_fallback_is_recorded_with_what_was_said(kept: Kept) -> None:
    """A reply that names no option stands in the record beside the reason."""
    await Reasoner(clients.Model("Neither!"), record=kept).decide_many([ask()])
    (record,) = kept
    replies = [attempt["reply"] for attempt in record["attempts"]]
    assert (record["source"], replies) == ("fallback", ["Neither!", "Neither!"])
    assert record["attempts"][0]["reply"] == "Neither!"
    assert record["reason"].startswith("UselessReplyError")


async def test_a_refused_letter_stands_before_the_name(serve: Serve, kept: Kept) -> None:
    """Where a name was asked for in place of a letter, both are attempts of the decision."""
    server = serve(logprobs=False)
    reasoner = Reasoner(Model("tiny", [server.host]).as_client(), record=kept)
    await reasoner.decide_many([ask()])
    await reasoner.close()
    (record,) = kept
    letters = ["logprobs" in json.loads(attempt["request"]) for attempt in record["attempts"]]
    assert (record["asked"], letters) == ("name", [True, False])


async def test_ids_do_not_depend_on_which_answer_comes_first(kept: Kept) -> None:
    """Questions are numbered as they are put, each agent's from 1."""
    weighing = Weighing({"composing": 1, "scrolling": 0})
    reasoner = Reasoner(weighing, mode="decision", record=kept)
    for _ in range(2):
        decisions = await reasoner.decide_many(crowd(4))
    assert [decision.decision_id for decision in decisions] == [f"n{each}:2" for each in range(4)]
    assert sorted(record["id"] for record in kept) == sorted(kept.given)


async def test_events_have_an_id_only_where_prompts_are_recorded(
    kept: Kept, heard: list[Any]
) -> None:
    """The event names the record; without one it has the keys that it always had."""
    for record in (None, kept):
        await Reasoner(clients.Model(answer("composing")), record=record).decide_many([ask()])
        await Writer(clients.Model("Hello."), record=record).write(TextCall("Ada", "k", "Hi"))
    named = [{"decision_id", "text_id"} & event.keys() for event in heard]
    assert named == [set(), set(), {"decision_id"}, {"text_id"}]
    assert [heard[2]["decision_id"], heard[3]["text_id"]] == ["Ada:1", "Ada:2"]


async def test_all_requests_of_a_text_are_recorded(kept: Kept, serve: Serve) -> None:
    """A text that had to be asked for again has every reply, the useless ones, too."""
    replies = iter(["no", "no", "7"])
    server = serve(write=lambda *_: next(replies))
    writer = Writer(Model("tiny", [server.host]).as_client(), record=kept)
    call = TextCall("Ada", "k", "How many?", read=int, most_requests=5)
    written = await writer.write(call)
    await writer.close()
    (record,) = kept
    said = [json.loads(each["reply"])["message"]["content"] for each in record["attempts"]]
    assert said == ["no", "no", "7"]
    assert (record["id"], written.text_id, record["key"]) == ("Ada:1", "Ada:1", "k")


async def test_no_key_is_recorded(monkeypatch: pytest.MonkeyPatch, kept: Kept) -> None:
    """A key or password that a server repeats is cut out of replies, requests and faults."""
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    said = "sk-1234567890 and hunter22 and YWRhOmh1bnRlcjIy"
    with FakeOpenAI(models=["tiny"]) as server:
        server.fail(Fault.says(said), Fault.status(400, said))
        address = server.host.replace("//", "//ada:hunter22@")
        pool = Model("tiny", [address], server="openai").as_client()
        reasoner = Reasoner(pool, mode="chat", record=kept)
        for _ in range(2):
            await reasoner.decide_many([ask()])
        await reasoner.close()

    raw = [(each.get("reply"), each.get("fault")) for one in kept for each in one["attempts"]]
    assert len(raw) == 3
    for secret in said.split(" and "):
        assert secret not in json.dumps(raw)


async def test_what_a_record_raises_is_raised(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that cannot be kept ends the questions: nothing is left out in silence."""

    def full(_record: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept, "keep", full)
    with pytest.raises(OSError, match="No space"):
        await Reasoner(clients.Model(answer("composing")), record=kept).decide_many([ask()])
