"""``prism doctor``: whether a model server can be used, and what to do if not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from prism.cli._screen import Screen, plain

if TYPE_CHECKING:
    from prism.llm import Model

_DOUBT = ("doubt", "yellow")
_MARKS = {True: ("ok   ", "green"), False: ("wrong", "red"), None: ("...  ", "")}


def doctor(
    model: Annotated[str, typer.Option()],
    host: Annotated[str | None, typer.Option(metavar="URL")] = None,
    reasoner: Literal["ollama", "openai"] | None = None,
    key_variable: Annotated[str | None, typer.Option(metavar="VARIABLE")] = None,
    timeout: Annotated[float, typer.Option(min=0.1)] = 60.0,
    strict: Annotated[bool, typer.Option("--strict")] = False,
) -> None:
    """Check a server and a model, and explain what is wrong and how to fix it.

    It asks a question in every order of its options, by letter and by name, and says how much the
    order decides. The exit status is 0 if a simulation can use them, and 1 if not.

    Options:
        model: Name of the model.
        host: Server; by default Ollama's http://127.0.0.1:11434.
        reasoner: Kind of server: ollama (the default), or openai for any server with OpenAI's API
            (vLLM, llama.cpp, LM Studio).
        key_variable: Environment variable that holds the server's key.
        timeout: Seconds to wait for one answer, and for the model to be loaded.
        strict: Exit with status 1 also if the order of the options decides more than the question.

    [bold]Examples[/bold]

    prism doctor --host http://127.0.0.1:11434 --model llama3.2

    prism doctor --model ollama:llama3.2@gpu1

    prism doctor --reasoner openai --host http://127.0.0.1:8000 --model llama3.2
    """
    import asyncio

    from prism.cli._running import naming_options
    from prism.llm import Model

    with naming_options():
        asked = Model.of(
            model,
            server=reasoner,
            hosts=host,
            key=key_variable,
            timeout=timeout,
            load_timeout=timeout,
        )
        asked.as_client()
    if not asyncio.run(_is_well(asked, Screen(), strict=strict)):
        raise typer.Exit(1)


async def _is_well(client: Model, screen: Screen, *, strict: bool) -> bool:
    """Print each result at once, and return True if a simulation can use the server."""
    well: bool | None = False
    is_doubtful = False
    async with client:
        async for check in client.diagnose():
            well, is_doubtful = check.ok, is_doubtful or check.is_doubtful
            mark = _DOUBT if check.is_doubtful else _MARKS[well]
            line = Text.assemble(mark, " ", plain(f"{check.what}: {check.found}"))
            screen.print(line, soft_wrap=True)

    return bool(well) and not (strict and is_doubtful)
