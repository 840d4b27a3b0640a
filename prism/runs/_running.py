"""Beginning, resuming and replaying a run of anything that can be run in rounds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from prism.errors import (
    InputError,
    LLMError,
    ModelMissingError,
    OverloadedError,
    TimedOutError,
    UnreachableError,
)
from prism.runlog import SimulatedClock
from prism.runlog._prompts import PRIVATE
from prism.runs._checkpoints import DEFAULT_SECONDS_BETWEEN
from prism.runs._credentials import with_credentials
from prism.runs._folder import (
    SUMMARY_NAME,
    RunFolder,
    describe_run,
    read_summary,
)
from prism.runs._runnable import ResultsT, Runnable, RunOptions
from prism.runs._status import beating, remove_heartbeat
from prism.statechart.reasoner._by_agent import ReasonerByAgent, WriterByAgent, costs_told

if TYPE_CHECKING:
    from prism.llm import ModelPool
    from prism.llm._host import ModelHost
    from prism.statechart import Reasoner, Writer
    from prism.statechart.reasoner._recording import PromptRecord

_RECORDS_PROMPTS = "record_prompts"
_logger = logging.getLogger("prism.runs")


class Observer:
    """What a run says while it goes on. This one logs it to ``prism.runs``; others override it."""

    def note(self, message: str) -> None:
        """Receive what is good to know, such as the round after which a run goes on."""
        _logger.info(message)

    def warn(self, message: str) -> None:
        """Receive what went wrong and was dealt with, such as a damaged checkpoint."""
        _logger.warning(message)

    def started(self, run: Runnable[Any]) -> None:
        """Receive the run when its first round, or the first after a resume, is about to begin."""

    def is_to_stop(self) -> bool:
        """Return True to stop the run, as Ctrl-C would, but behind a checkpoint.

        It is asked at the end of every round but the last.
        """
        return False


@dataclass(frozen=True, slots=True)
class Outcome(Generic[ResultsT]):
    """A run that has come to its end.

    Args:
        results: What came of it.
        summary: What ``run.json`` says: the version, what the run was, and the results.
        folder: Where it is kept, if anywhere.
    """

    results: ResultsT
    summary: dict[str, Any]
    folder: Path | None

    def __repr__(self) -> str:
        """Say what the results are and where they are kept; they themselves fill pages."""
        where = "not kept" if self.folder is None else f"kept in {self.folder}"
        return f"<Outcome: {type(self.results).__name__}, {where}>"


def begin(
    options: RunOptions[ResultsT],
    folder: Path | str | None = None,
    *,
    on_round: Callable[[Any], object] | None = None,
    checkpoint_every: float = DEFAULT_SECONDS_BETWEEN,
    observer: Observer | None = None,
) -> Outcome[ResultsT]:
    """Run something from its beginning to its end.

    Args:
        options: What the run is, such as a `prism.social.SocialRun`.
        folder: Where to keep it; nothing is written without one. A folder that holds a run is
            refused.
        on_round: Called with every round as it ends, after it has been kept.
        checkpoint_every: A round that ends so many seconds after the last checkpoint gets one; 0
            for every round. Options that have a ``checkpoint_every`` of their own know better.
        observer: What to tell of the run; by default it is logged to ``prism.runs``.

    Raises:
        PrismError: If the run turns out to be impossible. One that fails in its first round leaves
            no folder.
        TooManyFallbacksError: If its model failed too often. It can be resumed.
        OSError: If it cannot be written down. It can be resumed.
    """
    kept = None if folder is None else RunFolder.for_new(Path(folder))
    return _carry_out(options, kept, on_round, checkpoint_every, observer or Observer())


def resume(
    folder: Path | str,
    kind: type[RunOptions[ResultsT]],
    *,
    hosts: Sequence[str] = (),
    on_round: Callable[[Any], object] | None = None,
    checkpoint_every: float = DEFAULT_SECONDS_BETWEEN,
    observer: Observer | None = None,
) -> Outcome[ResultsT] | None:
    """Go on with a run that was stopped, in whatever way, from its last checkpoint to its end.

    Its log is the same, to the byte, as that of a run which was never stopped; unless a model
    decides.

    Args:
        folder: Where it is kept.
        kind: Class of its options, such as `prism.social.SocialRun`.
        hosts: Addresses of its servers with names and passwords, which no run keeps. Those that
            are missing here are taken from the environment variable ``OLLAMA_HOST``.
        on_round: Called with every round as it ends, after it has been kept.
        checkpoint_every: A round that ends so many seconds after the last checkpoint gets one; 0
            for every round.
        observer: What to tell of the run; by default it is logged to ``prism.runs``.

    Returns:
        What came of it; None if the run was complete already.

    Raises:
        InputError: If the folder holds no run, another version of prism began it, another process
            is writing it, a file that it reads has changed, or a host's password is missing.
        OSError: If it cannot be written down. It can be resumed again.
    """
    path = Path(folder)
    kept, config = RunFolder.to_resume(path)
    if config is None:
        # it may have been killed after its last line, before its folder was tidy
        kept.tidy()
        remove_heartbeat(path)
        return None

    summary = path / SUMMARY_NAME
    kind.from_config(config, summary)  # what is damaged is said first
    options = kind.from_config(with_credentials(config, hosts, summary), summary)

    return _carry_out(options, kept, on_round, checkpoint_every, observer or Observer())


def replay(
    recorded: Path | str,
    kind: type[RunOptions[ResultsT]],
    folder: Path | str | None = None,
    *,
    on_round: Callable[[Any], object] | None = None,
    checkpoint_every: float = DEFAULT_SECONDS_BETWEEN,
    observer: Observer | None = None,
) -> Outcome[ResultsT]:
    """Run an earlier run again, with the decisions that its log holds; it writes the same log.

    Args:
        recorded: The folder of the earlier run.
        kind: Class of its options, such as `prism.social.SocialRun`.
        folder: Where to keep the new run; nothing is written without one.
        on_round: Called with every round as it ends, after it has been kept.
        checkpoint_every: A round that ends so many seconds after the last checkpoint gets one; 0
            for every round.
        observer: What to tell of the run; by default it is logged to ``prism.runs``.

    Raises:
        InputError: If there is no run in the folder, or a file that it reads has changed.
        ReplayError: If the log does not hold a decision that is needed.
        OSError: If the new run cannot be written down. It can be resumed.
    """
    path = Path(recorded)
    config = read_summary(path)["config"]
    options = kind.from_config(config, path / SUMMARY_NAME).replaying(path)

    return begin(
        options, folder, on_round=on_round, checkpoint_every=checkpoint_every, observer=observer
    )


def _carry_out(
    options: RunOptions[ResultsT],
    folder: RunFolder | None,
    on_round: Callable[[Any], object] | None,
    checkpoint_every: float,
    observer: Observer,
) -> Outcome[ResultsT]:
    make = options.prepare()
    seconds_between: float = getattr(options, "checkpoint_every", checkpoint_every)
    config = options.to_config()
    keeps_prompts = _records_prompts(config)
    if folder is None and keeps_prompts:
        problem = "needs a folder to keep prompts in (--out)"
        raise InputError(problem, field=_RECORDS_PROMPTS)

    with ExitStack() as stack:
        if folder is None:
            run = make(None, None)
        else:
            clock = SimulatedClock()
            writing = folder.writing(
                config, clock, is_repeatable=options.is_repeatable, keeps_prompts=keeps_prompts
            )
            run = make(stack.enter_context(writing), clock)

        writer = getattr(run, "writer", None)
        for asker in (run.reasoner, writer):
            stack.enter_context(closing_cache(asker, observer.warn))
        if folder is not None:
            _tell_folder(folder, run)
            _record_prompts(folder, run, observer)
            _restore(folder, run, observer)
            spent = partial(spent_by, run.reasoner, writer)
            stack.enter_context(beating(folder.path, run, clock, observer.warn, spent))

        _load_models(run, options, observer)
        observer.started(run)

        def after_round(summary: Any) -> None:
            stops = len(run.finished) < run.rounds and observer.is_to_stop()
            if folder is not None:
                folder.keep(run, seconds_between=0 if stops else seconds_between)
            if on_round is not None:
                on_round(summary)
            if stops:
                raise KeyboardInterrupt

        results = run.run(after_round)
        outcome = {"results": results.to_dict(), **spent_by(run.reasoner, writer)}
        if folder is not None:
            folder.complete(outcome)

    return Outcome(results, describe_run(config, outcome), None if folder is None else folder.path)


def _load_models(run: Runnable[Any], options: RunOptions[Any], observer: Observer) -> None:
    """Load the model that decides, and that of a writer who has clients of its own."""
    reasoner, writer = run.reasoner, getattr(run, "writer", None)
    # a table of models for nobody is told before minutes are spent on loading
    for asker in (reasoner, writer):
        check = getattr(asker, "check_agents", None)
        if check is not None and hasattr(run, "agents") and not run.finished:
            check(run.agents)

    decide, write = askers_in(reasoner), askers_in(writer)
    if decide:
        load_model(reasoner, options.deadline, observer.note, observer.warn)
    loaded = {id(each.client) for each in decide}
    if any(id(each.client) not in loaded for each in write):
        load_model(writer, options.deadline, observer.note, observer.warn)


def _records_prompts(config: Mapping[str, Any]) -> bool:
    """Return whether a run's prompts and replies are kept: of its model, or its writer's own."""
    writer = config.get("writer")
    model = writer.get("model") if isinstance(writer, Mapping) else None
    asking = (config, model if isinstance(model, Mapping) else {})

    return any(each.get(_RECORDS_PROMPTS) is True for each in asking)


def _record_prompts(folder: RunFolder, run: Runnable[Any], observer: Observer) -> None:
    if folder.prompts is not None:
        record_prompts(run, folder.prompts)
        observer.note(f"{folder.prompts.path}: {PRIVATE}")


def _tell_folder(folder: RunFolder, run: Runnable[Any]) -> None:
    """Tell a run where it is kept, if it has files of its own to keep there."""
    kept_in = getattr(run, "kept_in", None)
    if kept_in is not None:
        kept_in(folder.path)


def _restore(folder: RunFolder, run: Runnable[Any], observer: Observer) -> None:
    folder.restore(run)
    for fault in folder.faults:
        observer.warn(fault)

    if not folder.is_new:
        done = len(run.finished)
        place = (
            f"going on after round {done}" if done else "beginning again, as there is no checkpoint"
        )
        observer.note(f"{folder.path}: {place}")


QUIET_SECONDS = 2.0
_SEE_DOCTOR = "(see: prism doctor)"
_WILL_FALL_BACK = (ModelMissingError, OverloadedError, TimedOutError, UnreachableError)

Say = Callable[[str], None]
Look = Callable[["ModelHost"], Awaitable[str]]
"""Asks a server for something of the kind that the run asks for."""


def askers_in(reasoner: Any) -> list[Reasoner | Writer]:
    """Return all that ask a model: a reasoner or writer, or the parts of one by agent."""
    # whoever is asked where a run parts from the one that it repeats
    reasoner = getattr(reasoner, "otherwise", None) or reasoner
    is_by_agent = isinstance(reasoner, (ReasonerByAgent, WriterByAgent))
    parts: Sequence[Any] = list(reasoner.parts.values()) if is_by_agent else [reasoner]
    asking = [part for part in parts if hasattr(part, "client")]
    if not asking:
        return []

    # a run without a model does not load what asks one
    from prism.statechart import Reasoner, Writer

    return [part for part in asking if isinstance(part, (Reasoner, Writer))]


def load_model(
    reasoner: Any,
    deadline: float | None,
    note: Say,
    warn: Say,
    *,
    quiet_seconds: float = QUIET_SECONDS,
) -> None:
    """Load the model, on one server at least, and say at once what would make decisions fall back.

    Where agents have different models, all are loaded at the same time.

    Args:
        reasoner: Who decides or writes; nothing happens unless it asks a pool of servers.
        deadline: Seconds that the run may ask for; it waits no longer for the model, either.
        note: Receives that loading takes its time.
        warn: Receives what is wrong with a server.
        quiet_seconds: How long loading may take without a note.
    """
    asking = askers_in(reasoner)
    if not asking:
        return

    from prism.llm import ModelPool
    from prism.statechart import Writer

    # several groups of agents may have the same model, at the same servers
    pools = {
        (pool.model, *pool.hosts): (pool, isinstance(asker, Writer))
        for asker in asking
        if isinstance(pool := asker.client, ModelPool)
    }
    if not pools:
        return

    found = run_to_end(_warm_up_all(pools.values(), deadline, note, quiet_seconds))
    for (pool, writes), troubles in zip(pools.values(), found, strict=True):
        # a decision without an answer falls back; a text is missing
        what, lost = ("text", "be missing") if writes else ("decision", "fall back")
        whose = f" of {pool.model}" if len(pools) > 1 else ""
        _tell(
            troubles, len(pool.hosts), (f"{what}s will {lost}", f"{what}{whose} will {lost}"), warn
        )


def _tell(troubles: Sequence[str], hosts: int, lost: tuple[str, str], warn: Say) -> None:
    """Say what is wrong with some servers of a pool, or with all of them."""
    if len(troubles) < hosts:
        for trouble in troubles:
            warn(f"{trouble}; its {lost[0]} {_SEE_DOCTOR}")
        return

    *others, last = troubles
    for trouble in others:
        warn(trouble)

    warn(f"{last}; until that is mended every {lost[1]} {_SEE_DOCTOR}")


async def _warm_up_all(
    pools: Collection[tuple[ModelPool, bool]],
    deadline: float | None,
    note: Say,
    quiet_seconds: float,
) -> list[list[str]]:
    from prism.llm._doctor import try_out, try_text

    found = await asyncio.gather(
        *(
            _warm_up(pool, deadline, note, quiet_seconds, try_text if writes else try_out)
            for pool, writes in pools
        )
    )
    return [[" ".join(trouble.split()) for trouble in troubles] for troubles in found]


async def _warm_up(
    pool: ModelPool, deadline: float | None, note: Say, quiet_seconds: float, look: Look
) -> list[str]:
    async with pool:
        loading = asyncio.create_task(pool.warm_up(deadline))
        done, _ = await asyncio.wait({loading}, timeout=quiet_seconds)
        if not done:
            note(f"waiting for {pool.model} to be loaded at {', '.join(pool.hosts)}")

        errors = (await loading).values()
        judged = zip(pool.servers, errors, strict=True)
        found = await asyncio.gather(
            *(_judge(host, error, deadline, look) for host, error in judged)
        )

    return [str(trouble) for trouble in found if trouble is not None]


async def _judge(
    host: ModelHost, error: LLMError | None, limit: float | None, look: Look
) -> LLMError | None:
    """Return what keeps a server from answering questions, if anything does."""
    if error is None or isinstance(error, _WILL_FALL_BACK):
        return error

    # a server other than Ollama may refuse to load a model, and serve it all the same
    try:
        async with asyncio.timeout(limit):
            await look(host)
    except (LLMError, TimeoutError) as failure:
        return failure if isinstance(failure, LLMError) else error

    return None


def record_prompts(run: Any, record: PromptRecord) -> None:
    """Have those who ask a model in a run record what they ask."""
    for who in (run.reasoner, getattr(run, "writer", None)):
        for asker in askers_in(who):
            asker.record = record


@contextmanager
def closing_cache(reasoner: Any, warn: Say) -> Iterator[None]:
    """Write the last answers to the cache's file when the run ends, and say so where that fails."""
    asking = askers_in(reasoner)
    if not asking:
        yield
        return

    from prism.llm import AnswerCache

    caches = {id(asker.cache): asker.cache for asker in asking}
    try:
        yield
    finally:
        # answers wait in memory while another process has the file locked
        for cache in caches.values():
            if isinstance(cache, AnswerCache):
                try:
                    cache.close()
                except InputError as error:
                    warn(f"{error}; the last answers are not in it")


def spent_by(*reasoners: Any) -> dict[str, Any]:
    """Return what models have cost, as ``run.json`` says it; nothing where none was asked.

    Args:
        reasoners: Who decides and who writes.
    """
    asking = [each for reasoner in reasoners for each in askers_in(reasoner)]
    if not asking:
        return {}

    # all share one
    budget = asking[0].budget
    by_model = {"by_model": costs["costs"]} if (costs := costs_told(*reasoners)) else {}

    return {"spent": {"calls": budget.calls, "tokens": budget.tokens, **by_model}}


ResultT = TypeVar("ResultT")

_Running = tuple[asyncio.AbstractEventLoop, "asyncio.Task[Any] | None"]


def run_to_end(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end, and return its result.

    A notebook runs its cells in an event loop, and no other may run in the same thread: there the
    coroutine gets a thread of its own, for which this one waits.
    """
    if _is_looping():
        return _run_apart(main)
    return asyncio.run(main)


def _is_looping() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_apart(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    running: Future[_Running] = Future()

    async def noted() -> ResultT:
        running.set_result((asyncio.get_running_loop(), asyncio.current_task()))
        return await main

    with ThreadPoolExecutor(1, "prism-run") as pool:
        done = pool.submit(copy_context().run, asyncio.run, noted())
        try:
            return done.result()
        except KeyboardInterrupt:
            # leaving the block waits for the thread, which has not heard of the interruption
            if not done.done():
                loop, task = running.result()
                if task is not None:
                    loop.call_soon_threadsafe(task.cancel)
            raise
