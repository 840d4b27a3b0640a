"""The server of the page: what it answers, and how it begins and ends."""

from __future__ import annotations

import logging
import socket
import webbrowser
from asyncio import sleep
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any

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
from prism.errors import InputError, PrismError
from prism.report import make_report
from prism.report._document import library
from prism.report._document import resource as report_resource
from prism.statechart import Statechart
from prism.statechart.formats._export import to_outline
from prism.watch import _looking as looking
from prism.watch._guard import Guard
from prism.watch._playing import Playing
from prism.watch._runs import Runs

_logger = logging.getLogger("prism.watch")

_TYPES = {".js": "text/javascript", ".css": "text/css"}
_SHARED = ("page.css", "figures.js")
_OWN = ("watch.css", "watch.js", "play.js")
_SECONDS_BETWEEN = 0.2
_SECONDS_OF_SILENCE = 10
_AT_ONCE = 2
_COLUMNS = {"chosen": "chosen", "by": "source", "event": "event"}
_MOST_CONNECTIONS = 64
_MOST_BODY = 1 << 16
_MOST_REQUEST = 1 << 20

Answer = Callable[[Mapping[str, str]], Any]


class _Pages:
    """What is answered: the page, its parts as JSON, and the news of a run.

    Args:
        runs: The runs that can be watched.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        # a log of gigabytes is looked through for few at a time
        self._searching = Semaphore(_AT_ONCE)
        self.stops = False

    def routes(self) -> list[Route]:
        """Return what is answered where."""
        parts: dict[str, Answer] = {
            "/runs": lambda _asked: {"runs": self._runs.listed(), "one": self._runs.is_one},
            "/head": lambda asked: self._runs.watched(asked["run"]).head(),
            "/time": lambda asked: self._runs.views(asked["run"]).over_time().to_json(),
            "/round": self._round,
            "/agents": self._agents,
            "/table": self._table,
            "/agent": self._agent,
            "/post": self._post,
        }
        return [
            Route("/", self._page),
            Route("/static/{name}", _static),
            Route("/events", self._events),
            Route("/do", self._do, methods=["POST"]),
            Route("/report", self._report),
            *(Route(path, _answering(answer)) for path, answer in parts.items()),
        ]

    async def _page(self, _request: Request) -> Response:
        template = jinja2.Template(_text("watch.html"), autoescape=True)
        page = template.render(
            title=self._runs.name, version=__version__, plays=self._runs.playing is not None
        )
        return Response(page, media_type="text/html")

    def _round(self, asked: Mapping[str, str]) -> Any:
        view = self._runs.views(asked["run"]).of_round(
            _number_in(asked, "round"), asked.get("kind", "")
        )
        found = view.to_json()
        self._runs.watched(asked["run"]).shown()
        return found

    def _agent(self, asked: Mapping[str, str]) -> Any:
        with self._searching:
            number = _number_in(asked, "round")
            return self._runs.views(asked["run"]).of_agent(asked["agent"], number).to_json()

    def _post(self, asked: Mapping[str, str]) -> Any:
        return self._runs.views(asked["run"]).of_post(asked["post"]).to_json()

    def _table(self, asked: Mapping[str, str]) -> Any:
        with self._searching:
            return self._runs.views(asked["run"]).agents.page(
                asked.get("words", ""), asked.get("sort", ""), _number_in(asked, "first") or 0
            )

    def _agents(self, asked: Mapping[str, str]) -> Any:
        found: Iterable[tuple[str, int]]
        watched, number = self._runs.watched(asked["run"]), _number_in(asked, "round")
        charts = self._runs.views(asked["run"]).charts
        column = next((name for name in _COLUMNS if name in asked), None)
        with self._searching:
            if "source" in asked:
                ends = asked["source"], asked["target"]
                found = looking.agents_between(watched, number, ends, charts())
            elif column is not None:
                found = looking.agents_with(watched, number, _COLUMNS[column], asked[column])
            else:
                tick = _number_in(asked, "tick")
                found = _once(looking.agents_in(watched, number, asked["state"], charts(), tick))
        rows = [{"agent": agent, "times": times} for agent, times in found]

        return {"agents": rows[: looking.MOST_AGENTS], "found": len(rows)}

    async def _report(self, request: Request) -> Response:
        """Make the page that a run can be kept as."""
        try:
            watched = self._runs.watched(request.query_params["run"])
            page = await run_in_threadpool(
                lambda: make_report(read_log(watched.path)).html().encode()
            )
        except (KeyError, PrismError) as error:
            return _problem(error)

        # it brings a content policy of its own, which names its scripts
        headers = {
            "Content-Disposition": 'attachment; filename="report.html"',
            "Content-Security-Policy": "sandbox",
        }
        return Response(page, media_type="text/html", headers=headers)

    async def _do(self, request: Request) -> Response:
        """Carry out what the page asks of the world that is played."""
        playing, body = self._runs.playing, await _body_of(request)
        if playing is None or body is None:
            return _problem(InputError("there is no world to play with, or no action"))
        try:
            done = await run_in_threadpool(playing.do, body)
        except (PrismError, OSError) as error:
            return _problem(error)

        return Response(_as_json(done), media_type="application/json")

    async def _events(self, request: Request) -> Response:
        try:
            name = request.query_params["run"]
            if name or self._runs.playing is None:
                await run_in_threadpool(self._runs.watched, name)
        except (KeyError, PrismError) as error:
            return _problem(error)

        return StreamingResponse(self._news(request, name), media_type="text/event-stream")

    async def _news(self, request: Request, name: str) -> AsyncIterator[bytes]:
        """Yield the head of the page whenever it has changed."""
        versions, silent = (-1, -1), 0.0
        while not self.stops and not await request.is_disconnected():
            try:
                watched = await run_in_threadpool(self._runs.watched, name) if name else None
            except PrismError:  # it is gone, as the page is told when it asks again
                return
            playing = self._runs.playing
            now = watched.version if watched else 0, playing.version if playing else 0
            if now != versions:
                versions, silent = now, 0.0
                head = await run_in_threadpool(watched.head) if watched else None
                play = await run_in_threadpool(playing.told) if playing else None
                yield b"data: " + _as_json({"head": head, "play": play}) + b"\n\n"
            elif silent > _SECONDS_OF_SILENCE:
                silent = 0.0
                yield b": still here\n\n"

            await sleep(_SECONDS_BETWEEN)
            silent += _SECONDS_BETWEEN


def _answering(answer: Answer) -> Callable[[Request], Any]:
    async def answered(request: Request) -> Response:
        try:
            data = await run_in_threadpool(answer, dict(request.query_params))
        except (KeyError, ValueError, PrismError, OSError) as error:
            return _problem(error)
        except Exception as error:
            _logger.exception("the page could not be answered")
            return _problem(error, 500)

        return Response(_as_json(data), media_type="application/json")

    return answered


async def _body_of(request: Request) -> dict[str, Any] | None:
    """Return what a request holds: an object of JSON, which no form of another page can send."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return None

    data = b""
    async for part in request.stream():
        data += part
        if len(data) > _MOST_BODY:
            return None
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _as_json(data: Any) -> bytes:
    return orjson.dumps(data, option=orjson.OPT_NON_STR_KEYS, default=str)


def _problem(error: Exception, status: int = 400) -> Response:
    if isinstance(error, KeyError):
        said = f"the address has no {error.args[0]}"
    elif isinstance(error, (PrismError, ValueError, OSError)):
        said = str(error)
    else:
        said = f"prism failed ({type(error).__name__}); its log has the traceback"

    body = _as_json({"problem": said})
    return Response(body, status_code=status, media_type="application/json")


def _number_in(asked: Mapping[str, str], name: str) -> int | None:
    text = asked.get(name, "")
    if text in ("", "null"):
        return None
    if not text.isdecimal() or len(text) > 18:
        raise InputError(f"there is no {name} {text[:40]!r}")
    return int(text)


def _once(agents: Iterable[str]) -> list[tuple[str, int]]:
    return [(agent, 1) for agent in agents]


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name == "library.js":
        text = await run_in_threadpool(library().result)
    elif name in _SHARED:
        text = report_resource(name)
    elif name in _OWN:
        text = _text(name)
    else:
        return Response(f"there is no {escape(name)}", status_code=404, media_type="text/plain")

    return Response(
        text, media_type=_TYPES[Path(name).suffix], headers={"Cache-Control": "no-cache"}
    )


@cache
def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


class Watching:
    """A server that shows runs; it ends with ``stop()``, or with the process.

    Args:
        runs: The runs.
        host: The host to listen on.
        port: The port; 0 takes a free one.

    Raises:
        InputError: If the port is taken.

    Attributes:
        url: The address to open, which is good for one browser, once.
    """

    def __init__(self, runs: Runs, host: str = "127.0.0.1", port: int = 0) -> None:
        library()  # bundled while the first log is read
        self._runs = runs
        self._socket = _bound(host, port)
        self._pages = _Pages(runs)
        number = self._socket.getsockname()[1]
        guard = Guard(Starlette(routes=self._pages.routes()), host, number)
        shown = f"[{host}]" if ":" in host else host
        self.url: str = f"http://{shown}:{number}/?token={guard.token}"
        config = uvicorn.Config(
            guard,  # an application of ASGI
            log_level="error",
            access_log=False,
            lifespan="off",
            server_header=False,
            limit_concurrency=_MOST_CONNECTIONS,
            # an id of an agent may be long, and arrive in parts
            h11_max_incomplete_event_size=_MOST_REQUEST,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread: Thread | None = None

    def run(self) -> None:
        """Answer until the user interrupts."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._close()

    def start(self) -> None:
        """Answer in a thread of its own."""
        self._thread = Thread(target=self.run, name="prism-watch-server", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop answering."""
        self._pages.stops = True
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()

    def wait(self) -> None:
        """Wait until it has stopped."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(_SECONDS_BETWEEN)

    def open(self) -> None:
        """Show the page in the user's browser."""
        webbrowser.open(self.url)

    def _repr_html_(self) -> str:
        link = escape(self.url)
        return f'<a href="{link}" target="_blank" rel="noopener">Watch the run in a window</a>'

    def _close(self) -> None:
        self._pages.stops = True
        self._socket.close()
        self._runs.close()


def watch(
    run: PathLike[str] | str,
    charts: Iterable[Statechart[Any]] = (),
    *,
    host: str = "127.0.0.1",
    port: int = 0,
) -> Watching:
    """Show a run, or the runs below a folder, in a page that follows them.

    Nothing is written to the folder: the run may be under way in this process or in another, have
    ended, or have been killed.

    Args:
        run: The folder of the run, its log, or a folder with runs below it.
        charts: The charts that runs follow, if they are your own; see `prism.report.make_report`.
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
    watching = Watching(Runs(Path(run), diagrams), host, port)
    watching.start()

    return watching


def play(
    world: str, given: Mapping[str, Any], *, host: str = "127.0.0.1", port: int = 0
) -> Watching:
    """Show a world to play with; see `watch`.

    Args:
        world: Its short name, ``package.module:Name`` or ``file.py:Name``.
        given: What it begins with: ``agents``, ``seed``, ``parameters`` and ``model``.
        host: The host to listen on.
        port: The port; 0 takes a free one.

    Raises:
        InputError: If the port is taken.
    """
    runs = Runs(Playing({**given, "world": world}), name=world)
    try:
        watching = Watching(runs, host, port)
    except InputError:
        runs.close()
        raise
    watching.start()

    return watching


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once only where it knows the protocol; a browser would wait 40 ms else
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # a browser that is quicker than the server waits
        listening.listen()
    except OSError as error:
        listening.close()
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror}") from None

    return listening
