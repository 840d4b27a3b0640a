"""What can be run, and what can describe a run: the seam between this room and those below."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from prism.runlog import SimulatedClock
from prism.telemetry._loggers import EventLogger


class RunResults(Protocol):
    """What came of a run."""

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, for ``run.json``."""


ResultsT = TypeVar("ResultsT", bound=RunResults)
ResultsT_co = TypeVar("ResultsT_co", bound=RunResults, covariant=True)


class Runnable(Protocol[ResultsT_co]):
    """Something that runs in rounds, and can be kept and made again between two of them.

    One that has texts written has a ``writer``.
    """

    @property
    def rounds(self) -> int:
        """Number of rounds."""

    @property
    def finished(self) -> Sequence[Any]:
        """The rounds that have ended."""

    @property
    def reasoner(self) -> Any:
        """Who decides; None if nobody does."""

    @property
    def clock(self) -> SimulatedClock:
        """The run's clock."""

    def kept_in(self, folder: Path) -> None:
        """Learn in which folder the run is kept, before it is restored or run."""

    def run(self, on_round: Callable[[Any], object]) -> ResultsT_co:
        """Run the rounds that are left, and call a function with every round as it ends."""

    def snapshot(self) -> Mapping[str, Any]:
        """Return as plain data, between two rounds, what the log does not tell."""

    def restore(self, snapshot: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> None:
        """Make a new run go on where another one was.

        Args:
            snapshot: What `snapshot` returned there.
            events: Its log until then.
        """


class RunOptions(Protocol[ResultsT_co]):
    """What a run is: everything that its events depend on.

    Options whose run needs a checkpoint more often than others have an attribute
    ``checkpoint_every``, too: seconds, 0 for every round.
    """

    @property
    def is_repeatable(self) -> bool:
        """Whether the run would write the same log again; not where a model decides."""

    @property
    def deadline(self) -> float | None:
        """Seconds for which the run may ask a model; None without a limit."""

    def prepare(self, logger: EventLogger | None) -> Runnable[ResultsT_co]:
        """Read and make all that the run needs, before anything is written.

        Args:
            logger: Where its events go, once it runs.

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
            InputError: If it is something else, or a file that the run reads has changed.
        """

    def replaying(self, recorded: Path) -> Self:
        """Return the same run with its decisions taken from an earlier one."""
