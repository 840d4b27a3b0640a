"""What agents remember when a model decides, and random numbers that come from elsewhere."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy
import pytest

from prism import Run
from prism.errors import FieldTypeError, SimulationError
from prism.examples.rumour import Mind, Person
from prism.llm import Model
from prism.runlog import ReplayReasoner
from prism.statechart import Decision, Question, Recollection
from prism.statechart.reasoner._prompts import PromptSettings, chat_prompt
from prism.testing import FakeOllama
from prism.worlds import World, during
from tests.kit.servers import chats_of
from tests.kit.worlds import Gossip, Mood, Teller, run_in


def believe_some(asked: Any) -> str:
    """Answer by what is asked, so that another prompt is another run."""
    return str(asked.options[sum(map(ord, asked.prompt)) % 2])


def prompts_of(folder: Path, stops: list[int], **options: Any) -> list[str]:
    """Return the prompts of a run that is resumed after some rounds."""
    with FakeOllama(choose=believe_some) as server:
        told = {"mode": "chat", "option_order": "chart", **options}
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


class Listening(ReplayReasoner):
    """A replay that notes what a model would be told.

    Attributes:
        memory: What agents remember.
        prompts: The prompts so far.
    """

    memory = Recollection(6)

    def __init__(self, log: Path) -> None:
        super().__init__(log)
        self.prompts: list[str] = []

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        """Build the prompts, and answer from the log."""
        settings = PromptSettings(memory=self.memory, attributes=("trust",))
        self.prompts += [chat_prompt(question, settings) for question in questions]
        return await super().answer(questions)


@pytest.mark.slow
def test_a_replayed_run_would_ask_what_was_asked(tmp_path: Path) -> None:
    """Without the model, from the log of the run, the prompts are those that the model had."""
    asked = prompts_of(tmp_path / "run", [2], remember=6, attributes=("trust",))
    listening = Listening(tmp_path / "run")
    Run(Gossip(), 6, seed=3, reasoner=listening).run()
    assert sorted(listening.prompts) == asked


@pytest.mark.slow
def test_without_a_memory_nothing_is_remembered(tmp_path: Path) -> None:
    """No prompt speaks of memories unless the run asks for them."""
    assert not any("remember" in prompt for prompt in prompts_of(tmp_path / "run", []))


class Looking:
    """A decider that looks at what agents remember, and ends the run.

    Attributes:
        memory: Says that a memory is wanted.
        seen: What each agent remembers, oldest first.
    """

    memory = True

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def decide_many(self, questions: Sequence[Question], *, logger: Any = None) -> Any:
        """Look, and decide nothing."""
        del logger
        self.seen += [question.recall and question.recall(9) for question in questions]
        raise SimulationError("seen")


def test_notes_are_told_in_the_order_in_which_they_came() -> None:
    """What was noted before the first round comes before what was noted in it."""
    looking = Looking()
    run = Run(Gossip(), 3, rounds=1, ticks=1, reasoner=looking)
    run.agents[0].remember("It was dry.")
    with pytest.raises(SimulationError, match="seen"):
        run.run()
    assert sorted(looking.seen) == [["It rained in round 1."]] * (len(looking.seen) - 1) + [
        ["It was dry.", "It rained in round 1."]
    ]


def test_the_last_fifty_notes_are_kept() -> None:
    """An agent's memory does not grow with the run."""
    run = Run(Gossip(), 3)
    for number in range(80):
        run.agents[0].remember(str(number))
    (kept,) = run.loop.snapshot()["kinds"][0]["notes"]
    assert [text for *_, text in kept[1]] == [str(number) for number in range(30, 80)]


class Quiet(Gossip):
    """A world in which everything happens together."""

    together = True

    @during(Mood.CALM)
    async def hear(self, teller: Teller) -> None:
        """Note something for somebody else."""
        teller.neighbours[0].remember("psst")


def test_what_cannot_be_noted_is_refused() -> None:
    """A note is text; in a together world an agent's step notes nothing for another."""
    with pytest.raises(FieldTypeError, match="must be text, got 7"):
        Run(Gossip(), 3).agents[0].remember(7)
    with pytest.raises(SimulationError, match="an agent may note only for itself"):
        Run(Quiet(), 3).run()


DRAWS: dict[str, Callable[[], Any]] = {
    "python": random.random,
    "numpy": numpy.random.random,
    "normal": numpy.random.normal,
    "kept": random.gauss,
}


class Careless(World[Person]):
    """Draws where it must not."""

    rounds = 1
    source: str = "python"
    where: str = "step"

    def draw(self, where: str) -> None:
        """Draw if it is this place's turn."""
        if where == self.where:
            DRAWS[self.source]()

    def setup(self) -> None:
        """Draw in setup."""
        self.draw("setup")

    def round_begins(self) -> None:
        """Draw at the beginning of a round."""
        self.draw("round_begins")

    def tick_ends(self) -> None:
        """Draw at the end of a tick."""
        self.draw("tick_ends")

    def round_ends(self) -> None:
        """Draw at the end of a round."""
        self.draw("round_ends")

    @during(Mind.IGNORANT)
    async def step(self, person: Person) -> None:
        """Draw in a step, before or after a decision."""
        self.draw("step")
        await person.decide("hears")
        self.draw("step after an answer")


@pytest.mark.parametrize(
    ("source", "name"), [("python", "Python's own"), ("numpy", "numpy.random")]
)
@pytest.mark.parametrize(
    "where", ["setup", "round_begins", "step", "step after an answer", "tick_ends", "round_ends"]
)
def test_numbers_from_elsewhere_are_refused_at_once(source: str, name: str, where: str) -> None:
    """Whoever draws from a generator of the process is told in the tick in which it happens."""
    with pytest.raises(SimulationError, match=f"the world draws from {name}.*use agent.random"):
        Run(Careless(source=source, where=where), 3).run()


def test_a_normal_number_that_numpy_keeps_is_seen() -> None:
    """The second of two normal numbers is refused, too, though no word of the generator changes."""
    numpy.random.seed(1)
    numpy.random.normal()
    words = numpy.random.get_state()[1].tobytes()
    with pytest.raises(SimulationError, match=r"the world draws from numpy\.random"):
        Run(Careless(source="normal", where="step"), 1).run()
    assert numpy.random.get_state()[1].tobytes() == words


def test_a_careful_world_is_let_be() -> None:
    """A world that draws from its own streams runs, whatever others draw outside of it."""
    random.random()
    assert len(Run(Careless(where="nowhere"), 3).run().rounds) == 1


class Foreign(World[Person]):
    """A world that draws from Python's own random numbers."""

    @during(Mind.IGNORANT)
    def draw(self, _person: Person) -> None:
        """Draw from them."""
        random.random()


@contextmanager
def thread_beside(name: str) -> Iterator[None]:
    """Have another thread run inside the block."""
    over = Event()
    thread = Thread(target=over.wait, name=name)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_draw_that_may_be_another_threads_is_warned_of() -> None:
    """Where other threads run, a foreign draw is no proof against the world."""
    with (
        thread_beside("others"),
        pytest.warns(RuntimeWarning, match="thread drew from .*.others."),
    ):
        Run(Foreign(), 2, rounds=1).run()


def test_threads_of_prism_draw_nothing() -> None:
    """Beside the heartbeat of a run, a foreign draw is the world's."""
    problem = "the world draws from Python's own random"
    with thread_beside("prism-heartbeat"), pytest.raises(SimulationError, match=problem):
        Run(Foreign(), 2, rounds=1).run()


def test_a_normal_number_that_python_keeps_is_seen() -> None:
    """The second of two normal numbers of Python's own is refused, too."""
    random.seed(1)
    random.gauss()
    words = random.getstate()[1]
    with pytest.raises(SimulationError, match="the world draws from Python's own random"):
        Run(Careless(source="kept", where="step"), 1).run()
    assert random.getstate()[1] == words
