"""A chart as SCXML (W3C, State Chart XML, https://www.w3.org/TR/scxml/)."""

from __future__ import annotations

from typing import Any

from prism.statechart._asking import Asking
from prism.statechart._definition import Definition
from prism.statechart.formats._names import Functions, name_of
from prism.statechart.formats._scxml_names import head, scxml_guards, scxml_name
from prism.statechart.states import state_text
from prism.statechart.transitions import Guard, Transition


def to_scxml(
    chart: Definition[Any], guards: Functions | None = None, actions: Functions | None = None
) -> str:
    """Write an SCXML document that makes the same transitions as the chart.

    States and triggers are named by `scxml_name`. A guard reads its outcome from the event's data,
    as ``cond="_event.data.guard_is_busy"``: see `scxml_guards`. Actions, decision states, limits
    and the description stand in attributes of prism's own namespace, which interpreters ignore. An
    interpreter stops in a final state.

    Args:
        chart: The chart's definition.
        guards: Guards by name, for those without a name of their own.
        actions: Actions by name.
    """
    if chart.tree is not None:
        # loaded only where there are composites, as what reads them
        from prism.statechart.formats._scxml_nested import nested_scxml

        return nested_scxml(chart, guards, actions)

    fields = scxml_guards(chart, guards)
    leaving: dict[Any, list[str]] = {state: [] for state in chart.states}
    for item in chart.transitions:
        leaving[item.source].append(_transition(item, fields, actions))

    lines = [*head(chart, _id(chart.initial))]
    for state, transitions in leaving.items():
        if state in chart.final_states:
            lines.append(f'  <final id="{_id(state)}"/>')
            continue

        lines += [f'  <state id="{_id(state)}"{_extras(chart, state)}>', *transitions, "  </state>"]

    return "\n".join([*lines, "</scxml>"]) + "\n"


def _id(state: Any) -> str:
    return scxml_name(state_text(state))


def _extras(chart: Definition[Any], state: Any) -> str:
    decision = ' prism:decision="true"' if state in chart.decision_states else ""
    return decision + (
        f' prism:timeout="{chart.timeouts[state]}"' if state in chart.timeouts else ""
    )


def _transition(
    item: Transition[Any], fields: dict[str, Guard | Asking], actions: Functions | None
) -> str:
    attributes = [f'event="{scxml_name(item.trigger)}"', f'target="{_id(item.target)}"']
    if item.guard is not None:
        field = next(name for name, guard in fields.items() if guard == item.guard)
        attributes.insert(1, f'cond="_event.data.{field}"')

    if item.action is not None:
        name = name_of(item.action, actions) or "action"
        attributes.append(f'prism:action="{scxml_name(name)}"')

    return f"    <transition {' '.join(attributes)}/>"
