"""``prism workflow``: running, checking and drawing agents that are written in YAML."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from prism import runs
from prism.cli._chart_format import ChartFile, ChartFormat, write_chart
from prism.cli._options import (
    AsJson,
    Cache,
    Deadline,
    Hosts,
    MaxCalls,
    MaxTokens,
    ModelName,
    Models,
    Patience,
    RecordPrompts,
    Resume,
    ServerKind,
    Temperature,
    Thinking,
    Timeout,
    keeping_option,
    model_option,
    writer_options,
)
from prism.cli._running import (
    RunScreen,
    is_given,
    own_folder,
    refuse_other_runs,
    refuse_what_is_settled,
    run_screen,
)
from prism.cli._screen import Screen, note, plain, plain_table, pour, say, shown
from prism.errors import InputError
from prism.files import parse_json
from prism.runs import Outcome, Runnable

if TYPE_CHECKING:
    # the extra may be missing; the room is imported where a command needs it
    from prism.workflow import Problem, Turn, WorkflowResults

DEFAULT_TURNS = 10
DEFAULT_AGENT_ID = "agent"
DEFAULT_CHECKPOINT_SECONDS = 1.0

_COMMAND = "prism workflow run"
_MOST_VALUE = 60
_WITH_RESUME = ("resume", "checkpoint_every", "as_json", "host")

workflows: typer.Typer = typer.Typer(
    help="Run an agent that is written in YAML, check it, and draw it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

File = Annotated[Path, typer.Argument(metavar="FILE", help="The workflow, YAML.")]


@workflows.command()
def run(
    context: typer.Context,
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
    reasoner: ServerKind = None,
    model: ModelName = None,
    host: Hosts = None,
    think: Thinking = None,
    temperature: Temperature = None,
    models: Models = None,
    timeout: Timeout = None,
    patience: Patience = None,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    deadline: Deadline = None,
    cache: Cache = None,
    replay: Annotated[
        Path | None,
        model_option(
            metavar="RUN",
            help="Take the texts from an earlier run (its folder or log) instead of a model; "
            "with the same workflow, variables and turns this writes the same log.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        keeping_option(
            metavar="DIR",
            help="Folder for the run: events.jsonl (every step, text and transition, one JSON "
            "object a line) and run.json. "
            "Without it nothing is written. A folder that holds a run is refused.",
        ),
    ] = None,
    record_prompts: RecordPrompts = False,
    resume: Resume = None,
    checkpoint_every: Annotated[
        float,
        keeping_option(
            min=0,
            metavar="SECONDS",
            help="A turn that ends so long after the last checkpoint gets one; 0 for every turn.",
        ),
    ] = DEFAULT_CHECKPOINT_SECONDS,
    as_json: AsJson = False,
) -> None:
    """Carry out a workflow, a turn after the other.

    Exit status 1 if a step failed whose policy is to stop.

    [bold]Examples[/bold]

    prism workflow run agent.yaml --turns 20 --model llama3.2 --out runs/agent

    prism workflow run --resume runs/agent

    prism workflow run agent.yaml --model llama3.2 --set balance=100 --context start.yaml

    prism workflow run agent.yaml --turns 20 --replay runs/agent --out runs/again
    """
    from prism.workflow import WorkflowRun

    if resume is not None:
        refuse_what_is_settled(context, _WITH_RESUME)
        _resume(own_folder("--resume", resume), host or [], checkpoint_every, as_json=as_json)
        return

    if file is None:
        raise InputError("name the workflow to run, a file, or --resume a run")
    if out is None and is_given(context, "checkpoint_every"):
        raise InputError("--checkpoint-every needs --out, the folder to keep checkpoints in")

    asked = {
        "server": reasoner,
        "host": tuple(host) if host else None,
        "think": think,
        "temperature": temperature,
        "timeout": timeout,
        "patience": patience,
        "max_calls": max_calls,
        "max_tokens": max_tokens,
        "deadline": deadline,
        "cache": cache,
        "record_prompts": record_prompts or None,
    }
    folder = None if out is None else own_folder("--out", out)
    with _screen(folder) as screen:
        options = WorkflowRun(
            file=file,
            turns=turns,
            agent_id=agent_id,
            context=context_file,
            variables=_variables(variables or []),
            seed=seed,
            reasoner=writer_options(model, replay, asked, models),
        )
        outcome = runs.begin(
            options,
            folder,
            on_round=screen.round_ended,
            checkpoint_every=checkpoint_every,
            observer=screen,
        )

    _finish(outcome, as_json=as_json)


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

    names = [name.strip() for listed in provided or () for name in listed.split(",")]
    problems = Workflow.check(file, names)
    if as_json:
        listing = {"workflow": str(file), "problems": [_problem_data(item) for item in problems]}
        pour(json.dumps(listing, indent=2) + "\n")
    else:
        for problem in problems:
            say(str(problem))

    if problems:
        raise typer.Exit(1)


@workflows.command()
def diagram(file: File, as_format: ChartFormat = "mermaid", out: ChartFile = None) -> None:
    """Draw the states of a workflow and the transitions that it allows.

    [bold]Examples[/bold]

    prism workflow diagram agent.yaml

    prism workflow diagram agent.yaml --format pdf -o agent.pdf
    """
    from prism.workflow import Workflow

    workflow = Workflow.load(file)
    write_chart(workflow.chart, as_format, out, workflow.files)


class TurnProgress(Progress):
    """A progress bar with the agent's state, drawn on standard error if that is a terminal.

    Args:
        run: The run of turns.
    """

    def __init__(self, run: Any) -> None:
        console = Screen(err=True)
        super().__init__(
            TextColumn("turn"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        state = shown(run.agent.state.value)
        self._bar = self.add_task(state, total=run.rounds, completed=len(run.finished))

    def round_ended(self, turn: Turn) -> None:
        """Move the bar on by one turn, and show the state and the step that led to it."""
        last = f" after {turn.steps[-1].step}" if turn.steps else ""
        self.update(self._bar, advance=1, description=shown(f"{turn.state}{last}"))


def _resume(folder: Path, hosts: list[str], checkpoint_every: float, *, as_json: bool) -> None:
    from prism.workflow import WorkflowRun

    refuse_other_runs(folder, _COMMAND)

    with _screen(folder) as screen:
        outcome = runs.resume(
            folder,
            WorkflowRun,
            hosts=hosts,
            on_round=screen.round_ended,
            checkpoint_every=checkpoint_every,
            observer=screen,
        )

    if outcome is None:
        note(f"{folder} is complete: there is nothing to resume")
    else:
        _finish(outcome, as_json=as_json)


def _screen(folder: Path | None) -> AbstractContextManager[RunScreen]:
    def progress(run: Runnable[Any]) -> TurnProgress:
        return TurnProgress(run)

    return run_screen(folder, _COMMAND, progress)


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

    try:
        return name, parse_json(value)
    except InputError:
        return name, value


def _finish(outcome: Outcome[WorkflowResults], *, as_json: bool) -> None:
    if as_json:
        pour(json.dumps(outcome.summary, indent=2) + "\n")
    else:
        _print_results(outcome.results, outcome.folder)

    if outcome.results.failure is not None:
        turn = outcome.results.turns
        note(f"the workflow stopped in turn {turn}: {outcome.results.failure}")
        raise typer.Exit(1)


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


def _problem_data(problem: Problem) -> dict[str, Any]:
    return {
        "kind": problem.kind,
        "severity": problem.severity,
        "path": problem.path,
        "line": problem.line,
        "column": problem.column,
        "message": problem.message,
    }
