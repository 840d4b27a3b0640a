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
from prism.statechart._engine.pending import MOST_QUEUED_FIRES, close_overtaken, restless
from prism.statechart._engine.writing import write_kept
from prism.statechart.states import state_text
from prism.statechart.transitions import StateT
from prism.telemetry._instrument import engine_hooks
from prism.telemetry._loggers import somebody_listens

if TYPE_CHECKING:
    from prism.statechart._engine.documents import Session
    from prism.statechart._tree.plans import Plan


class Running(Committing[StateT]):
    """Makes the steps of a chart with composites."""

    # while actions of an agent run, by its address: the states that are active at that instant
    _instants: dict[int, frozenset[int] | None]

    def is_in(self, agent: Any, state: StateT) -> bool:
        """Return whether a state is active: the agent's own, or one around it.

        Inside entry and exit actions, these are the states that are active at that instant.
        """
        if self._nested is None:
            return bool(self._require_known_state(agent) == state)

        number = self._nested.tree.numbers.get(state_text(state))
        if number is None:
            raise self._unknown_state(f"state {state!r}")

        return number in self._active_now(agent)

    def _active_now(self, agent: Any) -> frozenset[int]:
        assert self._nested is not None
        active = self._instants.get(id(agent))
        if active is None:
            active = self._nested.place(self._require_known_state(agent)).active
        return active

    def active(self, state: Any) -> tuple[StateT, ...]:
        """Return an agent's state with all states around it, outermost first."""
        if self._nested is None:
            self._row(state)
            return (self._members[state],)

        self._row(state)
        nodes = self._nested.tree.nodes
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
        session, raised = None, None
        if self._nested.new_session is not None:
            # content of a document raises events itself, guards that fail as well
            session = self._nested.new_session(self, agent)
            raised = session.raised
            context = session.event_of(candidate[3].trigger, context)

        resolved = self._resolved(candidate, agent, context)
        if resolved is not None:
            plan = resolved[3].plan
            if plan.before or plan.after or plan.remembers:
                self._make_nested(agent, resolved, context)
            else:
                self._make(agent, resolved, context)
            if not plan.settles:
                return True
            # nothing says what is done is about
            if raised is None:
                raised = deque((each, None) for each in plan.raised)
        elif not raised:
            return False

        self._settle(agent, context, raised, session)
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
    ) -> StateT:
        """Run exit actions and the transition's own, commit, and run entry actions.

        Each action runs while its states are active. One that fails does not stop the others.

        Returns:
            The agent's state afterwards.
        """
        _, _, target, edge = candidate
        plan: Plan = edge.plan
        # looked up before actions run, since both refuse what the chart cannot drive
        write = self._writers.get(agent.__class__) or self._writer_of(agent)
        memory = memory_of(self._definition.name, agent) if plan.remembers else None
        if engine_hooks:
            self._observe_transition("transition_began", agent, edge, context)

        # both loops are written out, since calls would be a twentieth of the step; after a fault
        # that ends it `_run` forgets the instant
        instants, key, made = self._instants, id(agent), edge
        for action, active in plan.before:
            instants[key] = active
            try:
                action(agent, context)
            except Exception as error:
                self._reporter.action_failed(error, agent, edge)

        if plan.before:
            instants[key] = None
        # the usual agent without the call of its property
        if (agent._state if write is write_kept else agent.state) is not edge.from_state:
            made = self._edge_after_action(agent, edge)
        if memory is not None:
            remember(memory, plan)
        if plan.moves if made is edge else target != made.from_state:
            # as `_commit`, without its call
            dwell = write(agent, made, self._clock(), context)
            if self._questions:
                close_overtaken(self._questions, agent, made)
            if self._has_logger or somebody_listens():
                self._reporter.moved(agent, made, dwell, context)

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

        if plan.before or plan.after:
            instants.pop(key, None)
        if engine_hooks:
            self._observe_transition("transition", agent, edge, context)
        state: StateT = agent._state if write is write_kept else agent.state
        return state
