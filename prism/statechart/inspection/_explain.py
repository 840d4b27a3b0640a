"""Why an event would or would not move an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, takewhile
from typing import Any

from prism.statechart._definition import Definition
from prism.statechart._engine.checks import cannot_drive, is_foreign
from prism.statechart._engine.machine import evaluate
from prism.statechart._engine.memory import histories
from prism.statechart._engine.rows import NestedRows, Reaction
from prism.statechart._identity import agent_name
from prism.statechart.inspection._explanation import Candidate, Explanation, FireOutcome

Groups = Sequence[Sequence[Any]]
"""The transitions that may react, for each region the inner ones first."""


class _ChanceError(Exception):
    """Several transitions share an event, weighted by probability."""


class _Reacting:
    """A state of a chart: what reacts there, and where that leads."""

    def __init__(self, chart: Definition[Any], state: Any, trigger: str) -> None:
        hierarchy = chart.hierarchy
        self._rows = NestedRows(hierarchy)
        self._place = self._rows.place(state)
        self.state = self._place.state
        self.leaves = tuple(self._rows.tree.nodes[each].state for each in self._place.leaves)
        self.reactions = self._rows.groups(self._place.leaves, trigger)
        self.triggers = tuple(hierarchy.triggers)
        self.reacts_to = tuple(
            each for each in self.triggers if self._rows.groups(self._place.leaves, each)
        )
        self.knows = hierarchy.reacts_to

    def targets(self, groups: Groups, passes: Callable[[Any], bool], agent: Any) -> list[Any]:
        """Return where the transitions that pass lead, that of a fire first."""
        reaction = Reaction(self._rows, self._place, "", [*map(tuple, groups)])

        def draw() -> float:
            raise _ChanceError

        def remembered() -> dict[int, tuple[int, ...]]:
            return histories(getattr(agent, "state_memory", None) or {}, self._rows.tree)

        first = reaction.first(passes, draw, remembered)
        found = () if first is None else (first, *reaction.enabled(passes, remembered))
        return [each.to_state for each in found]


def explain(
    chart: Definition[Any], agent: Any, trigger: str, context: Any = None, *, state: Any = None
) -> Explanation:
    """Explain what an event would do to an agent: see `Statechart.explain`.

    Args:
        chart: The chart's definition.
        agent: Anything with a ``state``.
        trigger: Name of the event.
        context: What the event is about.
        state: Explain for this state instead of the agent's own; guards see the agent as it is.

    Raises:
        AgentError: If the object has no ``state``.
        TypeError: If the arguments are in another order.
    """
    where, name = _state_of(chart, agent, state), agent_name(agent)
    found = None if is_foreign(where, chart) else _found(chart, where, trigger)
    if found is None:
        return Explanation(
            chart.name, name, where, trigger, (), "unknown state", known=chart.states
        )

    groups = found.reactions
    decides = not chart.decision_states.isdisjoint(found.leaves)
    tried = _tried(groups, agent, context, strict=chart.strict, all_of_them=decides)

    outcome, targets = _fired(found, groups, tried, agent, decides=decides, strict=chart.strict)
    is_known = found.knows(trigger)
    is_stopped = chart.strict and any(each.outcome == "raised" for each in tried.values())
    options = tuple(dict.fromkeys(targets)) if decides and not is_stopped else ()
    return Explanation(
        chart.name,
        name,
        found.state,
        trigger,
        tuple(tried.values()),
        outcome if is_known else "unknown event",
        targets[0] if targets else None,
        options if len(options) > 1 else (),
        found.reacts_to,
        chart.states if is_known else found.triggers,
        where in chart.final_states,
        chart.strict,
    )


def _state_of(chart: Definition[Any], agent: Any, given: Any) -> Any:
    if given is not None:
        return given
    try:
        return agent.state
    except AttributeError as error:
        raise cannot_drive(chart.name, agent, error) from None


def _found(chart: Definition[Any], state: Any, trigger: str) -> _Reacting | None:
    """Return what is known of a state; None if no agent of the chart can be in it."""
    try:
        return _Reacting(chart, state, trigger)
    except (KeyError, TypeError):
        return None


def _fired(
    found: _Reacting,
    groups: Groups,
    tried: dict[int, Candidate],
    agent: Any,
    *,
    decides: bool,
    strict: bool,
) -> tuple[FireOutcome, list[Any]]:
    """Return what a fire would do, and where the transitions that pass lead."""
    if not groups:
        return "no reaction", []

    def passes(asked: Any) -> bool:
        return tried[asked.number].outcome == "passed"

    for group in groups if strict else ():
        # a fire asks no further than the first that passes; the others are for a reasoner
        asked = takewhile(lambda each: not passes(each), group) if decides else group
        if any(tried[each.number].outcome == "raised" for each in asked):
            return "raises", []

    try:
        targets = found.targets(groups, passes, agent)
    except _ChanceError:
        return "draws", []

    if not targets:
        return "refused", []
    return ("stays" if targets[0] == found.state else "moves"), targets


def _tried(
    groups: Groups, agent: Any, context: Any, *, strict: bool, all_of_them: bool
) -> dict[int, Candidate]:
    """Evaluate guards as the engine does: each once, in each region up to the first that passes."""
    found: dict[int, Candidate] = {}
    for group in groups:
        for each in group:
            if each.number not in found:
                verdict = evaluate(each.guard, agent, context)
                found[each.number] = Candidate(each.written, *verdict)
            outcome = found[each.number].outcome
            is_last = outcome == "passed" and not all_of_them and not _is_shared(group, each)
            if is_last or (outcome == "raised" and strict):
                break

    for each in chain(*groups):
        found.setdefault(each.number, Candidate(each.written, "not asked"))
    return found


def _is_shared(group: Sequence[Any], asked: Any) -> bool:
    return any(each.written.probability for each in group if each.source == asked.source)
