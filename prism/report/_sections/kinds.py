"""What a section of a report is, and what is declared of one that shows each run by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.page_figures import PageFigures

Maker = Callable[[RunFacts, str, PageFigures], Markup | None]
"""Makes the part of one run, None if there is nothing to show. The text is its name in ids."""


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
class Kind:
    """A section that shows each run by itself.

    Args:
        anchor: Its id.
        heading: Its heading.
        explanation: How to read it.
        nothing: Stands in place of the part of a run that has none.
        make: Makes the part of one run.
        is_due: Whether it belongs to a run, even with nothing to show.
            None: it belongs to the runs that have something to show.
        concerns: Whether it can be about a run at all; its part of any other is not made.
    """

    anchor: str
    heading: str
    explanation: str
    nothing: str
    make: Maker
    is_due: Callable[[RunFacts], bool] | None = None
    concerns: Callable[[RunFacts], bool] | None = None


has_feed: Callable[[RunFacts], bool] = attrgetter("has_feed")
"""Whether posts belong to a run: what makes a section of posts due."""

has_steps: Callable[[RunFacts], bool] = attrgetter("has_steps")
"""Whether a run has steps of workflows, which sections of turns are about."""

has_cycles: Callable[[RunFacts], bool] = attrgetter("has_cycles")
"""Whether a run has cycles of thinking, which sections of thinking are about."""
