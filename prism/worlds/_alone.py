"""A world with a single agent, and runs of such a world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from prism.errors import InputError
from prism.reasoner._texts import BaseWriter
from prism.runlog import SimulatedClock
from prism.runlog._reader import locate_log
from prism.runs._config import (
    check_config,
    digest,
    naming,
    read_reasoner,
    require_unchanged,
    require_writable,
)
from prism.runs._options import ReasonerOptions, ReplayOptions
from prism.telemetry.loggers import EventLogger
from prism.worlds._loop import Loop
from prism.worlds._run import Run, decider, require_seed
from prism.worlds._world import World

DEFAULT_AGENT_ID = "agent"

NOBODY = "nobody"
"""The entry of ``run.json`` for a run that asks no model."""

Event = Mapping[str, Any]
ToldT = TypeVar("ToldT")


class Alone(World[Any]):
    """A world with a single agent, which is an object of another class.

    A round is one turn of the agent. The agent's ``last`` is the result of the round, and the log
    contains what concerns a single agent.

    Attributes:
        agent: The agent.
    """

    __slots__ = ("agent",)
    _prism_is_alone = True

    if TYPE_CHECKING:  # a slot, not a parameter
        agent: Any

    @classmethod
    def of(cls, **held: Any) -> Self:
        """Make such a world, with values for the slots of its class."""
        # type checkers take slots for parameters
        world: Self = cast(Any, cls)()
        for name, value in held.items():
            object.__setattr__(world, name, value)

        return world

    def _prism_described(self, told: dict[str, Any]) -> dict[str, Any]:
        """Return what ``run.started`` says about any world, without parameters."""
        return {name: told[name] for name in ("chart", "agents")}

    def _prism_joined(self, agent: Any) -> Mapping[str, Any]:
        """Return only the state, since there is nothing else to log."""
        return {"state": agent._state.value}

    def _prism_summary(self, summary: Any) -> Any:  # noqa: ARG002 - the agent knows more
        """Return the result of the agent's turn."""
        return self.agent.last

    def _prism_ended(self, summary: Any) -> Mapping[str, Any]:
        """Return what ``round.ended`` says."""
        states = {self.agent.state.value: 1}
        return {
            "round": self.round,
            "states": states,
            "agent_ticks": 1,
            "transitions": summary.transitions,
        }


@dataclass(init=False, repr=False, kw_only=True)
class AloneRun(Run[Any]):
    """A run of a single agent whose model only writes, made by `Run` for the agent's file.

    Args:
        world: The file that the agent is read from.
        agents: None, as there is one.
        given: The other arguments by name: the fields of the class.

    Attributes:
        names: The keys of ``run.json`` whose names differ from the fields. The first stands for the
            file.
        kinds: The types of each key.
        paths: The fields that are files or folders.
        brought: Names of what an application may provide.
        file: The file that the agent is read from.
        rounds: Number of rounds.
        agent_id: Name of the agent.
        seed: Seed of the model's sampling.
        reasoner: The model that writes, or the earlier run whose texts are reused.
        application: What the application provides. No run keeps it.

    Raises:
        InputError: If an argument only applies to worlds, one is missing or out of range, or a
            value cannot be written as JSON.
    """

    names: ClassVar[Mapping[str, str]]
    kinds: ClassVar[Mapping[str, Any]]
    paths: ClassVar[Sequence[str]] = ("file",)
    brought: ClassVar[Sequence[str]] = ()

    # what every run has
    writer = _logger = _clock = None
    treatments = ()
    _is_class, _agents = True, 1

    file: Path
    rounds: int | None = None  # type: ignore[assignment] # a file may say it
    agent_id: str = DEFAULT_AGENT_ID
    seed: int = 0
    reasoner: ReasonerOptions = None
    application: Mapping[str, Any] = field(default_factory=dict)

    def __init__(self, world: Any, agents: Any = None, *, model: Any = None, **given: Any) -> None:
        """Store the arguments, and refuse those that do not fit together."""
        self._given: dict[str, Any] = {"world": world, "model": model, **given}
        self._loop: Loop | None = None
        self._take({"file": world, **given, **({} if agents is None else {"agents": agents})})
        self.reasoner = decider(model, self.reasoner)
        self._check()

    def _take(self, given: Mapping[str, Any]) -> None:
        """Set the fields to their given values or their defaults."""
        taken = {each.name: each for each in fields(self)}
        if unknown := [name for name in given if name not in taken]:
            problem = f"is for a world, and {given['file']} is run alone: leave it out"
            raise InputError(problem, field=unknown[0])

        for name, each in taken.items():
            value = given[name] if name in given else _default_of(each, given["file"])
            is_file = name in self.paths and isinstance(value, str)
            setattr(self, name, Path(value) if is_file else value)

    def _check(self) -> None:
        """Refuse values that JSON cannot hold, and arguments that do not fit together."""
        self._require_count("rounds", self.rounds)
        require_seed(self.seed)
        if not self.agent_id:
            raise InputError("must not be empty", field="agent_id")
        if unknown := sorted(self.application.keys() - {*self.brought}):
            problem = f"has no {unknown[0]!r}: it has {', '.join(self.brought)}"
            raise InputError(problem, field="application")

        require_writable("agent_id", self.agent_id)

    def __repr__(self) -> str:
        """Show the file."""
        return f"<Run of {self.file}, seed {self.seed}>"

    @property
    def number_of_rounds(self) -> int:
        """The number of rounds, given here or in the file."""
        assert self.rounds is not None
        return self.rounds

    @property
    def is_repeatable(self) -> bool:
        """Whether the run would write the same log again, because it repeats an earlier one."""
        return isinstance(self.reasoner, ReplayOptions)

    def replaying(self, recorded: Path) -> Self:
        """Return the same run with the texts, and everything else, that an earlier one kept."""
        return self.replace(reasoner=ReplayOptions(recorded))

    def _loop_of(
        self,
        world: Alone,
        writer: BaseWriter,
        rounds: int,
        logger: EventLogger | None,
        clock: SimulatedClock,
    ) -> Loop:
        """Return the loop that carries out the run."""
        return Loop(
            world,
            [world.agent],
            rounds=rounds,
            ticks=1,
            seed=self.seed,
            writer=writer,
            logger=logger,
            clock=clock,
        )

    def to_config(self) -> dict[str, Any]:
        """Return the run as plain data, with the digests of the files that it reads.

        Raises:
            InputError: If a file cannot be read.
        """
        fields = {key: getattr(self, name) for key, name in self._fields()}
        kept = {key: str(each) if isinstance(each, Path) else each for key, each in fields.items()}
        reasoner = {"reasoner": NOBODY} if self.reasoner is None else self.reasoner.to_config()

        return {**kept, **reasoner, "inputs": self._digests()}

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` returned.

        Args:
            config: The run as plain data.
            path: The file that it comes from, for messages.

        Raises:
            InputError: If it is not such data, or a file that the run reads has changed.
        """
        kind = next(iter(cls.names))
        if kind not in config:
            raise InputError(f"is not a run of {kind}", path=path)

        check_config(config, path, cls.kinds)
        kept = {name: config[key] for key, name in cls._fields()}
        with naming(path):
            run = cls(kept.pop("file"), reasoner=read_reasoner(config), **kept)

        # compare the digests first: a file that has changed may not even load
        inputs = config["inputs"]
        require_unchanged(inputs, {name: run._digest(name) for name in inputs}, path)
        require_unchanged(inputs, run._digests(), path)

        return run

    @classmethod
    def _fields(cls) -> Iterator[tuple[str, str]]:
        """Yield each key of ``run.json`` that belongs to a field, and the field."""
        for key in cls.kinds:
            if key not in ("reasoner", "inputs"):
                yield key, cls.names.get(key, key)

    def _inputs(self) -> Iterator[Path]:
        """Yield the files that the run only reads, except those of an earlier run."""
        yield self.file

    def _digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is only read, by its name."""
        files = list(self._inputs())
        if isinstance(self.reasoner, ReplayOptions):
            files.append(self.reasoner.run)

        return {str(file): self._digest(str(file)) for file in files}

    def _digest(self, name: str) -> str:
        is_run = isinstance(self.reasoner, ReplayOptions) and name == str(self.reasoner.run)
        return digest(locate_log(Path(name)) if is_run else Path(name))

    @staticmethod
    def _require_count(name: str, number: int | None) -> None:
        if number is not None and number < 1:
            raise InputError(f"must be 1 or more, got {number}", field=name)


def _default_of(each: Any, file: Any) -> Any:
    """Return the default of a field.

    Raises:
        InputError: If the field is required.
    """
    if each.default_factory is not MISSING:
        return each.default_factory()
    if each.default is MISSING:
        named = file.__name__ if isinstance(file, type) else file
        raise InputError(f"is needed to run {named}: name it", field=each.name)

    return each.default


def told_by(kind: type[ToldT], event: Event, /, **others: Any) -> ToldT:
    """Return the object that an event describes by keys with the names of the fields.

    Args:
        kind: The dataclass.
        event: The event.
        others: Fields whose keys have other names.
    """
    names = {each.name for each in fields(cast("Any", kind))} & event.keys() - others.keys()
    given = {name: event[name] for name in names}
    told = {key: tuple(one) if isinstance(one, list) else one for key, one in given.items()}

    return kind(**told, **others)
