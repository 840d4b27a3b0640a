"""Prompts stay within their limits, and within the window of the server."""

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.errors import InputError
from prism.llm import Model
from prism.programs.thinking import CognitiveAgent, Config, Limit, Memory
from prism.testing import FakeOpenAI, Fault
from tests.kit.cognition import FIXED, LARGEST, action, add, letters, limited, thought, working
from tests.kit.writers import prompts_of, writer_of


@given(
    held=st.dictionaries(st.text("abc", min_size=1, max_size=3), st.text("xy ", max_size=400)),
    thoughts=st.lists(st.text("xyz", min_size=1, max_size=200), max_size=5),
    room=st.integers(50, 2000),
)
@settings(max_examples=4 * settings.default.max_examples)
async def test_no_prompt_exceeds_the_hard_limit_and_nothing_is_lost(
    held: dict[str, str], thoughts: list[str], room: int
) -> None:
    """Whatever is in the memory, in whatever state; values that moved are in storage."""
    document = {
        "working_memory": held,
        **{f"thinking_log_{number:03}": each for number, each in enumerate(thoughts, 1)},
    }
    memory = Memory.in_memory(document)
    before = dict(memory.working) | dict(memory.thoughts)
    writer = writer_of([thought("on", "executing"), add("q", "z"), thought("so", "paging")])
    agent = CognitiveAgent(limited(None, LARGEST + room), memory, writer, count=letters)
    for _ in range(5):
        await agent.cycle()
    assert all(len(prompt) <= LARGEST + room for prompt in prompts_of(writer))
    after = {**memory.to_dict()["storage"], **memory.working, **memory.thoughts}
    assert before.items() <= after.items()


async def test_the_least_recently_used_go_first() -> None:
    """Down to three quarters of the room, so that the next few fit."""
    agent = CognitiveAgent(
        limited(FIXED + 1000), Memory.in_memory(working(12)), writer_of([thought()]), count=letters
    )
    cycle = await agent.cycle()
    assert (cycle.state, cycle.next_state) == ("paging", "thinking")
    (paged,) = cycle.paged
    assert (paged.why, len({*agent.memory.working, *agent.memory.storage})) == ("soft_limit", 12)
    assert paged.moved_out == tuple(f"m{number}" for number in range(len(paged.moved_out)))
    assert FIXED + 750 - 131 < paged.tokens_after <= FIXED + 750  # as few as possible
    assert agent.memory.stored("m0") == "0" * 100


async def test_an_older_value_is_never_shown_as_the_present_one() -> None:
    """Not as what a search found, not by loading, and not after paging."""
    memory = Memory.in_memory({"state": "executing", "storage": {"town": "Rome"}})
    replies = [
        add("town", "Paris"),
        thought("x", "executing"),
        action("storage_search", "town"),
        thought("y", "executing"),
        action("storage_load", "town"),
        thought("z"),
    ]
    writer = writer_of(replies)
    agent = CognitiveAgent(Config(), memory, writer)
    for _ in replies:
        await agent.cycle()
    assert all("Rome" not in prompt for prompt in prompts_of(writer)[1:])
    assert memory.working == {"town": "Paris"}
    memory.page_out("town")
    assert (memory.stored("town"), memory.versions("town")) == ("Paris", ["Rome"])


def test_limits_that_no_prompt_can_keep_are_refused() -> None:
    """The fixed parts have to fit, whatever the memory holds."""
    with pytest.raises(InputError, match="even without memories"):
        CognitiveAgent(Config(paging_limit=Limit(max_tokens=90)), Memory.in_memory())


# The window of a server


def of_window(tokens: int) -> Fault:
    """Return the list of models of a server with a window."""
    listed = {"data": [{"id": "llama3.2", "max_model_len": tokens}]}
    return Fault.body(json.dumps(listed).encode())


async def test_limits_are_lowered_to_the_window_of_the_server(logger: Any, capture: Any) -> None:
    """With the usual configuration, sixty cycles run: nothing is cut, nothing stops.

    Also if a token is only three bytes, and not the four that are estimated.
    """
    numbers = count()

    def say(prompt: str, *_more: Any) -> str:
        if "You are in the state executing" in prompt:
            return add(f"m{next(numbers)}", f"{next(numbers)} " + "word " * 60)
        return thought(f"idea {next(numbers)} " * 9, "executing")

    with FakeOpenAI(write=say) as server:
        server.fail_always(of_window(4096), path="/v1/models")
        model = Model("llama3.2", hosts=(server.url,), server="openai")
        agent = CognitiveAgent(Config(goal="g"), Memory.in_memory(), model, logger=logger)
        cycles = await agent.run(60)
        asked = [question.body for question in server.questions]
    assert [cycle.outcome for cycle in cycles] == ["done"] * 60
    sizes = [
        len(each["messages"][-1]["content"].encode()) // 3 + each["max_tokens"] for each in asked
    ]
    assert max(sizes) <= 4096
    assert any(cycle.paged for cycle in cycles)
    (told,) = (event for event in capture.entries if event["event"] == "cognition.window")
    assert (told["window"], told["hard_limit"]) == (4096, 2048)


async def test_a_window_that_was_too_small_is_read_again(logger: Any, capture: Any) -> None:
    """A server may have been started again with a smaller one: the next prompts fit that."""
    with FakeOpenAI(write=lambda *_: thought("x")) as server:
        model = Model("llama3.2", hosts=(server.url,), server="openai")
        agent = CognitiveAgent(Config(), Memory.in_memory(), model, logger=logger)
        for window, fault in ((9000, "context length is 4096 tokens"), (4096, "")):
            server.fail_always(of_window(window), path="/v1/models")
            server.fail(*[Fault.status(400, fault)] * bool(fault))
            cycle = await agent.cycle()
            assert cycle.failure == ("PromptTooLongError" if fault else None)
    told = [each["window"] for each in capture.entries if each["event"] == "cognition.window"]
    assert told == [9000, 4096]


@pytest.mark.parametrize(
    "reports",
    [
        {"/props": {"default_generation_settings": {"n_ctx": 4096}}},
        {"/props": {}, "/api/v0/models": {"data": [{"id": "m", "loaded_context_length": 4096}]}},
    ],
)
async def test_the_window_of_a_local_server_is_read(
    reports: dict[str, Any], logger: Any, capture: Any
) -> None:
    """llama.cpp and LM Studio report theirs elsewhere; the latter answers whatever it is asked."""
    with FakeOpenAI(write=lambda *_: thought("x"), models=["m"]) as server:
        for path, body in reports.items():
            server.fail_always(Fault.body(json.dumps(body).encode()), path=path)
        model = Model("m", hosts=(server.url,), server="openai")
        await CognitiveAgent(Config(), Memory.in_memory(), model, logger=logger).cycle()
    (told,) = (event for event in capture.entries if event["event"] == "cognition.window")
    assert (told["window"], told["hard_limit"]) == (4096, 2048)
