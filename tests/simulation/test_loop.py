"""The loop, with a world that has nothing to do with social agents: a rumour."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson
import pytest

from prism.errors import FieldValueError, ReasonerError, SimulationError
from prism.randomness import RandomStream
from prism.runlog import ReplayReasoner, RunLog, SimulatedClock
from prism.simulation import Loop
from prism.statechart import (
    BaseReasoner,
    Budget,
    Decision,
    PolicyReasoner,
    Question,
    Statechart,
    Transition,
)
from prism.testing import LateReasoner

ROUNDS, TICKS, PEOPLE = 5, 4, 12


class Mind(StrEnum):
    """What a person makes of the rumour."""

    IGNORANT = "ignorant"
    SPREADER = "spreader"
    STIFLER = "stifler"


@dataclass
class Person:
    """Somebody who hears, tells or is tired of the rumour; no class of prism's."""

    agent_id: str
    state: Mind = Mind.IGNORANT
    heard: int = 0
    random: RandomStream = field(default_factory=lambda: RandomStream(0))


@dataclass(frozen=True)
class Count:
    """How many there are of each mind."""

    numbers: dict[str, int]
    round: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain data."""
        return {"round": self.round, "minds": self.numbers}


@dataclass(frozen=True)
class Spread:
    """How far the rumour has come."""

    rounds: list[Count] = field(default_factory=list)

    @property
    def totals(self) -> Count:
        """The counts at the end."""
        return self.rounds[-1]

    def to_dict(self) -> dict[str, Any]:
        """Return the counts of every round."""
        return {"rounds": [count.to_dict() for count in self.rounds]}


class Rumour:
    """A rumour after Daley and Kendall (1964) that everybody reads in the paper."""

    def __init__(self, logger: Any = None, seed: int = 1) -> None:
        self.chart = Statechart(
            Mind,
            [
                Transition("hears", Mind.IGNORANT, Mind.SPREADER),
                Transition("hears", Mind.IGNORANT, Mind.IGNORANT),
                Transition("tires", Mind.SPREADER, Mind.STIFLER),
            ],
            initial=Mind.IGNORANT,
            decision_states=[Mind.IGNORANT],
            logger=logger,
        )
        self.agents = [Person(f"p{number}") for number in range(PEOPLE)]
        self.begun: list[int] = []
        self._seed = seed

    def describe(self) -> dict[str, Any]:
        return {"people": len(self.agents)}

    def begin(self) -> None:
        self.agents[0].state = Mind.SPREADER

    def begin_round(self, number: int) -> None:
        self.begun.append(number)
        for person in self.agents:
            person.random = RandomStream(self._seed, person.agent_id, number)

    def step(self, person: Person) -> Question | None:
        if person.state is Mind.IGNORANT:
            person.heard += 1
            options = (Mind.SPREADER, Mind.IGNORANT)
            return Question(person, person.state, "hears", options, {"times": person.heard})
        if person.state is Mind.SPREADER and person.random.random() < 0.3:
            self.chart.fire(person, "tires")
        return None

    def apply(self, question: Question, decision: Decision) -> None:
        self.chart.fire_to(question.agent, "hears", decision.chosen, question.context)

    def end_round(self, number: int) -> Count:
        numbers = Counter(person.state.value for person in self.agents)
        return Count(dict(sorted(numbers.items())), number)

    def results(self, rounds: Sequence[Count]) -> Spread:
        return Spread(list(rounds))

    def snapshot(self) -> dict[str, Any]:
        return {"people": [[person.state.value, person.heard] for person in self.agents]}

    def restore(
        self, snapshot: Mapping[str, Any], events: Iterable[Mapping[str, Any]]
    ) -> list[Count]:
        for person, (state, heard) in zip(self.agents, snapshot["people"], strict=True):
            person.state, person.heard = Mind(state), heard
        return [
            Count(event["minds"], event["round"])
            for event in events
            if event["event"] == "round.ended"
        ]


class Paying(PolicyReasoner):
    """The policy, which pays for each answer out of a budget."""

    def __init__(self) -> None:
        super().__init__()
        self.budget = Budget(max_calls=1000)

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        for _ in questions:
            self.budget.take()
        return await super().answer(questions)


class Stubborn(BaseReasoner):
    """Always chooses what is not among the options."""

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        return [Decision(Mind.STIFLER, "policy") for _ in questions]


class Closing(PolicyReasoner):
    """The policy, with a connection to close."""

    is_closed = False

    async def close(self) -> None:
        self.is_closed = True


@dataclass(frozen=True)
class Ended:
    """A loop that has come to its end."""

    loop: Loop[Count, Spread]
    results: Spread
    log: Path
    kept: list[tuple[dict[str, Any], int]]

    def events(self) -> list[dict[str, Any]]:
        """Return the events of its log."""
        return [orjson.loads(line) for line in self.log.read_bytes().splitlines()]


def spread(path: Path, reasoner: Any = None, **options: Any) -> Ended:
    """Run the rumour with a log, and keep a snapshot of every round."""
    clock = SimulatedClock()
    kept = []
    with RunLog(path, clock) as log:
        settings = {"rounds": ROUNDS, "ticks_per_round": TICKS, "seed": 1, **options}
        loop = Loop(Rumour, reasoner=reasoner, logger=log.logger, clock=clock, **settings)
        results = loop.run(lambda _: kept.append((loop.snapshot(), log.save())))
    return Ended(loop, results, path, kept)


def test_any_world_is_run(tmp_path: Path) -> None:
    """A world with another state enum and other agents goes through its rounds, and spreads."""
    ended = spread(tmp_path / "log")
    assert [count.round for count in ended.results.rounds] == [1, 2, 3, 4, 5]
    assert ended.loop.world.begun == [1, 2, 3, 4, 5]
    ignorant = [count.numbers.get("ignorant", 0) for count in ended.results.rounds]
    assert PEOPLE > ignorant[0] >= ignorant[-1]


def test_the_log_tells_the_run_in_the_words_of_the_world(tmp_path: Path) -> None:
    """The loop writes how the run is set up, each round and the end, with what the world says."""
    ended = spread(tmp_path / "log")
    events = ended.events()
    assert events[0] == {
        "event": "run.started",
        "timestamp": "2026-01-01T00:00:00Z",
        "round": 0,
        "tick": 0,
        "schema": 1,
        "people": PEOPLE,
        "rounds": ROUNDS,
        "ticks_per_round": TICKS,
        "seed": 1,
    }
    rounds = [event for event in events if event["event"] == "round.ended"]
    assert [event["minds"] for event in rounds] == [one.numbers for one in ended.results.rounds]
    assert events[-1]["event"] == "run.ended"
    assert events[-1]["minds"] == ended.results.totals.numbers


def test_answers_that_come_late_change_nothing(tmp_path: Path) -> None:
    """A reasoner that is asked about several questions at once writes the same bytes."""
    assert (
        spread(tmp_path / "late", LateReasoner(PolicyReasoner(1), concurrency=2)).log.read_bytes()
        == spread(tmp_path / "prompt", PolicyReasoner(1)).log.read_bytes()
    )


@pytest.mark.parametrize("done", range(1, ROUNDS + 1))
def test_a_world_goes_on_from_a_snapshot(done: int, tmp_path: Path) -> None:
    """Restored after any round, a world comes to the same log, results and agents."""
    whole = spread(tmp_path / "whole")
    snapshot, length = whole.kept[done - 1]
    path = tmp_path / "again"
    path.write_bytes(whole.log.read_bytes()[:length])
    events = whole.events()[: path.read_bytes().count(b"\n")]
    clock = SimulatedClock()
    with RunLog(path, clock, keep=length) as log:
        loop = Loop(
            Rumour, rounds=ROUNDS, ticks_per_round=TICKS, seed=1, logger=log.logger, clock=clock
        )
        loop.restore(orjson.loads(orjson.dumps(snapshot)), events)
        assert len(loop.finished) == done
        assert loop.snapshot() == snapshot
        results = loop.run()
    assert path.read_bytes() == whole.log.read_bytes()
    assert results == whole.results
    states = [[(one.state, one.heard) for one in run.world.agents] for run in (loop, whole.loop)]
    assert states[0] == states[1]


def test_a_replay_goes_on_after_a_restore(tmp_path: Path) -> None:
    """A reasoner that replays a log passes over the decisions made before the run was stopped."""
    whole = spread(tmp_path / "whole")
    snapshot, length = whole.kept[0]
    path = tmp_path / "again"
    path.write_bytes(whole.log.read_bytes()[:length])
    events = whole.events()[: path.read_bytes().count(b"\n")]
    clock = SimulatedClock()
    with RunLog(path, clock, keep=length) as log:
        loop = Loop(
            Rumour,
            rounds=ROUNDS,
            ticks_per_round=TICKS,
            seed=1,
            reasoner=ReplayReasoner(whole.log, verbatim=True),
            logger=log.logger,
            clock=clock,
        )
        loop.restore(snapshot, events)
        loop.run()
    assert path.read_bytes() == whole.log.read_bytes()


def test_a_budget_goes_on_after_a_restore(tmp_path: Path) -> None:
    """What a reasoner had spent when the snapshot was taken is spent after it is restored."""
    whole = spread(tmp_path / "whole", Paying())
    snapshot, _ = whole.kept[1]
    again = Paying()
    loop = Loop(Rumour, reasoner=again)
    loop.restore(snapshot, whole.events())
    assert again.budget.to_dict() == snapshot["spent"]
    assert again.budget.calls > 0


def test_a_choice_outside_the_options_ends_the_run(tmp_path: Path) -> None:
    """A choice that is not among the options is an error with agent, choice and options."""
    with pytest.raises(
        ReasonerError, match=r"agent 'p.': the reasoner chose .* not one of spreader, ignorant"
    ):
        spread(tmp_path / "log", Stubborn())


def test_connections_are_closed_at_the_end(tmp_path: Path) -> None:
    """A reasoner that can be closed is closed when the run has ended."""
    reasoner = Closing()
    spread(tmp_path / "log", reasoner)
    assert reasoner.is_closed


async def test_a_world_runs_in_an_event_loop_that_exists() -> None:
    """`arun` gives the results of `run`, and others in the event loop get their turn."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    results = await Loop(Rumour, rounds=2, ticks_per_round=TICKS).arun()
    task.cancel()
    assert turns >= 2 * TICKS
    assert results == await asyncio.to_thread(Loop(Rumour, rounds=2, ticks_per_round=TICKS).run)


def test_a_loop_runs_once() -> None:
    """A second run of the same loop is refused."""
    loop = Loop(Rumour, rounds=1)
    loop.run()
    with pytest.raises(SimulationError, match="make a new one"):
        loop.run()


@pytest.mark.parametrize(
    "options", [{"rounds": 0}, {"rounds": 1.5}, {"ticks_per_round": 0}, {"ticks_per_round": "3"}]
)
def test_impossible_counts_are_refused(options: dict[str, Any]) -> None:
    """Rounds and ticks that are not whole numbers of 1 or more are refused by name."""
    (name,) = options
    with pytest.raises(FieldValueError, match=f"{name} must be a whole number, 1 or more"):
        Loop(Rumour, **options)
