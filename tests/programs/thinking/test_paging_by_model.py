"""Paging that the model decides."""

from typing import Any

import pytest

from prism.programs.thinking import Config, Paging
from prism.statechart import TextCall
from tests.kit.cognition import FIXED, action, letters, limited, thinker, thought, working
from tests.kit.writers import prompts_of, writer_of

MODEL = Paging("model")


def config(room: int | None) -> Config:
    """Return a configuration in which the model pages, with so much room below the soft limit."""
    return limited(None if room is None else FIXED + room, paging=MODEL)


async def test_the_model_is_asked_what_goes() -> None:
    """The cycle asks once, for paging, and what the reply names goes to storage."""
    writer = writer_of([action("page_out", "m5, m7,m8")])
    agent = thinker(writer, working(10), config(1100), count=letters)
    cycle = await agent.cycle()
    (call,) = writer.calls
    assert call.key == "11:paging"
    (paged,) = cycle.paged
    assert (paged.why, paged.by, paged.moved_out) == ("soft_limit", "model", ("m5", "m7", "m8"))
    assert (cycle.state, cycle.next_state) == ("paging", "thinking")
    assert "m5" not in agent.memory.working
    assert agent.memory.stored("m7") == "7" * 100


async def test_the_model_brings_back() -> None:
    """What the reply names comes back from storage, as far as the soft limit allows."""
    storage = {"near": "n" * 50, "far": "f" * 50, "huge": "h" * 900}
    data = {**working(2), "storage": storage, "state": "paging"}
    agent = thinker([action("page_in", "near,huge,far")], data, config(900), count=letters)
    (paged,) = (await agent.cycle()).paged
    assert (paged.why, paged.by, paged.moved_in) == ("asked", "model", ("near", "far"))
    assert paged.reason == "there is no room for huge"
    assert set(agent.memory.working) == {"m0", "m1", "near", "far"}


async def test_what_the_model_brings_back_has_room_made_for_it() -> None:
    """Above the limit the least recently used go first, and then comes what it asks for."""
    data = {**working(10), "storage": {"near": "n" * 50}}
    agent = thinker([action("page_in", "near")], data, config(800), count=letters)
    (paged,) = (await agent.cycle()).paged
    assert (paged.by, paged.moved_out[0], paged.moved_in) == ("model", "m0", ("near",))
    assert paged.reason is None
    assert paged.tokens_after <= FIXED + 800


async def test_what_the_model_leaves_above_the_limit_goes_by_use() -> None:
    """A reply that makes too little room does not keep the agent from thinking."""
    agent = thinker([action("page_out", "m9")], working(10), config(800), count=letters)
    cycle = await agent.cycle()
    (paged,) = cycle.paged
    assert paged.by == "model"
    assert paged.moved_out[:3] == ("m9", "m0", "m1")
    assert paged.tokens_after <= FIXED + 600


UNUSABLE: list[tuple[Any, str]] = [
    (OSError("down"), "down"),
    ("nothing", "the reply asks for no action"),
    (thought("hm"), "the reply asks for no action"),
    (action("working_memory_remove", "m1"), "'working_memory_remove' is not page_out or page_in"),
    (action("page_out", "nobody"), "working memory has nothing of the name 'nobody'"),
    (action("page_in", "nobody"), "storage has nothing of the name 'nobody'"),
    (action("page_out", ""), "working memory has nothing of the name ''"),
    (action("page_out", "m1").removesuffix("</agent>"), "the reply is cut off"),
]


@pytest.mark.parametrize(("reply", "reason"), UNUSABLE)
async def test_a_reply_of_no_use_means_by_use(reply: Any, reason: str) -> None:
    """The least recently used go then, and the event says why the model did not decide."""
    agent = thinker([reply], working(10), config(800), count=letters)
    cycle = await agent.cycle()
    (paged,) = cycle.paged
    assert (paged.by, paged.moved_out[0]) == ("lru", "m0")
    assert (paged.reason or "").startswith(reason)
    assert (cycle.outcome, cycle.next_state) == ("done", "thinking")


@pytest.mark.parametrize(
    ("tags", "went"),
    [("a,b", ("a,b",)), ("x, _y", ("x", "_y")), ("x,y", ("x",)), (" x ,, x", ("x",))],
)
async def test_tags_are_separated_by_commas(tags: str, went: tuple[str, ...]) -> None:
    """A memory may have a comma in its tag, and a tag may begin with an underscore."""
    data = {"state": "paging", "working_memory": dict.fromkeys(("a,b", "x", "_y"), "v")}
    agent = thinker([action("page_out", tags)], data, config(None))
    (paged,) = (await agent.cycle()).paged
    assert paged.moved_out == went


async def test_tags_in_another_case_are_found() -> None:
    """What a reply names in another case goes and comes as if it had been written so."""
    data = {**working(2), "storage": {"near": "n" * 50}, "state": "paging"}
    agent = thinker([action("page_in", "Near"), action("page_out", "M0")], data, config(900))
    await agent.cycle()
    assert set(agent.memory.working) == {"m0", "m1", "near"}
    agent.memory.state = "paging"
    await agent.cycle()
    assert set(agent.memory.working) == {"m1", "near"}


async def test_an_action_that_is_not_available_is_of_no_use() -> None:
    """A configuration without page_out has nothing paged out by the model."""
    actions = {"working_memory_add": "add", "page_in": "in"}
    agent = thinker(
        [action("page_out", "m9")],
        working(10),
        limited(FIXED + 500, paging=MODEL, available_actions=actions),
        count=letters,
    )
    (paged,) = (await agent.cycle()).paged
    assert (paged.by, paged.reason) == ("lru", "'page_out' is not available")


async def test_a_paging_that_was_broken_off_has_not_been() -> None:
    """The agent is in the state of its memory again, and the next cycle pages."""

    def say(call: TextCall) -> str:
        if writer_fails:
            raise KeyboardInterrupt
        return action("page_out", "m5")

    writer_fails = [True]
    agent = thinker(say, working(10), config(1100), count=letters)
    with pytest.raises(KeyboardInterrupt):
        await agent.cycle()
    assert agent.state == agent.memory.state == "thinking"
    writer_fails.clear()
    assert (await agent.cycle()).state == "paging"


async def test_an_agent_that_pages_badly_goes_on_thinking() -> None:
    """Whatever the model says, paging is one cycle, and thinking follows."""

    def say(call: TextCall) -> str:
        number, _, state = call.key.partition(":")
        return action("page_in", "m0") if state == "paging" else thought(number)

    agent = thinker(say, working(10), config(800), count=letters)
    cycles = await agent.run(6)
    assert [cycle.state for cycle in cycles] == ["paging", *["thinking"] * 5]


async def test_the_model_is_shown_what_fits_in_storage() -> None:
    """The prompt names what storage has for the last thought, as far as the hard limit allows."""
    storage = {"dragon": "of fire", "tax": "forms", 'the "dragon"': "x"}
    data = {
        **working(3),
        "state": "paging",
        "storage": storage,
        "thinking_log_001": "where is the dragon?",
    }
    limit, shown = 100_000, []
    for _ in range(2):
        writer = writer_of([action("page_in", "dragon")])
        agent = thinker(writer, data, limited(None, limit, paging=MODEL), count=letters)
        (paged,) = (await agent.cycle()).paged
        (prompt,) = prompts_of(writer)
        shown.append('<memory tag="dragon"/>' in prompt)
        assert len(prompt) <= limit
        assert '"tax"' not in prompt
        assert paged.moved_in == ("dragon",)
        limit = len(prompt) - 1

    assert shown == [True, False]
