"""The sections of a report, in their order; each module makes one, with figures and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.page_figures import PageFigures
from prism.report._sections import (
    agents,
    cascades,
    costs,
    cycles,
    decisions,
    diagram,
    dwelling,
    engagement,
    faults,
    numbers,
    states,
    steps,
)

Maker = Callable[[RunFacts, str, PageFigures], Markup | None]
"""Makes the section of one run, None if there is nothing to show. The text is its name in ids."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the page.

    Args:
        anchor: Its id.
        heading: Its heading.
        explanation: How to read it; empty if there is nothing to read.
        parts: The part of each run, in their order.
        together: The part of all runs together.
    """

    anchor: str
    heading: str
    explanation: str
    parts: Sequence[Markup] = ()
    together: Markup | None = None


@dataclass(frozen=True, slots=True)
class _Kind:
    """A section that shows each run by itself.

    Args:
        anchor: Its id.
        heading: Its heading.
        explanation: How to read it.
        nothing: Stands in place of the part of a run that has none.
        make: Makes the part of one run.
        is_of_feed: Whether it belongs to feeds only, such as a section on posts.
    """

    anchor: str
    heading: str
    explanation: str
    nothing: str
    make: Maker
    is_of_feed: bool = False

    def of(self, runs: Sequence[RunFacts], figures: PageFigures) -> Section:
        """Make the section of all runs."""
        parts = [
            self.make(facts, str(number), figures) for number, facts in enumerate(runs, start=1)
        ]
        nothing = Markup("<p>{}</p>").format(self.nothing)
        explanation = self.explanation if any(part is not None for part in parts) else ""

        return Section(
            self.anchor,
            self.heading,
            explanation,
            [nothing if part is None else part for part in parts],
        )

    def of_any(self, runs: Sequence[RunFacts], figures: PageFigures) -> list[Section]:
        """Make the section of all runs, if any of them has something to show."""
        section = self.of(runs, figures)
        return [section] if section.explanation else []


# Only where there is something, and then at the top.
_STEPS = _Kind("steps", "Steps of the workflow", steps.EXPLANATION, steps.NOTHING, steps.make)
_CYCLES = _Kind("cycles", "Cycles", cycles.EXPLANATION, cycles.NOTHING, cycles.make)
_COSTS = _Kind("costs", "Costs", costs.EXPLANATION, costs.NOTHING, costs.make)
_FAULTS = _Kind("faults", "What went wrong", faults.EXPLANATION, faults.NOTHING, faults.make)
_BY_RUN = (
    _Kind("chart", "The chart and its traffic", diagram.EXPLANATION, diagram.NOTHING, diagram.make),
    _Kind("states", "Agents in each state", states.EXPLANATION, states.NOTHING, states.make),
    _Kind("dwell", "How long agents stay", dwelling.EXPLANATION, dwelling.NOTHING, dwelling.make),
    _Kind(
        "decisions",
        "Decisions",
        decisions.EXPLANATION,
        decisions.NOTHING,
        decisions.make,
        is_of_feed=True,
    ),
    _Kind(
        "engagement",
        "Who takes part",
        engagement.EXPLANATION,
        engagement.NOTHING,
        engagement.make,
        is_of_feed=True,
    ),
    _Kind(
        "cascades",
        "Cascades",
        cascades.EXPLANATION,
        cascades.NOTHING,
        cascades.make,
        is_of_feed=True,
    ),
)


def make_sections(runs: Sequence[RunFacts], figures: PageFigures) -> list[Section]:
    """Make all sections of a report.

    Args:
        runs: The facts of each run.
        figures: Where to add the figures.
    """
    has_feed = any(facts.has_feed for facts in runs)

    return [
        Section("numbers", "Key numbers", "", together=numbers.make(runs)),
        *_FAULTS.of_any(runs, figures),
        *_STEPS.of_any(runs, figures),
        *_CYCLES.of_any(runs, figures),
        *(kind.of(runs, figures) for kind in _BY_RUN if has_feed or not kind.is_of_feed),
        *_COSTS.of_any(runs, figures),
        Section("agents", "Agents", agents.EXPLANATION, together=agents.make(runs, figures)),
    ]
