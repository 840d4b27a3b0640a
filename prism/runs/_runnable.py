"""The protocols of runs and their options, which other packages implement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    """Something that runs in rounds.

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
        """Set the folder in which the run is kept, before it is run."""

    def run(self, on_round: Callable[[Any], object]) -> ResultsT_co:
        """Run all rounds, and call a function with every round when it ends."""


class RunOptions(Protocol[ResultsT_co]):
    """The options of a run: everything that its events depend on.

    Options of a user's world have an attribute ``charts``: the charts of its agents as they are
    drawn, as plain data.
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

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that the run reads, by its name."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` returned.

        Args:
            config: The run as plain data.
            path: The file that it comes from, for messages.

        Raises:
            InputError: If it is not such data.
        """

    def replaying(self, recorded: Path) -> Self:
        """Return the same run with its decisions taken from an earlier one."""
