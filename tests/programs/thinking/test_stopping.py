"""Runs that end before their time, and ways to follow one."""

import json
from pathlib import Path

import pytest

from prism import Run, replay
from prism.llm import Model
from prism.programs.thinking import CognitiveAgent, Config, Cycle, Iterate, Memory
from prism.runs import ReplayOptions
from prism.testing import FakeOllama, ScriptedWriter
from tests.kit import kept as runs
from tests.kit.cognition import action, thinker, thought
from tests.kit.commands import Prism
from tests.kit.servers import chats_of


@pytest.mark.parametrize("reply", ["nothing of use", action("storage_burn", "all")])
async def test_useless_cycles_end_a_run(reply: str) -> None:
    """After five cycles in a row that brought nothing the run stops, and says why."""
    agent = thinker([thought("a"), reply])
    cycles = await agent.run(300)
    assert len(cycles) == 6
    assert str(agent.stopped).startswith("5 cycles in a row had no effect; the last one: ")


async def test_every_cycle_is_asked_with_a_seed_of_its_own() -> None:
    """A model that answers by its seed need not repeat a reply that was of no use."""
    with FakeOllama(models=["tiny"], write=lambda *_: "nothing of use") as server:
        model = Model("tiny", hosts=[server.host], seed=7)
        await CognitiveAgent(Config(), Memory.in_memory(), model).run(3)
    assert [body["options"]["seed"] for body in chats_of(server)] == [8, 9, 10]


async def test_a_new_thought_begins_the_count_anew() -> None:
    """A cycle of use among others of none lets a run go on."""
    replies = [word for number in range(9) for word in ("nothing", thought(f"idea {number}"))]
    agent = thinker(replies)
    assert len(await agent.run(18)) == 18
    assert agent.stopped is None


@pytest.mark.parametrize(
    ("replies", "cycles", "why"),
    [
        ([thought("idea")], 6, "it repeats the last thought"),
        (
            [thought("load", "executing"), action("storage_load", "alice")],
            7,
            "it repeats the last thought",
        ),
        (
            [thought("find", "executing"), action("storage_search", "alice")],
            7,
            "it repeats the last thought",
        ),
    ],
)
async def test_an_agent_does_not_repeat_itself_for_ever(
    replies: list[str], cycles: int, why: str
) -> None:
    """The same thought, request or search again and again brings nothing, and ends a run."""
    writer = ScriptedWriter([*replies] * 300)
    agent = thinker(writer, {"storage": {"alice": 25}})
    assert len(await agent.run(300)) == cycles
    assert agent.stopped == f"5 cycles in a row had no effect; the last one: {why}"
    assert any(why in call.prompt for call in writer.calls)


@pytest.mark.parametrize(
    "echo",
    [
        "Ask Bob.",
        "  Find Alice.\nAsk Bob. ",
        '<thought key="thinking_log_001">Find Alice.</thought>',
        "What you have found out, and what to do next.",
    ],
)
async def test_a_thought_that_the_prompt_shows_is_no_new_thought(echo: str) -> None:
    """A model that writes back what it was shown adds nothing to the log, and is told so."""
    writer = ScriptedWriter([thought("Find Alice."), thought("Ask Bob."), thought(echo)] * 2)
    agent = thinker(writer)
    *_, cycle, _after = await agent.run(4)
    assert cycle.thought is None
    assert cycle.brought_nothing == next(reversed(cycle.defects))
    assert [*agent.memory.thoughts.values()] == ["Find Alice.", "Ask Bob."]
    assert f"no action: done. {cycle.brought_nothing}" in writer.calls[3].prompt


async def test_a_request_that_changes_nothing_is_told() -> None:
    """The prompt after a load of what is there, or of the last search again, says so."""
    writer = ScriptedWriter(
        [
            action("storage_load", "alice"),
            thought("a", "executing"),
            action("storage_load", "alice"),
            thought("b", "executing"),
            action("storage_search", "alice"),
            thought("c", "executing"),
            action("storage_search", "alice"),
            thought("d"),
        ]
    )
    agent = thinker(writer, {"storage": {"alice": 25}, "state": "executing"})
    await agent.run(8)
    told = [call.prompt for call in writer.calls]
    assert "storage_load alice: done\n" in told[1]
    assert "storage_load alice: done. nothing has changed by it" in told[3]
    assert "storage_search alice: done\n" in told[5]
    assert "storage_search alice: done. it repeats the last search" in told[7]


async def test_a_loop_over_an_agent() -> None:
    """``async for`` gives each cycle as it ends, and a callback hears of it."""
    heard: list[Cycle] = []
    config = Config(iterate=Iterate(max_iterations=3))
    replies = [thought("a"), thought("b"), thought("c")]
    agent = thinker(replies, config=config, on_cycle=heard.append)
    numbers = [cycle.number async for cycle in agent]
    assert numbers == [cycle.number for cycle in heard] == [1, 2, 3]


async def test_the_next_prompt_says_what_came_of_a_reply() -> None:
    """A load that found nothing, a refusal, and a reply that could not be read are told."""
    writer = ScriptedWriter(
        [
            thought("a", "executing"),
            action("storage_load", "alice"),
            "nothing of use",
            action("storage_load", "alice"),
            action("storage_load", "alice"),
        ]
    )
    agent = thinker(writer, {"storage": {"alice_s_age": 25}})
    await agent.run(5)
    told = [call.prompt for call in writer.calls]
    missing = "storage_load alice: missing. there is no 'alice' in storage; storage has alice_s_age"
    assert missing in told[2]
    assert "no action: unusable. the reply has neither next_state nor thinking_log" in told[3]
    assert "storage_load alice: missing" in told[3]
    assert "(thinking): storage_load alice: refused. an action is carried out while" in told[4]


@pytest.mark.parametrize(
    ("settings", "why"),
    [({"max_calls": 3}, "BudgetSpentError"), ({}, "5 cycles in a row had no effect")],
)
@pytest.mark.sampled(2)
def test_a_run_that_stops(settings: dict[str, int], why: str, tmp_path: Path) -> None:
    """A spent budget ends it at once; results and log say why, and a replay writes the same."""
    config = tmp_path / "config.json"
    config.write_text(Config().to_json())
    replies = iter([thought("a"), thought("b"), thought("c")])
    with FakeOllama(write=lambda *_: next(replies, "nothing of use")) as server:
        model = Model("llama3.2", hosts=(server.url,), **settings)
        options = Run(config, memory=tmp_path / "memory.json", rounds=50, reasoner=model)
        outcome = runs.begin(options, tmp_path / "run")
    assert outcome.results.cycles == (4 if settings else 8)
    assert why in str(outcome.results.stopped)

    again = options.replace(reasoner=ReplayOptions(tmp_path / "run"))
    runs.begin(again, tmp_path / "again")
    one, other = (tmp_path / name / "events.jsonl" for name in ("run", "again"))
    assert one.read_bytes() == other.read_bytes()


def test_a_spent_budget_says_which_calls_were_lost(prism: Prism) -> None:
    """Calls without a usable reply are counted, on the screen, in results and in a replay."""
    (prism.folder / "config.json").write_text(Config().to_json())
    replies = iter([thought("a"), "", "", thought("b"), ""])
    with FakeOllama(write=lambda *_: next(replies, "")) as server:
        asked = ("--model", f"ollama:llama3.2@{server.host}", "--max-calls", "5")
        said = prism("run", "config.json", "--memory", "m.json", *asked, "--out", "run")
    assert said.status == 1
    assert "budget spent: 5 calls; 3 calls brought no usable reply" in said.err
    assert "calls lost" in said.out
    again = replay(prism.folder / "run")
    kept = json.loads((prism.folder / "run" / "run.json").read_text())["results"]
    assert (kept["lost_calls"], again.results.to_dict()) == (3, kept)


def test_the_window_follows_from_the_hard_limit(tmp_path: Path) -> None:
    """The server is asked for the hard limit and a reply, unless the model has a window."""
    config = tmp_path / "config.json"
    config.write_text(Config(hard_limit=6000).to_json())
    for number, (settings, window) in enumerate((({}, 11_000), ({"window": 9000}, 9000))):
        with FakeOllama(write=lambda *_: thought("a")) as server:
            model = Model("llama3.2", hosts=(server.url,), **settings)
            memory = tmp_path / f"{number}.json"
            runs.begin(Run(config, memory=memory, rounds=1, reasoner=model))
            (question,) = server.questions
        assert question.body["options"]["num_ctx"] == window
