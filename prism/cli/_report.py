"""``prism report``: a run as a page, or several side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._options import FigureKind, Runs
from prism.cli._output import (
    missing_runs_first,
    output_file,
    refuse_read_output,
    write_bytes,
)
from prism.cli._screen import Screen, note, say
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.report import FigureFormat, Page
    from prism.science import Comparison

_STDOUT = Path("-")
_PAGE = b"<!DOCTYPE html>"


Figures = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Also save every figure in this folder, for example for a paper."
    ),
]
Charts = Annotated[
    list[str] | None,
    typer.Option(
        "--chart",
        metavar="CHART",
        help="Your own chart, if the run follows one: a .json file, or package.module:attribute, "
        "which may be a class of a world's agents. It is drawn with all its transitions. "
        "Repeat it for several.",
    ),
]


def report(
    runs: Runs,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE")] = Path("report.html"),
    figures: Figures = None,
    figure_format: FigureKind = "svg",
    chart: Charts = None,
) -> None:
    """Make one self-contained HTML page of a run, which works offline.

    An existing page is replaced; any other file is not. Exit status 1 if a figure fails.

    Options:
        output: File for the page; - for standard output.

    [bold]Examples[/bold]

    prism report runs/first -o first.html

    prism report runs/first runs/second -o compared.html

    prism report runs/first --chart doors.json

    prism report runs/first --figures figures --figure-format png
    """
    from prism.cli._chart_argument import chart_from

    check_page(output, runs)
    check_figures(figures)
    charts = [chart_from(name) for name in chart or ()]

    # imported here, since other commands need no extra
    with missing_runs_first(runs):
        from prism.report import make_report
    from prism.analysis import read_log

    logs = read_log(*runs)
    with Screen(err=True).status("Reading the log" if len(runs) == 1 else "Reading the logs"):
        made = make_report(logs, charts)
        page = made.html().encode()

    for found in made.notes:
        note(found)

    write_page(page, output)
    save_figures(made, figures, figure_format, err=output == _STDOUT)


def check_page(output: Path, runs: list[Path]) -> None:
    """Refuse a file that cannot or should not be written, before the work begins.

    Raises:
        InputError: If there is no such folder, or the file exists and is no page.
    """
    if output == _STDOUT:
        if sys.stdout.isatty():
            raise InputError(
                "a page cannot be shown on a terminal: name a file, or pipe the output", path="-"
            )

        refuse_read_output(runs)
        return

    from prism.runs._folder import refuse_own_file

    if not output.parent.is_dir():
        raise InputError("cannot be written: there is no such folder", path=output)
    if output.is_dir():
        raise InputError("is a folder: name a file with --output", path=output)
    if output.is_file() and output.stat().st_size and not _is_page(output):
        raise InputError(
            "exists and is not a web page: name another file with --output", path=output
        )

    refuse_own_file(output, runs)


def check_figures(folder: Path | None) -> None:
    """Refuse what is no folder for figures.

    Raises:
        InputError: If it is a file.
    """
    if folder is not None and folder.exists() and not folder.is_dir():
        raise InputError("is not a folder: name one with --figures", path=folder)


def write_page(page: bytes, output: Path, *, err: bool = False) -> None:
    """Write a page, and say how large it is.

    Args:
        page: The page.
        output: The file; - is standard output.
        err: Whether to say so on standard error.
    """
    if output == _STDOUT:
        write_bytes(page, None)
        return

    with output_file(output) as file:
        file.write(page)

    say(f"{output}: {len(page) / 1e6:.1f} MB", err=err)


def save_figures(
    made: Page | Comparison, folder: Path | None, kind: FigureFormat, *, err: bool
) -> None:
    """Save the figures, if there is a folder for them, and say which could not be drawn.

    Args:
        made: What has the figures.
        folder: The folder; None saves none.
        kind: Their format.
        err: Whether to say how many there are on standard error.

    Raises:
        typer.Exit: If one could not be drawn.
    """
    if folder is not None:
        saved = made.save_figures(folder, kind)
        say(f"{folder}: {len(saved)} figures", err=err)

    for name, problem in made.failures.items():
        note(f"the figure {name} could not be drawn: {problem}")
    if made.failures:
        raise typer.Exit(1)


def _is_page(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_PAGE)).upper() == _PAGE.upper()
