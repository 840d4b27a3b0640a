"""An agent that goes in circles: each prompt says so, and the run stops and says why."""

import json
from collections.abc import Callable, Sequence
from itertools import count, cycle
from typing import Any

import pytest
from structlog.testing import capture_logs

from prism import Run
from prism.errors import FieldValueError
from prism.examples.council import Council
from prism.programs.thinking import CognitiveAgent, Config, Memory, action
from prism.reasoner import TextCall, Written
from tests.kit.cognition import action as acts
from tests.kit.cognition import add, thought
from tests.kit.writers import prompts_of, writer_of


class Shell(CognitiveAgent):
    """An agent with an action whose answer never changes, and whose name a method has."""

    @action
    def run(self, command: str) -> str:
        """Run a command."""
        return "file not found" if command else ""


def ls(name: str) -> str:
    """Return the call of the action."""
    return json.dumps({"name": "run", "arguments": {"command": f"ls {name}"}})


def model(*deeds: str, new_thoughts: bool = True) -> Callable[[TextCall], str]:
    """Return a model that does some deeds over and over, with a new thought or the same before."""
    numbers, done = count(), cycle(deeds)

    def say(call: TextCall) -> str:
        if "You are in the state thinking" in call.prompt:
            return thought(f"plan {next(numbers)}" if new_thoughts else "Next.", "executing")
        return next(done)

    return say


@pytest.mark.parametrize("new_thoughts", [True, False])
@pytest.mark.parametrize(
    "deeds",
    [
        (ls("x"),),
        (ls("x"), ls("y")),
        (ls("x"), ls("y"), ls("z")),
        (add("a", "1"),),
        (add("a", "1"), add("a", "2")),
        (acts("storage_save", "a", "1"), acts("working_memory_remove", "b")),
        (acts("storage_search", "nothing"),),
        [acts("storage_save", f"fact {n}", "The user likes tea, not coffee") for n in range(30)],
        ("no action at all",),
    ],
)
async def test_what_is_repeated_ends_the_run(deeds: Sequence[str], new_thoughts: bool) -> None:
    """Own actions, two or three in turn, a value set back and forth, a text under other tags."""
    writer = writer_of(model(*deeds, new_thoughts=new_thoughts))
    agent = Shell(Config(goal="g"), Memory.in_memory(), writer)
    cycles = await agent.run(100)
    assert len(cycles) <= 2 * (len(deeds) + 6)
    assert len(agent.memory.storage) < 9
    assert "5 cycles in a row had no effect; the last one: " in str(agent.stopped)


@pytest.mark.parametrize(
    ("agents", "rounds", "ended"),
    [(1, 6, "all agents have stopped; member_1: 5 cycles"), (2, 8, "None")],
)
def test_in_a_world_it_stops_alone_and_the_last_one_ends_the_run(
    agents: int, rounds: int, ended: str
) -> None:
    """A stopped agent is asked nothing more; log and results say why."""
    posts = [json.dumps({"name": "post", "arguments": {"text": each}}) for each in "abcdefgh"]
    say = {"member_1": model(posts[0]), "member_2": model(*posts)}
    writer = writer_of(lambda call: say[call.agent_id](call))
    with capture_logs() as events:
        results = Run(Council, agents, rounds=8, writer=writer).run()
    assert [call.agent_id for call in writer.calls].count("member_1") == 12
    assert len(results.rounds) == rounds
    assert ended in str(results.stopped)
    [stopped] = [event for event in events if event["event"] == "cognition.stopped"]
    assert stopped["reason"].startswith("5 cycles in a row had no effect; the last one: it repeats")


async def test_what_brings_something_new_goes_on() -> None:
    """Other arguments, or another answer to a question, are no circle; nor are short values."""
    saves = [acts("storage_save", f"m{number}", "yes") for number in range(20)]
    searches = [acts("storage_search", "m") for _ in saves]
    deeds = [each for pair in zip(saves, searches, strict=True) for each in pair]
    agent = Shell(Config(), Memory.in_memory(), writer_of(model(*deeds)))
    done = [cycle for cycle in await agent.run(60) if cycle.action is not None]
    assert agent.stopped is None
    assert not any(each.brought_nothing for each in done[::2])


async def test_a_repeated_thought_changes_the_next_prompt() -> None:
    """A model that is asked the same twice says the same twice, so it is not; it reads why."""
    writer = writer_of([thought("the same"), thought(" The  same")])
    agent = CognitiveAgent(Config(), Memory.in_memory(), writer)
    await agent.run(100)
    prompts = prompts_of(writer)
    assert len(prompts) == 6
    assert len({*prompts}) == 6
    told = "(thinking): the thought repeats an earlier one, and is not kept: think of"
    assert told in prompts[-1]
    assert dict(agent.memory.thoughts) == {"thinking_log_001": "the same"}


async def test_ever_new_words_end_a_run() -> None:
    """Thoughts that never lead to an action with an effect stop it, however new they are."""
    numbers = count()
    writer = writer_of(lambda _call: thought(f"I will plan step {next(numbers)}."))
    agent = CognitiveAgent(Config(), Memory.in_memory(), writer)
    assert len(await agent.run(100)) == 20
    assert agent.stopped == "20 cycles in a row have only words: no action had an effect"


@pytest.mark.parametrize("failure", ["BudgetSpentError", "TimedOutError"])
async def test_a_spent_budget_ends_a_run_at_once(failure: str) -> None:
    """The kind of the failure says so, whatever its words; any other ends it after five cycles."""
    failed = Written(None, "failed", reason="BudgetSpentError: late", failure=failure)
    agent = CognitiveAgent(Config(), Memory.in_memory(), writer_of(lambda _call: failed))
    cycles = await agent.run(9)
    assert [cycle.failure for cycle in cycles] == [failure] * (1 if "Spent" in failure else 5)
    assert "BudgetSpentError: late" in str(agent.stopped)


@pytest.mark.parametrize("cycles", [0, 2.5, True])
async def test_a_number_of_cycles_is_a_whole_number(cycles: Any) -> None:
    """Anything else is refused where it is written."""
    agent = CognitiveAgent(Config(), Memory.in_memory(), writer_of([thought()]))
    with pytest.raises(FieldValueError, match="cycles must be a whole number"):
        await agent.run(cycles)
