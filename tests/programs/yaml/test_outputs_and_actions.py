"""What an llm step is answered, and what comes of an action."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("pydantic_monty")

from prism.programs.yaml import Action
from tests.kit.writers import ACT, agent_of, turns_of

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
      properties: {idea: {type: string, minLength: 1}, sure: {type: number, maximum: 1}}
      required: [idea]
"""


@pytest.mark.parametrize(
    ("text", "reply", "value"),
    [
        (TEXT, "  hello\n", "hello"),
        (TEXT, "<think>hm</think>hello", "hello"),
        (TEXT, '{"a": 1}', '{"a": 1}'),
        (ACTION, ACT, {"reasoning": "why not", "action": {"kind": "wait"}}),
        (ACTION, f"So:\n```json\n{ACT}\n```", {"reasoning": "why not", "action": {"kind": "wait"}}),
        (ACTION, '{"action": {}}', {"reasoning": "", "action": {}}),
        (DATA, '{"idea": "x", "sure": 0.5}', {"idea": "x", "sure": 0.5}),
        (DATA, 'I think {"idea": "x"} is it', {"idea": "x"}),
    ],
)  # fmt: skip
async def test_the_result_stands_under_the_steps_name(text: str, reply: str, value: Any) -> None:
    """A text, reasoning and an action, or what the schema describes."""
    agent = agent_of(text, [reply])
    (run,) = (await agent.turn()).steps
    assert (run.outcome, agent.context) == ("done", {"s": value})


@pytest.mark.parametrize(
    ("text", "reply", "reason"),
    [
        (TEXT, "", "the reply is empty"),
        (TEXT, " \n", "the reply is empty"),
        (ACTION, "I wait.", ""),
        (ACTION, '{"reasoning": "x"}', "the reply has no action"),
        (ACTION, '{"action": "wait"}', "the reply has no action"),
        (ACTION, '{"reasoning": "x", "action": {"kind": "wa', ""),
        (ACTION, "[]", ""),
        (DATA, '{"idea": ""}', r"is not what the step asks for: $.idea:"),
        (DATA, '{"sure": 0.5}', r"is not what the step asks for: $: 'idea' is a required property"),
        (DATA, '{"idea": "x", "sure": 2}', r"$.sure: 2 is greater than the maximum of 1"),
        (DATA, "x", ""),
    ],
)
async def test_a_reply_that_cannot_be_used_fails_the_step(
    text: str, reply: str, reason: str
) -> None:
    """It leaves the context as it was, and no action is carried out."""
    done: list[Action] = []
    agent = agent_of(text, [reply], on_action=done.append)
    (run,) = (await agent.turn()).steps
    assert (run.outcome, agent.context, done) == ("skipped", {}, [])
    assert run.reason is not None
    assert run.reason.startswith("the text cannot be used: ")
    assert reason in run.reason


async def raise_late(action: Action) -> None:
    await asyncio.sleep(0)
    raise LookupError("late")


def fail_with(error: BaseException) -> Any:
    def fail(action: Action) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("on_action", "result"),
    [
        (fail_with(OSError("no\nroute")), "failed: OSError: no route"),
        (lambda: None, "failed: TypeError: "),
        (raise_late, "failed: LookupError: late"),
        (lambda action: {"x": {1, 2}}, "failed: FieldTypeError: the result of an action must be"),
    ],
)
async def test_an_action_that_fails_is_a_result(on_action: Any, result: str) -> None:
    """The step has succeeded, the workflow goes on, and the history says what happened."""
    agent = agent_of(ACTION, on_action=on_action)
    turns = await turns_of(agent, 2)
    assert [turn.steps[0].outcome for turn in turns] == ["done", "done"]
    assert not agent.action_history[0]["succeeded"]
    assert agent.action_history[0]["result"].startswith(result)


@pytest.mark.parametrize(
    "data", ["NaN", "18446744073709551616", '"\\ud800"', "[" * 400 + "]" * 400]
)
async def test_a_reply_that_could_not_be_kept_is_not_used(data: str) -> None:
    """The step fails by its policy, and the agent can be kept and goes on."""
    agent = agent_of(ACTION, [f'{{"reasoning": "x", "action": {{"a": {data}}}}}', ACT])
    (run,) = (await agent.turn()).steps
    assert run.outcome == "skipped"
    assert "the reply must be data that JSON can hold" in (run.reason or "")
    assert agent.to_dict().keys() == {"_state_machine"}
    assert (await agent.turn()).steps[0].outcome == "done"


async def test_a_host_may_change_the_action_that_it_is_given() -> None:
    """The context and the history keep what the model wrote, as a repeated run has it."""

    def spoil(asked: Action) -> None:
        assert isinstance(asked.action, dict)
        asked.action.clear()

    agent = agent_of(ACTION, on_action=spoil)
    await agent.turn()
    assert agent.context["s"]["action"] == {"kind": "wait"}
    assert agent.action_history[-1]["action"] == {"kind": "wait"}
