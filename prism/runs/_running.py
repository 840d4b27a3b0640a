"""Beginning, resuming and replaying a run of anything that can be run in rounds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from prism.errors import InputError
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
from prism.runs._heartbeat import beating, remove_heartbeat
from prism.runs._model import (
    askers_in,
    closing_cache,
    load_model,
    record_prompts,
    spent_by,
)
from prism.runs._runnable import ResultsT, Runnable, RunOptions

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
            stack.enter_context(beating(folder.path, run, clock, observer.warn))

        _load_models(run, options.deadline, observer)
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


def _load_models(run: Runnable[Any], deadline: float | None, observer: Observer) -> None:
    """Load the model that decides, and that of a writer who has clients of its own."""
    reasoner, writer = run.reasoner, getattr(run, "writer", None)
    # a table of models for nobody is told before minutes are spent on loading
    for asker in (reasoner, writer):
        check = getattr(asker, "check_agents", None)
        if check is not None and hasattr(run, "agents") and not run.finished:
            check(run.agents)

    load_model(reasoner, deadline, observer.note, observer.warn)
    loaded = {id(each.client) for each in askers_in(reasoner)}
    if any(id(each.client) not in loaded for each in askers_in(writer)):
        load_model(writer, deadline, observer.note, observer.warn)


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
