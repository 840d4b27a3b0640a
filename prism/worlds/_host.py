"""A run as its agents and their world see it: phase, time, random numbers, decisions, messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from math import inf, prod
from typing import Any

from prism._faults import note_place
from prism.errors import (
    AgentError,
    FieldTypeError,
    FieldValueError,
    SimulationError,
    UnknownStateError,
)
from prism.randomness import RandomStream
from prism.randomness._stream import maker_of_keys
from prism.reasoner._router import Router
from prism.reasoner._words import in_words
from prism.runlog import ReplayReasoner, SimulatedClock
from prism.runlog._keys import WORLD_EVENTS
from prism.runlog._writer import Moment
from prism.statechart import Configuration, Definition, PolicyReasoner, Question, Wording
from prism.statechart.names import did_you_mean, identify
from prism.statechart.states import state_text
from prism.telemetry.loggers import EventLogger, active_logger
from prism.worlds._agent_set import (
    in_state,
    leaves_in,
)
from prism.worlds._asking import Answerers
from prism.worlds._assignments import Assignments
from prism.worlds._charts import has_state, named, never_reached, unknown_among
from prism.worlds._fields import Fields, missing_attribute
from prism.worlds._notes import add_note, remembered
from prism.worlds._parameters import ParameterView
from prism.worlds._phase import ALLOWED, OVERLAP_RULE, UNABLE_TO_FIRE, Phase

_EVENT_NAME = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*")
_NO_ATTRIBUTE = re.compile(
    r"'(\w+)' object (?:has no )?attribute '(\w+)'"
    # the last words since Python 3.13
    r"(?: is read-only| and no __dict__ for setting new attributes)?$"
)

Fires = Callable[[Any, str, Any, Any], Any]
"""Receives an event: the agent that fires it, its trigger and context, and the target if chosen."""

_IN_SETUP, _AT_END = "setup", "end"
"""Parts of a run that have random numbers of their own."""

_RESERVED = ("event", "timestamp", "round", "tick")
"""Keys of every line of a log, which a world's own events cannot have."""

_ONLY_ITS_OWN = "a step may change only its own agent"

_NO_EPOCH = -2


class RunHost:
    """A run, as its agents and its world see it.

    Args:
        world: The world.
        seed: Seed of every random number.
        ticks_per_round: Ticks in a round.
        clock: The run's clock.
        answerers: The reasoner and the writer.
        logger: Where the world's own events go.

    Attributes:
        acting: The agent whose step is running.
        agents: The population, in the order in which it was given.
        clock: The run's clock.
        charts: The charts of all kinds, with or without agents; none before there are agents.
        asleep: Places of agents that have no turns for now.
        draws: Draws the decisions of this tick if nothing logs them, or None.
        epoch: The number of the current part of the run. Random numbers belong to one epoch.
        fires: Receives or refuses the events that agents fire, or None while they are carried out
            at once. `enter` sets it.
        gone: Places of the agents that have left, which have no turns and no state.
        has_guests: Whether objects of other classes are among the agents.
        has_proxies: Whether agents represent objects, whose states may change on their own.
        has_until: Whether the world says when the run ends.
        has_writer: Whether the run has a writer.
        is_replayed: Whether decisions are taken from another run.
        kinds: The kinds of the agents.
        logged: Ids of the agents that the log covers, or None for all.
        logger: Where the run's events go at the moment.
        meanings: Descriptions of the states, for a model.
        parameters: The world's current parameters.
        phase: What the run is doing. It changes by `enter`.
        refusing: Why nothing may change at the moment, or None if it may. `enter` sets it.
        remembers: Whether prompts contain what agents remember.
        roster: The states of the agents, from the end of `setup` on.
        router: Chooses who answers for an agent, or None if all agents share one.
        seed: Seed of every random number.
        sends: Receives messages, or None while they are delivered at once.
        stopped: When and why the run was stopped, or None.
        ticks_per_round: Ticks in a round.
        timeouts: Time-outs in this round, by the state that was left.
        transitions: Number of transitions in this round.
        triggers: The events that some chart of the world has, or None if they are not all known.
        unawaited: A decision that was requested but not yet awaited.
        wording: Length and language of texts for calls that do not specify them.
        world: The world.
    """

    def __init__(
        self,
        world: Any,
        seed: int,
        ticks_per_round: int,
        clock: SimulatedClock,
        answerers: Answerers,
        logger: EventLogger | None,
    ) -> None:
        decides = answerers.reasoner
        self.world: Any = world
        self.seed: int = seed
        self._keys_of = maker_of_keys(3, seed, "agent")
        self.ticks_per_round: int = ticks_per_round
        self.logger: EventLogger | None = logger
        self.wording: Wording = answerers.wording
        self.has_writer: bool = answerers.has_writer
        self.remembers: bool = getattr(decides, "memory", None) is not None
        self.router: Router | None = decides if isinstance(decides, Router) else None
        self.is_replayed: bool = isinstance(decides, ReplayReasoner)
        self.parameters: Mapping[str, Any] = ParameterView(world)
        self.meanings: Mapping[Any, str] = world.meanings
        self.agents: list[Any] = []
        self.kinds: Sequence[Any] = ()
        self.charts: Sequence[Definition[Any]] = ()
        self.triggers: Container[str] | None = None
        self._states: dict[int, Any] = {}
        self.acting: Any = None
        self.unawaited: Any = None
        self.roster: Any = None
        self.stopped: dict[str, Any] | None = None
        self.logged: frozenset[str] | None = None
        self.gone: set[int] = set()
        self.asleep: frozenset[int] = frozenset()
        self.has_guests: bool = False
        self.has_proxies: bool = False
        self.has_until: bool = False
        self.sends: Callable[[Any, Any], None] | None = None
        self.draws: PolicyReasoner | None = None
        self.timeouts: Counter[str] = Counter()
        self.transitions: int = 0
        self.epoch: int = 0
        self.phase: Phase = Phase.SETTING_UP
        self.refusing: str | None = None
        self.fires: Fires | None = self._refuse_fire
        self._receive: Fires | None = None
        self.clock: SimulatedClock = clock
        self._time: float | None = None
        self._part = _IN_SETUP
        self._world_random: RandomStream | None = None
        self._turn_random: RandomStream | None = None
        self._networks = 0
        # events of setup are written after those that begin the run
        self._buffer: list[tuple[str, dict[str, Any]]] | None = []

    @cached_property
    def assignments(self) -> Assignments:
        """The assignments to treatments."""
        return Assignments(self.seed)

    # Time

    @property
    def round(self) -> int:
        """The round, counted from 1; 0 before the first."""
        return self.clock.round

    @property
    def tick(self) -> int:
        """The tick of the round."""
        return self.clock.tick

    @property
    def ticks(self) -> int:
        """Ticks since the run began."""
        return max(self.round - 1, 0) * self.ticks_per_round + self.tick

    @property
    def time(self) -> float:
        """Time since the beginning, in rounds; within a tick, that of the event."""
        if self._time is not None:
            return self._time

        return max(self.round - 1, 0) + self.tick / self.ticks_per_round

    @contextmanager
    def within_tick(self, part: float) -> Iterator[None]:
        """Set the time to that of an event within a tick.

        Args:
            part: The fraction of the tick that has passed, from 0 to 1.
        """
        now = self.clock.moment
        time = now.time - timedelta(seconds=self.clock.seconds_per_tick * (1 - part))
        self._time = now.round - 1 + (now.tick - 1 + part) / self.ticks_per_round
        try:
            with self.clock.at(Moment(time, now.round, now.tick)):
                yield
        finally:
            self._time = None

    def begin_round(self) -> None:
        """Begin a round, which has its own random numbers."""
        self.enter(Phase.BEGINNING)
        self.timeouts, self.transitions = Counter(), 0
        self._begin_part("")

    def begin_ending(self) -> None:
        """Begin the end of a round, which also has its own random numbers."""
        self.enter(Phase.ENDING)
        self._begin_part(_AT_END)

    def _begin_part(self, part: str) -> None:
        self._part = part
        self._world_random = self._turn_random = None
        self.epoch = 2 * self.round + (part == _AT_END)

    def count_transition(self) -> float:
        """Count a transition, and return the time in seconds."""
        # the charts ask for the time exactly once for each transition
        self.transitions += 1
        return self.clock.moment.seconds

    def count_timeout(self, state: Any) -> None:
        """Count a time-out in a state."""
        self.timeouts[state_text(state)] += 1

    def stop(self, reason: str) -> None:
        """End the run after this tick or event.

        Raises:
            FieldTypeError: If the reason is not a text.
            SimulationError: If the run has not begun, or nothing may change at the moment.
        """
        if not isinstance(reason, str):
            raise FieldTypeError(f"stop: the reason must be text, got {reason!r}")
        if self.refusing is not None or self.round == 0:
            why = self.refusing or "it has not begun"
            raise SimulationError(f"the run cannot be stopped: {why}")

        told = {"tick": self.tick, "time": round(self.time, 9), "reason": reason}
        # in an overlap world, a later tick may be ahead
        before = self.stopped
        if before is None or (self.world.overlap and [*told.values()] < [*before.values()]):
            self.stopped = told

    # Phases

    def enter(self, phase: Phase, reason: str | None = None) -> None:
        """Switch to another phase, which decides whether agents may fire.

        Args:
            phase: The phase.
            reason: Why nothing may change in it, or None if it may.

        Raises:
            SimulationError: If it does not follow the current one.
        """
        before = self.phase
        if phase is not before and (before, phase) not in ALLOWED:
            raise SimulationError(f"a run cannot go from {before.value!r} to {phase.value!r}")

        self.phase, self.refusing = phase, reason
        self.fires = self._refuse_fire if phase in UNABLE_TO_FIRE else self._receive

    @contextmanager
    def in_phase(self, phase: Phase, reason: str | None = None) -> Iterator[None]:
        """Switch to another phase inside the block, and back afterwards."""
        before = self.phase
        self.enter(phase, reason)
        try:
            yield
        finally:
            self.enter(before)

    @contextmanager
    def only_looking(self, reason: str) -> Iterator[None]:
        """Refuse every change and every draw inside the block."""
        # streams look whether they may be drawn from when a part of the run begins
        epoch, self.epoch = self.epoch, _NO_EPOCH
        try:
            with self.in_phase(Phase.LOOKING, reason):
                yield
        finally:
            self.epoch = epoch

    @property
    def late(self) -> str | None:
        """Why a step may not change the world at the moment, or None if it may."""
        if self.phase is not Phase.GOING_ON:
            return None

        if self.world.overlap == "alone":
            return f'in a world with overlap = "alone", {_ONLY_ITS_OWN}: {OVERLAP_RULE}'
        return f"after its first await, {_ONLY_ITS_OWN}: {OVERLAP_RULE}"

    def receive_events(self, receive: Fires | None) -> None:
        """Pass on what agents fire from now on, or, if None, have it carried out at once."""
        self._receive = receive
        self.enter(self.phase, self.refusing)

    def _refuse_fire(self, agent: Any, trigger: str, _context: Any, _chosen: Any) -> Any:
        reason = self.refusing or "setup prepares agents by begin_in, before the first round"
        raise SimulationError(f"agent {agent.agent_id!r} cannot fire {trigger!r}: {reason}")

    # Random numbers

    def require_drawing(self, who: str) -> None:
        """Refuse a draw if nothing may be drawn at the moment.

        Raises:
            SimulationError: If nothing may.
        """
        if self.refusing is not None:
            raise SimulationError(f"{who} cannot draw random numbers: {self.refusing}")

    def world_stream(self) -> RandomStream:
        """Return the world's random stream for the current epoch.

        Raises:
            SimulationError: If nothing may be drawn at the moment, or the draw would depend on the
                order of agents.
        """
        self.require_drawing("the world")
        if self.late is not None:
            raise SimulationError(f"the world cannot draw random numbers: {self.late}")
        if self.acting is not None and self.world.together:
            raise SimulationError(
                f"{type(self.world).__name__} is a together world, in which the order of agents "
                "must not matter: draw from agent.random in steps"
            )
        if self._world_random is None:
            # one part longer than the key of a decision, since an agent may be called "world"
            self._world_random = RandomStream(self.seed, "world", self._part, self.round)

        return self._world_random

    def turn_stream(self) -> RandomStream:
        """Return the random stream of this round for drawing turns."""
        if self._turn_random is None:
            self._turn_random = RandomStream(self.seed, "turn", self._part, self.round)

        return self._turn_random

    def network_stream(self) -> RandomStream:
        """Return the random stream for the next network."""
        self._networks += self._part == _IN_SETUP
        return RandomStream(self.seed, "network", self._part, f"{self.round}.{self._networks}")

    def chart_stream_of(self, agent: Any) -> RandomStream:
        """Return the random stream for an agent's chart in this round."""
        # few charts draw, so an agent gets its chart's stream at its first draw
        kept: tuple[int, RandomStream] | None = agent._chart_random
        if kept is None or kept[0] != self.epoch:
            stream = RandomStream(self.seed, "chart", agent.agent_id, self._part, self.round)
            kept = agent._chart_random = self.epoch, stream

        return kept[1]

    def keys_of(self, agent: Any) -> tuple[int, ...]:
        """Return an agent's own 64-bit keys for its places, its steps and its decisions."""
        if agent._keys is None:
            agent._keys = self._keys_of(agent.agent_id)

        keys: tuple[int, ...] = agent._keys
        return keys

    # What agents and the world call

    @property
    def has_network(self) -> bool:
        """Whether the agents are connected."""
        return self.world._network is not None

    def classes(self) -> list[type]:
        """Return the classes of the agents, in the order in which they appear."""
        return list(dict.fromkeys(map(type, self.agents)))

    def canonical(self) -> list[Any]:
        """Return the agents in an order that does not depend on the list."""
        return sorted(self.agents, key=lambda each: (self.keys_of(each)[0], each.agent_id))

    def count(self, state: Any) -> int:
        """Return the number of agents in a state."""
        # in an overlap world, this refuses a step that looks at other agents
        looks = self.world.overlap and self.acting is not None
        if self.roster is None or self.has_proxies or looks:
            return len(in_state(self.agents, state))

        found: int = self.roster.count(state)
        return found

    def set_ticks(self, agent: Any, ticks: int) -> None:
        """Set the number of ticks that an agent has spent in its state.

        Raises:
            FieldValueError: If it is not a whole number of at least 0.
            SimulationError: If nothing may change at the moment.
        """
        if not isinstance(ticks, int) or isinstance(ticks, bool) or ticks < 0:
            raise FieldValueError(
                f"ticks_in_state must be a whole number, 0 or more, got {ticks!r}"
            )
        if self.refusing is not None or self.roster is None:
            why = self.refusing or "the run has not begun"
            raise SimulationError(f"ticks_in_state of {agent.agent_id!r} cannot be set: {why}")

        self.roster.set_ticks(agent, ticks)

    def is_to_end(self) -> bool:
        """Return whether the run was stopped, or its world's ``until`` is true."""
        if self.stopped is None and self.has_until:
            self.acting = None
            looking = self.only_looking("until must not change anything: use a hook")
            with looking, self.explaining():
                ends = self.world.until()
            if ends:
                self.stop("until")

        return self.stopped is not None

    def send(self, message: Any, to: Any) -> None:
        """Deliver a message.

        Raises:
            AgentError: If the recipient is not an agent of the run.
            SimulationError: If nothing may change now.
        """
        if getattr(to, "_host", None) is not self:
            raise AgentError(f"the receiver of a message must be an agent of the world, got {to!r}")
        if self.refusing is not None:
            raise SimulationError(f"nothing can be sent: {self.refusing}")

        if self.sends is None:
            self.deliver(message, to)
        else:
            self.sends(message, to)

    def deliver(self, message: Any, to: Any) -> None:
        """Put a message into an inbox and into the memory of both agents."""
        to.inbox.append(message)
        if self.remembers:
            content = in_words(message.content)
            self.remember(message.sender, f"You told {to.name}: {content}")
            self.remember(to, f"{message.sender.name} told you: {content}")

    def remember(self, agent: Any, text: str) -> None:
        """Store a note of what happened to an agent, if prompts contain what agents remember."""
        if self.remembers:
            add_note(agent, self.clock.moment.seconds, text)

    def note(self, agent: Any, text: str) -> None:
        """Store a note of the user's for an agent to remember.

        Raises:
            FieldTypeError: If it is not a text.
            SimulationError: If nothing may change at the moment, or the order of notes would depend
                on that of the agents.
        """
        if not isinstance(text, str):
            raise FieldTypeError(f"a note must be text, got {text!r}")
        if self.refusing is not None:
            raise SimulationError(f"nothing can be noted: {self.refusing}")
        if self.world.together and self.acting not in (None, agent):
            raise SimulationError(
                f"{type(self.world).__name__} is a together world, in which the order of agents "
                "must not matter: in a step, an agent may note only for itself"
            )

        add_note(agent, self.clock.moment.seconds, text)

    def settle(self, asked: Any) -> Any:
        """Carry out a request that leaves nothing to decide, or return it if it is a question."""
        agent = asked.agent
        options = agent._kind.targets_of(agent, asked.trigger, asked.context)
        if len(options) < 2:
            if asked.weights is not None or asked.prompt is not None:
                _require_decision_state(asked)
            return agent.fire(asked.trigger, asked.context)
        if asked.weights is not None:
            asked.weights = _weights_by_option(asked, options)

        # as `last_record`, without a call for every question
        history = agent._state_history
        asked.state, asked.options = agent._state, options
        asked.since = history[-1] if history else None
        if self.draws is None:
            asked.question = Question(
                agent,
                asked.state,
                asked.trigger,
                options,
                asked.context,
                asked.weights,
                asked.prompt,
                agent._kind.definition,
                self.parameters,
                remembered(agent) if self.remembers else None,
            )

        return asked

    def log(self, event: str, keys: Mapping[str, Any]) -> None:
        """Write one of the world's own events.

        Raises:
            FieldValueError: If its name or a key is invalid.
            SimulationError: If nothing may be logged at the moment.
        """
        if self.refusing is not None:
            raise SimulationError(f"world.{event} cannot be logged: {self.refusing}")
        _require_event(event, keys)

        if self._buffer is None and active_logger(self.logger) is None:
            return

        named = {"agent_id" if name == "agent" else name: value for name, value in keys.items()}
        told = identify(named) or {}
        if self._buffer is not None:
            self._buffer.append((WORLD_EVENTS + event, told))
        else:
            self.emit(WORLD_EVENTS + event, **told)

    def emit(self, event: str, **keys: Any) -> None:
        """Write one of the run's events."""
        logger = active_logger(self.logger)
        if logger is not None:
            logger.info(event, **keys)

    def able_to_be_in(self, state: Any) -> int:
        """Return the number of agents whose chart contains a state."""
        return sum(len(kind.agents) for kind in self.kinds if kind.definition.leaves_of(state))

    def require_state(self, state: Any) -> None:
        """Refuse a state that no agent of this world can ever be in.

        Raises:
            UnknownStateError: If no chart of its kinds has the state.
        """
        if id(state) in self._states or not self.charts:
            return
        if isinstance(state, Configuration):
            for leaf in state.leaves:
                self.require_state(leaf)
            return

        if not has_state(self.charts, state):
            raise UnknownStateError(
                f"no agent of {type(self.world).__name__} has a chart with the state "
                f"{unknown_among(state, self.charts)}"
            )

        # keep a reference, so that no other object gets the same address
        self._states[id(state)] = state

    def end_setup(self, *, is_resumed: bool) -> None:
        """Write the events that `setup` logged, unless the run was resumed."""
        buffered, self._buffer = self._buffer or [], None
        for event, keys in buffered if not is_resumed else ():
            self.emit(event, **keys)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Add to an exception of the user's code where it was raised, and what to declare."""
        try:
            yield
        except AttributeError as error:
            found = _NO_ATTRIBUTE.search(str(error))
            cls = None if found is None else self._class_named(found[1])
            told = error
            if found is not None and cls is not None:
                told = AttributeError(missing_attribute(cls, found[2]))
            elif "property 'state'" in str(error):
                told = AttributeError(
                    f"{error}: change it with fire or decide, and in setup with begin_in"
                )

            self._note_place(error)
            if told is error:
                raise
            told.__notes__ = getattr(error, "__notes__", [])
            raise told.with_traceback(error.__traceback__) from None
        except Exception as error:
            self._note_place(error)
            raise

    def _note_place(self, error: BaseException) -> None:
        note_place(error, self.acting, self.round, self.tick)

    def _class_named(self, name: str) -> Fields | None:
        # Thing is the only class with fields that has no base of its own
        things = (each for each in object.__subclasses__() if isinstance(each, Fields))
        below = (each for thing in things for each in _classes_below(thing))
        classes = [type(self.world), *{type(agent) for agent in self.agents}, *below]
        fitting = (cls for cls in classes if cls.__name__ == name and isinstance(cls, Fields))
        return next(fitting, None)


def _classes_below(cls: Any) -> Iterator[type]:
    for each in cls.__subclasses__():
        yield each
        yield from _classes_below(each)


def last_record(agent: Any) -> Any:
    """Return an agent's last transition, which differs if the agent has moved, even back."""
    history: Sequence[Any] = agent._state_history
    return history[-1] if history else None


def _require_event(event: str, keys: Iterable[str]) -> None:
    if not isinstance(event, str) or not _EVENT_NAME.fullmatch(event):
        raise FieldValueError(
            f"an event's name must be lower-case letters, digits and underscores, got {event!r}"
        )
    if reserved := [name for name in keys if name in _RESERVED]:
        raise FieldValueError(
            f"world.{event}: the key {reserved[0]!r} is part of every line: use another name"
        )


def _require_decision_state(asked: Any) -> None:
    """Refuse weights and a prompt where several transitions are enabled that nobody decides on.

    Raises:
        FieldValueError: If the first of several would be made, whatever they say.
    """
    agent = asked.agent
    options = agent._kind.chart.enabled_targets(agent._subject, asked.trigger, asked.context)
    if len(options) > 1:
        given = "weights" if asked.weights is not None else "prompt"
        state = agent._state
        leaves = state.leaves if isinstance(state, Configuration) else (state,)
        raise FieldValueError(
            f"agent {agent.agent_id!r}: {asked.trigger!r} leads to {_listed(options)} in "
            f"{state_text(state)!r}, where the first is taken, whatever the {given}: add "
            f"{' or '.join(map(named, leaves))} to the chart's decision_states, or give no {given}"
        )


def _weights_by_option(asked: Any, options: Sequence[Any]) -> Mapping[Any, float]:
    """Return the weights of the targets. A configuration gets that of its distinctive leaves.

    Raises:
        FieldValueError: If a state is not in the chart, a weight is invalid, or all weights are 0.
    """
    weights, kind = asked.weights or {}, asked.agent._kind
    if type(weights) is not dict and not isinstance(weights, Mapping):
        raise FieldValueError(
            f"{_weights_of(asked)} must be a mapping of states and numbers, got {weights!r}"
        )

    targets = kind.ever_reached(asked.trigger)
    for key, weight in weights.items():
        # the usual case, without the checks of the general one
        if not (key in targets and type(weight) is float and 0.0 <= weight < inf):
            _check_weight(asked, options, key, weight)

    if kind.has_regions:
        common = frozenset.intersection(*map(leaves_in, options))
        # keep it besides those of the leaves, since a second question may follow
        of_options = {option: _weight_of(option, weights, common) for option in options}
        weights = {**weights, **of_options}

    # most often the first is possible
    if not (weights.get(options[0]) or any(map(weights.get, options))):
        raise FieldValueError(
            f"{_weights_of(asked)} must be above 0 for at least one of {_listed(options)}"
        )

    return weights


def _check_weight(asked: Any, options: Sequence[Any], key: Any, weight: Any) -> None:
    kind = asked.agent._kind
    if key not in kind.counts and not _is_state(kind, key):
        raise FieldValueError(
            f"{_weights_of(asked)} must be by states of its chart, of which the options are "
            f"{_listed(options)}, got {key!r}"
            + did_you_mean(key, list(map(state_text, kind.definition.states)))
        )
    targets = kind.ever_reached(asked.trigger)
    if targets.isdisjoint(leaves_in(key)):
        problem = never_reached(key, asked.trigger, targets)
        raise FieldValueError(f"{_weights_of(asked)} {problem}")
    if not (isinstance(weight, (int, float)) and 0 <= weight < inf):
        raise FieldValueError(
            f"{_weights_of(asked)} must be numbers, 0 or more, got {weight!r} for "
            f"{state_text(key)!r}"
        )


def _listed(options: Sequence[Any]) -> str:
    return ", ".join(map(state_text, options))


def _is_state(kind: Any, key: Any) -> bool:
    return kind.has_regions and (key in kind.definition.states or kind.chart.can_be_in(key))


def _weight_of(option: Any, weights: Mapping[Any, float], common: Container[Any]) -> float:
    leaves = option.leaves if isinstance(option, Configuration) else (option,)
    named = [weights[leaf] for leaf in leaves if leaf in weights and leaf not in common]
    return prod(named) if named else 0


def _weights_of(asked: Any) -> str:
    return f"agent {asked.agent.agent_id!r}: the weights of {asked.trigger!r}"
