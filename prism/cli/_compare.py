"""``prism compare``: what differs between groups of runs, and how certain that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from prism.cli._options import FigureKind, OutFile, TableFile
from prism.cli._output import missing_runs_first
from prism.cli._report import Figures, check_figures, check_page, save_figures, write_page
from prism.cli._screen import counted, note, say
from prism.cli._table_output import MOST_ROWS, TableFormat, choose_format, interval_text, write
from prism.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from prism.report import FigureFormat
    from prism.science import Comparison

_SHOWN = (
    *("measure", "setting", "second", "mean_first", "mean_second", "difference", "interval"),
    *("p", "p_holm", "effect", "seeds"),
)
"""Columns to show."""

_ABOUT = ("measure", "setting", "second")
"""Columns that say what a row is about."""

_LONGEST_LABEL = 10
"""Characters of a group's label that can be a heading."""


def compare(
    groups: Annotated[list[str], typer.Argument(metavar="GROUP", show_default=False)],
    by: Annotated[str | None, typer.Option(metavar="FACTOR", show_default=False)] = None,
    within: Annotated[list[str] | None, typer.Option(metavar="FACTOR", show_default=False)] = None,
    from_round: Annotated[int, typer.Option(min=1)] = 1,
    to_round: Annotated[int | None, typer.Option(min=1, show_default=False)] = None,
    compared_as: Annotated[
        Literal["pairs", "groups"] | None, typer.Option("--as", show_default=False)
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", metavar="NAME", show_default=False)
    ] = None,
    confidence: float = 0.95,
    precision: Annotated[float | None, typer.Option(metavar="WIDTH", show_default=False)] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", show_default=False)] = None,
    figures: Figures = None,
    figure_format: FigureKind = "svg",
    paper: Annotated[Path | None, typer.Option(metavar="DIR", show_default=False)] = None,
    as_format: TableFile = None,
    out: OutFile = None,
) -> None:
    """Compare groups of runs: difference, interval, test and effect size for every measure.

    Every group is compared with the first. In a batch, each arm is compared with the first arm at
    each setting of the other parameters. The printed table leaves out what is the same in every
    run; the other formats have all rows and columns.

    Options:
        groups: For each group, a run, a folder that holds runs, or a pattern in quotes. A single
            folder is split into groups: a batch by its arms, any other folder by its subfolders.
        by: Factor of a batch whose levels are compared: arm (the default), or a parameter that the
            plan varies.
        within: Factor of a batch at each of whose levels to compare, averaging over the other
            factors. Use 'none' to average over all; repeat the option for several. By default,
            compare at every setting.
        from_round: First round to include.
        to_round: Last round to include. By default, all runs must have the same rounds.
        compared_as: Compare pairs of runs with the same seed, or groups as a whole. By default,
            pairs where the seeds allow it.
        measure: Compare only this measure. Repeat it for several.
        confidence: Confidence level of the intervals.
        precision: Add the number of seeds for which the interval of each difference would be about
            plus or minus this wide.
        page: Also write the comparison as a page.
        paper: Also write what a paper needs: figures as PDF, the table as LaTeX and CSV, and a
            methods paragraph.

    [bold]Examples[/bold]

    prism compare runs/plain runs/warned

    prism compare runs/plain runs/warned --from-round 5 --page compared.html

    prism compare runs/batch --within friends

    prism compare runs/batch --by friends

    prism compare runs/batch --measure gini --precision 0.01

    prism compare "runs/a-*" "runs/b-*" --measure likes --measure gini

    prism compare batch -o compared.csv --figures figures --figure-format pdf

    prism compare runs/batch --paper paper
    """
    chosen = choose_format(as_format, out)
    if precision is not None and not precision > 0:
        raise InputError(f"--precision must be above 0, got {precision:g}")
    _check_page(page, groups)
    check_figures(figures)

    # imported here, since it takes two seconds and needs an extra
    with missing_runs_first(groups):
        from prism.science import compare as compare_groups
    from prism.cli._bar import Bar
    from prism.cli._running import naming_options

    with naming_options(), Bar("runs", text="measuring") as bar:
        found = compare_groups(
            *groups,
            by=by,
            within=[name for name in within if name != "none"] if within else None,
            paired=None if compared_as is None else compared_as == "pairs",
            measures=measure,
            from_round=from_round,
            to_round=to_round,
            confidence=confidence,
            progress=bar.show,
        )

    for told in found.notes:
        note(told)

    _write_table(found, precision, chosen, out)
    _write_beside(found, page, figures, figure_format, paper, err=out is None)


def _write_beside(
    found: Comparison,
    page: Path | None,
    figures: Path | None,
    figure_format: FigureFormat,
    paper: Path | None,
    *,
    err: bool,
) -> None:
    """Write the files that are requested in addition to the table."""
    if page is not None:
        write_page(found.html().encode(), page, err=err)
    if page is not None or figures is not None:
        save_figures(found, figures, figure_format, err=err)
    if paper is not None:
        say(f"{paper}: {len(found.save_paper(paper))} files", err=err)


def _check_page(page: Path | None, groups: Sequence[str]) -> None:
    if page is None:
        return
    if str(page) == "-":
        raise InputError("--page needs a file: the table goes to standard output", path="-")

    check_page(page, [Path(group) for group in groups])


def _write_table(
    found: Comparison, precision: float | None, chosen: TableFormat, out: Path | None
) -> None:
    from prism.science._comparison import IS_SHOWN

    table = found.table()
    if precision is not None:
        table = table.with_columns(found.seeds_for(precision)["seeds"])
    reads = [run.path for group in found.groups for run in group.runs]
    if chosen is not TableFormat.TABLE:
        write(table, chosen, out, table.columns, reads=reads)
        return

    differing = table.filter(IS_SHOWN)
    has_settings = bool((differing["setting"] != "").any())
    # one measure at many settings is named once
    is_one = has_settings and out is None and differing["measure"].n_unique() == 1
    if out is None:
        say(f"{differing['measure'][0]}: {_heading(found)}" if is_one else _heading(found))

    left_out = {"setting": not has_settings, "measure": is_one}
    left_out |= {name: not differing[name].count() for name in ("low", "p", "p_holm", "effect")}
    drawn = _drawn(found, differing, {**left_out, "interval": left_out["low"]})
    hint = _hint(found, len(table) - len(differing), precision)
    write(drawn, chosen, out, drawn.columns, hint, reads=reads, repeated=_ABOUT)


def _drawn(found: Comparison, rows: pl.DataFrame, left: Mapping[str, bool]) -> pl.DataFrame:
    """Return the columns to show, without empty ones."""
    several = len(found.groups) > 2
    left_out = {"second": not several, **left}
    shown = [name for name in _SHOWN if name in rows.columns or name == "interval"]
    shown = [name for name in shown if not left_out.get(name)]
    ordered = _by_measure(rows) if several else rows

    return ordered.with_columns(interval=_interval()).select(shown).rename(_short(found, several))


def _by_measure(rows: pl.DataFrame) -> pl.DataFrame:
    """Put all groups of a measure below each other."""
    import polars as pl

    places = {name: place for place, name in enumerate(dict.fromkeys(rows["measure"]))}
    return rows.sort(pl.col("measure").replace_strict(places), maintain_order=True)


def _interval() -> pl.Expr:
    """Return an interval as one column, with as many digits as the difference beside it."""
    import polars as pl

    return pl.struct("low", "high", "difference").map_elements(
        lambda row: "" if row["low"] is None else interval_text(**row), return_dtype=pl.String
    )


def _heading(found: Comparison) -> str:
    # each row has its share of the runs, which are told as pairs
    has_settings = any(row.setting for row in found.differences)
    first, *others = (
        group.label if has_settings else f"{group.label} ({counted(len(group.runs), 'run')})"
        for group in found.groups
    )
    which = "" if _short(found, len(others) > 1) else " (the first)"
    return f"{', '.join(others)} against {first}{which}, {found.pairing}"


def _short(found: Comparison, several: bool) -> dict[str, str]:
    """Return headings of the means: the labels of the groups, if they are short and no columns."""
    labels = [group.label for group in found.groups]
    is_long = max(map(len, labels)) > _LONGEST_LABEL
    if several or is_long or not set(labels).isdisjoint(_SHOWN):
        return {}

    return dict(zip(("mean_first", "mean_second"), labels, strict=True))


def _hint(found: Comparison, same: int, precision: float | None) -> str:
    tested = sum(row.test is not None for row in found.differences)
    ways = dict.fromkeys(row.test for row in found.differences if row.test)
    counted = "1 test" if tested == 1 else f"{tested} tests"
    drawn = counted if tested <= MOST_ROWS else f"{MOST_ROWS} of {tested} tests"
    tests = f"{drawn} ({', '.join(ways)}), p holm is corrected for all of them"
    text = tests if tested else "no tests"
    if any(row.low is not None for row in found.differences):
        text += f"; the interval is that of the difference ({100 * found.confidence:g}%, "
        text += f"{found.intervals})"
    if precision is not None:
        text += f"; an interval of ±{precision:g} takes about so many seeds"
    rows = "1 row" if same == 1 else f"{same} rows"

    return f"{text}; --format csv has more columns" + f", and {rows} without a test" * (same > 0)
