"""``prism watch``: a run as a page in the browser that follows it, or a world to play with."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from prism.cli import _options as options
from prism.cli._screen import note, say
from prism.errors import InputError

_NICENESS = 10


def watch(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN|WORLD",
            help="A run (its folder or log), or a world to play with: "
            "package.module:Name, file.py:Name, or a name of prism world list.",
        ),
    ],
    charts: options.Charts = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; another one lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
    agents: options.Agents = None,
    seed: Annotated[int | None, typer.Option(help="Seed of a world to play with.")] = None,
    model: options.ModelText = None,
    parameters: options.Set = None,
) -> None:
    """Show a run in the browser, live or afterwards, or play with a world.

    The page only reads the folder of the run, which may still be under way in another process. A
    world is played in a process of its own, with its parameters as sliders. The address works
    once, in one browser. End it with Ctrl-C.

    **Examples**

    * `prism watch runs/first`

    * `prism watch rumour --agents 300`

    * `prism watch mine.py:Mine --no-browser --port 8400`
    """
    from prism.watch import watch as serve
    from prism.watch.guard import is_loopback

    values = options.named_values(parameters) or None
    of_world = {"agents": agents, "seed": seed, "model": model, "parameters": values}
    arguments: dict[str, Any] = {name: each for name, each in of_world.items() if each is not None}
    is_world = names_a_world(run)
    if is_world and charts:
        raise InputError("--chart is for runs: a world has its own charts")
    if arguments and not is_world:
        option = options.option_of(next(iter(arguments)))
        raise InputError(f"{option} is only for a world: leave it out")
    if not is_loopback(host):
        note(f"{host}: anyone who can reach this machine and knows the address can see it")

    if is_world:
        from prism.watch.server import play
        from prism.worlds import Run

        # refuses what is wrong, in a table of agents as well, before anything is served
        Run(run, **arguments).prepare(None)
        watching = play(run, arguments, host=host, port=port)
    else:
        from prism.cli._chart_argument import chart_from

        # the run that is watched comes first
        if hasattr(os, "nice"):
            os.nice(_NICENESS)
        statecharts = [chart_from(name) for name in charts or ()]
        watching = serve(Path(run), statecharts, host=host, port=port)
    say(watching.url)
    if not no_browser:
        watching.open()
    with suppress(KeyboardInterrupt), ExitStack() as stack:
        stack.callback(watching.stop)
        watching.wait()


def names_a_world(text: str) -> bool:
    """Return whether a text names a world; a folder or log of that name comes first."""
    from prism.worlds.addresses import named_worlds

    if Path(text.partition(":")[0]).suffix == ".py":
        return True
    return not Path(text).exists() and (text in named_worlds() or ":" in text)
