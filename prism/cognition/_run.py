"""A run of cycles: a world with one agent, and everything that its events depend on."""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from prism.cognition._actions import ActionResult
from prism.cognition._agent import CognitiveAgent, number_of_cycles, with_window
from prism.cognition._chart import CHART_NAME
from prism.cognition._config import Config
from prism.cognition._cycle import CognitiveResults, Cycle, lost_calls, reason_to_stop
from prism.cognition._memory._memory import Memory, document_of
from prism.cognition._memory._values import to_json
from prism.cognition._paging import Paged
from prism.errors import FieldValueError, InputError, ReplayError
from prism.files._durable import write_durably
from prism.reasoner._spending import Cost
from prism.reasoner._texts import BaseWriter
from prism.reasoner._tokens import TokenCounter, count_tokens
from prism.runlog import ReplayWriter, SimulatedClock
from prism.runlog._recorded import _events
from prism.runs._config import REASONER_KINDS, naming, require_writable
from prism.runs._lent import Lent
from prism.runs._makers import make_writer
from prism.runs._options import ReplayOptions, recorded_log
from prism.telemetry import events
from prism.telemetry.loggers import EventLogger, describe, report
from prism.worlds._addresses import address_of, file_of, found_at, function_at
from prism.worlds._alone import Alone, AloneRun, Event, told_by
from prism.worlds._loop import Loop

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
    """An agent that thinks alone, and of which a checkpoint keeps what its memory's file lacks.

    Attributes:
        folder: The run's folder; None if the run is not kept.
        last: The result of its last cycle; None before the first.
        kept: What the checkpoint from which its run continues says.
    """

    folder: Path | None = None
    last: Cycle | None = None
    kept: Mapping[str, Any]

    def join(self, lent: Lent) -> None:
        """Use what the run lends; its world keeps the memory."""
        self._use(lent)

    async def act(self, world: Any) -> None:  # noqa: ARG002 - there is nobody else in it
        """Run a cycle; the memory is committed once it is in the log and in a checkpoint."""
        self.last = await self.take_cycle()

    def snapshot(self) -> dict[str, Any]:
        """Return the memory as it is now, and the revision of its file, which is behind."""
        memory = self.memory
        # as text: values of memories may be anything that JSON holds
        return {
            "ticks_in_state": self.ticks_in_state,
            "revision": memory.revision,
            "memory": memory.to_json().decode(),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take note of what `snapshot` returned, until the memory is open."""
        self.kept = data


class Cycles(Alone):
    """A world whose one agent thinks; a cycle is a round.

    What a cycle did is in the log first, then in a checkpoint, and then in the memory's file. A
    process that is killed between the last two leaves a memory that is one cycle behind, which the
    resumed run makes good by what the checkpoint holds.

    A repeated run begins with a copy of the first one's memory, which is in its own folder, or
    nowhere if that is not kept.
    """

    __slots__ = ("_run", "_told")

    if TYPE_CHECKING:
        agent: Thinker
        _run: CognitiveRun
        _told: defaultdict[str, list[Event]]

    def _prism_kept_in(self, folder: Path) -> None:
        self.agent.folder = folder

    @contextmanager
    def _prism_running(self, *, is_new: bool) -> Iterator[None]:
        agent = self.agent
        try:
            agent.take_memory(self._opened(is_new=is_new))
            if is_new:
                self._keep(None)
            else:
                self._go_on(agent.kept)
            yield
        finally:
            agent.memory.close()

    @contextmanager
    def _prism_round(self) -> Iterator[None]:
        self._repeat_change()
        try:
            # log and checkpoint come first: what they know the memory can be brought to
            yield
        finally:
            self.agent.memory.commit()

    def _prism_is_over(self, rounds: Sequence[Cycle]) -> bool:
        return self._reason_to_stop(rounds) is not None

    def _reason_to_stop(self, cycles: Sequence[Cycle]) -> str | None:
        """Return why the run ends early; None if it continues."""
        return reason_to_stop(cycles, self.agent.config.iterate.max_useless)

    def _prism_results(self, rounds: Sequence[Cycle]) -> CognitiveResults:
        results = CognitiveResults.of(self.agent, rounds, self._reason_to_stop(rounds))
        if results.stopped is not None:
            self._warn(events.COGNITION_STOPPED, reason=results.stopped)

        return results

    def _warn(self, event: str, **keys: Any) -> None:
        agent = self.agent
        about = {"agent_id": agent.agent_id, "cycle": agent.memory.cycle}
        report(agent._lent.logger, "warning", event, **about, **keys)

    # Going on

    def _prism_recall(self, event: Event) -> None:
        self._told[event["event"]].append(event)

    def _prism_summary_of(self, event: Event) -> Cycle:  # noqa: ARG002 - a cycle's own says more
        cycle = _cycle_of(self._told)
        self._told.clear()
        return cycle

    def _go_on(self, kept: Mapping[str, Any]) -> None:
        memory, document = self.agent.memory, kept["memory"]
        self.agent.ticks_in_state = kept["ticks_in_state"]
        if memory.to_json().decode() == document:
            return
        if memory.revision == kept["revision"]:
            memory.replace(json.loads(document))
            memory.commit()
        elif self.round not in self._run.changed:
            self._tell_changed(json.loads(document)["prism"]["cycle"])
            problem = f"{memory.path}: has changed since the run stopped, which goes on with it"
            warnings.warn(f"{problem} and keeps a copy in its folder", RuntimeWarning, stacklevel=2)

    def _tell_changed(self, cycle: int) -> None:
        """Go on with a memory that somebody else has changed, and keep a copy of it."""
        self._keep(self.round)
        self._warn(events.COGNITION_MEMORY_CHANGED, expected_cycle=cycle)

    def _repeat_change(self) -> None:
        """Of a repeated run: continue with the memory that the first one continued with."""
        event = self._run.changed.get(self.round)
        if event is not None:
            self.agent.memory.replace(self._run.recorded_memory(self.round))
            self.agent.memory.commit()
            self._tell_changed(event["expected_cycle"])

    def _opened(self, *, is_new: bool) -> Memory:
        if not self._run.is_repeatable:
            return Memory.open(self._run.memory)
        if self.agent.folder is None:
            return Memory.in_memory(self._run.recorded_memory())

        memory = Memory.open(self.agent.folder / "memory.json", backups=0)
        if is_new:
            memory.replace(self._run.recorded_memory())
            memory.commit()
        return memory

    def _keep(self, after: int | None) -> None:
        """Keep a copy of the memory as it is after a round, if the run is kept."""
        if self.agent.folder is not None:
            write_durably(self.agent.folder / _name(after), to_json(self.agent.memory.to_dict()))


def _name(after: int | None) -> str:
    """Return the file of a copy: as it was at the beginning, or where somebody else changed it."""
    return "memory_before.json" if after is None else f"memory_after_{after:08}.json"


def _cycle_of(told: Mapping[str, Sequence[Event]]) -> Cycle:
    """Return the cycle that its events describe, by their names."""
    (event,) = told[events.COGNITION_CYCLE]
    acted = [*told[events.COGNITION_ACTION], *told[events.COGNITION_REFUSED]]
    actions = [told_by(ActionResult, {"outcome": "refused", **each}) for each in acted]
    lost = (
        lost_calls(each["attempts"], has_failed=each["source"] == "failed")
        for each in told[events.TEXT_WRITTEN]
    )

    return told_by(
        Cycle,
        event,
        number=event["cycle"],
        action=actions[-1] if actions else None,
        paged=tuple(told_by(Paged, each) for each in told[events.COGNITION_PAGED]),
        lost_calls=sum(lost),
        cost=None if event["prompt_tokens"] is None else told_by(Cost, event),
    )


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

    @property
    def checkpoint_every(self) -> float:
        """Seconds between checkpoints: every cycle has one, since each is in the memory's file."""
        return 0.0

    def _make(self, logger: EventLogger | None) -> Loop:
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
        world = Cycles.of(agent=agent, _run=self, _told=defaultdict(list))

        return self._loop_of(world, writer, cycles, logger, clock)

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
            return ReplayWriter(self.reasoner.run, verbatim=True)
        if self.reasoner is None:
            raise InputError(
                "no model is named: add --model; prism replay repeats an earlier run without one",
                field="reasoner",
            )

        self._require_memory()
        model = with_window(self.reasoner, config)
        return make_writer(model, self.seed, chart=CHART_NAME)

    @cached_property
    def changed(self) -> Mapping[int, Event]:
        """What the run that is repeated says of a memory that somebody else changed, by round."""
        if not isinstance(self.reasoner, ReplayOptions):
            return {}

        read = _events(recorded_log(self.reasoner))
        changes = [each for each in read if each.get("event") == events.COGNITION_MEMORY_CHANGED]
        return {int(event["round"]): event for event in changes}

    def recorded_memory(self, after: int | None = None) -> dict[str, Any]:
        """Return the copy of its memory that the run that is repeated kept.

        Args:
            after: The round after which it continued with that; None for its beginning.

        Raises:
            ReplayError: If there is no copy in its folder.
        """
        assert isinstance(self.reasoner, ReplayOptions)
        path = recorded_log(self.reasoner).parent / _name(after)
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
