"""Running a population through rounds and ticks."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prism.agents import SeedPost, SocialAgent
from prism.errors import FieldValueError, ReasonerError, SimulationError
from prism.runlog import SimulatedClock
from prism.simulation._deciding import ManyDecider, deciding_with
from prism.social._composing import Composer, TemplateComposer
from prism.social._posts import Draft, Network, Post, Reader
from prism.social._results import Activity, Results, RoundSummary, summarize
from prism.statechart import (
    AgentState,
    Decision,
    PolicyReasoner,
    Question,
    RandomStream,
    Statechart,
    social_media_chart,
    state_distribution,
)
from prism.statechart.social import (
    ACTION_DONE,
    COMPOSE_DONE,
    DECIDES,
    FEED_READY,
    IGNORES,
    ROUND_ENDS,
    SEES_POST,
)
from prism.statechart.states import state_text
from prism.telemetry._loggers import EventLogger, active_logger
from prism.telemetry.events import (
    AGENT_JOINED,
    POST_LIKED,
    POST_PUBLISHED,
    ROUND_ENDED,
    ROUND_STARTED,
    RUN_ENDED,
    RUN_STARTED,
    SCHEMA_VERSION,
)

DEFAULT_ROUNDS = 10
DEFAULT_TICKS_PER_ROUND = 12

_STEPS_TO_FINISH = 2
"""Composing and publishing."""

_UNDER_WAY = (
    AgentState.COMPOSING,
    AgentState.ENGAGING_LIKE,
    AgentState.ENGAGING_REPLY,
    AgentState.ENGAGING_RESHARE,
)


class Simulation:
    """A population of social agents that scroll, weigh, write and share.

    Each tick every agent takes one step: the time-out if it is due, else what its state calls for.
    The decisions of one tick are asked together and applied in agent order, so a run depends on the
    seed and the answers alone, never on which answer came first. Random numbers are keyed by (seed,
    agent, round).

    Args:
        agents: The population, in the order in which it acts.
        posts: What was posted before the first round, oldest first.
        rounds: Number of rounds, from 1 on.
        ticks_per_round: Steps an agent takes in a round, from 1 on.
        seed: Seed of every random number.
        reasoner: Decides where several moves are open; a `PolicyReasoner` by default.
        composer: Writes what agents publish.
        logger: Where to write the run's events; None means structlog's own logger, once it is
            configured.
        clock: The run's clock.

    Attributes:
        agents: The population.
        chart: The chart that governs every move.
        network: Posts and feeds.
        finished: The rounds that have ended.
        reasoner: Who decides.
        clock: The run's clock.

    Raises:
        FieldValueError: If there are no agents, two share an id, a post is by nobody among them, or
            rounds or ticks are below 1.
    """

    def __init__(
        self,
        agents: Iterable[SocialAgent],
        posts: Iterable[SeedPost] = (),
        *,
        rounds: int = DEFAULT_ROUNDS,
        ticks_per_round: int = DEFAULT_TICKS_PER_ROUND,
        seed: int = 0,
        reasoner: ManyDecider | None = None,
        composer: Composer | None = None,
        logger: EventLogger | None = None,
        clock: SimulatedClock | None = None,
    ) -> None:
        self.agents: list[SocialAgent] = list(agents)
        self._seeds = list(posts)
        _check(self.agents, self._seeds, rounds, ticks_per_round)
        self._rounds = rounds
        self._ticks = ticks_per_round
        self._seed = seed
        self.reasoner: ManyDecider = reasoner or PolicyReasoner(seed)
        self._composer = composer or TemplateComposer()
        self.clock: SimulatedClock = clock or SimulatedClock()
        self._deciding = deciding_with(self.reasoner, logger, self.clock, self._apply)
        self._logger = self._deciding.logger
        self.chart: Statechart[AgentState] = social_media_chart(
            logger=self._logger, clock=self.clock
        )
        self.network: Network = Network(self.agents)
        self.finished: list[RoundSummary] = []
        self._activity = Activity()
        self._has_run = False
        self._steps: dict[AgentState, Callable[[Reader], Question | None]] = {
            AgentState.IDLE: self._open_feed,
            AgentState.SCROLLING: self._look_at_next,
            AgentState.EVALUATING: self._weigh,
            AgentState.COMPOSING: self._compose,
            AgentState.ENGAGING_LIKE: self._like,
            AgentState.ENGAGING_REPLY: self._publish_draft,
            AgentState.ENGAGING_RESHARE: self._publish_draft,
        }

    def run(self, on_round: Callable[[RoundSummary], None] | None = None) -> Results:
        """Run to the end, in an event loop of its own, and close the reasoner's connections, which belong to it.

        Args:
            on_round: Called with every round as it ends.
        """
        with _collecting_after_rounds() as collect:

            def after_round(summary: RoundSummary) -> None:
                collect()
                if on_round is not None:
                    on_round(summary)

            return asyncio.run(self._run_and_close(after_round))

    async def _run_and_close(self, on_round: Callable[[RoundSummary], None]) -> Results:
        try:
            return await self.arun(on_round)
        finally:
            close = getattr(self.reasoner, "close", None)
            if close is not None:
                await close()

    async def arun(self, on_round: Callable[[RoundSummary], None] | None = None) -> Results:
        """Run to the end; the async twin of `run`.

        Raises:
            SimulationError: If it has been run before: agents and posts are not what they were.
        """
        if self._has_run:
            raise SimulationError("this simulation has been run: make a new one, with new agents")

        self._has_run = True
        with self.clock.bound():
            if not self.finished:
                self._start()

            try:
                for number in range(len(self.finished) + 1, self._rounds + 1):
                    self.finished.append(await self._round(number))
                    if on_round is not None:
                        on_round(self.finished[-1])
            finally:
                await self._deciding.close()

            results = summarize(self.network, self.finished)
            self._emit(RUN_ENDED, **results.totals.to_dict())

        return results

    def _start(self) -> None:
        self._emit(
            RUN_STARTED,
            schema=SCHEMA_VERSION,
            chart=self.chart.name,
            agents=len(self.agents),
            rounds=self._rounds,
            ticks_per_round=self._ticks,
            seed=self._seed,
        )
        for agent in self.agents:
            self._emit(
                AGENT_JOINED,
                agent_id=agent.agent_id,
                display_name=agent.name,
                archetype=None if agent.archetype is None else agent.archetype.name,
                interests=agent.interests,
                following=len(agent.following),
                state=agent.state.value,
                timeout_threshold=agent.timeout_threshold,
            )

        for post in self.network.seed(self._seeds):
            self._announce_post(post)

    async def _round(self, number: int) -> RoundSummary:
        self._activity = Activity()
        self.clock.begin_round(number)
        self._emit(ROUND_STARTED, round=number)
        for agent in self.agents:
            agent.random = RandomStream(self._seed, agent.agent_id, number)

        for _ in range(self._ticks):
            self.clock.advance()
            await self._tick()
            # a policy never waits: let an interruption, and others in the loop, have a turn
            await asyncio.sleep(0)

        await self._deciding.end_round()
        states = {
            state.value: count
            for state, count in state_distribution(self.agents, AgentState).items()
        }
        self._finish_round()
        summary = RoundSummary(number, states, self._activity)
        self._emit(ROUND_ENDED, round=number, states=states, **self._activity.to_dict())

        return summary

    def _finish_round(self) -> None:
        """Carry out what agents have decided on, so that no decision is lost, and send everyone to IDLE."""
        for reader in self.network.readers:
            for _ in range(_STEPS_TO_FINISH):
                if reader.agent.state in _UNDER_WAY:
                    self._steps[reader.agent.state](reader)

            if reader.agent.state is not AgentState.IDLE:
                self._fire(reader.agent, ROUND_ENDS)

    async def _tick(self) -> None:
        chart, steps, deciding = self.chart, self._steps, self._deciding
        for reader in self.network.readers:
            agent = reader.agent
            if agent is deciding.next_agent:
                await deciding.settle_next()

            before = agent.state
            if chart.tick(agent) is not None:
                self._activity.timeouts[before.value] += 1
                self._activity.transitions += 1
                continue

            step = steps.get(before)
            question = step(reader) if step is not None else None
            if question is not None:
                await deciding.ask(question)

        self._activity.agent_ticks += len(self.agents)
        await deciding.end_tick()

    def _apply(self, question: Question, decision: Decision) -> None:
        """Make the move that was decided on."""
        if decision.chosen not in question.options:
            raise ReasonerError(_outside(question, decision))

        self._activity.decisions_asked += 1
        if decision.source == "fallback":
            self._activity.fallbacks[decision.reason or "no reason given"] += 1
        else:
            self._activity.decisions_answered += 1

        if (
            self.chart.fire_to(question.agent, DECIDES, decision.chosen, question.context)
            is not None
        ):
            self._activity.transitions += 1

    def _open_feed(self, reader: Reader) -> None:
        if self.network.refresh(reader):
            self._fire(reader.agent, FEED_READY)

    def _look_at_next(self, reader: Reader) -> None:
        if reader.unread:
            reader.post = reader.unread.popleft()
            self._fire(reader.agent, SEES_POST, reader.post)

    def _weigh(self, reader: Reader) -> Question | None:
        """Ignore a post that leaves nothing to decide; else put the question."""
        agent, post = reader.agent, reader.post
        options = self.chart.enabled_targets(agent, DECIDES, post)
        if len(options) > 1:
            return Question(agent, agent.state, DECIDES, tuple(options), post)

        self._fire(agent, IGNORES, post)

        return None

    def _compose(self, reader: Reader) -> None:
        agent, post = reader.agent, reader.post
        if post is None:
            return

        stream = RandomStream(self._seed, agent.agent_id, self.clock.round, self.clock.tick)
        reader.draft = self._composer.compose(agent, post, stream)
        agent.pending_action = kind = reader.draft.kind
        if kind == "post":
            self._publish(reader, reader.draft)

        self._fire(agent, COMPOSE_DONE, post)
        if kind == "post":
            agent.pending_action = None

    def _publish_draft(self, reader: Reader) -> None:
        if reader.draft is not None:
            self._publish(reader, reader.draft)
        reader.agent.pending_action = None
        self._fire(reader.agent, ACTION_DONE, reader.post)

    def _like(self, reader: Reader) -> None:
        post = reader.post
        if post is not None:
            self.network.like(post)
            self._activity.likes += 1
            self._emit(
                POST_LIKED,
                agent_id=reader.agent.agent_id,
                post_id=post.post_id,
                author_id=post.author_id,
            )

        self._fire(reader.agent, ACTION_DONE, post)

    def _publish(self, reader: Reader, draft: Draft) -> None:
        post = self.network.publish(reader.agent.agent_id, draft, reader.post)
        reader.draft = None
        counter = {"post": "posts", "reply": "replies", "reshare": "reshares"}[post.kind]
        setattr(self._activity, counter, getattr(self._activity, counter) + 1)
        self._announce_post(post)

    def _announce_post(self, post: Post) -> None:
        self._emit(
            POST_PUBLISHED,
            agent_id=post.author_id,
            post_id=post.post_id,
            kind=post.kind,
            parent_id=None if post.parent is None else post.parent.post_id,
            root_id=post.root.post_id,
            topics=list(post.topics),
            text=post.text,
        )

    def _fire(self, agent: SocialAgent, trigger: str, context: Any = None) -> None:
        if self.chart.fire(agent, trigger, context) is not None:
            self._activity.transitions += 1

    def _emit(self, event: str, **keys: Any) -> None:
        logger = active_logger(self._logger)
        if logger is not None:
            logger.info(event, **keys)


@contextmanager
def _collecting_after_rounds() -> Iterator[Callable[[], object]]:
    """Keep the garbage collector from searching the whole, ever growing history again and again.

    Measured at 10,000 agents, that took a fifth of the time. Garbage in cycles is instead looked
    for among what each round has made, by calling what this gives.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield lambda: gc.collect(0)
    finally:
        if was_enabled:
            gc.enable()


def _outside(question: Question, decision: Decision) -> str:
    options = ", ".join(map(state_text, question.options))
    return f"agent {question.agent.agent_id!r}: the reasoner chose {decision.chosen!r}, which is not one of {options}"


def _check(
    agents: Sequence[SocialAgent], posts: Sequence[SeedPost], rounds: int, ticks: int
) -> None:
    if not agents:
        raise FieldValueError("a simulation needs at least one agent")

    for name, value in (("rounds", rounds), ("ticks_per_round", ticks)):
        if not isinstance(value, int) or value < 1:
            raise FieldValueError(f"{name} must be a whole number, 1 or more, got {value!r}")

    twice = [
        agent_id
        for agent_id, count in Counter(agent.agent_id for agent in agents).items()
        if count > 1
    ]
    if twice:
        raise FieldValueError(
            f"agent ids must be unique, used more than once: {', '.join(sorted(twice))}"
        )

    ids = {agent.agent_id for agent in agents}
    strangers = sorted({post.author_id for post in posts if post.author_id not in ids})
    if strangers:
        raise FieldValueError(
            f"posts must be by agents of the population, which has no {', '.join(strangers)}"
        )
