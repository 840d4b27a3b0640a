"""Calls of the engine that cannot be meant, such as those in the argument order of another engine.

Such a call gets a TypeError that shows the right one. None of them may pass for an event that does not apply.
"""

from __future__ import annotations

from collections.abc import Container
from enum import Enum
from typing import Any

from prism.errors import AgentError

NOT_GIVEN: Any = object()
"""Default of ``current_state``, which `Statechart.fire` and `Statechart.afire` name only in order to refuse it."""

_ORDER = "the agent comes first, then the trigger, then the context"


def refuse_state(method: str, agent: object, trigger: object, current_state: object) -> None:
    """Refuse a call that gives the agent's state, as a fourth argument or by name.

    Args:
        method: ``fire`` or ``afire``.
        agent: What was given as the agent.
        trigger: What was given as the trigger.
        current_state: What was given, or `NOT_GIVEN`.

    Raises:
        TypeError: If a state, or anything else, was given.
    """
    if current_state is NOT_GIVEN:
        return
    call = _right_call(method, agent, trigger)
    raise TypeError(f"{method} takes no current state, since the agent knows its own; {_ORDER}: write {call}")


def require_trigger(trigger: object, context: object, triggers: Container[object], some_state: Enum) -> None:
    """Refuse what stands in the trigger's place by mistake: a state of the chart, or a context before its trigger.

    Args:
        trigger: What was given as the trigger.
        context: What was given as the context.
        triggers: The triggers of the chart.
        some_state: Any state of the chart; its class tells states from other texts.

    Raises:
        TypeError: If it is no trigger.
    """
    if type(trigger) is str or (isinstance(trigger, str) and trigger in triggers):
        return
    if isinstance(trigger, type(some_state)) or (isinstance(context, str) and not isinstance(trigger, str)):
        call = _right_call("fire", context)
        raise TypeError(f"the trigger must be the name of an event, got {trigger!r}; {_ORDER}: write {call}")


def cannot_drive(chart: str, agent: object, error: AttributeError) -> AgentError:
    """Tell why an object is no agent.

    Args:
        chart: Name of the chart.
        agent: What was given as the agent.
        error: What came of reading its state.
    """
    kind = type(agent)
    if isinstance(agent, str):
        problem = f"the text {agent!r}: {_ORDER}: write {_right_call('fire', agent)}"
    elif hasattr(kind, "state"):
        problem = f"{kind.__name__!r}: its 'state' cannot be read ({error}); see that its constructor sets it"
    else:
        problem = (
            f"{kind.__name__!r}: it has no 'state'; give it one, "
            "call chart.adopt(obj), or derive its class from prism.agents.StatechartMixin"
        )
    return AgentError(f"chart {chart!r} cannot drive {problem}")


def _right_call(method: str, *given: Any) -> str:
    """Show a call with the trigger that is among the arguments, wherever it stands."""
    trigger = next((text for text in given if isinstance(text, str) and not isinstance(text, Enum)), "feed_ready")
    if method == "afire":
        return f"await chart.afire(agent, {trigger!r}, context, reasoner=reasoner)"
    return f"chart.{method}(agent, {trigger!r}, context)"
