"""``prism workflow``, ``think`` and ``memory``: agents of one's own, checked, drawn and read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._chart import ChartFormat, write_chart
from prism.cli._options import AsJson, OutFile, command_group
from prism.cli._screen import note, print_facts, print_findings, print_json, say
from prism.cli._tables import draw_rows
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.files.source import Problem
    from prism.programs.thinking import Memory

workflow = command_group("Check and draw an agent of your own. To run it, use prism run.")
think = command_group("Create a thinking agent. To run it, use prism run.")
memory = command_group("View and search the memory of an agent, also while it is in use.")


@workflow.command()
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
    mistakes = [str(problem) for problem in problems if problem.severity != "note"]
    for text in [] if as_json else notes:
        note(text)
    print_findings(mistakes, listing, as_json=as_json)


def _problems_of(file: Path) -> Sequence[Problem]:
    """Return what is wrong with the document of an agent of either kind."""
    if file.suffix.lower() != ".json":
        from prism.programs.yaml import Workflow

        return Workflow.check(file)

    from prism.programs.thinking import Config

    return Config.check(file)


@workflow.command()
def diagram(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The workflow, a YAML file.")],
    as_format: ChartFormat = "mermaid",
    out: OutFile = None,
) -> None:
    """Draw the states of a workflow and the transitions that it allows.

    **Examples**

    * `prism workflow diagram agent.yaml`

    * `prism workflow diagram agent.yaml --format svg -o agent.svg`
    """
    from prism.programs.yaml import Workflow

    workflow = Workflow.load(file)
    write_chart(workflow.chart, as_format, out, workflow.files)


@think.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to write them.")] = Path(),
    goal: Annotated[str | None, typer.Option(metavar="TEXT", help="Goal of the agent.")] = None,
) -> None:
    """Write a first configuration and an empty memory, without overwriting anything.

    **Examples**

    * `prism think init`

    * `prism think init story --goal "Plan a story about a night train."`
    """
    from prism.programs.thinking import Config, Memory

    config, memory = folder / "config.json", folder / "memory.json"
    for path in (config, memory):
        if path.exists() or path.is_symlink():
            raise InputError("already exists and would be overwritten", path=path)

    text = Config(goal=goal).to_json()
    folder.mkdir(parents=True, exist_ok=True)
    with Memory.open(memory) as empty:
        empty.commit()
    with config.open("x", encoding="utf-8", newline="\n") as file:
        file.write(text)

    say(f"{config}: the configuration, with all keys and their defaults")
    say(f"{memory}: an empty memory")
    say(f"next: prism run {config} --memory {memory} --model NAME")


File = Annotated[Path, typer.Argument(metavar="MEMORY", help="The memory, a JSON file.")]


@memory.command()
def show(
    file: File,
    tag: Annotated[str | None, typer.Argument(metavar="TAG", help="Show only this memory.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the state, the working memory, the thoughts and the storage.

    The exit status is 1 if there is nothing under TAG.

    **Examples**

    * `prism memory show memory.json`

    * `prism memory show memory.json character_alice`
    """
    from prism.programs.thinking import Memory

    memory = Memory.read(file)
    entries = [*_entries(memory)]
    if tag is not None:
        name = tag.replace(" ", "_")
        entries = [each for each in entries if each["tag"] == name]
        for number, value in enumerate(memory.versions(name), 1):
            entries.append({"where": f"version {number}", "tag": tag, "value": value})

    facts = {
        "state": memory.state,
        "cycle": memory.cycle,
        "stored": len(memory.to_dict()["storage"]),
    }
    if as_json:
        print_json({**facts, "entries": entries})
    else:
        print_facts(str(file), facts)
    if entries or tag is not None:
        _print_entries(entries, f"the memory has nothing under {tag!r}", as_json=as_json)
    else:
        note("the memory is empty")


@memory.command()
def search(
    file: File,
    words: Annotated[list[str], typer.Argument(metavar="WORD...", help="What to search for.")],
    most: Annotated[int, typer.Option(min=1, help="Limit of matches to list.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Search the storage for words, best matches first.

    The exit status is 1 if nothing matches.

    **Example**

    * `prism memory search memory.json who is alice`
    """
    from prism.programs.thinking import Memory

    matches = Memory.read(file).search(" ".join(words), most)
    entries = [{"where": "storage", "tag": each.tag, "value": each.value} for each in matches]
    if as_json:
        print_json(entries)
    _print_entries(entries, "nothing in storage contains any of these words", as_json=as_json)


def _entries(memory: Memory) -> Iterator[dict[str, Any]]:
    """Yield what a memory holds, and where."""
    stored = memory.to_dict()["storage"]
    parts = {"working memory": memory.working, "thought": memory.thoughts, "storage": stored}
    for where, values in parts.items():
        for tag, value in values.items():
            yield {"where": where, "tag": tag, "value": value}


def _print_entries(entries: list[dict[str, Any]], none: str, *, as_json: bool) -> None:
    if not entries:
        note(none)
        raise typer.Exit(1)
    if not as_json:
        draw_rows(entries)
