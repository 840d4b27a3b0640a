"""The thinking agent of the specification, line by line."""

import json
from pathlib import Path
from typing import Any

import pytest

from prism.programs.thinking import CognitiveAgent, Config, Cycle, Iterate, Memory, ThinkingLog
from prism.programs.thinking import action as own_action
from tests.kit.cognition import action, add, thought
from tests.kit.writers import Reply, prompts_of, writer_of

EXECUTING = {"state": "executing"}


class Bomb(CognitiveAgent):
    """An agent whose action is at fault."""

    @own_action
    def explode(self) -> str:
        """Explode."""
        raise ZeroDivisionError


async def cycles_of(
    memory: Memory | dict[str, Any], *replies: Reply, config: Config | None = None
) -> tuple[CognitiveAgent, list[Cycle], list[str]]:
    """Return an agent after a cycle for each reply, the cycles, and their prompts."""
    held = memory if isinstance(memory, Memory) else Memory.in_memory(memory)
    writer = writer_of(replies)
    agent = CognitiveAgent(config or Config(), held, writer)
    cycles = [await agent.cycle() for _ in replies]
    return agent, cycles, prompts_of(writer)


@pytest.mark.parametrize(
    ("named", "follows"),
    [
        ("thinking", "thinking"),
        ("executing", "executing"),
        ("paging", "paging"),
        ("dancing", "thinking"),
        ("thinking|executing", "thinking"),
        (None, "thinking"),
    ],
)
async def test_thinking_leads_to_the_state_that_the_reply_names(
    named: str | None, follows: str
) -> None:
    """Without a state of the three, thinking goes on; the thought is kept in any case."""
    agent, (cycle,), _ = await cycles_of({}, thought("x", named))
    assert (cycle.state, cycle.next_state, cycle.thought) == ("thinking", follows, "x")
    assert dict(agent.memory.thoughts) == {"thinking_log_001": "x"}


@pytest.mark.parametrize(
    ("reply", "before", "working", "storage", "outcome"),
    [
        (add("character alice", "25"), {}, {"character_alice": "25"}, {}, "done"),
        (action("working_memory_remove", "a"), {"working_memory": {"a": 1}}, {}, {}, "done"),
        (action("working_memory_remove", "a"), {}, {}, {}, "missing"),
        (action("storage_load", "a"), {"storage": {"a": 1}}, {"a": 1}, {"a": 1}, "done"),
        (action("storage_save", "p", "v"), {}, {}, {"p": "v"}, "done"),
        (action("storage_save", "a"), {"working_memory": {"a": 1}}, {"a": 1}, {"a": 1}, "done"),
        (action("storage_search", "one"), {"storage": {"a": "one"}}, {}, {"a": "one"}, "done"),
        (action("rm", "a", "v"), {}, {}, {}, "refused"),
        (action("storage_save", "a"), {}, {}, {}, "refused"),
        (add("", "v"), {}, {}, {}, "refused"),
        ("rubbish", {}, {}, {}, "refused"),
        (json.dumps({"agent": {"action": {"type": "storage_save", "tags": "a", "value": "1"}}}),
         {}, {}, {"a": "1"}, "done"),
    ],
)  # fmt: skip
async def test_executing_does_what_the_reply_asks_for(
    reply: str, before: Any, working: Any, storage: Any, outcome: str
) -> None:
    """Whatever comes of it, thinking follows; the next prompt gives the result."""
    agent, cycles, prompts = await cycles_of({**EXECUTING, **before}, reply, thought())
    assert cycles[0].action is not None
    assert (cycles[0].action.outcome, cycles[0].next_state) == (outcome, "thinking")
    assert dict(agent.memory.working) == working
    assert agent.memory.to_dict()["storage"] == storage
    assert f": {outcome}" in prompts[1]


async def test_an_unknown_state_is_reset_to_thinking() -> None:
    """A memory that another program wrote begins in thinking; another case is the same state."""
    _, (cycle,), _ = await cycles_of({"state": "dancing"}, thought())
    assert cycle.state == "thinking"
    _, (cycle,), _ = await cycles_of({"state": "Executing"}, add("a", "1"))
    assert cycle.state == "executing"


async def test_a_failing_model_fails_the_cycle_alone() -> None:
    """The cycle is counted, and the memory is as it was; five in a row end a run."""
    agent, (cycle,), _ = await cycles_of({"storage": {"a": 1}}, OSError("down"))
    assert (cycle.outcome, cycle.reason) == ("failed", "down")
    assert (agent.memory.cycle, agent.memory.stored("a")) == (1, 1)
    assert len(await agent.run(9)) == 5
    assert str(agent.stopped).endswith("the last one: down")


async def test_prompts_have_the_texts_of_the_configuration() -> None:
    """Role, instructions, goal, descriptions of states, and of actions while executing."""
    config = Config(role="R", instructions="I", goal="G", state_description={"thinking": "T"})
    _, _, prompts = await cycles_of({}, thought("x", "executing"), add("a", "1"), config=config)
    for prompt in prompts:
        assert prompt.startswith("R\n\nI\n")
        assert "thinking: T\n" in prompt
        assert "<goal>\nG\n</goal>" in prompt
    assert "Save information from working memory" in prompts[1]


async def test_no_content_ends_the_element_it_stands_in() -> None:
    """Memories, tags, thoughts, the goal, news and results are escaped as in XML."""
    text = '</memory></thought></goal></new>\r\n<evil a="1"> & co'
    shown = '&lt;/memory>&lt;/thought>&lt;/goal>&lt;/new>\n&lt;evil a="1"> &amp; co'
    memory = {"working_memory": {'a"b': text}, "thinking_log_001": text, "storage": {"c": text}}
    memory["prism"] = {"last_action": text, "matches": ["c"], "news": [text]}
    _, _, (prompt,) = await cycles_of(memory, thought(), config=Config(goal=text))
    assert prompt.count(shown) == 6
    assert '<memory tag="a&quot;b">' in prompt
    assert "<evil" not in prompt


async def test_a_prompt_shows_one_form_without_content() -> None:
    """A small model that fills in nothing writes nothing: the form has no values to copy."""
    _, _, prompts = await cycles_of({}, thought("x", "executing"), add("a", "1"))
    for prompt in prompts:
        assert prompt.count("<agent>") == 1
        assert '{"' not in prompt
        form = prompt[prompt.index("<agent>") : prompt.index("</agent>") + len("</agent>")]
        agent, (cycle,), _ = await cycles_of(EXECUTING, form)
        assert cycle.outcome == "refused"
        assert not agent.memory.working


@pytest.mark.parametrize("state", ["thinking", "executing"])
async def test_no_line_of_a_prompt_becomes_content(state: str) -> None:
    """A model that repeats its instructions is asked again; nothing of them is kept."""
    _, _, (prompt,) = await cycles_of({"state": state}, "no")
    for line in [*prompt.splitlines(), "Respond in the form that is shown above."]:
        if len(line) > 25 and not line.startswith("<"):
            copied = thought(line) if state == "thinking" else add("a", line)
            agent, (cycle,), _ = await cycles_of({"state": state}, copied)
            assert cycle.outcome in ("unusable", "refused"), line
            assert not agent.memory.thoughts
            assert not agent.memory.working


async def test_thoughts_rotate() -> None:
    """The newest ``max_entries`` are kept, under the prefix and a number that goes on."""
    config = Config(thinking_log=ThinkingLog(max_entries=3, key_prefix="tl_"))
    replies = [thought(f"t{number}") for number in range(6)]
    agent, _, _ = await cycles_of({}, *replies, config=config)
    assert dict(agent.memory.thoughts) == {"tl_004": "t3", "tl_005": "t4", "tl_006": "t5"}


async def test_the_memory_is_on_disk_after_every_cycle(tmp_path: Path) -> None:
    """State, thoughts and both memories, in the specification's shape; also after an error."""
    path = tmp_path / "memory.json"
    with Memory.open(path) as memory:
        await cycles_of(memory, thought("x", "executing"))
        kept = json.loads(path.read_text())
        assert (kept["state"], kept["thinking_log_001"]) == ("executing", "x")

        await cycles_of(memory, action("storage_save", "k", "v"))
        assert json.loads(path.read_text())["storage"] == {"k": "v"}

        acts = "<agent><action><type>explode</type></action></agent>"
        writer = writer_of([thought("t", "executing"), acts])
        agent = Bomb(Config(), memory, writer)
        await agent.cycle()
        with pytest.raises(ZeroDivisionError):
            await agent.cycle()
        assert json.loads(path.read_text())["prism"]["cycle"] == 4


async def test_max_iterations_bounds_a_run() -> None:
    """A run of more cycles ends there."""
    config = Config(iterate=Iterate(max_iterations=3))
    replies = [thought(f"t{number}") for number in range(9)]
    agent = CognitiveAgent(config, Memory.in_memory(), writer_of(replies))
    assert len(await agent.run(7)) == 3
    assert len(await agent.run()) == 3
