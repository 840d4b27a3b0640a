"""The contenders built on other state machine libraries, each used as it documents."""

from __future__ import annotations

from collections import deque
from typing import Any

from prism.statechart import AgentState, Statechart
from tests.benchmarks.contenders import (
    IDLE,
    SCROLLING,
    USUAL,
    PlainAgent,
    Situation,
    allowed,
    keep_books,
    nothing,
)
from tests.benchmarks.harness import Column

_SISMIC_CHART = """
statechart:
  name: two states
  root state:
    name: root
    initial: idle
    states:
      - name: idle
        transitions: [{target: scrolling, event: go, guard: "allowed(agent, event.context)"}]
      - name: scrolling
        transitions: [{target: idle, event: go, guard: "allowed(agent, event.context)"}]
"""


class OpenAgent(PlainAgent):
    """An agent that takes new attributes, as libraries that decorate their models need."""


def stock_transitions(
    name: str, context: Any, situation: Situation = USUAL
) -> tuple[deque[Any], Column]:
    """``model.trigger`` of ``transitions``, with the bookkeeping in ``after_state_change``."""
    from transitions import EventData

    def after(event: EventData) -> None:
        move: Any = event.transition
        keep_books(event.model, move.source, move.dest, event.event.name, event.kwargs["context"])

    agent: Any = OpenAgent()
    _stock_machine(agent, situation).after_state_change.insert(0, after)
    names = {"agent": agent, "context": context}
    return agent.state_history, Column(name, "agent.trigger('go', context=context)", names)


def adopted_transitions(
    name: str, context: Any, situation: Situation = USUAL
) -> tuple[deque[Any], Column]:
    """``model.trigger`` of a Machine that a chart has adopted, which keeps the books."""
    agent: Any = OpenAgent()
    Statechart.from_machine(_stock_machine(agent, situation))
    names = {"agent": agent, "context": context}
    return agent.state_history, Column(name, "agent.trigger('go', context=context)", names)


def _stock_machine(agent: Any, situation: Situation) -> Any:
    from transitions import EventData, Machine

    def allowed_event(event: EventData) -> bool:
        return allowed(event.model, event.kwargs["context"])

    machine = Machine(agent, AgentState, initial=IDLE, auto_transitions=False, send_event=True)
    if situation.has_hook:
        machine.after_state_change.append(nothing)
    before = nothing if situation.has_action else None
    for trigger, source, target in situation.others():
        machine.add_transition(trigger, source, target, conditions=allowed_event)
    machine.add_transition("go", IDLE, SCROLLING, conditions=allowed_event, before=before)
    machine.add_transition("go", SCROLLING, IDLE, conditions=allowed_event, before=before)
    return machine


def python_statemachine(name: str, context: Any) -> tuple[deque[Any], Column]:
    """``machine.send`` of python-statemachine, with the bookkeeping in ``after_transition``."""
    from statemachine import State, StateMachine

    class TwoStates(StateMachine):
        idle = State(initial=True)
        scrolling = State()
        go = idle.to(scrolling, cond="may_go") | scrolling.to(idle, cond="may_go")

        def may_go(self, context: Any) -> bool:
            return allowed(self.model, context)

        def after_transition(
            self, event: str, source: State, target: State, context: Any = None
        ) -> None:
            keep_books(self.model, source.id, target.id, event, context)

    agent = PlainAgent()
    agent.state = None
    names = {"machine": TwoStates(agent), "context": context}
    return agent.state_history, Column(name, "machine.send('go', context=context)", names)


def sismic(name: str, context: Any) -> tuple[deque[Any], Column]:
    """``interpreter.execute_once`` of sismic, with the bookkeeping right after it."""
    from sismic.interpreter import Interpreter  # type: ignore[import-untyped]
    from sismic.io import import_from_yaml  # type: ignore[import-untyped]

    agent = PlainAgent()
    interpreter = Interpreter(
        import_from_yaml(_SISMIC_CHART), initial_context={"allowed": allowed, "agent": agent}
    )
    interpreter.execute()

    def fire(context: Any) -> None:
        step = interpreter.queue("go", context=context).execute_once()
        for move in step.transitions if step is not None else ():
            agent.state = move.target
            keep_books(agent, move.source, move.target, move.event, context)

    return agent.state_history, Column(name, "fire(context)", {"fire": fire, "context": context})
