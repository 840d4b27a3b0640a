"""``prism chart fits``: what a class or an agent lacks of what a chart needs."""

from __future__ import annotations

import json
from inspect import isfunction
from typing import Annotated, Any

import typer

from prism.cli._chart_argument import ChartArgument, chart_from, imported_attribute, result_of
from prism.cli._screen import note, pour, say
from prism.drawing import printable, showable


def fits(
    chart: ChartArgument,
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT",
            help="package.module:attribute, a class, an agent, or a function that returns one.",
            show_default=False,
        ),
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the names as JSON instead of lines.")
    ] = False,
) -> None:
    """List what a class or an agent lacks of what a chart needs, one name a line.

    Every chart needs a state; its guards and actions need what the chart declares. Of a class only
    its code is known, of an agent what it really has.

    Exit status 0 if nothing is missing, 1 if something is, 2 if the input is wrong.

    [bold]Example[/bold]

    prism chart fits social_media package.module:MyAgent
    """
    found = chart_from(chart)
    lacks = found.fits(_subject(agent))
    if as_json:
        pour(json.dumps({"chart": found.name, "agent": agent, "missing": lacks}, indent=2) + "\n")
    else:
        for name in lacks:
            say(f"missing: {name}")

    if not found.needs:
        name = printable(showable(found.name))
        note(f"chart {name!r} declares no needs, so only 'state' counts")
    if lacks:
        raise typer.Exit(1)


def _subject(text: str) -> Any:
    found = imported_attribute(text)
    return result_of(text, found) if isfunction(found) else found
