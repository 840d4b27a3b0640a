"""``prism report``: a run as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from prism.cli._options import Charts
from prism.cli._screen import Screen, note, say, write_bytes
from prism.errors import InputError

_PAGE = b"<!DOCTYPE html>"


def report(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of a run, or its log (.jsonl, also .gz).")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="File for the page.")
    ] = Path("report.html"),
    charts: Charts = None,
) -> None:
    """Make one self-contained HTML page of a run, which works offline.

    It replaces an existing page, but no other file.

    **Example**

    * `prism report runs/first -o first.html`
    """
    from prism.cli._chart_argument import chart_from

    require_page(out)
    statecharts = [chart_from(name) for name in charts or ()]
    # imported here, since other commands need no extra
    from prism.analysis import read_log
    from prism.report import make_report

    with Screen(err=True).status("Reading the log"):
        made = make_report(read_log(run), statecharts)
        page = made.html().encode()
    for each in made.notes:
        note(str(each))
    write_page(page, out, [run])


def require_page(out: Path) -> None:
    """Refuse a file that exists and is no page, before the work begins."""
    if out.is_dir() or not out.parent.is_dir():
        raise InputError("cannot be written: name a file in a folder that exists", path=out)
    if out.is_file() and out.stat().st_size:
        with out.open("rb") as file:
            if file.read(len(_PAGE)).upper() != _PAGE.upper():
                raise InputError("exists and is not a web page: name another file", path=out)


def write_page(page: bytes, out: Path, reads: list[Path]) -> None:
    """Write a page, and say how large it is."""
    write_bytes(page, out, reads)
    say(f"{out}: {len(page) / 1e6:.1f} MB")
