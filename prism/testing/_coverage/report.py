"""The report on coverage, as a table for people and as JSON for tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from prism.drawing import printable, showable
from prism.testing._coverage.recorder import ChartUse, Recorder, percent

SCHEMA_VERSION = 1
KINDS = ("states", "transitions", "guards")


def total_share(charts: Sequence[ChartUse]) -> Fraction:
    """Return how much of all charts was exercised: states, transitions and guard outcomes together.

    Returns:
        0 to 1, exactly; 0 if there are no charts.
    """
    shares = [share for chart in charts for share in chart.shares().values()]
    return Fraction(
        sum(share.covered for share in shares), sum(share.total for share in shares) or 1
    )


def total_percent(charts: Sequence[ChartUse]) -> float:
    """Return the `total_share` in percent, rounded down to a tenth."""
    return percent(*total_share(charts).as_integer_ratio())


def report_data(recorder: Recorder) -> dict[str, Any]:
    """Return the report as plain data, ready for JSON; ``docs/testing.md`` describes it."""
    used = recorder.used()
    return {
        "schema": SCHEMA_VERSION,
        "percent": total_percent(used),
        "charts": [_chart_data(chart) for chart in used],
        "unused": _unused(recorder),
    }


def report_lines(recorder: Recorder) -> Iterator[str]:
    """Return the report as lines: a table of the charts, then everything never exercised.

    Control characters in names and states are not shown.
    """
    for line in _lines(recorder):
        yield printable(showable(line))


def _lines(recorder: Recorder) -> Iterator[str]:
    used = recorder.used()
    rows = [("chart", *KINDS, "total"), *map(_row, used)]
    if len(used) > 1:
        rows.append(
            ("all", *(_share_of(used, kind) for kind in KINDS), f"{total_percent(used):g}%")
        )

    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if used:
        for row in rows:
            cells = zip(row[1:], widths[1:], strict=True)
            yield "  ".join(
                [row[0].ljust(widths[0]), *(text.rjust(width) for text, width in cells)]
            )
    else:
        yield "no chart was used"

    for chart in used:
        yield from _missing_lines(chart)

    if unused := _unused(recorder):
        yield f"built but never used: {', '.join(unused)}"


def _unused(recorder: Recorder) -> list[str]:
    return sorted({chart.name for chart in recorder.charts.values() if not chart.is_used()})


def _chart_data(chart: ChartUse) -> dict[str, Any]:
    shares = {kind: share.to_dict() for kind, share in chart.shares().items()}
    return {"name": chart.name, "percent": total_percent([chart]), **shares}


def _row(chart: ChartUse) -> tuple[str, ...]:
    return chart.name, *(_share_of([chart], kind) for kind in KINDS), f"{total_percent([chart]):g}%"


def _share_of(charts: Sequence[ChartUse], kind: str) -> str:
    shares = [chart.shares()[kind] for chart in charts]
    covered, total = sum(share.covered for share in shares), sum(share.total for share in shares)
    return f"{covered}/{total} {percent(covered, total):4.0f}%"


def _missing_lines(chart: ChartUse) -> Iterator[str]:
    shares = chart.shares()
    missing = [(kind, text) for kind in KINDS for text in shares[kind].missing]
    if missing:
        yield f"never exercised in {chart.name}:"

    for kind, text in missing:
        yield f"  {kind.removesuffix('s'):<10}  {text}"
