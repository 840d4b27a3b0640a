"""What agents choose, where weights or the seeded policy decide, against the multinomial law."""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from math import exp
from typing import Any, ClassVar

import pytest

from prism import Run
from prism.agents import ARCHETYPES, Archetype
from prism.reasoner import PolicyReasoner
from prism.statechart import Statechart, Transition
from prism.worlds import Agent, World, during, state
from tests.kit.laws import assert_follows, on_fixed_seeds, p_of_counts

pytest.importorskip("scipy")


class Activity(StrEnum):
    """Where one can go, by names for which archetypes have an inclination."""

    SCROLLING = "scrolling"
    LIKING = "engaging_like"
    COMPOSING = "composing"


class Walker(Agent):
    """Somebody who goes one way after the other."""

    chart = Statechart(
        Activity,
        [Transition("turns", source, target) for source in Activity for target in Activity],
        Activity.SCROLLING,
        decision_states=list(Activity),
    )
    turns: dict[Activity, int] = state(dict)


class Crossing(World[Walker]):
    """Walkers who choose their way at every tick, by weights."""

    rounds = 1
    ticks = 50

    @property
    def weights(self) -> Mapping[Activity, float] | None:
        return {Activity.SCROLLING: 2.0, Activity.LIKING: 3.0, Activity.COMPOSING: 1.0}

    @during(*Activity)
    async def turn(self, walker: Walker) -> None:
        activity = await walker.decide("turns", weights=self.weights)
        walker.turns[activity] = walker.turns.get(activity, 0) + 1


class Reader(Walker):
    """Somebody of a kind, to whom everything is equally relevant."""

    archetype: ClassVar[Archetype] = ARCHETYPES["contributor"]

    def relevance(self, context: object) -> float:
        return 0.4


class Reading(Crossing):
    """Readers who choose as the policy has it."""

    weights = None

    def populate(self, agents: int) -> list[Walker]:
        return [Reader() for _ in range(agents)]


def turns(world: Crossing, agents: int, seed: int, **options: Any) -> list[int]:
    """Return how often each way was chosen."""
    run = Run(world, agents, seed=seed, **options)
    run.run()
    chosen: Counter[Activity] = Counter()
    for walker in run.agents:
        chosen.update(walker.turns)

    return [chosen[activity] for activity in Activity]


def p_of_policy(seed: int, agents: int) -> float:
    """Return the p-value of the policy's draws against the multinomial logit model."""
    temperature = 0.8
    # 2.0 is what relevance speaks for liking and composing, and 0 for scrolling
    utilities = [
        Reader.archetype.inclinations[activity]
        + (0.0 if activity is Activity.SCROLLING else 2.0) * 0.4
        for activity in Activity
    ]
    odds = [exp(utility / temperature) for utility in utilities]
    reasoner = PolicyReasoner(seed, temperature=temperature)

    return p_of_counts(
        turns(Reading(), agents, seed, reasoner=reasoner), [each / sum(odds) for each in odds]
    )


@on_fixed_seeds
def test_draws_by_weights(seeds: range) -> None:
    """Counts of decisions by weights w are multinomial with w / sum(w) (Pearson 1900)."""
    agents = 400 if len(seeds) > 1 else 150
    law = [2 / 6, 3 / 6, 1 / 6]
    assert_follows([p_of_counts(turns(Crossing(), agents, seed), law) for seed in seeds])


@on_fixed_seeds
def test_draws_of_the_policy(seeds: range) -> None:
    """The policy's draws are multinomial with exp(u / T) / sum(exp(u / T)) (McFadden 1974)."""
    agents = 200 if len(seeds) > 1 else 100
    assert_follows([p_of_policy(seed, agents) for seed in seeds])
