"""A run: a world, its agents, and everything else that its events depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, Unpack, cast

import orjson

from prism._faults import shortened
from prism.errors import DefinitionError, FieldValueError, InputError
from prism.files.records import digest
from prism.runlog import SimulatedClock
from prism.runlog.writer import simulated
from prism.runs import Observer, Outcome, PolicyOptions, RunFolder, WriterOptions
from prism.runs.options import (
    POLICY,
    Before,
    Repeats,
    models_of,
    naming,
    read_decider,
    read_writer,
    require_model_of,
)
from prism.runs.running import carry_out
from prism.telemetry.loggers import EventLogger, LateLogger, synchronous
from prism.worlds._people import population_of
from prism.worlds._results import WorldResults, rounds_as_html
from prism.worlds.addresses import address_of, alone, class_of, file_of
from prism.worlds.arguments import (
    MOST,
    Arguments,
    RunsAlone,
    askers_of,
    decider_of,
    is_custom,
    parameter_values,
    plain_value,
    require_whole,
    writer_of,
)
from prism.worlds.fields import titles_of
from prism.worlds.loop import Loop
from prism.worlds.world import World

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    WorldT_co = TypeVar("WorldT_co", bound=World[Any], covariant=True, default=Any)
else:
    from typing import TypeVar

    WorldT_co = TypeVar("WorldT_co", covariant=True)

Agents = int | str | Path | Iterable[Any] | None


class Run(Generic[WorldT_co]):
    """A world, its agents, and everything else that its events depend on.

    `run` carries it out, and `keep` carries it out and keeps it in a folder, from which
    ``prism.resume`` continues a stopped run and ``prism.replay`` repeats it.

    A run of a world's class can be carried out any number of times, and makes a new world each
    time. A run of an existing world, or of existing agents, can be carried out once.

    Args:
        world: The world: its class, an instance with parameters of its own, or its address:
            ``package.module:Name``, ``file.py:Name``, the short name of one that comes with prism,
            or a file of an agent (``.yaml``) or of a thinking agent (``.json``), or a subclass of
            `prism.programs.thinking.CognitiveAgent`, with its attribute ``config``. These are run
            alone, as a world with one agent whose rounds are turns or cycles. They take further
            arguments by name, such as ``memory``; ``parameters`` are the variables of an agent in
            YAML.
        agents: The number of agents for `World.populate` to make, a file of agents, or the agents
            themselves. By default 100.
        rounds: Number of rounds. Defaults to that of the world's class.
        ticks: Ticks in a round. Defaults to those of the world's class.
        seed: Seed of every random number.
        model: The model that decides: a `prism.llm.Model`, the text of one, or a client of another
            library.
        reasoner: What decides instead of a model: a policy file (`prism.runs.PolicyOptions`), or
            your own reasoner. By default, decisions are drawn by their weights.
        writer: What writes the texts that agents ask for: `prism.runs.WriterOptions`, a model, or
            your own writer. By default, their templates are used.
        treatments: What changes when a round begins: a treatment of the world's class
            (``warning@12``), or a parameter (``tiring=0.1@20``).
        parameters: Parameters of a world's class by name. Texts are converted to their types.
        logger: Where to write the events of a run that is not kept, or None for structlog's own
            logger, once it is configured.
        clock: The run's clock.
        log_agents: How many agents the log covers, a sample drawn by the seed; 0 leaves out the
            events of single agents, except the posts and votes of a feed. By default all. Counts
            and measures cover all agents.
        agent_id: For a single agent: its name.
        memory: For a thinking agent: the file of its memory, which the run changes in place and
            creates if it is missing. A repeated run has its own memory.

    Attributes:
        seed: Seed of every random number.
        rounds: Number of rounds.
        ticks: Ticks in a round.
        treatments: The treatments.
        log_agents: How many agents the log covers, as given.
        world_class: The world's class.
        reasoner: What decides, as given, or the model.
        writer: What writes, as given.
        is_alone: Whether it is of a single agent, without a world.
        repeats: The earlier run whose answers it takes, if any.
        before: What decides in its first rounds, if that is another reasoner or model.

    Raises:
        InputError: If the world does not exist, or the arguments do not fit together.
        FieldValueError: If a number is out of range.
    """

    repeats: Repeats | None = None
    before: Before | None = None
    is_alone = False
    rounds: int
    ticks: int
    seed: int
    log_agents: int | None
    takes: ClassVar[Mapping[str, Any]] = {
        **dict.fromkeys(("agents", "rounds", "ticks", "seed", "parameters", "treatments")),
        **dict.fromkeys(("log_agents", "writer", "logger", "clock")),
    }
    _unasked = POLICY
    """The entry of ``run.json`` for a run that asks no model."""

    # type checkers would infer the type of a run from what __new__ returns
    if not TYPE_CHECKING:

        def __new__(cls, world: Any = None, *_agents: Any, **_options: Any) -> Any:
            """Make a run, or an `AloneRun` if the world is an agent that is run alone."""
            return super().__new__((alone(world) if cls is Run else None) or cls)

    def __init__(
        self,
        world: type[WorldT_co] | WorldT_co | type[RunsAlone] | str | Path,
        agents: Agents = None,
        **options: Unpack[Arguments],
    ) -> None:
        named: dict[str, Any] = {**options, **({} if agents is None else {"agents": agents})}
        decider = decider_of(named.pop("model", None), named.pop("reasoner", None))
        if unknown := named.keys() - self.takes:
            problem = f"is no argument of a run of {world}: leave it out"
            raise InputError(problem, field=min(unknown))
        self._arguments = {"world": world, "reasoner": decider, **named}
        self.reasoner: Any = decider
        self._loop: Loop | None = None
        self._take(world, **{**self.takes, **named})

    def _take(self, world: Any, **named: Any) -> None:
        """Store the arguments, and refuse those that do not fit together."""
        self.world_class: type[World[Any]]
        self.world_class, self._address = class_of(world)
        self._is_class = not isinstance(world, World)
        self._parameters: Any = named["parameters"] or {}
        if self._parameters and not self._is_class:
            name = self.world_class.__name__
            problem = f"belong to the given {name}: pass the class, or leave them"
            raise InputError(problem, field="parameters")
        self._world: World[Any] | None = self._new_world() if self._is_class else world
        # their values before any treatment changes them
        self._values = parameter_values(self._world)
        self._loop_logger: EventLogger | None = None
        self._logger, self._clock = synchronous(named["logger"]), simulated(named["clock"])

        for name, least in {"rounds": 1, "ticks": 1, "seed": -MOST, "log_agents": 0}.items():
            value = getattr(self.world_class, name, None) if named[name] is None else named[name]
            setattr(self, name, value if value is None else require_whole(name, value, least))
        self._agents = population_of(named["agents"])
        if isinstance(named["treatments"], str):
            problem = f"must be a list of texts, such as [{named['treatments']!r}]"
            raise InputError(problem, field="treatments")
        self.treatments: tuple[str, ...] = tuple(named["treatments"] or ())
        self.writer: Any = writer_of(self.reasoner, named["writer"])
        if isinstance(self.writer, WriterOptions):
            require_model_of(self.reasoner, self.writer)

    # Carrying it out

    def run(self, on_round: Callable[[Any], object] | None = None) -> WorldResults:
        """Carry out the run in an event loop of its own, and keep nothing.

        Args:
            on_round: Called with every round when it ends.

        Raises:
            DefinitionError: If the class of the world or of an agent cannot work.
            AgentError: If an agent cannot take part.
            SimulationError: If it was run before, which has changed the agents.
        """
        try:
            outcome = carry_out(self, None, on_round=on_round, with_config=False)
            return cast("WorldResults", outcome.results)
        except Exception as error:
            error.__traceback__ = shortened(error)
            raise

    async def arun(self, on_round: Callable[[Any], object] | None = None) -> Any:
        """Carry out the run; the async twin of `run`."""
        return await self.prepare(self._logger).arun(on_round)

    def keep(
        self,
        folder: Path | str,
        *,
        on_round: Callable[[Any], object] | None = None,
        observer: Observer | None = None,
    ) -> Outcome[WorldResults]:
        """Carry out the run, and keep its log, its arguments and its results in a folder.

        Args:
            folder: The folder, which may not hold another run.
            on_round: Called with every round when it ends, after it was kept.
            observer: What to notify about the run. By default, it is logged to ``prism.runs``.

        Returns:
            Its ``results``, which `run` returns, with its ``summary`` and ``folder``.

        Raises:
            InputError: If an argument cannot be kept, such as your own reasoner.
            PrismError: If the run turns out to be impossible. If it fails in its first round, it
                leaves no folder.
            TooManyFallbacksError: If its model failed too often. The run can be resumed.
            OSError: If it cannot be written. The run can be resumed.
        """
        kept = RunFolder.for_new(Path(folder))
        return carry_out(self, kept, on_round=on_round, observer=observer)

    # Looking at it

    @property
    def world(self) -> WorldT_co:
        """The world, with its agents."""
        return cast("WorldT_co", self.loop.world)

    @property
    def agents(self) -> Sequence[Any]:
        """The population, in the order in which it was given."""
        return self.loop.agents

    @property
    def finished(self) -> Sequence[Any]:
        """The rounds that have ended."""
        return () if self._loop is None else self._loop.finished

    @property
    def clock(self) -> SimulatedClock:
        """The run's clock."""
        return self.loop.clock

    def replace(self, **changes: Any) -> Self:
        """Return the same run with other arguments.

        Args:
            changes: Arguments by name, as the class takes them.
        """
        arguments = {**self._arguments, **changes}
        if "model" in changes and "reasoner" not in changes:
            arguments["reasoner"] = None
        again = type(self)(**arguments)
        again.repeats, again.before = self.repeats, self.before
        return again

    def __repr__(self) -> str:
        """Show the world, the rounds and the seed."""
        return f"<Run of {self.world_class.__name__}, {self.rounds} rounds, seed {self.seed}>"

    def _repr_html_(self) -> str | None:
        """Offer a notebook a table of the rounds that have ended."""
        return rounds_as_html(self.finished) if self.finished else None

    # As plain data

    @property
    def is_repeatable(self) -> bool:
        """Whether the run asks no model, so that it would write the same log again."""
        is_replay = self.repeats is not None and not self.repeats.asks
        return is_replay or not any(True for _ in models_of(self))

    @property
    def deadline(self) -> float | None:
        """Seconds for which the run may ask a model; None without a limit."""
        return next((each.deadline for each in models_of(self)), None)

    @property
    def made_up(self) -> int | None:
        """The number of agents for the world to make; None if they are given, or in a file."""
        return self._agents if isinstance(self._agents, int) else None

    def repeating(
        self, run: Path, *, until: int | None = None, by_others: Iterable[str] = ()
    ) -> Self:
        """Return the same run with the answers of an earlier one.

        Args:
            run: The folder of the earlier run.
            until: The round from which on somebody is asked; if there is none, nobody is.
            by_others: Kinds of answers that another model gave.
        """
        again = self.replace()
        again.repeats = Repeats(run, until, tuple(by_others))
        return again

    def prepare(self, logger: EventLogger | None) -> Loop:
        """Make everything that the run needs, before anything is written.

        Args:
            logger: Where its events go.

        Raises:
            PrismError: If something is wrong with the world or an argument.
        """
        if self._loop is None or (self._loop.has_run and self._is_described):
            self._loop, self._loop_logger = self._make(logger), logger
        elif isinstance(logger, LateLogger) and isinstance(self._loop_logger, LateLogger):
            self._loop_logger.opened = logger

        return self._loop

    def to_config(self) -> dict[str, Any]:
        """Return the run as plain data, with the digests of the files that it reads.

        Raises:
            InputError: If a file cannot be read, or something cannot be described.
        """
        parts = {"writer": self.writer, "repeats": self.repeats, "before": self.before}
        return {
            **self._to_plain(),
            **({"reasoner": self._unasked} if self.reasoner is None else self.reasoner.to_config()),
            **{name: part.to_config() for name, part in parts.items() if part is not None},
            "inputs": self.digests(),
        }

    def _to_plain(self) -> dict[str, Any]:
        """Return the arguments that are plain data."""
        models = {name: is_custom(getattr(self, name)) for name in ("reasoner", "writer")}
        custom = {**models, "logger": self._logger is not None}
        custom["agents"] = not isinstance(self._agents, (int, Path))
        for name in filter(custom.get, custom):
            cure = {"agents": "a number or a file", "logger": "none"}.get(name, "a model")
            problem = f"cannot be kept in a folder: pass {cure}, or call run()"
            raise InputError(problem, field=name)

        return {
            "world": self._address or address_of(self.world_class),
            "agents": plain_value(self._agents),
            "rounds": self.rounds,
            "ticks_per_round": self.ticks,
            "seed": self.seed,
            "parameters": {name: plain_value(each) for name, each in self._values.items()},
            "treatments": [*self.treatments],
            **({} if self.log_agents is None else {"log_agents": self.log_agents}),
        }

    @property
    def charts(self) -> list[dict[str, Any]]:
        """The charts of the agents as they are drawn."""
        from prism.statechart.outline import to_outline

        try:
            outlines = map(to_outline, self.world.charts)
            return [orjson.loads(orjson.dumps(each, default=sorted)) for each in outlines]
        except DefinitionError:  # two states have one text, so they cannot be drawn
            return []

    @property
    def titles(self) -> dict[str, str]:
        """The measures in words, as far as the world's class has labels for them."""
        return titles_of(self.world_class)

    @classmethod
    def from_config(cls, config: Mapping[str, Any], path: Path) -> Self:
        """Read what `to_config` returned.

        Args:
            config: The run as plain data.
            path: The file that it comes from, for messages.

        Raises:
            InputError: If it is not such data.
        """
        with naming(path):
            cls = alone(config.get("agent")) or cls
            run = cls(reasoner=read_decider(config), **cls._from_plain(config))
            run.repeats, run.before = Repeats.from_config(config), Before.from_config(config)
            return run

    @classmethod
    def _from_plain(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other arguments of a run from its configuration."""
        kept = ("world", "agents", "rounds", "seed", "parameters", "treatments")
        return {
            **{name: config[name] for name in kept},
            "ticks": config["ticks_per_round"],
            "log_agents": config.get("log_agents"),
            "writer": read_writer(config),
        }

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is read, by its name."""
        cls, deciders = self.world_class, (self.reasoner, getattr(self.before, "decider", None))
        paths: list[Any] = [self._agents] if isinstance(self._agents, Path) else []
        paths += [each.policy for each in deciders if isinstance(each, PolicyOptions)]
        paths += filter(None, (self._values.get(name) for name in cls.input_files))
        source = (self._address or address_of(cls)).rpartition(":")[0]
        return {
            # that of the code which runs, also if the file was edited since
            source: cls._source or digest(Path(file_of(cls))),
            **{str(path): digest(Path(path)) for path in paths},
        }

    # Making it

    @property
    def loop(self) -> Loop:
        """The loop that carries out the run, for inspection."""
        return self._loop or self.prepare(self._logger or LateLogger())

    def _new_world(self) -> World[Any]:
        try:
            return self.world_class(**self._parameters)
        except (TypeError, FieldValueError) as error:
            raise InputError(str(error), field="parameters") from None

    def _make(self, logger: EventLogger | None) -> Loop:
        """Make the world, its agents, the reasoner and the writer."""
        world = self._world or self._new_world()
        # the next run makes a new one
        self._world = None if self._is_described else world
        decides, writes = askers_of(self, world.fallback)
        return Loop(self, world, decides, writes, self._logger if logger is None else logger)

    @property
    def _is_described(self) -> bool:
        """Whether each carrying out of the run makes a new world and new agents."""
        return self._is_class and isinstance(self._agents, (int, Path))
