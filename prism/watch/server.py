"""The server of the page: what it answers, and how it begins and ends."""

from __future__ import annotations

import socket
import webbrowser
from asyncio import sleep
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.resources import files
from os import PathLike
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Self

import jinja2
import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from prism import __version__
from prism.analysis import read_log
from prism.drawing import Diagram
from prism.errors import InputError, PrismError
from prism.files.records import printable_path
from prism.report import make_report
from prism.report.html import figures_script, library
from prism.report.html import resource as report_resource
from prism.statechart import Statechart
from prism.statechart.outline import to_outline
from prism.watch._agent_page import agent_view, thread_view
from prism.watch._playing import Playing
from prism.watch._round import round_view
from prism.watch._view import REST, OverTime, agents_behind
from prism.watch._watched import Watched
from prism.watch.guard import Guard

_JSON = "application/json"
_TYPES = {".js": "text/javascript", ".css": "text/css"}
_SECONDS_BETWEEN = 0.1
_SECONDS_TO_END = 10
_MOST_CONNECTIONS = 64
_MOST_REQUEST = 1 << 20

Answer = Callable[["Viewer", Mapping[str, str]], Any]


class Viewer:
    """What the page shows: a run, or the one that is played now.

    Args:
        source: The folder of the run, its log, or a world to play with.
        charts: Your own charts that the run may follow.

    Raises:
        InputError: If there is no run.

    Attributes:
        playing: The world to play with.
        name: What is shown, for the title of the page.
    """

    def __init__(self, source: Path | Playing, charts: Sequence[Diagram] = ()) -> None:
        self.playing: Playing | None = source if isinstance(source, Playing) else None
        self._path = source if isinstance(source, Path) else None
        self._charts = charts
        self._lock = Lock()
        self._open: OverTime | None = None
        self.name: str = source.world if isinstance(source, Playing) else _name_of(source)
        if self.playing is None:
            self.over_time()

    @property
    def watched(self) -> Watched:
        """The run; see `over_time`."""
        return self.over_time().watched

    def over_time(self) -> OverTime:
        """Return the run with its sections over time, and follow it from now on.

        Raises:
            InputError: If nothing has been played yet.
        """
        playing = self.playing
        with self._lock:
            path = self._path if playing is None else playing.begun
            if path is None and self._open is not None:
                # a world that was reset shows its last run until the next one begins
                return self._open
            if path is None:
                raise InputError("nothing has been played yet")
            if self._open is None or self._open.watched.run != path:
                self._close()
                charts = self._charts if playing is None else playing.charts
                watched = Watched(path, _name_of(path), charts)
                self._open = OverTime(watched, REST if playing is None else 0)
            return self._open

    def close(self) -> None:
        """Stop following, and playing."""
        with self._lock:
            self._close()
        if self.playing is not None:
            self.playing.close()

    def _close(self) -> None:
        if self._open is not None:
            self._open.watched.close()
            self._open = None


def _name_of(path: Path) -> str:
    whole = path.absolute()
    return printable_path(whole.name if whole.is_dir() else whole.parent.name)


class _Pages:
    """The answers of the server: the page, its parts as JSON, and the news of a run.

    Args:
        viewer: What is shown.
    """

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self.stops = False

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        return [
            Route("/", self._page),
            Route("/static/{name}", _static),
            Route("/events", self._events),
            Route("/do", self._do, methods=["POST"]),
            Route("/report", self._report),
            *(Route(path, partial(self._answer, answer)) for path, answer in _ANSWERS.items()),
        ]

    def _answer(self, answer: Answer, request: Request) -> Response:
        return _as_json(answer(self._viewer, request.query_params))

    def _page(self, _request: Request) -> Response:
        template = jinja2.Template(_text("watch.html"), autoescape=True)
        page = template.render(
            title=self._viewer.name, version=__version__, plays=self._viewer.playing is not None
        )
        return Response(page, media_type="text/html")

    def _report(self, _request: Request) -> Response:
        """Make the page that a run can be kept as."""
        # it brings a content policy of its own, which names its scripts
        headers = {
            "Content-Disposition": 'attachment; filename="report.html"',
            "Content-Security-Policy": "sandbox",
        }
        page = make_report(read_log(self._viewer.watched.path)).html()
        return Response(page.encode(), media_type="text/html", headers=headers)

    async def _do(self, request: Request) -> Response:
        """Carry out what the page asks of the world that is played."""
        playing = self._viewer.playing
        if playing is None:
            raise InputError("there is no world to play with")
        # no form of another page can send this type
        if request.headers.get("content-type", "").partition(";")[0] != _JSON:
            raise InputError(f"an action must be sent as {_JSON}")

        return _as_json(await run_in_threadpool(playing.do, orjson.loads(await request.body())))

    def _events(self, _request: Request) -> Response:
        return StreamingResponse(self._news(), media_type="text/event-stream")

    async def _news(self) -> AsyncIterator[bytes]:
        """Yield how far the run and the reading of its log are, whenever that has changed."""
        before: object = None
        while not self.stops:
            playing = self._viewer.playing
            play = await run_in_threadpool(playing.status) if playing else None
            watched = None
            with suppress(PrismError):  # nothing has been played yet
                watched = await run_in_threadpool(self._viewer.over_time)
            run = watched and watched.watched
            now = run and (run.label, run.version), playing and playing.version
            if now != before:
                before = now
                news = run and {**run.progress(), "label": run.label}
                yield b"data: " + _json({"run": news, "play": play}) + b"\n\n"
            await sleep(_SECONDS_BETWEEN)


_ANSWERS: Mapping[str, Answer] = {
    "/head": lambda viewer, _query: viewer.watched.head(),
    "/time": lambda viewer, _query: viewer.over_time().view(),
    "/round": lambda viewer, query: round_view(viewer.watched, _number_in(query, "round")),
    "/agents": lambda viewer, query: agents_behind(
        viewer.watched, _number_in(query, "round"), query, _number_in(query, "tick")
    ),
    "/agent": lambda viewer, query: agent_view(
        viewer.watched, query["agent"], _number_in(query, "round")
    ),
    "/post": lambda viewer, query: thread_view(viewer.watched, query["post"]),
}
"""The answers about a run, as JSON."""


def _json(data: Any) -> bytes:
    return orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS, default=str)


def _as_json(data: Any, status: int = 200) -> Response:
    return Response(_json(data), status, media_type=_JSON)


def _refused(_request: Request, error: Exception) -> Response:
    """Say what was wrong with a request, or with the files of a run."""
    message = f"the address has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
    return _as_json({"problem": message}, 400)


def _failed(_request: Request, error: Exception) -> Response:
    """Say that prism failed; the server logs the traceback."""
    message = f"prism failed ({type(error).__name__}); its log has the traceback"
    return _as_json({"problem": message}, 500)


_PROBLEMS: dict[Any, Any] = {
    **dict.fromkeys((KeyError, ValueError, PrismError, OSError), _refused),
    Exception: _failed,
}


def _number_in(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    if text in ("", "null"):
        return None
    if not text.isdecimal() or len(text) > 18:
        raise InputError(f"there is no {name} {text[:40]!r}")
    return int(text)


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _STATIC:
        return Response("there is no such file\n", 404, media_type="text/plain")

    media, headers = _TYPES[Path(name).suffix], {"Cache-Control": "no-cache"}
    return Response(_STATIC[name](), media_type=media, headers=headers)


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


_STATIC: Mapping[str, Callable[[], str]] = {
    "library.js": library,
    "page.css": partial(report_resource, "report.css"),
    "figures.js": figures_script,
    **{name: partial(_text, name) for name in ("watch.css", "watch.js", "play.js")},
}


class Watching:
    """A server that shows a run; it ends with ``stop()``, or with the process.

    Args:
        viewer: What it shows.
        host: The host to listen on.
        port: The port; 0 takes a free one.

    Raises:
        InputError: If the port is taken.

    Attributes:
        url: The address to open, which is good for one browser, once.
    """

    def __init__(self, viewer: Viewer, host: str = "127.0.0.1", port: int = 0) -> None:
        self._viewer = viewer
        try:
            self._socket = _bound(host, port)
        except InputError:
            viewer.close()
            raise
        self._pages = _Pages(viewer)
        number = self._socket.getsockname()[1]
        app = Starlette(routes=self._pages.routes(), exception_handlers=_PROBLEMS)
        guard = Guard(app, host, number)
        address = f"[{host}]" if ":" in host else host
        self.url: str = f"http://{address}:{number}/?token={guard.token}"
        config = uvicorn.Config(
            guard,  # an application of ASGI
            log_level="error",
            access_log=False,
            lifespan="off",
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            # an id of an agent may be long, and arrive in parts
            h11_max_incomplete_event_size=_MOST_REQUEST,
            # streams end by themselves, perhaps behind a long block of a log
            timeout_graceful_shutdown=_SECONDS_TO_END,
        )
        self._server = uvicorn.Server(config)
        self._ended = Event()
        self._thread = Thread(target=self._run, name="prism-watch-server", daemon=True)

    def start(self) -> Self:
        """Answer in a thread of its own."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop answering."""
        self._pages.stops = True
        self._server.should_exit = True
        self._thread.join()

    def wait(self) -> None:
        """Wait until it has stopped."""
        # a thread that is joined when the user interrupts is taken for one that has ended
        while not self._ended.wait(_SECONDS_BETWEEN):
            pass

    def open(self) -> None:
        """Show the page in the user's browser."""
        webbrowser.open(self.url)

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self._viewer.close()
            self._ended.set()


def watch(
    run: PathLike[str] | str,
    charts: Iterable[Statechart[Any]] = (),
    *,
    host: str = "127.0.0.1",
    port: int = 0,
) -> Watching:
    """Show a run in a page that follows it.

    Nothing is written to the folder: the run may be under way in this process or in another, have
    ended, or have been killed.

    Args:
        run: The folder of the run, or its log.
        charts: The charts that it follows, if they are your own; see `prism.report.make_report`.
        host: The host to listen on. Others than 127.0.0.1 let other machines in that know the
            address.
        port: The port; 0 takes a free one.

    Returns:
        The server, which answers until its ``stop()`` or the end of the process. A notebook shows
        it as a link; elsewhere its ``open()`` opens a browser. The address is good once: it
        gives the browser a cookie.

    Raises:
        InputError: If there is no run, or the port is taken.
    """
    diagrams = [to_outline(chart.definition) for chart in charts]
    return Watching(Viewer(Path(run), diagrams), host, port).start()


def play(
    world: str, options: Mapping[str, Any], *, host: str = "127.0.0.1", port: int = 0
) -> Watching:
    """Show a world to play with; see `watch`.

    Args:
        world: Its short name, ``package.module:Name`` or ``file.py:Name``.
        options: What it begins with: ``agents``, ``seed``, ``parameters`` and ``model``.
        host: The host to listen on.
        port: The port; 0 takes a free one.

    Raises:
        InputError: If the port is taken.
    """
    return Watching(Viewer(Playing({**options, "world": world})), host, port).start()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # it listens at once, so that a browser that is quicker than the server waits
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        why = str(error.strerror).partition(" (")[0]
        raise InputError(f"cannot listen on {host}:{port}: {why}") from None
    # what is accepted inherits it; a browser would wait 40 ms for the body of an answer else
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    return listening
