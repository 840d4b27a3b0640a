"""Types of a user's world; checked by test_typing.py, never run."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_type

from prism import Run
from prism.examples import Lake
from prism.randomness import RandomStream
from prism.runs import Outcome
from prism.statechart import Statechart, Transition
from prism.worlds import (
    Agent,
    AgentSet,
    Network,
    World,
    WorldResults,
    draw,
    during,
    measure,
    param,
    small_world,
    state,
    treatment,
    uniform,
)


class View(StrEnum):
    """States."""

    OPEN = "open"
    SURE = "sure"


@dataclass
class Paper:
    """What people read."""

    title: str
    readers: int = 0


def walked(random: RandomStream) -> list[float]:
    """Return the first steps of a walk."""
    assert_type(random.sample("abc", 2), list[str])
    assert_type(random.binomial(3, 0.5), int)
    return [random.normal() for _ in range(3)]


class Citizen(Agent):
    """Somebody with a view."""

    chart = Statechart(View, [Transition("settles", View.OPEN, View.SURE)], View.OPEN)
    trust: float = uniform(0, 1)
    read: list[Paper] = state(list[Paper])
    hero: Agent | None = state(None)
    children: int = draw(lambda random: random.index(5))
    mood: float = state(uniform(0, 1))
    walk: list[float] = draw(walked)


class Town(World[Citizen]):
    """People who read."""

    rounds = 5
    friends: int = param(4, "friends of each", least=2)
    pace: float = 0.5
    papers: dict[str, Paper] = state(dict[str, Paper])

    def setup(self) -> None:
        """Connect people."""
        self.network = small_world(self, self.friends, 0.1)
        self.papers["news"] = Paper(title="News")

    @during(View.OPEN)
    async def reads(self, citizen: Citizen) -> None:
        """Read with a friend."""
        friend = citizen.random.choice(citizen.neighbours)
        assert_type(friend, Citizen)
        friend.read.append(self.papers["news"])
        await friend.decide("settles", citizen, weights={View.SURE: friend.trust})

    @treatment
    def campaign(self) -> None:
        """Quicken the pace."""
        self.pace = 0.9

    @measure
    def mean_trust(self) -> float:
        """Return the mean trust."""
        return sum(each.trust for each in self.agents) / len(self.agents)


run = Run(Town(friends=6), [Citizen(name="Ada", trust=0.3), Citizen()], rounds=3)
assert_type(run.world.friends, int)
assert_type(run.world.agents, AgentSet[Citizen])
assert_type(run.world.network, Network[Citizen])
assert_type(run.world.agents[0].read, list[Paper])
assert_type(run.world.agents[0].state, Any)
assert_type(run.run(), WorldResults)
assert_type(Run(Town, 20).keep("runs/town"), Outcome[WorldResults])
assert_type(Lake(growth=0.2).left(), float)

Town(freinds=6)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Town(friends="six")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Citizen(trsut=0.3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Paper()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
