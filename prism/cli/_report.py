"""``prism report``: a run as a page, or several side by side."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from prism.errors import InputError

_STDOUT = Path("-")
_PAGE = b"<!DOCTYPE html>"


class FigureKind(StrEnum):
    """How figures are saved."""

    SVG = "svg"
    PNG = "png"


Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN...",
        help="Folders of runs, or their logs (.jsonl, also .gz); several are set side by side.",
        show_default=False,
    ),
]
Output = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The page to write; - for standard output."
    ),
]
Figures = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Also save every figure in this folder, for a paper."),
]
Kind = Annotated[FigureKind, typer.Option(help="How to save them.")]


def report(
    runs: Runs,
    output: Output = Path("report.html"),
    figures: Figures = None,
    figure_format: Kind = FigureKind.SVG,
) -> None:
    """Make one HTML page of a run: it works offline, and everything is in it.

    A page that is there already is replaced; any other file is not.

    [bold]Examples[/bold]

    prism report runs/first -o first.html

    prism report runs/first runs/second -o compared.html

    prism report runs/first --figures figures --figure-format png
    """
    from prism.analysis import read_log  # the extra is asked for only where it is needed
    from prism.report import make_report

    _check_output(output)
    _check_figures(figures)
    logs = read_log(*runs)
    with Console(stderr=True).status("Reading the log" if len(runs) == 1 else "Reading the logs"):
        made = make_report(logs)
        page = made.html().encode()

    for note in made.notes:
        typer.echo(f"prism: {note}", err=True)

    _write(page, output)
    if figures is not None:
        saved = made.save_figures(figures, figure_format.value)
        typer.echo(f"{figures}: {len(saved)} figures", err=output == _STDOUT)


def _check_output(output: Path) -> None:
    """Refuse what could not be written, or should not, before the work begins.

    Raises:
        InputError: If there is no such folder, or something else is in the place of the page.
    """
    if output == _STDOUT:
        return
    if not output.parent.is_dir():
        raise InputError("cannot be written: there is no such folder", path=output)
    if output.is_dir():
        raise InputError("is a folder: name a file with --output", path=output)
    if output.is_file() and output.stat().st_size and not _is_page(output):
        raise InputError("exists and is no web page: name another file with --output", path=output)


def _is_page(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_PAGE)).upper() == _PAGE.upper()


def _check_figures(folder: Path | None) -> None:
    if folder is not None and folder.exists() and not folder.is_dir():
        raise InputError("is no folder: name one with --figures", path=folder)


def _write(page: bytes, output: Path) -> None:
    if output == _STDOUT:
        sys.stdout.buffer.write(page)
        sys.stdout.buffer.flush()
        return

    output.write_bytes(page)
    typer.echo(f"{output}: {len(page) / 1e6:.1f} MB")
