"""A run gone on with is the run that was never stopped."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism import Run
from prism.agents import SocialAgent, synthetic_population
from prism.runlog import ReplayReasoner, RunLog, SimulatedClock
from prism.social import Feed, Results, RoundSummary
from prism.statechart import (
    AgentState,
    BaseReasoner,
    Budget,
    Decision,
    PolicyReasoner,
    Question,
    StateTransition,
    TextCall,
)
from prism.testing import LateReasoner, ScriptedWriter
from tests.kit.social import run_of_feed

MakeReasoner = Callable[[], BaseReasoner]


def late(seed: int) -> LateReasoner:
    """Return the policy, but late and out of order, so that agents go on meanwhile."""
    return LateReasoner(PolicyReasoner(seed), concurrency=3, most_turns=5, seed=seed)


class Spending(PolicyReasoner):
    """Pays for each answer out of a budget, and falls back when it is spent, as a model does."""

    def __init__(self, budget: Budget) -> None:
        super().__init__()
        self.budget = budget

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        return [await self._one(question) for question in questions]

    async def _one(self, question: Question) -> Decision:
        reason = self.budget.take()
        if reason is not None:
            return Decision(AgentState.SCROLLING, "fallback", reason)
        self.budget.add(tokens=7)
        (decision,) = await super().answer([question])
        return decision


@dataclass(frozen=True)
class Settings:
    """What a run is."""

    agents: int = 12
    seed: int = 3
    rounds: int = 3
    ticks: int = 8
    reasoner: MakeReasoner = PolicyReasoner
    writes: Callable[[TextCall], str] | None = None
    parameters: dict[str, Any] | None = None

    def simulation(self, log: RunLog, clock: SimulatedClock) -> Run[Any]:
        """Make the simulation, ready to begin."""
        population = synthetic_population(self.agents, seed=self.seed)
        for number, agent in enumerate(population.agents):
            agent.max_history_depth = 1 + number % 40  # so that some forget moves within a run
        return run_of_feed(
            population.agents,
            population.posts,
            parameters=self.parameters,
            rounds=self.rounds,
            ticks=self.ticks,
            seed=self.seed,
            reasoner=self.reasoner(),
            writer=None if self.writes is None else ScriptedWriter(self.writes),
            logger=log.logger,
            clock=clock,
        )


@dataclass
class Ended:
    """A run that has ended, and what was kept of it at the end of each round."""

    log: Path
    simulation: Run[Any]
    results: Results
    kept: list[tuple[bytes, int]] = field(default_factory=list)

    @property
    def agents(self) -> list[tuple[Any, ...]]:
        """Everything of the agents that later moves could depend on, and their histories."""
        return [
            (
                agent.agent_id,
                agent.state,
                agent.ticks_in_state,
                agent.pending_action,
                list(agent.state_history),
            )
            for agent in self.simulation.agents
        ]


class Runs:
    """Makes runs whose logs are kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self._paths = (folder / f"{number}.jsonl" for number in count())

    def whole(self, settings: Settings) -> Ended:
        """Ended to the end, and keep a snapshot of every round."""
        clock, kept = SimulatedClock(), []
        with RunLog(next(self._paths), clock) as log:
            simulation = settings.simulation(log, clock)

            def keep(_: RoundSummary) -> None:
                kept.append((orjson.dumps(simulation.loop.snapshot()), log.save()))

            results = simulation.run(keep)
        return Ended(log.path, simulation, results, kept)

    def resumed(self, run: Ended, settings: Settings, done: int) -> Ended:
        """Go on with a run after so many of its rounds, from what was kept of it."""
        snapshot, length = run.kept[done - 1]
        path = next(self._paths)
        path.write_bytes(run.log.read_bytes()[:length] + b'{"event":"torn')
        events = [orjson.loads(line) for line in run.log.read_bytes()[:length].splitlines()]
        clock = SimulatedClock()
        with RunLog(path, clock, keep=length) as log:
            simulation = settings.simulation(log, clock)
            simulation.loop.restore(orjson.loads(snapshot), events)
            assert len(simulation.finished) == done
            results = simulation.run()
        return Ended(path, simulation, results)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """Return a maker of runs in a folder of its own."""
    return Runs(tmp_path)


def assert_equal(again: Ended, run: Ended) -> None:
    """Fail unless two runs are the same in their logs, their results and their agents."""
    assert again.log.read_bytes() == run.log.read_bytes()
    assert again.results == run.results
    assert again.agents == run.agents
    assert again.simulation.world.posted.likes == run.simulation.world.posted.likes
    assert again.simulation.clock.moment == run.simulation.clock.moment


@settings(max_examples=max(1, settings().max_examples // 2))
@given(
    st.builds(
        Settings, st.integers(1, 16), st.integers(0, 99), st.integers(1, 4), st.integers(1, 12)
    ),
    st.sampled_from([lambda seed: PolicyReasoner(seed), late]),
)
def test_stopping_after_any_round_changes_nothing(
    drawn: Settings, decides: Callable[[int], BaseReasoner]
) -> None:
    """Stopped after any round, log, results and agents are those of the whole run."""
    chosen = Settings(
        drawn.agents, drawn.seed, drawn.rounds, drawn.ticks, lambda: decides(drawn.seed)
    )
    with TemporaryDirectory() as folder:
        runs = Runs(Path(folder))
        run = runs.whole(chosen)
        for done in range(1, chosen.rounds + 1):
            assert_equal(runs.resumed(run, chosen, done), run)


@pytest.mark.parametrize("feed", ["chronological", "popular", "random", "collaborative", "mixed"])
@pytest.mark.slow
def test_every_feed_goes_on(feed: str, runs: Runs) -> None:
    """What was seen, liked and ranked is made again from the log, whatever the feed."""
    changed = {
        "feed": feed,
        "beyond_follows": 0.4 if feed == "chronological" else None,
        "mix_collaborative": 1.0,
        "follow_network": "scale_free",
        "mean_follows": 4,
        "shows_scores": True,
    }
    chosen = Settings(agents=25, rounds=3, ticks=12, parameters=changed)
    run = runs.whole(chosen)
    for done in range(1, 3):
        assert_equal(runs.resumed(run, chosen, done), run)


@pytest.mark.parametrize("verbatim", [True, False])
@pytest.mark.sampled(2)
def test_a_replay_goes_on_with_the_answers_that_are_left(verbatim: bool, runs: Runs) -> None:
    """A replayed run stopped after any round goes on as it would have."""
    recorded = runs.whole(Settings(agents=20))

    def replay() -> ReplayReasoner:
        return ReplayReasoner(recorded.log, verbatim=verbatim)

    chosen = Settings(agents=20, reasoner=replay)
    run = runs.whole(chosen)
    for done in range(1, 4):
        assert_equal(runs.resumed(run, chosen, done), run)


def test_words_that_wait_for_their_post_go_on(runs: Runs) -> None:
    """A text that has come, and whose post is published in the next round, is kept until then."""
    chosen = Settings(agents=12, rounds=6, ticks=2, writes=lambda call: f"by {call.agent.name}")
    run = runs.whole(chosen)
    waiting = [done for done, (snapshot, _) in enumerate(run.kept, 1) if b'"by ' in snapshot]
    assert_equal(runs.resumed(run, chosen, waiting[0]), run)


@pytest.mark.parametrize("limit", [{"max_calls": 3}, {"max_tokens": 20}, {}])
@pytest.mark.slow
def test_a_budget_goes_on(limit: dict[str, int], runs: Runs) -> None:
    """A restored budget counts what was spent before: decisions fall back from the same one on."""
    chosen = Settings(reasoner=lambda: Spending(Budget(**limit)))
    run = runs.whole(chosen)
    fallbacks = run.results.totals.fallbacks.total()
    assert fallbacks > 0 if limit else fallbacks == 0
    for done in range(1, 4):
        again = runs.resumed(run, chosen, done)
        assert_equal(again, run)
        budgets = [one.simulation.reasoner.budget for one in (again, run)]
        assert budgets[0].calls == budgets[1].calls > 0
        assert budgets[0].tokens == budgets[1].tokens > 0


def test_what_agents_lived_through_before_is_kept(tmp_path: Path) -> None:
    """Agents keep the history, state and intention that they came with after a resume."""
    past = StateTransition(
        AgentState.IDLE, AgentState.COMPOSING, "woke", datetime(2025, 1, 1, tzinfo=UTC), {"why": 1}
    )

    class Experienced(Settings):
        def simulation(self, log: RunLog, clock: SimulatedClock) -> Run[Any]:
            agents = [
                SocialAgent(
                    f"a{n}",
                    interests=["tea"],
                    state=AgentState.COMPOSING,
                    state_history=[past],
                    ticks_in_state=n,
                )
                for n in range(8)
            ]
            # and then none
            agents[3].state, agents[3].pending_action = AgentState.ENGAGING_REPLY, "reply"
            return Run(
                Feed(first_posts=()), agents, rounds=3, ticks=3, logger=log.logger, clock=clock
            )

    runs, chosen = Runs(tmp_path), Experienced()
    run = runs.whole(chosen)
    assert run.agents[0][-1][0] == past
    assert run.simulation.agents[3].pending_action is None
    for done in range(1, 4):
        assert_equal(runs.resumed(run, chosen, done), run)


def test_attributes_that_change_in_a_run_survive(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attributes that a user's own agents change as they go are what they were after a resume."""
    settings = Settings(agents=5, ticks=4)
    plain = runs.whole(settings)
    assert all(b"attributes" not in snapshot for snapshot, _ in plain.kept)

    monkeypatch.setattr(SocialAgent, "should_engage", counting(SocialAgent.should_engage))
    whole = runs.whole(settings)
    weighed = [agent.attributes for agent in whole.simulation.agents]
    assert any(weighed)
    for done in (1, 2):
        again = runs.resumed(whole, settings, done)
        assert_equal(again, whole)
        assert [agent.attributes for agent in again.simulation.agents] == weighed


@pytest.mark.parametrize("value", [["nested", ["list"]], {"a": {"dict": 1}}, 0.25])
def test_attributes_of_any_form_survive(value: Any, runs: Runs) -> None:
    """Attributes of agents from a file come back as they were, in whatever form they are."""

    class Described(Settings):
        def simulation(self, log: RunLog, clock: SimulatedClock) -> Run[Any]:
            agents = [
                SocialAgent("plain"),
                SocialAgent("described", interests=["tea"], attributes={"own": value, "age": 40}),
            ]
            return Run(
                Feed(first_posts=()), agents, rounds=2, ticks=3, logger=log.logger, clock=clock
            )

    chosen = Described()
    again = runs.resumed(runs.whole(chosen), chosen, 1)
    assert [agent.attributes for agent in again.simulation.agents] == [
        {},
        {"own": value, "age": 40},
    ]


def counting(should_engage: Callable[..., bool]) -> Callable[..., bool]:
    """Return a method that does the same, and counts its calls in an attribute."""

    def count_and_engage(agent: SocialAgent, context: Any) -> bool:
        agent.attributes["weighed"] = agent.attributes.get("weighed", 0) + 1
        return should_engage(agent, context)

    return count_and_engage
