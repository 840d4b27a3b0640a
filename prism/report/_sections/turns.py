"""The turns of an agent with a workflow: its states, steps, refusals and calls."""

from __future__ import annotations

import altair as alt
import polars as pl
from markupsafe import Markup

from prism.report._facts.run_facts import RunFacts
from prism.report._figures.html_table import html_table
from prism.report._figures.page_figures import PageFigures, tips
from prism.report._sections.kinds import Kind, has_steps

_MOST_BARS = 400
_ROW = 26
_MOST_REFUSALS = 50


def _turns(facts: RunFacts, name: str, figures: PageFigures) -> Markup | None:
    if not facts.is_of_turns or facts.states.is_empty():
        return None

    in_state = facts.states.filter((pl.col("agents") > 0) & (pl.col("round") > 0))
    about = "The state in which each turn ended"
    figure = figures.add_chart(f"turns-{name}", _timeline(in_state, figures), about)

    return figure + html_table(f"turns-{name}", _by_state(facts, in_state))


def _by_state(facts: RunFacts, in_state: pl.DataFrame) -> pl.DataFrame:
    """Return the number of turns that ended in each state, and how often it was entered."""
    ended = in_state.group_by("state").agg(turns=pl.len().cast(pl.Int64))
    made = facts.transitions.group_by(state="to_state").agg(entered=pl.col("count").sum())
    table = ended.join(made, on="state", how="full", coalesce=True)
    counts = pl.col("turns", "entered").fill_null(0)
    share = pl.col("turns") / pl.col("turns").sum()

    return facts.in_order(table.with_columns(counts).with_columns(share=share), "state")


def _timeline(in_state: pl.DataFrame, figures: PageFigures) -> alt.Chart:
    """Draw a bar for the state of every turn, or of several turns together if there are many."""
    width = in_state.select(pl.col("round").max()).item() // _MOST_BARS + 1
    turn = (pl.col("round") - 1) // width * width + 1
    binned = in_state.group_by("state", turn=turn).agg(share=pl.len() / width)
    bars = binned.with_columns(until=pl.col("turn") + width).sort("turn", "state")
    colours = figures.state_colours(bars["state"])
    scale = alt.Scale(domain=[1, bars.select(pl.col("until").max()).item()], nice=False)
    chart: alt.Chart = (
        alt.Chart(bars)
        .mark_rect(opacity=1)
        .encode(
            alt.X("turn:Q", title="turn", scale=scale, axis=alt.Axis(format=",d", tickMinStep=1)),
            alt.X2("until:Q"),
            alt.Y("state:N", sort=list(colours), title=None, axis=alt.Axis(labelLimit=170)),
            figures.colour("state", colours, legend=False),
            fillOpacity=alt.FillOpacity("share:Q", scale=alt.Scale(domain=[0, 1]), legend=None),
            tooltip=tips("state", "turn", ("share:Q", ".0%")),
        )
        .properties(height=_ROW * len(colours))
    )

    return chart


def _refused(facts: RunFacts, name: str, _figures: PageFigures) -> Markup | None:
    if facts.refused.is_empty():
        return None

    headings = {"state": "from", "target": "to"}
    return html_table(f"refused-{name}", facts.refused, headings, most=_MOST_REFUSALS)


def _calls(facts: RunFacts, name: str, _figures: PageFigures) -> Markup | None:
    # texts that do not belong to steps have other keys
    table = facts.calls.join(facts.steps.select("step"), on="step", how="semi")
    unused = [column for column in ("asked_again", "failed") if not table[column].sum()]
    if not table["actions"].sum():
        unused += ["actions", "succeeded"]

    return None if table.is_empty() else html_table(f"calls-{name}", table.drop(unused))


TURNS = Kind(
    "turns",
    "States",
    "The state at the end of each turn, and how often each state was entered. A turn can pass "
    "through several states.",
    "No turn was taken.",
    _turns,
    concerns=has_steps,
)
REFUSED = Kind(
    "refused",
    "Refused transitions",
    "Transitions that a step named but did not get, with the condition that refused them. The "
    "step still counts as successful, and the state stays the same.",
    "None was refused.",
    _refused,
    concerns=has_steps,
)
CALLS = Kind(
    "calls",
    "Calls",
    "The calls of each step to a model. Requests include retries. Calls whose reply was unclear "
    "are asked again. Actions are what replies asked the application to do.",
    "No step asked a model.",
    _calls,
    concerns=has_steps,
)
