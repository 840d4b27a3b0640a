"""A comparison, as a page and for a paper."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from prism.science._differences import Differences
from prism.science._paper import latex_of, methods_of, write_paper

if TYPE_CHECKING:
    from prism.report import FigureFormat, Page


class Comparison(Differences):
    """The results of a comparison, from `compare`.

    Args:
        runs: The runs, each with its group; the first group is the control.
        differences: A row for each measure, setting and group except the first.
        notes: Remarks on the runs and the tests.
        from_round: The first round included.
        to_round: The last round included.
        confidence: Confidence level of the intervals.
        folder: The folder of the batch, if it is one.
    """

    def html(self) -> str:
        """Return the comparison as one HTML page that works offline."""
        return self._page.html()

    def save_figures(self, folder: Path, format: FigureFormat = "svg") -> list[Path]:  # noqa: A002
        """Save every figure as a file; see `prism.report.Page.save_figures`."""
        return self._page.save_figures(folder, format)

    def latex(self) -> str:
        """Return the differences that were tested as a LaTeX table of six columns."""
        return latex_of(self)

    def methods(self) -> str:
        """Return a paragraph for the methods of a paper: runs, seeds, tests, failures, versions."""
        return methods_of(self)

    def save_paper(self, folder: Path) -> list[Path]:
        """Write figures as PDF, the table as LaTeX and CSV, and a methods paragraph.

        Args:
            folder: The folder, made if it does not exist. Files of the same names are replaced.

        Returns:
            The paths of the files: ``differences`` as ``.tex`` and ``.csv``, ``methods.md``, and
            the figures.

        Raises:
            OSError: If a file cannot be written.
        """
        return [*write_paper(folder, self), *self.save_figures(folder, "pdf")]

    @cached_property
    def _page(self) -> Page:
        from prism.science._compare_page import page_of

        return page_of(self)
