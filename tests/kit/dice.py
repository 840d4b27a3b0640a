"""Something to run that is no simulation: throws of dice, kept in the folder of a run."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import orjson

from prism.errors import InputError
from prism.randomness import RandomStream
from prism.runlog import SimulatedClock
from prism.runs import RunFolder
from prism.telemetry.loggers import LateLogger

ROUNDS, THROWS = 5, 8
CONFIG = {"rounds": ROUNDS, "seed": 1, "recorded": None}


class StoppedError(Exception):
    """Stands for whatever stops a process."""


@dataclass(frozen=True)
class Sum:
    """What came of all throws."""

    total: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class DiceOptions:
    """How often dice are thrown, and where the throws are taken from."""

    rounds: int = ROUNDS
    seed: int = 1
    recorded: Path | None = None
    deadline = reasoner = repeats = None
    is_repeatable = False

    def replace(self, **changes: Any) -> Self:
        """Return the same with other numbers."""
        return replace(self, **changes)

    def prepare(self, logger: Any) -> "Dice":
        """Read the throws of an earlier run, if there is one."""
        if self.rounds < 0:
            raise InputError("must be 0 or more", field="rounds")

        throws = None
        if self.recorded is not None:
            lines = (self.recorded / "events.jsonl").read_bytes().splitlines()
            events = map(orjson.loads, lines)
            throws = [event["eyes"] for event in events if event["event"] == "die.thrown"]

        return Dice(self, throws, logger)

    def to_config(self) -> dict[str, Any]:
        """Return the options as plain data."""
        recorded = None if self.recorded is None else str(self.recorded)
        return {"rounds": self.rounds, "seed": self.seed, "recorded": recorded}

    def digests(self) -> dict[str, str]:
        """Return nothing, as no file is read."""
        return {}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` returned."""
        if config["seed"] < 0:
            raise InputError("must be 0 or more", path=path, field="seed")

        recorded = config["recorded"]
        place = None if recorded is None else Path(recorded)

        return cls(config["rounds"], config["seed"], place)

    def repeating(self, recorded: Path) -> Self:
        """Return the same with the throws of an earlier run, whatever the seed."""
        return replace(self, seed=0, recorded=recorded)

    def later_deciders(self) -> Mapping[str, str]:
        """Return no models."""
        return {}


class Dice:
    """Throws dice for some rounds and adds them up; the log tells the throws, not their sum."""

    reasoner = None

    def __init__(self, options: DiceOptions, throws: list[int] | None, logger: Any) -> None:
        self.rounds = options.rounds
        self.finished: list[int] = []
        self.total = 0
        self._seed = options.seed
        self._throws = throws
        self._logger = logger
        self.clock = SimulatedClock()

    def run(self, on_round: Callable[[int], object]) -> Sum:
        """Throw in every round."""
        for number in range(1, self.rounds + 1):
            self.clock.begin_round(number)
            self.total += sum(self._throw(number, place) for place in range(THROWS))
            self._log("round.ended")
            self.finished.append(number)
            on_round(number)

        self._log("run.ended", total=self.total)
        return Sum(self.total)

    def _throw(self, number: int, place: int) -> int:
        if self._throws is None:
            eyes = 1 + RandomStream(self._seed, number, place).index(6)
        else:
            eyes = self._throws[(number - 1) * THROWS + place]

        self._log("die.thrown", eyes=eyes)
        return eyes

    def _log(self, event: str, **keys: Any) -> None:
        if self._logger is not None:
            self._logger.info(event, **keys)


def tree(path: Path) -> dict[str, bytes | None]:
    """Return everything below a folder, files with their bytes, by its place in the folder."""
    return {
        str(found.relative_to(path)): found.read_bytes() if found.is_file() else None
        for found in path.rglob("*")
    }


def throw_in(folder: RunFolder, stop: Callable[[int], None] = lambda _: None) -> None:
    """Throw dice in a folder, from the beginning.

    Args:
        folder: Where.
        stop: Called with every round that has ended and is kept.
    """
    late = LateLogger()
    dice = DiceOptions().prepare(late)
    with folder.writing({"config": CONFIG}, dice.clock) as logger:
        late.opened = logger

        def keep(number: int) -> None:
            folder.round_ended()
            stop(number)

        folder.complete({"results": dice.run(keep).to_dict()})


def resume_in(path: Path) -> None:
    """Resume the dice in a folder to their end."""
    folder, began = RunFolder.to_resume(path)
    assert began is not None
    assert began["config"] == CONFIG
    throw_in(folder)


def stop_after(last: int) -> Callable[[int], None]:
    """Return what stops a run when a round has ended."""

    def stop(number: int) -> None:
        if number == last:
            raise StoppedError

    return stop
