"""The sections of a report, in their order; each module makes some, with figures and tables."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.page_figures import PageFigures
from prism.report._sections import agents, numbers
from prism.report._sections.cascades import CASCADES
from prism.report._sections.decisions import DECISIONS
from prism.report._sections.diagram import CHART
from prism.report._sections.faults import FAULTS, RECORDED
from prism.report._sections.kinds import Kind, Section
from prism.report._sections.numbers import COSTS, CYCLES, STEPS
from prism.report._sections.states import DWELLING, STATES
from prism.report._sections.thinking import ACTIONS, SIZES, THOUGHTS
from prism.report._sections.turns import CALLS, REFUSED, TURNS
from prism.report._sections.worlds import (
    MEASURES,
    PICTURE,
    WORLD_EVENTS,
)

KINDS = (
    *(
        PICTURE,
        MEASURES,
        WORLD_EVENTS,
        TURNS,
        STEPS,
        REFUSED,
        CALLS,
        SIZES,
        ACTIONS,
        THOUGHTS,
        CYCLES,
        CHART,
        STATES,
        DWELLING,
        DECISIONS,
    ),
    *(CASCADES, COSTS, RECORDED),
)
"""Sections that show each run separately, in their order."""


def make_sections(runs: Sequence[RunFacts], figures: PageFigures) -> list[Section]:
    """Make all sections of a report.

    Args:
        runs: The facts of each run.
        figures: Collects the figures.
    """
    given = numbers.make_parameters(runs)
    # many parameters would hide the sections after them
    first, last = ([], given) if numbers.are_many(runs) else (given, [])

    return [
        numbers.make_numbers(runs),
        *sections_of([FAULTS], runs, figures),
        *first,
        *sections_of(KINDS, runs, figures),
        *last,
        agents.make(runs, figures),
    ]


def sections_of(
    kinds: Sequence[Kind], runs: Sequence[RunFacts], figures: PageFigures
) -> list[Section]:
    """Make the sections of some kinds that apply to at least one of the runs."""
    return [section for kind in kinds for section in _of_kind(kind, runs, figures)]


def _part_of(kind: Kind, facts: RunFacts, number: str, figures: PageFigures) -> Markup | None:
    """Make the part of one run; None if it does not concern the run."""
    concerns = kind.concerns is None or kind.concerns(facts)
    return kind.make(facts, number, figures) if concerns else None


def _of_kind(kind: Kind, runs: Sequence[RunFacts], figures: PageFigures) -> list[Section]:
    """Make the section of all runs from the parts of each; none if it applies to no run."""
    if kind.is_due is not None and not any(map(kind.is_due, runs)):
        return []

    parts = [
        _part_of(kind, facts, str(number), figures) for number, facts in enumerate(runs, start=1)
    ]
    has_content = any(part is not None for part in parts)
    if kind.is_due is None and not has_content:
        return []

    nothing = Markup("<p>{}</p>").format(kind.nothing)
    shown = [nothing if part is None else part for part in parts]

    return [Section(kind.anchor, kind.heading, kind.explanation * has_content, shown)]
