"""``prism workflow``: checking and drawing agents of one's own; how one is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._chart import ChartFormat, write_chart
from prism.cli._options import AsJson, OutFile, command_group
from prism.cli._screen import note, print_facts, print_findings, print_place, print_table, shortened

if TYPE_CHECKING:
    # the extra may be missing; the room is imported where a command needs it
    from prism.cli._bar import Bar
    from prism.files._source import Problem
    from prism.programs import Turn
    from prism.programs.yaml import WorkflowResults

_MOST_VALUE = 60

workflows = command_group("Check and draw an agent of your own. To run it, use prism run.")

File = Annotated[Path, typer.Argument(metavar="FILE", help="The workflow, a YAML file.")]


@workflows.command()
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

    [bold]Examples[/bold]

    prism workflow check agent.yaml

    prism workflow check story/config.json
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


@workflows.command()
def diagram(
    file: File,
    as_format: ChartFormat = "mermaid",
    out: OutFile = None,
) -> None:
    """Draw the states of a workflow and the transitions that it allows.

    [bold]Examples[/bold]

    prism workflow diagram agent.yaml

    prism workflow diagram agent.yaml --format pdf -o agent.pdf
    """
    from prism.programs.yaml import Workflow

    workflow = Workflow.load(file)
    write_chart(workflow.chart, as_format, out, workflow.files)


def progress(run: Any, bar: Callable[..., Bar | None]) -> Bar | None:
    """Return a bar that shows the turns of a run, and the last step."""
    return bar("turn", run.rounds, len(run.finished), run.world.agent.state.value, _last_step)


def _last_step(turn: Turn) -> str:
    """Return the state, and the step that led to it."""
    last = f" after {turn.steps[-1].step}" if turn.steps else ""
    return f"{turn.state}{last}"


def has_failed(results: WorkflowResults) -> bool:
    """Print a note and return True if a step whose policy is to stop has failed."""
    if results.failure is not None:
        note(f"the workflow stopped in turn {results.turns}: {results.failure}")

    return results.failure is not None


def print_results(results: WorkflowResults, folder: Path | None) -> None:
    """Print the results of a run of turns."""
    facts: dict[str, str | int] = {
        "turns": results.turns,
        "state": f"{results.state} (final)" if results.has_finished else results.state,
        "transitions": results.transitions,
        **{f"steps {outcome}": count for outcome, count in results.steps.items()},
        **{f"actions {outcome}": count for outcome, count in results.actions.items()},
        "tokens": results.tokens,
    }
    print_facts(results.agent_id, facts)
    if results.refused:
        rows = ((why, f"{times:,}") for why, times in results.refused.items())
        print_table(rows, "refused", "times", numbers=("times",))
    if results.context:
        print_table(map(_variable, results.context.items()), "variable", "value")
    print_place("Every step", folder)


def _variable(entry: tuple[str, Any]) -> tuple[str, str]:
    """Return the name of a variable and the beginning of its value, as a row."""
    name, value = entry
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return name, shortened(text, _MOST_VALUE)
