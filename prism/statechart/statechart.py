"""The engine: one chart, shared by all agents, that decides every move.

`Statechart` adapts a definition onto the ``transitions`` package and fires rows compiled from it.
The chart holds no agent: everything that changes lives in the agents themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Never, Self, TypeVar, cast

from prism.errors import AgentError, DefinitionError, ReasonerError, RunawayError, UnknownStateError
from prism.statechart._definition import (
    TIMEOUT,
    definition_problems,
    expand,
    in_definition_order,
    listed,
)
from prism.statechart._engine.arguments import (
    NOT_GIVEN,
    asks_itself,
    cannot_drive,
    refuse_state,
    require_reasoner,
    require_trigger,
)
from prism.statechart._engine.machine import Candidate, Rows, build_machine, compile_rows
from prism.statechart._engine.pending import Decider, OpenQuestions
from prism.statechart._engine.reporting import Reporter
from prism.statechart._engine.writing import (
    Writer,
    add_missing_fields,
    count_tick,
    write_kept,
    writer_of,
    writes_quietly,
)
from prism.statechart._identity import agent_name
from prism.statechart._portable import Portable
from prism.statechart.inspection._lint import Finding, find_flaws
from prism.statechart.states import is_state, state_text
from prism.statechart.transitions import Edge, StateT, Transition, shared_edge
from prism.telemetry._loggers import EventLogger, moves_are_heard

if TYPE_CHECKING:
    from transitions import Machine

MOST_QUEUED_FIRES = 1000
"""How many fires an agent's own actions may queue behind one fire before the engine calls it a loop."""

AgentT = TypeVar("AgentT")
ItemT = TypeVar("ItemT")

QueuedFire = tuple[str, Any, Any]
"""Trigger, context and target (None for the first match) of a fire that waits for the current move to commit."""


class Statechart(Portable, Generic[StateT]):
    """States and the moves between them, shared by every agent.

    Args:
        states: Members of one ``str``-based Enum, or the Enum itself. ``chart.states`` gives them
            back as a set.
        transitions: The moves; order matters, the first whose guard passes wins.
        initial: State that new agents start in.
        name: Name in logs and messages.
        decision_states: States in which `afire` asks a reasoner when several targets are enabled.
        timeouts: Ticks after which `tick` fires ``timeout``, for states that differ from the
            agent's own ``timeout_threshold``.
        strict: Let exceptions of guards and actions propagate instead of logging them.
        logger: A structlog logger to announce moves to. None means structlog's own, once it is
            configured.
        clock: Gives the current time in seconds since the epoch; a simulation passes its simulated
            one.

    Raises:
        DefinitionError: (a ValueError) listing everything that is wrong with the definition.
    """

    def __init__(
        self,
        states: Iterable[StateT],
        transitions: Iterable[Transition[StateT]],
        initial: StateT,
        *,
        name: str = "statechart",
        decision_states: Iterable[StateT] = (),
        timeouts: Mapping[StateT, int] | None = None,
        strict: bool = False,
        logger: EventLogger | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        members, moves, decisions = (
            in_definition_order(states),
            tuple(transitions),
            listed(decision_states),
        )
        limits = dict(timeouts or {})
        problems = definition_problems(members, moves, initial, decisions, limits)
        if problems:
            raise DefinitionError(f"chart {name!r}: " + "; ".join(problems))

        self._settings: dict[str, Any] = {
            "name": name,
            "decision_states": decisions,
            "timeouts": limits,
            "strict": strict,
            "logger": logger,
            "clock": clock,
        }
        self.name = name
        self.states: frozenset[StateT] = frozenset(members)
        self.transitions: tuple[Transition[StateT], ...] = expand(moves, members)
        self.initial: StateT = initial
        self.decision_states: frozenset[StateT] = frozenset(decisions)
        self.timeouts: Mapping[StateT, int] = MappingProxyType(limits)
        self._limits: dict[Any, int] = limits
        self.strict = strict
        self._members: dict[Any, StateT] = {member: member for member in members}
        self._reporter = Reporter(name, logger, strict=strict)
        self._has_logger = logger is not None
        self._clock = clock
        self._machine = build_machine(
            name,
            members,
            self.transitions,
            initial,
            guard_failed=self._reporter.guard_failed,
            action_failed=self._reporter.action_failed,
        )
        self._rows: Rows[StateT] = compile_rows(self._machine)
        self._writers: dict[type, Writer] = {}
        self._quiet_writers: dict[type, Writer] = {}
        self._firing: dict[int, deque[QueuedFire]] = {}
        self._questions = OpenQuestions()

    @property
    def machine(self) -> Machine:
        """The ``transitions`` Machine that defines this chart. Changes made to it do not reach the chart."""
        return self._machine

    def fire(
        self, agent: Any, trigger: str, context: Any = None, current_state: Never = NOT_GIVEN
    ) -> StateT | None:
        """Make the first move that the event allows.

        Candidates are tried in definition order. The winner's action runs, then the move commits:
        state, ``ticks_in_state = 0``, one history entry, one log event. A self-transition only runs
        its action. A fire on the same agent from inside its action is queued and runs right after
        this move commits.

        Args:
            agent: Anything with a writable ``state``.
            trigger: Name of the event.
            context: What the event is about; handed to guards and actions, recorded by its
                identifying fields.
            current_state: Never given. Other engines take it, so calls written for them are told
                the right call.

        Returns:
            The agent's state once all that the event set off has run; None if nothing applied or it
            was queued.

        Raises:
            AgentError: (a TypeError) if the object has no ``state``.
            TypeError: If the arguments are in another order, or a current state is among them.
            UnknownStateError: If the agent is in a state that this chart does not define.
            RunawayError: If the agent's actions go on firing without end.
        """
        if current_state is not NOT_GIVEN or (self._firing and id(agent) in self._firing):
            refuse_state("fire", agent, trigger, current_state)
            self._firing[id(agent)].append((trigger, context, None))
            return None

        try:
            state = agent.state
            candidates = self._rows[state][trigger]
        except (AttributeError, KeyError, TypeError):
            self._require_known_state(agent)
            require_trigger(trigger, context, self._machine.events, self.initial)
            return None

        for candidate in candidates:
            guard, action, target, edge = candidate
            if guard is None:
                break

            try:
                if guard(agent, context):
                    break
            except Exception as error:
                self._reporter.guard_failed(error, agent, edge)
        else:
            return None

        write = self._quiet_writers.get(agent.__class__)
        if action is not None or write is None or target == state:
            return self._run(agent, candidate, context)
        if self._questions.by_agent:
            self._questions.drop(agent)

        dwell = write(agent, edge, self._clock(), context)
        if self._has_logger or moves_are_heard():
            self._reporter.moved(agent, edge, dwell, context)

        return target

    @asks_itself
    async def afire(
        self,
        agent: Any,
        trigger: str,
        context: Any = None,
        current_state: Never = NOT_GIVEN,
        *,
        reasoner: Decider,
    ) -> StateT | None:
        """Make the move that the event calls for, asking the reasoner where several are open.

        In a decision state with more than one distinct enabled target the reasoner chooses among
        them. Everywhere else, and inside an action, where nothing can wait for an answer, this is
        exactly `fire`. If the agent has moved when the answer arrives, even if it came back, the
        answer is discarded and logged. A cancelled call leaves the agent as it was.

        Args:
            agent: Anything with a writable ``state``.
            trigger: Name of the event.
            context: What the event is about.
            current_state: Never given, as in `fire`.
            reasoner: Chooses among the enabled targets.

        Returns:
            As `fire`; None if the answer was discarded.

        Raises:
            ReasonerError: If the reasoner answers with something outside the options.
        """
        require_reasoner(agent, trigger, current_state, reasoner)
        state = self._require_known_state(agent)
        if state not in self.decision_states or id(agent) in self._firing:
            return self.fire(agent, trigger, context)

        candidates = self._enabled(agent, trigger, context)
        options = _distinct(target for _, _, target, _ in candidates)
        if not options:
            return None

        chosen = options[0]
        if len(options) > 1:
            chosen, holds = await self._questions.ask(reasoner, agent, trigger, options, context)
            if not holds:
                self._reporter.discarded(agent, trigger, state, chosen)
                return None

        return self._run(agent, _leading_to(chosen, candidates), context)

    def fire_to(
        self, agent: Any, trigger: str, target: StateT, context: Any = None
    ) -> StateT | None:
        """Make the move to one given target, if the event allows it now.

        This is how a caller that asked a reasoner itself commits the answer: guards are evaluated
        again.

        Returns:
            As `fire`; None if no enabled transition leads to the target.
        """
        if id(agent) in self._firing:
            self._firing[id(agent)].append((trigger, context, target))
            return None

        candidate = self._first_enabled(agent, trigger, context, target)
        return None if candidate is None else self._run(agent, candidate, context)

    def tick(self, agent: Any, context: Any = None) -> StateT | None:
        """Let one tick pass for an agent, and fire ``timeout`` if it has dwelt too long.

        The limit is ``chart.timeouts[state]`` where set, else ``agent.timeout_threshold``; the
        time-out fires when ``ticks_in_state`` is strictly greater (``spec/spec.md``, FR-6.2). An
        object without ``ticks_in_state`` never times out.

        Returns:
            The new state if the time-out moved the agent, else None.
        """
        ticks, limit = self._dwell(agent)
        if ticks is None or limit is None or ticks <= limit:
            return None
        return self.fire(agent, TIMEOUT, context)

    def enabled_targets(self, agent: Any, trigger: str, context: Any = None) -> list[StateT]:
        """List the distinct targets whose guards pass now, in definition order. Nothing is changed."""
        return _distinct(target for _, _, target, _ in self._enabled(agent, trigger, context))

    def valid_targets(self, state: StateT, trigger: str) -> list[StateT]:
        """List the distinct targets that a state and an event can lead to, guards ignored."""
        return _distinct(target for _, _, target, _ in self._row(state).get(trigger, ()))

    def valid_triggers(self, state: StateT) -> list[str]:
        """List the events that a state reacts to, in definition order, guards ignored."""
        row = self._row(state)
        return _distinct(
            item.trigger
            for item in self.transitions
            if item.source == state and item.trigger in row
        )

    def adopt(self, agent: AgentT) -> AgentT:
        """Give one existing object the fields of an agent that it lacks, and this chart's initial state.

        Fields that the object has stay as they are; a state given as plain text becomes the enum's
        member.

        Args:
            agent: Any object that takes new attributes.

        Returns:
            The same object.

        Raises:
            AgentError: If its class leaves no room for the missing fields.
            UnknownStateError: If it is in a state that this chart does not define.
        """
        add_missing_fields(agent, self.initial)
        state = self._require_known_state(agent)
        if not is_state(state):
            cast(Any, agent).state = self._members[state]

        return agent

    def check(self) -> list[Finding]:
        """List what is probably wrong with this chart, all at once.

        Reported are states that cannot be reached, states with no way out, transitions shadowed by
        an earlier unguarded one (outside decision states), and states that no ``timeout`` leaves,
        though they are not the initial one or have a limit in ``timeouts``.
        """
        return find_flaws(
            tuple(self._members),
            self.transitions,
            self.initial,
            self.decision_states,
            self.timeouts,
        )

    def __copy__(self) -> Self:
        """Return the chart itself: it holds no agent, so one serves all, also copies of agents that refer to it."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the chart itself, as `__copy__`."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by definition; guards, actions, logger and clock must be picklable themselves."""
        return partial(type(self), **self._settings), (self.states, self.transitions, self.initial)

    def __repr__(self) -> str:
        """Show name and size."""
        size = f"{len(self.states)} states, {len(self.transitions)} transitions"
        return f"Statechart({self.name!r}, {size}, initial={state_text(self.initial)!r})"

    def _dwell(self, agent: Any) -> tuple[int | None, int | None]:
        """Count one more tick in the state; give the ticks now, and the limit."""
        if self._quiet_writers.get(agent.__class__) is write_kept and agent._state in self._rows:
            ticks = agent._ticks_in_state = agent._ticks_in_state + 1
            return ticks, self._limits.get(agent._state) or agent._timeout_threshold

        ticks = getattr(agent, "ticks_in_state", None)
        if ticks is not None:
            self._require_known_state(agent)
            self._writer_of(agent)
            ticks = count_tick(agent, ticks)

        return ticks, self._limits.get(self._state_of(agent)) or getattr(
            agent, "timeout_threshold", None
        )

    def _run(self, agent: Any, candidate: Candidate[StateT], context: Any) -> StateT | None:
        """Make one move and everything that its action queues, until the agent is at rest."""
        queue = self._firing[id(agent)] = deque()
        try:
            self._make(agent, candidate, context)
            self._drain(agent, queue)
            return cast(StateT, self._members.get(agent.state, agent.state))
        finally:
            del self._firing[id(agent)]

    def _drain(self, agent: Any, queue: deque[QueuedFire]) -> None:
        fired = 0
        while queue:
            trigger, context, target = queue.popleft()
            fired += 1
            if fired > MOST_QUEUED_FIRES:
                raise RunawayError(
                    f"chart {self.name!r}: the actions of agent {agent_name(agent)!r} fired {MOST_QUEUED_FIRES} more "
                    f"events without coming to rest; the last was {trigger!r}: let an action end the chain"
                )

            following = self._first_enabled(agent, trigger, context, target)
            if following is not None:
                self._make(agent, following, context)

    def _make(self, agent: Any, candidate: Candidate[StateT], context: Any) -> None:
        """Run the action and commit."""
        _, action, target, edge = candidate
        if action is not None:
            try:
                action(agent, context)
            except Exception as error:
                self._reporter.action_failed(error, agent, edge)

            edge = self._edge_after_action(agent, edge)

        if target != edge.from_state:
            dwell = self._writer_of(agent)(agent, edge, self._clock(), context)
            self._questions.drop(agent)
            if self._has_logger or moves_are_heard():
                self._reporter.moved(agent, edge, dwell, context)

        candidate[3].made()

    def _edge_after_action(self, agent: Any, edge: Edge) -> Edge:
        """Report an action that moved the agent itself; the move then starts from where it left the agent."""
        state = agent.state
        if state == edge.from_state:
            return edge

        problem = (
            f"the action of {edge.trigger!r} moved the agent to {state_text(state)!r} itself: "
            "let it fire an event instead, which runs right after this move"
        )
        self._reporter.action_failed(AgentError(problem), agent, edge)

        return shared_edge(self._members.get(state, state), edge.to_state, edge.trigger)

    def _first_enabled(
        self, agent: Any, trigger: str, context: Any, target: Any
    ) -> Candidate[StateT] | None:
        """Find the first candidate whose guard passes, among those that lead to the target if there is one."""
        for candidate in self._candidates(agent, trigger, context):
            if (target is None or candidate[2] == target) and self._passes(
                candidate, agent, context
            ):
                return candidate

        return None

    def _enabled(self, agent: Any, trigger: str, context: Any) -> list[Candidate[StateT]]:
        return [
            found
            for found in self._candidates(agent, trigger, context)
            if self._passes(found, agent, context)
        ]

    def _passes(self, candidate: Candidate[StateT], agent: Any, context: Any) -> bool:
        guard, _, _, edge = candidate
        if guard is None:
            return True

        try:
            return bool(guard(agent, context))
        except Exception as error:
            self._reporter.guard_failed(error, agent, edge)
            return False

    def _row(self, state: Any) -> dict[str, tuple[Candidate[StateT], ...]]:
        try:
            return self._rows[state]
        except (KeyError, TypeError):
            raise UnknownStateError(self._unknown_state(f"state {state!r}")) from None

    def _candidates(self, agent: Any, trigger: str, context: Any) -> tuple[Candidate[StateT], ...]:
        self._require_known_state(agent)
        require_trigger(trigger, context, self._machine.events, self.initial)
        return self._rows[agent.state].get(trigger, ())

    def _state_of(self, agent: Any) -> Any:
        try:
            return agent.state
        except AttributeError as error:
            raise cannot_drive(self.name, agent, error) from None

    def _require_known_state(self, agent: Any) -> Any:
        state = self._state_of(agent)
        try:
            if state in self._rows:
                return state
        except TypeError:
            pass

        raise UnknownStateError(
            self._unknown_state(f"agent {agent_name(agent)!r} is in state {state!r}, which")
        )

    def _unknown_state(self, subject: str) -> str:
        listing = ", ".join(map(state_text, self._members))
        return f"{subject} is not in chart {self.name!r}: use one of {listing}"

    def _writer_of(self, agent: Any) -> Writer:
        cls = agent.__class__
        writer = self._writers.get(cls)
        if writer is None:
            writer = self._writers[cls] = writer_of(cls)
            if writes_quietly(cls):
                self._quiet_writers[cls] = writer

        return writer


def _distinct(items: Iterable[ItemT]) -> list[ItemT]:
    return list(dict.fromkeys(items))


def _leading_to(target: Any, candidates: list[Candidate[StateT]]) -> Candidate[StateT]:
    for candidate in candidates:
        if candidate[2] == target:
            return candidate

    options = ", ".join(_distinct(state_text(found) for _, _, found, _ in candidates))
    raise ReasonerError(
        f"the reasoner chose {target!r}, which is not among the options ({options})"
    )
