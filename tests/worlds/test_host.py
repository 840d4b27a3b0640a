"""Random numbers that come from generators of the process."""

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from types import ModuleType
from typing import Any

import numpy
import pytest

from prism import Run
from prism.errors import FieldTypeError, FieldValueError, PrismError, SimulationError
from prism.examples.rumour import Mind, Person
from prism.worlds import World, during

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


def test_numpy_that_another_thread_imports_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it is there as a whole, nobody can have drawn from it."""
    half = ModuleType("numpy.random")
    monkeypatch.setitem(sys.modules, "numpy.random", half)
    assert Run(Careless(source="python", where="nowhere"), 3).run().rounds


class Doubtful(World[Person]):
    """Fails when asked whether it is over."""

    rounds = 1

    @during(Mind.IGNORANT)
    def step(self, person: Person) -> None:
        """Do nothing."""

    def until(self) -> bool:
        """Fail."""
        raise ValueError("who knows")


class DoubtfulAtARate(Doubtful):
    """The same world, in continuous time."""

    activation = "rate"

    @during(Mind.IGNORANT, rate=1.0)
    def step(self, person: Person) -> None:
        """Do nothing."""


@pytest.mark.parametrize("world", [Doubtful, DoubtfulAtARate])
def test_a_fault_in_until_is_told_with_its_round_and_tick(world: Any) -> None:
    """It is nobody's step."""
    with pytest.raises(ValueError, match="who knows") as raised:
        Run(world(), 3).run()
    assert raised.value.__notes__[1:] == ["in Doubtful.until, round 1, tick 1"]


@pytest.mark.parametrize(
    ("do", "error", "problem"),
    [
        (lambda world: world.stop(3), FieldTypeError, "the reason must be text, got 3"),
        (lambda world: world.stop("over"), SimulationError, "cannot be stopped: it has not begun"),
        (lambda world: world.log(3), FieldValueError, "must be lower-case letters.* got 3"),
        (lambda world: world.acting, SimulationError, "Early.acting: it is no agent's turn"),
        (
            lambda world: setattr(world.agents[0], "ticks_in_state", 1),
            SimulationError,
            "ticks_in_state of 'person_1' cannot be set: the run has not begun",
        ),
        (
            lambda world: setattr(world.agents[0], "ticks_in_state", -1),
            FieldValueError,
            "ticks_in_state must be a whole number, 0 or more, got -1",
        ),
    ],
)
def test_what_comes_too_early_or_is_no_value_is_refused(
    do: Callable[[Any], Any], error: type[PrismError], problem: str
) -> None:
    """Before the run there is no turn, no time and nothing to stop."""

    class Early(World[Person]):
        """A world whose setup does it."""

        def setup(self) -> None:
            """Do it."""
            do(self)

    with pytest.raises(error, match=problem):
        _ = Run(Early(), 3).agents


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
    problem = "the world draws from Python's own random.*prism world check names the line"
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
