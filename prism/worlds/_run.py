"""A run: a world, its agents, and everything else that its events depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from reprlib import repr as brief
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Protocol,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

import orjson

from prism._faults import shortened
from prism.errors import DefinitionError, FieldValueError, InputError, PrismError
from prism.llm import Model
from prism.runlog import SimulatedClock
from prism.runlog._reader import LOG_NAMES
from prism.runs import Observer, Outcome, WriterOptions
from prism.runs._folder import RunFolder, read_summary
from prism.runs._options import (
    ALL_OTHERS,
    DeciderOptions,
    Later,
    PolicyOptions,
    Repeats,
    digest,
    models_of,
    naming,
    read_decider,
    read_writer,
    require_model_of,
    require_writable,
)
from prism.runs._running import carry_out, go_on, repeat
from prism.statechart import BaseWriter, Decider
from prism.telemetry.loggers import EventLogger, LateLogger
from prism.worlds._addresses import address_of, file_of, found_at, load_world
from prism.worlds._fields import parameter_values, plain_value
from prism.worlds._loop import Loop
from prism.worlds._people import AgentTable
from prism.worlds._treatments import later_models
from prism.worlds._world import DEFAULT_AGENTS, World, outlines_of

WorldT_co = TypeVar("WorldT_co", covariant=True)
ResultsT_co = TypeVar("ResultsT_co", covariant=True)
ResultsT = TypeVar("ResultsT")

Agents = int | str | Path | AgentTable | Iterable[Any] | None

POLICY = "policy"


class Arguments(TypedDict, total=False):
    """The arguments of a `Run` by name."""

    rounds: int | None
    ticks: int | None
    seed: int
    model: Any
    reasoner: Decider | DeciderOptions
    writer: Any
    treatments: Sequence[str]
    parameters: Any
    logger: EventLogger | None
    clock: SimulatedClock | None
    log_agents: int | None


class RunsAlone(Protocol):
    """An agent whose class runs alone, such as a `CognitiveAgent`."""

    _prism_run_alone: ClassVar[str]


class Ending(Protocol[ResultsT_co]):
    """A world that tells type checkers the type of its runs' results."""

    def _prism_comes_to(self) -> ResultsT_co: ...


class Run(Generic[WorldT_co]):
    """A world, its agents, and everything else that its events depend on.

    `run` carries it out, and `keep` carries it out and keeps it in a folder, from which
    ``prism.resume`` continues a stopped run and ``prism.replay`` repeats it.

    A run of a world's class can be carried out any number of times, and makes a new world each
    time. A run of an existing world, or of existing agents, can be carried out once.

    Args:
        world: The world: its class, an instance with parameters of its own, or where it is found:
            ``package.module:Name``, ``file.py:Name``, the short name of one that comes with prism,
            or a file of an agent (``.yaml``) or of a thinking agent (``.json``), or a subclass of
            `prism.programs.thinking.CognitiveAgent`, with its attribute ``config``. These are run
            alone, as a world with one agent whose rounds are turns or cycles. They take further
            arguments by name, such as ``memory``; ``parameters`` are the variables of an agent in
            YAML.
        agents: The number of agents for `World.populate` to make, a file of agents or an
            `AgentTable`, or the agents themselves. By default 100.
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
            (``warning@12``), a parameter (``tiring=0.1@20``), or the model that decides
            (``model=ollama:llama3.3@5``).
        parameters: Parameters of a world's class by name. Texts are converted to their types.
        logger: Where to write the events of a run that is not kept, or None for structlog's own
            logger, once it is configured.
        clock: The run's clock.
        log_agents: How many agents the log covers, a sample drawn by the seed; 0 leaves out the
            events of single agents, except the posts and votes of a feed. By default all, or 1,000
            if there are more than 100,000. Counts and measures cover all agents.
        agent_id: For a single agent: its name.
        application: For a single agent: what the application provides, which no run keeps. For an
            agent in YAML that is ``variables`` and ``on_action``, as
            `prism.programs.yaml.WorkflowAgent` takes them.
        context: For an agent in YAML: a YAML or JSON file of initial variables. ``parameters``
            override them.
        memory: For a thinking agent: the file of its memory, which the run changes in place and
            creates if it is missing. A repeated run has its own memory.

    Attributes:
        seed: Seed of every random number.
        rounds: Number of rounds.
        ticks: Ticks in a round.
        treatments: The treatments.
        log_agents: How many agents the log covers, as given.
        reasoner: What decides, as given, or the model.
        writer: What writes, as given.
        repeats: The earlier run whose answers it takes, if any.

    Raises:
        InputError: If the world does not exist, or the arguments do not fit together.
        FieldValueError: If a number is out of range.
    """

    repeats: Repeats | None = None

    # type checkers would infer the type of a run from what __new__ returns
    if not TYPE_CHECKING:

        def __new__(cls, world: Any = None, *_agents: Any, **_options: Any) -> Any:
            """Make a run, or an `AloneRun` if the world is an agent that is run alone."""
            key = key_of(world) if cls is Run else None
            return super().__new__(cls if key is None else _alone(key))

    @overload
    def __init__(
        self, world: type[WorldT_co], agents: Agents = None, **options: Unpack[Arguments]
    ) -> None: ...
    @overload
    def __init__(
        self: Run[Any], world: str | Path | type[RunsAlone], agents: Agents = None, **options: Any
    ) -> None: ...
    @overload
    def __init__(
        self, world: WorldT_co, agents: Agents = None, **options: Unpack[Arguments]
    ) -> None: ...
    def __init__(self, world: Any, agents: Agents = None, **options: Any) -> None:
        if unknown := options.keys() - Arguments.__annotations__.keys():
            raise TypeError(f"Run() got an unexpected keyword argument {min(unknown)!r}")
        self._arguments: dict[str, Any] = {"world": world, "agents": agents, **options}
        self._class, self._address = _class_of(world)
        self._is_class = not isinstance(world, World)
        self._parameters: Any = options.get("parameters") or {}
        if self._parameters and not self._is_class:
            problem = f"belong to the given {self._class.__name__}: pass the class, or leave them"
            raise InputError(problem, field="parameters")
        self._world: World[Any] | None = self._new_world() if self._is_class else world
        # their values before any treatment changes them
        self._values = parameter_values(self._world)
        self._loop: Any = None
        self._loop_logger: EventLogger | None = None
        self._logger, self._clock = options.get("logger"), options.get("clock")

        rounds, ticks = options.get("rounds"), options.get("ticks")
        self.rounds: int = self._class.rounds if rounds is None else rounds
        self.ticks: int = self._class.ticks if ticks is None else ticks
        self.log_agents: int | None = options.get("log_agents")
        least = {"rounds": 1, "ticks": 1, "log_agents": 0}
        for name, number in least.items():
            if (value := getattr(self, name)) is not None:
                require_whole(name, value, number)
        self.seed: int = require_seed(options.get("seed", 0))
        self._agents = _population(agents)
        self.treatments: tuple[str, ...] = _listed(options.get("treatments", ()))
        self.reasoner: Any = decider(options.get("model"), options.get("reasoner"))
        self.writer: Any = _writer(self.reasoner, options.get("writer"))
        self._require_askers()

    # Carrying it out

    def run(
        self: Run[Ending[ResultsT]], on_round: Callable[[Any], object] | None = None
    ) -> ResultsT:
        """Carry out the run in an event loop of its own, and keep nothing.

        Args:
            on_round: Called with every round when it ends.

        Raises:
            DefinitionError: If the class of the world or of an agent cannot work.
            AgentError: If an agent cannot take part.
            SimulationError: If it was run before, which has changed the agents.
        """
        try:
            results: ResultsT = carry_out(self, None, on_round=on_round, told=False).results
        except Exception as error:
            error.__traceback__ = shortened(error)
            raise

        return results

    async def arun(self, on_round: Callable[[Any], object] | None = None) -> Any:
        """Carry out the run; the async twin of `run`."""
        return await self.prepare(self._logger).arun(on_round)

    def keep(
        self: Run[Ending[ResultsT]],
        folder: Path | str,
        *,
        on_round: Callable[[Any], object] | None = None,
        observer: Observer | None = None,
    ) -> Outcome[ResultsT]:
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
        found: WorldT_co = self.loop.world
        return found

    @property
    def agents(self) -> Sequence[Any]:
        """The population, in the order in which it was given."""
        agents: Sequence[Any] = self.loop.agents
        return agents

    @property
    def finished(self) -> Sequence[Any]:
        """The rounds that have ended."""
        return () if self._loop is None else self._loop.finished

    @property
    def clock(self) -> SimulatedClock:
        """The run's clock."""
        clock: SimulatedClock = self.loop.clock
        return clock

    def replace(self, **changes: Any) -> Self:
        """Return the same run with other arguments.

        Args:
            changes: Arguments by name, as the class takes them.
        """
        arguments = {**self._arguments, **changes}
        if "parameters" in changes and not self._is_class and "world" not in changes:
            arguments["world"] = self._class
        # either of both decides
        for name, other in (("model", "reasoner"), ("reasoner", "model")):
            if name in changes and other not in changes:
                arguments[other] = None
        made = type(self)(**arguments)
        made.repeats = self.repeats
        return made

    def __repr__(self) -> str:
        """Show the world, the rounds and the seed."""
        return f"<Run of {self._class.__name__}, {self.rounds} rounds, seed {self.seed}>"

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

    def repeating(self, run: Path, *, asks: bool = False, until: int | None = None) -> Self:
        """Return the same run with the answers of an earlier one.

        Args:
            run: The folder of the earlier run.
            asks: Whether somebody is asked where its journal has no answer to a question.
            until: The round from which on no more of its answers are taken.
        """
        again = self.replace()
        again.repeats = Repeats(run, asks, until)
        return again

    def prepare(self, logger: EventLogger | None) -> Any:
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
        for field, problem in self._undescribed():
            raise InputError(problem, field=field)

        agents = self._agents
        return {
            "world": self._where(),
            "agents": str(agents.path) if isinstance(agents, AgentTable) else agents,
            "rounds": self.rounds,
            "ticks_per_round": self.ticks,
            "seed": self.seed,
            "parameters": self._all_parameters(),
            "treatments": [*self.treatments],
            **({"reasoner": POLICY} if self.reasoner is None else self.reasoner.to_config()),
            **({} if self.writer is None else {"writer": self.writer.to_config()}),
            **({} if self.log_agents is None else {"log_agents": self.log_agents}),
            **({} if self.repeats is None else {"repeats": self.repeats.to_config()}),
            "inputs": self.digests(),
        }

    @property
    def charts(self) -> list[dict[str, Any]]:
        """The charts of the agents as they are drawn."""
        with suppress(DefinitionError):  # two states have one text, so they cannot be drawn
            told: list[dict[str, Any]] = orjson.loads(
                orjson.dumps(outlines_of(self.world_class), default=sorted)
            )
            return told
        return []

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
            run = cls(
                config["world"],
                config["agents"],
                rounds=config["rounds"],
                ticks=config["ticks_per_round"],
                seed=config["seed"],
                parameters=config["parameters"],
                treatments=config["treatments"],
                reasoner=read_decider(config),
                writer=read_writer(config),
                log_agents=config.get("log_agents"),
            )
            run.repeats = Repeats.from_config(config)
            return run

    @property
    def world_class(self) -> type[World[Any]]:
        """The world's class."""
        return self._class

    @property
    def place(self) -> str:
        """The module or file of the world's class."""
        return self._where().rpartition(":")[0]

    def _where(self) -> str:
        """Return the address of the world's class."""
        if self._address is None:
            self._address = address_of(self._class)
        return self._address

    def _undescribed(self) -> Iterator[tuple[str, str]]:
        """Yield the arguments that a folder cannot keep, each with the problem."""
        if not isinstance(self._agents, (int, AgentTable)):
            yield (
                "agents",
                "are objects, which another process could not recreate: give a number or a file",
            )
        for name, asked in (("reasoner", self.reasoner), ("writer", self.writer)):
            if asked is not None and not hasattr(asked, "to_config"):
                kept = f"a folder cannot keep a {type(asked).__name__}"
                yield name, f"is your own object, and {kept}: pass a model, or call run()"
        if self._logger is not None:
            yield "logger", "is only for a run that is not kept: leave it out, or call run()"

    def _all_parameters(self) -> dict[str, Any]:
        """Return all parameters as JSON, including those with their defaults."""
        found = {name: _plain(self._class, name, value) for name, value in self._values.items()}
        for name, value in found.items():
            require_writable(name, value)
        return found

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every file that is read, by its name."""
        files = {self.place: Path(file_of(self._class))}
        if isinstance(self._agents, AgentTable):
            files[str(self._agents.path)] = self._agents.path
        if isinstance(self.reasoner, PolicyOptions):
            files[str(self.reasoner.policy)] = Path(self.reasoner.policy)

        for name in self._class.input_files:
            if (value := self._values.get(name)) is not None:
                files[str(value)] = Path(str(value))
        return {name: digest(path) for name, path in files.items()}

    # Making it

    @property
    def loop(self) -> Any:
        """The loop that carries out the run, for inspection."""
        if self._loop is None:
            self.prepare(self._logger or LateLogger())
        return self._loop

    def _new_world(self) -> World[Any]:
        try:
            return self._class(**self._parameters)
        except (DefinitionError, InputError):
            raise
        except (TypeError, PrismError) as error:
            raise InputError(str(error), field="parameters") from None

    def _make(self, logger: EventLogger | None) -> Any:
        """Make the world, its agents, the reasoner and the writer."""
        world = self._world or self._new_world()
        # the next run makes a new one
        self._world = None if self._is_described else world
        decides, writes = self._askers(world)
        words = self.writer
        return Loop(
            world,
            self._agents,
            rounds=self.rounds,
            ticks=self.ticks,
            seed=self.seed,
            reasoner=decides,
            writer=writes,
            wording=words.wording() if isinstance(words, WriterOptions) else None,
            treatments=self.treatments,
            logger=self._logger if logger is None else logger,
            clock=self._clock,
            log_agents=self.log_agents,
        )

    @property
    def _is_described(self) -> bool:
        """Whether each carrying out of the run makes a new world and new agents."""
        return self._is_class and isinstance(self._agents, (int, AgentTable))

    def _askers(self, world: World[Any]) -> tuple[Any, BaseWriter | None]:
        """Return the reasoner and the writer, if any were given."""
        reasoner, writer, later = self.reasoner, self.writer, self.later_models()
        own_reasoner = reasoner if _is_own(reasoner) else None
        own_writer = writer if isinstance(writer, BaseWriter) else None
        if own_reasoner is not None and later:
            problem = "switch to a model, but a reasoner of your own decides: leave out one"
            raise InputError(problem, field="treatments")
        options = None if own_reasoner is not None else reasoner
        written = None if own_writer is not None else writer
        if options is None and written is None and not later:
            return own_reasoner, own_writer

        # the code that asks a model is loaded only by runs that have one
        from prism.reasoner._router import Router
        from prism.runs._makers import make_askers

        decides, writes = make_askers(options, written, self.seed, world.fallback, later=later)
        is_after_a_model = self.repeats is not None and self.repeats.has_answers
        if is_after_a_model and isinstance(options, PolicyOptions):
            assert decides is not None
            # it decides after a model, whose answers come from a journal
            decides = Router({ALL_OTHERS: decides})
        return own_reasoner or decides, own_writer or writes

    def later_models(self) -> Later:
        """Return the models to which the run switches later."""
        return later_models(self._class, self.treatments) if self.treatments else {}

    def _require_askers(self) -> None:
        """Refuse a reasoner or a writer that cannot do its work."""
        if _is_own(self.reasoner) and not callable(getattr(self.reasoner, "decide_many", None)):
            raise InputError(
                "must be a reasoner or a policy file, and a model is passed as model=...; "
                f"got {brief(self.reasoner)}",
                field="reasoner",
            )
        named = (each for each in (self.reasoner, self.writer) if each is not None)
        if any(not _is_own(each) for each in named):
            require_model_of(self.reasoner, self.writer)


def resume(
    folder: Path | str,
    *,
    hosts: Sequence[str] = (),
    model: Any = None,
    application: Mapping[str, Any] | None = None,
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
) -> Outcome[Any] | None:
    """Continue a stopped run to its end, however it was stopped.

    The run is carried out again with the answers in its journal, and asks only where they end. Its
    log is the same, to the byte, as that of a run that was never stopped. Code that has changed is
    reported; the run goes on while it asks and logs the same.

    Args:
        folder: The folder of the run.
        hosts: Addresses of its servers with names and passwords, which no run keeps. Missing ones
            are taken from the environment variable ``OLLAMA_HOST``. Other addresses are where the
            servers are now, and are kept.
        model: The client of another library that the run asks. No run keeps it.
        application: What the application provides for a single agent. No run keeps it.
        on_round: Called with every round as it ends, after it has been kept.
        observer: What to notify about the run. By default, it is logged to ``prism.runs``.

    Returns:
        The outcome; None if the run was complete already.

    Raises:
        InputError: If the folder holds no run, another process is writing it, or a host's password
            is missing.
        ReplayError: If it asks or logs something else than before; the message names it.
        OSError: If it cannot be written. It can be resumed again.
    """
    path = Path(folder)
    return go_on(
        path,
        _kind(read_summary(path)["config"]),
        hosts=hosts,
        model=model,
        application=application,
        on_round=on_round,
        observer=observer,
    )


def replay(
    recorded: Path | str,
    folder: Path | str | None = None,
    *,
    application: Mapping[str, Any] | None = None,
    on_round: Callable[[Any], object] | None = None,
    observer: Observer | None = None,
) -> Outcome[Any]:
    """Repeat an earlier run with the answers in its journal, and write the same log.

    Args:
        recorded: The folder of the earlier run.
        folder: Where to keep the new run. Without one, nothing is written.
        application: What the application provides for a single agent, which no run keeps.
        on_round: Called with every round as it ends, after it has been kept.
        observer: What to notify about the run. By default, it is logged to ``prism.runs``.

    Raises:
        InputError: If there is no run in the folder.
        ReplayError: If an answer is missing, or something else is asked or logged.
        OSError: If the new run cannot be written. It can be resumed.
    """
    # the path of a log means its folder
    path = Path(recorded)
    path = path.parent if path.name in LOG_NAMES and path.is_file() else path
    return repeat(
        path,
        _kind(read_summary(path)["config"]),
        folder,
        application=application,
        on_round=on_round,
        observer=observer,
    )


_ALONE = {
    "workflow": ("prism.programs._runs", "WorkflowRun"),
    "cognition": ("prism.programs._runs", "CognitiveRun"),
}
"""The classes of runs of a single agent, by the key of ``run.json`` that only they have."""

_KEYS = {".yaml": "workflow", ".yml": "workflow", ".json": "cognition"}


def key_of(world: Any) -> str | None:
    """Return ``workflow`` or ``cognition`` for an agent that is run alone; None for a world.

    Raises:
        InputError: If the module of a class cannot be imported, or has nothing of that name.
    """
    if isinstance(world, (str, Path)):
        if (key := _KEYS.get(Path(world).suffix.lower())) is not None:
            return key
        address = str(world)
        is_named = all(address.rpartition(":"))
        world = (found_at(address) or load_world(address)) if is_named else None

    return getattr(world, "_prism_run_alone", None) if isinstance(world, type) else None


def _kind(config: Mapping[str, Any]) -> Any:
    """Return the class that reads a ``run.json``."""
    return next((_alone(key) for key in _ALONE if key in config), Run)


def _alone(key: str) -> Any:
    module, name = _ALONE[key]
    return getattr(import_module(module), name)


def _class_of(world: Any) -> tuple[type[World[Any]], str | None]:
    """Return the class of a world, and its address if that was given."""
    if isinstance(world, (str, Path)):
        address = address_of(str(world))
        return load_world(address), address
    cls = world if isinstance(world, type) else type(world)
    if not issubclass(cls, World):
        raise InputError(f"must be a world, got {world!r}", field="world")
    return cls, None


def _population(agents: Any) -> Any:
    """Return the agents of a run: their number, a table, or the agents themselves."""
    if isinstance(agents, str) and agents.isdecimal():
        agents = int(agents)
    if isinstance(agents, (str, Path)):
        return AgentTable(agents)
    if isinstance(agents, int) and agents < 1:
        raise InputError(f"must be 1 or more, got {agents}", field="agents")
    return DEFAULT_AGENTS if agents is None else agents


def _listed(treatments: Any) -> tuple[str, ...]:
    """Return the treatments of a run.

    Raises:
        InputError: If they are something else.
    """
    # a text is a sequence of letters
    is_list = isinstance(treatments, Iterable) and not isinstance(treatments, str)
    found = tuple(treatments) if is_list else ()
    if not is_list or not all(isinstance(each, str) for each in found):
        raise InputError(
            "must be a list of texts, such as ['warning@12', 'tiring=0.1@20']; "
            f"got {brief(treatments)}",
            field="treatments",
        )
    return found


def decider(model: Any, reasoner: Any) -> Any:
    """Return the reasoner or the model that decides.

    Raises:
        InputError: If both were given.
    """
    if model is None:
        return reasoner
    if isinstance(reasoner, PolicyOptions):
        raise InputError("has no effect beside a reasoner: leave one out", field="model")
    if _is_own(reasoner):
        raise FieldValueError("a model and a reasoner cannot both decide: leave one out")

    return Model.of(model)


def _writer(decides: Any, writer: Any) -> Any:
    """Return the writer: the user's own, or the options of a model that writes."""
    if writer is None or isinstance(writer, (WriterOptions, BaseWriter)):
        return writer

    asked = Model.of(writer)
    # a client that decides and writes is only one client
    return WriterOptions(None if asked == decides else asked)


def _is_own(asked: Any) -> bool:
    """Return whether the reasoner or the writer is the user's own object."""
    return asked is not None and not hasattr(asked, "to_config")


def _plain(cls: type[World[Any]], name: str, value: Any) -> Any:
    plain = plain_value(value)
    items = plain if isinstance(plain, list) else [plain]
    if all(isinstance(each, (str, int, float, bool, type(None))) for each in items):
        return plain

    raise InputError(
        f"{cls.__name__}.{name} must be a number, a text, an enum, None, or a tuple of these, as "
        f"run.json keeps it; got {value!r}",
        field="parameters",
    )


def require_whole(name: str, value: int, least: int) -> int:
    """Return a number of rounds, ticks or agents.

    Raises:
        FieldValueError: If it is not a whole number of at least so much.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise FieldValueError(f"{name} must be a whole number, {least} or more, got {value!r}")
    return value


def require_seed(value: int) -> int:
    """Return a seed.

    Raises:
        FieldValueError: If it is not a whole number.
        InputError: If it is too large.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise FieldValueError(f"seed must be a whole number, got {value!r}")
    # the largest whole number that every reader of JSON reads exactly
    if abs(value) > 2**53:
        raise InputError(f"must lie between -2^53 and 2^53, got {value}", field="seed")

    return value
