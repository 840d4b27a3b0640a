"""What a step is answered: a text, data, an action that is carried out, or a choice of the map."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.programs.yaml import Action, Workflow, WorkflowAgent
from prism.testing import FakeOllama
from tests.kit.clients import Client
from tests.kit.servers import Serve
from tests.kit.structlogs import capture_logs
from tests.kit.writers import ACT, agent_of, events_named, prompts_of, turns_of, writer_of

TEXT = "steps: [{name: s, type: llm, on_failure: skip, prompt: p, output: text}]\n"
ACTION = "steps: [{name: s, type: llm, on_failure: skip, prompt: p}]\n"
DATA = """
steps:
  - name: s
    type: llm
    on_failure: skip
    prompt: p
    output:
      type: object
      properties:
        idea: {type: string, minLength: 1}
        form: {enum: [text, string]}
        sure: {type: number, maximum: 1}
      required: [idea]
"""
WAIT = {"reasoning": "why not", "action": {"kind": "wait"}}


@pytest.mark.parametrize(
    ("text", "reply", "value"),
    [
        (TEXT, "  hello\n", "hello"),
        (TEXT, "<think>hm</think>hello", "hello"),
        (TEXT, "empty", "empty"),
        (ACTION, ACT, WAIT),
        (ACTION, f"So:\n```json\n{ACT}\n```", WAIT),
        (ACTION, '{"action": {}}', {"reasoning": "", "action": {}}),
        (ACTION, '{"reasoning": "reasoning", "action": {"kind": "text", "of": "a list"}}',
         {"reasoning": "", "action": {"kind": "text", "of": "a list"}}),
        (ACTION, '{"action": {"a": "\\ud800"}}', {"reasoning": "", "action": {"a": "\ufffd"}}),
        (DATA, '{"idea": "x", "sure": 0.5}', {"idea": "x", "sure": 0.5}),
        (DATA, '{"idea": "x", "form": "text"}', {"idea": "x", "form": "text"}),
        (DATA, 'I think {"idea": "x"} is it', {"idea": "x"}),
    ],
)  # fmt: skip
async def test_the_result_stands_under_the_steps_name(text: str, reply: str, value: Any) -> None:
    """A text, reasoning and an action, or what the schema describes, whose values are content."""
    agent = agent_of(text, [reply])
    (run,) = (await agent.turn()).steps
    assert (run.outcome, agent.context) == ("done", {"s": value}), run.reason
    assert agent.to_dict().keys() == {"s", "_state_machine"}


@pytest.mark.parametrize(
    ("text", "reply", "reason"),
    [
        (TEXT, "", "the reply is empty"),
        (TEXT, " ...\n", "the reply is empty, or only a placeholder"),
        (TEXT, "???", "the reply is empty, or only a placeholder"),
        (ACTION, "I wait.", "there is no whole JSON in the reply"),
        (ACTION, '{"reasoning": "x"}', "'action' is a required property"),
        (ACTION, '{"action": "wait"}', "'wait' is not of type 'object'"),
        (ACTION, '{"reasoning": "x", "action": {"kind": "wa', "no whole JSON"),
        (ACTION, f"<think>{ACT}</think>I do nothing.", "no whole JSON"),
        (ACTION, '{"action": {"pay": 5, "pay": 500}}', "no whole JSON"),
        (ACTION, '{"action": {"type": "action"}}', "type is only a placeholder"),
        (ACTION, '{"action": {"to": ["Ann", "<name>"]}}', "to is only a placeholder"),
        (ACTION, '{"action": {"a": "A: write words of your own there"}}', "a is only a place"),
        (ACTION, '{"action": {"a": 18446744073709551616}}', "has a number that is too large"),
        (ACTION, '{"action": {"a": %s}}' % ("[" * 400 + "]" * 400), ""),
        (DATA, '{"idea": ""}', "$.idea of the reply: '' should be non-empty"),
        (DATA, '{"idea": "Your idea"}', "idea is only a placeholder: write words of"),
        (DATA, '{"sure": 0.5}', "$ of the reply: 'idea' is a required property"),
        (DATA, '{"idea": "x", "sure": 2}', "$.sure of the reply: 2 is greater than the maximum"),
    ],
)  # fmt: skip
async def test_a_reply_that_cannot_be_used_fails_the_step(
    text: str, reply: str, reason: str
) -> None:
    """The reason does not quote it; the context stays, and no action is carried out."""
    done: list[Action] = []
    replies = [reply, ACT if text is ACTION else '{"idea": "x"}']
    agent = agent_of(text, replies, on_action=done.append)
    (run,) = (await agent.turn()).steps
    assert (run.outcome, agent.context, done) == ("skipped", {}, [])
    assert str(run.reason).startswith("the text cannot be used: ")
    assert reason in str(run.reason)
    assert not reply or reply not in str(run.reason)
    assert (await agent.turn()).steps[0].outcome == "done"


@pytest.mark.parametrize(
    ("step", "own", "bound"),
    [("", None, 1024), ("", 9, 9), ("7", None, 7), ("7", 9, 7), ("7", 5, 5)],
)
async def test_a_step_bounds_its_reply(
    server: FakeOllama, connect: Any, step: str, own: int | None, bound: int
) -> None:
    """By its `reply_tokens`, as the model does by its own: the smaller number holds."""
    limit = f", reply_tokens: {step}" if step else ""
    workflow = Workflow.from_text(TEXT.replace("output: text", f"output: text{limit}"))
    await WorkflowAgent(workflow, connect(server, reply_tokens=own)).turn()
    assert server.questions[-1].body["options"]["num_predict"] == bound


async def test_a_reply_that_is_cut_off_is_to_be_shorter(serve: Serve, connect: Any) -> None:
    """The model reads that it was cut, and nothing of what it wrote, which it would write again."""
    shorter, longer = '{"action": {"kind": "ok"}}', '{"action": {"kind": "on and on %s"}}'
    server = serve(write=lambda p, *_: shorter if "a shorter one" in p else longer % ("it " * 99))
    workflow = Workflow.from_text(ACTION.replace("skip", "retry"))
    (run,) = (await WorkflowAgent(workflow, connect(server, reply_tokens=20)).turn()).steps
    assert (run.outcome, run.reason) == ("done", None)
    assert "on and on" not in server.questions[-1].prompt


async def raise_late(_action: Action) -> None:
    await asyncio.sleep(0)
    raise LookupError("no\nroute")


def spoil(asked: Any) -> str:
    asked.action.clear()
    return "done"


@pytest.mark.parametrize(
    ("on_action", "result"),
    [
        (raise_late, "failed: LookupError: no route"),
        (lambda: None, "failed: TypeError: "),
        (lambda action: {"x": {1, 2}}, "failed: FieldTypeError: the result of an action must be"),
        (spoil, "done"),
    ],
)
async def test_what_an_application_does_is_a_result(on_action: Any, result: str) -> None:
    """Also if it fails: the workflow goes on. What the model wrote is kept as it was."""
    agent = agent_of(ACTION, on_action=on_action)
    turns = await turns_of(agent, 2)
    assert [turn.steps[0].outcome for turn in turns] == ["done", "done"]
    last = agent.action_history[-1]
    assert last["result"].startswith(result)
    assert last["succeeded"] is (on_action is spoil)
    assert last["action"] == agent.context["s"]["action"] == {"kind": "wait"}


# Choices

REFLECT = """
state_machine:
  states: [reflecting, implementing, observing, shipping]
steps:
  - name: reflect
    type: transition
    in_state: reflecting
    prompt: choose
    transition_map: {continue: implementing, pivot: observing, Hand  OVER: shipping}
"""


@pytest.mark.parametrize(
    ("reply", "state"),
    [
        ('{"decision": "hand over"}', "shipping"),
        ('{"decision": "pivot", "reasoning": "worn out", "next_focus": "x"}', "observing"),
        ('{"decision": "pivot", "next_focus": "continue"}', "observing"),
        ("  PIVOT.\n", "observing"),
        ("B) pivot", "observing"),
        ("<think>hand over? no, it is not ready</think>continue", "implementing"),
        ('{"decision": "pivot", "reasoning": "rather than continue"}', "observing"),
    ],
)
async def test_an_answer_is_read_as_a_careful_person_would(reply: str, state: str) -> None:
    """JSON, a word, the label of a list and prose around it lead to one state."""
    agent = agent_of(REFLECT, [reply])
    turn = await agent.turn()
    assert (turn.state, turn.steps[0].outcome, turn.steps[0].reason) == (state, "done", None)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I do not know.",
        "do not pivot",
        '{"decision": "explode"}',
        '{"decision": ["continue", "pivot"]}',
        '{"reasoning": "I would rather not say"}',
        "observing",
    ],
)
async def test_a_reply_outside_the_map_leaves_the_state(reply: str) -> None:
    """It is logged with the answers, and the step counts as done."""
    agent = agent_of(REFLECT, [reply])
    with capture_logs() as events:
        turn = await agent.turn()
    (run,) = turn.steps
    assert (turn.state, run.moved_to, run.outcome) == ("reflecting", None, "done")
    assert "the answer is none of continue, pivot, Hand  OVER" in str(run.reason)
    assert agent.context["reflect"]["decision"] is None
    (refused,) = events_named(events, "workflow.refused")
    assert (refused["step"], refused["target"]) == ("reflect", None)
    assert refused["reason"] == run.reason


async def test_what_was_decided_stands_in_the_context() -> None:
    """Decision, reasoning and next focus are variables of later steps; a placeholder is none."""
    reply = '{"decision": "pivot", "reasoning": "done", "next_focus": "next_focus"}'
    agent = agent_of(REFLECT, [reply])
    await agent.turn()
    expected = {"decision": "pivot", "reasoning": "done", "next_focus": ""}
    assert agent.context == {"reflect": expected}


async def test_without_map_and_prompt_a_default_one_is_asked() -> None:
    """For continue, pivot or ship; whatever the model says leads to `transition_to`."""
    writer = writer_of(['{"decision": "continue", "reasoning": "why not"}'])
    steps = "steps: [{name: s, type: transition, transition_to: b}]\n"
    agent = agent_of(f"state_machine: {{states: [a, b]}}\n{steps}", writer)
    assert (await agent.turn()).state == "b"
    assert agent.context["s"]["decision"] == "continue"
    (prompt,) = prompts_of(writer)
    assert "continue with what you are doing, pivot to something else, or ship" in prompt
    assert "State: a." in prompt


@pytest.mark.parametrize(
    ("text", "first", "second", "told"),
    [
        (ACTION.replace("skip", "retry"), '{"action": {"type": "action"}}', ACT,
         "Your last reply could not be used: type is only a placeholder: write words of your own "
         "there\n"
         "Respond with one JSON object of this form, and fill in its parts:\n"
         '{"reasoning": "", "action": {}}'),
        (DATA.replace("skip", "retry"), '{"idea": "..."}', '{"idea": "x"}', '"minLength": 1'),
        (REFLECT, "I do not know.", "B) pivot",
         "the answer is none of continue, pivot, Hand  OVER\n"
         "Respond with one of these words alone: continue, pivot, Hand  OVER\n"),
    ],
)  # fmt: skip
async def test_a_useless_reply_is_asked_about_again(
    text: str, first: str, second: str, told: str
) -> None:
    """With what was wrong, and the form: the raw schema only where nobody else has shown one."""
    client = Client([first, second])
    turn = await WorkflowAgent(Workflow.from_text(text), client).turn()
    assert (turn.steps[0].outcome, turn.steps[0].reason) == ("done", None)
    assert client.prompts[0] in client.prompts[1]
    assert told in client.prompts[1]
