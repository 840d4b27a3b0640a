"""``prism chart``: a chart as a table, as text for other tools, and what is probably wrong with it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from prism.drawing._diagram import showable
from prism.errors import DefinitionError, InputError, PrismError
from prism.files import reading
from prism.statechart import Finding, Statechart, social_media_chart, social_media_guards
from prism.statechart._definition import in_definition_order
from prism.statechart.formats._diagram import label_of
from prism.statechart.states import state_text

BUILT_IN: dict[str, Callable[[], Statechart[Any]]] = {"social_media": social_media_chart}
MOST_CHARACTERS = 10_000_000

charts: typer.Typer = typer.Typer(
    help="Look at a chart, write it for other tools, and check it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

ChartArgument = Annotated[
    str,
    typer.Argument(
        metavar="CHART",
        help=f"Name of a chart that comes with prism ({', '.join(BUILT_IN)}), a .json file in prism's own form, or "
        "package.module:attribute, a chart or a function that gives one.",
        show_default=False,
    ),
]


class ChartFormat(StrEnum):
    """What a chart can be written as."""

    MERMAID = "mermaid"
    DOT = "dot"
    SCXML = "scxml"
    JSON = "json"
    SVG = "svg"


@charts.command()
def show(chart: ChartArgument) -> None:
    """Show states and transitions as tables.

    [bold]Example[/bold]

    prism chart show social_media
    """
    found = chart_from(chart)
    console = Console()
    console.print(
        _plain(f"{found.name}: {len(found.states)} states, {len(found.transitions)} transitions")
    )
    console.print(_states_table(found))
    console.print(_transitions_table(found) if found.transitions else "No transitions.")


@charts.command()
def export(
    chart: ChartArgument,
    as_format: Annotated[ChartFormat, typer.Option("--format", help="What to write it as.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File to write to, instead of standard output."
        ),
    ] = None,
) -> None:
    """Write a chart for Mermaid or Graphviz, as SCXML, as JSON that prism reads again, or as a picture.

    [bold]Examples[/bold]

    prism chart export social_media --format mermaid

    prism chart export mine.json --format svg -o mine.svg
    """
    text = format(chart_from(chart), as_format.value)
    if out is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return

    try:
        out.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8", newline="\n")
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot be written: {getattr(error, 'strerror', None) or error}", path=out
        ) from None


@charts.command()
def check(
    chart: ChartArgument,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as JSON instead of lines.")
    ] = False,
) -> None:
    """List what is probably wrong with a chart, a line each.

    Exit status 0 if nothing is, 1 if something is, 2 if the chart cannot be read.

    [bold]Example[/bold]

    prism chart check package.module:my_chart
    """
    found = chart_from(chart)
    findings = found.check()
    if as_json:
        listing = [_finding_data(finding) for finding in findings]
        typer.echo(json.dumps({"chart": found.name, "findings": listing}, indent=2))
    else:
        for finding in findings:
            typer.echo(f"{finding.kind}: {_plain(str(finding))}")

    if findings:
        raise typer.Exit(1)


def chart_from(text: str) -> Statechart[Any]:
    """Find the chart that a user means.

    Guards and actions of a file are known by name only, apart from those of prism's own charts:
    such a chart can be shown, written and checked, but not run.

    Args:
        text: Name of a chart that comes with prism, a ``.json`` file, or
            ``package.module:attribute``.

    Raises:
        InputError: If there is none, or it cannot be read.
    """
    if text in BUILT_IN:
        return BUILT_IN[text]()
    if text.endswith(".json"):
        return _from_file(Path(text))

    module, colon, attribute = text.partition(":")
    if colon and all(part.isidentifier() for part in (*module.split("."), *attribute.split("."))):
        return _from_module(module, attribute)

    raise InputError(
        f"there is no chart {text!r}: give the name of one that comes with prism ({', '.join(BUILT_IN)}), "
        "a .json file, or package.module:attribute"
    )


def _from_file(path: Path) -> Statechart[Any]:
    with reading(path), path.open(encoding="utf-8-sig") as file:
        text = file.read(MOST_CHARACTERS + 1)

    if len(text) > MOST_CHARACTERS:
        raise InputError(
            f"is longer than {MOST_CHARACTERS:,} characters: no chart needs that", path=path
        )

    try:
        return Statechart.from_json(
            text, guards=_Functions("guard", social_media_guards()), actions=_Functions("action")
        )
    except InputError as error:
        raise InputError(error.problem, path=path, line=error.line, field=error.field) from None
    except DefinitionError as error:
        raise InputError(str(error), path=path) from None


class _Functions(dict[str, Callable[[Any, Any], object]]):
    """Functions by name; for a name that nobody knows a stand-in that has the name and nothing else."""

    def __init__(
        self, kind: str, known: dict[str, Callable[[Any, Any], object]] | None = None
    ) -> None:
        super().__init__(known or {})
        self._kind = kind

    def __missing__(self, name: str) -> Callable[[Any, Any], object]:
        return self.setdefault(name, _Named(self._kind, name))


class _Named:
    """A guard or action that is known by name only."""

    def __init__(self, kind: str, name: str) -> None:
        self._kind = kind
        self.__name__ = name

    def __call__(self, agent: Any, context: Any) -> object:  # noqa: ARG002
        raise DefinitionError(
            f"the {self._kind} {self.__name__!r} is known by name only: load the chart in Python, with "
            f"Statechart.from_json(text, {self._kind}s={{{self.__name__!r}: function}})"
        )


def _from_module(module: str, attribute: str) -> Statechart[Any]:
    """Import a chart as ``python -m`` would, from the current folder or an installed package."""
    if (folder := os.getcwd()) not in sys.path:  # noqa: PTH109
        sys.path.insert(0, folder)

    where = f"{module}:{attribute}"
    try:
        found: Any = import_module(module)
    except ImportError as error:
        missing = (
            isinstance(error, ModuleNotFoundError)
            and error.name
            and f"{module}.".startswith(f"{error.name}.")
        )
        problem = (
            f"there is no module {error.name!r}"
            if missing
            else f"importing {module} failed: {error}"
        )
        raise InputError(f"{where}: {problem}") from None
    except Exception as error:
        raise InputError(
            f"{where}: importing {module} failed: {type(error).__name__}: {error}"
        ) from error

    for name in attribute.split("."):
        if not hasattr(found, name):
            raise InputError(f"{where}: {getattr(found, '__name__', found)!r} has no {name!r}")
        found = getattr(found, name)

    return _called(where, found)


def _called(where: str, found: Any) -> Statechart[Any]:
    if callable(found) and not isinstance(found, Statechart):
        try:
            found = found()
        except PrismError as error:
            raise InputError(f"{where}: {error}") from error
        except Exception as error:
            raise InputError(
                f"{where}: calling it failed: {type(error).__name__}: {error}"
            ) from error

    if not isinstance(found, Statechart):
        raise InputError(
            f"{where} is {type(found).__name__}, not a chart: name a Statechart, or a function giving one"
        )

    return found


def _states_table(chart: Statechart[Any]) -> Table:
    table = _table("state", "", "time-out after")
    for state in in_definition_order(chart.states):
        notes = ["initial"] * (state == chart.initial) + ["decision"] * (
            state in chart.decision_states
        )
        limit = chart.timeouts.get(state)
        table.add_row(
            _plain(state_text(state)), ", ".join(notes), "" if limit is None else f"{limit} ticks"
        )

    return table


def _transitions_table(chart: Statechart[Any]) -> Table:
    table = _table("source", "trigger [guard] / action", "target")
    previous = None
    for state in in_definition_order(chart.states):
        for item in chart.transitions:
            if item.source == state:
                source = "" if state == previous else state_text(state)
                table.add_row(*map(_plain, (source, label_of(item), state_text(item.target))))
                previous = state

    return table


def _table(*headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(Text(heading), overflow="fold")

    return table


def _plain(text: str) -> Text:
    """Show text as it is: no markup, no line breaks, nothing that a terminal would obey."""
    return Text(
        "".join(character if character.isprintable() else " " for character in showable(text))
    )


def _finding_data(finding: Finding) -> dict[str, Any]:
    return {"kind": finding.kind, "state": state_text(finding.state), "message": finding.message}
