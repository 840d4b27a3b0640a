"""Looking at a chart and its agents without changing anything: explanations, and a lint.

The lint looks at a chart as it was written, since a transition to a history is several of leaves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from inspect import isclass
from itertools import chain
from typing import Any, Literal

from prism.errors import AgentError
from prism.statechart._definition import Definition
from prism.statechart._engine.machine import evaluate
from prism.statechart._engine.rows import NestedRows, Reaction
from prism.statechart._hierarchy import Hierarchy
from prism.statechart._numbers import Arc
from prism.statechart.memory import histories
from prism.statechart.names import agent_name, shown_name
from prism.statechart.states import joined, leaf_texts, state_text
from prism.statechart.transitions import TIMEOUT, TIMING, Transition, target_text
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
    "no reaction": "fire {does}: {state!r} reacts to {events}",
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
        plain = self.to_dict()
        guard = f" [{plain['guard']}]" if plain["guard"] else ""
        error = f": {plain['error']}" if plain["error"] else ""
        return f"{self.outcome:<9}  {self.transition}{guard}{error}"

    def to_dict(self) -> dict[str, Any]:
        """Return the candidate as plain data, ready for JSON."""
        return {
            "target": target_text(self.transition.target),
            "guard": shown_name(self.transition.guard, "guard"),
            "outcome": self.outcome,
            "error": None if self.error is None else describe(self.error),
        }


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
        summary: The same as a sentence.
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
    summary: str
    target: Any
    options: tuple[Any, ...]
    reacts_to: tuple[str, ...]

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
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "outcome": self.outcome,
            "target": None if self.target is None else state_text(self.target),
            "options": [state_text(option) for option in self.options],
            "reacts_to": list(self.reacts_to),
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
    reacts_to = tuple(each for each in chart.hierarchy.triggers if rows.reaction(state, each))
    summary = _SUMMARIES[outcome].format(
        state=state_text(state),
        target=state_text(target),
        does="raises an error" if chart.strict else "does nothing",
        events=joined(reacts_to) or "no event",
    )
    arcs = dict.fromkeys(chain(*reaction.groups)) if reaction else ()
    candidates = (trial.tried.get(arc, Candidate(arc.written, "not asked")) for arc in arcs)
    return Explanation(
        chart.name,
        agent_name(agent),
        state,
        trigger,
        tuple(candidates),
        outcome,
        summary,
        target,
        options,
        reacts_to,
    )


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
        return histories(memory, self.chart.hierarchy.tree)


# Probable mistakes in a chart that is well defined

FindingKind = Literal["unreachable", "no_way_out", "shadowed", "no_timeout"]

_MESSAGES: dict[FindingKind, str] = {
    "unreachable": "state {state!r} cannot be reached from {initial!r}: add a transition that "
    "leads to it, or remove it",
    "no_way_out": "state {state!r} has no way out: add a transition that leaves it, or make it a "
    "final state",
    "no_timeout": "active state {state!r} has no 'timeout' transition, so an agent can get stuck "
    "in it: add one to the state in which it recovers",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A probable mistake in a chart.

    Args:
        kind: ``unreachable``, ``no_way_out``, ``shadowed`` or ``no_timeout``.
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
    tree = chart.hierarchy
    begins = {leaf for leaf in chart.states if state_text(leaf) in leaf_texts(chart.initial)}
    left = _left(tree, tree.arcs)
    timed = _left(tree, filter(_is_timed, tree.arcs))
    if TIMEOUT not in tree.triggers and not tree.timeouts:
        # a chart without any has none on purpose
        timed = {*chart.states}
    limited = {leaf for state in tree.timeouts for leaf in tree.members_inside(state)}
    lacking: dict[FindingKind, set[Any]] = {
        "unreachable": _reached(chart, begins),
        "no_way_out": left.union(tree.final_states),
        "no_timeout": timed.union(tree.final_states, begins - limited),
    }
    initial = state_text(chart.initial)
    flaws = [
        Finding(kind, state, _MESSAGES[kind].format(state=state_text(state), initial=initial))
        for kind, sound in lacking.items()
        for state in chart.states
        if state not in sound
    ]
    return [*flaws, *_shadowed(tree)]


def _reached(chart: Definition[Any], begins: Iterable[Any]) -> set[Any]:
    leading: dict[Any, set[Any]] = {}
    for item in chart.transitions:
        leading.setdefault(item.source, set()).add(item.target)
    reached, frontier = {*begins}, [*begins]
    while frontier:
        beyond = leading.get(frontier.pop(), set()) - reached
        reached |= beyond
        frontier += beyond
    return reached


def _is_timed(arc: Arc) -> bool:
    """Return whether a transition needs no event from outside."""
    item = arc.written
    return item.trigger in (TIMEOUT, None) or item.after is not None or item.rate is not None


def _left(tree: Hierarchy, arcs: Iterable[Arc]) -> set[Any]:
    """Return the leaves that some transition leaves, those of other regions included."""
    return {
        tree.tree.nodes[leaf].state
        for arc in arcs
        for leaf in _active_with(tree, arc)
        if any(end != leaf for end in tree.ends_of(arc, leaf))
    }


def _active_with(tree: Hierarchy, arc: Arc) -> set[int]:
    """Return the leaves inside the domain of a transition that are active beside its source."""
    domain, inner = tree.tree.domain(arc, {}), arc.source
    if domain is None:
        return set()
    leaves = {*tree.leaves_at(inner)}
    for around in tree.tree.ancestors(inner, domain) if domain != inner else ():
        if tree.tree.nodes[around].kind == "parallel":
            leaves |= {*tree.leaves_at(around)} - {*tree.leaves_at(inner)}
        inner = around
    return leaves


def _shadowed(tree: Hierarchy) -> Iterator[Finding]:
    unguarded: dict[tuple[int, str | None], Transition[Any]] = {}
    behind: dict[int, tuple[Arc, Transition[Any]]] = {}
    sound: set[int] = set()
    for arc in tree.arcs:
        item, key = arc.written, (arc.source, arc.written.trigger)
        if key not in unguarded or _is_chosen(arc, tree):
            # a wildcard is of use as long as it is the first for one of the states
            sound.add(arc.place)
        else:
            behind.setdefault(arc.place, (arc, unguarded[key]))
        if item.guard is None and item.probability is None:
            unguarded.setdefault(key, item)

    for place, (arc, earlier) in behind.items():
        if place not in sound:
            message = (
                f"transition {arc.written} can never fire: {earlier} comes earlier and has no "
                "guard; remove it, put it first, or give the earlier one a guard"
            )
            yield Finding("shadowed", tree.tree.nodes[arc.source].state, message, arc.written)


def _is_chosen(arc: Arc, tree: Hierarchy) -> bool:
    """Return whether a reasoner, a time or a chance may choose a transition, whatever its place."""
    decides = not tree.decides.isdisjoint(tree.leaves_at(arc.source))
    return decides or any(getattr(arc.written, name) is not None for name in TIMING)


# What agents lack


def missing(agent: object, chart: Definition[Any], more: Iterable[str] = ()) -> list[str]:
    """Return the names that an agent lacks: those that a chart needs, and more.

    Raises:
        AgentError: If it is a class.
    """
    if isclass(agent):
        raise AgentError(
            f"{agent.__name__} is a class, of which only agents have all attributes: pass an agent"
        )
    return [name for name in ("state", *chart.needs, *more) if not _has(agent, name)]


def require_fit(agents: Iterable[object], chart: Definition[Any], more: Iterable[str] = ()) -> None:
    """Refuse agents that lack something, before anything is done with them.

    Raises:
        AgentError: If one does; names everything that it lacks.
    """
    more = tuple(more)
    for agent in agents:
        if lacks := missing(agent, chart, more):
            raise AgentError(
                f"agent {agent_name(agent)!r} does not fit chart {chart.name!r}: "
                f"{type(agent).__name__} lacks {', '.join(lacks)}"
            )


def _has(agent: object, name: str) -> bool:
    try:
        return hasattr(agent, name)
    except Exception:
        # a property that fails now is there all the same
        return True
