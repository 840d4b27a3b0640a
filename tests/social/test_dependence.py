"""Which readers take their turns ahead of others, who wait for a slow answer."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from prism.agents import SocialAgent, synthetic_population
from prism.runlog import SimulatedClock
from prism.social import Draft, Feed, Post, TemplateComposer
from prism.statechart import Decision, PolicyReasoner, Question, RandomStream
from prism.testing import LateReasoner, ScriptedWriter
from prism.worlds import measure
from tests.kit.social import KindComposer, run_of_feed

FOR_LONG = 2_000
"""Turns of the event loop in which many others are answered."""


class HoldingBack(PolicyReasoner):
    """Keeps back its first answer, and notes how many ticks later others are asked meanwhile."""

    concurrency = 16

    def __init__(self, clock: SimulatedClock) -> None:
        super().__init__(1)
        self.ticks_ahead = 0
        self._clock = clock
        self._held_since: int | None = None
        self._is_held = False

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        if self._is_held and self._held_since is not None:
            self.ticks_ahead = max(self.ticks_ahead, self._clock.ticks - self._held_since)
        if self._held_since is None:
            self._held_since, self._is_held = self._clock.ticks, True
            for _ in range(FOR_LONG):
                await asyncio.sleep(0)
            self._is_held = False

        return await super().answer(questions)


class Counting(Feed):
    """A feed that is measured."""

    @measure
    def written(self) -> int:
        """Return the number of posts."""
        return len(self.posts)


class Judging(Feed):
    """A feed that judges what is relevant."""

    def should_engage(self, agent: SocialAgent, post: Post) -> bool:
        """Engage where the agent does."""
        return agent.should_engage(post)


class Composing(Feed):
    """A feed that writes."""

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Write as ever."""
        return super().compose(agent, post, stream)


class OwnAgent(SocialAgent):
    """An agent of a class of one's own."""


def ticks_ahead(agents: Any = None, **options: Any) -> int:
    """Return by how many ticks others are ahead of one who waits."""
    population = synthetic_population(60, seed=1)
    clock = SimulatedClock()
    reasoner = HoldingBack(clock)
    given = population.agents if agents is None else agents
    posts = population.posts if agents is None else ()
    run_of_feed(given, posts, rounds=1, seed=1, reasoner=reasoner, clock=clock, **options).run()
    return reasoner.ticks_ahead


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "parameters",
    [
        {"herding": 0.5},
        {"feed": "popular", "herding": 0.5, "feed_length": 2, "posts_per_tick": 0.1},
        {"preset": "classic"},
        {"dislike_chance": 0.2, "carries_over": True},
    ],
    ids=["herding", "popular", "classic", "dislikes"],
)
@pytest.mark.sampled(4)
def test_who_is_ahead_changes_no_byte(
    parameters: dict[str, Any], seed: int, run_logged: Callable[..., Any]
) -> None:
    """A few very late answers change nothing, though others go on and see votes and posts."""
    logs = []
    late = LateReasoner(PolicyReasoner(1), concurrency=16, most_turns=400, seed=seed)
    for reasoner in (late, PolicyReasoner(1)):
        population = synthetic_population(60, seed=seed)
        logs.append(
            run_logged(
                population.agents,
                population.posts,
                parameters=parameters,
                seed=seed,
                rounds=2,
                reasoner=reasoner,
            ).log
        )
    assert late.overtaken > 0
    assert logs[0] == logs[1]


@pytest.mark.parametrize(
    "options",
    [{}, {"world": Counting()}, {"composer": TemplateComposer()}],
    ids=["a feed", "measured", "the usual composer"],
)
def test_readers_go_on_while_one_waits(options: dict[str, Any]) -> None:
    """Who touches nobody asks two ticks after one who waits, or later."""
    assert ticks_ahead(**options) > 1


@pytest.mark.parametrize(
    "options",
    [
        {"world": Judging()},
        {"world": Composing()},
        {"composer": KindComposer("reply")},
        {"engages": lambda agent, post: agent.should_engage(post)},
        {"writer": ScriptedWriter(lambda _: "words")},
        {"parameters": {"dislike_chance": 0.1}},
        {"agents": [OwnAgent(agent_id=f"own_{number}") for number in range(60)]},
    ],
    ids=["judges", "composes", "a composer", "a guard", "a writer", "dislikes", "agents"],
)
def test_nobody_goes_on_where_turns_may_depend_on_each_other(options: dict[str, Any]) -> None:
    """Where others' code or words take part, nobody asks two ticks after one who waits."""
    assert ticks_ahead(**options) <= 1
