"""The feed as a world: parameters, treatments, measures and events of one's own."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.errors import FieldValueError, SimulationError
from prism.llm import Model
from prism.runlog import RunLog, SimulatedClock
from prism.social import Draft, Feed, Post
from prism.statechart import AgentState, RandomStream
from prism.telemetry.events import DECISION, POST_PUBLISHED, TRANSITION
from prism.testing import FakeOllama
from prism.worlds import measure, state, treatment
from tests.kit.social import parameters_of, run_of_feed
from tests.kit.worlds import run_in

AGENTS, ROUNDS = 40, 4
STORIES = {0: "925adf72a3651399", 7: "f66268750486bbf4"}
"""What seeds tell, as `story_of` puts it."""


class Warned(Feed):
    """A feed whose readers are warned, and which counts what was published by warned ones."""

    rounds = ROUNDS
    preset = "classic"
    threshold: float = 0.3
    warned: int = state(0)

    def should_engage(self, agent: SocialAgent, post: Post) -> bool:
        """Engage from the feed's threshold on."""
        return agent.relevance(post) > self.threshold

    def compose(self, agent: SocialAgent, post: Post, stream: RandomStream) -> Draft:
        """Say one thing only, and tell of it."""
        self.log("composed", agent=agent, about=post.post_id)
        return Draft("reply", "Is that so?", post.topics)

    @treatment
    def warning(self) -> None:
        """Warn everybody, in the name of the first agent."""
        self.threshold = 0.9
        self.warned += len(self.agents)
        self.publish(self.agents[0], "Think before you share.", ["trust"])

    @measure
    def replies(self) -> int:
        """Return the number of replies so far."""
        return sum(post.kind == "reply" for post in self.posts)

    @measure
    def idle(self) -> float:
        """Return the share of agents that do nothing."""
        return self.share(AgentState.IDLE)

    @measure
    def warned_so_far(self) -> int:
        """Return how many have been warned."""
        return self.warned


class Loud(Feed):
    """A feed that does what it must not."""

    mode: str = "measure"

    def setup(self) -> None:
        if self.mode == "setup":
            self.publish(self.agents[0], "Too early.")

    def round_begins(self) -> None:
        if self.mode == "stranger":
            self.publish("nobody", "By nobody.")

    @measure
    def noise(self) -> int:
        """Publish instead of measuring."""
        if self.mode == "measure":
            self.publish(self.agents[0], "Too late.")
        return 0


def logged(path: Path, world: Feed | None, **options: Any) -> list[dict[str, Any]]:
    """Return the events of a run."""
    population, clock = synthetic_population(AGENTS, seed=0), SimulatedClock()
    with RunLog(path, clock) as log:
        given = {"rounds": ROUNDS, "logger": log.logger, "clock": clock, **options}
        if world is None:
            given.setdefault("parameters", {"preset": "classic"})
        run_of_feed(population.agents, population.posts, world=world, **given).run()
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_a_feed_of_ones_own_is_a_world(tmp_path: Path) -> None:
    """Parameters, treatments, measures and events of a feed stand in the log as any world's do."""
    events = logged(tmp_path / "log", Warned(threshold=0.1), treatments=["warning@3"])
    assert events[0]["world"] == "Warned"
    told = {"threshold": 0.1, **parameters_of(Feed(preset="classic"))}
    assert events[0]["parameters"] == told
    ended = [event for event in events if event["event"] == "round.ended"]
    rounds = [event["measures"] for event in ended]
    assert [each["warned_so_far"] for each in rounds] == [0, 0, AGENTS, AGENTS]
    assert rounds[2]["replies"] > rounds[1]["replies"] > 0
    assert [each["idle"] * AGENTS for each in rounds] == [
        event["states"]["idle"] for event in ended
    ]

    (treated,) = [event for event in events if event["event"] == "treatment.applied"]
    assert (treated["round"], treated["parameters"]) == (3, {"threshold": 0.9})
    posts = [event for event in events if event["event"] == "post.published"]
    (warning,) = [post for post in posts if post["text"] == "Think before you share."]
    assert (warning["agent_id"], warning["round"], warning["tick"]) == ("agent_0001", 3, 0)
    composed = [event for event in events if event["event"] == "world.composed"]
    assert len(composed) == sum(post["kind"] == "reply" for post in posts)


@pytest.mark.slow
def test_a_warning_is_heeded(tmp_path: Path) -> None:
    """What a treatment changes holds from its round on, and for nothing before it."""
    plain, treated = (
        logged(tmp_path / str(len(treatments)), Warned(), treatments=treatments)
        for treatments in ([], ["warning@3"])
    )

    def weighed(events: list[dict[str, Any]], *rounds: int) -> list[Any]:
        return [
            (event["agent_id"], event["chosen"])
            for event in events
            if event["event"] == "reasoner.decision" and event["round"] in rounds
        ]

    assert weighed(plain, 1, 2) == weighed(treated, 1, 2)
    assert len(weighed(treated, 3, 4)) < len(weighed(plain, 3, 4))


@pytest.mark.slow
def test_without_parameters_a_feed_has_their_defaults(tmp_path: Path) -> None:
    """Whether none or their preset are given: the log is the same."""
    worlds = (Feed(), Feed(preset="conversation"))
    logs = [Run(each, 15, rounds=2).keep(tmp_path / f"{n}").folder for n, each in enumerate(worlds)]
    assert len({(each / "events.jsonl").read_bytes() for each in logs}) == 1


@pytest.mark.slow
def test_people_answer_each_other_by_default() -> None:
    """Of 100 agents in 10 rounds, at least 20 reply or reshare, and some answer an answer."""
    feed = Feed()
    totals = Run(feed, 100, rounds=10, seed=1).run().totals
    assert totals.replies + totals.reshares >= 20
    assert totals.replies > totals.reshares > 0
    assert max(post.depth for post in feed.posts) > 1


@pytest.mark.slow
def test_a_plain_feed_writes_what_a_simulation_writes(tmp_path: Path) -> None:
    """A feed made already, its class, its agents: all write the same bytes."""
    written = []
    for make in (Run, None):
        clock, population = SimulatedClock(), synthetic_population(15, seed=3)
        with RunLog(tmp_path / f"{make}", clock) as log:
            given: Any = {"seed": 3, "logger": log.logger, "clock": clock}
            run = (
                run_of_feed(
                    population.agents,
                    population.posts,
                    parameters={"preset": "classic"},
                    **given,
                )
                if make is None
                else make(Feed(preset="classic"), 15, **given)
            )
            run.run()
        written.append(log.path.read_bytes())

    classic = parameters_of(Feed(preset="classic"))
    for number, options in enumerate(
        (Run(Feed, 15, seed=3, parameters=classic), Run(Feed(preset="classic"), 15, seed=3))
    ):
        folder = tmp_path / str(number)
        options.keep(folder)
        written.append((folder / "events.jsonl").read_bytes())

    assert len(set(written)) == 1


def story_of(events: Iterable[dict[str, Any]]) -> str:
    """Return a digest of a log's transitions, posts and decisions in their order."""
    keys = (
        "event",
        "agent_id",
        "trigger",
        "to_state",
        "post_id",
        "text",
        "chosen",
        "round",
        "tick",
    )
    told = [
        [event.get(key) for key in keys]
        for event in events
        if event["event"] in (TRANSITION, POST_PUBLISHED, DECISION)
    ]
    return sha256(orjson.dumps(told)).hexdigest()[:16]


@pytest.mark.parametrize(("seed", "story"), STORIES.items())
@pytest.mark.sampled(2)
def test_a_seed_has_the_story_that_it_had(seed: int, story: str, tmp_path: Path) -> None:
    """Transitions, posts and decisions of a seed change only where the changelog says so."""
    assert story_of(logged(tmp_path / "log", None, seed=seed)) == story


def test_what_is_added_shifts_nobody_elses_draws(tmp_path: Path) -> None:
    """Measures, events and draws of a feed of one's own leave its agents' story as it was."""

    class Watched(Feed):
        preset = "classic"
        drawn: float = state(0.0)

        def setup(self) -> None:
            self.log("opened")

        def round_begins(self) -> None:
            self.drawn = self.random.random()
            self.log("drew", number=self.drawn)

        @measure
        def likes(self) -> int:
            return sum(map(self.likes_of, self.posts))

    events = logged(tmp_path / "log", Watched(), seed=7)
    assert story_of(events) == STORIES[7]
    assert [event["event"] for event in events].count("world.opened") == 1
    draws = [event["number"] for event in events if event["event"] == "world.drew"]
    assert len(set(draws)) == ROUNDS


@pytest.mark.parametrize("stops", [[1], [2, 3]])
@pytest.mark.slow
def test_a_feed_that_is_stopped_goes_on_to_the_same_bytes(stops: list[int], tmp_path: Path) -> None:
    """Stopped after any rounds and resumed, a feed of one's own ends with the same files."""
    options = Run(Warned, 20, treatments=("warning@2",), seed=1)
    assert run_in(tmp_path / "stopped", options, stops) == run_in(tmp_path / "whole", options)


def by_post(asked: Any) -> str:
    """Choose by the prompt alone."""
    return str(asked.options[sum(map(ord, asked.prompt)) % len(asked.options)])


def test_a_model_and_its_replay_write_the_same_bytes(tmp_path: Path) -> None:
    """The replay of a feed with a model is that run, also if it is stopped and resumed."""
    with FakeOllama(choose=by_post) as server:
        model = Model("llama3.2", hosts=(server.url,), mode="chat")
        options = Run(Warned, 10, rounds=3, treatments=("warning@2",), seed=1, reasoner=model)
        options.keep(tmp_path / "model")

    again = options.replaying(tmp_path / "model")
    run_in(tmp_path / "again", again, [1, 2])
    logs = [(tmp_path / name / "events.jsonl").read_bytes() for name in ("model", "again")]
    assert logs[0] == logs[1]
    assert logs[0].count(b"reasoner.decision") > 10


@pytest.mark.parametrize(
    ("mode", "error", "problem"),
    [
        ("measure", SimulationError, "Loud cannot publish: a measure must not change anything"),
        (
            "setup",
            SimulationError,
            "the first round has not begun: return earlier posts from opening",
        ),
        ("stranger", FieldValueError, "by agents of the population, got 'nobody'"),
    ],
)
def test_publishing_at_the_wrong_place_is_refused(
    mode: str, error: type[Exception], problem: str
) -> None:
    """Posts are published in rounds, by agents of the population, and not by a measure."""
    with pytest.raises(error, match=problem):
        Run(Loud(mode=mode), 5, rounds=1).run()


class Leaving(Feed):
    """A feed that removes an agent twice, asks it what is relevant, and ranks what is not there."""

    mode: str = "removes"

    def round_begins(self) -> None:
        """Remove the first agent."""
        if self.mode == "removes":
            self.remove(self.agents[0])

    def should_engage(self, agent: Any, post: Post) -> bool:
        """Decide as the agent does."""
        return super().should_engage(agent, post)

    def rank(self, agent: Any, posts: Any, stream: Any) -> Any:
        """Rank as the feed does, or what it has not given."""
        return [agent] if self.mode == "ranks" else super().rank(agent, posts, stream)


def test_an_agent_that_is_removed_again_stays_removed() -> None:
    """Whoever has left the run takes no turn in the rounds after."""
    results = Run(Leaving(), 5, rounds=2, ticks=4).run()
    assert [each.activity.agent_ticks for each in results.rounds] == [16, 16]


def test_a_ranking_of_something_else_is_refused() -> None:
    """A ranking gives the posts that it was given, in whatever order."""
    with pytest.raises(FieldValueError, match="posts that it was given, got SocialAgent"):
        Run(Leaving(mode="ranks"), 5, rounds=1).run()


def test_two_who_say_what_is_relevant_are_refused() -> None:
    """A feed that says who engages, and a simulation that does, contradict each other."""
    agents = synthetic_population(3).agents
    with pytest.raises(FieldValueError, match="Warned has its own should_engage"):
        _ = Run(Warned(first_posts=(), engages=lambda agent, post: True), agents).agents
