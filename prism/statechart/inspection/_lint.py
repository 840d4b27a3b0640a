"""Probable mistakes in a chart that is well defined, and in its agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from inspect import isclass
from typing import TYPE_CHECKING, Any, Literal

from prism.errors import AgentError
from prism.statechart._definition import TIMEOUT, Definition
from prism.statechart._engine.memory import FIELD
from prism.statechart._identity import name_or_number
from prism.statechart.states import state_text
from prism.statechart.transitions import Transition

if TYPE_CHECKING:
    from prism.statechart.inspection._outline import Outline

FindingKind = Literal["unreachable", "no_way_out", "shadowed", "no_timeout"]

_IF_UNGUARDED = "remove it, or give the earlier one a guard"


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
    if chart.tree is None:
        outline = _flat_outline(chart)
    else:
        # loaded only where there are composites: flat charts need none of it
        from prism.statechart.inspection._lint_nested import nested_outline

        outline = nested_outline(chart.tree)

    return [
        *_unreachable(chart, outline),
        *_without_way_out(chart, outline),
        *_shadowed(outline),
        *_without_timeout(chart, outline),
    ]


def _flat_outline(chart: Definition[Any]) -> Outline:
    # only who checks a chart loads it
    from prism.statechart.inspection._outline import Outline

    leaving = [item for item in chart.transitions if item.source != item.target]
    return Outline(
        {chart.initial},
        {item.source for item in leaving},
        {item.source for item in leaving if item.trigger == TIMEOUT},
        chart.timeouts.keys(),
        chart.final_states,
        [*_shadowed_in(chart)],
    )


def _shadowed_in(
    chart: Definition[Any],
) -> Iterator[tuple[Any, Transition[Any], Transition[Any]]]:
    unguarded: dict[tuple[Any, str], Transition[Any]] = {}
    for item in chart.transitions:
        if item.source in chart.decision_states:
            # a reasoner may choose any of them
            continue

        earlier = unguarded.get((item.source, item.trigger))
        if earlier is not None:
            yield item.source, item, earlier
        elif item.guard is None:
            unguarded[item.source, item.trigger] = item


def _unreachable(chart: Definition[Any], outline: Outline) -> list[Finding]:
    reached, frontier = {*outline.initial}, [*outline.initial]
    while frontier:
        state = frontier.pop()
        found = {item.target for item in chart.transitions if item.source == state} - reached
        reached |= found
        frontier += found

    return [
        Finding(
            "unreachable",
            state,
            f"state {state_text(state)!r} cannot be reached from {state_text(chart.initial)!r}: "
            "add a transition that leads to it, or remove it",
        )
        for state in chart.states
        if state not in reached
    ]


def _without_way_out(chart: Definition[Any], outline: Outline) -> list[Finding]:
    return [
        Finding(
            "no_way_out",
            state,
            f"state {state_text(state)!r} has no way out: add a transition that leaves it, or "
            "make it a final state",
        )
        for state in chart.states
        if state not in outline.left | outline.final
    ]


def _shadowed(outline: Outline) -> list[Finding]:
    return [
        Finding(
            "shadowed",
            source,
            f"transition {item} can never fire: {earlier} comes earlier and has no guard; "
            + ("put this one first" if item.guard is not None else _IF_UNGUARDED),
            item,
        )
        for source, item, earlier in outline.shadowed
    ]


def _without_timeout(chart: Definition[Any], outline: Outline) -> list[Finding]:
    has_some = any(each.trigger == TIMEOUT for each in chart.transitions)
    # a chart without any has none on purpose
    if not (has_some or outline.timed or outline.limited):
        return []

    return [
        Finding(
            "no_timeout",
            state,
            f"active state {state_text(state)!r} has no {TIMEOUT!r} transition, so an agent can "
            "get stuck in it: add one to the state in which it recovers",
        )
        for state in chart.states
        if state not in outline.timed | outline.final
        and (state not in outline.initial or state in outline.limited)
    ]


def needed(chart: Definition[Any]) -> tuple[str, ...]:
    """Return the names of what a chart needs of an agent: what is declared, and its own fields."""
    remembers = chart.tree is not None and chart.tree.remembers
    return ("state", *([FIELD] if remembers else []), *chart.needs)


def missing(agent: object, needs: Iterable[str]) -> list[str]:
    """Return the names that an agent lacks.

    Args:
        agent: An agent; its properties are read.
        needs: Names of attributes and methods.

    Raises:
        AgentError: If it is a class.
    """
    if isclass(agent):
        raise AgentError(
            f"{agent.__name__} is a class, of which only agents have all attributes: pass an agent"
        )
    return [name for name in needs if not _has(agent, name)]


def require_fit(agents: Iterable[object], chart: Definition[Any], more: Iterable[str] = ()) -> None:
    """Refuse agents that lack something, before anything is done with them.

    Args:
        agents: The agents.
        chart: The chart that will drive them.
        more: What else is needed of an agent.

    Raises:
        AgentError: If one does; names the first of each class, and everything that it lacks.
    """
    needs = (*needed(chart), *more)
    found: dict[tuple[type, tuple[str, ...]], list[object]] = {}
    for agent in agents:
        lacks = tuple(missing(agent, needs))
        if lacks:
            found.setdefault((type(agent), lacks), []).append(agent)

    if not found:
        return

    problems = [
        f"{cls.__name__} ({_named(those)}) lacks {', '.join(lacks)}"
        for (cls, lacks), those in found.items()
    ]
    raise AgentError(
        f"agents do not fit chart {chart.name!r}: {'; '.join(problems)}: give the class what is "
        "missing; chart.fits(agent) lists what the chart itself needs"
    )


def _named(agents: list[object]) -> str:
    more = len(agents) - 1
    return f"agent {name_or_number(agents[0])!r}" + (f" and {more} more" if more else "")


def _has(agent: object, name: str) -> bool:
    try:
        getattr(agent, name)
    except AttributeError:
        return False
    except Exception:
        # a property that fails now is there all the same
        return True

    return True
