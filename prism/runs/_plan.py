"""What a run is: everything that its events depend on, from the command line or from the folder of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import file_digest
from math import isfinite
from pathlib import Path
from reprlib import repr as brief
from typing import Any, Self

from prism.agents import (
    Population,
    SeedPost,
    load_population,
    load_posts,
    opening_posts,
    synthetic_population,
)
from prism.errors import InputError
from prism.runlog import SimulatedClock
from prism.runlog._reader import locate_log
from prism.runs._reasoners import ModelOptions, ReasonerKind, make_reasoner
from prism.social import Simulation
from prism.telemetry._loggers import EventLogger

_MOST_SEED = 2**53  # the largest whole number that every reader of JSON reads as it is
_REPLAY = "replay"

_KINDS: Mapping[str, Any] = {
    "agents": str,
    "posts": str | None,
    "rounds": int,
    "ticks_per_round": int,
    "seed": int,
    "reasoner": str,
    "inputs": dict,
}
_OPTION_KINDS: Mapping[str, Any] = {
    "model": str,
    "host": list,
    "mode": str,
    "pick": str,
    "think": str,
    "concurrency": int,
    "timeout": int | float,
    "patience": int | float,
    "max_calls": int,
    "max_tokens": int,
    "deadline": int | float,
    "cache": str,
}


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A run, as it was asked for.

    Args:
        agents: How many agents to make up, or a file of them.
        posts: File of posts to begin with.
        rounds: Number of rounds.
        ticks: Ticks of a round.
        seed: Seed of every random number.
        reasoner: Who decides.
        replay: An earlier run to take the decisions from.
        options: How a model is asked.

    Raises:
        InputError: If something of it cannot be written down.
    """

    agents: str
    posts: Path | None
    rounds: int
    ticks: int
    seed: int
    reasoner: ReasonerKind
    replay: Path | None = None
    options: ModelOptions = field(default_factory=ModelOptions)

    def __post_init__(self) -> None:
        """Refuse what JSON could not hold."""
        if abs(self.seed) > _MOST_SEED:
            raise InputError(f"--seed must lie between -2^53 and 2^53, got {self.seed}")
        for name, value in {
            "agents": self.agents,
            "posts": self.posts,
            "replay": self.replay,
            **self._said(),
        }.items():
            _require_writable(f"--{name.replace('_', '-')}", value)

    @property
    def is_repeatable(self) -> bool:
        """Whether the run would write the same log again."""
        return self.replay is not None or self.reasoner is ReasonerKind.POLICY

    def _said(self) -> dict[str, Any]:
        said = self.options.given()
        return {**said, "host": " ".join(said.get("host", ()))}

    def population(self) -> Population:
        """Make up the agents, or read them.

        Raises:
            InputError: If that is impossible.
        """
        size = _number(self.agents)
        if size is None:
            if not self.agents.strip():
                raise InputError("--agents must be a number or a file, got nothing")
            return load_population(Path(self.agents), seed=self.seed)

        if not size.is_integer():
            raise InputError(f"--agents must be a whole number or a file, got {self.agents}")
        if size < 1:
            raise InputError(f"--agents must be 1 or more, got {self.agents}")

        return synthetic_population(int(size), seed=self.seed)

    def opening_posts(self, population: Population) -> Sequence[SeedPost]:
        """Return what was posted before the first round.

        Raises:
            InputError: If the file of posts is wrong.
        """
        if self.posts is not None:
            return load_posts(self.posts, population.agents)
        return population.posts or opening_posts(population.agents, seed=self.seed)

    def prepare(self, clock: SimulatedClock) -> Callable[[EventLogger | None], Simulation]:
        """Read and make all that the run needs.

        Args:
            clock: The run's clock.

        Returns:
            What makes the simulation, given a logger for its events.

        Raises:
            InputError: If something is wrong with a file, or what was asked for contradicts itself.
        """
        population = self.population()
        posts = self.opening_posts(population)
        decider = make_reasoner(self.reasoner, self.options, self.replay, self.seed)

        def begin(logger: EventLogger | None) -> Simulation:
            return Simulation(
                population.agents,
                posts,
                rounds=self.rounds,
                ticks_per_round=self.ticks,
                seed=self.seed,
                reasoner=decider,
                logger=logger,
                clock=clock,
            )

        return begin

    def to_config(self) -> dict[str, Any]:
        """Return the run as plain data, with the digests of the files that it reads."""
        return {
            "agents": self.agents,
            "posts": None if self.posts is None else str(self.posts),
            "rounds": self.rounds,
            "ticks_per_round": self.ticks,
            "seed": self.seed,
            "reasoner": self.reasoner.value if self.replay is None else _REPLAY,
            **({} if self.replay is None else {_REPLAY: str(self.replay)}),
            **self.options.given(),
            "inputs": self._digests(),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` gave.

        Args:
            config: The run as plain data.
            path: Where it stands, for messages.

        Raises:
            InputError: If it is something else, or a file that the run reads is not what it was.
        """
        _check(config, path)
        replay = config.get(_REPLAY)
        options = {name: value for name, value in config.items() if name in _OPTION_KINDS}
        try:
            plan = cls(
                agents=config["agents"],
                posts=None if config["posts"] is None else Path(config["posts"]),
                rounds=config["rounds"],
                ticks=config["ticks_per_round"],
                seed=config["seed"],
                reasoner=ReasonerKind.POLICY
                if replay is not None
                else ReasonerKind(config["reasoner"]),
                replay=None if replay is None else Path(replay),
                options=ModelOptions.from_given(options),
            )
        except ValueError as error:
            raise InputError(
                f"is not what prism writes: {error}", path=path, field="config"
            ) from None

        for name, digest in plan._digests().items():
            if config["inputs"].get(name) != digest:
                raise InputError(
                    f"is not what it was when the run in {path.parent} began: put it back",
                    path=name,
                )

        return plan

    def _digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is read, by its name."""
        files = {str(self.posts): self.posts} if self.posts is not None else {}
        if _number(self.agents) is None:
            files[self.agents] = Path(self.agents)
        if self.replay is not None:
            files[str(self.replay)] = locate_log(self.replay)

        return {name: _digest(path) for name, path in files.items()}


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _require_writable(option: str, value: Any) -> None:
    """Refuse a number or a text that JSON has no room for."""
    if isinstance(value, float) and not isfinite(value):
        raise InputError(f"{option} must be a finite number, got {value}")

    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise InputError(f"{option} must be UTF-8, as run.json is; got {str(value)!a}") from None


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        hint = "a run is resumed where it was begun, and with the same files"
        raise InputError(f"cannot be read ({error.strerror}): {hint}", path=path) from None


def _check(config: Mapping[str, Any], path: Path) -> None:
    """Refuse a configuration with keys that are missing or unknown, or hold what they cannot."""
    kinds = {**_KINDS, **({_REPLAY: str} if config.get("reasoner") == _REPLAY else {})}
    for name in kinds:
        if name not in config:
            raise InputError("is missing", path=path, field=name)

    kinds.update(_OPTION_KINDS)

    for name, value in config.items():
        if name not in kinds:
            raise InputError("is unknown", path=path, field=name)
        if not _is_a(kinds[name], value):
            raise InputError(f"cannot be {brief(value)}", path=path, field=name)


def _is_a(kind: Any, value: Any) -> bool:
    if isinstance(value, list):
        return kind is list and all(_is_a(str, item) for item in value)
    return isinstance(value, kind) and not isinstance(value, bool) and "\0" not in str(value)
