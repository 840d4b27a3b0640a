"""A world with one agent, which is run alone, and what such a run is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast

from prism.errors import InputError
from prism.files._durable import is_stream
from prism.runlog import SimulatedClock
from prism.runlog._reader import locate_log
from prism.runs._config import (
    MOST_SEED,
    check_config,
    digest,
    naming,
    read_reasoner,
    require_unchanged,
    require_writable,
    too_large_a_seed,
)
from prism.runs._options import ReasonerOptions, ReplayOptions
from prism.statechart.reasoner._texts import BaseWriter
from prism.telemetry._loggers import EventLogger
from prism.worlds._loop import Loop
from prism.worlds._run import Run, decider
from prism.worlds._world import World

DEFAULT_AGENT_ID = "agent"

NOBODY = "nobody"
"""What ``run.json`` says where no model is asked."""

Event = Mapping[str, Any]
ToldT = TypeVar("ToldT")


class Alone(World[Any]):
    """A world with one agent, an object of another class, which is run alone.

    A round is a turn of the agent. ``last`` of the agent is the result of the round, and the log
    has what there is to say about a single agent.

    Attributes:
        agent: The agent.
    """

    __slots__ = ("agent",)
    _prism_is_alone = True

    if TYPE_CHECKING:  # a slot, which is no parameter
        agent: Any

    @classmethod
    def of(cls, **held: Any) -> Self:
        """Return such a world, which holds what its class has slots for."""
        # type checkers take slots for parameters
        world: Self = cast(Any, cls)()
        for name, value in held.items():
            object.__setattr__(world, name, value)

        return world

    def _prism_described(self, told: dict[str, Any]) -> dict[str, Any]:
        """Return what ``run.started`` says of any world, and no parameters."""
        return {name: told[name] for name in ("chart", "agents")}

    def _prism_joined(self, agent: Any) -> Mapping[str, Any]:
        """Return the state alone: there is nothing to tell apart."""
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
    """A run of one agent whose model only writes: what a `Run` of the agent's file is.

    Args:
        world: The file that the agent is read from.
        agents: None: there is one.
        given: The other arguments by name, which are the fields of the class.

    Attributes:
        names: The keys of ``run.json`` that are called otherwise than the fields, the first key
            among them, which stands for the file.
        kinds: What each key may hold.
        later_kinds: The same for keys that runs of earlier releases do not have.
        paths: The fields that are files or folders.
        brought: What an application may bring.
        file: What the agent is read from.
        rounds: Number of rounds.
        agent_id: Name of the agent.
        seed: Seed of the model's sampling.
        reasoner: The model that writes, or the earlier run whose texts are taken.
        application: What the application brings to the agent; no run keeps it.

    Raises:
        InputError: If an argument is only for a world, or one is missing, if JSON has no room for a
            value, or one is out of its range.
    """

    names: ClassVar[Mapping[str, str]]
    kinds: ClassVar[Mapping[str, Any]]
    later_kinds: ClassVar[Mapping[str, Any]] = {}
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
        """Take the arguments, and refuse what no run can be."""
        self._given: dict[str, Any] = {"world": world, "model": model, **given}
        self._loop: Loop | None = None
        self._take({"file": world, **given, **({} if agents is None else {"agents": agents})})
        self.reasoner = decider(model, self.reasoner)
        self._check()

    def _take(self, given: Mapping[str, Any]) -> None:
        """Set the fields to what is given for them, or to their defaults."""
        taken = {each.name: each for each in fields(self)}
        if unknown := [name for name in given if name not in taken]:
            problem = f"is for a world, and {given['file']} is run alone: leave it out"
            raise InputError(problem, field=unknown[0])

        for name, each in taken.items():
            value = given[name] if name in given else _default_of(each, given["file"])
            is_file = name in self.paths and isinstance(value, str)
            setattr(self, name, Path(value) if is_file else value)

    def _check(self) -> None:
        """Refuse what JSON has no room for, or what no run can be."""
        self._require_count("rounds", self.rounds)
        if abs(self.seed) > MOST_SEED:
            raise too_large_a_seed(self.seed)
        if not self.agent_id:
            raise InputError("must not be empty", field="agent_id")
        if unknown := sorted(self.application.keys() - {*self.brought}):
            problem = f"has no {unknown[0]!r}: it has {', '.join(self.brought)}"
            raise InputError(problem, field="application")

        require_writable("agent_id", self.agent_id)

    def __repr__(self) -> str:
        """Say what is run."""
        return f"<Run of {self.file}, seed {self.seed}>"

    @property
    def number_of_rounds(self) -> int:
        """How many rounds it has, whether it says so or its file does."""
        assert self.rounds is not None
        return self.rounds

    @property
    def is_repeatable(self) -> bool:
        """Whether the run would write the same log again: if it copies what another measured."""
        return isinstance(self.reasoner, ReplayOptions)

    def replaying(self, recorded: Path) -> Self:
        """Return the same run with its texts, and all else it kept, taken from an earlier one."""
        return self.replace(reasoner=ReplayOptions(recorded))

    def _loop_of(
        self,
        world: Alone,
        writer: BaseWriter,
        rounds: int,
        logger: EventLogger | None,
        clock: SimulatedClock,
    ) -> Loop:
        """Return what carries the run out."""
        return Loop(
            world,
            [world.agent],
            rounds=rounds,
            ticks=1,
            seed=self.seed,
            reasoner=None,
            writer=writer,
            wording=None,
            treatments=(),
            logger=logger,
            clock=clock,
            columns=False,
            log_agents=None,
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
            path: Where it stands, for messages.

        Raises:
            InputError: If it is something else, or a file that the run reads has changed.
        """
        kind = next(iter(cls.names))
        if kind not in config:
            raise InputError(f"is not a run of {kind}", path=path)

        check_config(config, path, cls.kinds, cls.later_kinds)
        kept = {name: config[key] for key, name in cls._fields() if key in config}
        with naming(path):
            run = cls(kept.pop("file"), reasoner=read_reasoner(config), **kept)

        # what was there is looked at first: a file that has changed may not even load
        inputs = config["inputs"]
        require_unchanged(inputs, {name: run._digest(name) for name in inputs}, path)
        require_unchanged(inputs, run._digests(), path)

        return run

    @classmethod
    def _fields(cls) -> Iterator[tuple[str, str]]:
        """Yield each key of ``run.json`` that is a field's, and the field."""
        for key in (*cls.kinds, *cls.later_kinds):
            if key not in ("reasoner", "inputs"):
                yield key, cls.names.get(key, key)

    def _inputs(self) -> Iterator[Path]:
        """Yield the files that the run reads and does not write, all but an earlier run's."""
        yield self.file

    def _digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is read and not written, by its name."""
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
    """Return what a field of a run is where nothing is given for it.

    Raises:
        InputError: If something has to be.
    """
    if each.default_factory is not MISSING:
        return each.default_factory()
    if each.default is MISSING:
        raise InputError(f"is needed to run {file}", field=each.name)

    return each.default


def recorded_log(replay: ReplayOptions) -> Path:
    """Return the log of the run that another one repeats.

    Raises:
        InputError: If it is a pipe, which can be read only once.
    """
    if is_stream(replay.run):
        problem = "is a pipe, which a resumed run could not read again: give a file or folder"
        raise InputError(problem, path=replay.run)

    return locate_log(replay.run)


def told_by(kind: type[ToldT], event: Event, /, **others: Any) -> ToldT:
    """Return what an event tells of, whose keys are called as the fields.

    Args:
        kind: The dataclass.
        event: The event.
        others: Fields that it tells of in other words.
    """
    names = {each.name for each in fields(cast("Any", kind))} & event.keys() - others.keys()
    given = {name: event[name] for name in names}
    told = {key: tuple(one) if isinstance(one, list) else one for key, one in given.items()}

    return kind(**told, **others)
