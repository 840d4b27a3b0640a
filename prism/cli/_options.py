"""Options that several commands share, and commands that are built from declared options."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature, cleandoc, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin

import typer

from prism.cli._table_output import TableFormat
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.llm import Model
    from prism.llm._settings import Setting

DEFAULT_SECONDS_BETWEEN = 10.0

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

_WORLD: dict[str, Any] = {"rich_help_panel": "A world"}
MODEL: dict[str, Any] = {"rich_help_panel": "Asking a model"}
_KEEPING: dict[str, Any] = {"rich_help_panel": "Keeping the run"}

AsJson = Annotated[bool, typer.Option("--json", help="Print the results as JSON instead of text.")]
Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN",
        help="Folders of runs, or their logs (.jsonl, also .gz or .zst). Several runs are shown "
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
        help="Apply a treatment of the world at the beginning of a round. Repeat it for several.",
        **_WORLD,
    ),
]

CheckpointEvery = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="Write a checkpoint at the end of a round if the last one is at least this old; 0 "
        "writes one every round.",
        **_KEEPING,
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


def command_of(
    function: Callable[..., None],
    parameters: Iterable[Parameter],
    text: str,
    examples: Iterable[str],
) -> Callable[..., None]:
    """Return a command with these parameters; its function takes them by name.

    Args:
        function: Carries the command out.
        parameters: Its arguments and options.
        text: Its help.
        examples: Examples of its use, shown below the help.
    """

    def command(**given: Any) -> None:
        function(**given)

    shown = list(examples)
    title = "[bold]Example[/bold]" if len(shown) == 1 else "[bold]Examples[/bold]"
    command.__doc__ = "\n\n".join([cleandoc(text), *([title, *shown] if shown else [])])
    return with_signature(command, parameters)


def with_signature(
    command: Callable[..., None], parameters: Iterable[Parameter]
) -> Callable[..., None]:
    """Return a command with these parameters, instead of those in its code."""
    # typer reads the signature; annotations beside it would have to agree with it
    command.__signature__ = Signature(list(parameters))  # type: ignore[attr-defined]
    command.__annotations__ = {}
    return command


OPTIONS_SECTION = re.compile(r"^Options:\n((?: .*\n?)+)\n?", re.MULTILINE)
"""The part of a command's docstring that describes its arguments and options."""

_ENTRY = re.compile(r"^    (\w+): ((?:.|\n     )+)", re.MULTILINE)


def documented(function: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters of a command, with their help from its docstring.

    Args:
        function: The command. A parameter whose annotation has help is complete already.
    """
    section = OPTIONS_SECTION.search(cleandoc(function.__doc__ or ""))
    entries = _ENTRY.findall(section[1] if section else "")
    found = dict(signature(function, eval_str=True).parameters)
    for name, text in entries:
        kind = found[name].annotation
        if get_origin(kind) is not Annotated:
            is_option = found[name].default is not Parameter.empty
            kind = Annotated[kind, typer.Option() if is_option else typer.Argument()]
        kind.__metadata__[0].help = " ".join(text.split())
        found[name] = found[name].replace(annotation=kind)

    return found


@dataclass(frozen=True, slots=True)
class Panel:
    """Options that a command takes together, as the one argument annotated with them.

    Args:
        options: Returns the options when the command or its help is called.
        gather: Makes the argument from the options that are given or have a default.
        essential: Names of those that ``--help`` shows, while ``--help-all`` shows all; None if
            ``--help`` shows all.
    """

    options: Callable[[], tuple[Parameter, ...]]
    gather: Callable[..., Any] = dict
    essential: Collection[str] | None = None

    def rare_of(self, options: Iterable[Parameter]) -> list[Parameter]:
        """Return the options that only ``--help-all`` shows."""
        essential = self.essential
        return [] if essential is None else [one for one in options if one.name not in essential]


def declared_panel(*declared: type[Any], essential: Collection[str]) -> Panel:
    """Return a panel of the fields of data classes, documented like commands.

    Args:
        declared: The classes.
        essential: Names of those that ``--help`` shows.
    """

    def options() -> tuple[Parameter, ...]:
        return tuple(each for cls in declared for each in documented(cls).values())

    return Panel(options, essential=essential)


@dataclass(frozen=True, slots=True)
class Keeping:
    """The folder of a run, the run that it continues, and the form of its results.

    Args:
        out: The folder for a new run.
        resume: The folder of a run to continue.
        checkpoint_every: Seconds between checkpoints; None if a command has no such option.
        as_json: Whether its results are printed as JSON.
    """

    out: Path | None = None
    resume: Path | None = None
    checkpoint_every: float | None = None
    as_json: bool = False


_RESUME = "Continue the stopped run in this folder, which has everything that the run depends on."


def keeping_panel(
    out: str,
    resume: str | None = _RESUME,
    unit: str | None = "round",
    seconds: float | None = DEFAULT_SECONDS_BETWEEN,
    of: str = "the",
) -> Panel:
    """Return the options for the folder of a run.

    Args:
        out: The help of ``--out``.
        resume: The help of ``--resume``; None if the command has no such option.
        unit: What checkpoints are made after; None if the command makes its own.
        seconds: The default of ``--checkpoint-every``.
        of: Whose last checkpoint that counts from.
    """
    options = [option("out", Path | None, metavar="DIR", help=out, **_KEEPING)]
    if resume is not None:
        options.append(option("resume", Path | None, metavar="DIR", help=resume, **_KEEPING))
    if unit is not None:
        text = (
            f"Write a checkpoint at the end of a {unit} if {of} last one is at least this old; 0 "
            f"writes one every {unit}."
        )
        options.append(
            option(
                *("checkpoint_every", float | None, seconds),
                min=0,
                metavar="SECONDS",
                help=text,
                **_KEEPING,
            )
        )

    options.append(option("as_json", AsJson, default=False))
    return Panel(lambda: tuple(options), Keeping)


_ESSENTIAL = ("model", "host", "server", "models", "max_calls", "cache", "record_prompts")


def model_panel(
    *only: str, without: Iterable[str] = (), decides: bool = True, **helps: str
) -> Panel:
    """Return the options that ask a model, as `prism.runs` declares its settings.

    Args:
        only: Names of the settings; by default all, and a file of models.
        without: Names of those to leave out.
        decides: Whether the model decides; options about decisions mean nothing to a writer.
        helps: Other help texts for some of them in this command.
    """

    def options() -> tuple[Parameter, ...]:
        from prism.llm._settings import RunSettings, settings_by_key

        declared = settings_by_key(RunSettings)
        offered = [
            key
            for key, each in declared.items()
            if each.is_option and (decides or each.concerns != "decision")
        ]
        keys = [key for key in only or offered if key not in without]
        made = [_option_of(declared[key], helps.get(key)) for key in keys]
        return tuple(made if only else [*made, _MODELS])

    return Panel(options, essential=only or _ESSENTIAL)


def writer_panel() -> Panel:
    """Return the options for who writes texts, and how."""

    def options() -> tuple[Parameter, ...]:
        from prism.llm._settings import WriterSettings, settings_of

        writer = option(
            *("writer", str | None),
            metavar="MODEL",
            help="Have a model write the texts, instead of templates: a model as for --model, or "
            "only ollama or openai, to use the one of --model.",
            **MODEL,
        )
        declared = [each for each in settings_of(WriterSettings).values() if each.is_option]
        return (writer, *(_option_of(each, name=f"writer_{each.name}") for each in declared))

    return Panel(options, essential=("writer",))


_MODELS = option(
    *("models", Path | None),
    metavar="FILE",
    help="TOML file with models by archetype, kind, chart or name of agents. Other options "
    "override its defaults.",
    **MODEL,
)


def _option_of(setting: Setting, text: str | None = None, name: str = "") -> Parameter:
    kind: Any = Path if setting.is_file else setting.type
    more: dict[str, Any] = {"min": setting.least} if setting.least is not None else {}
    if setting.words:
        more["parser"] = _number_or(*setting.words)

    return option(
        name or setting.key,
        bool if setting.is_flag else list[kind] | None if setting.repeats else kind | None,
        False if setting.is_flag else None,
        setting.option,
        metavar=setting.metavar,
        help=text or setting.help,
        rich_help_panel=setting.panel,
        **more,
    )


def _number_or(*words: str) -> Callable[[str], float | str]:
    def read(text: str) -> float | str:
        if text in words:
            return text
        try:
            return float(text)
        except ValueError:
            expected = " or ".join(("a number", *words))
            raise typer.BadParameter(f"{text!r} is not {expected}.") from None

    return read


def settings_from(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings that were given as options.

    Raises:
        InputError: If one names a file that cannot be read, or is not UTF-8.
    """
    from prism.files import reading
    from prism.llm._settings import RunSettings, settings_by_key

    declared = settings_by_key(RunSettings)
    found: dict[str, Any] = {}
    for key, value in given.items():
        setting = declared.get(key)
        if setting is None:
            found[key] = value
        elif setting.is_file:
            with reading(value):
                found[setting.name] = value.read_text(encoding="utf-8")
        elif setting.repeats:
            found[setting.name] = listed(value) if setting.has_commas else tuple(value)
        else:
            found[setting.name] = value

    return found


def model_options(given: Mapping[str, Any]) -> Model:
    """Return the options of a model, including those of a file of models.

    Args:
        given: Settings of a model by name, None if not given; ``models`` is the file.

    Raises:
        InputError: If the file cannot be used, or options do not fit.
    """
    from prism.llm import Model

    asked = {name: value for name, value in given.items() if value is not None}
    models = asked.pop("models", None)
    if models is not None:
        return Model.from_file(models, **asked)

    return Model.of(asked.pop("model"), **asked)


def writer_options(given: Mapping[str, Any]) -> Model | None:
    """Return the model that writes the texts of a run; refuse its options if there is none.

    Args:
        given: The options of a model that were given.

    Raises:
        InputError: If an option of a model was given without a model.
    """
    if "model" in given or "models" in given:
        return model_options(settings_from(given))
    if given:
        raise InputError(f"{option_of(next(iter(given)))} needs --model")

    return None


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
    """Return the names in options such as ``--keep age,trust``, which may be repeated."""
    return tuple(name.strip() for names in given or () for name in names.split(","))


def option_of(name: str) -> str:
    """Return the option of a parameter as written on the command line."""
    return _OPTIONS.get(name, f"--{name.replace('_', '-')}")
