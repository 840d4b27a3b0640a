"""Looking at a chart and its agents without changing anything: explanations, and a lint.

The lint looks at a chart as it was written, since a transition to a history is several of leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from prism.statechart._definition import Definition
from prism.statechart._engine.machine import evaluate
from prism.statechart._engine.rows import NestedRows, Reaction
from prism.statechart._hierarchy import Arc, Hierarchy
from prism.statechart.memory import histories
from prism.statechart.names import agent_name, shown_name
from prism.statechart.states import joined, leaf_texts, state_text
from prism.statechart.transitions import TIMING, Transition
from prism.telemetry.loggers import describe

__all__ = ["Candidate", "Explanation", "Finding"]

# What an event would do, and why

CandidateOutcome = Literal["passed", "failed", "raised", "not asked"]
FireOutcome = Literal["moves", "stays", "draws", "refused", "raises", "no reaction"]

_SUMMARIES: dict[FireOutcome, str] = {
    "moves": "fire moves the agent to {target!r}",
    "stays": "fire runs the action; the agent stays in {state!r}, and nothing is recorded",
    "draws": "fire draws one of those that passed, weighted by probability",
    "refused": "fire does nothing: no guard passes",
    "raises": "fire raises the guard's exception: the chart is strict",
    "no reaction": "{state!r} does not react to it, only to {events}",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A transition that an event could cause, and the outcome of its guard.

    Args:
        transition: The transition.
        outcome: ``passed`` (also without a guard), ``failed``, ``raised``, or ``not asked`` because
            an earlier candidate was chosen.
        error: The exception that the guard raised.
    """

    transition: Transition[Any]
    outcome: CandidateOutcome
    error: Exception | None = None

    def __str__(self) -> str:
        """Return outcome, transition and guard on one line."""
        guard = shown_name(self.transition.guard, "guard")
        line = f"{self.outcome:<9}  {self.transition}" + (f" [{guard}]" if guard else "")
        return f"{line}: {describe(self.error)}" if self.error else line


@dataclass(frozen=True, slots=True)
class Explanation:
    """What an event would do to an agent, and why; ``str`` shows it as a block of lines.

    Args:
        chart: Name of the chart.
        agent: Name of the agent.
        state: State it is in.
        trigger: The event.
        candidates: The transitions that the event could cause in that state, in definition order.
        outcome: What `Statechart.fire` would do: the agent ``moves``; it ``stays``, since a
            self-transition only runs its actions; it ``draws`` one of several transitions weighted
            by probability; it is ``refused`` by all guards; a guard of a strict chart ``raises``;
            the state has ``no reaction`` to the event.
        target: Where ``fire`` would lead; None if nowhere.
        options: The targets from which `Statechart.afire` would have a reasoner choose; empty if it
            would not ask.
        reacts_to: The events that the state reacts to, in definition order.
    """

    chart: str
    agent: str
    state: Any
    trigger: str
    candidates: tuple[Candidate, ...]
    outcome: FireOutcome
    target: Any
    options: tuple[Any, ...]
    reacts_to: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The outcome as a sentence."""
        return _SUMMARIES[self.outcome].format(
            state=state_text(self.state),
            target=state_text(self.target),
            events=joined(self.reacts_to) or "no event",
        )

    def __str__(self) -> str:
        """Return the block: who and where, a line for each candidate, and the outcome."""
        where = f"agent {self.agent!r} in {state_text(self.state)!r}, event {self.trigger!r}"
        lines = [f"{where}, chart {self.chart!r}:", *map(str, self.candidates), self.summary]
        if self.options:
            options = ", ".join(map(state_text, self.options))
            lines.append(f"afire asks the reasoner to choose from {options}")
        return "\n  ".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data, ready for JSON."""
        return {
            "chart": self.chart,
            "agent": self.agent,
            "state": state_text(self.state),
            "trigger": self.trigger,
            "candidates": [*map(str, self.candidates)],
            "outcome": self.outcome,
            "target": self.target and state_text(self.target),
            "options": [*map(state_text, self.options)],
            "reacts_to": [*self.reacts_to],
        }


def explain(
    chart: Definition[Any], agent: Any, trigger: str, context: Any, state: Any
) -> Explanation:
    """Explain what an event would do to an agent: see `Statechart.explain`.

    Args:
        chart: The chart's definition.
        agent: The agent, which guards see as it is.
        trigger: Name of the event.
        context: What the event is about.
        state: The state to explain for.
    """
    rows = NestedRows(chart.hierarchy)
    state, reaction = rows.place(state).state, rows.reaction(state, trigger)
    trial = _Trial(chart, agent, context)
    outcome, target = trial.fire(reaction, state)
    options = trial.options(reaction, state)
    arcs = dict.fromkeys(chain(*reaction.groups)) if reaction else ()
    candidates = tuple(trial.tried.get(arc, Candidate(arc.written, "not asked")) for arc in arcs)
    reacts_to = tuple(each for each in chart.hierarchy.triggers if rows.reaction(state, each))
    who = chart.name, agent_name(agent), state, trigger
    return Explanation(*who, candidates, outcome, target, options, reacts_to)


class _StoppedError(Exception):
    """A fire would end here: by an exception of a guard, or by drawing a number."""


@dataclass
class _Trial:
    """Goes the way of a fire without making a transition, and notes the outcomes of guards."""

    chart: Definition[Any]
    agent: Any
    context: Any
    tried: dict[Arc, Candidate] = field(default_factory=dict)

    def fire(self, reaction: Reaction | None, state: Any) -> tuple[FireOutcome, Any]:
        """Return the outcome of a fire, and its target."""
        if reaction is None:
            return "no reaction", None
        try:
            edge = reaction.first(self._passes, self._draw, self._histories)
        except _StoppedError as stopped:
            return stopped.args[0], None
        if edge is None:
            return "refused", None
        return "stays" if edge.to_state == state else "moves", edge.to_state

    def options(self, reaction: Reaction | None, state: Any) -> tuple[Any, ...]:
        """Return the targets of which a reasoner would have to choose one."""
        if reaction is None or self.chart.decision_states.isdisjoint(leaf_texts(state)):
            return ()
        try:
            edges = [*reaction.enabled(self._passes, self._histories)]
        except _StoppedError:
            return ()
        targets = tuple(dict.fromkeys(edge.to_state for edge in edges))
        return targets if len(targets) > 1 else ()

    def _passes(self, arc: Arc) -> bool:
        if arc not in self.tried:
            verdict = evaluate(arc.guard, self.agent, self.context)
            self.tried[arc] = Candidate(arc.written, *verdict)
        outcome = self.tried[arc].outcome
        if outcome == "raised" and self.chart.strict:
            raise _StoppedError("raises")
        return outcome == "passed"

    def _draw(self) -> float:
        raise _StoppedError("draws")

    def _histories(self) -> dict[int, tuple[int, ...]]:
        memory = getattr(self.agent, "state_memory", None) or {}
        return histories(memory, self.chart.hierarchy)


# Probable mistakes in a chart that is well defined

FindingKind = Literal["unreachable", "no_way_out", "shadowed"]

_MESSAGES: dict[FindingKind, str] = {
    "unreachable": "state {state!r} cannot be reached from {initial!r}: add a transition that "
    "leads to it, or remove it",
    "no_way_out": "state {state!r} has no way out: add a transition that leaves it, or make it a "
    "final state",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A probable mistake in a chart.

    Args:
        kind: ``unreachable``, ``no_way_out`` or ``shadowed``.
        state: The state it concerns.
        message: The mistake, and how to correct it.
        transition: The transition it concerns, for ``shadowed``.
    """

    kind: FindingKind
    state: Any
    message: str
    transition: Transition[Any] | None = None

    def __str__(self) -> str:
        """Return the message."""
        return self.message


def find_flaws(chart: Definition[Any]) -> list[Finding]:
    """Return everything that is probably wrong with a chart: see `Statechart.check`."""
    tree, initial = chart.hierarchy, state_text(chart.initial)
    sound: dict[FindingKind, set[Any]] = {
        "unreachable": _reached(chart),
        "no_way_out": {*_left(tree), *tree.final_states},
    }
    flaws = [
        Finding(kind, state, _MESSAGES[kind].format(state=state_text(state), initial=initial))
        for kind in sound
        for state in chart.states
        if state not in sound[kind]
    ]
    return [*flaws, *_shadowed(tree)]


def _reached(chart: Definition[Any]) -> set[Any]:
    begins = leaf_texts(chart.initial)
    frontier = [leaf for leaf in chart.states if state_text(leaf) in begins]
    leading: dict[Any, set[Any]] = {}
    for item in chart.transitions:
        leading.setdefault(item.source, set()).add(item.target)
    reached = {*frontier}
    while frontier:
        beyond = leading.get(frontier.pop(), set()) - reached
        reached |= beyond
        frontier += beyond
    return reached


def _left(tree: Hierarchy) -> Iterator[Any]:
    """Yield the leaves that some transition leaves, those of other regions included."""
    for arc in tree.arcs:
        domain, outer, ends = tree.domain(arc, {}), arc.source, tree.ends_of(arc)
        for around in tree.ancestors(arc.source, domain):
            if tree.nodes[around].kind == "parallel" and tree.is_inside(around, domain or 0):
                outer = around
        for leaf in tree.leaves_at(outer):
            if ends not in ([], [leaf]):
                yield tree.nodes[leaf].state


def _shadowed(tree: Hierarchy) -> Iterator[Finding]:
    unguarded: dict[tuple[int, str | None], Transition[Any]] = {}
    for arc in tree.arcs:
        item, key = arc.written, (arc.source, arc.written.trigger)
        decides = not tree.decides.isdisjoint(tree.leaves_at(arc.source))
        is_timed = any(getattr(item, name) is not None for name in TIMING)
        if key in unguarded and not (decides or is_timed):
            message = (
                f"transition {item} can never fire: {unguarded[key]} comes earlier and has no "
                "guard; remove it, put it first, or give the earlier one a guard"
            )
            yield Finding("shadowed", tree.nodes[arc.source].state, message, item)
        if item.guard is None and item.probability is None:
            unguarded.setdefault(key, item)
