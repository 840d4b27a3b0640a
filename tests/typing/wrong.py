"""Lines that type checkers must refuse; a mark without an error is an error. Never run."""

from enum import StrEnum

from prism import Run
from prism.agents import SocialAgent, StatechartMixin
from prism.llm import Model
from prism.reasoner import Reasoner
from prism.social import Feed
from prism.statechart import AgentState, Statechart, Transition, agents_in_state, social_media_chart


class Mood(StrEnum):
    CALM = "calm"
    ANGRY = "angry"


class Walker(StatechartMixin):
    state_type = Mood


def one_argument(walker: Walker) -> bool:
    return walker.is_timed_out()


class Silent:
    pass


class Mute:
    """A reasoner whose method has another name."""

    async def choose(self) -> AgentState:
        return AgentState.IDLE


# fmt: off
# Guards and actions.
Transition("bumped", Mood.CALM, Mood.ANGRY, guard=one_argument)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Transition("bumped", Mood.CALM, Mood.ANGRY, guard=lambda walker: True)  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType]
Transition("bumped", Mood.CALM, Mood.ANGRY, guard=True)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Transition("bumped", Mood.CALM, Mood.ANGRY, guard=Silent())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Transition("bumped", Mood.CALM, Mood.ANGRY, action=one_argument)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# Transitions and charts.
Transition("bumped", "calm", Mood.ANGRY)  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
Transition("bumped", Mood.CALM, "angry")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Transition(Mood.CALM, Mood.ANGRY)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Statechart(Mood, [], "calm")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
mixed: Statechart[Mood] = Statechart(Mood, [Transition("bumped", Mood.CALM, AgentState.IDLE)], Mood.CALM)  # type: ignore[arg-type]
alien: Statechart[Mood] = social_media_chart()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

# Firing.
chart = social_media_chart()
ada = SocialAgent("ada")
moods = Statechart(Mood, [Transition("bumped", Mood.CALM, Mood.ANGRY)], Mood.CALM)
state: AgentState = chart.fire(ada, "feed_ready")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
mood: Mood | None = chart.fire(ada, "feed_ready")  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
chart.fire("feed_ready")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
chart.fire(ada, 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
chart.fire_to(ada, "decides", Mood.CALM)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
chart.valid_targets(Mood.CALM, "decides")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
agents_in_state("idle", [ada])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def ask() -> None:
    await chart.afire(ada, "decides")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await chart.afire(ada, "decides", reasoner=Mute())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# Agents, reasoners, runs.
walker = Walker()
walker.ticks_in_state = "three"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
ada.state = Mood.CALM  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
SocialAgent()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Reasoner(Silent(), mode="guess")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Model("llama3.2", 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Run(Feed(first_posts=()), [ada], reasoner=Mute())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Feed(posts_per_tick="often")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
