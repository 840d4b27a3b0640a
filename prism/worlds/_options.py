"""A run of a world as options: everything that its events depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from prism.errors import InputError, PrismError
from prism.runlog import SimulatedClock
from prism.runs import DeciderOptions, ModelAssignment, ReplayOptions, WriterOptions
from prism.runs._config import (
    DECIDER_KINDS,
    MOST_SEED,
    check_config,
    digest,
    naming,
    read_decider,
    read_writer,
    require_model_of,
    require_unchanged,
    require_writable,
    too_large_a_seed,
)
from prism.runs._options import asks_a_model, deadline_of, files_of, replayed_writer
from prism.statechart import BaseReasoner, BaseWriter
from prism.telemetry._loggers import EventLogger
from prism.worlds._addresses import address_of, code_of, load_world
from prism.worlds._fields import plain_value
from prism.worlds._loop import DEFAULT_AGENTS, Run
from prism.worlds._parameters import parameter_values, parsed_parameters
from prism.worlds._people import AgentTable
from prism.worlds._treatments import Treatment, later_models, require_models, tables_of
from prism.worlds._world import World

Askers = tuple[BaseReasoner | None, BaseWriter | None]
"""Who decides and who writes."""

_POLICY = "policy"

_KINDS: Mapping[str, Any] = {
    "world": str,
    "agents": int | str,
    "rounds": int,
    "ticks_per_round": int,
    "seed": int,
    "parameters": dict,
    "treatments": object,
    "reasoner": (_POLICY, *DECIDER_KINDS),
    "inputs": dict,
}


@dataclass(frozen=True, slots=True)
class WorldRun:
    """A run of a world, for `prism.runs.begin`.

    Args:
        world: The world's class, or where it is: ``package.module:Name``, ``file.py:Name``, or the
            short name of a shipped or installed one (entry points ``prism.worlds``).
        agents: How many agents the world's `World.populate` is to make, or a file of them, as
            `AgentTable` reads it.
        rounds: Number of rounds; by default what the class says.
        ticks_per_round: Ticks in a round; by default what the class says.
        seed: Seed of every random number.
        parameters: The world's parameters by name; texts are read as values of their types.
        treatments: Treatments of the world's class and their rounds, such as ``("warning@12",)``,
            and ready-made ones.
        reasoner: Who decides: a model, an earlier run, a policy file, or by default the weights of
            the decisions.
        writer: Who writes the texts that agents ask for; by default their templates are taken.
        keep: Columns of the file of agents to keep, as fields or attributes of the agents.

    Raises:
        InputError: If there is no such world, or no run can be what is given.
    """

    world: str | type[World[Any]]
    agents: int | str | Path = DEFAULT_AGENTS
    rounds: int | None = None
    ticks_per_round: int | None = None
    seed: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    treatments: tuple[str | Treatment, ...] = ()
    reasoner: DeciderOptions = None
    keep: tuple[str, ...] = ()
    writer: WriterOptions | None = None

    def __post_init__(self) -> None:
        """Find the world, and refuse what JSON has no room for."""
        put = object.__setattr__
        put(self, "world", address_of(self.world))
        put(self, "agents", _number_or_file(self.agents))
        put(self, "keep", tuple(dict.fromkeys(self.keep)))
        if self.keep and isinstance(self.agents, int):
            raise InputError(
                "needs a file of agents: made-up ones have nothing to keep", field="keep"
            )

        cls = self._class()
        put(self, "rounds", cls.rounds if self.rounds is None else self.rounds)
        ticks = self.ticks_per_round
        put(self, "ticks_per_round", cls.ticks if ticks is None else ticks)
        put(self, "treatments", tuple(self.treatments))
        if self.treatments:
            require_models(self.reasoner, self.treatments)
        if abs(self.seed) > MOST_SEED:
            raise too_large_a_seed(self.seed)
        if self.reasoner is not None or self.writer is not None:
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
        return not asks_a_model(self.reasoner, self.writer, self._later())

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
        agents = self.agents if isinstance(self.agents, int) else AgentTable(self.agents, self.keep)
        # what is wrong with the world is said before anything is written
        later = self._later()
        askers: Askers = (None, None)
        tried = askers
        if self.reasoner is not None or self.writer is not None or later:
            # what asks a model is loaded by runs that have one
            from prism.runs._makers import make_askers, stand_in

            tried = (stand_in(later, self.seed), None)
            askers = make_askers(self.reasoner, self.writer, self.seed, None, later=later)

        self._make(cls, agents, tried, None, None)

        def make(logger: EventLogger | None, clock: SimulatedClock | None) -> Run[World[Any]]:
            return self._make(cls, agents, askers, logger, clock)

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
            "treatments": tables_of(self.treatments),
            **({"reasoner": _POLICY} if self.reasoner is None else self.reasoner.to_config()),
            **({} if self.writer is None else {"writer": self.writer.to_config()}),
            # only where it is given: other runs are described as they always were
            **({"keep": list(self.keep)} if self.keep else {}),
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

        check_config(config, path, _KINDS, {"keep": list, "writer": dict})
        with naming(path):
            run = cls(
                world=config["world"],
                agents=config["agents"],
                rounds=config["rounds"],
                ticks_per_round=config["ticks_per_round"],
                seed=config["seed"],
                parameters=config["parameters"],
                treatments=kept_treatments(config["treatments"], load_world(config["world"]), path),
                reasoner=read_decider(config),
                writer=read_writer(config, path),
                keep=tuple(config.get("keep", ())),
            )

        require_unchanged(config["inputs"], run._digests(), path)

        return run

    def _make(
        self,
        cls: type[World[Any]],
        agents: int | AgentTable,
        askers: Askers,
        logger: EventLogger | None,
        clock: SimulatedClock | None,
    ) -> Run[World[Any]]:
        return Run(
            cls(**self.parameters),
            agents,
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

    def _later(self) -> Mapping[str, ModelAssignment]:
        """Return the models that are asked in the course of the run."""
        return later_models(self.treatments) if self.treatments else {}

    def _class(self) -> type[World[Any]]:
        return load_world(str(self.world))

    def _all_parameters(self) -> dict[str, Any]:
        """Return the parameters, those with their defaults, too, as JSON has them."""
        cls = self._class()
        values = parameter_values(cls(**self.parameters))

        return {name: _plain(cls, name, value) for name, value in values.items()}

    def _digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is read, by its name."""
        place = str(self.world).rpartition(":")[0]
        files = code_of(self._class(), place)
        if not isinstance(self.agents, int):
            files[str(self.agents)] = Path(self.agents)

        if self.reasoner is not None:
            files |= files_of(self.reasoner)

        return {name: digest(path) for name, path in files.items()}


def _number_or_file(agents: int | str | Path) -> int | str:
    """Return what run.json has: a number of agents, or the name of a file of them."""
    text = str(agents)
    try:
        number = float(text)
    except ValueError:
        if not text.strip():
            raise InputError("must be a number or a file, got nothing", field="agents") from None
        return text

    if not number.is_integer():
        raise InputError(f"must be a whole number or a file, got {text}", field="agents")
    if number < 1:
        raise InputError(f"must be 1 or more, got {text}", field="agents")

    return int(number)


def _plain(cls: type[World[Any]], name: str, value: Any) -> Any:
    plain = plain_value(value)
    items = plain if isinstance(plain, list) else [plain]
    if all(isinstance(each, (str, int, float, bool, type(None))) for each in items):
        return plain

    raise InputError(
        f"{cls.__name__}.{name} must be a number, a text, an enum, None, or a tuple of such, as "
        f"run.json keeps it; got {value!r}",
        field="parameters",
    )


def kept_treatments(config: Any, cls: type[World[Any]], path: Path) -> tuple[Any, ...]:
    """Read the tables that ``run.json`` has of treatments.

    Raises:
        InputError: If it has been changed into what cannot be.
    """
    if config == []:
        return ()

    # pydantic takes a while to import, and most runs have no treatments
    from prism.worlds._treatment_tables import treatments_in

    return treatments_in(config, cls, path)
