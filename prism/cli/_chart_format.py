"""Writing a chart in one of its formats, and the pictures that take an extra."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from prism.cli._output import output_file, refuse_read_output, standard_output
from prism.cli._screen import pour
from prism.errors import InputError
from prism.statechart import Statechart

PictureFormat = Literal["png", "pdf"]
ChartFormat = Annotated[
    Literal["mermaid", "dot", "scxml", "json", "svg", "png", "pdf"],
    typer.Option("--format", help="Format to write; png and pdf need the extra report."),
]
ChartFile = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="File to write to, instead of standard output."
    ),
]


def write_chart(
    chart: Statechart[Any], as_format: ChartFormat, out: Path | None, reads: Sequence[Path]
) -> None:
    """Write a chart to a file, or to standard output.

    Args:
        chart: The chart.
        as_format: Its format.
        out: The file; None is standard output.
        reads: What the command reads.

    Raises:
        InputError: If a picture would go to a terminal, or the file cannot be written, is read, or
            belongs to a run.
        MissingExtraError: If the extra ``report`` is not installed, which the picture takes.
    """
    if as_format == "png" or as_format == "pdf":
        _write_picture(chart, as_format, out, reads)
        return

    text = format(chart, as_format)
    text = text if text.endswith("\n") else text + "\n"
    if out is None:
        refuse_read_output(reads)
        pour(text)
        return

    with output_file(out, reads) as file:
        file.write(text.encode())


def _write_picture(
    chart: Statechart[Any],
    as_format: Literal["png", "pdf"],
    out: Path | None,
    reads: Sequence[Path],
) -> None:
    if out is None and sys.stdout.isatty():
        raise InputError(
            f"--format {as_format} is not for a terminal: name a file with --out, or pipe it on"
        )

    # says which extra it takes, if that is missing
    import prism.report  # noqa: F401
    from prism.report._figures.rendering import in_format

    picture = in_format(chart.to_svg(), as_format)
    with standard_output(reads) if out is None else output_file(out, reads) as file:
        file.write(picture)
