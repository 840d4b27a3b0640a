"""Agents that are objects of other classes: how they take part, and what is kept of them."""

from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from prism import runs
from prism.agents import SocialAgent
from prism.errors import AgentError
from prism.statechart import AgentState, Statechart, Transition, social_media_chart
from prism.worlds import Agent, Guest, Lent, Run, World, WorldRun, measure, ring
from tests.kit.lamps import Lamp
from tests.kit.worlds import run_in, run_logged

Mood = StrEnum("Mood", ["CALM", "KEEN"])


class Plain:
    """An object of a class that knows nothing of prism."""

    def __init__(self) -> None:
        self.steps = 0

    def act(self, world: "Mixed") -> None:
        """Make a few steps."""
        self.steps += world.acting.random.index(3)

    def snapshot(self) -> Any:
        """Return the steps."""
        return {"steps": self.steps}

    def restore(self, data: Any) -> None:
        """Take the steps back."""
        self.steps = data["steps"]


class Walker:
    """An object whose class has a chart."""

    chart = Statechart(
        Mood,
        [
            Transition("stirs", Mood.CALM, Mood.KEEN),
            Transition("stirs", Mood.CALM, Mood.CALM),
            Transition("rests", Mood.KEEN, Mood.CALM),
        ],
        Mood.CALM,
        name="walker",
        decision_states=[Mood.CALM],
    )

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.state = Mood.CALM
        self.answers: list[str] = []

    async def act(self, world: "Mixed") -> None:
        """Decide, and tell a neighbour."""
        me = world.acting
        if self.state is Mood.CALM:
            self.answers.append(str(await me.decide("stirs", prompt="Will you?")))
        else:
            me.fire("rests")
        me.send(me.random.choice(me.neighbours), len(self.answers))

    def persona(self) -> str:
        """Say who it is."""
        return f"You walk as {self.agent_id}."

    def snapshot(self) -> Any:
        """Return the state and the answers."""
        return (self.state, list(self.answers))

    def restore(self, data: Any) -> None:
        """Take them back."""
        self.state, self.answers = data


class Reader(SocialAgent):
    """A user of a social network in a world of another kind."""

    chart = social_media_chart()

    async def act(self, world: "Mixed") -> None:
        """Look at a post of some relevance."""
        me = world.acting
        if self.state is AgentState.IDLE:
            me.fire("feed_ready")
        elif self.state is AgentState.SCROLLING:
            me.fire("sees_post", {"relevance": 0.9})
        else:
            await me.decide("decides", {"relevance": 0.9})


class Mixed(World[Any]):
    """Objects of three classes, and an agent of the world's own."""

    rounds = 6

    def populate(self, agents: int) -> list[Any]:
        """Make some of each."""
        made = [
            [Plain(), Guest(object=Walker(f"w{place}")), Reader(f"r{place}", interests=["tea"])]
            for place in range(agents // 4)
        ]
        return [each for some in made for each in some] + [Lamp() for _ in made]

    def setup(self) -> None:
        """Connect everybody."""
        self.network = ring(self, 2)

    @measure
    def steps(self) -> int:
        """Return the steps of those who count them."""
        return sum(each.steps for each in self.of(Guest) if isinstance(each.object, Plain))


def test_objects_take_their_turns_in_the_order_of_the_population(tmp_path: Path) -> None:
    """Objects and agents are one population with one log; states are counted by their charts."""
    done = run_logged(tmp_path, Mixed(), 8, seed=1)
    joined = done.events("agent.joined")
    assert [each["agent_id"] for each in joined[:4]] == ["plain_1", "w0", "r0", "plain_2"]
    assert [each["chart"] for each in joined[:3]] == ["present", "walker", "social_media"]
    ended = done.run.finished[-1]
    assert ended.states["present"] == 2
    assert ended.measures["steps"] > 0
    assert {each["agent_id"] for each in done.events("statechart.transition")} >= {"w0", "r0"}


def test_a_run_with_objects_is_resumed_and_replayed_to_the_same_bytes(tmp_path: Path) -> None:
    """Stopped after every round, or with its decisions from the log, it writes the same."""
    options = WorldRun(Mixed, 8, seed=3)
    whole = run_in(tmp_path / "whole", options)
    assert run_in(tmp_path / "stopped", options, stops=range(1, 7)) == whole

    runs.replay(tmp_path / "whole", WorldRun, tmp_path / "again")
    logs = [(tmp_path / name / "events.jsonl").read_bytes() for name in ("whole", "again")]
    assert logs[0] == logs[1]


def test_the_guest_has_what_its_object_has() -> None:
    """Attributes are looked up in the object, and the persona is the object's."""
    agents = Run(Mixed(), 4).agents
    assert agents[0].steps == 0
    assert agents[1].persona() == "You walk as w0."
    assert agents[2].persona() == "You are r0."
    with pytest.raises(AttributeError, match="'Plain' object has no attribute 'stops'"):
        _ = agents[0].stops


class Silent:
    """An object that takes turns and does not say what is to be kept."""

    def act(self, world: World[Any]) -> None:
        """Do nothing."""


class Forgetful(Plain):
    """An object that does not take back what it said."""

    def restore(self, data: Any) -> None:
        """Forget it."""
        self.steps += 1


class Other(World[Any]):
    """A world of whoever is given."""


@pytest.mark.parametrize(
    ("someone", "problem"),
    [
        (Silent(), r"Silent cannot take part .* give it snapshot\(self\), .*; restore\(self, data"),
        (Guest(object=3), r"int cannot take part .* give it act\(self, world\)"),
        ("ada", r"Other.populate must return agents, or objects with act\(world\)"),
        (Forgetful(), "restore does not bring back what snapshot"),
    ],
)
def test_who_cannot_take_part_is_refused_at_once(someone: Any, problem: str) -> None:
    """An object is refused before the first round, with what its class lacks."""
    with pytest.raises(AgentError, match=problem):
        Run(Other(), [someone])


class Close(World[Any]):
    """A world in which nothing shows before the end of the tick."""

    together = True


def test_a_together_world_refuses_objects() -> None:
    """What an object changes could not wait for the end of a tick."""
    with pytest.raises(AgentError, match="leave out together"):
        Run(Close(), [Plain()])


class Borrower(Plain):
    """An object that is lent something."""

    lent: Lent | None = None

    def join(self, lent: Lent) -> None:
        """Take it."""
        self.lent = lent


def test_a_run_lends_its_time_and_its_seed() -> None:
    """An object with `join` gets the run's clock, log, writer and seed."""
    borrower = Borrower()
    run = Run(Other(), [borrower], seed=7)
    assert borrower.lent is not None
    assert borrower.lent.seed == 7
    assert borrower.lent.clock() == run.clock.moment.seconds
    assert isinstance(run.agents[0], Agent)
