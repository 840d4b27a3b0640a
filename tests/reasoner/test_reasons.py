"""A reason beside the choice: asked for, read, logged and replayed."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from prism.reasoner._prompts import answer_schema, chat_prompt
from prism.reasoner._replies import read_reason
from prism.runlog import ReplayReasoner, RunLog
from prism.statechart import Reasoner
from prism.testing import FakeOllama, Fault
from tests.kit.reasoners import ask
from tests.kit.servers import Connect, chats_of


def test_the_schema_has_the_reason_behind_the_choice() -> None:
    """The choice depends on nothing that the model has written before."""
    schema = answer_schema(ask().options, asks_reason=True)
    assert list(schema["properties"]) == schema["required"] == ["next_state", "reason"]
    assert schema["properties"]["reason"] == {"type": "string", "maxLength": 300}


async def test_a_reason_is_asked_for_logged_and_replayed(
    server: FakeOllama, connect: Connect, tmp_path: Path
) -> None:
    """The prompt asks for it in its last lines alone, and a replay has it without the model."""
    server.fail(Fault.says('{"next_state": "scrolling", "reason": "\\u001b[31mDull.\\nVery."}'))
    with RunLog(tmp_path / "asked.jsonl") as log:
        asked = Reasoner(connect(), mode="chat", reasons=True, logger=log.logger)
        (decision,) = await asked.decide_many([ask()])
    assert decision.said == "[31mDull. Very."
    line = json.loads((tmp_path / "asked.jsonl").read_text())
    assert line["said"] == decision.said

    (again,) = await ReplayReasoner(tmp_path / "asked.jsonl").decide_many([ask()])
    assert (again.chosen, again.said) == (decision.chosen, decision.said)

    (chat,) = chats_of(server)
    prompt, plain = chat["messages"][0]["content"], chat_prompt(ask())
    assert prompt != plain
    assert prompt.split("Respond with JSON only")[0] == plain.split("Respond with JSON only")[0]
    assert prompt.endswith('{"next_state": "<state_value>", "reason": "<why>"}\n')


async def test_a_choice_without_its_reason_is_a_choice(
    server: FakeOllama, connect: Connect, heard: Any
) -> None:
    """A model that gives no reason has decided all the same, and the log has no key for it."""
    server.fail(Fault.says('{"next_state": "scrolling"}'))
    (decision,) = await Reasoner(connect(), mode="chat", reasons=True).decide_many([ask()])
    assert (decision.source, decision.said) == ("model", None)
    assert "said" not in heard[-1]


async def test_a_decision_model_gives_no_reasons_which_is_said_once(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """Probabilities come without reasons; the run goes on, and is told so once."""
    reasoner = Reasoner(connect(model="llama3.2"), mode="decision", reasons=True)
    with caplog.at_level(logging.WARNING, "prism.statechart.prompts"):
        decisions = [*await reasoner.decide_many([ask()]), *await reasoner.decide_many([ask()])]
    assert [decision.said for decision in decisions] == [None, None]
    (record,) = caplog.records
    assert record.getMessage().startswith("llama3.2 is asked for probabilities")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ('{"next_state": "idle", "reason": "  I am\\ttired. "}', "I am tired."),
        ('Sure!\n```json\n{"next_state": "idle", "Reason": "tired"}\n```', "tired"),
        ('{"next_state": "idle", "reason": "I am ti', None),
        ('<think>{"reason": "no"}</think>{"next_state": "idle", "explanation": "yes"}', "yes"),
        ('{"next_state": "idle", "reason": 7}', None),
        ('{"next_state": "idle", "reason": "\\u0000"}', None),
        ('["idle"]', None),
        ("idle", None),
        ('{"reason": "\\ud83d"}', None),
        ('{"reason": "' + "long " * 100 + '"}', "long " * 59 + "long\N{HORIZONTAL ELLIPSIS}"),
    ],
)
def test_reasons_are_read_as_a_careful_person_would(reply: str, reason: str | None) -> None:
    """A reason is one printable line of at most 300 characters, wherever the reply has it."""
    assert read_reason(reply, 300) == reason
