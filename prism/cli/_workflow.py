"""``prism workflow``: running, checking and drawing agents that are written in YAML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._chart import ChartFormat, write_chart
from prism.cli._options import (
    MODEL_PANEL,
    Keeping,
    OutFile,
    keeping_panel,
    listed,
    model_panel,
    writer_options,
)
from prism.cli._screen import Screen, note, plain, plain_table, pour, say
from prism.errors import InputError

if TYPE_CHECKING:
    # the extra may be missing; the room is imported where a command needs it
    from prism.cli._running import RunProgress, RunScreen
    from prism.workflow import Turn, WorkflowResults, WorkflowRun

DEFAULT_TURNS = 10
DEFAULT_AGENT_ID = "agent"
DEFAULT_CHECKPOINT_SECONDS = 1.0

# a single agent asks one question at a time
_MODEL = model_panel(without=("concurrency", "hedge"), decides=False)

_COMMAND = "prism workflow run"
_MOST_VALUE = 60

workflows: typer.Typer = typer.Typer(
    help="Run an agent that is written in YAML, check it, and draw it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The workflow, YAML.")]


@workflows.command()
def run(
    context: typer.Context,
    *,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="The workflow, YAML; left out with --resume."),
    ] = None,
    turns: Annotated[int, typer.Option(min=1, help="Number of turns.")] = DEFAULT_TURNS,
    agent_id: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the agent, the variable {agent_id}.")
    ] = DEFAULT_AGENT_ID,
    context_file: Annotated[
        Path | None,
        typer.Option(
            "--context",
            metavar="FILE",
            help="Variables to begin with: a mapping in a file of YAML or JSON.",
        ),
    ] = None,
    variables: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="One variable to begin with; the value is JSON, or else text. Repeat it for "
            "several.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the model's sampling.")] = 0,
    model: Annotated[Mapping[str, Any], _MODEL],
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            rich_help_panel=MODEL_PANEL,
            help="Take the texts from an earlier run (its folder or log) instead of a model; "
            "with the same workflow, variables and turns this writes the same log.",
        ),
    ] = None,
    keeping: Annotated[
        Keeping,
        keeping_panel(
            "Folder for the run: events.jsonl (every step, text and transition, one JSON object a "
            "line) and run.json. Without it nothing is written. A folder that holds a run is "
            "refused.",
            unit="turn",
            seconds=DEFAULT_CHECKPOINT_SECONDS,
        ),
    ],
) -> None:
    """Carry out a workflow, a turn after the other.

    Exit status 1 if a step failed whose policy is to stop.

    [bold]Examples[/bold]

    prism workflow run agent.yaml --turns 20 --model llama3.2 --out runs/agent

    prism workflow run --resume runs/agent

    prism workflow run agent.yaml --model llama3.2 --set balance=100 --context start.yaml

    prism workflow run agent.yaml --turns 20 --replay runs/agent --out runs/again
    """
    from prism.cli._running import carry_out, print_outcome
    from prism.workflow import WorkflowRun

    def make() -> WorkflowRun:
        if file is None:
            raise InputError("name the workflow to run, a file, or --resume a run")

        return WorkflowRun(
            file=file,
            turns=turns,
            agent_id=agent_id,
            context=context_file,
            variables=_variables(variables or []),
            seed=seed,
            reasoner=writer_options(model, replay),
        )

    outcome = carry_out(
        *(context, _COMMAND, keeping, make, lambda _: WorkflowRun, _screen),
        hosts=model.get("host", ()),
    )
    if outcome is None:
        return

    print_outcome(outcome, _print_results, as_json=keeping.as_json)
    if outcome.results.failure is not None:
        turn = outcome.results.turns
        note(f"the workflow stopped in turn {turn}: {outcome.results.failure}")
        raise typer.Exit(1)


@workflows.command()
def check(
    file: File,
    provided: Annotated[
        list[str] | None,
        typer.Option(
            "--provided",
            metavar="NAMES",
            help="Variables that the host application provides, with commas between them.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the problems as JSON instead of lines.")
    ] = False,
) -> None:
    """List what is wrong with a workflow, or probably not meant, one a line.

    Exit status 0 if there is nothing, 1 if there is something, 2 if the file cannot be read.

    [bold]Examples[/bold]

    prism workflow check agent.yaml

    prism workflow check agent.yaml --provided balance,artifacts
    """
    from prism.workflow import Workflow

    problems = Workflow.check(file, listed(provided))
    if as_json:
        listing = {"workflow": str(file), "problems": [asdict(each) for each in problems]}
        pour(json.dumps(listing, indent=2) + "\n")
    else:
        for problem in problems:
            say(str(problem))

    if problems:
        raise typer.Exit(1)


@workflows.command()
def diagram(file: File, as_format: ChartFormat = "mermaid", out: OutFile = None) -> None:
    """Draw the states of a workflow and the transitions that it allows.

    [bold]Examples[/bold]

    prism workflow diagram agent.yaml

    prism workflow diagram agent.yaml --format pdf -o agent.pdf
    """
    from prism.workflow import Workflow

    workflow = Workflow.load(file)
    write_chart(workflow.chart, as_format, out, workflow.files)


def _screen(folder: Path | None) -> AbstractContextManager[RunScreen]:
    from prism.cli._running import bar, run_screen

    def progress(run: Any) -> RunProgress:
        state = run.agent.state.value
        return bar("turn", run.rounds, len(run.finished), state, _last_step)

    return run_screen(folder, _COMMAND, progress)


def _last_step(turn: Turn) -> str:
    """Return the state, and the step that led to it."""
    last = f" after {turn.steps[-1].step}" if turn.steps else ""
    return f"{turn.state}{last}"


def _variables(given: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in map(_variable, given):
        if name in found:
            raise InputError(f"--set has {name!r} twice: leave one of them out")
        found[name] = value

    return found


def _variable(given: str) -> tuple[str, Any]:
    """Read ``name=value``."""
    name, sign, value = given.partition("=")
    if not sign or not name.isidentifier():
        raise InputError(
            f"--set must be NAME=VALUE, its name of letters, digits and underscores, got {given!r}"
        )

    from prism.files import parse_json

    try:
        return name, parse_json(value)
    except InputError:
        return name, value


def _print_results(results: WorkflowResults, folder: Path | None) -> None:
    console = Screen()
    table = plain_table()
    table.add_column("what")
    table.add_column(plain(results.agent_id), overflow="fold")
    table.add_row("turns", f"{results.turns:,}")
    state = f"{results.state} (final)" if results.has_finished else results.state
    table.add_row("state", plain(state))
    table.add_row("transitions", f"{results.transitions:,}")
    for outcome, count in results.steps.items():
        table.add_row(f"steps {outcome}", f"{count:,}")
    table.add_row("tokens", f"{results.tokens:,}")
    console.print(table)

    variables = plain_table()
    variables.add_column("variable")
    variables.add_column("value", overflow="fold")
    for name, value in results.context.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        variables.add_row(plain(name), plain(_shortened(text)))
    if results.context:
        console.print(variables)

    if folder is not None:
        text = f"Every step is in {folder / 'events.jsonl'}, this in {folder / 'run.json'}."
        console.print(plain(text), soft_wrap=True)


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_VALUE else f"{text[:_MOST_VALUE]}..."
