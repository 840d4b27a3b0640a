"""Options that several commands share, and commands that are built from declared options."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, Signature, cleandoc, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

from prism.cli._table_output import TableFormat
from prism.errors import InputError

_OPTIONS = {
    "file": "FILE",
    "variables": "--set",
    "turns": "--rounds",
    "cycles": "--rounds",
    "server": "--reasoner",
    "hosts": "--host",
    "key": "--key-variable",
    "parameters": "--set",
    "treatments": "--treat",
    "writer_max_length": "--writer-length",
}
"""Parameters that have another name on the command line."""

MODEL: dict[str, Any] = {"rich_help_panel": "Asking a model"}
_WORLD: dict[str, Any] = {"rich_help_panel": "A world"}
_KEEPING: dict[str, Any] = {"rich_help_panel": "Keeping the run"}

AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of text.")]
Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN",
        help="Folders of runs, or their logs (.jsonl, also .gz). Several runs are shown "
        "side by side, or in one table with a column for the run.",
        show_default=False,
    ),
]
FigureKind = Annotated[
    Literal["svg", "png", "pdf"], typer.Option(help="Format of the saved figures.")
]
OutFile = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="File to write to, instead of standard output."
    ),
]
TableFile = Annotated[
    TableFormat | None,
    typer.Option(
        "--format",
        help="Output format. By default, the name of the file decides; without one, a table is "
        "printed.",
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set a parameter of the world. Repeat it for several. 'prism world show' lists "
        "their names.",
        **_WORLD,
    ),
]
Treatments = Annotated[
    list[str] | None,
    typer.Option(
        "--treat",
        metavar="NAME@ROUND",
        help="Apply a treatment of the world at the beginning of a round, or set a parameter from "
        "then on, as in tiring=0.1@5. Repeat it for several.",
        **_WORLD,
    ),
]


def command_group(text: str) -> typer.Typer:
    """Return a group of commands that, called alone, shows its help."""
    return typer.Typer(help=text, no_args_is_help=True, rich_markup_mode="rich")


def option(name: str, kind: Any, default: Any = None, *declared: str, **more: Any) -> Parameter:
    """Declare an option: the parameter of a command.

    Args:
        name: Name of the parameter.
        kind: Its type; if this is annotated already, only the default is added.
        default: Its default.
        declared: How it is written, if not like its name.
        more: Other arguments of `typer.Option`.
    """
    annotation = kind
    if get_origin(kind) is not Annotated:
        annotation = Annotated[kind, typer.Option(*declared, **more)]

    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def argument(name: str, kind: Any) -> Parameter:
    """Declare an argument of a command."""
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind)


def with_signature(
    command: Callable[..., None], parameters: Iterable[Parameter]
) -> Callable[..., None]:
    """Return a command with these parameters, instead of those in its code."""
    # typer reads the signature; annotations beside it would have to agree with it
    by_name = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
    command.__signature__ = Signature(by_name)  # type: ignore[attr-defined]
    command.__annotations__ = {}
    return command


OPTIONS_SECTION = re.compile(r"^Options:\n((?: .*\n?)+)\n?", re.MULTILINE)
"""The part of a command's docstring that describes its arguments and options."""

_ARGUMENTS_SECTION = re.compile(r"^Args:\n((?: .*\n?)+)\n?", re.MULTILINE)

_ENTRY = re.compile(r"^    (\w+): ((?:.|\n     )+)", re.MULTILINE)


def documented(function: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters of a command, with their help from its docstring.

    Args:
        function: The command. A parameter whose annotation has help is complete already.
    """
    found = dict(signature(function, eval_str=True).parameters)
    for name, text in _entries(function, OPTIONS_SECTION).items():
        kind = found[name].annotation
        if get_origin(kind) is not Annotated:
            is_option = found[name].default is not Parameter.empty
            kind = Annotated[kind, typer.Option() if is_option else typer.Argument()]
        kind.__metadata__[0].help = text
        found[name] = found[name].replace(annotation=kind)

    return found


def _entries(documented: Any, section: re.Pattern[str]) -> dict[str, str]:
    """Return the entries of a section of a docstring, each on one line."""
    found = section.search(cleandoc(documented.__doc__ or ""))
    entries = _ENTRY.findall(found[1] if found else "")
    return {name: " ".join(text.replace("``", "").split()) for name, text in entries}


@dataclass(frozen=True, slots=True)
class Panel:
    """Options that a command takes together, as the one argument annotated with them.

    Args:
        options: Returns the options when the command or its help is called.
        gather: Makes the argument from the options that are given or have a default.
        essential: Names of those that ``--help`` shows, while ``--help-all`` shows all; None if
            ``--help`` shows all.
    """

    options: Callable[[], Sequence[Parameter]]
    gather: Callable[..., Any] = dict
    essential: Collection[str] | None = None


def declared_panel(
    *declared: type[Any],
    gather: Callable[..., Any] = dict,
    essential: Collection[str] | None = None,
    without: Collection[str] = (),
) -> Panel:
    """Return a panel of the fields of data classes, documented like commands.

    Args:
        declared: The classes.
        gather: Makes the argument; one of the classes, to make an instance of it.
        without: Names of fields to leave out, which have defaults.
        essential: Names of those that ``--help`` shows; None if it shows all.
    """

    @cache
    def options() -> Sequence[Parameter]:
        found = {name: each for cls in declared for name, each in documented(cls).items()}
        return [each for name, each in found.items() if name not in without]

    return Panel(options, gather, essential)


@dataclass(frozen=True)
class Keeping:
    """The folder of a run, the run that it continues, and the form of its results.

    Options:
        out: Folder for the run: events.jsonl (every transition, one JSON object per line) and
            run.json. It must not hold a run yet. By default, nothing is written.
        resume: Continue the stopped run in this folder.
    """

    command_line: typer.Context
    out: Annotated[Path | None, typer.Option(metavar="DIR", **_KEEPING)] = None
    resume: Annotated[Path | None, typer.Option(metavar="DIR", **_KEEPING)] = None
    as_json: AsJson = False


def keeping_panel(*without: str, **helps: str) -> Panel:
    """Return the options for the folder of a run.

    Args:
        without: Names of those to leave out.
        helps: Other help texts for some of them in this command.
    """

    @cache
    def options() -> Sequence[Parameter]:
        return [
            _with_help(each, helps.get(name))
            for name, each in documented(Keeping).items()
            if name not in without
        ]

    return Panel(options, Keeping)


def _with_help(parameter: Parameter, text: str | None) -> Parameter:
    """Return a parameter with another help, if one is given."""
    if text is None:
        return parameter

    kind, declared = get_args(parameter.annotation)
    changed = copy(declared)
    changed.help = text
    return parameter.replace(annotation=Annotated[kind, changed])


_ESSENTIAL = ("model", "hosts", "server", "max_calls")

_LIBRARY_ONLY = ("attempts", "load_timeout", "keep_alive", "seed")
"""Settings of a model that no command has an option for."""

_METAVARS = {"hosts": "URL", "key": "VARIABLE", "prompt": "FILE"}


def model_panel(*only: str, without: Iterable[str] = (), **helps: str) -> Panel:
    """Return the options that ask a model: the settings of `prism.llm.Model`.

    Args:
        only: Names of the settings; by default all.
        without: Names of those to leave out.
        helps: Other help texts for some of them in this command.
    """

    @cache
    def options() -> Sequence[Parameter]:
        from prism.llm import Model
        from prism.llm._settings import settings_of

        kinds = settings_of()
        told = {**_entries(Model, _ARGUMENTS_SECTION), **helps}
        names = only or [name for name in kinds if name not in (*_LIBRARY_ONLY, *without)]
        return [_option_of(name, kinds[name], told[name]) for name in names]

    return Panel(options, essential=only or _ESSENTIAL)


def writer_panel() -> Panel:
    """Return the options for who writes texts, and how."""
    return declared_panel(_Writer, essential=("writer",))


@dataclass(frozen=True)
class _Writer:
    """Who writes the texts of a run.

    Options:
        writer: Have a model write the texts, instead of templates: a model as for --model, or only
            ollama or openai, to use the one of --model.
        writer_max_length: Maximum length of a text in characters; longer ones are cut. 280 by
            default.
        writer_language: Language of the texts, such as German.
        writer_prompt: Template of the writer's prompt in a feed, with {fields} such as {task},
            {thread} and {reason}.
    """

    writer: Annotated[str | None, typer.Option(metavar="MODEL", **MODEL)] = None
    writer_max_length: Annotated[int | None, typer.Option("--writer-length", min=1, **MODEL)] = None
    writer_language: Annotated[str | None, typer.Option(**MODEL)] = None
    writer_prompt: Annotated[Path | None, typer.Option(metavar="FILE", **MODEL)] = None


def _option_of(name: str, kind: Any, text: str) -> Parameter:
    """Return the option for a setting of a type."""
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    more: dict[str, Any] = {"metavar": _METAVARS.get(name)}
    words = [word for part in get_args(plain) for word in get_args(part) if isinstance(word, str)]
    if name == "prompt":
        plain = Path
    elif get_origin(plain) is Sequence:
        plain = list[str]
    elif words:
        plain, more = str, {"parser": _number_or_text, "metavar": f"{'|'.join(words)}|..."}

    return option(
        name,
        bool if plain is bool else plain | None,
        False if plain is bool else None,
        option_of(name),
        help=text,
        rich_help_panel=MODEL["rich_help_panel"],
        **more,
    )


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def named_values(given: Iterable[str] | None) -> dict[str, str]:
    """Return names and values of ``--set name=value``.

    Raises:
        InputError: If the form is different, or a name is given twice.
    """
    found: dict[str, str] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name:
            raise InputError(f"--set must be NAME=VALUE, got {text!r}")
        if name in found:
            raise InputError(f"--set has {name!r} twice: {found[name]!r} and {value!r}")
        found[name] = value

    return found


def import_from_here() -> None:
    """Also find modules in the current folder, as ``python -m`` does."""
    if (folder := os.getcwd()) not in sys.path:  # noqa: PTH109
        sys.path.insert(0, folder)


def listed(given: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names in options such as ``--attributes age,trust``, which may be repeated."""
    return tuple(name.strip() for names in given or () for name in names.split(","))


def option_of(name: str) -> str:
    """Return the option of a parameter as written on the command line."""
    return _OPTIONS.get(name, f"--{name.replace('_', '-')}")
