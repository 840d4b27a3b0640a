"""A comparison as a page, and its figures: effects on one scale, and the rounds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.files._records import shown_path
from prism.report._document import Document
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import AXIS, HEIGHT, PAPER, PageFigures, colour_of
from prism.report._sections.kinds import Section
from prism.science._batch import read_batch
from prism.science._comparison import IS_SHOWN, SAME, Comparison
from prism.science._paper import seeds_of

_MOST_SEEDS = 24
_HEADINGS = {
    "mean_first": "mean of first",
    "mean_second": "mean of second",
    "p_holm": "p (Holm)",
}

_EFFECTS = (
    "Every difference from the first group on one scale: in standard deviations of the runs, which "
    "is the square root of the mean of both groups' variances (Cohen's d_av, Cumming 2012), with "
    "its {:g}% interval (Student's for pairs, Welch's for groups). A filled point is "
    "significant at .05 after Holm's correction (1979) for all {} tests."
)
_DIFFERENCES = (
    "Second mean minus first, with its interval: Student's (1908) for pairs, Welch's (1947) for "
    "groups. Pairs are tested by Wilcoxon's signed-rank test (1945), with the matched-pairs "
    "rank-biserial correlation as effect (Kerby 2014); groups by Mann and Whitney's U (1947), with "
    "Cliff's delta (1993): both are -1 if all runs of the second group have less, and 1 if all "
    "have more."
)
_ROUNDS = (
    "Mean of each group's runs in each round, with Student's {:g}% interval. Each setting at which "
    "the groups are compared has its own figure, and a dashed line marks the round of a treatment "
    "in the batch's plan."
)


def document_of(comparison: Comparison) -> Document:
    """Return the page of a comparison."""
    figures = PageFigures(())
    labels = [group.label for group in comparison.groups]
    sections = [
        Section("groups", "What is compared", "", together=_groups(comparison)),
        *_effects(comparison, figures),
        _differences(comparison),
        *_rounds(comparison, figures),
    ]

    return Document(
        title=f"{' and '.join(labels[1:])} against {labels[0]}",
        subtitle=_subtitle(comparison),
        sections=sections,
        figures=figures,
        notes=[shown_path(note) for note in comparison.notes],
        sources=[
            f"{len(group.runs)} run{'' if len(group.runs) == 1 else 's'} of {group.label}"
            for group in comparison.groups
        ],
    )


def _subtitle(comparison: Comparison) -> str:
    rounds = f"rounds {comparison.from_round} to {comparison.to_round}"
    runs = sum(len(group.runs) for group in comparison.groups)
    return f"{runs} runs, {rounds}, compared {comparison.pairing}"


def _groups(comparison: Comparison) -> Markup:
    rows = [
        {
            "group": group.label,
            "runs": len(group.runs),
            "seeds": _shortened(group.seeds),
            "rounds": max(run.rounds for run in group.runs),
        }
        for group in comparison.groups
    ]
    return html_table("groups", pl.DataFrame(rows))


def _shortened(seeds: Sequence[int]) -> str:
    """Return each seed once, as a range if they are consecutive."""
    named = seeds_of(seeds).partition(" ")[2].split(", ")
    text = ", ".join(named[:_MOST_SEEDS])
    return text if len(named) <= _MOST_SEEDS else f"{text}, ... ({len(named)})"


def _effects(comparison: Comparison, figures: PageFigures) -> list[Section]:
    chart = draw_effects(comparison, figures)
    if chart is None:
        return []

    tests = sum(row.p is not None for row in comparison.differences)
    about = "The difference of every measure from the first group, with its interval"
    place = figures.add_chart("effects", chart, about)
    explanation = _EFFECTS.format(100 * comparison.confidence, tests)

    return [Section("effects", "Effects", explanation, together=place)]


def _differences(comparison: Comparison) -> Section:
    rows = comparison.table()
    told = rows.filter(IS_SHOWN)
    # counts that are 0 in every run belong to other worlds, such as likes
    is_nothing = (pl.col("remark") == SAME) & (pl.col("mean_first") == 0)
    untold = rows.filter(~IS_SHOWN & ~is_nothing.fill_null(value=False))
    rest = Markup("").join(
        Markup('<p class="soft">{}: {}.</p>').format(
            remark[:1].upper() + remark[1:], ", ".join(dict.fromkeys(same["measure"]))
        )
        for (remark,), same in untold.group_by("remark", maintain_order=True)
    )
    table = _table(comparison, told, "low", "high", "standardised")
    made = html_table("differences", table, _HEADINGS) if told.height else Markup("")

    return Section("differences", "Differences", _DIFFERENCES, together=made + rest)


def _rounds(comparison: Comparison, figures: PageFigures) -> list[Section]:
    """Draw the rounds of the measures that differ most; the world's own come first."""
    ranked = (
        comparison.table()
        .filter(IS_SHOWN)
        .sort(pl.col("kind") != "own", "p", maintain_order=True)["measure"]
    )
    table = comparison.rounds(ranked)
    names = [name for name in ranked.unique(maintain_order=True) if name in table["measure"]]
    if comparison.to_round == comparison.from_round or not names:
        return []

    settings = table["setting"].unique(maintain_order=True) if "setting" in table.columns else [""]
    drawn = list(product(names, settings))[:_MOST_DRAWN]
    treated = _treated(comparison)
    places = []
    for number, (name, setting) in enumerate(drawn, start=1):
        at = {"setting": setting} if setting else {}
        rows = table.filter(measure=name, **at)
        chart = draw_rounds(rows, name, comparison, figures, setting, treated)
        about = ", ".join([f"The mean of {name} in each round, by group", *at.values()])
        places.append(figures.add_chart(f"rounds-{number}", chart, about))
    together = Markup('<div class="half">{}</div>').format(Markup("").join(places))

    return [
        Section(
            "rounds",
            "Over the rounds",
            _ROUNDS.format(100 * comparison.confidence),
            together=together,
        )
    ]


def _treated(comparison: Comparison) -> pl.DataFrame:
    """Return the treatments of a batch, and the rounds in which they come."""
    data = {} if comparison.folder is None else read_batch(comparison.folder).plan.data
    given = [text for part in (data, *data.get("arm", ())) for text in part.get("treatments", ())]
    parts = [text.partition("@") for text in dict.fromkeys(given)]
    found = [(name, int(number)) for name, _, number in parts if number.isdecimal()]
    shown = [each for each in found if comparison.from_round <= each[1] <= comparison.to_round]

    return pl.DataFrame(shown, schema={"treatment": pl.String(), "round": pl.Int64()}, orient="row")


def _table(comparison: Comparison, rows: pl.DataFrame, *more: str) -> pl.DataFrame:
    """Return some columns of the rows; groups, tests and remarks only where they differ."""
    names = ["measure", "mean_first", "mean_second", "difference", *more, "p", "p_holm", "effect"]
    if len(comparison.groups) > 2:
        names.insert(1, "second")
    if (rows["setting"] != "").any():
        names.insert(1, "setting")
    if rows["test"].n_unique() > 1:
        names.append("test")
    if (rows["remark"] != "").any():
        names.append("remark")

    # an empty column has no type, and is not set as numbers
    return pl.DataFrame(rows.select(names).to_dict(as_series=False))


_MOST_DRAWN = 24
"""Maximum number of measures whose rounds are drawn."""

_ROW = 17
_WIDEST = 8
_LEVEL = 0.05
_PLACES = (2, 4, 5, 6, 8, 7, 9, 3, 1, 0)

_TOOLTIP = [
    "measure",
    "group",
    *(alt.Tooltip(f"{name}:Q", format=".3g") for name in ("effect", "low", "high", "difference")),
    alt.Tooltip("p:Q", format=".2g", title="p (Holm)"),
]


def _colours_of(comparison: Comparison) -> dict[str, str]:
    """Return the colour of each group."""
    # after ten, the colours repeat in another shade
    places = [
        _PLACES[place % len(_PLACES)] + len(_PLACES) * (place // len(_PLACES))
        for place in range(len(comparison.groups))
    ]
    labels = [group.label for group in comparison.groups]
    return dict(zip(labels, map(colour_of, places), strict=True))


def _effects_of(comparison: Comparison) -> pl.DataFrame:
    """Return the differences that have a scale, with the columns that are drawn."""
    significant = (pl.col("p_holm") < _LEVEL).fill_null(value=False)
    told = pl.when(pl.col("setting") != "").then("setting")
    return (
        comparison.table()
        .drop_nulls("standardised")
        .select(
            pl.concat_str("measure", told, separator=", ", ignore_nulls=True),
            group="second",
            effect="standardised",
            low="standardised_low",
            high="standardised_high",
            difference="difference",
            p="p_holm",
            significant=significant,
        )
    )


def draw_effects(comparison: Comparison, figures: PageFigures) -> alt.TopLevelMixin | None:
    """Draw every difference with its interval, in standard deviations; None if there is none."""
    table = _effects_of(comparison)
    if table.is_empty():
        return None

    colours = _colours_of(comparison)
    names, seconds = (list(dict.fromkeys(table[name])) for name in ("measure", "group"))
    several = len(seconds) > 1
    widest = table.select(pl.max_horizontal(pl.col("effect", "low", "high").abs()).max()).item()
    is_wide = widest > _WIDEST
    scale = alt.Scale(type="symlog", constant=1) if is_wide else alt.Scale()
    of_group = figures.colour("group", {label: colours[label] for label in seconds}, legend=several)
    title = f"standard deviations from {comparison.groups[0].label}"
    title += " (logarithmic beyond 1)" if is_wide else ""
    x = alt.X("effect:Q", scale=scale, title=title)
    y = alt.Y("measure:N", sort=names, title=None, axis=alt.Axis(labelLimit=200, grid=True))
    shared: dict[str, Any] = {"y": y, "color": of_group, "tooltip": _TOOLTIP}
    if several:
        shared["yOffset"] = alt.YOffset("group:N", sort=seconds)

    base = alt.Chart(table)
    zero = alt.Chart(pl.DataFrame({"zero": [0.0]})).mark_rule(color=AXIS).encode(alt.X("zero:Q"))
    lines = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=scale, title=title), x2=alt.X2("high:Q"), **shared
    )
    rest = base.transform_filter(~alt.datum.significant)
    hollow = rest.mark_point(filled=False, size=46, fill=PAPER, opacity=1).encode(x=x, **shared)
    sure = base.transform_filter(alt.datum.significant)
    full = sure.mark_point(filled=True, size=60, opacity=1).encode(x=x, **shared)
    rows_each = 0.75 * len(seconds) if several else 1
    chart: alt.TopLevelMixin = alt.layer(zero, lines, hollow, full).properties(
        height=round(_ROW * len(names) * rows_each)
    )

    return chart


def draw_rounds(
    table: pl.DataFrame,
    measure: str,
    comparison: Comparison,
    figures: PageFigures,
    setting: str,
    treated: pl.DataFrame,
) -> alt.TopLevelMixin:
    """Draw the mean of each group in each round, with its band and lines at treatments.

    Args:
        table: The rows of `Comparison.rounds` for the measure.
        measure: The measure.
        comparison: The comparison.
        figures: The figures of the page.
        setting: The values of other parameters at which the groups are compared, or empty.
        treated: Each ``treatment`` and its ``round``.
    """
    base = alt.Chart(table)
    x = alt.X(
        "round:Q",
        axis=alt.Axis(format=",d", grid=False, tickMinStep=1),
        scale=alt.Scale(zero=False, nice=False),
    )
    of_group = figures.colour("group", _colours_of(comparison))
    ends = base.transform_filter("isValid(datum.low)")
    shade = ends.mark_area(opacity=0.22).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), of_group)
    line = base.mark_line(strokeWidth=2, invalid="break-paths-show-domains").encode(
        x,
        alt.Y("mean:Q", title=measure, scale=alt.Scale(zero=False)),
        of_group,
        tooltip=[
            "group",
            "round",
            *(alt.Tooltip(name, format=",.4~g") for name in ("mean", "low", "high")),
            "runs",
        ],
    )
    has_band = table["low"].is_not_null().any()
    band = f"band: {100 * comparison.confidence:g}% interval of the mean"
    title = alt.TitleParams(
        f"Mean of {measure} in each round" + (f", {setting}" if setting else ""),
        subtitle=band if has_band else alt.Undefined,
        anchor="start",
    )
    layers = [shade, line]
    if treated.height:
        rules = alt.Chart(treated).mark_rule(color=AXIS, strokeDash=[4, 3])
        layers.append(rules.encode(alt.X("round:Q"), tooltip=["treatment", "round"]))
    chart: alt.TopLevelMixin = alt.layer(*layers).properties(
        title=title, height=round(HEIGHT * 0.7)
    )

    return chart
