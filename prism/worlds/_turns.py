"""A tick: who has a turn, in which order, and how decisions, texts and messages are settled.

Agents without a step or a time-out are never visited. Steps run up to their first ``await``. Then
all questions are asked at once, their answers are applied in the order of the turns, and the steps
go on, in waves until none waits. So a run never depends on which answer came first.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from itertools import takewhile
from operator import attrgetter
from typing import Any

from prism._faults import place_in
from prism.errors import (
    AgentError,
    FieldTypeError,
    FieldValueError,
    SimulationError,
    UnknownTriggerError,
)
from prism.randomness import RandomStream
from prism.randomness._stream import GOLDEN, all_mixed, maker_of_keys, mixed
from prism.reasoner._recollection import stay_in_words
from prism.reasoner._words import in_words
from prism.runlog import SimulatedClock
from prism.statechart import Configuration, Definition, Question, Written
from prism.statechart.names import identify, unknown_trigger_problem
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMEOUT
from prism.telemetry.events import (
    AGENT_JOINED,
    AGENT_LEFT,
    ANSWER_DISCARDED,
    MESSAGE_SENT,
    TREATMENT_ASSIGNED,
)
from prism.telemetry.loggers import EventLogger, active_logger
from prism.worlds._agent import (
    HISTORY_DEPTH,
    Agent,
    Asked,
    Message,
    Receiving,
    Waits,
    Writing,
    time_of,
)
from prism.worlds._agent_set import AgentSet, leaves_in, unknown_state
from prism.worlds._ahead import UNDER_WAY
from prism.worlds._answers import Answers
from prism.worlds._fields import parameter_values
from prism.worlds._guests import Guest, as_agent, lend
from prism.worlds._kinds import Kind, check_classes, definitions_of, is_by_rate, make_kind
from prism.worlds._rates import Members
from prism.worlds._treatments import Assignments
from prism.worlds._world import World, kinds_of

MOST_WAVES = 10_000
"""Most waves in one tick, since a step that keeps asking would never end."""

_MOST_CONTENT = 2_000
"""Most characters of a message that are logged."""

_EVERYBODY_IS_OVER, _NEVER = 2**64, 2**63
_KEY = attrgetter("_key", "agent_id")
_IN_SETUP = "setup"
_RESERVED = ("event", "timestamp", "round", "tick")

Waiting = tuple[Agent, Any, Any]
"""An agent, its step, and what the step waits for."""


class Turns:
    """Gives turns to the agents of a run.

    Args:
        world: The world.
        seed: Seed of every random number.
        answers: Decides and writes.
        logger: Where events go.
        clock: The run's clock.
        ticks_per_round: Ticks in a round.

    Attributes:
        acting: The agent whose step is running.
        counts: Agents in each state.
        transitions: Transitions in this round.
        timeouts: Time-outs in this round, by the state that was left.
        is_listed: Whether the world's order is that of the list.
        has_begun: Whether the first round has begun.
        refusing: Why no event can be fired now, or None.
        stopped: When and why the run was stopped, or None.
        made: Events that made a transition when they were fired, by trigger.
        missed: Those that made none, by trigger and state.
        begun: Texts of the states in which agents began.
        unawaited: A decision that was requested but not yet awaited.
    """

    def __init__(
        self,
        world: World[Any],
        seed: int,
        answers: Answers,
        logger: EventLogger | None,
        clock: SimulatedClock,
        ticks_per_round: int,
    ) -> None:
        self.world, self.seed, self.answers = world, seed, answers
        self.logger, self.clock, self.ticks_per_round = logger, clock, ticks_per_round
        self.acting: Any = None
        self.counts: Counter[Any] = Counter()
        self.transitions = 0
        self.timeouts: Counter[str] = Counter()
        self.agent_ticks = 0
        self.has_begun = False
        self.refusing: str | None = "setup prepares agents by begin_in, before the first round"
        self.has_guests = False
        self.stopped: dict[str, Any] | None = None
        self.unawaited: Asked | None = None
        self.part_of_tick: float | None = None
        self.kinds: dict[type, Kind] = {}
        self.by_rate = is_by_rate(type(world))
        self.members = Members(())
        self.flat: set[type] = set()
        self.assignments = Assignments(seed)
        self.made: Counter[str] = Counter()
        self.missed: Counter[tuple[str, str]] = Counter()
        self.begun: set[str] = set()
        self._everybody: dict[Agent, None] = {}
        self._set: AgentSet[Any] | None = None
        self._canonical: list[Agent] | None = None
        self._ids: set[str] = set()
        self._numbers: Counter[Any] = Counter()
        self._networks = 0
        self._keys_of = maker_of_keys(3, seed, "agent")
        self._now, self._at = 0, _EVERYBODY_IS_OVER
        self._newcomers: list[tuple[int, str, Any]] = []
        self._due: dict[int, list[Agent]] = {}
        self._deferred: list[tuple[int, str, Callable[[], object]]] | None = None
        self._active: dict[Agent, None] = {}
        self.is_listed = world.order == "listed"
        self._has_ticked = False
        self._passed_in = -1
        self._buffer: list[tuple[str, dict[str, Any]]] | None = []

    # The population

    def populate(self, agents: Iterable[Any]) -> None:
        """Take in the population, before `World.setup`.

        Raises:
            AgentError: If one of them is not an agent, or is already in a run.
            FieldValueError: If there are no agents, or two have the same id.
            DefinitionError: If the class of the world or of an agent cannot work.
        """
        if not isinstance(agents, Iterable):
            owner = type(self.world).__name__
            raise AgentError(f"{owner}.populate must return the agents, got {agents!r}")
        where = f"{type(self.world).__name__}.populate"
        population = [as_agent(each, where) for each in agents]
        if not population:
            raise FieldValueError("a run needs agents, got none")
        check_classes(type(self.world), [*dict.fromkeys(map(type, population))])
        for agent in population:
            self._take_in(agent, "")

    def add(self, agent: Agent, parent: Agent | None, neighbours: Sequence[Agent]) -> None:
        """Let a newcomer join, now or at the end of the tick if all act together."""
        if "_steps" in vars(agent):
            raise AgentError(f"{agent!r} has joined a run already: make another one")
        source = parent or self.acting
        before = "" if source is None else f"{source.agent_id}."
        self._name(agent, before)

        def join() -> None:
            self._join(agent, parent, source, neighbours)

        if self._deferred is None:
            join()
        else:
            self._defer(join, self.acting or agent)

    def _name(self, agent: Agent, before: str) -> None:
        """Give an agent its id, made of its parent's, or of its kind and number."""
        kind = type(agent)
        if before and not agent.agent_id:
            self._numbers[before] += 1
            agent.agent_id = f"{before}{self._numbers[before]}"
        elif not agent.agent_id:
            self._numbers[kind] += 1
            own = getattr(vars(agent).get("object"), "agent_id", "")
            agent.agent_id = own or f"{kind.__name__.lower()}_{self._numbers[kind]}"
        agent.name = agent.name or agent.agent_id
        if agent.agent_id in self._ids:
            raise FieldValueError(f"two agents have the id {agent.agent_id!r}: ids must be unique")
        self._ids.add(agent.agent_id)

    def _join(
        self, agent: Agent, parent: Agent | None, source: Any, neighbours: Sequence[Agent]
    ) -> None:
        self._take_in(agent, None)
        self.counts[agent.state] += 1
        self._look_at(agent)
        if self.by_rate:
            self.members.add(agent, agent.state)
        vars(agent)["_acts_from"] = self.now + 1
        for space in () if parent is None else [*parent._spaces]:
            space.bring(agent, parent)
        if self.world._network is not None:
            self.world._network.join(agent, neighbours)
        self._log_joined(agent, {} if source is None else {"parent": source.agent_id})
        if (tree := self.kinds[type(agent)].chart.definition.tree) is not None and tree:
            self.kinds[type(agent)].chart.enter(agent)

    def _take_in(self, agent: Agent, before: str | None) -> None:
        """Give an agent its place, streams, state and fields."""
        if "_steps" in vars(agent):
            raise AgentError(
                f"agent {agent.agent_id!r} is in the population twice, or in another run: "
                "make new agents"
            )
        if before is not None:
            self._name(agent, before)
        kind = self.kinds.get(type(agent)) or self._add_kind(type(agent))
        agent._join(self.world, len(self._ids), self._keys_of(agent.agent_id))
        given = {**agent._arguments, "agent_id": agent.agent_id, "name": agent.name}
        try:
            agent._fill(given, lambda name: RandomStream(self.seed, "field", agent.agent_id, name))
        except TypeError as error:
            raise AgentError(f"{error}, or give it a default in the class") from None
        if isinstance(agent, Guest):
            self.has_guests = True
            lend(agent, self.logger, self.count_transition, self.seed)
        elif kind.chart.definition.needs:
            from prism.statechart.inspection import require_fit

            require_fit([agent], kind.chart.definition)
        self._everybody[agent] = None
        self._set = None

    def _add_kind(self, cls: type[Agent]) -> Kind:
        if self.kinds and self.has_begun:
            check_classes(type(self.world), [cls])
        clock = self.count_transition if issubclass(cls, Guest) else self.seconds
        kind = make_kind(cls, type(self.world), self.logger, clock, by_rate=self.by_rate)
        self.kinds[cls] = kind
        self._has_ticked |= kind.is_ticked
        if not issubclass(cls, Guest) and kind.chart.definition.tree is None:
            self.flat.update(map(type, kind.chart.definition.states))
        vars(self).pop("definitions", None)
        vars(self).pop("_triggers", None)
        return kind

    def leave(self, agent: Agent) -> None:
        """Take an agent out of the run, now or at the end of the tick if all act together."""
        if self._deferred is None:
            self._leave(agent)
        else:
            self._defer(lambda: self._leave(agent), self.acting or agent)

    def _leave(self, agent: Agent) -> None:
        if agent.has_left:
            return
        vars(agent)["has_left"] = True
        self._everybody.pop(agent, None)
        self._active.pop(agent, None)
        self._set = None
        self.counts[agent.state] -= 1
        if self.by_rate:
            self.members.remove(agent, agent.state)
        for space in agent._spaces:
            space.remove(agent)
        if self.world._network is not None:
            self.world._network.leave(agent)
        self.emit(AGENT_LEFT, agent_id=agent.agent_id, state=state_text(agent.state))

    def everybody(self) -> AgentSet[Any]:
        """Return all agents that are there."""
        if self._set is None:
            self._set = AgentSet(self._everybody)
            self._canonical = None
        return self._set

    def reorder(self, agents: Sequence[Agent]) -> None:
        """List the agents in another order, before the first round."""
        self._everybody, self._set = dict.fromkeys(agents), None
        self._active = {agent: None for agent in agents if agent in self._active}

    def canonical(self, agents: AgentSet[Any]) -> Sequence[Any]:
        """Return agents in an order that does not depend on the list of agents."""
        if agents is not self._set:
            return sorted(agents, key=_KEY)
        if self._canonical is None:
            self._canonical = sorted(agents, key=_KEY)
        return self._canonical

    def able_to_be_in(self, state: Any) -> int:
        """Return the number of agents whose chart contains a state.

        Raises:
            UnknownStateError: If no agent's chart has it.
        """
        if not any(chart.leaves_of(state) for chart in self.definitions):
            raise unknown_state(state, self.definitions)
        kinds = self.kinds.values()
        able = {kind.cls for kind in kinds if kind.chart.definition.leaves_of(state)}
        if len(able) == len(self.kinds):
            return len(self._everybody)
        return sum(type(agent) in able for agent in self._everybody)

    @cached_property
    def definitions(self) -> list[Definition[Any]]:
        """The charts of all kinds, of the population and of the world's class."""
        return definitions_of([*self.kinds, *kinds_of(type(self.world))])

    @cached_property
    def _triggers(self) -> frozenset[str]:
        """The events that some chart has."""
        return frozenset(
            trigger
            for chart in self.definitions
            for trigger in (
                *(each.trigger for each in chart.transitions),
                *chart.hierarchy.triggers,
            )
        )

    def begin(self) -> None:
        """Count the states, after `World.setup`, and announce the agents."""
        for agent in self._everybody:
            self.counts[agent.state] += 1
            self.begun.update(map(state_text, leaves_in(agent.state)))
            self._look_at(agent)
        if self.by_rate:
            # in an order that the list does not decide, also of kinds
            by_key = sorted(self._everybody, key=_KEY)
            self.members = Members(by_key)
            kinds = dict.fromkeys(map(type, by_key))
            self.kinds = {cls: self.kinds[cls] for cls in kinds}

    def announce(self) -> None:
        """Log every agent, and what `World.setup` logged."""
        if active_logger(self.logger) is not None:
            for agent in self._everybody:
                self._log_joined(agent, {})
        buffered, self._buffer = self._buffer or [], None
        for event, keys in buffered:
            self.emit(event, **keys)

    def enter(self) -> None:
        """Run the entry actions of the agents' first states, if their charts have any."""
        self.has_begun, self.refusing = True, None
        nested = {
            cls
            for cls, kind in self.kinds.items()
            if kind.chart.definition.tree is not None and not issubclass(cls, Guest)
        }
        entering = [agent for agent in self._everybody if type(agent) in nested]
        for _, _, agent in self.in_order(entering):
            self.acting = agent
            self.kinds[type(agent)].chart.enter(agent)
        self.acting = None

    def _log_joined(self, agent: Agent, more: Mapping[str, Any]) -> None:
        self.emit(
            AGENT_JOINED,
            agent_id=agent.agent_id,
            chart=self.kinds[type(agent)].chart.name,
            display_name=agent.name,
            state=state_text(agent.state),
            **agent.described(),
            **more,
        )

    # Time

    @property
    def now(self) -> int:
        """The tick, counted from the beginning of the run."""
        return self._now if (turn := UNDER_WAY.get()) is None else turn.tick

    @property
    def tick_of_round(self) -> int:
        """The tick of the round."""
        return self.clock.tick

    def seconds(self) -> float:
        """Return the simulated time in seconds, as the clock of charts."""
        turn = UNDER_WAY.get()
        return self.clock.moment.seconds if turn is None else turn.moment.seconds

    def count_transition(self) -> float:
        """Count a transition of an object, whose chart asks for the time once for each."""
        self.transitions += 1
        return self.seconds()

    def time(self) -> float:
        """Return the time since the beginning, in rounds; within a tick, that of the event."""
        part = 1.0 if self.part_of_tick is None else self.part_of_tick
        ticks = self.clock.tick - 1 + part if self.clock.tick else 0.0
        return max(self.world.round - 1, 0) + ticks / self.ticks_per_round

    def stop(self, reason: str) -> None:
        """End the run after this tick or event."""
        if not isinstance(reason, str):
            raise FieldTypeError(f"stop: the reason must be text, got {reason!r}")
        if self.world.round == 0:
            raise SimulationError("the run cannot be stopped: it has not begun")
        if self.stopped is None:
            time = round(self.time(), 9)
            self.stopped = {"tick": self.clock.tick, "time": time, "reason": reason}

    def set_ticks(self, agent: Agent, ticks: int) -> None:
        """Set the number of ticks that an agent has been in its state."""
        if not isinstance(ticks, int) or isinstance(ticks, bool) or ticks < 0:
            raise FieldValueError(f"ticks_in_state must be 0 or more, got {ticks!r}")
        vars(agent)["_since"] = self.now - ticks
        self._look_at(agent)

    def network_stream(self) -> RandomStream:
        """Return the random numbers of the next network."""
        self._networks += 1
        part = "" if self.world.round else _IN_SETUP
        return RandomStream(self.seed, "network", part, f"{self.world.round}.{self._networks}")

    # What agents call

    def fire(self, agent: Agent, trigger: str, context: Any = None) -> Any:
        """Fire an event now, or at the end of the tick if all act together."""
        if self._deferred is not None:
            self._defer(lambda: self._fire(agent, trigger, context), self.acting or agent)
            return None
        return self._fire(agent, trigger, context)

    def _fire(self, agent: Agent, trigger: str, context: Any) -> Any:
        if agent.has_left:
            return None
        if self.refusing is not None:
            raise SimulationError(
                f"agent {agent.agent_id!r} cannot fire {trigger!r}: {self.refusing}"
            )
        made = self.kinds[type(agent)].chart.fire(agent, trigger, context)
        if made is not None:
            self.made[trigger] += 1
            return made
        self.missed[trigger, state_text(agent.state)] += 1
        if trigger not in self._triggers:
            triggers = {each.trigger: None for one in self.definitions for each in one.transitions}
            raise UnknownTriggerError(unknown_trigger_problem(trigger, triggers))
        return made

    def send(self, message: Message, to: Agent) -> None:
        """Deliver a message now, or at the end of the tick.

        Raises:
            AgentError: If the recipient is not an agent of the run.
        """
        if getattr(to, "world", None) is not self.world:
            raise AgentError(f"the receiver of a message must be an agent of the world, got {to!r}")
        if self.refusing is not None:
            raise SimulationError(f"nothing can be sent: {self.refusing}")
        if self._deferred is None:
            self._deliver(message, to)
        else:
            self._defer(lambda: self._deliver(message, to), message.sender)

    def _deliver(self, message: Message, to: Agent) -> None:
        if to.has_left:
            return
        to.inbox.append(message)
        if self.answers.memory is not None:
            content = in_words(message.content)
            self._note(message.sender, f"You told {to.name}: {content}")
            self._note(to, f"{message.sender.name} told you: {content}")
        if active_logger(self.logger) is not None:
            (content,) = (identify({"content": message.content}) or {}).values()
            if isinstance(content, str):
                content = content[:_MOST_CONTENT]
            self.emit(
                MESSAGE_SENT,
                agent_id=message.sender.agent_id,
                receiver=to.agent_id,
                content=content,
            )

    def settle(self, asked: Asked) -> Any:
        """Carry out what leaves nothing to decide; return the new state, or the question itself."""
        agent = asked.agent
        asked.options = options = self._options(agent, asked.trigger, asked.context)
        if len(options) < 2:
            return self.fire(agent, asked.trigger, asked.context)
        if asked.weights is not None:
            asked.weights = _weights_of(asked, options, self.kinds[type(agent)])
        asked.state = agent.state
        history = agent.state_history
        asked.since = history[-1] if history else None
        return asked

    def _options(self, agent: Agent, trigger: str, context: Any) -> tuple[Any, ...]:
        """Return the targets among which an agent decides; none where the chart decides."""
        kind, state = self.kinds[type(agent)], agent.state
        known = kind.open.get((state, trigger))
        if known is not None and not agent.has_left:
            return known
        if agent.has_left:
            return ()
        chart = kind.chart
        if state in chart.decision_states or (
            isinstance(state, Configuration) and chart.decides(state)
        ):
            return tuple(chart.enabled_targets(agent, trigger, context))
        return ()

    def remember(self, agent: Agent, text: str) -> None:
        """Store a note for a model, in order with the agent's transitions."""
        if not isinstance(text, str):
            raise FieldTypeError(f"a note must be text, got {text!r}")
        if self.world.together and self.acting not in (None, agent):
            raise SimulationError(
                f"{type(self.world).__name__} is a together world, in which the order of agents "
                "must not matter: an agent may note only for itself"
            )
        self._note(agent, text)

    def _note(self, agent: Agent, text: str) -> None:
        notes: deque[Any] = vars(agent).setdefault("_notes", deque(maxlen=HISTORY_DEPTH))
        # the number of earlier transitions at the same instant puts both in one order
        time = self.seconds()
        same = takewhile(lambda record: time_of(record) == time, reversed(agent.state_history))
        notes.append((time, sum(1 for _ in same), " ".join(text.split())))

    def memory_in_words(self, agent: Agent) -> str:
        """Return what an agent remembers, for the prompt of a text."""
        memory = self.answers.memory
        words = "" if memory is None else str(memory.tell(agent.memories(HISTORY_DEPTH)))
        return f"{words}\n\n" if words else ""

    def log(self, event: str, keys: Mapping[str, Any]) -> None:
        """Log one of the world's own events.

        Raises:
            FieldValueError: If a key is one that every line has.
        """
        if not isinstance(event, str) or not event:
            raise FieldValueError(f"an event needs a name, got {event!r}")
        for name in keys:
            if name in _RESERVED:
                raise FieldValueError(f"world.{event}: every line has {name!r} already: rename it")
        named = {"agent_id" if name == "agent" else name: value for name, value in keys.items()}
        if self._buffer is not None or active_logger(self.logger) is not None:
            self.tell(f"world.{event}", **(identify(named) or {}))

    def tell(self, event: str, **keys: Any) -> None:
        """Log an event of the world; events of setup follow those that begin the run."""
        if self._buffer is None:
            self.emit(event, **keys)
        else:
            self._buffer.append((event, keys))

    def emit(self, event: str, **keys: Any) -> None:
        """Log one of the run's events."""
        logger = active_logger(self.logger)
        if logger is not None:
            logger.info(event, **keys)

    def log_assigned(self) -> None:
        """Log the assignments since the last call."""
        for keys in self.assignments.drain():
            self.tell(TREATMENT_ASSIGNED, **keys)

    # What the engine calls

    def moved(self, agent: Any, left: Any, entered: Any) -> int:
        """Note a transition that the engine has made; return the turns in the earlier state."""
        counts = self.counts
        counts[left] -= 1
        counts[entered] += 1
        self.transitions += 1
        now = self.now
        dwell: int = now - agent._since
        agent.state, agent._since = entered, now
        if self.by_rate:
            self.members.remove(agent, left)
            self.members.add(agent, entered)
        if self._at == _EVERYBODY_IS_OVER or agent is self.acting:
            self._look_at(agent)
            return dwell

        place = self.place_of(agent)
        is_to_come = place > self._at and vars(agent).get("_acts_from", 0) <= now
        if is_to_come:
            # it has not had its turn in this tick, which will count
            dwell -= 1
            agent._since = now - 1
        if self._look_at(agent) and is_to_come:
            heappush(self._newcomers, (place, agent.agent_id, agent))
        return dwell

    def _look_at(self, agent: Agent) -> bool:
        """Note when an agent times out; return whether it has something to do in its state."""
        kind = self.kinds[type(agent)]
        if kind.limits:
            vars(agent)["_due"] = agent._since + kind.limits.get(agent.state, _NEVER)
            self._due.setdefault(max(agent._due, self._now + 1), []).append(agent)
        is_active = kind.is_ticked or agent.state in kind.steps or kind.has_regions
        if is_active and not agent.has_left:
            self._active[agent] = None
        else:
            self._active.pop(agent, None)
        return is_active

    # Turns

    def place_of(self, agent: Agent) -> int:
        """Return an agent's place in the order of this tick."""
        return agent._place if self.is_listed else mixed(agent._key + self.now * GOLDEN)

    def in_order(self, agents: Iterable[Agent]) -> list[tuple[int, str, Agent]]:
        """Return agents with their places, in this tick's order."""
        chosen = list(agents)
        if self.is_listed:
            places = [each._place for each in chosen]
        else:
            places = all_mixed([each._key for each in chosen], self.now * GOLDEN)
        return sorted(zip(places, [each.agent_id for each in chosen], chosen, strict=True))

    def begin_tick(self) -> None:
        """Begin a tick."""
        self._now = max(self.world.round - 1, 0) * self.ticks_per_round + self.clock.tick
        self._deferred = [] if self.world.together else None
        self.agent_ticks += len(self._everybody)

    def end_tick(self) -> None:
        """End a tick: carry out what was deferred."""
        self.acting = None
        if self._deferred is not None:
            deferred, self._deferred = self._deferred, None
            for _, _, action in sorted(deferred, key=lambda each: each[:2]):
                action()

    def _defer(self, action: Callable[[], object], whose: Agent) -> None:
        assert self._deferred is not None
        self._deferred.append((self.place_of(whose), whose.agent_id, action))

    async def give(self, agents: Iterable[Agent] | None = None) -> None:
        """Give turns to agents that have something to do, then settle what their steps wait for."""
        due = [each for each in self._due.pop(self._now, ()) if each._due <= self._now]
        if agents is None:
            chosen = self._active if not due else {**self._active, **dict.fromkeys(due)}
            turns: Iterable[Agent] = self._turns_of(chosen)
        else:
            turns = self._given_turns(list(agents), due)

        waiting: list[Waiting] = []
        try:
            if not self._has_ticked and not self.has_guests:
                self._plain_turns(turns, {*due}, waiting)
            else:
                for agent in turns:
                    waits = await self._outside(self._take(agent))
                    if waits is not None:
                        waiting.append(waits)
        except BaseException:
            for _, running, _ in waiting:
                running.close()
            raise

        await self._settle(waiting)

    def _plain_turns(
        self, turns: Iterable[Agent], late: Container[Agent], waiting: list[Waiting]
    ) -> None:
        """Let agents take the usual turn, which saves three calls for each.

        Args:
            turns: The agents.
            late: Those whose time is up.
            waiting: Where steps that wait are added.
        """
        kinds, world = self.kinds, self.world
        for agent in turns:
            if agent in late:
                waits = self._take(agent)
            else:
                self.acting = agent
                step = kinds[type(agent)].steps.get(agent.state)
                running = None if step is None else step(world, agent)
                if running is not None:
                    waits = self._advance(agent, running, None)
                elif self.unawaited is None:
                    continue
                else:
                    raise _unawaited(self.unawaited)
            if waits is not None:
                if not isinstance(waits[2], Waits):
                    _refuse_outside(waits)
                waiting.append(waits)

    async def happen(self, agent: Agent, step: Any) -> None:
        """Let an event happen to an agent, and wait until its step has ended."""
        self.acting = agent
        running = step(self.world, agent)
        if running is not None and (waits := self._advance(agent, running, None)) is not None:
            await self._settle([waits])
        elif self.unawaited is not None:
            raise _unawaited(self.unawaited)
        self.acting = None

    async def _settle(self, waiting: list[Waiting]) -> None:
        """Ask and continue in waves, until no step waits."""
        try:
            for _ in range(MOST_WAVES):
                if not waiting:
                    break
                waiting = await self._wave(waiting)
            else:
                raise SimulationError(
                    f"the step of {waiting[0][0]!r} still waits after {MOST_WAVES} answers in one "
                    "tick: let it end"
                )
        finally:
            for _, running, _ in waiting:
                running.close()
        self.acting = None

    def _given_turns(self, agents: Sequence[Agent], due: Sequence[Agent]) -> Iterator[Agent]:
        """Yield the agents that a world activates, after time has passed for all others."""
        others = dict.fromkeys(agents)
        if self._passed_in != self._now:
            self._passed_in = self._now
            ticked = [each for each in self._active if self.kinds[type(each)].is_ticked]
            passing = dict.fromkeys((*due, *(ticked if self._has_ticked else ())))
            for _, _, agent in self.in_order([each for each in passing if each not in others]):
                self._pass_time(agent)
        for agent in others:
            if not agent.has_left and vars(agent).get("_acts_from", 0) <= self.now:
                yield agent

    def _pass_time(self, agent: Agent) -> bool:
        """Let a tick pass for an agent; return whether a time-out takes its turn."""
        self.acting = agent
        kind = self.kinds[type(agent)]
        if kind.limits and agent._due <= self.now and self._time_out(agent):
            return True
        if kind.is_ticked and kind.chart.has_timers:
            self._let_pass(agent, kind)
        return False

    def _turns_of(self, agents: Iterable[Agent]) -> Iterator[Agent]:
        """Yield agents in their order, and those that get something to do while it is to come."""
        newcomers, last = self._newcomers, None
        for place in self.in_order(agents):
            while newcomers and newcomers[0] < place:
                self._at, _, agent = heappop(newcomers)
                if agent is not last and not agent.has_left:
                    yield agent
                last = agent
            self._at, _, agent = place
            if agent is not last and not agent.has_left:
                yield agent
            last = agent
        while newcomers:
            self._at, _, agent = heappop(newcomers)
            if agent is not last and not agent.has_left:
                yield agent
            last = agent
        self._at = _EVERYBODY_IS_OVER

    def _take(self, agent: Agent) -> Waiting | None:
        """Let an agent take its turn; return what its step waits for."""
        kind = self.kinds[type(agent)]
        # with timers, the step is that of the state in which the turn begins
        step = self.step_of(agent) if kind.is_ticked else None
        if self._pass_time(agent):
            return None
        step = step if kind.is_ticked else self.step_of(agent)
        running = None if step is None else step(self.world, agent)
        if running is not None:
            return self._advance(agent, running, None)
        if self.unawaited is not None:
            raise _unawaited(self.unawaited)
        return None

    def step_of(self, agent: Agent) -> Any:
        """Return the step of an agent's state; with regions, that of each active one in turn."""
        steps, state = self.kinds[type(agent)].steps, agent.state
        if type(state) is not Configuration or isinstance(agent, Guest):
            return steps.get(state)
        own = {steps[leaf]: leaf for leaf in reversed(state.leaves) if leaf in steps}
        if not own:
            return None
        return lambda world, agent: _several(world, agent, [*own.items()][::-1])

    def _time_out(self, agent: Agent) -> bool:
        """Fire the time-out that is due; return whether it takes the turn."""
        state = agent.state
        if self._deferred is not None:
            kind = self.kinds[type(agent)]
            self._put_off(agent)

            def fire() -> None:
                if kind.chart.fire(agent, TIMEOUT) is not None:
                    self.timeouts[state_text(state)] += 1

            self._defer(fire, agent)
            return True
        if self.fire(agent, TIMEOUT) is None:
            # a guard may let it pass later
            self._put_off(agent)
            return False
        self.timeouts[state_text(state)] += 1
        if agent._due <= self.now:
            self._put_off(agent)
        return True

    def _put_off(self, agent: Agent) -> None:
        vars(agent)["_due"] = self.now + 1
        self._due.setdefault(agent._due, []).append(agent)

    def _let_pass(self, agent: Any, kind: Kind) -> None:
        """Let a tick pass for a chart that has timers, rates or eventless transitions."""
        chart, before = kind.chart, agent.state_history[-1:]
        chart.let_pass(agent, agent.ticks_in_state, by_chance=not self.by_rate)
        last = before[0] if before else None
        for record in takewhile(lambda each: each is not last, reversed(agent.state_history)):
            if record.trigger == TIMEOUT:
                self.timeouts[state_text(record.from_state)] += 1

    def _advance(self, agent: Agent, running: Any, value: Any) -> Waiting | None:
        """Continue a step; return what it waits for, or None if it has ended."""
        self.acting = agent
        try:
            waits = running.send(value)
        except StopIteration:
            if self.unawaited is not None:
                raise _unawaited(self.unawaited) from None
            return None
        except AttributeError:
            if not hasattr(running, "send"):
                # what a plain step returns, such as the state that it fired into
                return None
            raise
        return agent, running, waits

    async def _outside(self, waiting: Waiting | None) -> Waiting | None:
        """Wait for what belongs to the event loop, such as a process that a guest has started."""
        while waiting is not None and not isinstance(waiting[2], Waits):
            agent, running, future = waiting
            if not isinstance(agent, Guest):
                _refuse_outside(waiting)
            try:
                if future is None:
                    await asyncio.sleep(0)
                else:
                    future._asyncio_future_blocking = False
                    await asyncio.wait([future])
            except asyncio.CancelledError as error:
                # of the run, or by a time limit of the guest's own
                waiting = self._advance(agent, _Throwing(running, error), None)
            else:
                waiting = self._advance(agent, running, None)
        return waiting

    # Waves

    async def _wave(self, waiting: Sequence[Waiting]) -> list[Waiting]:
        """Ask everything at once, then continue the steps in the order of the turns."""
        first: dict[Agent, Asked] = {}
        late: set[int] = set()
        for _, _, waits in waiting:
            # a second question to an agent waits for the first one's answer
            if type(waits) is Asked and first.setdefault(waits.agent, waits) is not waits:
                late.add(id(waits))
        writing = [waits for _, _, waits in waiting if type(waits) is Writing]
        await self._ask([*first.values()], writing)

        # agents that wait for a message that nobody will send get None
        is_quiet = all(
            type(waits) is Receiving and not waits.agent.inbox for _, _, waits in waiting
        )
        following: list[Waiting] = []
        try:
            for each in waiting:
                then = self._go_on(each, is_quiet=is_quiet, is_late=id(each[2]) in late)
                if then is not None and not isinstance(then[2], Waits):
                    then = await self._outside(then)
                if then is not None:
                    following.append(then)
        except BaseException:
            for _, running, _ in (*waiting, *following):
                running.close()
            raise
        return following

    def _go_on(self, waiting: Waiting, *, is_quiet: bool, is_late: bool) -> Waiting | None:
        """Continue a step with what it has waited for, unless it must wait longer."""
        agent, running, waits = waiting
        if agent.has_left:
            self._discard(agent, waits)
            running.close()
            return None
        if type(waits) is Receiving and not (waits.agent.inbox or is_quiet):
            return waiting
        if not is_late:
            return self._advance(agent, running, self._value_of(waits))
        settled = None if self._is_stale(waits) else self.settle(waits)
        return waiting if settled is waits else self._advance(agent, running, settled)

    async def _ask(self, asked: Sequence[Asked], writing: Sequence[Writing]) -> None:
        self.acting = None
        policy = self.answers.policy
        if policy is not None and asked:
            for each, chosen in zip(asked, policy.choose(asked, self.logger), strict=True):
                each.answer = chosen
            self.answers.count_drawn(len(asked))
            if not writing:
                return
            asked = ()
        if asked or writing:
            parameters = parameter_values(self.world)
            questions = [self._question(each, parameters) for each in asked]
            decisions, texts = await self.answers.ask(
                questions, [each.call for each in writing], self.logger
            )
            for each, decision in zip(asked, decisions, strict=True):
                each.answer, each.reason = decision.chosen, decision.said
            for text, written in zip(writing, texts, strict=True):
                text.answer = written

    def _question(self, asked: Asked, parameters: Mapping[str, Any]) -> Question:
        """Return a decision as a reasoner is asked."""
        agent = asked.agent
        return Question(
            agent,
            asked.state,
            asked.trigger,
            asked.options,
            asked.context,
            asked.weights,
            asked.prompt,
            self.kinds[type(agent)].chart.definition,
            parameters,
            None if self.answers.memory is None else agent.memories,
        )

    def _value_of(self, waits: Any) -> Any:
        """Carry out a decision; return the value with which its step continues."""
        if type(waits) is Receiving:
            return None
        if type(waits) is not Asked:
            written: Written = waits.answer
            if self.answers.memory is not None and isinstance(written.value, str):
                self.remember(waits.agent, f'You wrote: "{written.value}"')
            return written
        agent, answer = waits.agent, waits.answer
        if self._deferred is not None:
            self._defer(lambda: self._apply(waits), agent)
            return answer
        return self._apply(waits)

    def _apply(self, asked: Asked) -> Any:
        """Make a decided transition, unless the agent has moved or left."""
        agent, chosen = asked.agent, asked.answer
        if agent.has_left or self._is_stale(asked):
            self._discard(agent, asked)
            return None
        if self.answers.memory is not None and chosen == asked.state:
            self.remember(agent, stay_in_words(asked.state, asked.trigger, asked.context))
        return self.kinds[type(agent)].chart.fire_to(
            agent, asked.trigger, chosen, asked.context, asked_in=asked.state
        )

    def _is_stale(self, asked: Asked) -> bool:
        """Return whether an agent has moved since it was asked, even if it has returned."""
        history = asked.agent.state_history
        if (history[-1] if history else None) is asked.since:
            return False
        chart = self.kinds[type(asked.agent)].chart
        return bool(chart.has_moved(asked.agent, asked.state, asked.trigger, history, asked.since))

    def _discard(self, agent: Agent, waits: Any) -> None:
        """Log an answer that comes too late."""
        logger = active_logger(self.logger)
        if logger is not None and type(waits) is Asked:
            logger.warning(
                ANSWER_DISCARDED,
                chart=self.kinds[type(agent)].chart.name,
                agent_id=waits.agent.agent_id,
                trigger=waits.trigger,
                asked_in=state_text(waits.state),
                now_in=state_text(waits.agent.state),
                chosen=state_text(waits.answer),
                reason="left" if waits.agent.has_left else "moved",
            )

    async def take_alone(self, agent: Agent) -> None:
        """Take a whole turn by itself, for agents that are ahead of each other.

        Raises:
            SimulationError: If its step waits for another agent.
        """
        waiting = await self._outside(self._take(agent))
        while waiting is not None:
            _, running, waits = waiting
            if type(waits) is Receiving or waits.agent is not agent:
                running.close()
                raise SimulationError(
                    f"the step of {agent!r} waits for another agent, in an independent world"
                )
            if type(waits) is Asked:
                await self._ask([waits], ())
            else:
                await self._ask((), [waits])
            waiting = await self._outside(self._advance(agent, running, self._value_of(waits)))

    # Counts

    def states(self) -> dict[str, int]:
        """Return the number of agents in each state, by its text."""
        if self.has_guests:
            texts = Counter(state_text(agent.state) for agent in self._everybody)
            return dict(sorted(texts.items()))
        numbers: dict[str, int] = {}
        for definition in self.definitions:
            if not definition.hierarchy.tree.has_regions:
                numbers.update({state_text(each): 0 for each in definition.states})
        for state, number in sorted(self.counts.items(), key=lambda each: state_text(each[0])):
            if number:
                text = state_text(state)
                numbers[text] = numbers.get(text, 0) + number
        return numbers

    def begin_round(self) -> None:
        """Begin the counts of a round."""
        self.transitions, self.agent_ticks, self.timeouts = 0, 0, Counter()
        self.answers.begin_round()


class _Throwing:
    """A step that continues with an exception.

    Args:
        running: The step.
        error: The exception.
    """

    def __init__(self, running: Any, error: BaseException) -> None:
        self._running, self._error = running, error
        self.close = running.close

    def send(self, value: Any) -> Any:
        """Raise the exception in the step, the first time."""
        error, self._error = self._error, None  # type: ignore[assignment]
        return self._running.send(value) if error is None else self._running.throw(error)


def _triggers_of(chart: Definition[Any]) -> Iterable[str]:
    return (each.trigger for each in chart.transitions)


def _refuse_outside(waiting: Waiting) -> None:
    """Refuse what a step awaits that is not an agent's.

    Raises:
        SimulationError: Always.
    """
    agent, running, future = waiting
    frame = running.cr_frame
    place = None if frame is None else place_in(running.cr_code, frame.f_lasti)
    running.close()
    where = "" if place is None else f"{place}: "
    raise SimulationError(
        f"{where}the step of {agent!r} awaits {future!r}: await decide, write and receive of "
        "agents, whose answers come in the order of turns"
    )


def _unawaited(asked: Asked) -> SimulationError:
    return SimulationError(
        f"the decision of {asked.agent!r} on {asked.trigger!r} was not awaited, so it was never "
        f"made: write  await agent.decide({asked.trigger!r})  in an async step"
    )


async def _several(world: Any, agent: Any, steps: Sequence[tuple[Any, Any]]) -> None:
    """Take the step of each region, unless the region has moved meanwhile."""
    for step, leaf in steps:
        if leaf in leaves_in(agent.state):
            running = step(world, agent)
            if running is not None:
                await running


def _weights_of(asked: Asked, options: Sequence[Any], kind: Kind) -> Mapping[Any, float]:
    """Return the weights of the targets. A configuration gets that of its distinctive leaves.

    Raises:
        FieldValueError: If a weight is invalid, names a state that the event never reaches, or all
            are 0.
    """
    weights, owner = asked.weights or {}, f"the weights of {asked.agent.agent_id!r}"
    for state, weight in weights.items():
        is_number = isinstance(weight, (int, float)) and 0 <= weight < float("inf")
        if not is_number:
            raise FieldValueError(
                f"{owner} for {asked.trigger!r}: {state_text(state)} must be a number, 0 or more, "
                f"got {weight!r}"
            )
        if state not in options and not kind.chart.definition.leaves_of(state):
            raise FieldValueError(
                f"{owner} for {asked.trigger!r} name {state_text(state)!r}, which is no state of "
                "the chart"
            )
    if kind.has_regions:
        common = frozenset.intersection(*(frozenset(leaves_in(each)) for each in options))
        weights = {option: _of_leaves(option, weights, common) for option in options}
    if not any(weights.get(each) for each in options):
        listed = ", ".join(map(state_text, options))
        raise FieldValueError(f"{owner} for {asked.trigger!r} must be above 0 for one of {listed}")
    return weights


def _of_leaves(option: Any, weights: Mapping[Any, float], common: frozenset[Any]) -> float:
    if option in weights:
        return weights[option]
    own = [leaf for leaf in leaves_in(option) if leaf not in common]
    product = 1.0
    for leaf in own or leaves_in(option):
        product *= weights.get(leaf, 0.0)
    return product
