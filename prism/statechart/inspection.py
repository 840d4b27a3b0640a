"""Looking at a chart and its agents without changing anything: explanations, and a lint.

The lint looks at a chart as it was written, since a transition to a history is several of leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Literal

from prism.statechart._appendix_d import domain, ends_of, first_leaves
from prism.statechart._definition import Definition
from prism.statechart._engine.rows import Moment, rows_of
from prism.statechart._hierarchy import Arc, Hierarchy
from prism.statechart.names import agent_name, function_label, unknown_trigger_problem
from prism.statechart.states import joined, state_text
from prism.statechart.transitions import Transition
from prism.telemetry.loggers import describe

__all__ = ["Explanation", "Finding"]

# What an event would do, and why

FireOutcome = Literal["moves", "stays", "draws", "refused", "raises", "no reaction"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What an event would do to an agent, and why; ``str`` shows it as a block of lines.

    Args:
        chart: Name of the chart.
        agent: Name of the agent.
        state: State it is in.
        trigger: The event.
        candidates: A line for each transition that the event could cause, in definition order: what
            its guard says (``passed``, ``failed``, ``raised``, or ``not asked``, as an earlier one
            was chosen), the transition, its guard, and what the guard raised.
        outcome: What `Statechart.fire` would do: the agent ``moves``; it ``stays``, since a
            self-transition only runs its actions; it ``draws`` one of several transitions weighted
            by probability; it is ``refused`` by all guards; a guard of a strict chart ``raises``;
            the state has ``no reaction`` to the event.
        summary: The outcome as a sentence, with the events to which the state reacts if it does not
            react to this one.
        target: Where ``fire`` would lead; None if nowhere.
        options: The targets from which `Statechart.afire` would have a reasoner choose; empty if it
            would not ask.
    """

    chart: str
    agent: str
    state: Any
    trigger: str
    candidates: tuple[str, ...]
    outcome: FireOutcome
    summary: str
    target: Any
    options: tuple[Any, ...]

    def __str__(self) -> str:
        """Return the block: who and where, a line for each candidate, and the outcome."""
        where = f"agent {self.agent!r} in {state_text(self.state)!r}, event {self.trigger!r}"
        lines = [f"{where}, chart {self.chart!r}:", *self.candidates, self.summary]
        if self.options:
            options = ", ".join(map(state_text, self.options))
            lines.append(f"afire asks the reasoner to choose from {options}")
        return "\n  ".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data, ready for JSON."""
        texts = {"state": state_text(self.state), "options": [*map(state_text, self.options)]}
        target = self.target and state_text(self.target)
        return {**asdict(self), **texts, "target": target, "candidates": [*self.candidates]}


class _Trial(Moment):
    """The moment of an event that is only explained."""

    has_drawn = is_strict = False

    def passes(self, arc: Arc) -> bool:
        return not self.has_raised and super().passes(arc)

    def draw(self) -> float:
        self.has_drawn = True
        return 0

    @property
    def has_raised(self) -> bool:
        """Whether a guard has raised an error that the chart lets through."""
        return self.is_strict and any(verdict.error for verdict in self.verdicts.values())


def explain(chart: Definition[Any], agent: Any, trigger: str, context: Any, at: Any) -> Explanation:
    """Explain what an event would do to an agent: see `Statechart.explain`.

    Args:
        chart: The chart's definition.
        agent: The agent, which guards see as it is.
        trigger: Name of the event.
        context: What the event is about.
        at: The state to explain for.
    """
    tree, rows = chart.hierarchy, rows_of(chart)
    state, groups = rows.resolve(at).value, rows.groups(at, trigger)
    decides = not tree.decides.isdisjoint(rows.resolve(at).leaves)
    trial = _Trial(tree, agent, context)
    trial.is_strict = chart.strict
    outcome: FireOutcome = "no reaction"
    target, options = None, dict[Any, None]()
    if groups:
        edge = rows.first(state, trigger, trial)
        if trial.has_raised or trial.has_drawn:
            outcome = "draws" if trial.has_drawn else "raises"
        else:
            target = edge and edge.to_state
            outcome = "refused" if edge is None else "stays" if target == state else "moves"
            enabled = rows.enabled(state, trigger, trial) if decides else ()
            options = dict.fromkeys(each.to_state for each in enabled)

    reacts_to = [each for each in tree.triggers if rows.groups(state, each)]
    hint = "" if trigger in tree.triggers else unknown_trigger_problem(trigger, tree.triggers)
    others = f"only to {joined(reacts_to)}" if reacts_to else "nor to any other"
    summaries: dict[FireOutcome, str] = {
        "moves": f"fire moves the agent to {state_text(target)!r}",
        "stays": "fire runs the action; the agent stays, and nothing is recorded",
        "draws": "fire draws one of those that passed, weighted by probability",
        "refused": "fire does nothing: no guard passes",
        "raises": "fire raises the guard's exception: the chart is strict",
        "no reaction": f"{state_text(state)!r} does not react to it, {others}"
        f"{hint and f' ({hint})'}",
    }
    arcs = dict.fromkeys(chain(*groups))
    lines = (_line(arc.written, *trial.verdicts.get(arc, ("not asked", None))) for arc in arcs)
    asked = tuple(options) if len(options) > 1 and not trial.has_raised else ()
    about = chart.name, agent_name(agent), state, trigger, tuple(lines)
    return Explanation(*about, outcome, summaries[outcome], target, asked)


def _line(item: Transition[Any], verdict: str, error: Exception | None) -> str:
    guard = function_label(item.guard, "guard")
    line = f"{verdict:<9}  {item}" + (f" [{guard}]" if guard else "")
    return f"{line}: {describe(error)}" if error else line


# Probable mistakes in a chart that is well defined


@dataclass(frozen=True, slots=True)
class Finding:
    """A probable mistake in a chart.

    Args:
        kind: ``unreachable`` or ``no_way_out``.
        state: The state it concerns.
        message: The mistake, and how to correct it.
    """

    kind: Literal["unreachable", "no_way_out"]
    state: Any
    message: str

    def __str__(self) -> str:
        """Return the message."""
        return self.message


def find_flaws(chart: Definition[Any]) -> Iterator[Finding]:
    """Yield everything that is probably wrong with a chart: see `Statechart.check`."""
    initial, reached = state_text(chart.initial), _reached(chart)
    left = {*_left(chart.hierarchy), *chart.arguments["final_states"]}
    lost = f"cannot be reached from {initial!r}: add a transition that leads to it, or remove it"
    trapped = "has no way out: add a transition that leaves it, or make it a final state"
    for state in (each for each in chart.states if each not in reached):
        yield Finding("unreachable", state, f"state {state_text(state)!r} {lost}")
    for state in (each for each in chart.states if each not in left):
        yield Finding("no_way_out", state, f"state {state_text(state)!r} {trapped}")


def _reached(chart: Definition[Any]) -> set[Any]:
    """Return the leaves to which agents can come."""
    leaves = [*chart.hierarchy.members(first_leaves(chart.hierarchy))]
    reached = {*leaves}
    for leaf in leaves:
        further = {end for _, end in chart.steps_from(leaf)} - reached
        reached |= further
        leaves += further
    return reached


def _left(tree: Hierarchy) -> Iterator[Any]:
    """Yield the leaves that some transition leaves, those of other regions included."""
    for arc in tree.arcs:
        around, ends = tree.ancestors(arc.source, domain(tree, arc, {})), ends_of(tree, arc)
        regions = [each for each in around if tree.nodes[each].kind == "parallel"]
        for leaf in tree.leaves_at([arc.source, *regions][-1]):
            if ends not in ([], [leaf]):
                yield tree.nodes[leaf].state
