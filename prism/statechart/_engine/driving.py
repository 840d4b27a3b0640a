"""What moves agents besides events: they begin, time passes, and reasoners decide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from functools import partial
from itertools import chain, takewhile
from types import SimpleNamespace
from typing import Any, Self

from prism.errors import AgentError, DefinitionError, ReasonerError
from prism.statechart._definition import Definition
from prism.statechart._engine.firing import Engine
from prism.statechart._engine.machine import passes, snapshot_of
from prism.statechart._engine.writing import history_of, set_state
from prism.statechart.memory import count_of
from prism.statechart.reporting import Decider, Options, announce
from prism.statechart.states import SEPARATOR, leaf_texts, state_text
from prism.statechart.transitions import StateT
from prism.telemetry.loggers import EventLogger


class Driving(Engine[StateT]):
    """Begins agents, lets time pass for them, and asks reasoners what an event makes of them."""

    # Beginning, and ticks

    def bound(self, name: str, logger: EventLogger | None, clock: Callable[[], Any]) -> Self:
        """Return the chart under a name, with a logger and a clock of its own, and without agents.

        A run binds the charts of its agents this way. An action that fires on the chart it was
        written for waits for the transition that the new chart makes.

        Raises:
            DefinitionError: If this one's Machine has been changed.
        """
        if self._machine is not None and snapshot_of(self._machine) != self._built:
            problem = "has a changed Machine, which no world runs: write transitions and actions"
            raise DefinitionError(f"chart {self.name!r} {problem}")
        arguments = {**self._definition.arguments, "name": name}
        chart: Self = remade(type(self), arguments, logger, clock, vars(self))
        chart._firing = self._firing
        return chart

    def begin(self, agent: Any, context: Any = None) -> StateT:
        """Enter the initial state, as SCXML does: entry actions, outermost first, then settling.

        What the chart remembered about the agent is forgotten. Only the transitions that
        follow without an event are recorded. An agent whose ``state`` is merely assigned has run no
        entry actions.

        Args:
            agent: Anything with a writable ``state``.
            context: What entry actions get.

        Returns:
            The agent's state once it has settled.

        Raises:
            AgentError: As `fire`; also inside an action of the agent.
        """
        self._require_rest(agent, "begin", "leave the transition half made: fire an event there")
        set_state(agent, self._definition.initial)
        return self.enter(agent, context)

    def enter(self, agent: Any, context: Any = None) -> StateT:
        """Enter the current state of an agent, as `begin` enters the initial one."""
        if self.schedule is not None:
            self.schedule.begin(agent, context)
        return self._member(agent.state)

    def tick(self, agent: Any, context: Any = None) -> StateT | None:
        """Let one tick pass for an agent, and fire ``timeout`` if it has dwelt too long.

        The limit is that of the chart's ``timeouts``, else ``agent.timeout_threshold``; the
        time-out fires when ``ticks_in_state`` is strictly greater (specification, FR-6.2). An
        object without ``ticks_in_state`` never times out, nor does an agent in a final state or on
        a chart without the trigger ``timeout``.

        In a chart with timers, time-outs come first, then ``after`` (both outermost first), then
        rates, each only if its state is still active. Then the agent settles, since guards may read
        what other agents have changed.

        Returns:
            The new state if the tick moved the agent, else None.

        Raises:
            AgentError: Inside an action of the agent.
        """
        self._require_rest(agent, "tick", "count for neither state: let it pass before or after")
        state = self._require_state(agent)
        ticks = count_of(agent, "ticks_in_state")
        if ticks is not None:
            agent.ticks_in_state = ticks = ticks + 1
        if self.schedule is not None:
            # rates and composites need no count of the agent's
            return self.schedule.tick(agent, ticks or 1, context)

        limit = self._definition.limits.get(state_text(state), count_of(agent, "timeout_threshold"))
        if not (ticks and limit and ticks > limit):
            return None
        if not self._arcs(self._machine.get_model_state(agent), self._timeout_trigger):
            return None
        return self.fire(agent, self._timeout_trigger, *(() if context is None else (context,)))

    def _require_rest(self, agent: Any, name: str, problem: str) -> None:
        if id(agent) in self._firing:
            raise AgentError(f"chart {self.name!r}: {name} inside an action would {problem}")

    # Decisions

    def enabled_targets(self, agent: Any, trigger: str, context: Any = None) -> list[StateT]:
        """Return the distinct targets whose guards pass now, in definition order.

        Nothing is changed.
        """
        self._require_state(agent)
        if not self._has_trigger(trigger):
            return []
        if self.schedule is not None:
            steps = self.schedule.enabled(agent, trigger, context)
            return distinct(each.to_state for each in steps)
        arcs = self._arcs(self._machine.get_model_state(agent), trigger)
        passing = (arc for arc in arcs if passes(self._machine, trigger, arc, agent, context))
        return distinct(self._edge_of(arc, trigger).to_state for arc in passing)

    def decides(self, state: Any) -> bool:
        """Return whether a reasoner chooses in a state, or in one of its leaves."""
        tree = self._definition.hierarchy
        return not tree.decides.isdisjoint(map(tree.numbers.get, leaf_texts(state)))

    async def afire(
        self, agent: Any, trigger: str, context: Any = None, *, reasoner: Decider
    ) -> StateT | None:
        """Make the transition that the event calls for; a reasoner decides if several are enabled.

        In a decision state with more than one distinct enabled target the reasoner chooses among
        them. Everywhere else, and inside an action, where nothing can wait for an answer, this is
        exactly `fire`. When the answer arrives, guards are evaluated again. If nothing that they
        enable leads to the chosen target, or the agent has moved (its history tells if it came
        back), the answer is discarded and logged. In a chart with regions an answer is about the
        regions that react to the event: it holds though others have moved. A cancelled call leaves
        the agent as it was.

        The decision is announced as ``reasoner.decision``, by the reasoner or in its place.

        Args:
            agent: Anything with a writable ``state``.
            trigger: Name of the event.
            context: The event's context.
            reasoner: Chooses among the enabled targets.

        Returns:
            As `fire`; None if the answer was discarded.

        Raises:
            ReasonerError: If the reasoner answers with something outside the options.
        """
        state = self._require_state(agent)
        asks = id(agent) not in self._firing and self.decides(state)
        options = self.enabled_targets(agent, trigger, context) if asks else []
        if len(options) < 2:
            return self.fire(agent, trigger, context)

        record = next(reversed(history_of(agent)), None)
        offered = Options(options)
        offered.chart = self._definition
        chosen = await reasoner.decide(agent, state, trigger, offered, context)
        # an answer outside the options is no decision, and an error of its own
        if not offered.are_announced and chosen in options:
            about = {"agent": agent, "state": state, "trigger": trigger, "context": context}
            question = SimpleNamespace(**about, options=options, chart=self._definition)
            how = {"reason": None, "probabilities": None}
            announce(self._reporter.logger, question, chosen, "policy", how)
        if self.has_moved(agent, state, trigger, record):
            self._reporter.discarded(agent, trigger, state, chosen, "moved")
            return None
        if chosen not in options:
            listing = ", ".join(map(state_text, options))
            problem = f"the reasoner chose {chosen!r}, which is not among the options ({listing})"
            raise ReasonerError(problem)
        return self.fire_to(agent, trigger, chosen, context, asked_in=state)

    def fire_to(
        self,
        agent: Any,
        trigger: str,
        target: StateT,
        context: Any = None,
        *,
        asked_in: StateT | None = None,
    ) -> StateT | None:
        """Make the transition to one given target, if the event enables it now.

        A caller that asked a reasoner itself commits the answer this way: guards are evaluated
        again. An answer that no longer applies is discarded and logged, as in `afire`.

        Args:
            agent: Anything with a writable ``state``.
            trigger: Name of the event.
            target: The target that was chosen.
            context: The event's context.
            asked_in: State in which the agent was asked; if it is in another one now, the answer no
                longer applies. In a chart with regions, those that do not react to the event do not
                count.

        Returns:
            As `fire`; None if no enabled transition leads to the target, or it was queued.
        """
        again = partial(self.fire_to, asked_in=asked_in)
        if self._firing and self._is_queued(again, agent, trigger, target, context):
            return None
        leads: Any = target
        now = self._require_state(agent)
        state = now if asked_in is None else asked_in
        is_there = state == now or self._deciding_leaves(state, trigger) <= {*leaf_texts(now)}
        if is_there and state != now:
            # the same change, though other regions have moved
            before, after, leaves = ({*leaf_texts(each)} for each in (state, target, now))
            leading = leaves - (before - after) | after - before
            texts = self._definition.hierarchy.texts
            leads = SEPARATOR.join(text for text in texts if text in leading)
        made = self.fire(agent, trigger, context, leads) if is_there else None
        # of an event that the chart does not have there is a warning already
        if made is None and type(trigger) is str and trigger in self._triggers:
            reason = "not_enabled" if is_there else "moved"
            self._reporter.discarded(agent, trigger, state, target, reason)
        return made

    def has_moved(self, agent: Any, asked_in: Any, trigger: str, record: Any) -> bool:
        """Return whether an agent has moved since it was asked, even if it has come back.

        Args:
            agent: Who was asked.
            asked_in: Its state when it was asked.
            trigger: The event that it was asked about.
            record: The last entry of its history when it was asked; None if there was none.
        """
        about = self._deciding_leaves(asked_in, trigger)
        later = takewhile(lambda entry: entry is not record, reversed(history_of(agent)))
        moves = ({*leaf_texts(each.from_state)} ^ {*leaf_texts(each.to_state)} for each in later)
        return not about <= {*leaf_texts(agent.state)} or not about.isdisjoint(chain(*moves))

    def _deciding_leaves(self, state: Any, trigger: str) -> Set[str]:
        """Return the texts of the leaves that an answer about an event depends on."""
        if self.schedule is None or not self.can_be_in(state):
            return {*leaf_texts(state)}
        return self.schedule.rows.deciding_leaves(state, trigger)


def remade(cls: Any, arguments: Any, logger: Any, clock: Any, fields: Any = ()) -> Any:
    """Make a chart past the constructor of its class, which may take arguments of its own.

    Args:
        cls: The class.
        arguments: Those of the definition.
        logger: As for a chart.
        clock: As for a chart.
        fields: Those of another chart, of which it keeps what a derived class has added.
    """
    chart: Any = object.__new__(cls)
    vars(chart).update(fields, _machine=None)
    Engine.__init__(chart, Definition(**arguments), logger, clock)
    return chart


def distinct(items: Iterable[Any]) -> list[Any]:
    """Return items without repetitions, in their order."""
    return list(dict.fromkeys(items))
