"""The sections of a report, in their order; each module makes one of them, its figures and its tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.page_figures import PageFigures
from prism.report._sections import (
    agents,
    cascades,
    decisions,
    diagram,
    dwelling,
    engagement,
    numbers,
    states,
)

Maker = Callable[[RunFacts, str, PageFigures], Markup | None]
"""Makes what a section shows of one run, None if that is nothing. The text names the run in ids."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the page.

    Args:
        anchor: Its id.
        heading: What it is about.
        says: How to read it, if there is something to read.
        parts: What it shows of each run, in their order.
        together: What it shows of all of them.
    """

    anchor: str
    heading: str
    says: str
    parts: Sequence[Markup] = ()
    together: Markup | None = None


@dataclass(frozen=True, slots=True)
class _Kind:
    """A section that shows each run by itself.

    Args:
        anchor: Its id.
        heading: What it is about.
        says: How to read it.
        nothing: What to say of a run that it has nothing of.
        make: Makes what it shows of one run.
    """

    anchor: str
    heading: str
    says: str
    nothing: str
    make: Maker

    def of(self, runs: Sequence[RunFacts], figures: PageFigures) -> Section:
        """Make the section of all runs."""
        parts = [
            self.make(facts, str(number), figures) for number, facts in enumerate(runs, start=1)
        ]
        nothing = Markup("<p>{}</p>").format(self.nothing)
        says = self.says if any(part is not None for part in parts) else ""

        return Section(
            self.anchor, self.heading, says, [nothing if part is None else part for part in parts]
        )


_BY_RUN = (
    _Kind("chart", "The chart and its traffic", diagram.SAYS, diagram.NOTHING, diagram.make),
    _Kind("states", "Agents in each state", states.SAYS, states.NOTHING, states.make),
    _Kind("dwell", "How long agents stay", dwelling.SAYS, dwelling.NOTHING, dwelling.make),
    _Kind("decisions", "Decisions", decisions.SAYS, decisions.NOTHING, decisions.make),
    _Kind("engagement", "Who takes part", engagement.SAYS, engagement.NOTHING, engagement.make),
    _Kind("cascades", "Cascades", cascades.SAYS, cascades.NOTHING, cascades.make),
)


def make_sections(runs: Sequence[RunFacts], figures: PageFigures) -> list[Section]:
    """Make all sections of a report.

    Args:
        runs: The facts of each run.
        figures: Takes the figures in.
    """
    return [
        Section("numbers", "Key numbers", "", together=numbers.make(runs)),
        *(kind.of(runs, figures) for kind in _BY_RUN),
        Section("agents", "Agents", agents.SAYS, together=agents.make(runs, figures)),
    ]
