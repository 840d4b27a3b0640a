"""What agents remember when a model decides."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from prism import Agent, Run, Statechart, Transition, World
from prism.llm import Model
from prism.reasoner import PolicyReasoner, Question
from prism.testing import FakeOllama
from prism.worlds import during
from tests.kit.servers import chats_of
from tests.kit.worlds import Gossip, Mood, Teller, run_in, run_logged


def believe_some(asked: Any) -> str:
    """Answer by what is asked, so that another prompt is another run."""
    return str(asked.options[sum(map(ord, asked.prompt)) % 2])


def prompts_of(folder: Path, stops: list[int], **options: Any) -> list[str]:
    """Return the prompts of a run that is resumed after some rounds."""
    with FakeOllama(choose=believe_some) as server:
        told = {"mode": "chat", "rotations": "none", **options}
        model = Model("llama3.2", (server.host,), **told)
        run_in(folder, Run(Gossip, 6, seed=3, reasoner=model), stops)
        return sorted(chat["messages"][0]["content"] for chat in chats_of(server))


@pytest.mark.slow
def test_a_resumed_run_asks_what_it_would_have_asked(tmp_path: Path) -> None:
    """Stopped after every round, a run has the prompts of one that went on, memories included."""
    whole = prompts_of(tmp_path / "whole", [], remember=6, attributes=("trust",))
    parts = prompts_of(tmp_path / "parts", [1, 2, 3, 4], remember=6, attributes=("trust",))
    assert parts == whole
    for told in (
        "- It rained in round 2.",
        '- You stayed in "calm" on "hears" (tick: 1).',
        '- You went from "calm" to "keen" on "hears" (tick: 2).',
        " told you: news of round 3",
        "- You told teller_",
        "People in a village hear rumours.",
        "trust: 0.",
    ):
        assert any(told in prompt for prompt in whole), told


def test_notes_stand_in_the_order_in_which_they_came() -> None:
    """What was noted before the first round comes before what was noted in it."""
    seen: list[Any] = []

    class Looking(PolicyReasoner):
        memory = True

        async def answer(self, questions: Sequence[Question]) -> Any:
            seen.extend(question.recall and question.recall(9) for question in questions)
            return await super().answer(questions)

    run = Run(Gossip(), 3, rounds=1, ticks=1, reasoner=Looking())
    run.agents[0].remember("It was dry.")
    run.run()
    assert sorted(seen) == [["It rained in round 1."]] * (len(seen) - 1) + [
        ["It was dry.", "It rained in round 1."]
    ]


def test_the_last_fifty_notes_are_kept() -> None:
    """An agent's memory does not grow with the run."""
    run = Run(Gossip(), 3)
    for number in range(80):
        run.agents[0].remember(str(number))
    assert run.agents[0].memories(99) == [str(number) for number in range(30, 80)]


class Quiet(Gossip):
    """A world in which everything happens together."""

    together = True

    @during(Mood.CALM)
    async def hear(self, teller: Teller) -> None:
        other = teller.neighbours[0]
        other.remember("psst")
        self.log("noted", notes=len(other.memories(9)))


def test_notes_of_a_together_world_are_stored_at_the_end_of_the_tick(tmp_path: Path) -> None:
    """In its first tick, nobody has what others note then."""
    done = run_logged(tmp_path, Quiet(), 3, rounds=1)
    assert {each["notes"] for each in done.events("world.noted") if each["tick"] == 1} == {0}
    assert any(each["notes"] for each in done.events("world.noted"))


class Clerk(Agent):
    """Somebody whose chart has no name, and who does not work."""

    chart = Statechart(Mood, [Transition("rests", Mood.KEEN, Mood.CALM)], Mood.CALM)


class Office(World[Clerk]):
    """A world that is populated by a kind of its own, in which nothing ever happens."""

    def populate(self, agents: int) -> list[Clerk]:
        trainee = type("Trainee", (Clerk,), {"__module__": __name__})
        return [trainee() for _ in range(agents)]

    @during(Mood.CALM)
    def work(self, clerk: Clerk) -> None:
        clerk.fire("rests")


def test_a_chart_without_a_name_has_that_of_its_kind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log, run.json and the note on a chart in which nothing happens name it alike."""
    done = Run(Office, 10, rounds=20).keep(tmp_path / "run")
    assert [each["name"] for each in done.summary["charts"]] == ["trainee", "clerk"]
    assert done.summary["charts"][0]["arrows"][0]["labels"] == ["rests"]
    assert '"chart":"trainee"' in (tmp_path / "run" / "events.jsonl").read_text()
    noted = "chart 'trainee': 200 of 200 events did nothing, such as 'rests', fired 200 times in"
    assert [noted in each for each in caplog.messages if "did nothing" in each] == [True]
