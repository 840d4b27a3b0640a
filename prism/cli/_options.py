"""Options that several commands share, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from prism.errors import InputError

if TYPE_CHECKING:
    from prism.llm import Model

_OPTIONS = {
    **{"file": "FILE", "query": "QUERY", "world": "WORLD"},
    **dict.fromkeys(("parameters", "variables"), "--set"),
    **dict.fromkeys(("turns", "cycles"), "--rounds"),
    **dict.fromkeys(("reasoner", "hosts"), "--model"),
    "treatments": "--treat",
}
"""Arguments that have another name on the command line."""


AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON.")]
Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, or their logs.")
]
AllRuns = Annotated[
    bool,
    typer.Option(
        "--all-runs", help="Read all runs of a file as one, as those of a restarted service."
    ),
]
Agents = Annotated[
    str | None, typer.Option(metavar="N|FILE", help="Number of agents, or a file of them.")
]
Rounds = Annotated[int | None, typer.Option(min=1, help="Rounds; by default the world's.")]
Ticks = Annotated[int | None, typer.Option(min=1, help="Ticks in a round; by default the world's.")]
Seed = Annotated[int, typer.Option(help="Seed: the same seed gives the same run.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Set a parameter or variable. Repeatable."),
]
WriterText = Annotated[
    str | None, typer.Option(metavar="MODEL", help="Model that writes the texts, as for --model.")
]
PolicyFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Policy that decides; see prism calibrate.")
]
Treat = Annotated[
    list[str] | None,
    typer.Option(
        "--treat",
        metavar="NAME@ROUND",
        help="Apply a treatment as a round begins, or set a parameter: tiring=0.1@5. Repeatable.",
    ),
]
ModelText = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="Model that decides: ollama:llama3.2, ollama:llama3.2@gpu1,gpu2 for other hosts, or "
        "openai:qwen3@http://127.0.0.1:8000 for any server with OpenAI's API.",
    ),
]
ModelFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Settings of prism.Model in TOML.")
]
MaxCalls = Annotated[int | None, typer.Option(min=1, help="Limit of requests to the model.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Ask no model: estimate what it would cost.")
]
OutFolder = Annotated[Path | None, typer.Option(metavar="DIR", help="New folder to write to.")]
NewFolder = Annotated[Path, typer.Option("--out", metavar="DIR", help="New folder to write to.")]
OutFile = Annotated[
    Path | None, typer.Option("--out", "-o", metavar="FILE", help="File to write to.")
]
Charts = Annotated[
    list[str] | None,
    typer.Option(
        "--chart", metavar="CHART", help="Your own chart, as for prism chart. Repeatable."
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Runs at a time; by default one for each processor.")
]


class Group(TyperGroup):
    """A group of commands whose help is shown without loading what their arguments need."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option ``--help``, which is off unless it is given."""
        option: Any = super().get_help_option(ctx)
        # typer loads pydantic to convert None, which takes as long as all of `prism run --help`
        option.default = False
        return option


def command_group(text: str) -> typer.Typer:
    """Return a group of commands that, called alone, shows its help."""
    return typer.Typer(help=text, cls=Group, no_args_is_help=True, rich_markup_mode="markdown")


def named_values(pairs: Iterable[str] | None) -> dict[str, str]:
    """Return names and values of ``--set name=value``.

    Raises:
        InputError: If the form is different, or a name is repeated.
    """
    values: dict[str, str] = {}
    for text in pairs or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"--set must be NAME=VALUE, got {text!r}")
        if name in values:
            raise InputError(f"--set has {name!r} twice: {values[name]!r} and {value!r}")
        values[name] = value

    return values


def model_of(
    text: str | None, file: Path | None, option: str = "model", **settings: Any
) -> Model | None:
    """Return the model of ``--model`` and ``--model-file``, whose keys are those of `prism.Model`.

    Args:
        text: The model; None for that of the file.
        file: The file, in TOML.
        option: The option that has the text.
        settings: Settings that override the file; None is ignored.

    Raises:
        InputError: If it cannot be used, or there are settings without a model.
    """
    from prism.llm import Model

    settings = {name: value for name, value in settings.items() if value is not None}
    table = {} if file is None else read_settings(file)
    named = table.pop("model", None) if text is None else text
    if named is None and file is not None:
        raise InputError('names no model: add  model = "...", or --model', path=file)
    if named is None:
        for name in settings:
            raise InputError(f"{option_of(name)} needs --model")
        return None
    try:
        return Model.of(named, **{**table, **settings})
    except InputError as error:
        if error.field in table:
            raise InputError(error.problem, path=file, field=error.field) from None
        names_it = error.field in ("model", "hosts")
        raise InputError(error.problem, field=option if names_it else error.field) from None


def read_settings(file: Path) -> dict[str, Any]:
    """Return the settings of a model in a file."""
    from prism.files.source import Source
    from prism.llm.settings import from_plain

    return from_plain(Source.read(file, "toml").value)


def option_of(name: str) -> str:
    """Return the option of an argument as written on the command line."""
    return _OPTIONS.get(name, f"--{name.replace('_', '-')}")


def naming_options(error: InputError) -> InputError:
    """Return an error that names the option if its value was not read from a file."""
    if error.field is None or error.path is not None:
        return error
    # a problem begins with its verb, or is a sentence about something else
    colon = ":" if error.problem[:1].isupper() else ""
    return InputError(f"{option_of(error.field)}{colon} {error.problem}")
