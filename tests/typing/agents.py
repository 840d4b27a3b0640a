"""Types of agents and populations, as users see them; checked by test_typing.py, never run."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, assert_type

from prism.agents import (
    ARCHETYPES,
    Archetype,
    Population,
    SeedPost,
    SocialAgent,
    StatechartMixin,
    load_population,
    synthetic_population,
)
from prism.statechart import AgentState, Statechart, StateTransition, Transition


class Mood(StrEnum):
    CALM = "calm"
    ANGRY = "angry"


class Walker(StatechartMixin):
    state_type = Mood

    def __init__(self, name: str, patience: int = 3) -> None:
        self.name = name
        self.patience = patience


@dataclass
class Porter(StatechartMixin):
    name: str
    load: int = 0


def is_bumped(walker: Walker, force: int) -> bool:
    return walker.state is Mood.CALM and force > walker.patience


walker = Walker("ada", patience=4)
assert_type(walker, Walker)
assert_type(walker.name, str)
assert_type(walker.ticks_in_state, int)
assert_type(walker.state_history, deque[StateTransition])
assert_type(walker.max_history_depth, int)
assert_type(walker.engagement_threshold, float)
assert_type(walker.timeout_threshold, int)
assert_type(walker.is_timed_out(), bool)
walker.state = Mood.ANGRY
walker.timeout_threshold = 2
walker.transition_to(Mood.CALM, "apology", {"post_id": "p1"})

porter = Porter("bo", load=2)
assert_type(porter, Porter)
assert_type(porter.load, int)

chart = Statechart(Mood, [Transition("bumped", Mood.CALM, Mood.ANGRY, guard=is_bumped)], Mood.CALM)
assert_type(chart.fire(walker, "bumped", 5), Mood | None)

ada = SocialAgent("ada", interests=["music"], archetype=ARCHETYPES["lurker"], following=["bo"])
assert_type(ada, SocialAgent)
assert_type(ada.agent_id, str)
assert_type(ada.state, AgentState)
assert_type(ada.state_history, deque[StateTransition])
assert_type(ada.to_json(), str)
assert_type(ada.relevance({"topics": ["music"]}), float)
assert_type(ada.archetype, Archetype | None)
assert_type(ada.attributes, dict[str, Any])

population = synthetic_population(10, seed=3)
assert_type(population, Population)
assert_type(population.agents, Sequence[SocialAgent])
assert_type(population.posts, Sequence[SeedPost])
assert_type(load_population(Path("agents.jsonl")), Population)
assert_type(load_population("agents.csv", keep=["age"]), Population)
assert_type(population.agents[0].to_dict(), dict[str, Any])
