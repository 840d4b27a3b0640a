"""Why an event would or would not move an agent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, takewhile
from typing import Any, NamedTuple

from prism.statechart._asking import told
from prism.statechart._definition import Definition
from prism.statechart._engine.checks import cannot_drive, is_foreign
from prism.statechart._engine.machine import evaluate
from prism.statechart._engine.memory import histories
from prism.statechart._identity import agent_name
from prism.statechart.inspection._explanation import Candidate, Explanation, FireOutcome
from prism.statechart.transitions import Guard, Transition


class _Asked(NamedTuple):
    """A transition of a flat chart; one with composites has its `Arc` instead."""

    number: int
    source: Any
    written: Transition[Any]
    guard: Guard | None


Groups = Sequence[Sequence[Any]]
"""The transitions that may react, for each region the inner ones first."""


class _ChanceError(Exception):
    """Several transitions share an event, weighted by probability."""


class _Flat:
    """A state of a flat chart: what reacts there, and where that leads."""

    def __init__(self, chart: Definition[Any], state: Any) -> None:
        self.state = state
        self.leaves = (state,)
        self.reactions: dict[str, list[list[Any]]] = {}
        for number, item in enumerate(chart.transitions):
            if item.source == state:
                asked = _Asked(number, state, item, told(item.guard, item, item.source))
                self.reactions.setdefault(item.trigger, [[]])[0].append(asked)

        self.triggers = tuple(dict.fromkeys(item.trigger for item in chart.transitions))
        self.reacts_to = tuple(self.reactions)

    def knows(self, trigger: object) -> bool:
        """Return whether the chart has a trigger."""
        return trigger in self.triggers

    def targets(self, groups: Groups, passes: Callable[[Any], bool], _agent: Any) -> list[Any]:
        """Return where the transitions that pass lead, that of a fire first."""
        return [each.written.target for group in groups for each in group if passes(each)]


class _Nested:
    """A state of a chart with composites, alike."""

    def __init__(self, chart: Definition[Any], state: Any, trigger: str) -> None:
        # loaded only where there are composites
        from prism.statechart._engine.rows import NestedRows

        assert chart.tree is not None
        self._rows = NestedRows(chart.tree)
        self._place = self._rows.place(state)
        self.state = self._place.state
        self.leaves = tuple(self._rows.tree.nodes[each].state for each in self._place.leaves)
        self.reactions = self._rows.groups(self._place.leaves, trigger)
        self.triggers = tuple(chart.tree.triggers)
        self.reacts_to = tuple(
            each for each in self.triggers if self._rows.groups(self._place.leaves, each).get(each)
        )
        self.knows = chart.tree.reacts_to

    def targets(self, groups: Groups, passes: Callable[[Any], bool], agent: Any) -> list[Any]:
        """Return where the transitions that pass lead, that of a fire first."""
        resolver = self._rows.open(self._place, "", map(tuple, groups))[3].plan

        def draw() -> float:
            raise _ChanceError

        def remembered() -> dict[int, tuple[int, ...]]:
            return histories(getattr(agent, "state_memory", None) or {}, self._rows.tree)

        first = resolver.resolve(passes, draw, remembered)
        found = () if first is None else (first, *resolver.enabled(passes, remembered))
        return [target for _, _, target, _ in found]


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

    groups = found.reactions.get(trigger, [])
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


def _found(chart: Definition[Any], state: Any, trigger: str) -> _Flat | _Nested | None:
    """Return what is known of a state; None if no agent of the chart can be in it."""
    if chart.tree is None:
        return _Flat(chart, state) if state in chart.states else None
    try:
        return _Nested(chart, state, trigger)
    except (KeyError, TypeError):
        return None


def _fired(
    found: _Flat | _Nested,
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
