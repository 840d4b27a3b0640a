"""Logs that are parsed once, for a report that reads them many times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from prism.analysis._reading.logs import COLUMNS, STAMP, RunLogs
from prism.analysis._reading.survey import SURVEYED
from prism.analysis._tables.faults import READ as OF_FAULTS
from prism.report._facts.counts import OF_CYCLES, OF_STEPS
from prism.statechart.social import SEES_POST
from prism.telemetry.events import TRANSITION

MOST_BYTES_IN_MEMORY = 48 << 20
"""Parsed events beyond these bytes, about 100,000 lines, wait in files.

In memory they take three times what polars says, and in files a thirtieth of the log.
"""

_NOT_SHOWN = (
    *("options", "host", "traceback", "exception"),
    *("prompt_hash", "unknown_variables"),
)
_SHOWN = tuple(
    dict.fromkeys(
        name
        for names in (STAMP, *COLUMNS.values(), OF_FAULTS, OF_STEPS, OF_CYCLES)
        for name in names
        if name not in _NOT_SHOWN
    )
)


@contextmanager
def parsed_once(logs: RunLogs, most_bytes: int = MOST_BYTES_IN_MEMORY) -> Iterator[RunLogs]:
    """Return the same logs, which are parsed by the first table only.

    Args:
        logs: The logs, from `read_log`.
        most_bytes: Most bytes to keep in memory. The rest goes to a temporary folder, which is
            deleted in the end.
    """
    with TemporaryDirectory(prefix="prism-") as folder:
        yield _ParsedLogs(logs, Path(folder), most_bytes)


class _ParsedLogs(RunLogs):
    """The events of logs as frames, with the keys that a report shows."""

    # a report has the parameters apart
    _with_parameters = False

    def __init__(self, logs: RunLogs, folder: Path, most_bytes: int) -> None:
        super().__init__(logs._paths, logs._unreadable, logs._copies)
        self._folder = folder
        self._bytes_left = most_bytes
        self._parts: list[pl.DataFrame | Path] | None = None

    def blocks_where(
        self,
        condition: pl.Expr | None,
        *,
        columns: Iterable[str],
        objects_where: pl.Expr | None = None,  # noqa: ARG002 - what is parsed once is all there
    ) -> Iterator[pl.DataFrame]:
        """Read all logs as `RunLogs.blocks_where` does, parsing them at the first call."""
        if self._parts is None:
            # of all transitions, a report needs only to know which posts were opened
            needed = (pl.col("event") != TRANSITION) | (pl.col("trigger") == SEES_POST)
            frames = super().blocks_where(None, columns=_SHOWN, objects_where=needed)
            self._parts = [self._kept(frame, number) for number, frame in enumerate(frames)]

        wanted = ["run", "line", *dict.fromkeys((*SURVEYED, *columns))]
        for part in self._parts:
            frame = pl.read_ipc(part, columns=wanted) if isinstance(part, Path) else part
            yield (frame if condition is None else frame.filter(condition)).select(wanted)

    def _kept(self, frame: pl.DataFrame, number: int) -> pl.DataFrame | Path:
        self._bytes_left -= int(frame.estimated_size())
        if self._bytes_left >= 0:
            return frame

        path = self._folder / f"{number}.arrow"
        frame.write_ipc(path, compression="lz4")

        return path
