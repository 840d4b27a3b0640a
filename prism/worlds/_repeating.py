"""Runs of a folder: continued, or repeated; and the classes of runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from prism.runlog._reader import LOG_NAMES
from prism.runs import Observer, Outcome
from prism.runs._folder import read_summary
from prism.runs._running import go_on, repeat
from prism.worlds._addresses import alone, key_in
from prism.worlds._run import Run


def resume(
    folder: Path | str,
    *,
    model: Any = None,
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
) -> Outcome[Any] | None:
    """Continue a stopped run to its end, however it was stopped.

    The run is carried out again with the answers in its journal, and asks only where they end. Its
    log is the same, to the byte, as that of a run that was never stopped. Code that has changed is
    reported; the run goes on while it asks and logs the same.

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
    path = Path(folder)
    return go_on(
        path,
        _kind(read_summary(path)["config"]),
        model=model,
        on_round=on_round,
        observer=observer,
    )


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
    # the path of a log means its folder
    path = Path(recorded)
    path = path.parent if path.name in LOG_NAMES and path.is_file() else path
    return repeat(
        path,
        _kind(read_summary(path)["config"]),
        folder,
        on_round=on_round,
        observer=observer,
    )


def _kind(config: Mapping[str, Any]) -> Any:
    """Return the class that reads a ``run.json``."""
    key = key_in(config)
    return Run if key is None else alone(key)
