"""Actions in the forms in which models call tools, as elements, and as lines."""

import json

import pytest

from prism.cognition._replies import AskedAction, read_reply

LOAD = AskedAction("storage_load", "alice", None)
ARGUMENTS = '{"tags": "alice"}'

CALLS = {
    "llama3.2": '{"name": "storage_load", "parameters": {"tags": "alice"}}',
    "llama3.2 with its tag": f'<|python_tag|>{{"name": "storage_load", "parameters": {ARGUMENTS}}}'
    "<|eom_id|>",
    "llama3.2 as Python": '[storage_load(tags="alice")]',
    "llama3.1": f"<function=storage_load>{ARGUMENTS}</function>",
    "qwen": f'<tool_call>\n{{"name": "storage_load", "arguments": {ARGUMENTS}}}\n</tool_call>',
    "qwen for code": "<tool_call>\n<function=storage_load>\n<parameter=tags>\nalice\n</parameter>\n"
    "</function>\n</tool_call>",
    "qwen after a thought": "<think>Whom do I know?</think>\n<tool_call>"
    f'{{"name": "storage_load", "arguments": {ARGUMENTS}}}</tool_call>',
    "mistral": f'[TOOL_CALLS] [{{"name": "storage_load", "arguments": {ARGUMENTS}}}]',
    "mistral since 2025": f"[TOOL_CALLS]storage_load[ARGS]{ARGUMENTS}",
    "memgpt": '{"function": "storage_load", "params": {"inner_thoughts": "x", "tags": "alice"}}',
    "openai": json.dumps(
        {
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "storage_load", "arguments": ARGUMENTS},
                }
            ]
        }
    ),
    "openai before": json.dumps(
        {"function_call": {"name": "storage_load", "arguments": ARGUMENTS}}
    ),
    "in a fence": f'```json\n{{"name": "storage_load", "arguments": {ARGUMENTS}}}\n```',
    "two, of which the first counts": f'[{{"name": "storage_load", "arguments": {ARGUMENTS}}}, '
    '{"name": "storage_load", "arguments": {"tags": "bob"}}]',
    "an element": "<storage_load>alice</storage_load>",
    "an element with JSON": f"<storage_load>{ARGUMENTS}</storage_load>",
    "an element in an action": "<agent><action><storage_load>alice</storage_load></action></agent>",
    "an element with elements": "<agent><storage_load><tags>alice</tags></storage_load></agent>",
    "lines": "type: storage_load\ntags: alice",
    "lines of Markdown": "**Action:** storage_load\n**Tags:** alice",
}

UNCLEAR = {
    "a call that is cut off": '{"name": "storage_load", "arguments": {"tags": "ali',
    "Python that is cut off": '[storage_load(tags="ali',
    "an element that is cut off": "<storage_load>ali",
    "prose about a call": 'I would use storage_load(tags="alice") to get it.',
    "a parameter twice": "<function=storage_load><parameter=tags>alice</parameter>"
    "<parameter=tags>bob</parameter></function>",
    "a parameter that is cut off": "<function=storage_load><parameter=tags>ali",
    "a parameter in a value": "<function=storage_save><parameter=tags>a</parameter>"
    "<parameter=value>x <parameter=tags>b</parameter></function>",
    "two lines of one name": "type: storage_load\ntags: alice\ntags: bob",
    "a call that computes": "[storage_load(tags=open('x').read())]",
    "a call of something else": '[print("alice")]',
    "an element twice": "<storage_load>alice</storage_load><storage_load>bob</storage_load>",
    "an element in a thought": "<agent><next_state>thinking</next_state><thinking_log>I could use "
    "<storage_load>alice</storage_load>.</thinking_log></agent>",
    "a value that a model goes on behind": "type: storage_save\ntags: a\nvalue: x\n\nShall I?",
}


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS.keys())
def test_a_call_is_read(text: str) -> None:
    """Whatever form a model was trained on, its call is the action that it means."""
    reply = read_reply(text)
    assert (reply.action, reply.is_truncated) == (LOAD, False)


@pytest.mark.parametrize("text", UNCLEAR.values(), ids=UNCLEAR.keys())
def test_what_is_unclear_is_no_action(text: str) -> None:
    """Nothing is carried out of a reply that is cut off, or may mean something else."""
    reply = read_reply(text)
    assert reply.action is None or reply.is_truncated


def test_values_are_kept_sign_by_sign() -> None:
    """A value in another form may hold markup, colons and line breaks."""
    text = "<storage_save><tags>a</tags><value>x < y & <b>z</b></value></storage_save>"
    assert read_reply(text).action == AskedAction("storage_save", "a", "x < y & <b>z</b>")
    lines = "action: storage_save\ntags: a\nvalue: one: two\nthree"
    assert read_reply(lines).action == AskedAction("storage_save", "a", "one: two\nthree")


def test_a_thought_in_lines() -> None:
    """The next state and the thought are read from lines as well."""
    reply = read_reply("next_state: executing\nthinking_log: load alice")
    assert (reply.next_state, reply.thinking_log) == ("executing", "load alice")


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "bid", "arguments": {"price": 3, "units": 2}}',
        '{"agent": {"action": {"type": "bid", "price": 3, "units": 2}}}',
        "bid(price=3, units=2)",
    ],
)
def test_fields_of_own_actions(text: str) -> None:
    """What else an action has is kept by name, for those who know it."""
    action = read_reply(text, ("bid",)).action
    assert action is not None
    assert (action.type, action.fields) == ("bid", {"price": 3, "units": 2})


def test_a_name_that_nobody_knows_is_no_call() -> None:
    """Python and elements are calls only by the names of actions."""
    assert read_reply("bid(price=3)").action is None
    assert read_reply("<bid>3</bid>").action is None
