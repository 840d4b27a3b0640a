"""Makes one transition of one agent: runs its action and writes the new state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prism.errors import AgentError
from prism.statechart._engine.arguments import require_own_state_type
from prism.statechart._engine.choosing import Chooser
from prism.statechart._engine.machine import Candidate
from prism.statechart._engine.pending import OpenQuestions, close_overtaken
from prism.statechart._engine.writing import Writer, writer_of, writes_quietly
from prism.statechart.states import state_text
from prism.statechart.transitions import Edge, StateT, shared_edge
from prism.telemetry._instrument import TransitionDetails, engine_hooks, observe
from prism.telemetry._loggers import somebody_listens


class Committing(Chooser[StateT]):
    """Makes the transitions of flat charts."""

    _clock: Callable[[], float]
    _has_logger: bool
    _members: dict[Any, StateT]
    _questions: OpenQuestions
    _quiet_writers: dict[type, Writer]
    _writers: dict[type, Writer]

    def _make(self, agent: Any, candidate: Candidate[StateT], context: Any) -> None:
        """Run the action and commit."""
        _, action, target, edge = candidate
        # looked up before the action runs, since it refuses classes that the chart cannot drive
        write = self._writers.get(agent.__class__) or self._writer_of(agent)
        if engine_hooks:
            self._observe_transition("transition_began", agent, edge, context)

        if action is not None:
            try:
                action(agent, context)
            except Exception as error:
                self._reporter.action_failed(error, agent, edge)

            if agent.state is not edge.from_state:
                edge = self._edge_after_action(agent, edge)

        if target != edge.from_state:
            dwell = write(agent, edge, self._clock(), context)
            if self._questions:
                close_overtaken(self._questions, agent, edge)
            if self._has_logger or somebody_listens():
                self._reporter.moved(agent, edge, dwell, context)

        if engine_hooks:
            self._observe_transition("transition", agent, candidate[3], context)

    def _edge_after_action(self, agent: Any, edge: Edge) -> Edge:
        """Report an action that moved the agent; the transition then starts from where it is."""
        state = agent.state
        if state == edge.from_state:
            return edge

        problem = (
            f"the action of {edge.trigger!r} moved the agent to {state_text(state)!r} itself: "
            "let it fire an event instead, which runs right after this transition"
        )
        self._reporter.action_failed(AgentError(problem), agent, edge)

        return shared_edge(self._members.get(state, state), edge.to_state, edge.trigger)

    def _writer_of(self, agent: Any) -> Writer:
        cls = agent.__class__
        writer = self._writers.get(cls)
        if writer is None:
            require_own_state_type(self._definition, agent)
            writer = self._writers[cls] = writer_of(cls)
            if writes_quietly(cls):
                self._quiet_writers[cls] = writer

        return writer

    # Observing

    def _observe_transition(self, hook: str, agent: Any, edge: Edge, context: Any) -> None:
        observe(hook, TransitionDetails, self.definition, self._number_of(edge), agent, context)
