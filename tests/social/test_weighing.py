"""What the log tells of a post that an agent weighs."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from prism.agents import SocialAgent, synthetic_population
from prism.agents._relevance import relevance, terms_of
from prism.social import Parameters, Simulation
from prism.statechart import Decision, PolicyReasoner, Question
from prism.statechart.reasoner._prompts import chat_prompt
from prism.telemetry.events import DECISION, POST_PUBLISHED, POST_WEIGHED, TRANSITION
from prism.testing import LateReasoner

WEIGHED = ("ignores", "decides")


class Moody(SocialAgent):
    """An agent that cares less with every look, and by chance: to ask it twice would change it."""

    def __init__(self, *arguments: Any, **fields: Any) -> None:
        super().__init__(*arguments, **fields)
        self.looks: list[float] = []

    def relevance(self, context: Any) -> float:
        assert self.random is not None
        found = super().relevance(context) * self.random.random() * 0.99 ** len(self.looks)
        self.looks.append(found)
        return found


class Contrary(SocialAgent):
    """An agent that engages with what is of no relevance to it."""

    def should_engage(self, context: Any) -> bool:
        return self.relevance(context) < 0.1


class Failing(SocialAgent):
    """An agent whose guard raises."""

    def relevance(self, context: Any) -> float:
        raise KeyError("mood")


def population(kind: type[SocialAgent], size: int = 40) -> dict[str, Any]:
    """Return agents of a class, and what they begin with."""
    made = synthetic_population(size, seed=2)
    agents = [
        kind(
            agent.agent_id,
            interests=agent.interests,
            following=agent.following,
            archetype=agent.archetype,
        )
        for agent in made.agents
    ]
    return {"agents": agents, "posts": made.posts}


@pytest.mark.parametrize("reasoner", [None, LateReasoner(most_turns=9)], ids=["policy", "late"])
def test_every_weighing_is_in_the_log(run_logged: Callable[..., Any], reasoner: Any) -> None:
    """Before an agent ignores a post or decides on it, the log has relevance and threshold."""
    logged = run_logged(reasoner=reasoner)
    posts = {post["post_id"]: post for post in logged.events(POST_PUBLISHED)}
    agents = {agent.agent_id: agent for agent in logged.simulation.agents}
    weighed: dict[str, Any] = {}
    seen = 0
    for event in logged.events(POST_WEIGHED, DECISION, TRANSITION):
        name = event["agent_id"]
        if event["event"] == POST_WEIGHED:
            post, agent = posts[event["post_id"]], agents[name]
            terms = terms_of(post["topics"], post["text"])
            assert event["relevance"] == relevance(
                terms_of(agent.interests), {"topics": post["topics"], "text": post["text"]}
            )
            assert terms.topics <= {topic.casefold() for topic in post["topics"]}
            assert event["threshold"] == agent.engagement_threshold
            weighed[name] = event
        elif event["event"] == DECISION or event["trigger"] in WEIGHED:
            found = weighed[name]
            is_asked = event["event"] == DECISION or event["trigger"] == "decides"
            assert found["post_id"] == event["context"]["post_id"]
            assert (found["relevance"] >= found["threshold"]) is is_asked
            seen += 1
    assert seen > len(weighed) > 40


def test_the_log_tells_what_the_guard_saw(run_logged: Callable[..., Any]) -> None:
    """A rating that changes with every look is told as the guard found it, not looked at again."""
    logged = run_logged(**population(Moody), seed=2)
    looks = {agent.agent_id: agent.looks for agent in logged.simulation.agents}
    events = logged.events(POST_WEIGHED)
    assert len({event["relevance"] for event in events}) > 40
    assert all(event["relevance"] in looks[event["agent_id"]] for event in events)


@pytest.mark.parametrize("kind", [SocialAgent, Moody, Contrary])
def test_a_log_changes_nothing(kind: type[SocialAgent], run_logged: Callable[..., Any]) -> None:
    """A run that is logged ends as one that is not, whatever its agents do when they look."""
    logged = run_logged(**population(kind), seed=2)
    silent = Simulation(**population(kind), seed=2, rounds=6, parameters=Parameters()).run()
    assert silent == logged.results


def test_a_guard_of_its_own_leaves_the_relevance_open(run_logged: Callable[..., Any]) -> None:
    """An agent that decides by something else, or fails, has no relevance that decided."""
    for kind in (Contrary, Failing):
        events = run_logged(**population(kind), seed=2, rounds=2).events(POST_WEIGHED)
        assert {event["relevance"] for event in events} == {None}
        assert {event["threshold"] for event in events} >= {0.7}


def test_scores_stand_in_questions_prompts_and_log(run_logged: Callable[..., Any]) -> None:
    """Where they are shown, readers are told votes, their own relevance and activity."""
    asked: list[Question] = []
    rates: dict[str, float] = {}

    class Asking(PolicyReasoner):
        async def answer(self, questions: Sequence[Question]) -> list[Decision]:
            asked.extend(questions)
            return await super().answer(questions)

    shown = Parameters(shows_scores=True, shows_activity=True, activity="classes")
    run = run_logged(parameters=shown, reasoner=Asking())
    weighed = run.events(POST_WEIGHED)
    assert all(each["score"] == each["likes"] - each["dislikes"] for each in weighed)
    assert any(each["likes"] for each in weighed)
    assert asked
    for question in asked:
        assert list(question.details) == ["likes", "dislikes", "score", "relevance", "you_write"]
        assert question.details["relevance"] == question.agent.relevance(question.context)
        prompt = chat_prompt(question)
        assert f"\nLikes: {question.details['likes']}\nDislikes: 0\n" in prompt
        often = re.search(r"^You write: (.*) times as often as people do on average$", prompt, re.M)
        assert often is not None
        rates[question.agent.agent_id] = float(often[1])
    assert min(rates.values()) < 0.1 < 10 < max(rates.values())
