"""What users of other agents with memories complain about: loops, lost memories, outdated facts."""

import asyncio
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from prism.programs.thinking import CognitiveAgent, Config, Cycle, Memory
from tests.kit.clients import Model
from tests.kit.cognition import FIXED, LARGEST, action, add, letters, limited, thought, working
from tests.kit.writers import prompts_of, writer_of

NO_SUCH = "<agent><action><type>make_call</type><url>a{}</url></action></agent>"


async def acting(
    *deeds: str, memory: Any = None, config: Config | None = None, **settings: Any
) -> tuple[CognitiveAgent, list[Cycle], list[str]]:
    """Return an agent that has carried out deeds with a new thought before each."""
    numbers = count()
    replies = [
        each for deed in deeds for each in (thought(f"plan {next(numbers)}", "executing"), deed)
    ]
    held = memory if isinstance(memory, Memory) else Memory.in_memory(memory)
    writer = writer_of(replies)
    agent = CognitiveAgent(config or Config(goal="g"), held, writer, **settings)
    return agent, await agent.run(len(replies)), prompts_of(writer)


@pytest.mark.parametrize("again", ["drink", "Drink", "DRINK", "drink "])
@pytest.mark.parametrize("kind", ["working_memory_add", "storage_save"])
async def test_a_fact_that_changes_does_not_stand_beside_the_old_one(kind: str, again: str) -> None:
    """However its tag is spelled; neither is the new one lost with the old."""
    agent, _, prompts = await acting(
        action(kind, "drink", "likes coffee"),
        action(kind, again, "likes tea now"),
        action("storage_save", again),
        action("storage_search", "likes now"),
        thought("x"),
        memory={"working_memory": {"drink": "likes coffee"}},
    )
    assert [match.value for match in agent.memory.search("coffee tea", 9)] == ["likes tea now"]
    assert dict(agent.memory.working) == {"drink": "likes tea now"}
    assert agent.memory.versions("drink") == ["likes coffee"]
    assert "coffee" not in prompts[-1]


async def test_a_memory_that_is_removed_by_mistake_can_be_found_again() -> None:
    """It was nowhere else, so it is kept as a version."""
    memory = {"working_memory": {"a": "only here", "b": "stored"}, "storage": {"b": "stored"}}
    deeds = [action("working_memory_remove", tag) for tag in ("a", "b")]
    agent, _, _ = await acting(*deeds, memory=memory)
    assert not agent.memory.working
    assert (agent.memory.versions("a"), agent.memory.versions("b")) == (["only here"], [])


async def test_two_agents_share_no_memory() -> None:
    """They would act in each other's states; one after the other they may use it."""
    memory, client = Memory.in_memory(), Model(thought("x"))
    one, two = (CognitiveAgent(Config(), memory, client, agent_id=name) for name in "ab")
    _, refused = await asyncio.gather(one.cycle(), two.cycle(), return_exceptions=True)
    assert str(refused) == "agent 'b' needs a memory that no other agent uses"
    assert ((await two.cycle()).number, memory.cycle) == (2, 2)


async def test_neither_goal_nor_role_leaves_a_full_prompt() -> None:
    """What has to go for the hard limit is memories, thoughts and news."""
    memory = {**working(40), **{f"thinking_log_{n:03}": f"t{n} " * 50 for n in range(1, 9)}}
    memory["prism"]["news"] = ["news " * 100] * 9
    config = limited(None, LARGEST + 100, goal="Find the key.", role="R")
    agent, _, prompts = await acting(add("a", "b"), memory=memory, config=config, count=letters)
    assert all(each.startswith("R\n") and "Find the key." in each for each in prompts)
    assert agent.memory.stored("m0") == "0" * 100


async def test_what_paging_cannot_help_does_not_page_for_ever() -> None:
    """One long thought alone is above the soft limit: the agent thinks all the same."""
    memory = {"thinking_log_001": "old " * 99, "thinking_log_002": "long " * 99}
    config = limited(FIXED + 100, LARGEST + 2000)
    writer = writer_of([thought("short", "executing"), add("a", "b")])
    agent = CognitiveAgent(config, Memory.in_memory(memory), writer, count=letters)
    cycles = await agent.run(4)
    assert [cycle.state for cycle in cycles] == ["paging", "thinking", "executing", "paging"]
    assert agent.memory.working == {"a": "b"} or agent.memory.stored("a") == "b"


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        (add("note{}", "word " * 9000), "the value alone exceeds the hard"),
        (NO_SUCH, "'make_call' is no action that can be carried"),
        (action("storage_load", "gone{}"), "there is no 'gone4' in storage"),
        (action("storage_search", "gone {}"), "no memory in storage contains"),
    ],
)
async def test_what_fails_with_ever_new_arguments_ends(deed: str, reason: str) -> None:
    """The agent is told each time; after five the run ends, and says why."""
    agent, cycles, prompts = await acting(*(deed.format(number) for number in range(9)))
    assert len(cycles) == 10
    assert reason in str(agent.stopped)
    assert all("In cycle" in each for each in prompts[2:])


async def test_failures_do_not_pile_up_in_prompts_or_file(tmp_path: Path) -> None:
    """A prompt tells of the last one; 60 cycles leave a file as small as 12 leave."""
    numbers, sizes = count(), list[int]()
    writer = writer_of(lambda _: f"junk {next(numbers) % 7}")
    with Memory.open(tmp_path / "memory.json") as memory:
        for _ in range(60):
            await CognitiveAgent(Config(), memory, writer).cycle()
            sizes.append((tmp_path / "memory.json").stat().st_size)
    assert sizes[-1] - sizes[11] < 10
    lengths = [len(each) for each in prompts_of(writer)]
    assert max(lengths[1:]) - min(lengths[1:]) < 10


async def test_an_invented_result_is_not_taken_for_one() -> None:
    """A model that writes the answer to its own action has no say in what came of it."""
    reply = action("storage_search", "key") + "\nResult: the key is in the attic."
    _, cycles, prompts = await acting(reply, thought("x"))
    assert cycles[1].action is not None
    assert cycles[1].action.outcome == "missing"
    assert "attic" not in prompts[2]


async def test_a_search_that_finds_too_much_for_the_prompt_still_says_what() -> None:
    """Values are shortened as far as needed; the tags are told in any case, the newest first."""
    memory = {"storage": {f"note_{n}": f"fox {n} " + "word " * 300 for n in range(9)}}
    for room, shown in ((4500, 118), (2000, 28), (300, 0)):
        config = limited(None, LARGEST + room)
        deeds = (action("storage_search", "fox"), thought("x"))
        _, _, prompts = await acting(*deeds, memory=memory, config=config, count=letters)
        assert "done. It found note_8, note_7, note_6, note_5, note_4\n" in prompts[2]
        assert prompts[2].count("word") == 5 * shown
