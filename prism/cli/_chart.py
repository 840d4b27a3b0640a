"""``prism chart``: a chart as tables, as text for other tools, and its probable mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from prism.cli._chart_argument import ChartArgument, chart_from
from prism.cli._chart_format import ChartFile, ChartFormat, write_chart
from prism.cli._screen import Screen, plain, plain_table, pour, say
from prism.drawing import showable
from prism.statechart import Finding, Statechart
from prism.statechart.formats._export import label_of
from prism.statechart.states import state_text

charts: typer.Typer = typer.Typer(
    help="Show a chart, write it for other tools, and check it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@charts.command()
def show(chart: ChartArgument) -> None:
    """Show states and transitions as tables.

    [bold]Example[/bold]

    prism chart show social_media
    """
    found = chart_from(chart)
    title = f"{found.name}: {len(found.states)} states, {len(found.transitions)} transitions"
    screen = Screen()
    screen.print(_shown(title))
    screen.print(_states_table(found))
    screen.print(_transitions_table(found) if found.transitions else "No transitions.")
    if found.needs:
        screen.print(_shown(f"Guards and actions need of an agent: {', '.join(found.needs)}"))


@charts.command()
def export(chart: ChartArgument, as_format: ChartFormat, out: ChartFile = None) -> None:
    """Write a chart for Mermaid or Graphviz, as SCXML, as prism's JSON, or as a picture.

    [bold]Examples[/bold]

    prism chart export social_media --format mermaid

    prism chart export mine.json --format svg -o mine.svg

    prism chart export social_media --format pdf -o social.pdf
    """
    write_chart(chart_from(chart), as_format, out, [Path(chart)])


@charts.command()
def check(
    chart: ChartArgument,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as JSON instead of lines.")
    ] = False,
) -> None:
    """List the probable mistakes of a chart, one a line.

    Exit status 0 if there are none, 1 if there are some, 2 if the chart cannot be read.

    [bold]Example[/bold]

    prism chart check package.module:my_chart
    """
    found = chart_from(chart)
    findings = found.check()
    if as_json:
        listing = [_finding_data(finding) for finding in findings]
        pour(json.dumps({"chart": found.name, "findings": listing}, indent=2) + "\n")
    else:
        for finding in findings:
            say(showable(f"{finding.kind}: {finding}"))

    if findings:
        raise typer.Exit(1)


def _states_table(chart: Statechart[Any]) -> Table:
    table = _table("state", "", "time-out after")
    for state in chart.definition.states:
        notes = []
        if state == chart.initial:
            notes.append("initial")
        if state in chart.decision_states:
            notes.append("decision")
        if state in chart.final_states:
            notes.append("final")

        limit = chart.timeouts.get(state)
        ticks = "" if limit is None else f"{limit} ticks"
        table.add_row(_shown(state_text(state)), ", ".join(notes), ticks)

    return table


def _transitions_table(chart: Statechart[Any]) -> Table:
    table = _table("source", "trigger [guard] / action", "target")
    previous = None
    for state in chart.definition.states:
        for item in chart.transitions:
            if item.source == state:
                # A source is named once, above all of its transitions.
                source = "" if state == previous else state_text(state)
                table.add_row(*map(_shown, (source, label_of(item), state_text(item.target))))
                previous = state

    return table


def _table(*headings: str) -> Table:
    table = plain_table()
    for heading in headings:
        table.add_column(Text(heading), overflow="fold")

    return table


def _shown(text: str) -> Text:
    return plain(showable(text))


def _finding_data(finding: Finding) -> dict[str, Any]:
    return {"kind": finding.kind, "state": state_text(finding.state), "message": finding.message}
