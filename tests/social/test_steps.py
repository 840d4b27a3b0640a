"""What agents do, weigh and remember, by the parameters of their feed."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.agents.relevance import relevance, terms_of
from prism.llm import Model
from prism.reasoner._prompts import chat_prompt
from prism.social import Dislikes, Draft, Feed, Likes, Network, Post
from prism.social._population import opened_by
from prism.social._weighing import dislike_odds, herding_pulls, odds_of, virality_of
from prism.statechart import AgentState, Decision, PolicyReasoner, Question
from prism.telemetry.events import DECISION, POST_PUBLISHED, POST_WEIGHED, TRANSITION
from prism.testing import FakeOllama, LateReasoner
from tests.kit.feeds import network_of_agents
from tests.kit.runs import LoggedRun
from tests.kit.servers import chats_of
from tests.kit.social import run_of_feed
from tests.kit.worlds import run_in

LIVELY: dict[str, Any] = {
    "preset": "twitter",
    "posts_per_tick": 0.03,
    "compose_chance": 0.2,
    "engagement": 0.0,
    "most_chance": 0.6,
}


def ran(parameters: dict[str, Any], agents: int = 80, **options: Any) -> Run[Any]:
    population = synthetic_population(agents, seed=1).agents
    simulation = run_of_feed(population, None, seed=1, parameters=parameters, **options)
    simulation.run()
    return simulation


def test_a_root_is_reshared_once_by_an_agent() -> None:
    """However often a cascade comes by; and answered as often as the parameters say."""
    posts = ran(LIVELY, rounds=7).world.posts
    reshares = Counter((post.author_id, post.root) for post in posts if post.kind == "reshare")
    replies = Counter((post.author_id, post.root) for post in posts if post.kind == "reply")
    assert len(reshares) > 50
    assert set(reshares.values()) == {1}
    assert max(replies.values()) <= 3


def test_whoever_has_no_chance_to_write_writes_about_no_post() -> None:
    """The parameters' chances decide what comes of a post, not one for each option."""
    kinds = Counter(
        post.kind for post in ran(LIVELY | {"compose_chance": 0.0}, rounds=3).world.posts
    )
    assert kinds["reply"] == 0 < kinds["post"]


def test_a_post_of_ones_own_accord_has_its_transitions() -> None:
    """An agent composes it, so that the number of those who compose is true."""
    simulation = ran(LIVELY, rounds=3)
    moves = Counter(
        (record.trigger, record.to_state)
        for agent in simulation.agents
        for record in agent.state_history
    )
    begun = moves["has_idea", AgentState.COMPOSING]
    own = sum(post.kind == "post" for post in simulation.world.posted.posts) - 80
    composing = sum(
        agent.state is AgentState.COMPOSING and agent.pending_action == "post"
        for agent in simulation.agents
    )
    assert begun == own + composing > 20


def test_agents_without_a_word_have_something_to_say() -> None:
    """Common topics keep a population alive whose file says nothing of its agents."""
    wordless = [SocialAgent(f"a{number}") for number in range(60)]
    simulation = Run(Feed(**LIVELY), wordless, rounds=4)
    last = simulation.run().rounds[-1].activity
    assert last.posts > 5
    assert last.decisions_answered > 5


def test_what_is_under_way_goes_on_in_the_next_round() -> None:
    """No round end is a transition, and rounds of one tick get as far as one long round."""
    simulation = ran(LIVELY, rounds=24, ticks=1)
    triggers = {each.trigger for agent in simulation.agents for each in agent.state_history}
    assert "round_ends" not in triggers
    assert {"compose_done", "action_done"} <= triggers


@pytest.mark.long
def test_the_length_of_a_round_changes_no_rate() -> None:
    """Of 60 rounds of 4 ticks and of 5 of 48: each act per agent-tick, within 5 %."""

    def rates(rounds: int, ticks: int) -> list[float]:
        totals: Counter[str] = Counter()
        for seed in range(5):
            agents = synthetic_population(500, seed=seed).agents
            given = LIVELY | {"posts_per_tick": 0.01, "compose_chance": 0.05}
            run = Run(Feed(**given), agents, rounds=rounds, ticks=ticks, seed=seed)
            done = run.run().totals
            for name in ("posts", "replies", "reshares", "likes", "agent_ticks"):
                totals[name] += getattr(done, name)

        steps = totals.pop("agent_ticks")
        return [count / steps for count in totals.values()]

    assert rates(60, 4) == pytest.approx(rates(5, 48), rel=0.05)


@pytest.mark.parametrize(
    ("weight", "likes", "dislikes", "pull"),
    [(2.0, 1, 0, 2.0), (2.0, 0, 1, -2.0), (0.5, 9, 2, 1.5), (1.0, 0, 3, -2.0)],
)
def test_a_score_pulls_by_its_logarithm(
    weight: float, likes: int, dislikes: int, pull: float
) -> None:
    """The weight is what a score of 1 adds; likes and dislikes are alike."""
    network, post = _voted(likes, dislikes)
    found = herding_pulls(Feed(herding=weight), network, post)
    assert found == {AgentState.ENGAGING_LIKE: pytest.approx(pull)}


def test_each_sign_of_a_score_has_its_weight() -> None:
    """A bad score is corrected where its weight is negative; a good one is followed."""
    weights = Feed(herding=0.5, herding_down=-0.25)
    pulls = [herding_pulls(weights, *_voted(*votes)) for votes in ((1, 0), (0, 1), (0, 3))]
    assert [each and each[AgentState.ENGAGING_LIKE] for each in pulls] == [0.5, 0.25, 0.5]
    assert herding_pulls(Feed(herding_down=-0.25), *_voted(1, 0)) is None


def test_without_weight_or_score_nothing_pulls() -> None:
    """The policy is then what it was."""
    assert herding_pulls(Feed(), *_voted(5, 0)) is None
    assert herding_pulls(Feed(herding=1.0), *_voted(2, 2)) is None


def _voted(likes: int, dislikes: int) -> tuple[Network, Post]:
    """Return a post with votes."""
    network = network_of_agents(synthetic_population(2).agents)
    post = network.publish("agent_0001", Draft("post", "Hello.", ()), None)
    network.vote(post, likes, dislikes)
    return network, post


def test_the_policy_adds_pulls_to_utilities() -> None:
    """Odds of an option change by the exponential of its pull, those of the others do not."""
    (agent,) = synthetic_population(1).agents
    options = (AgentState.COMPOSING, AgentState.ENGAGING_LIKE, AgentState.SCROLLING)
    plain, pulled = (
        PolicyReasoner().probabilities(
            Question(agent, AgentState.EVALUATING, "decides", options, pulls=pulls)
        )
        for pulls in (None, {AgentState.ENGAGING_LIKE: 1.0})
    )
    assert pulled[0] / pulled[2] == pytest.approx(plain[0] / plain[2])
    assert pulled[1] / pulled[2] == pytest.approx(plain[1] / plain[2] * 2.718281828459045)


@pytest.mark.slow
def test_agents_dislike_what_they_scroll_past(run_logged: Any) -> None:
    """At the rate that is given, of posts that were weighed; nothing else is another."""
    without: LoggedRun = run_logged(world=Feed(), rounds=4)
    found: LoggedRun = run_logged(world=Feed(dislike_chance=0.25), rounds=4)
    moves = "statechart.transition"
    assert found.events(moves) == without.events(moves)
    past = [each for each in found.events(moves) if each["from_state"] == "evaluating"]
    past = [each for each in past if each["trigger"] in ("decides", "ignores")]
    passed = {
        (each["agent_id"], each["context"]["post_id"])
        for each in past
        if each["to_state"] == "scrolling"
    }
    disliked = {(each["agent_id"], each["post_id"]) for each in found.events("post.disliked")}
    assert disliked <= passed
    assert len(disliked) / len(passed) == pytest.approx(0.25, abs=3 * (0.1875 / len(passed)) ** 0.5)
    feed = found.simulation.world
    counts = Counter(post_id for _, post_id in disliked)
    likes = Counter(each["post_id"] for each in found.events("post.liked"))
    assert all(
        feed.score_of(each) == likes[each.post_id] - counts[each.post_id] for each in feed.posts
    )
    assert not without.events("post.disliked")


@pytest.mark.parametrize(("score", "odds"), [(0, 0.2), (1, 0.2 / 2.718281828459045), (-7, 1.0)])
def test_votes_of_others_weigh_on_dislikes(score: int, odds: float) -> None:
    """A score of 1 takes the weight from the utility; what is disliked a lot always is."""
    network, post = _voted(max(score, 0), max(-score, 0))
    assert dislike_odds(0.2, herding_pulls(Feed(herding=1.0), network, post)) == pytest.approx(odds)


@pytest.mark.long
def test_votes_draw_votes_where_agents_follow_others(run_logged: Any) -> None:
    """Over 10 seeds up-treated posts get more likes than controls, down-treated ones fewer.

    Without herding the difference is within noise.
    """
    gaps = {
        weight: [
            _gaps(run_logged(seed=seed, world=Feed(herding=weight), treatments=ARMS))
            for seed in range(10)
        ]
        for weight in (0.0, 1.5)
    }
    up, down = (mean(each) for each in zip(*gaps[1.5], strict=True))
    assert up > 0.5
    assert down < -0.3
    assert all(abs(mean(each)) < 0.25 for each in zip(*gaps[0.0], strict=True))


ARMS = [Likes(1, share=0.33, experiment="v"), Dislikes(1, share=0.33, experiment="v")]


def _gaps(run: LoggedRun) -> tuple[float, float]:
    """Return how many more likes of agents posts in either arm got than those in neither."""
    likes = Counter(each["post_id"] for each in run.events("post.liked"))
    by_arm: dict[str, list[int]] = {}
    for each in run.events("treatment.assigned"):
        by_arm.setdefault(each["arm"], []).append(likes[each["post_id"]])

    control = mean(by_arm["control"])
    return mean(by_arm["likes"]) - control, mean(by_arm["dislikes"]) - control


def prompts_of(folder: Path, stops: list[int], rounds: int = 5, **options: Any) -> list[str]:
    """Return the prompts of a feed that is resumed after some rounds."""
    with FakeOllama(
        choose=lambda asked: asked.options[sum(map(ord, asked.prompt)) % len(asked.options)]
    ) as server:
        model = Model("llama3.2", (server.host,), mode="chat", **options)
        run = Run(Feed, 25, rounds=rounds, seed=3, reasoner=model, parameters={"preset": "classic"})
        run_in(folder, run, stops)
        return sorted(chat["messages"][0]["content"] for chat in chats_of(server))


@pytest.mark.slow
def test_a_resumed_feed_asks_what_it_would_have_asked(tmp_path: Path) -> None:
    """Stopped after every round, a feed has the same prompts, which tell posts seen and written."""
    whole = prompts_of(tmp_path / "whole", [], remember=4)
    assert prompts_of(tmp_path / "parts", [1, 2, 3, 4], remember=4) == whole
    for did in ("scrolled on.", "liked it.", 'replied: "', 'posted yourself: "'):
        assert any(f"and {did}" in prompt for prompt in whole), did


@pytest.mark.parametrize("remembers", [None, 3])
@pytest.mark.slow
def test_a_run_asks_in_words_of_people(remembers: int | None, tmp_path: Path) -> None:
    """What all agents share comes first, then the agent, its memories and the post."""
    prompts = prompts_of(tmp_path / "run", [], 2, remember=remembers)
    parts = ["- scrolling", "You are ", "decide what to do with this post.\n\nPost by", "\n  > "]
    for prompt in prompts:
        places = [prompt.index(part) for part in parts]
        assert places == sorted(places)
        assert "evaluating" not in prompt
    assert any("What you remember" in prompt for prompt in prompts) is (remembers is not None)


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
@pytest.mark.sampled(2)
def test_every_weighing_is_in_the_log(run_logged: Callable[..., Any], reasoner: Any) -> None:
    """Before an agent ignores a post or decides on it, the log has relevance and threshold."""
    logged = run_logged(reasoner=reasoner, rounds=3)
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
@pytest.mark.sampled(3)
def test_a_log_changes_nothing(kind: type[SocialAgent], run_logged: Callable[..., Any]) -> None:
    """A run that is logged ends as one that is not, whatever its agents do when they look."""
    logged = run_logged(**population(kind, 25), seed=2, rounds=4)
    silent = run_of_feed(
        **population(kind, 25), seed=2, rounds=4, parameters={"preset": "classic"}
    ).run()
    assert silent == logged.results


def test_a_guard_of_its_own_leaves_the_relevance_open(run_logged: Callable[..., Any]) -> None:
    """An agent that decides by something else, or fails, has no relevance that decided."""
    for kind in (Contrary, Failing):
        events = run_logged(**population(kind, 20), seed=2, rounds=1).events(POST_WEIGHED)
        assert {event["relevance"] for event in events} == {None}
        assert {event["threshold"] for event in events} >= {0.7}


@pytest.mark.slow
def test_scores_stand_in_questions_prompts_and_log(run_logged: Callable[..., Any]) -> None:
    """Where they are shown, readers are told votes, their own relevance and activity."""
    asked: list[Question] = []
    rates: dict[str, float] = {}

    class Asking(PolicyReasoner):
        async def answer(self, questions: Sequence[Question]) -> list[Decision]:
            asked.extend(questions)
            return await super().answer(questions)

    shown = {"shows_scores": True, "shows_activity": True, "activity": "classes"}
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


def test_a_root_has_one_virality() -> None:
    """All posts of a cascade have that of their root; over many roots its median is 1."""
    now = Feed(virality_sigma=1.0)
    network = network_of_agents(synthetic_population(2).agents)
    roots = [network.publish("agent_0001", Draft("post", "Hello.", ()), None) for _ in range(999)]
    answer = network.publish("agent_0002", Draft("reply", "Hi.", ()), roots[0])
    found = sorted(virality_of(now, 3, root) for root in roots)
    assert virality_of(now, 3, answer) == virality_of(now, 3, roots[0]) != found[0]
    assert found[499] == pytest.approx(1, abs=0.15)
    assert found[-1] > 10
    assert virality_of(Feed(), 3, answer) == 1


def test_virality_counts_once_more_for_each_step_from_the_root() -> None:
    """A root of twice the virality is answered twice as often, and its answers four times."""
    now = Feed(compose_chance=0.01, fading=0.5)
    network = network_of_agents(synthetic_population(2).agents)
    root = network.publish("agent_0001", Draft("post", "Hello.", ()), None)
    answer = network.publish("agent_0002", Draft("reply", "Hi.", ()), root)
    for post, factor in ((root, 2.0), (answer, 4.0)):
        usual, viral = (odds_of(now, 1.0, 0.0, post, None, each) for each in (1.0, 2.0))
        assert usual is not None
        assert viral is not None
        ratio = viral[AgentState.COMPOSING] / usual[AgentState.COMPOSING]
        assert ratio == pytest.approx(factor)


def test_who_opens_is_drawn_by_followers() -> None:
    """Each agent in proportion to its followers, and with a large exponent the hub."""
    agents = synthetic_population(20, seed=1).agents
    followers = Counter(name for agent in agents for name in agent.following)

    def authors(bias: float) -> Counter[str]:
        return Counter(opened_by(agents, "drawn", bias, seed)[0].author_id for seed in range(2000))

    drawn = authors(1.0)
    for name, count in followers.most_common(3):
        assert drawn[name] / 2000 == pytest.approx(count / followers.total(), abs=0.03)
    (hub,) = opened_by(agents, "hub", 1.0, 0)
    assert authors(99.0)[hub.author_id] > 1900


def test_a_feed_is_opened_by_chance() -> None:
    """Whoever never comes to its feed never scrolls."""
    run = Run(Feed(visit_chance=0.0, posts_per_tick=0.0), 20, rounds=2)
    assert run.run().totals.transitions == 0
