"""``prism doctor``: whether a model server can be used, and what to do if not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from prism.cli._screen import Screen, plain
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.llm import ModelPool

_LOAD_SECONDS = 600.0
_MARKS = {True: ("ok   ", "green"), False: ("wrong", "red"), None: ("...  ", "")}


def doctor(
    model: Annotated[str, typer.Option(help="Model to ask.")],
    host: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Server, by default http://127.0.0.1:11434 of Ollama."),
    ] = None,
    reasoner: Annotated[
        Literal["ollama", "openai"],
        typer.Option(
            help="What serves the model: ollama, or openai for a server that speaks OpenAI's API "
            "(vLLM, llama.cpp, LM Studio)."
        ),
    ] = "ollama",
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for one answer.")] = 60.0,
) -> None:
    """Check a server and a model, and say what is wrong and what to do.

    Exit status 0 if a simulation can use them, 1 if not.

    [bold]Examples[/bold]

    prism doctor --host http://127.0.0.1:11434 --model llama3.2

    prism doctor --reasoner openai --host http://127.0.0.1:8000 --model llama3.2
    """
    import asyncio

    from prism.llm import DEFAULT_HOST, OllamaPool, OpenAIPool

    if reasoner == "openai" and host is None:
        raise InputError("--host must name an OpenAI-compatible server: they have no usual address")

    kind = OpenAIPool if reasoner == "openai" else OllamaPool
    client = kind(
        [host or DEFAULT_HOST],
        model,
        timeout=timeout,
        load_timeout=max(timeout, _LOAD_SECONDS),
    )
    if not asyncio.run(_is_well(client, Screen())):
        raise typer.Exit(1)


async def _is_well(client: ModelPool, screen: Screen) -> bool:
    """Print each result at once, and return True if a simulation can use the server."""
    from prism.llm import diagnose

    well: bool | None = False
    async with client:
        async for check in diagnose(client):
            well = check.ok
            line = Text.assemble(_MARKS[well], " ", plain(f"{check.what}: {check.found}"))
            screen.print(line, soft_wrap=True)

    return bool(well)
