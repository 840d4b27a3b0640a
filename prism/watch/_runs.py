"""The runs that can be watched: one, or those below a folder."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any

from prism.drawing import Diagram
from prism.errors import InputError
from prism.files._records import shown_path
from prism.runlog._reader import locate_log
from prism.runs import RunStatus, find_runs, run_status
from prism.runs._status import is_run
from prism.watch._over_time import REST, OverTime
from prism.watch._playing import Playing
from prism.watch._watched import Watched

_MOST_OPEN = 4
_SECONDS_OF_LIST = 1.0
_LISTED = ("state", "round", "rounds", "seconds_left", "problem")


class Runs:
    """A run, or the runs below a folder, of which some are followed.

    Args:
        given: The folder of a run, its log, a folder with runs below it, or a world to play with.
        charts: Your own charts that runs may follow.
        name: What is watched; by default the name of its folder.

    Raises:
        InputError: If there is no run.

    Attributes:
        name: What is watched, for the title of the page.
    """

    def __init__(
        self, given: Path | Playing, charts: Sequence[Diagram] = (), name: str | None = None
    ) -> None:
        self.playing: Playing | None = given if isinstance(given, Playing) else None
        self._given: Path = given.folder if isinstance(given, Playing) else given
        self._charts = tuple(charts)
        path = self._given.absolute()
        own = path.name if path.is_dir() else path.parent.name
        self.name: str = shown_path(own if name is None else name)
        self._open: OrderedDict[str, OverTime] = OrderedDict()
        self._lock = Lock()
        self._listed: list[dict[str, Any]] = []
        self._list_due = 0.0
        self.is_one: bool = not self._given.is_dir() or is_run(self._given)
        if self.is_one:
            locate_log(self._given)
        elif self.playing is None and not find_runs(self._given):
            raise InputError("is not a run, and holds none", path=self._given)

    def paths(self) -> dict[str, Path]:
        """Return the runs by their names: their places below the folder."""
        if self.is_one:
            return {self.name: self._given}

        below = {path.relative_to(self._given).as_posix(): path for path in find_runs(self._given)}
        return {name: path for name, path in below.items() if self._is_inside(path)}

    def listed(self) -> list[dict[str, Any]]:
        """Return a line for each run: how far it is."""
        with self._lock:
            if monotonic() > self._list_due:
                self._listed = [_line(name, path) for name, path in self.paths().items()]
                self._list_due = monotonic() + _SECONDS_OF_LIST
            return self._listed

    def close(self) -> None:
        """Stop following."""
        with self._lock:
            for each in self._open.values():
                each.watched.close()
            self._open.clear()
        if self.playing is not None:
            self.playing.close()

    def watched(self, name: str) -> Watched:
        """Follow a run; of many, those that were asked for last.

        Raises:
            InputError: If there is no run of this name.
        """
        return self.over_time(name).watched

    def over_time(self, name: str) -> OverTime:
        """Return the sections of a run over time; see `watched`."""
        with self._lock:
            if name not in self._open:
                # only what was found below the folder has a name: no path is made of a request
                path = self.paths().get(name)
                if path is None:
                    raise InputError(f"there is no run {name!r} here")
                playing = self.playing
                charts = self._charts if playing is None else playing.charts
                watched = Watched(path, shown_path(name), charts)
                self._open[name] = OverTime(watched, REST if playing is None else 0)
            self._open.move_to_end(name)
            while len(self._open) > _MOST_OPEN:
                _, oldest = self._open.popitem(last=False)
                oldest.watched.close()

            return self._open[name]

    def _is_inside(self, path: Path) -> bool:
        """Return False for a run whose log is a link to somewhere else."""
        try:
            return locate_log(path).resolve().is_relative_to(self._given.resolve())
        except (InputError, OSError):
            return False


def _line(name: str, path: Path) -> dict[str, Any]:
    try:
        status = run_status(path)
    except InputError as error:
        status = RunStatus(path, "damaged", problem=str(error))

    return {"name": name, **{each: getattr(status, each) for each in _LISTED}}
