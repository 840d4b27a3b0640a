"""``prism doctor``: whether a model server can be used, and what to do if not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from prism.cli._options import ModelFile, ModelText, model_of
from prism.cli._screen import Screen, one_line
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.llm import Model

_DOUBT = ("doubt", "yellow")
_SYMBOLS = {True: ("ok   ", "green"), False: ("fails", "red"), None: ("...  ", "")}


def doctor(
    model: ModelText = None,
    model_file: ModelFile = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Fail if the order of options decides more than the question."
        ),
    ] = False,
) -> None:
    """Check a server and a model, and explain what is wrong and how to fix it.

    It asks a question in every order of its options, by letter and by name, and says how much the
    order decides. The exit status is 0 if a simulation can use them, and 1 if not.

    **Examples**

    * `prism doctor --model ollama:llama3.2`

    * `prism doctor --model openai:qwen3@http://127.0.0.1:8000`
    """
    import asyncio

    chosen = model_of(model, model_file)
    if chosen is None:
        raise InputError("--model is missing: name the model to check")
    chosen.as_client()
    if not asyncio.run(_is_well(chosen, Screen(), strict=strict)):
        raise typer.Exit(1)


async def _is_well(client: Model, screen: Screen, *, strict: bool) -> bool:
    """Print each result at once, and return True if a simulation can use the server."""
    well: bool | None = False
    is_doubtful = False
    async with client:
        async for check in client.diagnose():
            well, is_doubtful = check.ok, is_doubtful or check.is_doubtful
            symbol = _DOUBT if check.is_doubtful else _SYMBOLS[well]
            line = Text.assemble(symbol, " ", one_line(f"{check.what}: {check.result}"))
            screen.print(line, soft_wrap=True)

    return bool(well) and not (strict and is_doubtful)
