"""A comparison as a page."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from markupsafe import Markup

from prism.files._names import shown_path
from prism.report._document import Document
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures
from prism.report._sections import Section
from prism.science import _compare_figures as draw
from prism.science._comparison import Comparison, Difference

_MOST_SEEDS = 24
_HEADINGS = {
    "mean_first": "mean of first",
    "mean_second": "mean of second",
    "p_holm": "p (Holm)",
}

_EFFECTS = (
    "Every difference from the first group on one scale: in standard deviations of the runs, which "
    "is the root of the mean of both groups' variances (Cohen's d_av, Cumming 2012), with its "
    "{:.0%} bootstrap interval (BCa, Efron 1987; Hesterberg 2015). A filled point is significant "
    "at .05 after Holm's correction (1979) for all {} tests."
)
_DIFFERENCES = (
    "Second mean minus first, with the bootstrap interval. Pairs are tested by Wilcoxon's "
    "signed-rank test (1945), with the matched-pairs rank-biserial correlation as effect (Kerby "
    "2014); groups by Mann and Whitney's U (1947), with Cliff's delta (1993): both are -1 if all "
    "runs of the second group have less, and 1 if all have more."
)
_ROUNDS = (
    "Mean of each group's runs in each round, with the {:.0%} percentile interval of its bootstrap "
    "distribution."
)
_DISTRIBUTIONS = (
    "The share of all values that are at least so large, all runs of a group together. The effect "
    "is the greatest distance of the two curves, Kolmogorov and Smirnov's D; its p-value comes "
    "from permuting whole runs, since what stands in one run is not independent. For that reason "
    "the interval of the difference of the means draws whole runs, too."
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
        *_distributions(comparison, figures),
    ]

    return Document(
        title=" against ".join([labels[0], " and ".join(labels[1:])]),
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
    is_paired = [row.paired for row in comparison.differences]
    how = "in pairs of the same seed" if all(is_paired) else "as groups"
    if any(is_paired) and not all(is_paired):
        how = "in pairs of the same seed where there are any"

    return f"{runs} runs, {rounds}, compared {how}"


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
    text = ", ".join(map(str, seeds[:_MOST_SEEDS]))
    return text if len(seeds) <= _MOST_SEEDS else f"{text}, ... ({len(seeds)})"


def _effects(comparison: Comparison, figures: PageFigures) -> list[Section]:
    chart = draw.effects(comparison, figures)
    if chart is None:
        return []

    tests = sum(row.p is not None for row in comparison.differences)
    about = "The difference of every measure from the first group, with its interval"
    place = figures.add_chart("effects", chart, about)
    explanation = _EFFECTS.format(comparison.confidence, tests)

    return [Section("effects", "Effects", explanation, together=place)]


def _differences(comparison: Comparison) -> Section:
    rows = [row for row in comparison.differences if row.kind != "distribution"]
    told = [row for row in rows if row.test is not None]
    table = _table(comparison, told, "low", "high", "standardised")
    untested: dict[str, list[str]] = {}
    for row in rows:
        if row.test is None:
            untested.setdefault(row.remark, []).append(row.measure)

    rest = Markup("").join(
        Markup('<p class="soft">{}: {}.</p>').format(
            remark[:1].upper() + remark[1:], ", ".join(dict.fromkeys(names))
        )
        for remark, names in untested.items()
    )
    made = html_table("differences", table, _HEADINGS) if told else Markup("")

    return Section("differences", "Differences", _DIFFERENCES, together=made + rest)


def _rounds(comparison: Comparison, figures: PageFigures) -> list[Section]:
    """Draw the rounds of the measures that differ most; the world's own come first."""
    ranked = sorted(
        (row for row in comparison.differences if row.test is not None),
        key=lambda row: (row.kind != "own", 1.0 if row.p is None else row.p),
    )
    table = comparison.rounds({row.measure for row in ranked})
    known = set(table["measure"])
    names = [name for name in dict.fromkeys(row.measure for row in ranked) if name in known]
    if comparison.to_round == comparison.from_round or not names:
        return []

    places = [
        figures.add_chart(
            f"rounds-{number}",
            draw.rounds(table.filter(measure=name), name, comparison, figures),
            f"The mean of {name} in each round, by group",
        )
        for number, name in enumerate(names[: draw.MOST_DRAWN], start=1)
    ]
    together = Markup('<div class="half">{}</div>').format(Markup("").join(places))

    return [
        Section(
            "rounds", "Over the rounds", _ROUNDS.format(comparison.confidence), together=together
        )
    ]


def _distributions(comparison: Comparison, figures: PageFigures) -> list[Section]:
    rows = [row for row in comparison.differences if row.kind == "distribution" and row.test]
    if not rows:
        return []

    places = [
        figures.add_chart(
            f"distribution-{number}",
            draw.distribution(name, comparison, figures),
            f"The share of {name} that is at least so large, by group",
        )
        for number, name in enumerate(dict.fromkeys(row.measure for row in rows), start=1)
    ]
    table = html_table("distributions", _table(comparison, rows, "low", "high"), _HEADINGS)
    together = Markup('<div class="half">{}</div>{}').format(Markup("").join(places), table)

    return [Section("distributions", "Distributions", _DISTRIBUTIONS, together=together)]


def _table(comparison: Comparison, rows: Sequence[Difference], *more: str) -> pl.DataFrame:
    """Return some columns of the rows; groups, tests and remarks only where they differ."""
    names = ["measure", "mean_first", "mean_second", "difference", *more, "effect", "p", "p_holm"]
    if len(comparison.groups) > 2:
        names.insert(1, "second")
    if len({row.test for row in rows}) > 1:
        names.append("test")
    if any(row.remark for row in rows):
        names.append("remark")

    columns = {name: [getattr(row, name) for row in rows] for name in names}

    return pl.DataFrame(columns, strict=False)
