"""Types of charts, as users see them; checked by test_typing.py, never run."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any, assert_type

from prism.agents import SocialAgent
from prism.reasoner import PolicyReasoner
from prism.social import Draft, Post
from prism.statechart import (
    AgentState,
    Statechart,
    StateTransition,
    Transition,
    agents_in_state,
    social_media_chart,
    state_distribution,
    state_enum,
)
from prism.statechart.inspection import Finding


class Mood(StrEnum):
    CALM = "calm"
    ANGRY = "angry"


@dataclass
class Walker:
    state: Mood = Mood.CALM
    patience: int = 3

    def wants(self, post: Post) -> bool:
        return bool(post.topics)


def is_bumped(walker: Walker, force: int) -> bool:
    return force > walker.patience


def is_patient(walker: Walker, _context: object) -> int:
    return walker.patience


def note(walker: Walker, post: Post) -> None:
    walker.patience -= len(post.topics)


class Bump:
    def __init__(self, least: int) -> None:
        self.least = least

    def __call__(self, agent: Walker, context: int) -> bool:
        return context >= self.least


def over(least: int, walker: Walker, force: int) -> bool:
    return force > least


def takes_options(walker: Walker, force: int, loudly: bool = False) -> None: ...


# A chart over the states of social agents.
social = social_media_chart()
ada = SocialAgent("ada")
post = Post("p1", "ada", "post", Draft("hello", ()))
assert_type(social, Statechart[AgentState])
assert_type(social.fire(ada, "sees_post", post), AgentState | None)
assert_type(social.fire_to(ada, "decides", AgentState.SCROLLING, post), AgentState | None)
assert_type(social.tick(ada), AgentState | None)
assert_type(social.enabled_targets(ada, "decides", post), list[AgentState])
assert_type(social.valid_targets(AgentState.IDLE, "feed_ready"), list[AgentState])
assert_type(social.valid_triggers(AgentState.IDLE), list[str])
assert_type(social.initial, AgentState)
assert_type(social.states, frozenset[AgentState])
assert_type(social.decision_states, frozenset[AgentState])
assert_type(social.transitions, tuple[Transition[AgentState], ...])
assert_type(social.check(), list[Finding])
assert_type(
    social_media_chart(should_engage=lambda agent, post: agent.should_engage(0.5)),
    Statechart[AgentState],
)
assert_type(social.adopt(Walker()), Walker)
assert_type(social.to_json(), str)


# A chart over an enum of one's own; guards and actions of every kind.
moods = Statechart(
    Mood,
    [
        Transition("bumped", Mood.CALM, Mood.ANGRY, guard=is_bumped),
        Transition("bumped", Mood.CALM, Mood.ANGRY, guard=is_patient, action=note),
        Transition("bumped", Mood.CALM, Mood.ANGRY, guard=Bump(3), action=takes_options),
        Transition("bumped", Mood.CALM, Mood.ANGRY, guard=partial(over, 3)),
        Transition("sees", Mood.CALM, Mood.ANGRY, guard=lambda walker, _: walker.patience > 1),
        Transition("sees", Mood.CALM, Mood.ANGRY, guard=Walker.wants),
        Transition("sees", Mood.CALM, Mood.ANGRY, action=lambda walker, _: walker.patience),
        Transition("calms", "*", Mood.CALM),
    ],
    Mood.CALM,
    decision_states=[Mood.CALM],
    timeouts={Mood.ANGRY: 3},
    clock=lambda: datetime.now(UTC),
)
assert_type(moods, Statechart[Mood])
assert_type(moods.fire(Walker(), "bumped", 4), Mood | None)
assert_type(Transition("apology", Mood.ANGRY, Mood.CALM), Transition[Mood])
assert_type(Transition("apology", "*", Mood.CALM).trigger, str | None)


async def decides() -> None:
    assert_type(await moods.afire(Walker(), "bumped", 4, reasoner=PolicyReasoner(1)), Mood | None)


# A chart whose states are known at run time only.
Door = state_enum("Door", ["shut", "open"])
assert_type(Door, type[StrEnum])
assert_type(Door("shut"), StrEnum)
doors = Statechart(Door, [Transition("push", Door("shut"), Door("open"))], Door("shut"))
assert_type(doors.fire(Walker(), "push"), StrEnum | None)
assert_type(Statechart.from_json("{}", states=Mood), Statechart[Any])

# Records and populations.
assert_type(ada.state_history[-1], StateTransition)
assert_type(ada.state_history[-1].trigger, str)
assert_type(ada.state_history[-1].context, dict[str, Any] | None)
assert_type(agents_in_state(Mood.CALM, [Walker()]), int)
assert_type(state_distribution([Walker()], Mood), dict[Any, int])
