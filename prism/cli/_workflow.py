"""``prism workflow``: checking and drawing agents of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._chart import ChartFormat, write_chart
from prism.cli._options import AsJson, OutFile, command_group
from prism.cli._screen import note, print_findings

if TYPE_CHECKING:
    from prism.files._source import Problem

app = command_group("Check and draw an agent of your own. To run it, use prism run.")


@app.command()
def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A workflow (.yaml), or the configuration of a thinking agent (.json).",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """List certain and probable mistakes in an agent's document, one on each line.

    The exit status is 0 if there are none (parts that prism ignores do not count), 1 if there are
    some, and 2 if the file cannot be read.

    **Examples**

    * `prism workflow check agent.yaml`

    * `prism workflow check story/config.json`
    """
    problems = _problems_of(file)
    listing = {"file": str(file), "problems": list(map(asdict, problems))}
    notes = [str(problem) for problem in problems if problem.severity == "note"]
    found = [str(problem) for problem in problems if problem.severity != "note"]
    for text in [] if as_json else notes:
        note(text)
    print_findings(found, listing, as_json=as_json)


def _problems_of(file: Path) -> Sequence[Problem]:
    """Return what is wrong with the document of an agent of either kind."""
    if file.suffix.lower() != ".json":
        from prism.programs.yaml import Workflow

        return Workflow.check(file)

    from prism.programs.thinking import Config

    return Config.check(file)


@app.command()
def diagram(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The workflow, a YAML file.")],
    as_format: ChartFormat = "mermaid",
    out: OutFile = None,
) -> None:
    """Draw the states of a workflow and the transitions that it allows.

    **Examples**

    * `prism workflow diagram agent.yaml`

    * `prism workflow diagram agent.yaml --format pdf -o agent.pdf`
    """
    from prism.programs.yaml import Workflow

    workflow = Workflow.load(file)
    write_chart(workflow.chart, as_format, out, workflow.files)
