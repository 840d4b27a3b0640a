"""A tick: who has a turn, in which order, and how decisions, texts and messages are settled.

Agents without a step or a time-out are never visited. Steps run up to their first ``await``. Then
all questions are asked at once, their answers are applied in the order of the turns, and the steps
go on, in waves until none waits. So a run never depends on which answer came first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any

from prism._numbers import plain_number
from prism.errors import FieldValueError, SimulationError, UnknownTriggerError
from prism.randomness import RandomStream
from prism.randomness.stream import GOLDEN, all_mixed, mixed
from prism.runlog import SimulatedClock
from prism.runlog.writer import Moment
from prism.statechart.names import unknown_trigger_problem
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMEOUT, Edge
from prism.worlds._agent import Agent
from prism.worlds._events import Events
from prism.worlds._population import Population
from prism.worlds._results import COUNTS
from prism.worlds._waves import Waiting, advance, outside, settle_all
from prism.worlds.decisions import Answers, Waits
from prism.worlds.treatments import Assignments
from prism.worlds.world import World

_EVERYBODY_IS_OVER, _NEVER = 2**64, 2**63
_RANK = itemgetter(0)


class Turns:
    """Gives turns to the agents of a run.

    Args:
        world: The world.
        run: The run: its seed, and the ticks in a round.
        answers: Decides and writes.
        events: Writes the run's log.
        clock: The run's clock.

    Attributes:
        events: As given.
        remembers: Whether agents remember what happens, for a model.
        population: The agents.
        now: The tick, counted from the beginning of the run.
        acting: The agent whose step is running.
        counts: Counts of this round by name; a world may add its own.
        timeouts: Time-outs in this round, by the state that was left.
        texts: Texts in this round, by their source.
        fallbacks: Decisions that took the fallback in this round, by reason.
        has_begun: Whether the first round has begun.
        refusing: Why no event can be fired now, or None.
        stopped: When and why the run was stopped, or None.
        made: Events that made a transition when they were fired, by trigger.
        missed: Those that made none, by trigger and state.
        part_of_tick: The part of the tick that has passed; 1 unless events happen at rates.
    """

    def __init__(
        self, world: World[Any], run: Any, answers: Answers, events: Events, clock: SimulatedClock
    ) -> None:
        self.world: World[Any] = world
        self.answers: Answers = answers
        self.events: Events = events
        self.clock: SimulatedClock = clock
        self.seed: int = run.seed
        self.ticks_per_round: int = run.ticks
        self.remembers: bool = bool(answers.memory)
        self.population: Population = Population(self)
        self.acting: Any = None
        self.counts: dict[str, int] = dict.fromkeys(COUNTS, 0)
        self.begin_round()
        self.has_begun: bool = False
        self.refusing: str | None = "setup prepares agents by begin_in, before the first round"
        self.stopped: dict[str, Any] | None = None
        self.made: Counter[str] = Counter()
        self.missed: Counter[tuple[str, str]] = Counter()
        self.part_of_tick: float = 1.0
        self.assignments: Assignments = Assignments(run.seed, events)
        self._networks = 0
        self.now: int = 0
        self._at = _EVERYBODY_IS_OVER
        self._newcomers: list[tuple[int, Any]] = []
        self._due: dict[int, list[Agent]] = {}
        # agents that have something to do, with their steps; those with timers may have none
        self._active: dict[Agent, Any] = {}
        self.deferred: list[tuple[int, str, Callable[[], object]]] | None = None
        self._passed_in = -1

    # Beginning, joining and leaving

    def begin(self, agents: Sequence[Any]) -> None:
        """Count the states of all agents, after `World.setup`."""
        self.population.begin(agents)
        for agent in agents:
            self.count(agent, 1)
            self._look_at(agent)

    def count(self, agent: Any, change: int) -> None:
        """Count an agent that joins, 1, or leaves, -1."""
        agent._kind.counts[agent.state] += change

    def announce(self) -> None:
        """Log every agent, and what `World.setup` logged."""
        if self.events.are_heard:
            for agent in self.population.everybody():
                self.events.joined(agent)
        self.events.begin()

    def enter(self) -> None:
        """Run the entry actions of the agents' first states, if their charts have any."""
        self.has_begun, self.refusing = True, None
        agents = self.population.everybody()
        for _, agent in self.in_order(each for each in agents if each._kind.is_nested):
            self.acting = agent
            agent._kind.chart.enter(agent)
        self.acting = None

    def add(self, agent: Agent, parent: Agent | None, neighbours: Sequence[Agent]) -> None:
        """Let a newcomer join, now or at the end of the tick if all act together."""
        source = parent or self.acting
        self._refuse_in_independent("add anybody")
        self.population.prepare(agent, "" if source is None else f"{source.agent_id}.")
        # where the parent is now, as it may leave before the end of a tick `together`
        places = [(each, each.place_of(parent)) for each in getattr(parent, "_spaces", ())]
        self.defer(lambda: self._join(agent, places, source, neighbours), self.acting or agent)

    def _refuse_in_independent(self, doing: str) -> None:
        """Refuse in a step what concerns agents that may be in other ticks."""
        if self.world.independent and self.acting is not None:
            problem = f"cannot {doing}, in an independent world: do it in a hook"
            raise SimulationError(f"{self.acting!r} {problem}")

    def _join(
        self, agent: Any, places: Sequence[Any], source: Any, neighbours: Sequence[Agent]
    ) -> None:
        self.population.take_in(agent, places, neighbours)
        if not self.has_begun:
            return
        self.count(agent, 1)
        self._look_at(agent)
        self.events.joined(agent, source)
        if agent._kind.is_nested:
            agent._kind.chart.enter(agent)

    def leave(self, agent: Agent) -> None:
        """Take an agent out of the run, now or at the end of the tick if all act together."""
        self.defer(lambda: self._leave(agent), self.acting or agent)

    def _leave(self, agent: Agent) -> None:
        if agent.has_left:
            return
        self._active.pop(agent, None)
        self.population.remove(agent)
        if self.has_begun:
            self.count(agent, -1)
            ticks = agent.ticks_in_state + agent._stayed - self._is_to_come(agent)
            self.events.left(agent, ticks)

    # Time

    @property
    def moment(self) -> Moment:
        """The current instant."""
        return self.clock.moment

    def seconds(self) -> float:
        """Return the simulated time in seconds, as the clock of charts."""
        return self.moment.seconds

    def count_transition(self) -> float:
        """Count a transition, and return the time."""
        self.counts["transitions"] += 1
        return self.seconds()

    def time(self) -> float:
        """Return the time since the beginning, in rounds; within a tick, that of the event."""
        moment = self.moment
        ticks = moment.tick - 1 + self.part_of_tick if moment.tick else 0.0
        return max(self.world.round - 1, 0) + ticks / self.ticks_per_round

    def stop(self, reason: str) -> None:
        """End the run after this tick or event."""
        if self.world.round == 0:
            raise SimulationError("the run cannot be stopped: it has not begun")
        self._refuse_in_independent("stop the run")
        if self.stopped is None:
            time = round(self.time(), 9)
            self.stopped = {"tick": self.moment.tick, "time": time, "reason": reason}

    def end_if_over(self) -> None:
        """End the run after this tick or event if the world's `until` says so."""
        if self.stopped is None and self.world.until():
            self.stop("until")

    def set_ticks(self, agent: Any, ticks: int) -> None:
        """Set the number of ticks that an agent has been in its state."""
        if type(ticks := plain_number(ticks)) is not int or ticks < 0:
            raise FieldValueError(f"ticks_in_state must be 0 or more, got {ticks!r}")
        if self.has_begun:
            agent._stayed += max(self.now - agent._since - ticks, 0)
        self._begin_stay(agent, self.now - ticks)

    def pause(self, agent: Any) -> None:
        """Let a tick pass without an agent: neither its time-outs nor the log count it."""
        self._begin_stay(agent, agent._since + 1)

    def _begin_stay(self, agent: Any, tick: int) -> None:
        agent._since = tick
        if agent._kind.limits:
            self._look_at(agent)

    def network_stream(self) -> RandomStream:
        """Return the random numbers of the next network."""
        self._networks += 1
        part = "" if self.world.round else "setup"
        return RandomStream(self.seed, "network", part, f"{self.world.round}.{self._networks}")

    # What agents call

    def defer(self, action: Callable[[], Any], whose: Agent) -> Any:
        """Do something now and return its result, or do it at the end of a tick `together`.

        Raises:
            SimulationError: If a measure does it.
        """
        if self.has_begun and self.refusing is not None:
            raise SimulationError(self.refusing)
        if self.deferred is None:
            return action()
        self.deferred.append((self.rank_of(whose), whose.agent_id, action))
        return None

    def fire(self, agent: Agent, trigger: str, context: Any = None) -> Any:
        """Fire an event now, or at the end of the tick if all act together."""
        if self.deferred is None:
            return self._fire(agent, trigger, context)
        return self.defer(lambda: self._fire(agent, trigger, context), self.acting or agent)

    def _fire(self, agent: Agent, trigger: str, context: Any) -> Any:
        if agent.has_left:
            return None
        if self.refusing is not None:
            raise SimulationError(f"{agent.agent_id!r} cannot fire {trigger!r}: {self.refusing}")
        made = agent._kind.chart.fire(agent, trigger, context)
        if made is not None:
            self.made[trigger] += 1
            return made
        self.missed[trigger, state_text(agent.state)] += 1
        if trigger not in self.population.triggers:
            raise UnknownTriggerError(unknown_trigger_problem(trigger, self.population.triggers))
        return None

    # What the engine calls

    def moved(self, agent: Any, edge: Edge) -> int:
        """Note a transition that the engine has made; return the ticks of the whole stay."""
        kind, left, entered = agent._kind, edge.from_state, edge.to_state
        kind.counts[left] -= 1
        kind.counts[entered] += 1
        self.counts["transitions"] += 1
        if kind.is_nested and edge.trigger == TIMEOUT:
            self.timeouts[state_text(left)] += 1
        now = self.now
        dwell: int = now - agent._since + agent._stayed
        agent.state, agent._since = entered, now
        if agent._stayed:
            agent._stayed = 0
        is_over = self._at == _EVERYBODY_IS_OVER or agent is self.acting
        if is_over or not self._is_to_come(agent):
            self._look_at(agent)
            return dwell
        # it has not had its turn in this tick, which will count
        agent._since = now - 1
        if self._look_at(agent):
            heappush(self._newcomers, (self.rank_of(agent), agent))
        return dwell - 1

    def _is_to_come(self, agent: Agent) -> bool:
        """Return whether an agent has not yet had its turn in this tick."""
        return self.rank_of(agent) > self._at and agent._acts_from <= self.now

    def _look_at(self, agent: Any) -> bool:
        """Note when an agent times out; return whether it has something to do in its state."""
        kind = agent._kind
        if kind.limits:
            agent._due = agent._since + kind.limits.get(agent.state, _NEVER)
            self._due.setdefault(max(agent._due, self.now + 1), []).append(agent)
        step = kind.step_of(agent.state)
        is_active = (kind.is_nested or step is not None) and not agent.has_left
        if is_active:
            self._active[agent] = step
        else:
            self._active.pop(agent, None)
        return is_active

    # Turns

    def rank_of(self, agent: Agent) -> int:
        """Return an agent's place in the order of this tick."""
        return mixed(agent._key + self.now * GOLDEN)

    def in_order(self, agents: Iterable[Agent]) -> list[tuple[int, Agent]]:
        """Return agents with their places, in this tick's order."""
        chosen = list(agents)
        ranks = all_mixed([each._key for each in chosen], self.now * GOLDEN)
        return sorted(zip(ranks, chosen, strict=True), key=_RANK)

    async def round(self, pace: Callable[[], Awaitable[object]]) -> None:
        """Run the ticks of a round.

        Args:
            pace: Awaited after every tick.
        """
        world = self.world
        for _ in range(self.ticks_per_round):
            self.advance()
            world.tick_begins()
            self.begin_tick()
            await self.tick()
            self.end_tick()
            world.tick_ends()
            await pace()
            self.end_if_over()
            if self.stopped is not None:
                return

    def advance(self) -> None:
        """Let the clock go on to the next tick."""
        self.clock.advance()

    async def tick(self) -> None:
        """Run a tick as the world does."""
        await self.world.tick()

    def begin_tick(self) -> None:
        """Begin a tick."""
        self.now = max(self.world.round - 1, 0) * self.ticks_per_round + self.clock.tick
        self.deferred = [] if self.world.together else None
        self.counts["agent_ticks"] += len(self.population.everybody())

    def end_tick(self) -> None:
        """End a tick: carry out what was deferred."""
        self.acting = None
        if self.deferred is not None:
            deferred, self.deferred = self.deferred, None
            for _, _, action in sorted(deferred, key=lambda each: each[:2]):
                action()

    async def give(self, agents: Sequence[Agent] | None = None) -> None:
        """Give turns to agents that have something to do, then settle what their steps wait for."""
        due = [each for each in self._due.pop(self.now, ()) if each._due <= self.now]
        if agents is None:
            active = {**self._active, **dict.fromkeys(due)} if due else self._active
            turns: Iterable[Agent] = self._turns_of(active)
        else:
            turns = self._activated(agents, due)
        waiting: dict[Agent, Waiting] = {}
        for agent in turns:
            if agent in waiting:
                # its turn before this one must have ended
                await settle_all(self, [*waiting.values()])
                waiting.clear()
            waits = self.take(agent)
            if waits is not None and not isinstance(waits[2], Waits):
                waits = await outside(self, waits)
            if waits is not None:
                waiting[agent] = waits
        await settle_all(self, [*waiting.values()])

    async def happen(self, agent: Agent, step: Any) -> None:
        """Let an event happen to an agent, and wait until its step has ended."""
        waits = self._begin(agent, step)
        await settle_all(self, [] if waits is None else [waits])

    def _activated(self, agents: Sequence[Agent], due: Sequence[Agent]) -> Sequence[Agent]:
        """Return the agents that a world activates, after time has passed for all others."""
        if self._passed_in != self.now:
            self._passed_in = self.now
            chosen = {*agents}
            ticked = [each for each in self._active if each._kind.is_nested]
            passing = dict.fromkeys((*due, *ticked))
            for _, agent in self.in_order(each for each in passing if each not in chosen):
                self._pass_time(agent)
        return agents

    def _pass_time(self, agent: Any) -> bool:
        """Let time pass for an agent, once a tick; return whether a time-out takes its turn."""
        if agent.has_left or agent._passed_in == self.now:
            return False
        agent._passed_in = self.now
        self.acting = agent
        kind = agent._kind
        if kind.limits and agent._due <= self.now and self._time_out(agent):
            return True
        if kind.is_nested:
            kind.chart.schedule.tick(agent, agent.ticks_in_state)
        return False

    def _turns_of(self, agents: Iterable[Agent]) -> Iterator[Agent]:
        """Yield agents in their order, and those that get something to do while it is to come."""
        to_come, newcomers, last = self.in_order(agents)[::-1], self._newcomers, None
        while to_come or newcomers:
            is_next = newcomers and (not to_come or newcomers[0] < to_come[-1])
            self._at, agent = heappop(newcomers) if is_next else to_come.pop()
            if agent is not last:
                yield agent
            last = agent
        self._at = _EVERYBODY_IS_OVER

    def take(self, agent: Agent) -> Waiting | None:
        """Let an agent take its turn; return what its step waits for."""
        if agent._acts_from > self.now:
            return None
        # with timers, it is that of the state in which the turn begins
        step = self._active.get(agent)
        if agent._kind.has_timers and self._pass_time(agent):
            return None
        return None if step is None else self._begin(agent, step)

    def _begin(self, agent: Agent, step: Any) -> Waiting | None:
        """Begin a step; return what it waits for."""
        self.acting = agent
        running = step(self.world, agent)
        return None if running is None else advance(self, agent, running, None)

    def _time_out(self, agent: Any) -> bool:
        """Fire the time-out that is due; return whether it takes the turn."""
        state, chart = agent.state, agent._kind.chart

        def fire() -> bool:
            if agent.has_left or chart.fire(agent, TIMEOUT) is None:
                return False
            self.timeouts[state_text(state)] += 1
            return True

        is_over = self.defer(fire, agent) is not False
        if agent._due <= self.now:
            # a guard may let it pass later
            agent._due = self.now + 1
            self._due.setdefault(agent._due, []).append(agent)
        return is_over

    def begin_round(self) -> None:
        """Begin the counts of a round."""
        self.counts = dict.fromkeys(self.counts, 0)
        self.timeouts: Counter[str] = Counter()
        self.texts: Counter[str] = Counter()
        self.fallbacks: Counter[str] = Counter()
