"""``prism ask``: a question to an agent that is not running."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from prism.cli._options import model_panel
from prism.cli._screen import damage_noted, say
from prism.errors import InputError

_MODEL = model_panel(without=("concurrency", "record_prompts"), decides=False)


def ask(
    memory: Annotated[Path, typer.Argument(metavar="MEMORY")],
    question: Annotated[str, typer.Argument(metavar="QUESTION")],
    *,
    config: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    model: Annotated[Mapping[str, Any], _MODEL],
) -> None:
    """Ask a question of an agent that is not running, and print its answer from memory.

    The model sees the working memory, the thoughts, and what the storage holds on the question.
    Nothing is changed, so an agent may be using the memory at the same time.

    Options:
        memory: The memory: a JSON file or a SQLite database.
        question: What to ask.
        config: The agent's configuration: role, goal and limits.

    [bold]Example[/bold]

    prism ask story/memory.json "Who is Alba?" --model llama3.2
    """
    import asyncio

    from prism.cli._answers import writer_options
    from prism.cli._running import naming_options
    from prism.cognition import Config, Memory, ask_memory
    from prism.runs._makers import make_writer

    options = writer_options(model)
    if options is None:
        raise InputError("no model is named: add --model NAME")

    told = Config() if config is None else Config.load(config)
    with damage_noted(), naming_options():
        opened = Memory.read(memory)
    with closing(opened):
        say(asyncio.run(_answer(ask_memory, opened, question, make_writer(options, 0), told)))


async def _answer(ask_memory: Any, memory: Any, question: str, writer: Any, config: Any) -> str:
    try:
        return str(await ask_memory(memory, question, writer, config=config))
    finally:
        close = getattr(writer, "close", None)
        if close is not None:
            await close()
