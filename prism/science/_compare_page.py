"""A comparison as a page, and its figures: effects on one scale, and the rounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

import altair as alt

from prism.files.records import printable_path
from prism.report import Page, Section
from prism.science._differences import Difference, Differences

_MOST_DRAWN = 24
"""Most measures whose rounds are drawn."""

_LEVEL = 0.05
_ROW = 20
_HEADINGS = {
    "title": "measure",
    "second": "group",
    "mean_first": "mean of first",
    "mean_second": "mean of second",
    "p_holm": "p (Holm)",
}
_COLUMNS = ("mean_first", "mean_second", "difference", "low", "high", "p", "p_holm", "effect")

_EFFECTS = (
    "Each difference from the first group on one scale: in standard deviations of the runs, which "
    "is the square root of the mean of both groups' variances (Cohen's d_av, Cumming 2012), with "
    "its {:g}% interval (Student's for pairs, Welch's for groups). A filled point is significant "
    "at .05 after Holm's correction (1979) for the number of tests, {}."
)
_DIFFERENCES = (
    "The second mean minus the first, with its interval and p-value: Student's (1908) for pairs, "
    "Welch's (1947) for groups; none for fewer than three."
)
_ROUNDS = "The mean of each group's runs in each round, with Student's {:g}% interval."


def page_of(comparison: Differences) -> Page:
    """Return the page of a comparison."""
    sections = [*_effects(comparison), _differences(comparison), *_rounds(comparison)]
    rounds = f"rounds {comparison.from_round} to {comparison.to_round}"
    return Page(
        comparison.title,
        sections,
        subtitle=f"{len(comparison.runs)} runs, {rounds}, compared {comparison.pairing}",
        notes=[printable_path(note) for note in comparison.notes],
        sources=[f"{len(runs)} runs of {label}" for label, runs in comparison.groups.items()],
    )


def _effects(comparison: Differences) -> Iterator[Section]:
    rows = [row for row in comparison.differences if row.effect is not None]
    if rows:
        tests = sum(row.p is not None for row in comparison.differences)
        about = _EFFECTS.format(100 * comparison.confidence, tests)
        yield Section("Effects", about, {"effects": _draw_effects(rows, comparison)})


def _differences(comparison: Differences) -> Section:
    # counts that are 0 in every run say nothing
    differing = [row for row in comparison.differences if row.mean_first or row.mean_second]
    columns = [
        name
        for name in ("title", "setting", "second", *_COLUMNS, "remark")
        if any(getattr(row, name) not in (None, "") for row in differing)
    ]
    rows = [{name: getattr(row, name) for name in columns} for row in differing]
    most = max(1, len(rows))
    return Section("Differences", _DIFFERENCES, rows=rows, most=most, headings=_HEADINGS)


def _rounds(comparison: Differences) -> Iterator[Section]:
    """Draw the rounds of the measures that differ most; the world's own come first."""
    ranked = sorted(
        (row for row in comparison.differences if row.difference and not row.remark),
        key=lambda row: (row.kind != "own", row.p if row.p is not None else 1),
    )
    titles = {row.measure: row.title for row in ranked}
    table = comparison.round_rows(titles)
    settings = dict.fromkeys(row["setting"] for row in table)
    figures: dict[str, alt.TopLevelMixin] = {}
    for name, setting in product(titles, settings):
        rows = [row for row in table if (row["measure"], row["setting"]) == (name, setting)]
        if len({row["round"] for row in rows}) > 1 and len(figures) < _MOST_DRAWN:
            title = ", ".join(filter(None, (titles[name], setting)))
            figures[f"rounds-{len(figures) + 1}"] = _draw_rounds(rows, title, comparison)
    if figures:
        yield Section("Rounds", _ROUNDS.format(100 * comparison.confidence), figures)


def _draw_effects(rows: Iterable[Difference], comparison: Differences) -> alt.TopLevelMixin:
    """Draw every difference with its interval, in standard deviations."""
    points = [
        {
            "measure": ", ".join(filter(None, (row.title, row.setting))),
            "group": row.second,
            "effect": row.effect,
            "low": _in_deviations(row, row.low),
            "high": _in_deviations(row, row.high),
            "difference": row.difference,
            "p": row.p_holm,
            "significant": row.p_holm is not None and row.p_holm < _LEVEL,
        }
        for row in rows
    ]
    control, *others = comparison.groups
    names = [*dict.fromkeys(str(point["measure"]) for point in points)]
    numbers = ("effect", "low", "high", "difference", "p")
    base = alt.Chart(alt.InlineData(values=points)).encode(
        y=alt.Y("measure:N", sort=names, title=None, axis=alt.Axis(labelLimit=200, grid=True)),
        yOffset=alt.YOffset("group:N", sort=others),
        color=alt.Color("group:N", scale=alt.Scale(domain=others)),
        tooltip=[
            *(alt.Tooltip("measure:N"), alt.Tooltip("group:N")),
            *(alt.Tooltip(f"{name}:Q", format=".3g") for name in numbers),
        ],
    )
    zero = alt.Chart(alt.InlineData(values=[{"zero": 0}])).mark_rule().encode(alt.X("zero:Q"))
    title = f"standard deviations from {control}"
    lines = base.mark_rule(strokeWidth=2).encode(alt.X("low:Q", title=title), alt.X2("high:Q"))
    marks = base.mark_point(size=50, opacity=1).encode(alt.X("effect:Q", title=title))
    chart: alt.TopLevelMixin = alt.layer(
        zero,
        lines,
        marks.mark_point(filled=False).transform_filter(~alt.datum.significant),
        marks.mark_point(filled=True).transform_filter(alt.datum.significant),
    ).properties(height=_ROW * len(names) * len(others))
    return chart


def _in_deviations(row: Difference, end: float | None) -> float | None:
    """Return an end of an interval in the unit of the effect."""
    if end is None or row.effect is None or not row.difference:
        return None
    return end * row.effect / row.difference


def _draw_rounds(
    rows: list[dict[str, Any]], title: str, comparison: Differences
) -> alt.TopLevelMixin:
    """Draw the mean of each group in each round, with its band."""
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X(
            "round:Q",
            # a tick between two rounds would have the label of one
            axis=alt.Axis(format=",d", grid=False, labelExpr="datum.value % 1 ? '' : datum.label"),
            scale=alt.Scale(zero=False, nice=False),
        ),
        color=alt.Color("group:N", scale=alt.Scale(domain=[*comparison.groups])),
    )
    shade = base.transform_filter("isValid(datum.low)").mark_area(opacity=0.22)
    tooltip = [alt.Tooltip(f"{name}:Q", format=",.4~g") for name in ("mean", "low", "high", "runs")]
    line = base.mark_line(strokeWidth=2).encode(
        alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False)),
        tooltip=[alt.Tooltip("group:N"), alt.Tooltip("round:Q"), *tooltip],
    )
    chart: alt.TopLevelMixin = alt.layer(
        shade.encode(alt.Y("low:Q"), alt.Y2("high:Q")), line
    ).properties(
        title=alt.TitleParams(f"Mean of {title} in each round", anchor="start"), height=180
    )
    return chart
