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
from prism.statechart._engine.pending import MOST_QUEUED_FIRES, Firing, close_overtaken, restless
from prism.statechart._engine.writing import Writer
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge, StateT
from prism.telemetry._instrument import engine_hooks
from prism.telemetry._loggers import somebody_listens

if TYPE_CHECKING:
    from prism.statechart._tree.numbers import Plan


class Running(Committing[StateT]):
    """Makes the steps of a chart with composites."""

    # by an agent's address, while its transition is made
    _firing: dict[int, Firing]

    def is_in(self, agent: Any, state: StateT) -> bool:
        """Return whether a state is active: the agent's own, or one around it.

        Inside entry and exit actions, these are the states that are active at that instant.
        """
        if self._nested is None:
            # refuses what is no state
            self._row(state)
            return bool(self._require_known_state(agent) == state)

        number = self._nested.tree.numbers.get(state_text(state))
        if number is None:
            raise self._unknown_state(f"state {state!r}")

        return number in self._active_now(agent)

    def _active_now(self, agent: Any) -> frozenset[int]:
        assert self._nested is not None
        firing = self._firing.get(id(agent))
        if firing is not None and firing[2] is not None:
            active: frozenset[int] = firing[2]
            return active
        return self._nested.place(self._require_known_state(agent)).active

    def active(self, state: Any) -> tuple[StateT, ...]:
        """Return an agent's state with all states around it, outermost first."""
        self._row(state)
        if self._nested is None:
            return (self._members[state],)

        nodes = self._nested.tree.nodes
        return tuple(nodes[number].state for number in sorted(self._nested.place(state).active))

    # Making

    def _steps(
        self, agent: Any, candidate: Candidate[StateT], context: Any, firing: Firing
    ) -> bool:
        """Make one step and those that follow from it; return False if none is enabled."""
        raised: deque[str] = deque()
        step = self._resolved(candidate, agent, context)
        if step is None:
            return False

        for _ in range(MOST_QUEUED_FIRES + 1):
            plan: Plan = step[3].plan
            self._make_step(agent, step, context, firing)
            raised.extend(plan.raised)
            if not (plan.settles or raised):
                return True

            step, context = self._following(agent, context, raised)
            if step is None:
                return True

        raise restless(self._definition.name, agent)

    def _following(
        self, agent: Any, context: Any, raised: deque[str]
    ) -> tuple[Candidate[StateT] | None, Any]:
        """Return the next step that needs no further event, and its context.

        Eventless transitions come first, then those that what was raised enables.
        """
        step = self._reacting(agent, EVENTLESS, context)
        while step is None and raised:
            # nothing says what is done is about
            context = None
            step = self._reacting(agent, raised.popleft(), context)

        return step, context

    def _reacting(self, agent: Any, trigger: Any, context: Any) -> Candidate[StateT] | None:
        candidates = self._rows[agent.state].get(trigger, ())
        first = next(self._passing(candidates, agent, context), None)
        return None if first is None else self._resolved(first, agent, context)

    def _make_step(
        self, agent: Any, candidate: Candidate[StateT], context: Any, firing: Firing
    ) -> None:
        """Run exit actions and the transition's own, commit, and run entry actions.

        Each action runs while its states are active. One that fails does not stop the others.
        """
        edge = candidate[3]
        plan: Plan = edge.plan
        # looked up before actions run, since both refuse what the chart cannot drive
        write = self._writers.get(agent.__class__) or self._writer_of(agent)
        if plan.notes is not None:
            memory_of(self._definition.name, agent)
        if engine_hooks:
            self._observe_transition("transition_began", agent, edge, context)

        for action, active in plan.before:
            firing[2] = active
            try:
                action(agent, context)
            except Exception as error:
                self._reporter.action_failed(error, agent, edge)

        firing[2], made = None, edge
        if agent.state is not edge.from_state:
            made = self._edge_after_action(agent, edge)
        self._enter(agent, edge, made, write, context, firing)
        if engine_hooks:
            self._observe_transition("transition", agent, edge, context)

    def _enter(
        self, agent: Any, edge: Edge, made: Edge, write: Writer, context: Any, firing: Firing
    ) -> None:
        """Commit, remember what was left, and run entry actions."""
        plan: Plan = edge.plan
        if plan.moves if made is edge else made.leaves is not None:
            dwell = write(agent, made, self._clock(), context)
            if self._questions:
                close_overtaken(self._questions, agent, made)
            if self._has_logger or somebody_listens():
                self._reporter.moved(agent, made, dwell, context)

        if plan.notes is not None:
            remember(memory_of(self._definition.name, agent), plan.notes)

        entries = iter(plan.after)
        try:
            for action, active in entries:
                firing[2] = active
                try:
                    action(agent, context)
                except Exception as error:
                    self._reporter.action_failed(error, agent, edge)
        except Exception as error:
            error.add_note(
                f"the agent is in {edge.to_text!r} nevertheless; "
                f"{len([*entries])} more entry actions did not run"
            )
            raise

        firing[2] = None
