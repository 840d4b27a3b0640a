"""Cycles in a row: one agent and its memory, as a run that is kept, resumed and repeated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from prism.cognition._actions import ActionResult
from prism.cognition._agent import CognitiveAgent
from prism.cognition._chart import CHART_NAME
from prism.cognition._cycle import Cycle, reason_to_stop, useless_in_row
from prism.cognition._memory._contents import StorageKind
from prism.cognition._memory._memory import DEFAULT_BACKUPS, Memory
from prism.cognition._paging import Paged
from prism.errors import InputError, PrismError, ReplayError
from prism.files import parse_json, reading
from prism.files._durable import write_durably
from prism.runlog import SimulatedClock
from prism.runs._agent_loop import AgentLoop, Event, tokens_of, told_by
from prism.runs._dry_run import is_dry_run
from prism.statechart.reasoner._spending import Cost
from prism.statechart.reasoner._texts import BaseWriter
from prism.telemetry._loggers import EventLogger, report_warning
from prism.telemetry.events import (
    COGNITION_ACTION,
    COGNITION_CYCLE,
    COGNITION_MEMORY_CHANGED,
    COGNITION_PAGED,
    COGNITION_REFUSED,
    COGNITION_STOPPED,
)

BEFORE_NAME = "memory_before.json"
"""What the memory was when the run began."""

_AFTER_NAME = "memory_after_{:08}.json"
"""What it was when the run went on after a round, where somebody else had changed it."""

_REPEATED_NAMES = {"json": "memory.json", "sqlite": "memory.sqlite"}


class Keeper:
    """Opens the memory of a run, and keeps copies of what it was.

    Args:
        path: The memory's file.
        storage: How it is stored; None for whatever the file is.

    Attributes:
        folder: The run's folder; None if the run is not kept.
    """

    def __init__(
        self, path: Path, storage: StorageKind | None, *, backups: int = DEFAULT_BACKUPS
    ) -> None:
        self.folder: Path | None = None
        self._path = path
        self._storage = storage
        self._backups = backups

    def open(self, *, is_new: bool) -> Memory:  # noqa: ARG002 - a repeated run has to know
        """Open the memory.

        Args:
            is_new: Whether the run is at its beginning.
        """
        if is_dry_run():  # which may change nothing
            return self._copy()
        return Memory.open(self._path, storage=self._storage, backups=self._backups)

    def _copy(self) -> Memory:
        """Return a copy of the memory, without a file."""
        if not self._path.exists():
            return Memory.in_memory()
        with Memory.read(self._path) as memory:
            return Memory.in_memory(memory.to_dict())

    def keep(self, memory: Memory, after: int | None) -> None:
        """Keep a copy of the memory, if the run is kept.

        Args:
            memory: The memory.
            after: The round after which the run goes on; None at its beginning.
        """
        if self.folder is not None:
            text = json.dumps(memory.to_dict(), ensure_ascii=False, indent=2)
            write_durably(self.folder / _name(after), text.encode("utf-8", "surrogatepass"))

    def forget(self) -> None:
        """Remove what a run has left in its folder that did not begin after all."""
        if self.folder is not None:
            (self.folder / BEFORE_NAME).unlink(missing_ok=True)

    def go_on_after(self, memory: Memory, number: int) -> None:
        """Make the memory what a repeated run goes on with after a round."""


class RepeatingKeeper(Keeper):
    """Keeps the memory of a repeated run, which begins with a copy of the first one's.

    It is in the folder of the repeated run, or nowhere if that is not kept.

    Args:
        recorded: The folder of the first run.
        storage: How that stored its memory.

    Raises:
        InputError: If there is no copy in it.
    """

    def __init__(self, recorded: Path, storage: StorageKind | None) -> None:
        super().__init__(Path(), storage or "json", backups=0)
        self._recorded = recorded
        self._read(None)

    def open(self, *, is_new: bool) -> Memory:
        """Open the memory; at the beginning it is the copy."""
        if self.folder is None:
            return Memory.in_memory(self._read(None))

        self._path = self.folder / _REPEATED_NAMES[self._storage or "json"]
        memory = super().open(is_new=is_new)
        if is_new:
            self._replace(memory, None)

        return memory

    def go_on_after(self, memory: Memory, number: int) -> None:
        """Make the memory what the first run found when it went on after a round."""
        self._replace(memory, number)

    def forget(self) -> None:
        """Remove the memory, too."""
        super().forget()
        if self.folder is not None:
            self._path.unlink(missing_ok=True)

    def _replace(self, memory: Memory, after: int | None) -> None:
        memory.replace(self._read(after))
        memory.commit()

    def _read(self, after: int | None) -> Mapping[str, Any]:
        path = self._recorded / _name(after)
        if not path.exists():
            raise ReplayError(
                f"{self._recorded} holds no {path.name}, with which the run began: give the "
                "complete folder of a run of cycles"
            )

        with reading(path):
            data = parse_json(path.read_bytes().decode("utf-8", "surrogatepass"), path=path)
        if not isinstance(data, dict):
            raise InputError("is damaged: it must hold a JSON object", path=path)

        return data


def _name(after: int | None) -> str:
    return BEFORE_NAME if after is None else _AFTER_NAME.format(after)


@dataclass(frozen=True, slots=True)
class CognitiveResults:
    """What came of a run of cycles.

    Args:
        agent_id: The agent.
        cycles: Cycles that the run had.
        cycle: Cycles over the memory's life.
        state: The agent's state in the end.
        transitions: Transitions between states.
        outcomes: How often cycles were ``done``, ``refused``, ``unusable`` or ``failed``.
        actions: How often actions were ``done``, ``missing`` or ``refused``.
        pagings: How often memories were moved to keep within a limit, or because a reply asked.
        tokens: Tokens that the model read and wrote, as far as they are known.
        memories: Entries of working memory in the end.
        thoughts: Entries of the log in the end.
        stored: Entries of storage in the end.
        stopped: Why the run ended before its time; None if it did not.
    """

    agent_id: str
    cycles: int
    cycle: int
    state: str
    transitions: int = 0
    outcomes: Mapping[str, int] = field(default_factory=dict)
    actions: Mapping[str, int] = field(default_factory=dict)
    pagings: int = 0
    tokens: int = 0
    memories: int = 0
    thoughts: int = 0
    stored: int = 0
    stopped: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data, for ``run.json``."""
        return asdict(self)

    @classmethod
    def of(
        cls, agent: CognitiveAgent, cycles: list[Cycle], stopped: str | None = None
    ) -> CognitiveResults:
        """Return what came of the cycles of an agent.

        Args:
            agent: The agent, after the last of them.
            cycles: The cycles.
            stopped: Why the run ended before its time, if it did.
        """
        return cls(
            agent_id=agent.agent_id,
            cycles=len(cycles),
            cycle=agent.memory.cycle,
            state=agent.state.value,
            transitions=sum(cycle.transitions for cycle in cycles),
            outcomes=_counted(cycle.outcome for cycle in cycles),
            actions=_counted(c.action.outcome for c in cycles if c.action is not None),
            pagings=sum(len(cycle.paged) for cycle in cycles),
            tokens=tokens_of(cycle.cost for cycle in cycles),
            memories=len(agent.memory.working),
            thoughts=len(agent.memory.thoughts),
            stored=agent.memory.stored_count,
            stopped=stopped,
        )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


MakeAgent = Callable[[Memory], CognitiveAgent]


class CognitiveLoop(AgentLoop[Cycle]):
    """Runs an agent for a number of cycles; a cycle is a round.

    What a cycle did is in the log first, then in a checkpoint, and then in the memory's file. A
    process that is killed between the last two leaves a memory that is one cycle behind, which the
    resumed run makes good by what the checkpoint holds.

    Args:
        make_agent: Makes the agent of a memory.
        keeper: Opens the memory.
        writer: Who writes.
        cycles: Number of cycles.
        seed: Seed of the run.
        logger: Where its events go.
        clock: The run's clock.
        changed: Of a repeated run, what the first one found changed, by the round before.

    Attributes:
        agent: The agent, while the run is under way.
    """

    def __init__(
        self,
        make_agent: MakeAgent,
        keeper: Keeper,
        writer: BaseWriter,
        *,
        cycles: int,
        seed: int,
        logger: EventLogger | None,
        clock: SimulatedClock,
        changed: Mapping[int, Event] | None = None,
    ) -> None:
        super().__init__(writer, rounds=cycles, seed=seed, logger=logger, clock=clock)
        self.agent: CognitiveAgent | None = None
        self._make_agent = make_agent
        self._keeper = keeper
        self._changed = changed or {}
        self._kept: Mapping[str, Any] | None = None

    def kept_in(self, folder: Path) -> None:
        """Learn in which folder the run is kept."""
        self._keeper.folder = folder

    def snapshot(self) -> dict[str, Any]:
        """Return what the run is, between two cycles, as plain data; the log holds the rest."""
        memory = self._agent.memory

        return {
            **self.position(),
            "ticks_in_state": self._agent.ticks_in_state,
            "memory": {
                "cycle": memory.cycle,
                "revision": memory.revision,
                "next_revision": memory.next_revision(),
                "changes": memory.changes(),
            },
        }

    def restore(self, snapshot: Mapping[str, Any], events: Iterable[Event]) -> None:
        """Go on where another run of the same options was.

        Args:
            snapshot: What `snapshot` returned there.
            events: Its log until then.
        """
        self._kept = snapshot
        self.finished: list[Cycle] = list(_cycles_of(self.remembered(events)))
        self.go_on_from(snapshot)

    async def _run_and_close(self, on_round: Callable[[Cycle], object]) -> CognitiveResults:
        try:
            results: CognitiveResults = await super()._run_and_close(on_round)
            return results
        except PrismError:
            # it would only fail again: the folder goes, and with it what is in it
            if self._kept is None and not self.finished:
                self._close_memory()
                self._keeper.forget()
            raise
        finally:
            self._close_memory()

    def _close_memory(self) -> None:
        if self.agent is not None:
            self.agent.memory.close()

    def _goes_on(self) -> bool:
        return self._reason_to_stop() is None

    def _reason_to_stop(self) -> str | None:
        """Return why the run ends before its time; None if it goes on."""
        if not self.finished:
            return None
        limit = self._agent.config.iterate.max_useless
        return reason_to_stop(self.finished[-1], useless_in_row(self.finished), limit)

    async def _next(self, on_round: Callable[[Cycle], object]) -> None:
        self._repeat_change(self._agent)
        try:
            # log and checkpoint come first: what they know the memory can be brought to
            await super()._next(on_round)
        finally:
            self._agent.memory.commit()

    async def _round(self) -> Cycle:
        return await self._agent.take_cycle()

    def _results(self) -> CognitiveResults:
        agent = self._agent
        results = CognitiveResults.of(agent, self.finished, self._reason_to_stop())
        if results.stopped is not None:
            report_warning(
                self.logger,
                COGNITION_STOPPED,
                agent_id=agent.agent_id,
                cycle=results.cycle,
                reason=results.stopped,
            )

        return results

    @property
    def _agent(self) -> CognitiveAgent:
        assert self.agent is not None
        return self.agent

    # Beginning, and going on

    def _begin(self) -> None:
        if self._kept is not None:
            self._go_on(self._kept)
            return

        agent = self._with_agent(self._keeper.open(is_new=True))
        self._keeper.keep(agent.memory, None)
        self.announce_start(CHART_NAME, agent)

    def _go_on(self, kept: Mapping[str, Any]) -> None:
        agent = self._with_agent(self._keeper.open(is_new=False))
        memory, known = agent.memory, kept["memory"]
        agent.ticks_in_state = kept["ticks_in_state"]
        if memory.revision == known["revision"] and known["changes"] is not None:
            memory.redo(known["changes"])
            memory.commit()
        elif memory.revision != known["next_revision"] and len(self.finished) not in self._changed:
            self._tell_changed(agent, known["cycle"])

    def _tell_changed(self, agent: CognitiveAgent, cycle: int) -> None:
        """Go on with a memory that somebody else has changed, and keep a copy of it."""
        self._keeper.keep(agent.memory, len(self.finished))
        report_warning(
            self.logger,
            COGNITION_MEMORY_CHANGED,
            agent_id=agent.agent_id,
            cycle=agent.memory.cycle,
            expected_cycle=cycle,
        )

    def _repeat_change(self, agent: CognitiveAgent) -> None:
        """Of a repeated run: go on with the memory that the first one went on with."""
        done = len(self.finished)
        event = self._changed.get(done)
        if event is None:
            return

        self._keeper.go_on_after(agent.memory, done)
        self._tell_changed(agent, event["expected_cycle"])

    def _with_agent(self, memory: Memory) -> CognitiveAgent:
        try:
            self.agent = self._make_agent(memory)
        except BaseException:
            memory.close()
            raise

        return self.agent


_TOLD = (COGNITION_ACTION, COGNITION_REFUSED, COGNITION_PAGED, COGNITION_CYCLE)


def _cycles_of(events: Iterable[Event]) -> Iterator[Cycle]:
    """Return the cycles that a log tells of."""
    told = (event for event in events if event["event"] in _TOLD)
    for _, group in groupby(told, key=lambda event: int(event["round"])):
        *parts, last = group
        yield _cycle_of(last, parts)


def _cycle_of(event: Event, parts: list[Event]) -> Cycle:
    cost = Cost()
    cost.input_tokens, cost.output_tokens = event["input_tokens"], event["output_tokens"]
    actions = [_action_of(part) for part in parts if part["event"] != COGNITION_PAGED]

    return told_by(
        Cycle,
        event,
        number=event["cycle"],
        action=actions[-1] if actions else None,
        paged=tuple(told_by(Paged, part) for part in parts if part["event"] == COGNITION_PAGED),
        cost=None if event["prompt_tokens"] is None else cost,
    )


def _action_of(event: Event) -> ActionResult:
    others = {"outcome": "refused"} if event["event"] == COGNITION_REFUSED else {}
    return told_by(ActionResult, event, **others)
