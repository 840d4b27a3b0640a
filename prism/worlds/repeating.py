"""Runs of a folder: continued, or repeated; and the classes of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from prism._version import __version__
from prism.errors import InputError
from prism.runs import Observer, Outcome, RunFolder
from prism.runs.folder import SUMMARY_NAME, read_summary
from prism.runs.options import with_client
from prism.runs.running import carry_out
from prism.worlds._run import Run


def resume(
    folder: Path | str,
    *,
    model: Any = None,
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
) -> Outcome[Any] | None:
    """Continue a stopped run to its end, however it was stopped.

    The run is carried out again with the answers in its journal, and asks a model only where they
    end. Its log has the same bytes as that of a run that was never stopped. Changed code is
    reported; the run continues as long as it asks and logs the same.

    Args:
        folder: The folder of the run.
        model: The client of another library that the run asks. No run keeps it.
        on_round: Called with every round as it ends, after it has been kept.
        observer: What to notify about the run. By default, it is logged to ``prism.runs``.

    Returns:
        The outcome; None if the run was complete already.

    Raises:
        InputError: If the folder holds no run, or another process is writing it.
        ReplayError: If it asks or logs something else than before; the message names it.
        OSError: If it cannot be written. It can be resumed again.
    """
    path, observer = Path(folder), observer or Observer()
    began = read_summary(path)
    if "results" in began:
        return None
    options: Any = Run.from_config(began["config"], path / SUMMARY_NAME)
    if model is not None:
        options = with_client(options, model)
    kept, has_changed = RunFolder(path, is_new=False), warn_of_changes(began, options, observer)
    # the same code without a model does the same, so that nobody need compare its log
    if options.is_repeatable and not has_changed:
        kept.skip_rounds()
    return carry_out(options, kept, on_round=on_round, observer=observer)


def replay(
    recorded: Path | str,
    folder: Path | str | None = None,
    *,
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
) -> Outcome[Any]:
    """Repeat an earlier run with the answers in its journal, and write the same log.

    Args:
        recorded: The folder of the earlier run.
        folder: Where to keep the new run. Without one, nothing is written.
        on_round: Called with every round as it ends, after it has been kept.
        observer: What to notify about the run. By default, it is logged to ``prism.runs``.

    Raises:
        InputError: If there is no run in the folder.
        ReplayError: If an answer is missing, or something else is asked or logged.
        OSError: If the new run cannot be written. It can be resumed.
    """
    path = Path(recorded)
    began, observer = read_summary(path), observer or Observer()
    options: Any = Run.from_config(began["config"], path / SUMMARY_NAME)
    warn_of_changes(began, options, observer)
    kept = None if folder is None else RunFolder.for_new(Path(folder))
    return carry_out(options.repeating(path), kept, on_round=on_round, observer=observer)


def warn_of_changes(began: Mapping[str, Any], options: Any, observer: Observer) -> bool:
    """Report what has changed since a run began, and return whether anything has.

    Args:
        began: Its ``run.json``.
        options: The run.
        observer: Is told the files, and the version of prism.
    """
    changes = []
    if (version := began.get("prism")) != __version__:
        changes.append(f"was begun by prism {version}, and this is {__version__}")
    try:
        inputs = began["config"].get("inputs", {})
        now = options.digests()
        changed = [name for name, digest in now.items() if inputs.get(name) != digest]
        changes += [f"{name}: has changed since the run began" for name in changed]
    except InputError as error:
        changes.append(str(error))
    for change in changes:
        observer.warn(f"{change}; the run goes on as long as it does the same")
    return bool(changes)
