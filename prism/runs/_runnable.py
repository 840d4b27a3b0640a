"""The protocols of runs and their options, which other packages implement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from prism.runlog import SimulatedClock
from prism.telemetry.loggers import EventLogger


class RunResults(Protocol):
    """The results of a run."""

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, for ``run.json``."""


ResultsT = TypeVar("ResultsT", bound=RunResults)
ResultsT_co = TypeVar("ResultsT_co", bound=RunResults, covariant=True)


class Runnable(Protocol[ResultsT_co]):
    """Something that runs in rounds, and can be saved and restored between two of them.

    It has a ``writer`` if it has texts written.
    """

    @property
    def rounds(self) -> int:
        """Number of rounds."""

    @property
    def finished(self) -> Sequence[Any]:
        """The rounds that have ended."""

    @property
    def reasoner(self) -> Any:
        """The reasoner, if any."""

    @property
    def clock(self) -> SimulatedClock:
        """The run's clock."""

    def kept_in(self, folder: Path) -> None:
        """Set the folder in which the run is kept, before it is restored or run."""

    def run(self, on_round: Callable[[Any], object]) -> ResultsT_co:
        """Run the remaining rounds, and call a function with every round when it ends."""

    def snapshot(self) -> Mapping[str, Any]:
        """Return, between two rounds, everything that is not in the log as plain data."""

    def restore(self, snapshot: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> None:
        """Make a new run continue where another one stopped.

        Args:
            snapshot: What `snapshot` returned there.
            events: Its log up to that point.
        """


class RunOptions(Protocol[ResultsT_co]):
    """The options of a run: everything that its events depend on.

    Options of runs that need more frequent checkpoints also have an attribute ``checkpoint_every``:
    seconds, or 0 for every round. Options of a user's world have an attribute ``charts``: the
    charts of its agents as they are drawn, as plain data.
    """

    @property
    def is_repeatable(self) -> bool:
        """Whether the run would write the same log again, which it does not if a model decides."""

    @property
    def deadline(self) -> float | None:
        """Seconds for which the run may ask a model; None without a limit."""

    def prepare(self, logger: EventLogger | None) -> Runnable[ResultsT_co]:
        """Read and make everything that the run needs, before anything is written.

        Args:
            logger: Where its events go once it runs.

        Raises:
            PrismError: If the run is impossible.
        """

    def to_config(self) -> dict[str, Any]:
        """Return the run as plain data, with the digests of the files that it reads."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` returned.

        Args:
            config: The run as plain data.
            path: The file that it comes from, for messages.

        Raises:
            InputError: If it is not such data, or a file that the run reads has changed.
        """

    def replaying(self, recorded: Path) -> Self:
        """Return the same run with its decisions taken from an earlier one."""
