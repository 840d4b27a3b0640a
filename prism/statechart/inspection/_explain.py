"""Why an event would or would not move an agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from prism.statechart._asking import told
from prism.statechart._definition import Definition
from prism.statechart._engine.arguments import cannot_drive, is_foreign, require_trigger
from prism.statechart._engine.machine import PASSED, evaluate
from prism.statechart._identity import agent_name
from prism.statechart.inspection._explanation import Candidate, Explanation, FireOutcome
from prism.statechart.transitions import Transition


def explain(
    chart: Definition[Any], agent: Any, trigger: str, context: Any = None, *, state: Any = None
) -> Explanation:
    """Explain what an event would do to an agent: see `Statechart.explain`.

    Args:
        chart: The chart's definition.
        agent: Anything with a ``state``.
        trigger: Name of the event.
        context: The event's context.
        state: Explain for this state instead of the agent's own; guards see the agent as it is.

    Raises:
        AgentError: If the object has no ``state``.
        TypeError: If the arguments are in another order.
    """
    where, name = _state_of(chart, agent, state), agent_name(agent)
    if chart.tree is not None:
        # loaded only where there are composites
        from prism.statechart.inspection._explain_nested import explain_nested

        return explain_nested(chart, agent, trigger, context, where)

    if where not in chart.states or is_foreign(where, chart):
        return Explanation(
            chart.name, name, where, trigger, (), "unknown state", known=chart.states
        )

    triggers = _triggers(chart.transitions)
    require_trigger(trigger, context, triggers, chart.initial)
    leaving = [item for item in chart.transitions if item.source == where]
    decides = where in chart.decision_states
    asked = [item for item in leaving if item.trigger == trigger]
    candidates = _tried(asked, agent, context, strict=chart.strict, all_of_them=decides)
    is_known = trigger in triggers
    outcome, target = _fired(candidates, where, strict=chart.strict, is_known=is_known)

    return Explanation(
        chart.name,
        name,
        where,
        trigger,
        candidates,
        outcome,
        target,
        _options(candidates if decides else (), strict=chart.strict),
        _triggers(leaving),
        chart.states if is_known else triggers,
        where in chart.final_states,
    )


def _triggers(transitions: Iterable[Transition[Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.trigger for item in transitions))


def _state_of(chart: Definition[Any], agent: Any, given: Any) -> Any:
    if given is not None:
        return given
    try:
        return agent.state
    except AttributeError as error:
        raise cannot_drive(chart.name, agent, error) from None


def _tried(
    transitions: Sequence[Transition[Any]],
    agent: Any,
    context: Any,
    *,
    strict: bool,
    all_of_them: bool,
) -> tuple[Candidate, ...]:
    """Evaluate the guards as the engine does, and stop where it would stop."""
    found: list[Candidate] = []
    for item in transitions:
        verdict = evaluate(told(item.guard, item, item.source), agent, context)
        found.append(Candidate(item, *verdict))
        if verdict is PASSED and not all_of_them:
            break
        if verdict.error is not None and strict:
            break

    return (*found, *(Candidate(item, "not asked") for item in transitions[len(found) :]))


def _fired(
    candidates: tuple[Candidate, ...], state: Any, *, strict: bool, is_known: bool
) -> tuple[FireOutcome, Any]:
    if not is_known:
        return "unknown event", None

    for candidate in candidates:
        if candidate.outcome == "raised" and strict:
            return "raises", None

        if candidate.outcome == "passed":
            target = candidate.transition.target
            return ("stays" if target == state else "moves"), target

    return ("refused" if candidates else "no reaction"), None


def _options(candidates: tuple[Candidate, ...], *, strict: bool) -> tuple[Any, ...]:
    if strict and any(candidate.outcome == "raised" for candidate in candidates):
        return ()

    targets = dict.fromkeys(
        found.transition.target for found in candidates if found.outcome == "passed"
    )
    return tuple(targets) if len(targets) > 1 else ()
