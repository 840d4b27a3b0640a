"""Worlds: a rumour beside another library, and how busy a model is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from enum import StrEnum
from functools import partial
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import networkx as nx

from prism import Run
from prism.agents import synthetic_population
from prism.examples import rumour
from prism.reasoner import Decision, Question, Reasoner
from prism.runlog import RunLog, SimulatedClock
from prism.social import Feed
from prism.statechart import AgentState, Statechart, Transition
from prism.worlds import Agent, World, during, param, small_world
from tests.benchmarks.harness import FULL, Claim, Effort, Measurement, Table, ratio
from tests.benchmarks.reasoner import SLOTS, model_server, pool_of
from tests.benchmarks.rumours import with_mesa

ROUNDS = 40
MOST_OF_MESA, MOST_OF_MESA_LOGGED, MOST_IDLE = 1.25, 1.7, 0.03
LEAST_BUSY, TAIL = 0.9, 10
"""Of the slots, although some answers are slow."""
MOST_DIFFERENCE = 0.1
"""Of shares of one turn, the standard deviation is 0.05 among 10,000."""


def run(effort: Effort) -> list[Table]:
    """Measure the rumour and how busy slots are."""
    people, turns, agents = (10_000, 5, 1_000) if effort == FULL else (1_000, 2, 500)
    return [
        *_rumours(people, turns),
        _idle(20 * people, turns),
        _slots(agents, 24 if effort == FULL else 16),
    ]


# The rumour


class Crowd(rumour.Rumour):
    """The rumour, with several spreaders at first."""

    begun: int = param(1, "Number of spreaders at first.", least=1)

    def setup(self) -> None:
        """Let more people know."""
        super().setup()
        for person in self.agents[: self.begun]:
            person.begin_in(rumour.Mind.SPREADER)


def _rumours(people: int, turns: int) -> list[Table]:
    ways: dict[str, Callable[[int, Any], tuple[float, float]]] = {
        "prism": _prism,
        "prism, log written": partial(_prism, logs=True),
        "Mesa, turns in a random order": partial(_mesa, shuffles=True),
        "Mesa, turns in a fixed order": partial(_mesa, shuffles=False),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    names = list(ways)
    for turn in range(turns):
        edges = Run(_crowd(people), people, seed=turn).world.network.pairs()
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            found[name].append(ways[name](turn, (people, edges)))

    times = [
        Measurement(name, tuple(seconds / people / ROUNDS * 1e6 for seconds, _ in each))
        for name, each in found.items()
    ]
    shares = [Measurement(name, tuple(share for _, share in each)) for name, each in found.items()]
    plain, logged, *mesas = times
    claims = []
    for mesa in mesas:
        text = f"time against {mesa.name}"
        claims += ratio(text, plain, mesa, at_most=MOST_OF_MESA)
        claims += ratio(f"{text}, log written", logged, mesa, at_most=MOST_OF_MESA_LOGGED)

    return [
        Table(f"a rumour among {people:,}: one agent-tick", "us", plain.name, times, claims),
        Table("share that knows it in the end", "", plain.name, shares, [_agreement(shares)]),
    ]


def _agreement(shares: Sequence[Measurement]) -> Claim:
    ours, _, mesa, _ = shares
    difference = abs(mean(ours.samples) - mean(mesa.samples))
    middle = abs(ours.median - mesa.median)
    text = "difference of the mean share to Mesa's"
    return Claim(text, difference, middle, "", at_most=MOST_DIFFERENCE)


def _crowd(people: int) -> Crowd:
    return Crowd(begun=people // 100, tiring=0.1)


def _prism(seed: int, given: Any, *, logs: bool = False) -> tuple[float, float]:
    clock = SimulatedClock()
    with TemporaryDirectory() as folder, ExitStack() as stack:
        log = RunLog(Path(folder) / "events.jsonl", clock) if logs else None
        logger = None if log is None else stack.enter_context(closing(log)).logger
        run = Run(_crowd(given[0]), given[0], seed=seed, logger=logger, clock=clock)
        # as the other library, which has made its agents and network before
        run.prepare(logger)
        began = process_time()
        results = run.run()
        # what is written when it is closed counts, too
        stack.close()
        taken = process_time() - began

    return taken, float(results.series("reached")[-1] or 0)


def _mesa(seed: int, given: Any, *, shuffles: bool) -> tuple[float, float]:
    people, edges = given
    graph = nx.Graph()
    graph.add_nodes_from(range(people))
    graph.add_edges_from(edges)
    model = with_mesa.Rumour(graph, people // 100, 0.1, seed, shuffles=shuffles)

    began = process_time()
    for _ in range(ROUNDS):
        model.step()

    return process_time() - began, model.reached()


# Idle agents


class Asleep(World[rumour.Person]):
    """People of whom one alone has anything to do, which is nothing."""

    rounds = ROUNDS

    def setup(self) -> None:
        """Wake one."""
        self.agents[0].begin_in(rumour.Mind.SPREADER)

    @during(rumour.Mind.SPREADER)
    def wait(self, person: rumour.Person) -> None:
        """Do nothing."""


def _idle(people: int, turns: int) -> Table:
    found = []
    for turn in range(3 * turns):
        few, many = (_rounds_asleep(size, turn) for size in (people // 100, people))
        found.append((many - few) / (people - people // 100) * 1e6)

    idle = Measurement("an idle agent", tuple(found))
    claim = Claim("an idle agent", idle.best, idle.median, "us", at_most=MOST_IDLE)

    return Table(f"one of {people:,} idle agents in a tick", "us", idle.name, [idle], [claim])


def _rounds_asleep(people: int, seed: int) -> float:
    """Return the seconds of a round; in the first, fields are looked at, once in a run."""
    ends: list[float] = []
    Run(Asleep, people, seed=seed).run(lambda _: ends.append(process_time()))
    return (ends[-1] - ends[0]) / (ROUNDS - 1)


# Slots


class Timed(Reasoner):
    """A reasoner that adds up the time in which at least one decision was pending."""

    pending = 0.0
    _open = 0
    _since = 0.0

    async def answer(self, questions: Sequence[Question]) -> list[Decision]:
        if not self._open:
            self._since = perf_counter()
        self._open += 1
        try:
            return await super().answer(questions)
        finally:
            self._open -= 1
            if not self._open:
                self.pending += perf_counter() - self._since


Mood = StrEnum("Mood", ["CALM", "WORRIED"])


class Neighbour(Agent):
    """Somebody who worries, or calms down."""

    chart = Statechart(
        Mood,
        [Transition("hears", one, other) for one in Mood for other in Mood],
        initial=Mood.CALM,
        decision_states=list(Mood),
    )


class Street(World[Neighbour]):
    """People who hear of each other's moods, each of whom depends on four neighbours alone."""

    independent = True

    def setup(self) -> None:
        """Connect those next to each other."""
        self.network = small_world(self, 4, 0)

    def depends(self, agent: Neighbour) -> Iterable[Neighbour]:
        """Return the neighbours, whose moods the agent hears of."""
        return agent.neighbours

    @during(*Mood)
    async def listen(self, neighbour: Neighbour) -> None:
        """Change one's mood, or not, in three of ten ticks."""
        if neighbour.random.chance(0.3):
            worried = neighbour.neighbours.count(Mood.WORRIED)
            await neighbour.decide("hears", {"tick": self.tick_number, "worried": worried})


def _slots(agents: int, ticks: int) -> Table:
    population = synthetic_population(agents, seed=1)
    feed = Run(Feed(first_posts=population.posts), population.agents, rounds=1, seed=1)
    street = Run(Street, agents, rounds=1, ticks=ticks, seed=1)
    near = Measurement("turns that depend on neighbours", (_busy(street, Mood.CALM),))
    read = Measurement(
        "the feed, in which all read what all write", (_busy(feed, AgentState.SCROLLING),)
    )
    claim = Claim("slots busy", near.best, near.median, "", at_least=LEAST_BUSY)
    title = f"share of the slots busy, {agents:,} agents, p99 of an answer {TAIL} x the median"
    return Table(title, "", near.name, [near, read], [claim])


def _busy(run: Run[Any], fallback: Any) -> float:
    """Return the share of the slots' time that is used while a decision is pending."""
    with model_server(TAIL) as (host, counts):
        reasoner = Timed(pool_of([host]), mode="chat", fallback=fallback)
        run.replace(reasoner=reasoner).run()
    return float(counts["busy"] / SLOTS / reasoner.pending)
