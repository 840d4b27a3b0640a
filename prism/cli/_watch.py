"""``prism watch``: runs as a page in the browser that follows them, and worlds to play with."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from subprocess import Popen
from typing import TYPE_CHECKING, Annotated, Any

import typer

from prism.cli._options import Parameters, named_values, option_of
from prism.cli._output import missing_runs_first
from prism.cli._screen import note, say
from prism.errors import InputError

if TYPE_CHECKING:
    from prism.watch import Watching

_MAIN = "from prism.cli import main; main()"
_NICENESS = 10
_LOOPBACK = "127.0.0.1"

Charts = Annotated[
    list[str] | None,
    typer.Option(
        "--chart",
        metavar="CHART",
        help="Your own chart, if the run follows one, as for prism report. Repeat it for several.",
    ),
]
_PLAY = "A world to play with"


def watch(
    run: Annotated[str, typer.Argument(metavar="RUN|WORLD", show_default=False)],
    chart: Charts = None,
    host: str = _LOOPBACK,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser")] = False,
    agents: Annotated[str | None, typer.Option(metavar="N|FILE", rich_help_panel=_PLAY)] = None,
    seed: Annotated[int | None, typer.Option(rich_help_panel=_PLAY)] = None,
    model: Annotated[str | None, typer.Option(metavar="MODEL", rich_help_panel=_PLAY)] = None,
    parameters: Parameters = None,
) -> None:
    """Show a run in the browser, live or afterwards, or play with a world.

    For any round, the page shows the chart with its agents, what happened, what a model was asked,
    and what went wrong. It only reads the folder of the run, which may still be under way in
    another process. A world is played in a process of its own, with its parameters as sliders.
    The address works once, in one browser. End it with Ctrl-C.

    Options:
        run: A run to watch (its folder or log), a folder that holds runs, or a world to play with:
            package.module:Name, file.py:Name, or a name that prism world list shows.
        host: Address to listen on; any other than the default lets other machines in.
        port: Port to listen on; 0 picks a free one.
        no_browser: Print the address instead of opening a browser.
        agents: Number of agents, or a file of them, as for prism run.
        seed: Seed of every random number.
        model: Model that decides, such as ollama:llama3.2 or openai:qwen3@http://127.0.0.1:8000;
            its cost is estimated first.

    [bold]Examples[/bold]

    prism watch runs/first

    prism watch runs

    prism watch rumour --agents 300

    prism watch mine.py:Mine --no-browser --port 8400
    """
    values = named_values(parameters) or None
    given = {"agents": agents, "seed": seed, "model": model, "parameters": values}
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    is_world = names_a_world(run)
    if is_world and chart:
        raise InputError("--chart is for runs: a world has its own charts")
    for name in () if is_world else asked:
        raise InputError(f"{option_of(name)} is only for a world: leave it out")

    watching = _played(run, asked, host, port) if is_world else _watched(run, chart, host, port)
    say(watching.url)
    if not no_browser:
        watching.open()
    with suppress(KeyboardInterrupt), ExitStack() as stack:
        stack.callback(watching.stop)
        watching.wait()


def _played(world: str, asked: Mapping[str, Any], host: str, port: int) -> Watching:
    """Serve the page of a world to play with."""
    from prism.watch._server import play

    _warn_of(host, "can see and play the world")
    return play(world, asked, host=host, port=port)


def _watched(run: str, charts: Iterable[str] | None, host: str, port: int) -> Watching:
    """Serve the page of a run."""
    from prism.cli._chart_argument import chart_from

    own = [chart_from(name) for name in charts or ()]
    # before polars, which counts its threads
    os.environ.setdefault("POLARS_MAX_THREADS", threads_beside(Path(run)))
    # the room's extra is named by its import
    with missing_runs_first([run]):
        from prism.watch import watch
    # the run that is watched comes first, once the page can be shown
    if hasattr(os, "nice"):
        os.nice(_NICENESS)

    _warn_of(host, "can see the run")
    return watch(Path(run), own, host=host, port=port)


def threads_beside(run: Path) -> str:
    """Return the number of threads that may read logs: one beside a run that may go on."""
    from prism.runs import run_status

    with suppress(InputError):
        return "1" if run_status(run).state == "running" else "2"

    # one of a folder of runs may go on, too
    return "1"


def _warn_of(host: str, does: str) -> None:
    """Warn of an address that other machines can reach."""
    from prism.watch._guard import is_loopback

    if not is_loopback(host):
        note(f"{host}: anyone who can reach this machine and knows the address {does}")


@contextmanager
def opening_beside(folder: Path | None) -> Iterator[Callable[[], object]]:
    """Show a run in the browser by a process of its own, until the user ends that.

    Args:
        folder: The run's folder.

    Yields:
        What begins to show it, once the run is there.

    Raises:
        InputError: If it has no folder.
    """
    if folder is None:
        raise InputError("--watch needs --out with a folder for the run")

    # the extra is missed before the run begins
    import prism.watch  # noqa: F401

    begun: list[Popen[bytes]] = []
    command = [sys.executable, "-c", _MAIN, "watch", str(folder)]
    try:
        yield lambda: begun.append(Popen(command, stdout=sys.stderr))
        if begun:
            note("the page still shows the run; press Ctrl-C to close it")
            with suppress(KeyboardInterrupt):
                begun[0].wait()
    finally:
        for process in begun:
            process.terminate()
            process.wait()


def names_a_world(text: str) -> bool:
    """Return whether a text names a world, and not a path.

    Raises:
        InputError: If it could be both, or is neither but nearly the name of a world.
    """
    from prism.worlds._addresses import known_worlds

    file, exists = Path(text.partition(":")[0]), Path(text).exists()
    is_named = text in known_worlds()
    is_file = file.suffix == ".py" and file.is_file()
    is_module = ":" in text and all(map(str.isidentifier, text.replace(":", ".").split(".")))
    is_world = is_named or is_file or is_module
    if (is_named or is_module) and exists:
        raise InputError(
            f"is both a path and the name of a world: write ./{text} for the path, or "
            "package.module:Name for the world",
            path=text,
        )

    if not (is_world or exists):
        _refuse_if_near(text, known_worlds())

    return is_world


def _refuse_if_near(text: str, worlds: Iterable[str]) -> None:
    # as it loads pydantic, which a viewer needs only for its error messages
    from prism.files.declarations import meant

    if (near := meant(text, worlds)) is not None:
        problem = f"there is no such run, folder or world; did you mean {near}?"
        raise InputError(problem, path=text)
