"""Why an event would or would not move an agent of a chart with composites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prism.statechart._definition import Definition
from prism.statechart._engine.arguments import is_foreign, require_trigger
from prism.statechart._engine.machine import evaluate
from prism.statechart._engine.memory import histories
from prism.statechart._engine.rows import NestedRows, Place
from prism.statechart._identity import agent_name
from prism.statechart._tree.numbers import Arc
from prism.statechart.inspection._explanation import Candidate, Explanation, FireOutcome


class _ChanceError(Exception):
    """Several transitions share an event, weighted by probability."""


def explain_nested(
    chart: Definition[Any], agent: Any, trigger: str, context: Any, where: Any
) -> Explanation:
    """Explain what an event would do to an agent in a state: see `Statechart.explain`."""
    tree, name = chart.tree, agent_name(agent)
    assert tree is not None
    rows = NestedRows(tree)
    if where not in rows or is_foreign(where, chart):
        known = chart.states
        return Explanation(chart.name, name, where, trigger, (), "unknown state", known=known)

    triggers = tuple(tree.triggers)
    require_trigger(trigger, context, triggers, chart.states[0])
    place = rows.place(where)
    reactions = rows.groups(place.leaves)
    decides = bool(tree.decides.intersection(place.leaves))
    groups = reactions.get(trigger, [])
    found = _asked(groups, agent, context, everything=decides)

    outcome, target, options = _fired(rows, place, groups, found, agent, chart.strict)
    is_known = trigger in triggers

    return Explanation(
        chart.name,
        name,
        place.state,
        trigger,
        tuple(found.values()),
        outcome if is_known else "unknown event",
        target,
        options if decides and len(options) > 1 else (),
        tuple(each for each in triggers if each in reactions),
        chart.states if is_known else triggers,
        where in chart.final_states,
    )


def _asked(
    groups: Sequence[tuple[Arc, ...]], agent: Any, context: Any, *, everything: bool
) -> dict[int, Candidate]:
    """Evaluate guards as the engine does: each once, in each region up to the first that passes."""
    found: dict[int, Candidate] = {}
    for group in groups:
        for arc in group:
            if arc.number not in found:
                verdict = evaluate(arc.guard, agent, context)
                found[arc.number] = Candidate(arc.written, *verdict)
            is_last = found[arc.number].outcome == "passed" and not everything
            if is_last and not _is_shared(group, arc):
                break

    rest = {arc.number: arc for group in groups for arc in group}
    return found | {
        number: Candidate(arc.written, "not asked")
        for number, arc in rest.items()
        if number not in found
    }


def _is_shared(group: tuple[Arc, ...], arc: Arc) -> bool:
    return any(each.written.probability for each in group if each.source == arc.source)


def _fired(
    rows: NestedRows,
    place: Place,
    groups: Sequence[tuple[Arc, ...]],
    found: dict[int, Candidate],
    agent: Any,
    strict: bool,
) -> tuple[FireOutcome, Any, tuple[Any, ...]]:
    if not groups:
        return "no reaction", None, ()
    if strict and any(each.outcome == "raised" for each in found.values()):
        return "raises", None, ()

    def ask(arc: Arc) -> bool:
        return found[arc.number].outcome == "passed"

    def draw() -> float:
        raise _ChanceError

    def remembered() -> dict[int, tuple[int, ...]]:
        return histories(getattr(agent, "state_memory", None) or {}, rows.tree)

    resolver = rows.open(place, "", groups)[3].plan
    try:
        candidate = resolver.resolve(ask, draw, remembered)
    except _ChanceError:
        return "draws", None, ()
    if candidate is None:
        return "refused", None, ()

    options = dict.fromkeys(each[2] for each in resolver.enabled(ask, remembered))
    target = candidate[2]
    return ("stays" if target == place.state else "moves"), target, tuple(options)
