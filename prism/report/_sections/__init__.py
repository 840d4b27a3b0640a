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
    decisions,
    diagram,
    faults,
    numbers,
    participation,
    states,
    worlds,
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


def _always(_facts: RunFacts) -> bool:
    return True


def _has_feed(facts: RunFacts) -> bool:
    return facts.has_feed


@dataclass(frozen=True, slots=True)
class _Kind:
    """A section that shows each run by itself.

    Args:
        anchor: Its id.
        heading: Its heading.
        explanation: How to read it.
        nothing: Stands in place of the part of a run that has none.
        make: Makes the part of one run.
        is_due: Whether it belongs to a run, even if there is nothing to show.
    """

    anchor: str
    heading: str
    explanation: str
    nothing: str
    make: Maker
    is_due: Callable[[RunFacts], bool] = _always

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
_STEPS = _Kind(
    "steps", "Steps of the workflow", costs.STEPS_EXPLANATION, costs.STEPS_NOTHING, costs.make_steps
)
_CYCLES = _Kind(
    "cycles", "Cycles", costs.CYCLES_EXPLANATION, costs.CYCLES_NOTHING, costs.make_cycles
)
_COSTS = _Kind("costs", "Costs", costs.COSTS_EXPLANATION, costs.COSTS_NOTHING, costs.make_costs)
_FAULTS = _Kind(
    "faults",
    "What went wrong",
    faults.FAULTS_EXPLANATION,
    faults.FAULTS_NOTHING,
    faults.make_faults,
)
_RECORDED = _Kind(
    "prompts",
    "Prompts worth a look",
    faults.RECORDED_EXPLANATION,
    faults.RECORDED_NOTHING,
    faults.make_recorded,
)
_OF_WORLDS = (
    _Kind(
        "measures",
        "Measures",
        worlds.MEASURES_EXPLANATION,
        worlds.MEASURES_NOTHING,
        worlds.make_measures,
    ),
    _Kind(
        "treatments",
        "Treatments",
        worlds.TREATMENTS_EXPLANATION,
        worlds.TREATMENTS_NOTHING,
        worlds.make_treatments,
    ),
    _Kind(
        "events",
        "World events",
        worlds.WORLD_EVENTS_EXPLANATION,
        worlds.WORLD_EVENTS_NOTHING,
        worlds.make_world_events,
    ),
)
_BY_RUN = (
    _Kind("chart", "The chart and its traffic", diagram.EXPLANATION, diagram.NOTHING, diagram.make),
    _Kind(
        "states",
        "Agents in each state",
        states.STATES_EXPLANATION,
        states.STATES_NOTHING,
        states.make_states,
    ),
    _Kind(
        "dwell",
        "How long agents stay",
        states.DWELLING_EXPLANATION,
        states.DWELLING_NOTHING,
        states.make_dwelling,
    ),
    _Kind(
        "decisions",
        "Decisions",
        decisions.EXPLANATION,
        decisions.NOTHING,
        decisions.make,
        is_due=lambda facts: facts.has_decisions,
    ),
    _Kind(
        "engagement",
        "Who takes part",
        participation.ENGAGEMENT_EXPLANATION,
        participation.ENGAGEMENT_NOTHING,
        participation.make_engagement,
        is_due=_has_feed,
    ),
    _Kind(
        "participation",
        "Silent, writing, creating",
        participation.PARTICIPATION_EXPLANATION,
        participation.PARTICIPATION_NOTHING,
        participation.make_participation,
        is_due=_has_feed,
    ),
    _Kind(
        "cascades",
        "Cascades",
        cascades.EXPLANATION,
        cascades.NOTHING,
        cascades.make,
        is_due=_has_feed,
    ),
)


def make_sections(runs: Sequence[RunFacts], figures: PageFigures) -> list[Section]:
    """Make all sections of a report.

    Args:
        runs: The facts of each run.
        figures: Where to add the figures.
    """
    due = [kind for kind in _BY_RUN if any(map(kind.is_due, runs))]
    given = [_given(table)] if (table := numbers.make_parameters(runs)) is not None else []
    first, last = ([], given) if numbers.are_many(runs) else (given, [])

    return [
        Section("numbers", "Key numbers", "", together=numbers.make_numbers(runs)),
        *_FAULTS.of_any(runs, figures),
        *first,
        *(section for kind in _OF_WORLDS for section in kind.of_any(runs, figures)),
        *_STEPS.of_any(runs, figures),
        *_CYCLES.of_any(runs, figures),
        *(kind.of(runs, figures) for kind in due),
        *_COSTS.of_any(runs, figures),
        *_RECORDED.of_any(runs, figures),
        *last,
        Section("agents", "Agents", agents.EXPLANATION, together=agents.make(runs, figures)),
    ]


def _given(table: Markup) -> Section:
    return Section("parameters", "Parameters", numbers.PARAMETERS_EXPLANATION, together=table)
