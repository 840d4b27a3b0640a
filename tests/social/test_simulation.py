"""Running a population through rounds and ticks."""

import asyncio
import gc
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import structlog

import prism
from prism.agents import SeedPost, SocialAgent, synthetic_population
from prism.errors import FieldValueError, ReasonerError, SimulationError
from prism.runlog import SimulatedClock
from prism.simulation import Loop
from prism.social import Draft, RoundSummary, Simulation, TemplateComposer
from prism.social._world import SocialWorld
from prism.statechart import (
    AgentState,
    BaseReasoner,
    Decision,
    PolicyReasoner,
    Question,
    Reasoner,
    social_media_chart,
)
from prism.telemetry.events import (
    AGENT_JOINED,
    DECISION,
    POST_LIKED,
    POST_PUBLISHED,
    ROUND_ENDED,
    ROUND_STARTED,
    RUN_ENDED,
    RUN_STARTED,
    TRANSITION,
)

S = AgentState

WRITE_LOG = """
import sys
from pathlib import Path
from prism.agents import synthetic_population
from prism.runlog import RunLog, SimulatedClock
from prism.social import Simulation
population = synthetic_population(60, seed=3)
clock = SimulatedClock()
with RunLog(Path(sys.argv[1]), clock) as log:
    Simulation(population.agents, population.posts, seed=3, rounds=4, logger=log.logger, clock=clock).run()
"""


class SlowReasoner(BaseReasoner):
    """Answers as the policy does, each question after a delay of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.overtaken = 0
        self._policy = PolicyReasoner()

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        answered: list[int] = []

        async def one(number: int, question: Question) -> Decision:
            await asyncio.sleep(random.random() / 1000)
            answered.append(number)
            return (await self._policy.answer([question]))[0]

        decisions = await asyncio.gather(
            *(one(number, question) for number, question in enumerate(questions))
        )
        self.overtaken += answered != sorted(answered)
        return list(decisions)


class RecordingReasoner(PolicyReasoner):
    """The policy, with a record of what it was asked each time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Sequence[Question]] = []

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        self.asked.append(questions)
        return await super().answer(questions)


class BrokenReasoner(BaseReasoner):
    """Answers the first few times, then fails."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.times = 3
        self._error = error

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        self.times -= 1
        if self.times == 0:
            raise self._error
        return await PolicyReasoner().answer(questions)


class AlwaysReasoner(BaseReasoner):
    """Always chooses one state."""

    def __init__(self, state: Any) -> None:
        super().__init__()
        self._state = state

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        return [Decision(self._state, "policy") for _ in questions]


class KindComposer:
    """Always writes one kind of post."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def compose(self, agent: Any, post: Any, stream: Any) -> Draft:
        return Draft(self.kind, "composed", ("art",))


def two_agents(**fields: Any) -> list[SocialAgent]:
    """Make two agents that care for the same and engage with anything."""
    return [
        SocialAgent(name, interests=["art"], engagement_threshold=0.0, **fields)
        for name in ("ann", "ben")
    ]


# The same run


def test_same_seed_gives_the_same_bytes(run_logged: Callable[..., Any]) -> None:
    """Two runs of one seed write byte-identical logs and come to equal results."""
    one, other = run_logged(seed=5), run_logged(seed=5)
    assert one.log == other.log
    assert one.results == other.results
    assert len(one.events()) > 1000


@pytest.mark.parametrize(
    ("options", "event"),
    [
        ({"composer": KindComposer("reply")}, TRANSITION),
        ({"reasoner": AlwaysReasoner(S.COMPOSING)}, POST_PUBLISHED),
    ],
)
def test_another_seed_gives_another_run(
    options: dict[str, Any], event: str, run_logged: Callable[..., Any]
) -> None:
    """The same population decides differently under another seed, and also writes differently."""
    found = []
    for seed in (0, 1):
        population = synthetic_population(60)
        found.append(
            run_logged(population.agents, population.posts, seed=seed, **options).events(event)
        )
    assert found[0] != found[1]


def test_processes_with_other_hash_seeds_write_the_same_bytes(tmp_path: Path) -> None:
    """The log does not depend on the process, nor on the order in which it happens to hold sets."""
    logs = []
    for hash_seed in ("1", "2"):
        path = tmp_path / hash_seed
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(prism.__file__).parents[1]),
            "PYTHONHASHSEED": hash_seed,
        }
        subprocess.run([sys.executable, "-c", WRITE_LOG, str(path)], env=environment, check=True)
        logs.append(path.read_bytes())
    assert logs[0] == logs[1]
    assert logs[0].count(b"\n") > 1000


def test_order_of_answers_does_not_matter(run_logged: Callable[..., Any]) -> None:
    """A reasoner whose answers overtake each other gives the same bytes as one that answers at once."""
    slow = SlowReasoner()
    assert (
        run_logged(reasoner=slow, rounds=4).log
        == run_logged(reasoner=PolicyReasoner(), rounds=4).log
    )
    assert slow.overtaken > 10


# Asking


def test_decisions_of_a_tick_are_asked_together_and_applied_in_order(
    run_logged: Callable[..., Any],
) -> None:
    """There is one call a tick at most, in agent order, and the moves follow in the same order."""
    reasoner = RecordingReasoner()
    run = run_logged(reasoner=reasoner)
    order = {agent.agent_id: number for number, agent in enumerate(run.simulation.agents)}
    ticks = [
        [event["agent_id"] for event in events]
        for _, events in groupby(
            run.events(DECISION), key=lambda event: (event["round"], event["tick"])
        )
    ]
    asked = [[question.agent.agent_id for question in questions] for questions in reasoner.asked]
    assert asked == ticks
    assert all(agents == sorted(agents, key=order.__getitem__) for agents in asked)
    assert max(map(len, asked)) > 5
    decided = [(event["agent_id"], event["chosen"]) for event in run.events(DECISION)]
    moved = [
        (event["agent_id"], event["to_state"])
        for event in run.events(TRANSITION)
        if event["trigger"] == "decides"
    ]
    assert moved == decided


def test_decision_is_asked_only_where_several_moves_are_open(
    run_logged: Callable[..., Any],
) -> None:
    """Every question comes from EVALUATING with at least two distinct options and the post it is about."""
    reasoner = RecordingReasoner()
    run_logged(reasoner=reasoner)
    questions = [question for asked in reasoner.asked for question in asked]
    assert {question.state for question in questions} == {S.EVALUATING}
    assert all(len(question.options) == len(set(question.options)) > 1 for question in questions)
    assert all(question.agent.should_engage(question.context) for question in questions)


@pytest.mark.parametrize("error", [LookupError("no more answers"), ConnectionError("gone")])
def test_failing_reasoner_ends_the_run(error: Exception, run_logged: Callable[..., Any]) -> None:
    """What a reasoner raises is what the run raises."""
    with pytest.raises(type(error)) as raised:
        run_logged(reasoner=BrokenReasoner(error))
    assert raised.value is error


@pytest.mark.parametrize("chosen", [S.RESTING, None, "nonsense"])
def test_choice_outside_the_options_ends_the_run(
    chosen: Any, run_logged: Callable[..., Any]
) -> None:
    """A reasoner that chooses what is not open is named with its choice, never passed over."""
    with pytest.raises(
        ReasonerError, match=r"agent '\w+': the reasoner chose .* not one of composing"
    ):
        run_logged(reasoner=AlwaysReasoner(chosen))


class DownClient:
    """A chat client whose server is down every other time."""

    def __init__(self) -> None:
        self.asked = 0

    async def chat(self, messages: Any, format: Any) -> str:  # noqa: A002
        self.asked += 1
        if self.asked % 2:
            raise ConnectionError(f"down {self.asked % 4}")
        return '{"next_state": "engaging_like"}'


def test_fallbacks_are_counted_by_reason(
    run_logged: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Answered decisions and every reason of a fallback are counted, and a fallback means scrolling on."""
    client = DownClient()
    run = run_logged(reasoner=Reasoner(client, fallback=S.SCROLLING))
    totals, decisions = run.results.totals, run.events(DECISION)
    reasons = Counter(event["reason"] for event in decisions if event["source"] == "fallback")
    assert totals.fallbacks == reasons
    assert set(reasons) == {"ConnectionError: down 1", "ConnectionError: down 3"}
    assert totals.decisions_asked == client.asked == len(decisions)
    assert totals.decisions_answered == client.asked - reasons.total() > 0
    assert {(event["source"], event["chosen"]) for event in decisions} == {
        ("fallback", "scrolling"),
        ("model", "engaging_like"),
    }


# What a run leaves behind


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
    """The log tells how the run was set up, each round's states and counts, and the totals at its end."""
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


class Watched(SocialWorld):
    """Counts its agents by state when the ticks of a round are over."""

    def end_round(self, number: int) -> RoundSummary:
        self.seen = Counter(agent.state.value for agent in self.agents)
        return super().end_round(number)


def test_states_of_every_round_are_those_before_it_ends() -> None:
    """A round's states name every state, and count the agents as they are after its last tick."""
    population = synthetic_population(60)
    clock, composer = SimulatedClock(), TemplateComposer()

    def make_world(logger: Any) -> Watched:
        posts = population.posts
        return Watched(
            population.agents, posts, composer=composer, seed=0, clock=clock, logger=logger
        )

    loop = Loop(make_world, rounds=4, clock=clock)
    seen: list[Counter[str]] = []
    results = loop.run(lambda _: seen.append(loop.world.seen))
    for summary, counts in zip(results.rounds, seen, strict=True):
        assert list(summary.states) == [state.value for state in S]
        assert summary.states == {state.value: counts[state.value] for state in S}
        assert len(+counts) > 1


def test_what_was_decided_is_carried_out() -> None:
    """A round ends by publishing and liking what was decided on, however few ticks it has."""
    population = synthetic_population(200)
    results = Simulation(population.agents, population.posts, rounds=5, ticks_per_round=3).run()
    assert results.totals.likes > 0
    assert results.totals.replies + results.totals.reshares > 0
    assert all(agent.pending_action is None for agent in population.agents)


def test_everyone_is_idle_after_a_round() -> None:
    """When a round has ended, every agent is in IDLE."""
    population = synthetic_population(60)
    simulation = Simulation(population.agents, population.posts, rounds=3)
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
    """Nobody likes a post twice, nor its own, nor one that is not published yet, and the network agrees."""
    authors: dict[str, str] = {}
    liked = []
    for event in logged.events(POST_PUBLISHED, POST_LIKED):
        if event["event"] == POST_PUBLISHED:
            authors[event["post_id"]] = event["agent_id"]
            continue
        liked.append((event["agent_id"], event["post_id"]))
        assert event["author_id"] == authors[event["post_id"]] != event["agent_id"]
    assert len(liked) == len(set(liked)) > 0
    assert logged.simulation.network.likes == Counter(post_id for _, post_id in liked)


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
    """An agent that composes goes through the state of its kind and publishes once, with the true parent."""
    run = run_logged(
        two_agents(),
        [SeedPost("ben", "old", ("art",))],
        rounds=1,
        ticks_per_round=5,
        reasoner=AlwaysReasoner(S.COMPOSING),
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
        ticks_per_round=4,
        reasoner=AlwaysReasoner(S.ENGAGING_LIKE),
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


# Running


async def test_runs_inside_an_event_loop() -> None:
    """`arun` gives the results of `run` in a loop that exists, and lets others in that loop go on."""

    def simulation() -> Simulation:
        population = synthetic_population(40)
        return Simulation(population.agents, population.posts, rounds=3)

    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    summaries: list[RoundSummary] = []
    results = await simulation().arun(summaries.append)
    task.cancel()
    assert turns >= 3 * 12
    assert results.rounds == tuple(summaries)
    assert results == await asyncio.to_thread(simulation().run)


async def test_run_can_be_cancelled() -> None:
    """A run without a model stops when it is cancelled, though it never waits for anything."""
    population = synthetic_population(40)
    simulation = Simulation(population.agents, population.posts, rounds=1000)
    seen: list[int] = []
    task = asyncio.create_task(simulation.arun(lambda summary: seen.append(summary.number)))
    while not seen:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(seen) < 10


def test_every_round_is_reported_as_it_ends() -> None:
    """The function given to a run gets every round, in order, while the run goes on."""
    population = synthetic_population(20)
    simulation = Simulation(population.agents, population.posts, rounds=3)
    seen: list[tuple[int, int]] = []
    results = simulation.run(
        lambda summary: seen.append((summary.number, simulation.agents[0].random is not None))
    )
    assert seen == [(1, True), (2, True), (3, True)]
    assert [summary.number for summary in results.rounds] == [1, 2, 3]


@pytest.mark.parametrize("collecting", [True, False])
@pytest.mark.parametrize("reasoner", [None, BrokenReasoner(LookupError("no more answers"))])
def test_garbage_collector_is_left_as_it_was(
    collecting: bool, reasoner: BaseReasoner | None
) -> None:
    """After a run, ended or broken off, the garbage collector is set as it was before."""
    population = synthetic_population(20)
    simulation = Simulation(population.agents, population.posts, rounds=2, reasoner=reasoner)
    enabled, thresholds = gc.isenabled(), gc.get_threshold()
    try:
        (gc.enable if collecting else gc.disable)()
        try:
            simulation.run()
        except LookupError:
            assert reasoner is not None
        assert gc.isenabled() == collecting
        assert gc.get_threshold() == thresholds
    finally:
        (gc.enable if enabled else gc.disable)()


def test_events_go_to_configured_structlog(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a logger of its own a run speaks to structlog once that is configured, and is silent before."""
    population = synthetic_population(5)
    Simulation(population.agents, population.posts, rounds=1).run()
    assert capsys.readouterr() == ("", "")
    with structlog.testing.capture_logs() as events:
        Simulation(synthetic_population(5).agents, population.posts, rounds=1).run()
    assert {RUN_STARTED, TRANSITION, ROUND_ENDED, RUN_ENDED} <= {event["event"] for event in events}


@pytest.mark.parametrize(
    ("agents", "options", "message"),
    [
        ([], {}, "at least one agent"),
        (["ann"], {"rounds": 0}, "rounds must be a whole number, 1 or more, got 0"),
        (
            ["ann"],
            {"ticks_per_round": -1},
            "ticks_per_round must be a whole number, 1 or more, got -1",
        ),
        (["cem", "ann", "ben", "ann", "cem"], {}, "more than once: ann, cem"),
    ],
)
def test_impossible_simulation_is_refused(
    agents: list[str], options: dict[str, int], message: str
) -> None:
    """No agents, shared ids, and rounds or ticks below 1 are refused with the reason."""
    with pytest.raises(FieldValueError, match=message):
        Simulation([SocialAgent(name) for name in agents], **options)


def test_a_simulation_runs_once() -> None:
    """A second run of the same simulation is refused, because agents and posts are no longer what they were."""
    population = synthetic_population(5)
    simulation = Simulation(population.agents, population.posts, rounds=1)
    simulation.run()
    with pytest.raises(SimulationError, match="make a new one"):
        simulation.run()


def test_posts_of_strangers_are_refused() -> None:
    """Seed posts by nobody of the population are refused by name."""
    with pytest.raises(FieldValueError, match="which has no stranger"):
        Simulation(synthetic_population(5).agents, [SeedPost("stranger", "hello")])
