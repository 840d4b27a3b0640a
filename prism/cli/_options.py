"""Options that several commands share, and commands that are made of declared options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer

from prism.cli._running import option_of
from prism.cli._table_output import TableFormat
from prism.errors import InputError
from prism.files import reading
from prism.llm import DEFAULT_HOST
from prism.runs import ModelOptions, ReasonerOptions, ReplayOptions
from prism.runs._settings import Server, Think

model_option = partial(typer.Option, rich_help_panel="Asking a model")
keeping_option = partial(typer.Option, rich_help_panel="Keeping the run")

ModelName = Annotated[str | None, model_option(help="Model to ask, as the server lists it.")]
ServerKind = Annotated[
    Server | None,
    model_option(
        "--reasoner",
        help="What serves the model: ollama, the default, or openai for a server that speaks "
        "OpenAI's API (vLLM, llama.cpp, LM Studio), with --host.",
    ),
]
Models = Annotated[
    Path | None,
    model_option(
        metavar="FILE",
        help="Models by archetype, kind, chart or name of agents, TOML; options given beside it go "
        "before what it says for all.",
    ),
]
Temperature = Annotated[
    float | None,
    model_option(
        min=0,
        help="Sampling temperature of what the model writes; 0, the default, for the likeliest.",
    ),
]
Hosts = Annotated[
    list[str] | None,
    model_option(
        metavar="URL",
        help=f"Server, by default {DEFAULT_HOST} of Ollama. Repeat it for several servers. "
        "Names and passwords in it are not kept: with --resume, give it again, or set "
        "OLLAMA_HOST.",
    ),
]
Thinking = Annotated[
    Think | None,
    model_option(
        help="Whether the model may think before it answers; some take only low, medium or "
        "high. false by default."
    ),
]
Timeout = Annotated[
    float | None, model_option(min=0.01, help="Seconds to wait for one reply. 60 by default.")
]
Patience = Annotated[
    float | None,
    model_option(
        min=0, help="Seconds to wait for a server that fails; 0, the default, not to wait."
    ),
]
MaxCalls = Annotated[int | None, model_option(min=1, help="Requests the run may make.")]
MaxTokens = Annotated[int | None, model_option(min=1, help="Tokens the run may use.")]
Deadline = Annotated[
    float | None, model_option(min=0.01, help="Seconds for which the run may ask.")
]
Cache = Annotated[
    Path | None,
    model_option(metavar="FILE", help="Keep answers in this file, and use those in it."),
]
WriterKind = Annotated[
    Server | None,
    model_option(
        "--writer",
        help="Have a model write the texts, too, instead of templates: ollama or openai, which is "
        "what serves it. It shares servers, limits and budget with the model that decides. With "
        "--replay texts are taken from the earlier run, if it has any.",
    ),
]
WriterModel = Annotated[
    str | None,
    model_option(help="Model that writes, if it is another one than --model."),
]
WriterLength = Annotated[
    int | None,
    model_option(min=1, help="Most characters of a text. 280 by default; a longer one is cut."),
]
WriterLanguage = Annotated[str | None, model_option(help="Language of the texts, such as German.")]
RecordPrompts = Annotated[
    bool,
    keeping_option(
        "--record-prompts",
        help="Keep every prompt and reply as it was sent, in prompts.jsonl.gz beside the log, for "
        "'prism log decision'. Names, traits, posts, and whatever else agents are told are in it; "
        "only you may read the file.",
    ),
]
Resume = Annotated[
    Path | None,
    keeping_option(
        metavar="DIR",
        help="Go on with the run in this folder, which was stopped in any way; "
        "everything it depends on is taken from there.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print the results as JSON instead of tables.")
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
        help="Format to write; by default that of the file's name, else a table to read.",
    ),
]


def option(name: str, kind: Any, default: Any = None, *declared: str, **settings: Any) -> Parameter:
    """Declare an option: the parameter of a command.

    Args:
        name: Name of the parameter.
        kind: Its type; where this is annotated already, that says all but the default.
        default: Its default.
        declared: How it is written, where it is not as its name.
        settings: What else `typer.Option` takes.
    """
    annotation = kind
    if get_origin(kind) is not Annotated:
        annotation = Annotated[kind, typer.Option(*declared, **settings)]

    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def command_of(
    function: Callable[..., None],
    parameters: Iterable[Parameter],
    text: str,
    examples: Iterable[str],
) -> Callable[..., None]:
    """Return a command with these parameters, which a function takes by name.

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
    # typer reads the signature; annotations beside it would have to agree with it
    command.__signature__ = Signature(list(parameters))  # type: ignore[attr-defined]
    command.__annotations__ = {}
    return command


def model_options(models: Path | None, asked: Mapping[str, Any]) -> ModelOptions:
    """Return the options of a model, those of a file of models included.

    Args:
        models: The file, if one was named.
        asked: Options of a model, None where they were not given.

    Raises:
        InputError: If the file cannot be used, or options do not fit.
    """
    if models is not None:
        return ModelOptions.from_file(models, **asked)

    return ModelOptions(**{name: value for name, value in asked.items() if value is not None})


def writer_options(
    model: str | None, replay: Path | None, asked: dict[str, Any], models: Path | None = None
) -> ReasonerOptions:
    """Return who writes the texts of a run; refuse options of a model where none is asked.

    Args:
        model: The model, if one was named.
        replay: An earlier run to take the texts from, if one was named.
        asked: Options of a model, None where they were not given.
        models: A file of models, if one was named.

    Raises:
        InputError: If an option of a model was given, and none is asked.
    """
    if (model is not None or models is not None) and replay is None:
        return model_options(models, {"model": model, **asked})

    given = {"model": model, "models": models, **asked}
    others = [name for name, value in given.items() if value is not None]
    if others:
        needs = "needs --model" if replay is None else "asks no model: leave it out with --replay"
        raise InputError(f"{option_of(others[0])} {needs}")

    return None if replay is None else ReplayOptions(replay)


def prompt_in(path: Path) -> str:
    """Return the template of a prompt in a file.

    Raises:
        InputError: If it cannot be read, or is not UTF-8.
    """
    with reading(path):
        return path.read_text(encoding="utf-8")
