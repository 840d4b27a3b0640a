"""``prism watch``: runs as a page in the browser that follows them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prism.cli._screen import note, say
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.watch import Watching

_LOOPBACK = "127.0.0.1"

Run = Annotated[
    Path,
    typer.Argument(
        metavar="RUN",
        help="Folder of a run, or its log, or a folder with runs below it.",
        show_default=False,
    ),
]
Charts = Annotated[
    list[str] | None,
    typer.Option(
        "--chart",
        metavar="CHART",
        help="Chart of your own that runs follow, as for prism report. For several charts, repeat "
        "the option.",
    ),
]


def watch(
    run: Run,
    chart: Charts = None,
    host: Annotated[
        str, typer.Option(help="Host to listen on; any other lets other machines in.")
    ] = _LOOPBACK,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
) -> None:
    """Show a run in the browser while it happens, or afterwards; its folder is only read.

    The page shows the chart with its agents, what happens, is asked and goes wrong, at any round.
    It works for a run that is under way in another process, has ended, or was killed. The address
    is good for one browser, once. End it with Ctrl-C.

    [bold]Examples[/bold]

    prism watch runs/first

    prism watch runs

    prism watch runs/first --no-browser --port 8400
    """
    from prism.cli._chart_argument import chart_from

    check_is_run(run)
    charts = [chart_from(name) for name in chart or ()]

    # the room's extra is named by its import
    from prism.watch import watch
    from prism.watch._guard import is_loopback

    if not is_loopback(host):
        note(f"{host}: whoever reaches this machine and learns the address sees the run")
    watching: Watching = watch(run, charts, host=host, port=port)
    say(watching.url)
    if not no_browser:
        watching.open()
    try:
        watching.wait()
    except KeyboardInterrupt:
        watching.stop()


def check_is_run(run: Path) -> None:
    """Refuse a name of a world, which is no folder.

    Raises:
        InputError: If there is no such path, or if it is the name of a world, too.
    """
    from prism.worlds._addresses import known_worlds

    is_world = str(run) in known_worlds()
    if run.exists() and is_world:
        raise InputError(
            f"is a folder here and a world's name: write ./{run} for the folder", path=run
        )
    if is_world:
        raise InputError(
            f"is a world and not a run: prism run {run} --out runs/{run} runs it, and "
            f"prism watch runs/{run} shows that",
            path=run,
        )
