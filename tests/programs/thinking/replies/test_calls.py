"""Actions as servers and models call tools."""

import pytest

from prism.programs.thinking._replies import AskedAction, read_reply

LOAD = AskedAction("storage_load", "alice", None)
ARGUMENTS = '{"tags": "alice"}'
CALL = f'{{"name": "storage_load", "arguments": {ARGUMENTS}}}'

CALLS = {
    "a call": CALL,
    "arguments as text": '{"name": "storage_load", "arguments": "{\\"tags\\": \\"alice\\"}"}',
    "parameters": '{"name": "storage_load", "parameters": {"tags": "alice"}}',
    "between tags": f"<tool_call>\n{CALL}\n</tool_call>",
    "after a thought": f"<think>Whom do I know?</think>\n{CALL}",
    "behind a mark": f"[TOOL_CALLS] [{CALL}]",
    "in a fence": f"```json\n{CALL}\n```",
    "two, of which the first counts": f"[{CALL}, {CALL.replace('alice', 'bob')}]",
    "a call of the agent": '{"name": "agent", "arguments": {"action": {"type": "storage_load", '
    '"tags": "alice"}}}',
}

REFUSED = {
    "cut off": '{"name": "storage_load", "arguments": {"tags": "ali',
    "arguments that are cut off": '{"name": "storage_load", "arguments": "{\\"tags\\": \\"ali"}',
    "without a name": '{"name": null, "arguments": {"tags": "alice"}}',
    "two beside each other": f"{CALL}\n{CALL.replace('alice', 'bob')}",
    "a key twice": '{"name": "storage_load", "arguments": {"tags": "alice", "tags": "bob"}}',
    "Python": '[storage_load(tags="alice")]',
    "a function": f"<function=storage_load>{ARGUMENTS}</function>",
    "an element": "<storage_load>alice</storage_load>",
    "lines": "type: storage_load\ntags: alice",
    "prose about a call": 'I would use storage_load(tags="alice") to get it.',
}


@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS.keys())
def test_a_call_is_read(text: str) -> None:
    """A call is the action that it means, as JSON with a name and arguments."""
    reply = read_reply(text)
    assert (reply.action, reply.is_truncated) == (LOAD, False)


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_no_other_call_is_read(text: str) -> None:
    """Nothing is carried out of another form, or of what may mean something else."""
    reply = read_reply(text)
    assert reply.action is None
    assert reply.defects


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "bid", "arguments": {"price": 3, "units": 2}}',
        '{"agent": {"action": {"type": "bid", "price": 3, "units": 2}}}',
    ],
)
def test_fields_of_own_actions(text: str) -> None:
    """What else an action has is kept by name, for those who know it."""
    action = read_reply(text).action
    assert action is not None
    assert (action.type, action.fields) == ("bid", {"price": 3, "units": 2})
