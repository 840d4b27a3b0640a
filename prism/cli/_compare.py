"""``prism compare``: what differs between groups of runs, and how certain that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism.cli._options import AsJson, OutFile, missing_runs_first, naming_options
from prism.cli._report import exit_if_failed, require_page, write_page
from prism.cli._screen import note, print_json, print_table, say, write_bytes
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.science import Comparison


_SHOWN = (*("measure", "setting", "second", "difference", "low", "high", "p", "p_holm", "effect"),)


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
    within: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FACTOR",
            help="Factor of a batch at each of whose levels to compare, averaging over the others; "
            "'none' averages over all. By default, at every setting.",
        ),
    ] = None,
    from_round: Annotated[int, typer.Option(min=1, help="First round to include.")] = 1,
    to_round: Annotated[int | None, typer.Option(min=1, help="Last round to include.")] = None,
    compared_as: Annotated[
        Literal["pairs", "groups"] | None,
        typer.Option(
            "--as", help="Pairs of runs with one seed (the default if there are), or not."
        ),
    ] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option("--measure", metavar="NAME", help="Only this measure. Repeat it for several."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
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
    of the other parameters. `-o` writes all columns, as CSV or Parquet by the name of the file.

    **Examples**

    * `prism compare runs/plain runs/warned --from-round 5 --page compared.html`

    * `prism compare runs/batch --within friends --measure gini`

    * `prism compare "runs/a-*" "runs/b-*" -o compared.csv --paper paper`
    """
    if page is not None:
        require_page(page)
    with missing_runs_first(groups):
        from prism.science import compare as compare_groups
    from prism.cli._progress import bar

    drawn, task = bar("runs")
    with naming_options(), drawn:
        found = compare_groups(
            *groups,
            by=by,
            within=[name for name in within if name != "none"] if within else None,
            paired=None if compared_as is None else compared_as == "pairs",
            measures=measures,
            from_round=from_round,
            to_round=to_round,
            confidence=confidence,
            progress=lambda done, total: drawn.update(task, completed=done, total=total),
        )
    for each in found.notes:
        note(each)

    reads = [run.path for group in found.groups for run in group.runs]
    if as_json:
        print_json(found.table().to_dicts())
    elif out is not None:
        _write(found, out, reads)
    else:
        _print(found)
    if page is not None:
        write_page(found.html().encode(), page, reads)
        exit_if_failed(found)
    if paper is not None:
        say(f"{paper}: {len(found.save_paper(paper))} files", err=True)


def _write(found: Comparison, out: Path, reads: list[Path]) -> None:
    from io import BytesIO

    content = BytesIO()
    writers: dict[str, Any] = {"": "write_csv", ".csv": "write_csv", ".parquet": "write_parquet"}
    if out.suffix not in writers or (not out.suffix and str(out) != "-"):
        raise InputError("must end with .csv or .parquet", path=out)
    getattr(found.table(), writers[out.suffix])(content)
    write_bytes(content.getvalue(), None if str(out) == "-" else out, reads)


def _print(found: Comparison) -> None:
    """Print the differences, without what is the same in every run."""
    rows = [row for row in found.differences if row.difference or row.low is not None]
    first, *others = (group.label for group in found.groups)
    say(f"{', '.join(others)} against {first}, {found.pairing}")
    names = [
        name
        for name in _SHOWN
        if any(getattr(row, name) not in (None, "") for row in rows)
        and (name != "second" or len(others) > 1)
    ]
    print_table(
        ([getattr(row, name) for name in names] for row in rows),
        *(name.replace("_", " ") for name in names),
    )
    tests = ", ".join(dict.fromkeys(row.test for row in rows if row.test)) or "no test"
    say(
        f"{tests}; low and high are the ends of the {100 * found.confidence:g} % interval of the "
        "difference; p holm is corrected for all tests; -o FILE.csv has more columns."
    )
