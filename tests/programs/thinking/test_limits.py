"""The soft limit, the hard limit, and what moves so that a prompt keeps within them."""

from itertools import pairwise

import pytest

from prism.errors import FieldValueError, InputError
from prism.programs.thinking import Config, Iterate, Memory, Paging, ThinkingLog
from tests.kit.cognition import (
    FIXED,
    LARGEST,
    action,
    add,
    letters,
    limited,
    thinker,
    thought,
    working,
)
from tests.kit.writers import prompts_of, writer_of


async def test_passing_the_soft_limit_enters_paging() -> None:
    """An agent about to think pages instead, asks nobody, and thinks again."""
    writer = writer_of([thought()])
    agent = thinker(writer, working(10), limited(FIXED + 800), count=letters)
    cycle = await agent.cycle()
    assert (cycle.state, cycle.next_state, cycle.prompt_tokens) == ("paging", "thinking", None)
    assert writer.calls == []
    (paged,) = cycle.paged
    assert (paged.why, paged.by, paged.limit) == ("soft_limit", "lru", FIXED + 800)
    assert (await agent.cycle()).state == "thinking"


async def test_the_least_recently_used_go() -> None:
    """They go in order of their last use, until a quarter of the room is free; none is lost."""
    agent = thinker(memory=working(10), config=limited(FIXED + 800), count=letters)
    before = dict(agent.memory.working)
    (paged,) = (await agent.cycle()).paged
    assert list(paged.moved_out) == [f"m{place}" for place in range(len(paged.moved_out))]
    assert paged.tokens_before > FIXED + 800
    assert paged.tokens_after <= FIXED + 600
    # the last of them had to go
    assert paged.tokens_after + 150 > FIXED + 600
    data = agent.memory.to_dict()
    assert {**data["working_memory"], **data["storage"]} == before


async def test_what_was_used_stays() -> None:
    """A memory that a thought names is used in that cycle, and goes after the others."""
    config = limited(FIXED + 1700)
    agent = thinker([thought("remember m0, says m1")], working(9), config, count=letters)
    await agent.cycle()
    for number in range(10, 16):
        agent.memory.add(f"m{number}", "x" * 100)
    (paged,) = (await agent.cycle()).paged
    assert {"m0", "m1"} <= set(agent.memory.working)
    assert paged.moved_out[0] == "m2"


@pytest.mark.parametrize(
    ("tag", "told"), [("été_à_Nice", "Il pense à l'ete a nice."), ("火车", "明天的火车很晚")]
)
async def test_a_thought_names_memories_as_a_search_does(tag: str, told: str) -> None:
    """Accents do not count, nor do words have to stand apart where a script has no spaces."""
    data = working(3)
    data["working_memory"] = {tag: "x", **data["working_memory"]}
    agent = thinker([thought(told)], data, limited(None))
    await agent.cycle()
    assert agent.memory.least_recently_used()[-1] == tag


async def test_what_fits_the_last_thought_comes_back() -> None:
    """Of storage the best matches come back, as far as the soft limit allows."""
    memory = Memory.in_memory(
        {
            **working(6),
            "storage": {"dragon": "fire and scales", "tax": "forms", "scales": "of a dragon"},
            "thinking_log_001": "what about the dragon and its scales?",
        }
    )
    agent = thinker(memory=memory, config=limited(FIXED + 800), count=letters)
    (paged,) = (await agent.cycle()).paged
    assert sorted(paged.moved_in) == ["dragon", "scales"]
    assert paged.tokens_after <= FIXED + 800
    assert memory.stored("dragon") == "fire and scales"


async def test_thoughts_that_had_moved_come_back_as_thoughts() -> None:
    """Of the best matches a thought is in its place in the log again, and a memory in memory."""
    memory = Memory.in_memory(
        {
            **working(6),
            "storage": {"dragon": "fire", "thinking_log_001": "the dragon has scales"},
            "thinking_log_002": "what about the dragon and its scales?",
        }
    )
    agent = thinker(memory=memory, config=limited(FIXED + 800), count=letters)
    (paged,) = (await agent.cycle()).paged
    assert sorted(paged.moved_in) == ["dragon", "thinking_log_001"]
    assert [*memory.thoughts] == ["thinking_log_001", "thinking_log_002"]
    assert paged.tokens_after <= FIXED + 800


async def test_nothing_comes_back_beyond_the_soft_limit() -> None:
    """However well they fit, memories come back only while there is room."""
    storage = {f"dragon{number}": "dragon " * 20 for number in range(20)}
    data = {**working(18), "storage": storage, "thinking_log_001": "dragon dragon"}
    agent = thinker(memory=data, config=limited(FIXED + 2000), count=letters)
    (paged,) = (await agent.cycle()).paged
    assert 0 < len(paged.moved_in) < 5
    assert paged.tokens_after <= FIXED + 1750


async def test_another_value_in_storage_is_kept() -> None:
    """A memory that goes does not overwrite what storage has under its tag."""
    data = {**working(10), "storage": {"m0": "older"}}
    agent = thinker(memory=data, config=limited(FIXED + 800), count=letters)
    (paged,) = (await agent.cycle()).paged
    assert paged.versions == ("m0",)
    assert agent.memory.versions("m0") == ["older"]
    assert agent.memory.stored("m0") == "0" * 100


async def test_thinking_goes_on_where_nothing_can_go() -> None:
    """A soft limit that leaves no room does not keep an agent from thinking."""
    agent = thinker(memory={"thinking_log_001": "x"}, config=limited(FIXED), count=letters)
    cycles = await agent.run(7)
    assert [cycle.state for cycle in cycles].count("thinking") >= 4
    assert {cycle.outcome for cycle in cycles} == {"done"}


async def test_paging_leaves_room() -> None:
    """An agent that only adds pages now and then, not in every cycle."""
    number = iter(range(1000))
    config = limited(FIXED + 2000)
    agent = thinker(
        lambda call: (
            add(f"n{next(number)}", "x" * 60)
            if call.key.endswith("executing")
            else thought("on", "executing")
        ),
        config=config,
        count=letters,
    )
    cycles = await agent.run(80)
    paged = [cycle.number for cycle in cycles if cycle.state == "paging"]
    assert 2 <= len(paged) <= 12
    assert all(later - first > 4 for first, later in pairwise(paged))


@pytest.mark.parametrize("state", ["thinking", "executing", "paging"])
async def test_no_prompt_passes_the_hard_limit(state: str) -> None:
    """The least recently used memories go first, then the oldest thoughts; none is lost."""
    data = {
        **working(30),
        "state": state,
        **{f"thinking_log_{number:03}": "t" * 300 for number in range(1, 9)},
    }
    for room in (0, 10, 500, 1500, 3000):
        config = limited(None, LARGEST + room, paging=Paging("model"))
        memory = Memory.in_memory(data)
        agent = thinker(memory=memory, config=config, count=letters)
        cycle = await agent.cycle()
        assert cycle.prompt_tokens is not None
        assert cycle.prompt_tokens <= LARGEST + room
        after = memory.to_dict()
        kept = {**after["storage"], **after["working_memory"]}
        assert {name: kept[name] for name in data["working_memory"]} == data["working_memory"]


async def test_of_news_without_room_the_beginning_is_shown() -> None:
    """The agent learns that there is news, though a prompt has no room for all of it."""
    writer = writer_of([thought()])
    agent = thinker(writer, config=limited(None, LARGEST + 500), count=letters)
    agent.tell("old", "the ferry has left " + "x" * 5000)
    cycle = await agent.cycle()
    assert cycle.prompt_tokens is not None
    assert cycle.prompt_tokens <= LARGEST + 500
    (prompt,) = prompts_of(writer)
    assert "<new>the ferry has left xx" in prompt
    assert " …</new>" in prompt


async def test_a_value_larger_than_the_hard_limit_is_refused() -> None:
    """An add or load that no prompt has room for is refused, and changes nothing."""
    config = limited(None, LARGEST + 500)
    data = {"state": "executing", "storage": {"big": "x" * 600}}
    for reply in (add("huge", "x" * 600), action("storage_load", "big")):
        agent = thinker([reply], data, config, count=letters)
        cycle = await agent.cycle()
        assert (cycle.outcome, agent.memory.working) == ("refused", {})
        assert cycle.reason == "the value alone exceeds the hard limit"


def test_a_fixed_part_beyond_the_hard_limit_is_refused() -> None:
    """Where no prompt could ever fit, the agent is not made."""
    with pytest.raises(InputError, match="raise it, or shorten"):
        thinker(config=limited(None, LARGEST - 1), count=letters)
    thinker(config=limited(None, LARGEST), count=letters)
    with pytest.raises(InputError, match="paging limit is"):
        thinker(config=limited(FIXED - 1), count=letters)
    with pytest.raises(InputError, match="hard_limit"):
        thinker(config=limited(None, LARGEST), count=letters, goal="win")


async def test_a_run_without_a_bound_needs_one() -> None:
    """Where iterate is off, the caller says how many cycles there are."""
    config = Config(iterate=Iterate(enable=False, max_iterations=20))
    with pytest.raises(FieldValueError, match="give the number of cycles"):
        await thinker(config=config).run()
    ideas = [thought(f"idea {number}") for number in range(21)]
    assert len(await thinker(ideas, config=config).run(21)) == 21


async def test_thoughts_that_are_off_are_neither_kept_nor_shown() -> None:
    """Without a log a thought is the cycle's alone."""
    config = Config(thinking_log=ThinkingLog(enable=False))
    writer = writer_of([thought("hello there")])
    agent = thinker(writer, {"thinking_log_001": "old"}, config)
    cycle = await agent.cycle()
    assert cycle.thought == "hello there"
    assert agent.memory.thoughts == {"thinking_log_001": "old"}
    assert "old</thought>" not in prompts_of(writer)[0]


async def test_no_more_thoughts_go_than_have_to() -> None:
    """Where a log is too long for the prompt of acting alone, few thoughts go, the oldest."""
    thoughts = {f"thinking_log_{number:03}": "t" * 90 for number in range(1, 31)}
    lengths = {}
    for state, limit in (("thinking", None), ("executing", None), ("executing", "thinking")):
        hard = None if limit is None else lengths[limit]
        memory = Memory.in_memory({**thoughts, "state": state})
        agent = thinker(memory=memory, config=limited(None, hard), count=letters)
        cycle = await agent.cycle()
        lengths[state] = cycle.prompt_tokens or 0
    assert lengths["thinking"] - 200 < lengths["executing"] <= lengths["thinking"]
    (paged,) = cycle.paged
    assert 1 <= len(paged.moved_out) < 10
    assert list(paged.moved_out) == list(thoughts)[: len(paged.moved_out)]


async def test_a_prompt_that_just_fits_is_left_alone() -> None:
    """A prompt of exactly as many tokens as a limit allows is sent, and nothing moves."""
    data = working(10)
    (cycle,) = await thinker([thought()], data, limited(None), count=letters).run(1)
    most = cycle.prompt_tokens
    for limits in (limited(most), limited(None, most)):
        (cycle,) = await thinker([thought()], data, limits, count=letters).run(1)
        assert (cycle.state, cycle.prompt_tokens, cycle.paged) == ("thinking", most, ())
