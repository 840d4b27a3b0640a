"""What social agents do in each state, and what the log and the results say of it."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from prism import Run
from prism.agents import SeedPost, SocialAgent
from prism.agents.words import relevance, terms_of
from prism.errors import AgentError
from prism.social import Feed
from prism.statechart import AgentState
from prism.testing import LateReasoner, ScriptedReasoner

S = AgentState


def two_agents(**fields: Any) -> list[SocialAgent]:
    """Make two agents that are interested in the same and engage with anything."""
    return [
        SocialAgent(name, interests=["art"], engagement_threshold=0.0, **fields)
        for name in ("ann", "ben")
    ]


def test_attributes_of_any_kind_are_plain_in_the_log(heard: list[Any]) -> None:
    """A tuple is a list there, as a set is, beside the agent's other attributes."""
    agents = two_agents(attributes={"likes": (1, 2), "kinds": {"b", "a"}, "age": 30})
    Run(Feed(first_posts=()), agents, rounds=1).run()
    joined = [each["attributes"] for each in heard if each["event"] == "agent.joined"]
    assert joined == [{"likes": [1, 2], "kinds": ["a", "b"], "age": 30}] * 2


def counted(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Count from a log's events what results count."""
    names = Counter(event["event"] for event in events)
    published = [event for event in events if event["event"] == "post.published"]
    kinds = Counter(event["kind"] for event in published if event["round"] > 0)
    decisions = [event for event in events if event["event"] == "reasoner.decision"]
    moves = [event for event in events if event["event"] == "statechart.transition"]
    timeouts = Counter(event["from_state"] for event in moves if event["trigger"] == "timeout")
    return {
        "transitions": names["statechart.transition"],
        "posts": kinds["post"],
        "replies": kinds["reply"],
        "reshares": kinds["reshare"],
        "likes": names["post.liked"],
        "decisions_asked": len(decisions),
        "decisions_answered": sum(event["source"] != "fallback" for event in decisions),
        "timeouts": dict(sorted(timeouts.items())),
    }


def test_results_count_what_the_log_holds(logged: Any) -> None:
    """Every count, in total and in each round, is the number of such events in the log."""
    events, results = logged.events(), logged.results
    assert results.totals() == {"agent_ticks": 60 * 6 * 12, **counted(events)}
    for summary, ended in zip(results.rounds, logged.events("round.ended"), strict=True):
        of_round = [event for event in events if event["round"] == summary.number]
        counts = {"agent_ticks": 60 * 12, **counted(of_round)}
        assert summary.to_dict().items() >= counts.items() <= ended.items()
    assert min(results.totals()[name] for name in ("posts", "replies", "reshares", "likes")) > 0
    assert (events[0]["event"], events[-1]["event"]) == ("run.started", "run.ended")
    assert events[-1].items() >= results.totals().items()


def test_what_was_decided_is_carried_out_before_a_round_ends() -> None:
    """A feed that carries nothing over publishes what is under way, and all agents are idle."""
    feed = Feed(preset="classic")
    states: list[set[AgentState]] = []
    run = Run(feed, 60, seed=1, rounds=15, ticks=3)
    totals = run.run(lambda _: states.append({agent.state for agent in feed.agents})).totals()
    assert totals["likes"] > 0 < totals["replies"] + totals["reshares"]
    assert all(agent.pending_action is None for agent in feed.agents)
    assert states == [{S.IDLE}] * 15


def test_answers_follow_what_they_answer(logged: Any) -> None:
    """The parent of every reply and reshare stands earlier in the log, with the same root.

    A post knows its root and its depth, and its representation is short, however deep it is.
    """
    roots: dict[str, str] = {}
    for event in logged.events("post.published"):
        assert event["post_id"] not in roots
        own = event["kind"] == "post"
        assert event["root_id"] == (event["post_id"] if own else roots[event["parent_id"]])
        roots[event["post_id"]] = event["root_id"]
    assert len(set(roots.values())) < len(roots)
    posts = logged.run.world.posts
    for post in posts:
        above = post.parent
        expected = (post, 0) if above is None else (above.root, above.depth + 1)
        assert (post.root, post.depth) == expected
        assert len(repr(post)) < 400
    assert max(post.depth for post in posts) > 2


def test_likes_are_honest(logged: Any) -> None:
    """Nobody likes a post twice, nor its own, nor one not yet published; the posts agree."""
    authors: dict[str, str] = {}
    liked = []
    for event in logged.events("post.published", "post.liked"):
        if event["event"] == "post.published":
            authors[event["post_id"]] = event["agent_id"]
            continue
        liked.append((event["agent_id"], event["post_id"]))
        assert event["author_id"] == authors[event["post_id"]] != event["agent_id"]
    assert len(liked) == len(set(liked)) > 0
    counts = Counter(post_id for _, post_id in liked)
    assert {post.post_id: post.likes for post in logged.run.world.posts if post.likes} == counts


def test_nobody_evaluates_a_post_twice(logged: Any) -> None:
    """An agent looks at every post once at most."""
    looks = [
        (event["agent_id"], event["context"]["post_id"])
        for event in logged.events("statechart.transition")
        if event["trigger"] == "sees_post"
    ]
    assert len(looks) == len(set(looks)) > 1000


def test_every_weighing_is_in_the_log(run_logged: Callable[..., Any]) -> None:
    """Before an agent ignores a post or decides on it, the log has relevance and threshold."""
    done = run_logged(reasoner=LateReasoner(), rounds=3)
    posts = {post["post_id"]: post for post in done.events("post.published")}
    agents = {agent.agent_id: agent for agent in done.run.agents}
    weighed: dict[str, Any] = {}
    for event in done.events("post.weighed", "statechart.transition"):
        name = event["agent_id"]
        if event["event"] == "post.weighed":
            post, agent = posts[event["post_id"]], agents[name]
            context = {"topics": post["topics"], "text": post["text"]}
            assert event["relevance"] == relevance(terms_of(agent.interests), context)
            assert event["threshold"] == agent.engagement_threshold
            weighed[name] = event
        elif event["trigger"] in ("ignores", "decides"):
            before = weighed.pop(name)
            assert before["post_id"] == event["context"]["post_id"]
            is_asked = event["trigger"] == "decides"
            assert (before["relevance"] >= before["threshold"]) is is_asked


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("reply", ["composing", "engaging_reply", "resting"]),
        ("reshare", ["composing", "engaging_reshare", "resting"]),
        ("post", ["composing", "resting"]),
    ],
)
def test_composing_leads_to_what_was_composed(
    kind: str, path: list[str], run_logged: Callable[..., Any]
) -> None:
    """An agent that composes passes through the state of its kind and publishes once."""
    shares = {f"{each}_share": float(each == kind) for each in ("reply", "reshare", "post")}
    done = run_logged(
        two_agents(),
        [SeedPost("ben", "old", ("art",))],
        rounds=1,
        ticks=5,
        reasoner=ScriptedReasoner({"decides": S.COMPOSING}),
        parameters={"preset": "classic", **shares},
    )
    moves = done.events("statechart.transition")
    states = [event["to_state"] for event in moves if event["agent_id"] == "ann"]
    assert states[2 : 2 + len(path)] == path
    (seed, published) = done.events("post.published")[:2]
    assert (published["agent_id"], published["kind"]) == ("ann", kind)
    assert published["parent_id"] == (None if kind == "post" else seed["post_id"])


@pytest.mark.parametrize(
    ("state", "path"),
    [
        (S.SCROLLING, ["resting", "idle"]),
        (S.COMPOSING, ["scrolling", "resting", "idle"]),
        (S.ENGAGING_REPLY, ["resting", "idle"]),
    ],
)
def test_an_agent_begins_in_its_state_and_times_out_by_its_threshold(
    state: AgentState, path: list[str], run_logged: Callable[..., Any]
) -> None:
    """An agent with nothing to do leaves each state by its time-out."""
    agent = SocialAgent("ann", state=state, timeout_threshold=3)
    run = run_logged([agent], rounds=1, parameters={"common_topics": 0})
    moves = run.events("statechart.transition")
    if state is not S.SCROLLING:
        # there is nothing that it could write about
        assert moves[0]["trigger"] in ("compose_done", "action_done")
        assert {event["trigger"] for event in moves[1:]} == {"timeout"}
        assert not run.events("post.published")
    else:
        assert moves[0]["tick"] == 4
    assert [event["to_state"] for event in moves] == path
    assert moves[-1]["tick"] - moves[-2]["tick"] == 3


def test_only_social_agents_take_part() -> None:
    """Others are refused by what they are, and the agents of a run do not change."""
    with pytest.raises(AgentError, match="the agents of a feed are social agents, got 5"):
        Run(Feed(), [5], rounds=1).run()
    agent = SocialAgent("ann", interests=["art"])
    Run(Feed(), [agent, SocialAgent("bo")], rounds=2).run()
    assert (agent.interests, agent.state, [*agent.state_history]) == (["art"], S.IDLE, [])
