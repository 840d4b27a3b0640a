"""``prism compare``: what differs between groups of runs, and how certain that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._options import AsJson, OutFile
from prism.cli._report import require_page, write_page
from prism.cli._screen import note, say
from prism.cli._tables import draw_rows, write_table

if TYPE_CHECKING:
    from prism.science import Comparison


_COLUMNS = ["measure", "setting", "second", "difference", "low", "high", "p", "p_holm", "effect"]


def compare(
    groups: Annotated[
        list[str],
        typer.Argument(
            metavar="GROUP...",
            help="A run, a folder that holds runs, or a pattern in quotes for each group. A single "
            "folder is split: a batch by its arms, any other by its subfolders.",
        ),
    ],
    by: Annotated[
        str | None,
        typer.Option(
            metavar="FACTOR", help="Factor of a batch to compare: arm, or a parameter of the plan."
        ),
    ] = None,
    from_round: Annotated[int, typer.Option(min=1, help="First round to include.")] = 1,
    to_round: Annotated[int | None, typer.Option(min=1, help="Last round to include.")] = None,
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="Compare groups, not pairs of runs with one seed.")
    ] = False,
    measures: Annotated[
        list[str] | None,
        typer.Option("--measure", metavar="NAME", help="Only this measure. Repeat it for several."),
    ] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a page.")] = None,
    paper: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Also write figures as PDF, a table in LaTeX, and the methods."
        ),
    ] = None,
    out: OutFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare groups of runs: difference, interval, test and effect size for every measure.

    Every group is compared with the first; in a batch, each arm with the first arm at each setting
    of the other parameters. `-o` writes all columns, as CSV, JSON, Parquet or LaTeX by the file's
    name.

    **Examples**

    * `prism compare runs/plain runs/warned --from-round 5 --page compared.html`

    * `prism compare runs/batch --by friends --measure gini`

    * `prism compare "runs/a-*" "runs/b-*" -o compared.csv --paper paper`
    """
    if page is not None:
        require_page(page)
    from prism.science import compare as compare_groups

    comparison = compare_groups(
        *groups,
        by=by,
        paired=not unpaired,
        measures=measures,
        from_round=from_round,
        to_round=to_round,
    )
    for each in comparison.notes:
        note(each)

    reads = [run.path for run in comparison.runs]
    if as_json or out is not None:
        latex = {".tex": lambda: comparison.latex().encode()}
        write_table(comparison.table(), out, reads, as_json=as_json, others=latex)
    else:
        _print(comparison, measures)
    if page is not None:
        write_page(comparison.html().encode(), page, reads)
    if paper is not None:
        say(f"{paper}: {len(comparison.save_paper(paper))} files", err=True)


def _print(comparison: Comparison, measures: list[str] | None) -> None:
    """Print the differences; of what is the same in every run, only what was asked for by name."""
    rows = [row for row in comparison.differences if row.difference or row.low is not None]
    say(f"{comparison.title}, {comparison.pairing}")
    if not rows:
        say("No measure differs.")
        return
    differs = {row.measure for row in rows}
    if same := [name for name in measures or () if name not in differs]:
        say(f"The same in every run: {', '.join(same)}.")

    names = [name for name in _COLUMNS if name != "second" or len(comparison.groups) > 2]
    draw_rows([{name: getattr(row, name) for name in names} for row in rows])
    if not any(row.p is not None for row in rows):
        say("With fewer than three pairs, or runs in a group, there is no interval and no p.")
        return
    say(
        f"low and high are the ends of the {100 * comparison.confidence:g} % interval of the "
        f"difference ({comparison.intervals}), p is of the same test, and p holm is corrected for "
        "all of them; -o FILE.csv has more columns, -o FILE.tex is LaTeX."
    )
