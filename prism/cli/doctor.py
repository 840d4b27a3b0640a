"""``prism doctor``: what is wrong with a model server."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from prism.llm import DEFAULT_HOST, Check, OllamaChatClient, diagnose


def doctor(
    model: Annotated[str, typer.Option(help="Model that a simulation would ask.")],
    host: Annotated[str, typer.Option(metavar="URL", help="Ollama server.")] = DEFAULT_HOST,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for one answer.")] = 60.0,
) -> None:
    """Look at an Ollama server and a model, and say what is wrong and what to do.

    Exit status 0 if a simulation could use them, 1 if not.

    [bold]Example[/bold]

    prism doctor --host http://127.0.0.1:11434 --model llama3.2
    """
    checks = asyncio.run(_diagnose(OllamaChatClient(host, model, timeout=timeout, load_timeout=max(timeout, 600.0))))
    console = Console()
    for check in checks:
        mark = "[green]ok[/green]   " if check.ok else "[red]wrong[/red]"
        console.print(f"{mark} {check.what}: {escape(check.found)}", soft_wrap=True)
    if not checks[-1].ok:
        raise typer.Exit(1)


async def _diagnose(client: OllamaChatClient) -> list[Check]:
    async with client:
        return await diagnose(client)
