"""A run of cycles: a world with one agent, and everything that its events depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

from prism.errors import FieldValueError, InputError, ReplayError
from prism.files._durable import write_durably
from prism.programs.thinking._agent import CognitiveAgent, number_of_cycles, with_window
from prism.programs.thinking._config import Config
from prism.programs.thinking._cycle import CognitiveResults, Cycle, reason_to_stop
from prism.programs.thinking._memory import Memory, document_of, to_json
from prism.reasoner._texts import BaseWriter
from prism.reasoner._tokens import TokenCounter, count_tokens
from prism.runlog import SimulatedClock
from prism.runs._config import REASONER_KINDS, naming, require_writable
from prism.runs._makers import make_repeated_writer, make_writer
from prism.runs._options import ReplayOptions, recorded_log
from prism.telemetry import events
from prism.telemetry.loggers import EventLogger, describe, report
from prism.worlds._addresses import address_of, file_of, found_at, function_at
from prism.worlds._alone import AloneLoop, AloneRun

_ESTIMATE = "estimate"

_KINDS: Mapping[str, Any] = {
    "cognition": str,
    "memory": str,
    "cycles": int | None,
    "goal": str | None,
    "agent_id": str,
    "count": str,
    "seed": int,
    "reasoner": tuple(REASONER_KINDS),
    "inputs": dict,
}


class Thinker(CognitiveAgent):
    """An agent that thinks alone.

    Attributes:
        last: The result of its last cycle; None before the first.
    """

    last: Cycle | None = None

    async def act(self, world: Any) -> None:  # noqa: ARG002 - there is nobody else in it
        """Run a cycle."""
        self.last = await self.cycle()


class Cycles(AloneLoop):
    """The run of one agent that thinks; a cycle is a round.

    The memory's own file changes cycle by cycle. The folder keeps a copy of what it was at the
    beginning, with which a resumed run carries its cycles out again, with the replies in the
    journal. A repeated run has a memory of its own in its own folder, or nowhere.
    """

    agent: Thinker
    options: CognitiveRun
    _folder: Path | None = None

    def kept_in(self, folder: Path) -> None:
        """Set the folder in which copies of the memory are kept."""
        self._folder = folder

    def is_over(self) -> bool:
        """Return whether the last cycles were useless."""
        return self._reason_to_stop() is not None

    def _reason_to_stop(self) -> str | None:
        """Return why the run ends early; None if it continues."""
        return reason_to_stop(self.finished, self.agent.config.iterate.max_useless)

    def results(self) -> CognitiveResults:
        """Return the results of the run."""
        results = CognitiveResults.of(self.agent, self.finished, self._reason_to_stop())
        if results.stopped is not None:
            agent = self.agent
            about = {"agent_id": agent.agent_id, "cycle": agent.memory.cycle}
            reason = results.stopped
            report(self._logger, "warning", events.COGNITION_STOPPED, **about, reason=reason)

        return results

    @contextmanager
    def running(self) -> Iterator[None]:
        """Open the memory, and begin with what it was when the run began."""
        options, folder = self.options, self._folder
        kept = None if folder is None else folder / BEFORE_NAME
        if options.is_repeatable:
            recorded = options.recorded_memory()
            path = None if folder is None else folder / "memory.json"
            memory = Memory.in_memory(recorded) if path is None else Memory.open(path)
            memory.replace(recorded)
        else:
            memory = Memory.open(options.memory)
        with memory:
            self.agent.take_memory(memory)
            if kept is not None and kept.exists() and not options.is_repeatable:
                self.agent.rewind(document_of(kept))
            elif kept is not None:
                write_durably(kept, to_json(memory.to_dict()))
            yield


BEFORE_NAME = "memory_before.json"
"""The copy of the memory as it was at the beginning, in the folder of a run."""


@dataclass(init=False, repr=False, kw_only=True)
class CognitiveRun(AloneRun):
    """A run of an agent's cycles.

    The run changes the memory's own file. Its folder keeps what the memory was at the beginning, so
    that the run can be repeated. A repeated run has a memory of its own in its own folder.

    Args:
        rounds: Number of cycles; ``iterate.max_iterations`` by default, which is also the most.
        memory: The agent's memory; a missing file is created.
        goal: What the agent is to achieve; the configuration's goal by default.
        count: Who counts tokens: ``estimate``, ``bytes``, or ``package.module:function``.
        application: ``count``, if anything: a token counter, as `CognitiveAgent` takes it.
    """

    names: ClassVar[Mapping[str, str]] = {"cognition": "file", "cycles": "rounds"}
    kinds: ClassVar[Mapping[str, Any]] = _KINDS
    paths: ClassVar[Sequence[str]] = ("file", "memory")
    brought: ClassVar[Sequence[str]] = ("count",)

    memory: Path
    goal: str | None = None
    count: str = _ESTIMATE

    def _check(self) -> None:
        super()._check()
        if isinstance(self.file, type):
            self.file = Path(address_of(self.file))
        require_writable("goal", self.goal)

    @property
    def number_of_rounds(self) -> int:
        """How many cycles it has, whether it says so or its file does."""
        return self._number_of_cycles(self._agent()[1])

    def _make(self, logger: EventLogger | None) -> Any:
        """Read and make all that the run needs.

        Args:
            logger: Where its events go.

        Raises:
            InputError: If something is wrong with a file or an option.
        """
        thinker, config = self._agent()
        count: TokenCounter = self.application.get("count") or _counter_of(self.count)
        cycles = self._number_of_cycles(config)
        clock = SimulatedClock()
        # the memory of the run is opened when it begins
        make = partial(
            thinker,
            config,
            Memory.in_memory(),
            agent_id=self.agent_id,
            goal=self.goal,
            count=count,
            logger=logger,
            clock=clock,
        )
        try:
            signature(thinker).bind(*make.args, **make.keywords)
        except TypeError as error:
            problem = f"must take the arguments of CognitiveAgent to run alone: {error}"
            raise InputError(f"{thinker.__name__} {problem}", path=self.file) from None
        with naming(self.file):
            agent = make()
        writer = self._writer_of(config)
        loop = Cycles(agent, writer, cycles, self.seed, logger, clock)
        loop.options = self

        return loop

    def _own_class(self) -> type[CognitiveAgent] | None:
        """Return the agent's class; None if it has only a configuration."""
        if self.file.suffix.lower() == ".json":
            return None

        found = found_at(str(self.file))
        if not (isinstance(found, type) and issubclass(found, CognitiveAgent)):
            raise InputError(f"{self.file} is no thinking agent", field="world")
        return found

    def _agent(self) -> tuple[type[Thinker], Config]:
        """Return the class of the agent in this run, and its configuration."""
        own = self._own_class()
        if own is None:
            return Thinker, Config.load(self.file)

        config = getattr(own, "config", Config())
        if not isinstance(config, Config):
            problem = f"{own.__name__}.config must be a Config, got {config!r}"
            raise InputError(problem, path=self.file)
        named = {"__module__": own.__module__, "__doc__": own.__doc__}
        return type(own.__name__, (Thinker, own), named), config

    def _inputs(self) -> Iterator[Path]:
        own = self._own_class()
        if own is None:
            yield self.file
            return

        place = str(self.file).rpartition(":")[0]
        yield Path(place if place.endswith(".py") else file_of(own))

    def _number_of_cycles(self, config: Config) -> int:
        try:
            return number_of_cycles(config, self.rounds)
        except FieldValueError as error:
            raise InputError(str(error), field="rounds") from None

    def _require_memory(self) -> None:
        """Refuse a memory that cannot be opened, before a model is asked."""
        try:
            Memory.open(self.memory).close()
        except OSError as error:
            raise InputError(f"cannot be opened: {error.strerror}", path=self.memory) from None

    def _writer_of(self, config: Config) -> BaseWriter:
        if isinstance(self.reasoner, ReplayOptions):
            self.recorded_memory()
            writer = make_repeated_writer(self.reasoner, self.seed)
            assert writer is not None
            return writer
        if self.reasoner is None:
            raise InputError(
                "no model is named: add --model; prism replay repeats an earlier run without one",
                field="reasoner",
            )

        self._require_memory()
        model = with_window(self.reasoner, config)
        return make_writer(model, self.seed)

    def recorded_memory(self) -> dict[str, Any]:
        """Return the copy of its memory that the run that is repeated kept.

        Raises:
            ReplayError: If there is no copy in its folder.
        """
        assert isinstance(self.reasoner, ReplayOptions)
        path = recorded_log(self.reasoner).parent / BEFORE_NAME
        if not path.exists():
            raise ReplayError(
                f"{path.parent} holds no {path.name}, with which the run began: give the complete "
                "folder of a run of cycles"
            )

        return document_of(path)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) + 1


# an estimate, and a count that no tokenizer exceeds
_COUNTERS: Mapping[str, TokenCounter] = {_ESTIMATE: count_tokens, "bytes": _bytes}


def _counter_of(name: str) -> TokenCounter:
    """Return the token counter of a name.

    Args:
        name: ``estimate``, ``bytes``, or ``package.module:function`` for your own tokenizer, which
            takes a text and returns how many tokens it has.

    Raises:
        InputError: If there is none, or it counts no tokens.
    """
    if name in _COUNTERS:
        return _COUNTERS[name]

    if not all(name.rpartition(":")):
        known = ", ".join(_COUNTERS)
        problem = f"there is no token counter {name!r}: use {known} or package.module:function"
        raise InputError(problem, field="count")
    try:
        counter = function_at(name, "count")
        counted: Any = counter("two words")
    except Exception as error:  # of a module of the user's
        told = error.problem if isinstance(error, InputError) else describe(error)
        raise InputError(f"{name} cannot be used: {told}", field="count") from error
    if isinstance(counted, bool) or not isinstance(counted, int) or counted < 0:
        raise InputError(f"{name} must return a number of tokens, got {counted!r}", field="count")

    return counter
