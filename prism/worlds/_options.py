"""A run of a world as options: everything that its events depend on."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from prism.errors import InputError, PrismError
from prism.files._durable import is_stream
from prism.runlog import SimulatedClock
from prism.runlog._reader import locate_log
from prism.runs import ReasonerOptions, ReplayOptions, WriterOptions
from prism.runs._options import (
    REASONER_KINDS,
    check_config,
    digest,
    naming,
    read_reasoner,
    require_unchanged,
    require_writable,
)
from prism.runs._writing import (
    asks_a_model,
    deadline_of,
    make_askers,
    read_writer,
    replayed_writer,
    require_model_of,
)
from prism.statechart import BaseReasoner, BaseWriter
from prism.telemetry._loggers import EventLogger
from prism.worlds._run import DEFAULT_AGENTS, Run
from prism.worlds._world import World, parsed_parameters

_POLICY = "policy"
_MOST_SEED = 2**53

_KINDS: Mapping[str, Any] = {
    "world": str,
    "agents": int,
    "rounds": int,
    "ticks_per_round": int,
    "seed": int,
    "parameters": dict,
    "treatments": list,
    "reasoner": (_POLICY, *REASONER_KINDS),
    "inputs": dict,
}


@dataclass(frozen=True, slots=True)
class WorldRun:
    """A run of a world, for `prism.runs.begin`.

    Args:
        world: The world's class, or where it is: ``package.module:Name`` or ``file.py:Name``.
        agents: How many agents the world's `World.populate` is to make.
        rounds: Number of rounds; by default what the class says.
        ticks_per_round: Ticks in a round; by default what the class says.
        seed: Seed of every random number.
        parameters: The world's parameters by name; texts are read as values of their types.
        treatments: Treatments and their rounds, such as ``("warning@12",)``.
        reasoner: Who decides: a model, an earlier run, or by default the weights of the decisions.
        writer: Who writes the texts that agents ask for; by default their templates are taken.

    Raises:
        InputError: If there is no such world, or no run can be what is given.
    """

    world: str | type[World[Any]]
    agents: int = DEFAULT_AGENTS
    rounds: int | None = None
    ticks_per_round: int | None = None
    seed: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    treatments: tuple[str, ...] = ()
    reasoner: ReasonerOptions = None
    writer: WriterOptions | None = None

    def __post_init__(self) -> None:
        """Find the world, and refuse what JSON has no room for."""
        put = object.__setattr__
        if not isinstance(self.world, str):
            put(self, "world", _address_of(self.world))

        cls = self._class()
        put(self, "rounds", cls.rounds if self.rounds is None else self.rounds)
        put(self, "ticks_per_round", self.ticks_per_round or cls.ticks)
        put(self, "treatments", tuple(self.treatments))
        if abs(self.seed) > _MOST_SEED:
            raise InputError(f"must lie between -2^53 and 2^53, got {self.seed}", field="seed")

        require_model_of(self.reasoner, self.writer)
        try:
            put(self, "parameters", parsed_parameters(cls, self.parameters))
            cls(**self.parameters)
        except (TypeError, PrismError) as error:
            raise InputError(str(error), field="parameters") from None

        for name, value in self.parameters.items():
            require_writable(name, value)

    @property
    def is_repeatable(self) -> bool:
        """Whether the run would write the same log again."""
        return not asks_a_model(self.reasoner, self.writer)

    @property
    def deadline(self) -> float | None:
        """Seconds that the run may ask a model for; None without a limit."""
        return deadline_of(self.reasoner, self.writer)

    def replaying(self, recorded: Path) -> Self:
        """Return the same run with its decisions and texts taken from an earlier one."""
        texts = replayed_writer(self.writer)
        return replace(self, reasoner=ReplayOptions(recorded), writer=texts)

    def prepare(
        self,
    ) -> Callable[[EventLogger | None, SimulatedClock | None], Run[World[Any]]]:
        """Read and make all that the run needs.

        Returns:
            A function that makes the run, given a logger for its events and a clock.

        Raises:
            PrismError: If something is wrong with the world or an option.
        """
        cls = self._class()
        # what is wrong with the world is said before anything is written
        self._make(cls, (None, None), None, None)
        askers = make_askers(self.reasoner, self.writer, self.seed, None)

        def make(logger: EventLogger | None, clock: SimulatedClock | None) -> Run[World[Any]]:
            return self._make(cls, askers, logger, clock)

        return make

    def to_config(self) -> dict[str, Any]:
        """Return the run as plain data, with the digests of the files that it reads.

        Raises:
            InputError: If a file cannot be read.
        """
        return {
            "world": self.world,
            "agents": self.agents,
            "rounds": self.rounds,
            "ticks_per_round": self.ticks_per_round,
            "seed": self.seed,
            "parameters": self._all_parameters(),
            "treatments": list(self.treatments),
            **({"reasoner": _POLICY} if self.reasoner is None else self.reasoner.to_config()),
            **({} if self.writer is None else {"writer": self.writer.to_config()}),
            "inputs": self._digests(),
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` returned.

        Args:
            config: The run as plain data.
            path: Where it stands, for messages.

        Raises:
            InputError: If it is something else, or a file that the run reads, such as the world's
                code, has changed.
        """
        if "world" not in config:
            raise InputError("holds a run of something else than a world", path=path)

        check_config(config, path, _KINDS, {"writer": dict})
        with naming(path):
            run = cls(
                world=config["world"],
                agents=config["agents"],
                rounds=config["rounds"],
                ticks_per_round=config["ticks_per_round"],
                seed=config["seed"],
                parameters=config["parameters"],
                treatments=tuple(config["treatments"]),
                reasoner=read_reasoner(config),
                writer=read_writer(config, path),
            )

        require_unchanged(config["inputs"], run._digests(), path)

        return run

    def _make(
        self,
        cls: type[World[Any]],
        askers: tuple[BaseReasoner | None, BaseWriter | None],
        logger: EventLogger | None,
        clock: SimulatedClock | None,
    ) -> Run[World[Any]]:
        return Run(
            cls(**self.parameters),
            self.agents,
            rounds=self.rounds,
            ticks=self.ticks_per_round,
            seed=self.seed,
            reasoner=askers[0],
            writer=askers[1],
            wording=None if self.writer is None else self.writer.wording(),
            treatments=self.treatments,
            logger=logger,
            clock=clock,
        )

    def _class(self) -> type[World[Any]]:
        return load_world(str(self.world))

    def _all_parameters(self) -> dict[str, Any]:
        """Return the parameters, those with their defaults, too, as JSON has them."""
        cls = self._class()
        made = cls(**self.parameters)
        values = {
            name: getattr(made, name)
            for name, each in cls.fields.items()
            if not each.declared.is_state
        }

        return {name: _plain(cls, name, value) for name, value in values.items()}

    def _digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is read, by its name."""
        code = Path(sys.modules[self._class().__module__].__file__ or "")
        found = {str(self.world).rpartition(":")[0]: digest(code)}
        if isinstance(self.reasoner, ReplayOptions):
            if is_stream(self.reasoner.run):
                problem = "is a pipe: the run has to find it again, so give a folder"
                raise InputError(problem, path=self.reasoner.run)
            found[str(self.reasoner.run)] = digest(locate_log(self.reasoner.run))

        return found


def load_world(address: str) -> type[World[Any]]:
    """Return the class of a world from a module or a file.

    Args:
        address: ``package.module:Name`` or ``file.py:Name``.

    Raises:
        InputError: If there is no such module, file or world.
    """
    place, _, name = address.rpartition(":")
    if not place or not name:
        raise InputError(
            f"must be package.module:Name or file.py:Name, got {address!r}", field="world"
        )

    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    found = getattr(module, name, None)
    if not (isinstance(found, type) and issubclass(found, World)):
        worlds = [
            each
            for each, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, World) and value is not World
        ]
        listed = ", ".join(worlds) or "none"
        raise InputError(f"{place} has no world {name!r}: it has {listed}", field="world")

    return found


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise InputError(
            f"there is no module {name!r} (no {error.name!r} on Python's path): install it, or "
            "name the file, as in  rumour.py:Rumour",
            field="world",
        ) from None


def _load_file(path: Path) -> ModuleType:
    known = next(
        (
            module
            for module in list(sys.modules.values())
            if getattr(module, "__file__", None) and _is_same(module.__file__, path)
        ),
        None,
    )
    if known is not None:
        return known

    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError("there is no such file", path=path)
    if path.stem in sys.modules:
        raise InputError(
            f"has the name of the module {path.stem!r}, which is loaded: name it otherwise",
            path=path,
        )

    module = importlib.util.module_from_spec(spec)
    # classes of the file are found again by the name of their module
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise

    return module


def _is_same(known: str | None, path: Path) -> bool:
    return known is not None and Path(known).absolute() == path.absolute()


def _address_of(cls: type[World[Any]]) -> str:
    module = sys.modules[cls.__module__]
    if "<locals>" in cls.__qualname__ or getattr(module, cls.__name__, None) is not cls:
        raise InputError(
            f"{cls.__qualname__} cannot be found again: define it at the top of a module",
            field="world",
        )
    if cls.__module__ != "__main__":
        return f"{cls.__module__}:{cls.__name__}"

    file = getattr(module, "__file__", None)
    if file is None:
        raise InputError(
            f"{cls.__name__} is defined in no file, from which a run could be resumed: put it "
            "into one",
            field="world",
        )

    return f"{file}:{cls.__name__}"


def _plain(cls: type[World[Any]], name: str, value: Any) -> Any:
    plain = getattr(value, "value", value)
    if isinstance(plain, (str, int, float, bool, type(None))):
        return plain

    raise InputError(
        f"{cls.__name__}.{name} must be a number, a text, an enum or None, as run.json keeps it; "
        f"got {value!r}",
        field="parameters",
    )
