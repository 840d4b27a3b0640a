"""Carrying out a run: from its beginning, again from its journal, or as a replay."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from prism._faults import Place, place_of
from prism.errors import InputError
from prism.llm import Model
from prism.llm._addresses import with_credentials
from prism.llm._model import LostClient
from prism.reasoner._router import Router, costs_by_model
from prism.reasoner._slots import Pool
from prism.reasoner._spending import loop_time
from prism.runs._documents import Documents, documents
from prism.runs._folder import SUMMARY_NAME, RunFolder, describe_run, read_summary
from prism.runs._journal import (
    Journal,
    JournalledPart,
    journalled,
    restore_spending,
)
from prism.runs._options import Repeats, models_of, with_client
from prism.runs._prices import prices_of, with_money
from prism.runs._status import beating, remove_heartbeat
from prism.telemetry.loggers import LateLogger, describe

if TYPE_CHECKING:
    from prism.statechart import Reasoner, Writer

_logger = logging.getLogger("prism.runs")


class Observer:
    """Receives what a run reports.

    This one logs it to ``prism.runs``; subclasses override the methods.
    """

    def note(self, message: str) -> None:
        """Receive a note, such as the round after which a run continues."""
        _logger.info(message)

    def warn(self, message: str) -> None:
        """Receive a problem that was handled, such as a file that has changed."""
        _logger.warning(message)

    def started(self, run: Any) -> None:
        """Receive the run before its first round, or before the first after a resume."""

    def is_to_stop(self) -> bool:
        """Return True to stop the run, as with Ctrl-C.

        Called at the end of every round except the last.
        """
        return False


_NOTED = (
    *("prism.agents", "prism.statechart", "prism.llm", "prism.runs.models", "prism.programs"),
)
"""Loggers of warnings that are not in a run's log."""


@contextmanager
def telling_warnings(observer: Observer) -> Iterator[None]:
    """Pass warnings that are not in the run's log to its observer."""
    loggers = list(map(logging.getLogger, _NOTED))
    handler = _Teller(observer)
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


class _Teller(logging.Handler):
    def __init__(self, observer: Observer) -> None:
        super().__init__(logging.WARNING)
        self._observer = observer
        self._told: set[tuple[Place | None, type]] = set()

    def emit(self, record: logging.LogRecord) -> None:
        event: Mapping[str, Any] | None = getattr(record, "prism", None)
        if event is None:
            self._observer.warn(record.getMessage())
        elif record.levelno >= logging.ERROR and record.exc_info and record.exc_info[1]:
            # of a run without a folder, whose summary counts everything but faults
            self._tell_fault(event["event"], record.exc_info[1])

    def _tell_fault(self, event: str, error: BaseException) -> None:
        """Warn of a fault in the user's code, once for each line."""
        place, what = place_of(error), describe(error)
        if (place, type(error)) not in self._told:
            self._told.add((place, type(error)))
            fault = what if place is None else f"{place}: {what}"
            self._observer.warn(f"{fault} ({event}; told once, a kept run has all in its log)")


ResultsT = TypeVar("ResultsT")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[ResultsT]):
    """A finished run.

    Args:
        results: Its results.
        summary: The contents of ``run.json``: the version, the run's configuration, and the
            results.
        folder: Its folder, if it is kept.
    """

    results: ResultsT
    summary: dict[str, Any]
    folder: Path | None

    def __repr__(self) -> str:
        """Show the type of the results and where they are kept."""
        where = "not kept" if self.folder is None else f"kept in {self.folder}"
        return f"<Outcome: {type(self.results).__name__}, {where}>"


def go_on(
    folder: Path | str,
    kind: Any,
    *,
    hosts: Sequence[str] = (),
    model: Any = None,
    application: Mapping[str, Any] | None = None,
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
) -> Outcome[Any] | None:
    """Continue a run that was stopped; see `prism.worlds.resume`.

    Args:
        folder: The folder of the run.
        kind: Reads the run's options.
        hosts: Addresses of its servers with names and passwords.
        model: The client of another library that it asks.
        application: What the application provides to a single agent.
        on_round: Called with every round when it ends.
        observer: Receives reports of the run.
    """
    path = Path(folder)
    kept, config = RunFolder.to_resume(path)
    if config is None:
        # it may have been killed after its last line, before the folder was cleaned up
        remove_heartbeat(path)
        return None

    summary = path / SUMMARY_NAME
    kind.from_config(config, summary)  # reports damage first
    observer = observer or Observer()
    options = kind.from_config(with_credentials(config, hosts, summary), summary)
    if model is not None:
        options = with_client(options, model)
    options = _with_application(options, application)
    has_changed = warn_of_changes(config, options, observer)
    # the same code without a model does the same, so that nobody need compare its log
    if options.is_repeatable and not has_changed:
        kept.skip_rounds()

    return carry_out(options, kept, on_round=on_round, observer=observer)


def repeat(
    recorded: Path | str,
    kind: Any,
    folder: Path | str | None = None,
    *,
    application: Mapping[str, Any] | None = None,
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
) -> Outcome[Any]:
    """Run an earlier run again; see `prism.worlds.replay`.

    Args:
        recorded: The folder of the earlier run.
        kind: Reads the run's options.
        folder: Where to keep the new run.
        application: What the application provides to a single agent.
        on_round: Called with every round when it ends.
        observer: Receives reports of the run.
    """
    path = Path(recorded)
    config = read_summary(path)["config"]
    observer = observer or Observer()
    options = kind.from_config(config, path / SUMMARY_NAME)
    warn_of_changes(config, options, observer)
    options = _with_application(options.repeating(path), application)

    kept = None if folder is None else RunFolder.for_new(Path(folder))
    return carry_out(options, kept, on_round=on_round, observer=observer)


def warn_of_changes(config: Mapping[str, Any], options: Any, observer: Observer) -> bool:
    """Report files that have changed since a run began; it goes on while it does the same.

    Returns:
        Whether there are any.
    """
    began = config.get("inputs", {})
    try:
        now = options.digests()
    except InputError as error:
        observer.warn(str(error))
        return True
    changed = [name for name, digest in now.items() if began.get(name) != digest]
    for name in changed:
        observer.warn(
            f"{name}: has changed since the run began, which goes on while it does the same"
        )
    return bool(changed)


def _with_application(options: Any, application: Mapping[str, Any] | None) -> Any:
    """Return a run with what an application provides to its agent, if anything."""
    if application is None:
        return options
    if not hasattr(options, "application"):
        raise InputError("is for single agents: leave it out", field="application")

    return options.replace(application=application)


def carry_out(
    options: Any,
    folder: RunFolder | None,
    *,
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
    told: bool = True,
) -> Outcome[Any]:
    """Carry out a run.

    Args:
        options: The run.
        folder: Where to keep it; nothing is written without one.
        on_round: Called with every round when it ends, after it was kept.
        observer: What to notify about the run. By default, it is logged to ``prism.runs``.
        told: Whether the outcome includes the run's configuration.
    """
    observer = observer or Observer()
    logger = None if folder is None else LateLogger()
    models = list(models_of(options))
    with ExitStack() as stack:
        repeats: Repeats | None = options.repeats
        asks = repeats is None or repeats.asks
        if asks:
            _require_clients(models)
        held = stack.enter_context(_documents_of(folder, repeats))
        run = options.prepare(logger)
        # before a round has changed anything
        config = options.to_config() if told else {}
        charts = getattr(options, "charts", ()) if told else ()
        if folder is not None and logger is not None:
            at_once = getattr(options, "writes_at_once", False)
            writing = folder.writing(
                config, run.clock, charts=charts, repeats=repeats, at_once=at_once
            )
            logger.opened = stack.enter_context(writing)
            logger.is_silent = folder.skipped > 0
            _begin_keeping(run, models, folder, stack, observer)
            if folder.is_new:
                held.keep_before()
        elif repeats is not None:
            _take_from(run, Journal(repeats=repeats))
        if models and asks:
            _load_models(run, options, observer)
        observer.started(run)
        results = run.run(_after_rounds(run, folder, on_round, observer, logger))
        outcome = {"results": results.to_dict(), **spent_by(*_askers(run), models=models)}
        if folder is not None:
            held.keep()
            folder.complete(outcome)

    summary = describe_run(config, outcome, charts)
    return Outcome(results, summary, getattr(folder, "path", None))


def _require_clients(models: Sequence[Model]) -> None:
    """Refuse to ask a client that no folder could keep, and that was not given again."""
    for model in models:
        if isinstance(model.client, LostClient):
            raise model.client.error()


def _documents_of(
    folder: RunFolder | None, repeats: Repeats | None
) -> AbstractContextManager[Documents]:
    """Collect the documents of a run's agents; one that repeats another changes no other file."""
    path = None if folder is None else folder.path
    if path is None and repeats is None:
        return nullcontext(Documents())
    is_resumed = folder is not None and not folder.is_new
    before = repeats.run if repeats is not None else path if is_resumed else None
    return documents(path, before, is_trial=repeats is not None)


def _begin_keeping(
    run: Any,
    models: Sequence[Model],
    folder: RunFolder,
    stack: ExitStack,
    observer: Observer,
) -> None:
    """Let a run write its journal and its heartbeat."""
    journal = folder.journal
    assert journal is not None
    # some keep files of their own there
    run.kept_in(folder.path)
    _take_from(run, journal)
    if not folder.is_new:
        number = len(journal.earlier)
        observer.note(f"{folder.path}: carrying it out again with {number:,} answers, then on")
    spent = partial(spent_by, *_askers(run), models=models)
    asked = partial(asked_by, *_askers(run))
    stack.enter_context(
        beating(folder.path, run, run.clock, observer.warn, lambda: {**spent(), **asked()})
    )


def _take_from(run: Any, journal: Journal) -> None:
    """Let a run take its answers from a journal as far as it goes, and add to it."""
    for asker in _askers(run):
        journalled(asker, journal)
    asking = [asker for who in _askers(run) for asker in askers_in(who)]
    if asking:
        # all share one
        restore_spending(asking[0].budget, journal)


def _after_rounds(
    run: Any,
    folder: RunFolder | None,
    on_round: Callable[[Any], object] | None,
    observer: Observer,
    logger: LateLogger | None,
) -> Callable[[Any], None]:
    """Return a function that keeps and reports every round, and may stop the run."""

    def after_round(summary: Any) -> None:
        if folder is not None and logger is not None:
            folder.round_ended()
            logger.is_silent = len(run.finished) < folder.skipped
        if on_round is not None:
            on_round(summary)
        if len(run.finished) < run.rounds and observer.is_to_stop():
            raise KeyboardInterrupt

    return after_round


def _askers(run: Any) -> tuple[Any, Any]:
    """Return the reasoner and the writer, if any."""
    return run.reasoner, getattr(run, "writer", None)


def _load_models(run: Any, options: Any, observer: Observer) -> None:
    """Load the model that decides, and that of a writer with its own clients."""
    reasoner, writer = _askers(run)
    # a run without a model does not load the code that asks one
    from prism.runs._loading import load_model

    decide, write = askers_in(reasoner), askers_in(writer)
    loaded = {id(each.client) for each in decide}
    other = write if any(id(each.client) not in loaded for each in write) else []
    for asking, who in ((decide, reasoner), (other, writer)):
        if asking:
            may_end = getattr(who, "stop_at", None) is not None
            telling = observer.note, observer.warn
            run_to_end(load_model(asking, options.deadline, *telling, may_end=may_end))


Say = Callable[[str], None]


def askers_in(reasoner: Any) -> list[Reasoner | Writer]:
    """Return everything that asks a model: a reasoner or writer, or the parts of a router."""
    if isinstance(reasoner, Router):
        return [asking for part in reasoner.parts.values() for asking in askers_in(part)]
    reasoner = reasoner.part if isinstance(reasoner, JournalledPart) else reasoner
    if not hasattr(reasoner, "client"):
        return []

    # a run without a model does not load the code that asks one
    from prism.statechart import Reasoner, Writer

    return [reasoner] if isinstance(reasoner, (Reasoner, Writer)) else []


def spent_by(*reasoners: Any, models: Sequence[Model] = ()) -> dict[str, Any]:
    """Return the use of models for ``run.json``, or nothing if none was asked.

    Args:
        reasoners: The reasoner and the writer.
        models: All models that the run may ask, some with prices.
    """
    asking = [each for reasoner in reasoners for each in askers_in(reasoner)]
    if not asking:
        return {}

    # all share one
    budget = asking[0].budget
    prices = prices_of(models)
    by_model = with_money(costs_by_model(*reasoners), prices)
    trials = with_money(_trials_of(asking), prices)
    costs = [*by_model.values(), *trials.values()]
    money = [each["money"] for each in costs if "money" in each]
    told: dict[str, Any] = {"calls": budget.calls, "tokens": budget.tokens}
    if money:
        told["money"] = round(sum(money), 6)
    parts = {"by_model": by_model, "trials": trials, "places": _places_of(reasoners)}

    return {"spent": {**told, **{name: part for name, part in parts.items() if part}}}


def _places_of(reasoners: Sequence[Any]) -> dict[str, list[int]]:
    """Return how often a model chose each place in its list of options."""
    counted = (getattr(each, "places", None) for each in reasoners)
    return next((places.to_dict() for places in counted if places is not None), {})


def _trials_of(asking: Iterable[Any]) -> dict[str, dict[str, int]]:
    """Return the cost of trying servers since the run was begun or resumed, by model."""
    found: dict[str, Counter[str]] = {}
    for asker in asking:
        cost = asker.trial
        if cost.attempts:
            found.setdefault(asker.client.model, Counter()).update(
                calls=cost.attempts,
                input_tokens=cost.input_tokens or 0,
                output_tokens=cost.output_tokens or 0,
            )

    return {model: dict(counts) for model, counts in sorted(found.items())}


_MOST_OPEN = 10
_MOST_CHARACTERS = 600


def asked_by(*reasoners: Any) -> dict[str, Any]:
    """Return the open requests for the heartbeat, or nothing if no model is asked.

    Args:
        reasoners: The reasoner and the writer.
    """
    askers = [each for reasoner in reasoners for each in askers_in(reasoner)]
    if not askers:
        return {}

    # decisions and texts may have the same one
    pools = {id(each.pool): each.pool for each in askers if isinstance(each.pool, Pool)}.values()
    waiting = sum(pool.waiting for pool in pools)

    return {"asking": {"open": _requests_of(askers), "hosts": _hosts_of(pools), "waiting": waiting}}


def _requests_of(askers: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the data of the open requests, the oldest first."""
    requests = [request for each in askers for request in tuple(each.open.values())]
    requests.sort(key=lambda request: request.since)
    now = loop_time()

    return [
        {
            "text": request.text[:_MOST_CHARACTERS],
            "model": request.model,
            "seconds": round(now - request.since, 1),
        }
        for request in requests[:_MOST_OPEN]
    ]


def _hosts_of(pools: Iterable[Pool]) -> list[dict[str, Any]]:
    return [
        {
            "address": host.address,
            "in_flight": host.open,
            "limit": host.limit,
        }
        for pool in pools
        for host in pool.servers
    ]


ResultT = TypeVar("ResultT")

_Running = tuple[asyncio.AbstractEventLoop, "asyncio.Task[Any] | None"]


def run_to_end(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end, and return its result.

    A notebook runs its cells in an event loop, and no other loop may run in the same thread. There,
    the coroutine gets its own thread, for which this one waits.
    """
    if _is_looping():
        return _run_apart(main)

    results: list[ResultT] = []

    async def keep() -> None:
        results.append(await main)

    # asyncio formats the result of its main coroutine, which takes long for many rounds
    asyncio.run(keep())
    return results[0]


def _is_looping() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_apart(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine in a thread, which is not the one that receives an interruption."""
    running: Future[_Running] = Future()

    async def noted() -> ResultT:
        running.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        return await main

    with ThreadPoolExecutor(1, "prism-run") as pool:
        done = pool.submit(copy_context().run, asyncio.run, noted())
        try:
            return done.result()
        except KeyboardInterrupt:
            loop, task = running.result()
            if task is not None and not done.done():
                loop.call_soon_threadsafe(task.cancel)
            wait([done])
            raise
