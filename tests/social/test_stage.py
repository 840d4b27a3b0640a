"""What social agents do in each state, and what that leaves behind."""

from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

import pytest

from prism import Run
from prism.agents import SeedPost, SocialAgent, synthetic_population
from prism.errors import AgentError
from prism.social import Feed
from prism.statechart import (
    AgentState,
    Decision,
    PolicyReasoner,
    Question,
    social_media_chart,
)
from prism.telemetry.events import (
    AGENT_JOINED,
    ANSWER_DISCARDED,
    DECISION,
    POST_LIKED,
    POST_PUBLISHED,
    ROUND_ENDED,
    ROUND_STARTED,
    RUN_ENDED,
    RUN_STARTED,
    TRANSITION,
)
from prism.testing import LateReasoner, ScriptedReasoner
from prism.worlds import measure
from tests.kit.social import KindComposer

S = AgentState


def two_agents(**fields: Any) -> list[SocialAgent]:
    """Make two agents that care for the same and engage with anything."""
    return [
        SocialAgent(name, interests=["art"], engagement_threshold=0.0, **fields)
        for name in ("ann", "ben")
    ]


# What a run leaves behind


@pytest.mark.slow
def test_only_moves_of_the_chart_are_made(logged: Any) -> None:
    """Every move in the log starts where the agent was, and is one that the chart allows."""
    chart = social_media_chart()
    states = {event["agent_id"]: S(event["state"]) for event in logged.events(AGENT_JOINED)}
    for event in logged.events(TRANSITION):
        assert event["from_state"] == states[event["agent_id"]]
        states[event["agent_id"]] = S(event["to_state"])
        assert states[event["agent_id"]] in chart.valid_targets(
            S(event["from_state"]), event["trigger"]
        )
    assert states == {agent.agent_id: agent.state for agent in logged.simulation.agents}


def test_history_is_the_log(logged: Any) -> None:
    """An agent's history holds the last of its moves in the log, with their times."""
    agent = max(logged.simulation.agents, key=lambda one: len(one.state_history))
    moves = [event for event in logged.events(TRANSITION) if event["agent_id"] == agent.agent_id]
    kept = [record.to_dict() for record in agent.state_history]
    assert len(kept) > 20
    assert [
        (one["from_state"], one["to_state"], one["trigger"], one["timestamp"], one["context"])
        for one in kept
    ] == [
        (
            event["from_state"],
            event["to_state"],
            event["trigger"],
            event["timestamp"],
            event["context"],
        )
        for event in moves[-len(kept) :]
    ]


def counted(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Count from a log's events what results count."""
    names = Counter(event["event"] for event in events)
    kinds = Counter(
        event["kind"] for event in events if event["event"] == POST_PUBLISHED and event["round"] > 0
    )
    decisions = [event for event in events if event["event"] == DECISION]
    timeouts = [
        event for event in events if event["event"] == TRANSITION and event["trigger"] == "timeout"
    ]
    return {
        "transitions": names[TRANSITION],
        "posts": kinds["post"],
        "replies": kinds["reply"],
        "reshares": kinds["reshare"],
        "likes": names[POST_LIKED],
        "decisions_asked": len(decisions),
        "decisions_answered": sum(event["source"] != "fallback" for event in decisions),
        "timeouts": dict(sorted(Counter(event["from_state"] for event in timeouts).items())),
        "fallbacks": dict(
            sorted(Counter(event["reason"] for event in decisions if event["reason"]).items())
        ),
    }


def test_results_count_what_the_log_holds(logged: Any) -> None:
    """Every count, in total and in each round, is the number of such events in the log."""
    events, results = logged.events(), logged.results
    assert results.totals.to_dict() == {"agent_ticks": 60 * 6 * 12, **counted(events)}
    for summary in results.rounds:
        of_round = [event for event in events if event["round"] == summary.number]
        assert summary.activity.to_dict() == {"agent_ticks": 60 * 12, **counted(of_round)}
    totals = results.totals
    assert (
        min(totals.posts, totals.replies, totals.reshares, totals.likes, totals.timeouts.total())
        > 0
    )


def test_log_holds_the_results(logged: Any) -> None:
    """The log says how the run was set up, each round's states and counts, and the totals."""
    events, results = logged.events(), logged.results
    names = [event["event"] for event in events]
    assert (names[0], names[-1]) == (RUN_STARTED, RUN_ENDED)
    assert {**events[0], "rounds": 6, "ticks_per_round": 12, "seed": 0, "agents": 60} == events[0]
    assert events[-1].items() >= results.totals.to_dict().items()
    rounds = logged.events(ROUND_ENDED)
    assert [(event["round"], event["states"]) for event in rounds] == [
        (one.number, one.states) for one in results.rounds
    ]
    assert all(
        event.items() >= one.activity.to_dict().items()
        for event, one in zip(rounds, results.rounds, strict=True)
    )
    assert len(logged.events(ROUND_STARTED)) == 6


class Watched(Feed):
    """Measures how many agents scroll when the ticks of a round are over."""

    @measure
    def scrolling(self) -> int:
        """Return their number."""
        return self.count(S.SCROLLING)


def test_states_of_every_round_are_those_before_it_ends() -> None:
    """A round's states name every state, and count the agents as they are after its last tick."""
    population = synthetic_population(60)
    results = Run(Watched(first_posts=population.posts), population.agents, rounds=4).run()
    for summary in results.rounds:
        assert list(summary.states) == [state.value for state in S]
        assert summary.states["scrolling"] == summary.measures["scrolling"] > 0


def test_what_was_decided_is_carried_out() -> None:
    """A round ends by publishing and liking what was decided on, however few ticks it has."""
    population = synthetic_population(200)
    feed = Feed(first_posts=population.posts, preset="classic")
    results = Run(feed, population.agents, seed=1, rounds=15, ticks=3).run()
    assert results.totals.likes > 0
    assert results.totals.replies + results.totals.reshares > 0
    assert all(agent.pending_action is None for agent in population.agents)


def test_everyone_is_idle_after_a_round() -> None:
    """When a round has ended, every agent is in IDLE."""
    population = synthetic_population(60)
    simulation = Run(
        Feed(first_posts=population.posts, preset="classic"),
        population.agents,
        rounds=3,
    )
    seen: list[set[AgentState]] = []
    simulation.run(lambda summary: seen.append({agent.state for agent in simulation.agents}))
    assert seen == [{S.IDLE}] * 3


def test_answers_follow_what_they_answer(logged: Any) -> None:
    """The parent of every reply and reshare stands earlier in the log, with the same root."""
    roots: dict[str, str] = {}
    for event in logged.events(POST_PUBLISHED):
        assert event["post_id"] not in roots
        if event["kind"] == "post":
            assert (event["parent_id"], event["root_id"]) == (None, event["post_id"])
        else:
            assert event["root_id"] == roots[event["parent_id"]]
        roots[event["post_id"]] = event["root_id"]
    assert len(set(roots.values())) < len(roots)


def test_likes_are_honest(logged: Any) -> None:
    """Nobody likes a post twice, nor its own, nor one not yet published; the network agrees."""
    authors: dict[str, str] = {}
    liked = []
    for event in logged.events(POST_PUBLISHED, POST_LIKED):
        if event["event"] == POST_PUBLISHED:
            authors[event["post_id"]] = event["agent_id"]
            continue
        liked.append((event["agent_id"], event["post_id"]))
        assert event["author_id"] == authors[event["post_id"]] != event["agent_id"]
    assert len(liked) == len(set(liked)) > 0
    assert logged.simulation.world.posted.likes == Counter(post_id for _, post_id in liked)


def test_nobody_evaluates_a_post_twice(logged: Any) -> None:
    """An agent looks at every post once at most."""
    seen = [
        (event["agent_id"], event["context"]["post_id"])
        for event in logged.events(TRANSITION)
        if event["trigger"] == "sees_post"
    ]
    assert len(seen) == len(set(seen)) > 1000


# The steps


@pytest.mark.parametrize(
    ("kind", "path", "counter"),
    [
        ("reply", ["composing", "engaging_reply", "resting"], "replies"),
        ("reshare", ["composing", "engaging_reshare", "resting"], "reshares"),
        ("post", ["composing", "resting"], "posts"),
    ],
)
def test_composing_leads_to_what_was_composed(
    kind: str, path: list[str], counter: str, run_logged: Callable[..., Any]
) -> None:
    """An agent that composes passes through the state of its kind and publishes once."""
    run = run_logged(
        two_agents(),
        [SeedPost("ben", "old", ("art",))],
        rounds=1,
        ticks=5,
        reasoner=ScriptedReasoner({"decides": S.COMPOSING}),
        composer=KindComposer(kind),
    )
    moves = [event["to_state"] for event in run.events(TRANSITION) if event["agent_id"] == "ann"]
    assert moves[2 : 2 + len(path)] == path
    (seed, published) = run.events(POST_PUBLISHED)[:2]
    assert published["agent_id"] == "ann"
    assert published["parent_id"] == (None if kind == "post" else seed["post_id"])
    assert getattr(run.results.totals, counter) == len(run.events(POST_PUBLISHED)) - 1


def test_liking_takes_one_tick(run_logged: Callable[..., Any]) -> None:
    """An agent that likes is counted in the tick after it decided, and then rests."""
    run = run_logged(
        two_agents(),
        [SeedPost("ben", "old", ("art",))],
        rounds=1,
        ticks=4,
        reasoner=ScriptedReasoner({"decides": S.ENGAGING_LIKE}),
    )
    (like,) = run.events(POST_LIKED)
    assert (like["agent_id"], like["author_id"], like["tick"]) == ("ann", "ben", 4)
    assert run.results.rounds[0].states["resting"] == 1


def test_agent_with_nothing_to_read_stays_idle(run_logged: Callable[..., Any]) -> None:
    """Without posts nobody moves at all."""
    run = run_logged(two_agents(), rounds=2)
    assert run.results.totals.to_dict() == {**counted([]), "agent_ticks": 48}


@pytest.mark.parametrize(
    ("state", "path"),
    [
        (S.SCROLLING, ["resting", "idle"]),
        (S.COMPOSING, ["scrolling", "resting", "idle"]),
    ],
)
def test_timeouts_are_counted(
    state: AgentState, path: list[str], run_logged: Callable[..., Any]
) -> None:
    """An agent with nothing to do leaves each state by its time-out, counted under that state."""
    agent = SocialAgent("ann", state=state, timeout_threshold=3)
    run = run_logged([agent], rounds=1)
    assert [event["to_state"] for event in run.events(TRANSITION)] == path
    assert {event["trigger"] for event in run.events(TRANSITION)} == {"timeout"}
    assert run.results.totals.timeouts == Counter([state.value, *path[:-1]])
    ticks = [event["tick"] for event in run.events(TRANSITION)]
    assert ticks[0] == 4
    assert ticks[-1] - ticks[-2] == 3


# Answers that no longer apply


class Fickle(SocialAgent):
    """Would engage with a post when asked, and would not any more when the answer is carried out.

    A new post begins anew: the two transitions that engage ask for it once each.
    """

    asked: Any = (None, 0)

    def should_engage(self, context: Any) -> bool:
        post, times = self.asked
        self.asked = (context, times + 1 if context is post else 1)
        return self.asked[1] % 3 != 0


def fickle_population() -> tuple[list[SocialAgent], Sequence[SeedPost]]:
    population = synthetic_population(20, seed=3)
    agents: list[SocialAgent] = [
        Fickle(agent.agent_id, interests=agent.interests, following=agent.following)
        for agent in population.agents
    ]
    return agents, population.posts


@pytest.mark.parametrize("make", [PolicyReasoner, lambda: LateReasoner(most_turns=59)])
@pytest.mark.sampled(2)
def test_a_refused_decision_is_logged_as_discarded(
    make: Callable[[], Any], run_logged: Callable[..., Any]
) -> None:
    """What the chart refuses stands in the log after its decision, in the same round and tick."""
    run = run_logged(*fickle_population(), rounds=2, reasoner=make())
    place = itemgetter("round", "tick", "agent_id")
    engaging = [place(event) for event in run.events(DECISION) if event["chosen"] != "scrolling"]
    discarded = run.events(ANSWER_DISCARDED)
    assert len(engaging) > 20
    assert [place(event) for event in discarded] == engaging
    assert {(event["asked_in"], event["now_in"], event["reason"]) for event in discarded} == {
        ("evaluating", "evaluating", "not_enabled")
    }
    assert not run.events(POST_LIKED)


class Meddling(PolicyReasoner):
    """Sends the first agent that it is asked about elsewhere."""

    meddled = False

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        if not self.meddled:
            self.meddled = True
            questions[0].agent.state = S.RESTING
        return await super().answer(questions)


def test_a_decision_of_an_agent_that_moved_is_logged_as_discarded(
    run_logged: Callable[..., Any],
) -> None:
    """An agent that is moved while a reasoner is asked stays there, and the log records it."""
    run = run_logged(reasoner=Meddling(), rounds=1)
    (event,) = run.events(ANSWER_DISCARDED)
    assert (event["asked_in"], event["now_in"], event["reason"]) == (
        "evaluating",
        "resting",
        "moved",
    )
    first = run.events(DECISION)[0]
    assert (event["agent_id"], event["chosen"]) == (first["agent_id"], first["chosen"])


# Agents of other engines


class Foreign:
    """An agent of another engine, which rates posts itself."""

    archetype = None
    following = ()
    timeout_threshold = 5
    pending_action: Any = None

    def __init__(self, agent_id: str, *, eager: bool = True) -> None:
        self.agent_id = self.name = agent_id
        self.interests = ["art"]
        self.state = S.IDLE
        self.ticks_in_state = 0
        self.state_history: list[Any] = []
        self.relevances: list[float] = []
        self.eager = eager

    def should_engage(self, relevance: float) -> bool:
        self.relevances.append(relevance + 0.0)
        return self.eager


def test_agents_of_another_engine_run_in_the_feed(run_logged: Callable[..., Any]) -> None:
    """A class whose method takes a number runs like any other, adapted by ``should_engage=``."""
    keen, bored = Foreign("keen"), Foreign("bored", eager=False)
    run = run_logged(
        [keen, bored, *two_agents()],
        [SeedPost("ann", f"A picture called {name}.", ("art",)) for name in ("Dawn", "Dusk")],
        engages=lambda agent, post: agent.should_engage(0.8),
    )
    deciders = {event["agent_id"] for event in run.events(DECISION)}
    assert "keen" in deciders
    assert "bored" not in deciders
    assert set(bored.relevances) == {0.8}
    assert run.events("statechart.guard_failed") == []


NEEDED = [
    "state",
    "should_engage",
    "pending_action",
    "agent_id",
    "name",
    "archetype",
    "interests",
    "following",
    "timeout_threshold",
    "ticks_in_state",
    "state_history",
]


def test_what_an_agent_needs_is_enough(run_logged: Callable[..., Any]) -> None:
    """An object with the fields that the run asks for, and no others, goes through a whole run."""
    foreign = Foreign("odd")
    fields = {key: getattr(foreign, key) for key in NEEDED}
    odd = SimpleNamespace(**{**fields, "should_engage": lambda post: True})
    posts = [SeedPost("ann", f"A picture called {name}.", ("art",)) for name in ("Dawn", "Dusk")]
    run = run_logged([odd, *two_agents()], posts)
    assert "odd" in {event["agent_id"] for event in run.events(DECISION)}
    assert run.events("statechart.guard_failed") == []


def test_everything_that_agents_lack_is_said_at_once() -> None:
    """The error names the first agent, its class, and all that it lacks."""
    with pytest.raises(AgentError) as caught:
        _ = Run(
            Feed(first_posts=()),
            [*two_agents(), *[SimpleNamespace(agent_id=text) for text in "xyz"]],
        ).agents
    text = str(caught.value)
    assert "agent 'x' does not fit" in text
    assert "SimpleNamespace lacks state, should_engage, pending" in text
    assert "SocialAgent" not in text
