"""Servers that cut a thinking agent's action out of the text, as a tool call of theirs."""

import json
from collections.abc import Mapping
from typing import Any

import openai
import pytest

from prism import Model
from prism.programs.thinking import (
    ActionRefusedError,
    CognitiveAgent,
    Config,
    Cycle,
    Memory,
    action,
)
from prism.testing import FakeOllama, FakeOpenAI, Fault, ScriptedWriter
from tests.kit.cognition import thinker, thought

SAVE = {"tags": "alice", "value": "Paris"}
ROME = {"tags": "bob", "value": "Rome"}
KINDS = pytest.mark.parametrize("kind", [FakeOllama, FakeOpenAI])


class Smith(CognitiveAgent):
    """An agent that forges, and sleeps."""

    @action
    def forge(self, what: str, number: int = 1) -> str:
        """Forge something of iron."""
        if number > 9:
            raise ActionRefusedError("there is no iron for that")
        return f"{number} {what}"

    @action
    def sleep(self) -> str:
        """Sleep."""
        return "asleep"


def called(name: str, arguments: Any) -> dict[str, Any]:
    """Return a call as servers write it; Ollama leaves out what does not matter here."""
    return {
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def _with_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call as Ollama sends it: with arguments that are an object."""
    function = call["function"]
    given = function["arguments"] or {}
    arguments = json.loads(given) if isinstance(given, str) else given
    return {"function": {**function, "arguments": arguments}}


def fault_of(kind: Any, message: Mapping[str, Any]) -> Fault:
    """Return a reply with a message, as a server of a kind sends it."""
    whole = {"role": "assistant", **message}
    if kind is FakeOllama:
        # which reads the arguments itself
        whole["tool_calls"] = [_with_arguments(call) for call in message["tool_calls"]]
        return Fault.body(json.dumps({"model": "m", "done": True, "message": whole}).encode())

    more = {"refusal": None, "function_call": None, "reasoning_content": None}
    choices = [{"index": 0, "finish_reason": "tool_calls", "message": {**more, **whole}}]
    told = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}
    return Fault.body(json.dumps(told).encode())


async def acted(kind: Any, message: Mapping[str, Any], *, is_own: bool = True) -> tuple[Cycle, Any]:
    """Return a cycle in which the server sends a message, and what is then in storage."""
    with kind(models=["m"]) as server:
        server.fail(fault_of(kind, message))
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="x") as client:
            model = Model("m", hosts=[server.url], server=kind.__name__[4:].lower())
            model = model if is_own else Model("m", client=client)
            agent = Smith(Config(), Memory.in_memory({"state": "executing"}), model)
            cycle = await agent.cycle()

    return cycle, agent.memory.to_dict()["storage"]


@KINDS
@pytest.mark.parametrize(
    "call",
    [
        called("storage_save", SAVE),
        called("storage_save", json.dumps(SAVE)),
        called("agent", {"action": {"type": "storage_save", **SAVE}}),
        called("action", json.dumps({"type": "storage_save", **SAVE})),
        {"function": {"name": "storage_save", "arguments": SAVE}},
    ],
)
@pytest.mark.parametrize("content", [None, "", "Let me save that.", "<think>Hm.</think>"])
async def test_a_tool_call_of_a_server_is_the_action(kind: Any, call: Any, content: Any) -> None:
    """Arguments are text or an object, and words or thoughts may stand beside the call."""
    cycle, stored = await acted(kind, {"content": content or "", "tool_calls": [call]})
    assert (cycle.outcome, cycle.lost_calls, stored) == ("done", 0, {"alice": "Paris"})


@pytest.mark.parametrize("is_own", [True, False])
async def test_a_message_of_openai_may_have_no_content(is_own: bool) -> None:
    """The content of a message that calls a tool is null, for clients of other libraries too."""
    message = {"content": None, "tool_calls": [called("storage_save", json.dumps(SAVE))]}
    _, stored = await acted(FakeOpenAI, message, is_own=is_own)
    assert stored == {"alice": "Paris"}


@KINDS
@pytest.mark.parametrize(
    ("name", "arguments", "answer"),
    [
        ("forge", {"what": "nail", "number": "3"}, "3 nail"),
        ("forge", '{"what": "nail"}', "1 nail"),
        ("sleep", {}, "asleep"),
        ("sleep", "", "asleep"),
        ("sleep", None, "asleep"),
    ],
)
async def test_own_actions_are_called_too(
    kind: Any, name: str, arguments: Any, answer: str
) -> None:
    """Their fields are the arguments; an action without fields needs none."""
    cycle, _ = await acted(kind, {"content": "", "tool_calls": [called(name, arguments)]})
    assert cycle.action is not None
    assert cycle.action.answer == answer


@pytest.mark.parametrize(
    ("calls", "stored", "reason"),
    [
        ([("storage_save", SAVE), ("storage_save", ROME)], {"alice": "Paris"}, None),
        ([("storage_save", SAVE), ("storage_save", '{"tags": "b')], {"alice": "Paris"}, None),
        ([("launch", SAVE), ("storage_save", ROME)], {}, "'launch' is no action"),
        ([("storage_save", '{"tags": "alice", "value": "Pa')], {}, "the reply asks for no action"),
        ([("forge", None)], {}, "the action lacks what"),
        ([("forge", {"what": "nail", "number": 10})], {}, "there is no iron"),
        ([(None, SAVE)], {}, "the reply asks for no action"),
    ],
)
async def test_the_first_of_several_calls_counts(
    calls: list[tuple[Any, Any]], stored: Any, reason: str | None
) -> None:
    """One that is unknown is refused, and so is one whose arguments are cut; nothing is guessed.

    Ollama reads the calls of its models itself.
    """
    message = {"content": "", "tool_calls": [called(*call) for call in calls]}
    cycle, found = await acted(FakeOpenAI, message)
    assert found == stored
    assert (cycle.reason or "").startswith(reason or "")
    assert (cycle.outcome == "done") is (reason is None)


async def test_the_other_calls_of_a_reply_are_told() -> None:
    """One action is carried out in a cycle; the log and the next prompt say there were more."""
    calls = [called("storage_save", SAVE), called("storage_save", ROME)]
    cycle, _ = await acted(FakeOpenAI, {"content": None, "tool_calls": calls})
    assert cycle.defects == ("2 actions; the first is read",)

    several = "<action><type>storage_save</type><tags>{}</tags><value>x</value></action>"
    reply = f"<agent>{several.format('alice')}{several.format('bob')}</agent>"
    writer = ScriptedWriter([reply, thought("on")])
    await thinker(writer, {"state": "executing"}).run(2)
    told = "storage_save alice: done. The reply has 2 actions; the first is read"
    assert told in writer.calls[1].prompt


async def test_a_refusal_beside_a_call_does_nothing() -> None:
    """A model that refuses asks for nothing, whatever else stands in its message."""
    message = {"refusal": "No.", "content": None, "tool_calls": [called("storage_save", SAVE)]}
    cycle, stored = await acted(FakeOpenAI, message)
    assert (stored, cycle.lost_calls) == ({}, 1)
