"""What a run does after what, and what each of its phases lets a world do."""

from itertools import pairwise
from typing import Any

import pytest

from prism.agents import synthetic_population
from prism.errors import SimulationError
from prism.social import Feed
from prism.worlds import Run, World, during, measure
from prism.worlds._host import RunHost
from prism.worlds._phase import Phase, run_chart
from tests.kit.medley import Medley
from tests.kit.random_worlds import WAYS, random_world
from tests.worlds.test_turns import Lamp, Light


@pytest.fixture
def phases(monkeypatch: pytest.MonkeyPatch) -> list[Phase]:
    """Return the phases that runs go through from here on."""
    seen: list[Phase] = []

    def put(host: RunHost, name: str, value: Any) -> None:
        object.__setattr__(host, name, value)
        if name == "phase" and value != seen[-1:]:
            seen.append(value)

    monkeypatch.setattr(RunHost, "__setattr__", put)
    return seen


def assert_follows(phases: list[Phase]) -> None:
    """Hold phases against the chart of a run."""
    changes = {pair for pair in pairwise(phases) if len(set(pair)) == 2}
    allowed = {(each.source, each.target) for each in run_chart.definition.transitions}
    assert phases[0] is Phase.SETTING_UP
    assert changes <= allowed, changes - allowed


@pytest.mark.parametrize("way", sorted(set(WAYS)))
def test_a_run_follows_its_chart(way: str, phases: list[Phase]) -> None:
    """Under every kind of activation, a run does only what its chart allows."""
    given = random_world(3, way)
    Run(given.world(), given.agents(range(given.number)), seed=5).run()
    assert_follows(phases)
    assert {Phase.BEGINNING, Phase.STEPPING, Phase.ENDING} <= set(phases)


@pytest.mark.parametrize("make", [Medley, Feed])
def test_a_large_world_and_the_feed_follow_it(make: Any, phases: list[Phase]) -> None:
    """So does a world with all that there is, and the feed."""
    agents = 12 if make is Medley else synthetic_population(12, seed=1).agents
    Run(make(), agents, rounds=3, seed=1).run()
    assert_follows(phases)


class Asking(World[Lamp]):
    """A world that asks where nobody can wait, or stops while it is set up."""

    rounds = 1
    where: str = ""

    def setup(self) -> None:
        """Ask, or not."""
        self._try("setup")

    def round_begins(self) -> None:
        """Ask, or not."""
        self._try("round_begins")

    def tick_begins(self) -> None:
        """Ask, or not."""
        self._try("tick_begins")

    @during(Light.OFF)
    def wait(self, lamp: Lamp) -> None:
        """Do nothing."""

    def tick_ends(self) -> None:
        """Ask, or not."""
        self._try("tick_ends")

    def round_ends(self) -> None:
        """Ask, or not."""
        self._try("round_ends")

    @measure
    def lit(self) -> int:
        """Ask, or not."""
        self._try("lit")
        return 0

    def _try(self, where: str) -> None:
        if self.where == where:
            self.agents[0].decide("light")


HOOKS = ["setup", "round_begins", "tick_begins", "tick_ends", "round_ends", "lit"]


@pytest.mark.parametrize("where", HOOKS)
def test_only_steps_can_wait_for_a_decision(where: str) -> None:
    """Whatever phase a hook runs in, a decision is refused there."""
    with pytest.raises(SimulationError, match="decide belongs in a step"):
        Run(Asking(where=where), 2).run()


def test_what_the_chart_does_not_allow_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run refuses to go on where its chart has no transition, and stays where it is."""
    hosts: list[RunHost] = []
    make = RunHost.__init__

    def keep(host: RunHost, *arguments: Any) -> None:
        hosts.append(host)
        make(host, *arguments)

    monkeypatch.setattr(RunHost, "__init__", keep)
    Run(Asking(), 2).prepare(None)
    with pytest.raises(SimulationError, match="cannot go from 'setting_up' to 'going_on'"):
        hosts[0].enter(Phase.GOING_ON)
    assert hosts[0].phase is Phase.SETTING_UP


def test_the_chart_is_whole() -> None:
    """Each phase can be reached, and left again."""
    assert run_chart.check() == []
