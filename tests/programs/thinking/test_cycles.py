"""A cycle in each state: what its reply may ask for, and where it leads."""

from typing import Any

import pytest

from tests.kit.cognition import action, add, thinker, thought

NEXT = [
    ("thinking", "thinking", ()),
    ("executing", "executing", ()),
    ("paging", "paging", ()),
    ("Executing now", "executing", ()),
    (None, "thinking", ("no next_state, so thinking goes on",)),
    ("dancing", "thinking", ("next_state 'dancing' is not a state, so thinking goes on",)),
]


@pytest.mark.parametrize(("named", "reached", "defects"), NEXT)
async def test_thinking_leads_to_the_state_it_names(
    named: str | None, reached: str, defects: tuple[str, ...]
) -> None:
    """A state that is missing or unknown means thinking, and the cycle says so."""
    agent = thinker([thought("on", named)])
    cycle = await agent.cycle()
    assert (cycle.next_state, cycle.defects[-1:], cycle.outcome) == (reached, defects, "done")
    assert agent.memory.state == reached


EXECUTED = [
    (add("a", "1"), "done", None),
    (action("working_memory_remove", "nobody"), "missing", "there is no 'nobody' in working"),
    (action("storage_load", "nobody"), "missing", "there is no 'nobody' in storage"),
    (action("storage_save", "s", "x"), "done", None),
    (action("storage_save", "nobody"), "refused", "the action has no value, and neither"),
    (action("working_memory_add", "a"), "refused", "the action has no value"),
    (
        action("storage_save", "nobody", ""),
        "refused",
        "the action has no value, and neither",
    ),
    (action("working_memory_add", "a", ""), "refused", "the action has no value"),
    (action("working_memory_add", "a", " \n"), "refused", "the action has no value"),
    (action("working_memory_add", " ", "x"), "refused", "the action has no tags"),
    (action("rm -rf", "a", "x"), "refused", "'rm' is no action that can be carried out"),
    (action("", "a", "x"), "refused", "the action has no type"),
    (action("page_out", "a"), "refused", "'page_out' is no action that can be carried out"),
    (add("a", "1").removesuffix("</agent>"), "refused", "the reply is cut off"),
    (add("a", "1")[:-30], "refused", "the reply is cut off"),
    (thought("I would rather think", "thinking"), "refused", "the reply asks for no action"),
    ("", "refused", "the reply asks for no action"),
    ("Sorry, I cannot do that.", "refused", "the reply asks for no action"),
]


@pytest.mark.parametrize(("reply", "outcome", "reason"), EXECUTED)
@pytest.mark.sampled(6)
async def test_executing_always_returns_to_thinking(
    reply: str, outcome: str, reason: str | None
) -> None:
    """One action is carried out or refused, with the reason, and the agent thinks again."""
    agent = thinker([reply], {"state": "executing"})
    cycle = await agent.cycle()
    assert (cycle.state, cycle.next_state) == ("executing", "thinking")
    assert cycle.action is not None
    assert cycle.action.outcome == outcome
    assert (cycle.action.reason or "").startswith(reason or "")
    assert cycle.outcome == ("refused" if outcome == "refused" else "done")


async def test_what_is_refused_changes_nothing() -> None:
    """Memories are as before after an action that could not be carried out."""
    before: dict[str, Any] = {"state": "executing", "working_memory": {"a": "1"}}
    for reply, outcome, _ in EXECUTED:
        if outcome != "done":
            agent = thinker([reply], before)
            await agent.cycle()
            assert agent.memory.to_dict()["working_memory"] == {"a": "1"}
            assert agent.memory.to_dict()["storage"] == {}


@pytest.mark.parametrize("value", [None, "", " \n "])
async def test_a_save_without_a_value_takes_that_of_working_memory(value: str | None) -> None:
    """An element that is left empty is no value, and overwrites nothing with nothing."""
    before = {"state": "executing", "working_memory": {"a": "new"}, "storage": {"a": "old"}}
    agent = thinker([action("storage_save", "a", value)], before)
    await agent.cycle()
    assert agent.memory.to_dict()["storage"] == {"a": "new"}
    assert agent.memory.working == {"a": "new"}


async def test_a_model_that_only_acts_is_asked_to_while_executing() -> None:
    """The action of a thinking cycle is refused, and the same one is carried out in the next."""
    agent = thinker([add("a", "1")] * 2)
    cycles = [await agent.cycle() for _ in range(2)]
    assert [(each.outcome, each.next_state) for each in cycles] == [
        ("refused", "executing"),
        ("done", "thinking"),
    ]
    assert agent.memory.working == {"a": "1"}


@pytest.mark.parametrize("state", ["thinking", "executing"])
async def test_a_model_that_fails_is_a_failed_cycle(state: str) -> None:
    """It is counted, with its reason, and the agent thinks again."""
    agent = thinker([OSError("down")], {"state": state})
    cycle = await agent.cycle()
    assert (cycle.outcome, cycle.reason, cycle.next_state) == ("failed", "down", "thinking")
    assert agent.memory.cycle == 1


@pytest.mark.parametrize("reply", ["", "no", "<agent></agent>", "<agent><thinking_log> "])
async def test_a_reply_without_anything_of_use_is_told(reply: str) -> None:
    """Thinking without a thought and without a next state is of no use."""
    cycle = await thinker([reply]).cycle()
    assert (cycle.outcome, cycle.next_state) == ("unusable", "thinking")
    assert str(cycle.reason).startswith("the reply has neither next_state nor thinking_log")


async def test_adding_overwrites_and_saving_leaves_working_memory() -> None:
    """What the four actions do to working memory and storage."""
    replies = [
        add("a", "1"),
        add("a", "2"),
        action("storage_save", "a"),
        action("storage_save", "b", "3"),
        action("working_memory_remove", "a"),
        action("storage_load", "b"),
    ]
    agent = thinker(replies)
    seen = []
    for _ in replies:
        agent.memory.state = "executing"
        await agent.cycle()
        data = agent.memory.to_dict()
        seen.append((data["working_memory"], data["storage"]))
    assert seen == [
        ({"a": "1"}, {}),
        ({"a": "2"}, {}),
        ({"a": "2"}, {"a": "2"}),
        ({"a": "2"}, {"a": "2", "b": "3"}),
        ({}, {"a": "2", "b": "3"}),
        ({"b": "3"}, {"a": "2", "b": "3"}),
    ]


@pytest.mark.parametrize("state", ["dreaming", "", "Thinking", "executing "])
async def test_an_unknown_state_is_reset_to_thinking(state: str, logger: Any, capture: Any) -> None:
    """A memory in a state that there is not starts over in thinking, which is logged."""
    agent = thinker([thought()], {"state": state}, logger=logger)
    cycle = await agent.cycle()
    assert (cycle.state, agent.memory.state) == ("thinking", "thinking")
    (event,) = [entry for entry in capture.entries if entry["event"] == "cognition.reset"]
    assert (event["from_state"], event["to_state"]) == (state, "thinking")
    assert (event["log_level"], event["cycle"]) == ("warning", 1)
