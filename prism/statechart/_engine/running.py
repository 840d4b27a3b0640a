"""The steps of a chart with composites, and the steps that follow without another event.

After every step eventless transitions are made, then what was raised is answered, until the agent
has settled (SCXML, appendix D, ``mainEventLoop``). Only then follows what its actions have queued.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from prism.statechart._engine.committing import Committing
from prism.statechart._engine.machine import EVENTLESS, Candidate
from prism.statechart._engine.memory import memory_of, remember
from prism.statechart._engine.pending import MOST_QUEUED_FIRES, restless
from prism.statechart.states import state_text
from prism.statechart.transitions import StateT
from prism.telemetry._instrument import engine_hooks

if TYPE_CHECKING:
    from prism.statechart._engine.documents import Session
    from prism.statechart._tree.plans import Plan


class Running(Committing[StateT]):
    """Makes the steps of a chart with composites."""

    # while actions of an agent run, by its address: the states that are active at that instant
    _instants: dict[int, frozenset[int]]

    def is_in(self, agent: Any, state: StateT) -> bool:
        """Return whether a state is active: the agent's own, or one around it.

        Inside entry and exit actions, these are the states that are active at that instant.
        """
        if self._nested is None:
            return bool(self._require_known_state(agent) == state)

        number = self._nested.planner.tree.numbers.get(state_text(state))
        if number is None:
            raise self._unknown_state(f"state {state!r}")
        active = self._instants.get(id(agent))
        if active is None:
            active = self._nested.place(self._require_known_state(agent)).active

        return number in active

    def active(self, state: Any) -> tuple[StateT, ...]:
        """Return an agent's state with all states around it, outermost first."""
        if self._nested is None:
            self._row(state)
            return (self._members[state],)

        self._row(state)
        nodes = self._nested.planner.tree.nodes
        return tuple(nodes[number].state for number in sorted(self._nested.place(state).active))

    # Making

    def _beginning(self, agent: Any) -> Candidate[StateT] | None:
        """Return the step that enters an agent's state; None for a flat chart."""
        if self._nested is None:
            return None
        if self._nested.planner.remembers:
            memory_of(self._definition.name, agent).clear()

        is_initial = agent.state == self._definition.initial
        return self._nested.beginning(None if is_initial else agent.state)

    def _step(self, agent: Any, candidate: Candidate[StateT], context: Any) -> bool:
        """Make one step and those that follow from it; return False if none is enabled."""
        assert self._nested is not None
        if self._nested.new_session is not None:
            session = self._nested.new_session(self, agent)
            return self._step_of_document(agent, candidate, context, session)

        if candidate[3].plan.is_open:
            resolved = self._resolved(candidate, agent, context)
            if resolved is None:
                return False
            candidate = resolved

        plan = candidate[3].plan
        if plan.before or plan.after or plan.remembers:
            self._make_nested(agent, candidate, context)
        else:
            self._make(agent, candidate, context)
        if plan.settles:
            # nothing says what is done is about
            self._settle(agent, context, deque((each, None) for each in plan.raised))
        return True

    def _step_of_document(
        self, agent: Any, candidate: Candidate[StateT], context: Any, session: Session
    ) -> bool:
        """Make one step of a chart that was read from SCXML, whose content raises events itself."""
        event = session.event_of(candidate[3].trigger, context)
        resolved = self._resolved(candidate, agent, event)
        if resolved is not None:
            self._make_nested(agent, resolved, event)
        elif not session.raised:
            return False

        self._settle(agent, event, session.raised, session)
        return True

    def _settle(
        self,
        agent: Any,
        context: Any,
        raised: deque[tuple[str, Any]],
        session: Session | None = None,
    ) -> None:
        """Make eventless transitions, and process the events that were raised."""
        made = 0
        while True:
            following = self._reacting(agent, EVENTLESS, context)
            while following is None and raised:
                trigger, context = raised.popleft()
                following = self._reacting(agent, trigger, context)
            if following is None:
                return

            made += 1
            if made > MOST_QUEUED_FIRES:
                raise restless(self._definition.name, agent)
            if session is not None:
                session.failed.clear()
            self._make_nested(agent, following, context)
            raised.extend((each, None) for each in following[3].plan.raised)

    def _reacting(self, agent: Any, trigger: Any, context: Any) -> Candidate[StateT] | None:
        candidates = self._rows[agent.state].get(trigger, ())
        for candidate in self._passing(candidates, agent, context):
            return self._resolved(candidate, agent, context)
        return None

    def _make_nested(  # noqa: C901 - written out for speed, as it says below
        self, agent: Any, candidate: Candidate[StateT], context: Any
    ) -> None:
        """Run exit actions and the transition's own, commit, and run entry actions.

        Each action runs while its states are active. One that fails does not stop the others.
        """
        _, _, target, edge = candidate
        plan: Plan = edge.plan
        # looked up before actions run, since both refuse what the chart cannot drive
        write = self._writers.get(agent.__class__) or self._writer_of(agent)
        memory = memory_of(self._definition.name, agent) if plan.remembers else None
        if engine_hooks:
            self._observe_transition("transition_began", agent, edge, context)

        # both loops are written out, since calls would be a twentieth of the step
        instants, key, made = self._instants, id(agent), edge
        try:
            for action, active in plan.before:
                instants[key] = active
                try:
                    action(agent, context)
                except Exception as error:
                    self._reporter.action_failed(error, agent, edge)
        finally:
            instants.pop(key, None)

        if agent.state is not edge.from_state:
            made = self._edge_after_action(agent, edge)
        if memory is not None:
            remember(memory, plan)
        if target != made.from_state:
            self._commit(agent, made, write, context)

        entries = iter(plan.after)
        try:
            for action, active in entries:
                instants[key] = active
                try:
                    action(agent, context)
                except Exception as error:
                    self._reporter.action_failed(error, agent, edge)
        except Exception as error:
            error.add_note(
                f"the agent is in {edge.to_text!r} all the same; "
                f"{len([*entries])} further entry actions did not run"
            )
            raise
        finally:
            instants.pop(key, None)

        if engine_hooks:
            self._observe_transition("transition", agent, edge, context)
