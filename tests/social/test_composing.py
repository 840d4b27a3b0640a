"""Writing posts without a model."""

from collections import Counter

import pytest

from prism.agents import SocialAgent
from prism.social import Draft, Post, TemplateComposer
from prism.social._composing import share_topics, topic_of_ones_own
from prism.statechart import RandomStream

POST = Post("p1", "ben", "On bees.", ("bees",))
ALL_KINDS = TemplateComposer(replies=0.45, reshares=0.4, posts=0.15)


def drafts(agent: SocialAgent, post: Post = POST, count: int = 2000) -> list[Draft]:
    stream = RandomStream(0, agent.agent_id)
    return [ALL_KINDS.compose(agent, post, stream) for _ in range(count)]


def test_same_stream_gives_the_same_drafts() -> None:
    """What is written depends on the agent's own random numbers alone."""
    agent = SocialAgent("ann", interests=["art"])
    assert drafts(agent) == drafts(agent)
    assert drafts(agent) != drafts(SocialAgent("cem", interests=["art"]))


def test_kinds_come_by_their_weights() -> None:
    """Replies, reshares and own posts are drawn in the proportion of their weights."""
    found = Counter(draft.kind for draft in drafts(SocialAgent("ann", interests=["art"])))
    assert {kind: round(found[kind] / 2000, 1) for kind in found} == pytest.approx(
        {"reply": 0.45, "reshare": 0.4, "post": 0.15}, abs=0.06
    )


@pytest.mark.parametrize(
    ("kind", "topic"), [("reply", "bees"), ("reshare", "bees"), ("post", "art")]
)
def test_topics_are_carried_on(kind: str, topic: str) -> None:
    """A reply is about the topics of its post, an own post about an interest of its author."""
    found = [draft for draft in drafts(SocialAgent("ann", interests=["art"])) if draft.kind == kind]
    assert {draft.topics for draft in found} == {(topic,)}
    assert all(topic in draft.text for draft in found)
    assert len({draft.text for draft in found}) == 3


def test_every_interest_finds_its_post() -> None:
    """Own posts go over all interests of their author."""
    found = drafts(SocialAgent("ann", interests=["art", "chess"]))
    assert {draft.topics for draft in found if draft.kind == "post"} == {("art",), ("chess",)}


def test_there_is_something_to_say_without_topics() -> None:
    """Posts without topics and agents without interests leave no empty place in a text."""
    found = drafts(SocialAgent("ann"), Post("p1", "ben", "Hm."))
    assert {draft.topics for draft in found} == {()}
    assert all("this" in draft.text and "{" not in draft.text for draft in found)


@pytest.mark.parametrize("agents", [100, 1000])
def test_a_larger_population_has_more_topics_in_common(agents: int) -> None:
    """About as many agents share each, so that feeds do not fill as a population grows."""
    population = [SocialAgent(f"agent {number}") for number in range(agents)]
    share_topics(population, 10, seed=0)
    found = Counter(agent.interests[0] for agent in population)
    assert len(found) == agents / 10
    assert max(found.values()) < 30

    stream = RandomStream(0, "ann")
    own = {topic_of_ones_own(population[0], agents, 10, 1.0, stream)[0] for _ in range(3000)}
    assert own == set(found)
