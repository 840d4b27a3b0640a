"""The cycles of a thinking agent: its sizes against the limits, its actions and its thoughts."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import BLUE, GREY, HEIGHT, INK, PageFigures, tips
from prism.report._sections.kinds import Kind, has_cycles

_MOST_POINTS = 400
_MOST_THOUGHTS = 30
_MOST_PAGINGS = 50


def _sizes(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    if not facts.is_of_thinking or facts.thinking.is_empty():
        return None

    about = "Tokens of the prompt and of working memory over the cycles, limits and pagings"
    figure = figures.add_chart(f"sizes-{name}", _curves(facts.thinking, facts.pagings), about)
    if facts.pagings.is_empty():
        return figure

    shown = facts.pagings.drop("agent_id")
    headings = {"tokens_before": "tokens before", "tokens_after": "tokens after"}
    return figure + html_table(f"pagings-{name}", shown, headings, most=_MOST_PAGINGS)


def _curves(cycles: pl.DataFrame, pagings: pl.DataFrame) -> alt.LayerChart:
    """Draw the sizes; for many cycles, the maximum of several together."""
    width = cycles.height // _MOST_POINTS + 1
    binned = (
        cycles.with_columns(cycle=pl.col("cycle") // width * width)
        .group_by("cycle", maintain_order=True)
        .agg(pl.col("prompt_tokens", "memory_tokens", "soft_limit", "hard_limit").max())
    )
    kinds = {"prompt_tokens": "prompt", "memory_tokens": "working memory"}
    long = binned.rename(kinds).unpivot(
        list(kinds.values()), index="cycle", variable_name="what", value_name="tokens"
    )
    colour = alt.Color(
        "what:N",
        title=None,
        scale=alt.Scale(domain=list(kinds.values()), range=[BLUE, GREY]),
        legend=None,
    )
    x = alt.X("cycle:Q", title="cycle", axis=alt.Axis(format=",d", tickMinStep=1))
    y = alt.Y("tokens:Q", title="tokens", scale=alt.Scale(zero=True))
    lines = (
        alt.Chart(long.drop_nulls("tokens"))
        .mark_line(point=cycles.height <= _MOST_POINTS // 4, strokeWidth=2)
        .encode(x, y, colour, tooltip=tips("cycle:Q", "what:N", ("tokens:Q", ",")))
    )
    layers: list[alt.Chart] = [lines, *_limits(binned)]
    if not pagings.is_empty():
        marks = pagings.select("cycle", "why", "tokens_before", "tokens_after")
        layers.append(
            alt.Chart(marks)
            .mark_point(shape="triangle-down", filled=True, size=60, color=INK, opacity=1)
            .encode(
                x,
                alt.Y("tokens_after:Q"),
                tooltip=tips("cycle:Q", "why:N", "tokens_before:Q", "tokens_after:Q"),
            )
        )
    chart: alt.LayerChart = alt.LayerChart(layer=layers).properties(height=HEIGHT)

    return chart


def _limits(cycles: pl.DataFrame) -> Iterator[alt.Chart]:
    """Yield a line and its name for each limit."""
    for limit, title in (("soft_limit", "paging limit"), ("hard_limit", "hard limit")):
        bound = cycles[limit].max()
        if bound is None:
            continue

        rule = pl.DataFrame({"tokens": [bound], "limit": [title]})
        base = alt.Chart(rule).encode(alt.Y("tokens:Q"))
        yield base.mark_rule(color=INK, strokeDash=[5, 4])
        text = base.mark_text(align="left", baseline="bottom", color=INK, dx=3)
        yield text.encode(text="limit:N", x=alt.value(0))


def _actions(facts: RunFacts, name: str, _figures: PageFigures) -> Markup | None:
    if facts.actions.is_empty():
        return None

    return html_table(f"actions-{name}", facts.actions)


def _thoughts(facts: RunFacts, name: str, _figures: PageFigures) -> Markup | None:
    if not facts.is_of_thinking:
        return None

    table = facts.thinking.filter(pl.col("thought").is_not_null()).select(
        "cycle", text=pl.col("thought")
    )
    if table.is_empty():
        return None

    return html_table(f"thoughts-{name}", table.tail(_MOST_THOUGHTS), {"text": "thought"})


SIZES = Kind(
    "sizes",
    "Prompt and memory",
    "The tokens of every prompt and of working memory, by the agent's own count, with its limits."
    " Triangles mark pagings, at the size of the prompt afterwards.",
    "No agent had a cycle of thinking.",
    _sizes,
    concerns=has_cycles,
)
ACTIONS = Kind(
    "actions",
    "Actions",
    "The actions that the model asked for, and their results: done, missing (there is no such "
    "memory), or refused.",
    "No action was asked for.",
    _actions,
    concerns=has_cycles,
)
THOUGHTS = Kind(
    "thoughts",
    "Thoughts",
    "The last thoughts of the log, oldest first.",
    "Nothing was thought.",
    _thoughts,
    concerns=has_cycles,
)
