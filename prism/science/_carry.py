"""One run of a batch, as the task that an executor receives, on this machine or another."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from prism._version import __version__
from prism.errors import PrismError
from prism.files import make_folder
from prism.runs import Observer
from prism.runs.folder import TRACEBACK_NAME, is_begun, read_summary
from prism.runs.observing import forwarding_warnings
from prism.runs.running import carry_out
from prism.science._batch_folder import PLAN_NAME
from prism.science.batch_tables import is_of_a_feed, with_log_measures
from prism.worlds import Run, resume

_SECONDS_BETWEEN_LOOKS = 0.1


def prepare_worker(parent: int) -> None:
    """Prepare a process of prism's own for many runs.

    Args:
        parent: The process of the batch.
    """
    # what a world prints must not be mixed with the output of the command
    os.dup2(2, 1)
    # the process of the batch handles a Ctrl-C at the terminal
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process as soon as the batch's own process is gone; every run can be resumed."""
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(1)


def task_of(folder: Path, keep: str) -> dict[str, Any]:
    """Return what all tasks of a batch have in common, as plain data."""
    return {
        "prism": __version__,
        "folder": str(folder.resolve()),
        "cwd": str(Path.cwd()),
        "search_path": [each or str(Path.cwd()) for each in sys.path],
        "keep": keep,
    }


def carry(task: Mapping[str, Any], name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Carry out one run to its end, or resume it.

    Args:
        task: What `task_of` returns.
        name: The name of the run.
        config: Its configuration.

    Returns:
        Its row, as `BatchFolder.add_row` takes it; and ``warnings``, what it warned of.
    """
    if task["prism"] != __version__:
        problem = f"its worker has prism {__version__}, not {task['prism']}: install that one"
        return {"run": name, "error": problem, "warnings": []}

    # find modules and files as the process of the batch does
    if Path(task["cwd"]).is_dir() and Path.cwd() != Path(task["cwd"]):
        os.chdir(task["cwd"])
    sys.path.extend(each for each in task["search_path"] if each not in sys.path)
    observer, folder = _Warnings(), Path(task["folder"], name)
    trace = folder / TRACEBACK_NAME
    row: dict[str, Any] = {"run": name, "warnings": observer.warnings}
    try:
        with forwarding_warnings(observer):
            row |= _completed(task, folder, config, observer)
        trace.unlink(missing_ok=True)
    except Exception as error:  # of the world's own code, too
        with suppress(OSError):
            make_folder(folder)
            trace.write_text(traceback.format_exc())
        text = str(error) if isinstance(error, PrismError) else f"{type(error).__name__}: {error}"
        row["error"] = " ".join(text.split())

    return row


class _Warnings(Observer):
    """Keeps what a run warns of."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, message: str) -> None:
        self.warnings.append(message)


def _completed(
    task: Mapping[str, Any], folder: Path, config: Mapping[str, Any], observer: Observer
) -> Mapping[str, Any]:
    """Return ``config``, ``results`` and ``spent`` of the run, carried out if need be."""
    if task["keep"] == "logs" and is_begun(folder):
        resume(folder, observer=observer)
        return _results(read_summary(folder), folder)

    run: Run[Any] = Run.from_config(config, Path(task["folder"]) / PLAN_NAME)
    if task["keep"] == "logs":
        return _results(run.keep(folder, observer=observer).summary, folder)
    return without_folder(run, observer)


def without_folder(run: Run[Any], observer: Observer) -> dict[str, Any]:
    """Carry out a run that keeps no folder; return its ``config``, ``results`` and ``spent``."""
    if not run.world_class.__module__.startswith("prism.social"):
        return _results(carry_out(run, None, observer=observer).summary, None)

    # the feed's measures are computed from its log
    with TemporaryDirectory() as temporary:
        log = Path(temporary) / "run"
        return _results(run.keep(log, observer=observer).summary, log)


def _results(summary: Mapping[str, Any], log: Path | None) -> dict[str, Any]:
    results = summary["results"]
    if log is not None and is_of_a_feed(results):
        results = with_log_measures(results, log)
    kept = {key: summary[key] for key in ("config", "spent") if key in summary}
    return {**kept, "results": results}
