"""The sections of a report, and the declarations of those that show each run separately."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.page_figures import PageFigures

Maker = Callable[[RunFacts, str, PageFigures], Markup | None]
"""Makes the part of one run, or None if there is nothing to show. The text is for its ids."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the page.

    Args:
        anchor: Its id.
        heading: Its heading.
        explanation: How to read it; may be empty.
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
    """A section that shows each run separately.

    Args:
        anchor: Its id.
        heading: Its heading.
        explanation: How to read it.
        nothing: The text for a run that has nothing to show.
        make: Makes the part of one run.
        is_due: Whether it applies to a run, even with nothing to show. None if it applies to the
            runs that have something to show.
        concerns: Whether it can apply to a run at all; no part is made for any other run.
    """

    anchor: str
    heading: str
    explanation: str
    nothing: str
    make: Maker
    is_due: Callable[[RunFacts], bool] | None = None
    concerns: Callable[[RunFacts], bool] | None = None


has_feed: Callable[[RunFacts], bool] = attrgetter("has_feed")
"""Whether a run may have posts, to which sections on posts apply."""

has_steps: Callable[[RunFacts], bool] = attrgetter("has_steps")
"""Whether a run has steps of workflows, to which sections on turns apply."""

has_cycles: Callable[[RunFacts], bool] = attrgetter("has_cycles")
"""Whether a run has cycles of thinking, to which sections on thinking apply."""
