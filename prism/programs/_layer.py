"""Steps on a chart: each asks a model at most once, acts, and names the next state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, ClassVar, Generic, Literal, TypeVar

from prism.errors import AgentError, PrismError
from prism.llm import Model
from prism.reasoner import BaseWriter, Cost, TextCall, Writer, Written
from prism.reasoner.texts import Effect
from prism.runs.documents import is_trial
from prism.statechart import Statechart, StateTransition
from prism.telemetry.instruments import Level
from prism.telemetry.loggers import report
from prism.worlds.decisions import TemplateWriter
from prism.worlds.guests import Services

StepOutcome = Literal["done", "failed", "skipped"]
OnFailure = Literal["retry", "skip", "fail"]


class StepFailedError(PrismError, ValueError):
    """A step has failed; its policy says what follows.

    Attributes:
        is_final: Whether another attempt would fail in the same way, as at a limit of time.
    """

    is_final: bool = False


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of a program; its agent says what it does.

    Args:
        name: Its name, unique in the program.
        kind: What it is called in logs.
        states: States it belongs to; None for all.
        asks: Whether it asks a model.
        on_failure: What follows a failure: another attempt, the next step, or the end.
        max_retries: Attempts beyond the first, if failures are retried.
        trigger: The event of the chart that its transition belongs to.
    """

    name: str
    kind: str = "code"
    states: frozenset[str] | None = None
    asks: bool = False
    on_failure: OnFailure = "fail"
    max_retries: int = 0
    trigger: str = "step"


StepT = TypeVar("StepT", bound=Step)


@dataclass(frozen=True, slots=True)
class StepRun:
    """The result of a step.

    Args:
        step: Its name.
        kind: ``llm``, ``code`` or ``transition`` in a workflow.
        state: State it ran in.
        outcome: ``done``; ``skipped`` or ``failed`` if it failed, by its policy.
        moved_to: Other state that it led to, if any.
        reason: Why it failed, or why its transition was refused.
        cost: The cost of the model's replies, if one was asked.
        unknown: Variables of its prompt that were not provided.
        target: State that it named, if any.
    """

    step: str
    kind: str
    state: str
    outcome: StepOutcome = "done"
    moved_to: str | None = None
    reason: str | None = None
    cost: Cost | None = None
    unknown: tuple[str, ...] = ()
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of a turn.

    Args:
        number: Number of the turn, from 1.
        state: State after it.
        steps: The steps that ran, in order.
        has_stopped: Whether the program stopped in it.
    """

    number: int
    state: str
    steps: tuple[StepRun, ...] = ()
    has_stopped: bool = False

    @property
    def transitions(self) -> int:
        """Number of transitions from one state to another."""
        return sum(step.moved_to is not None for step in self.steps)


def writer_of(client: Any) -> BaseWriter:
    """Return the writer that answers an agent's prompts.

    Args:
        client: A writer, a `prism.llm.Model` or the text of one, or any client that a `Writer`
            takes; None for no writer.
    """
    if isinstance(client, BaseWriter):
        return client
    if isinstance(client, str):
        return Writer(Model.of(client))
    return TemplateWriter() if client is None else Writer(client)


class ProgramAgent(ABC, Generic[StepT]):
    """An agent that carries out the steps of a program on a chart, a turn at a time.

    Args:
        chart: The states, and which transitions are allowed.
        steps: The steps, in order.
        services: Answers prompts, takes events, keeps effects.
        agent_id: Its name.

    Attributes:
        agent_id: Its name, in logs.
        chart: The chart on which it moves.
        state: Its state, a member of the chart's enum.
        ticks_in_state: Turns that have begun since it entered that state.
        state_history: Its last transitions.
        turn_number: Number of turns so far.
        stopped: Why the program stopped; None while it runs.
        steps: The steps.
    """

    max_history_depth: ClassVar[int] = 50

    def __init__(
        self,
        chart: Statechart[Any],
        steps: Sequence[StepT],
        services: Services,
        *,
        agent_id: str = "agent",
    ) -> None:
        self.agent_id: str = agent_id
        self.state: StrEnum = chart.initial
        self.ticks_in_state: int = 0
        self.state_history: deque[StateTransition] = deque(maxlen=self.max_history_depth)
        self.turn_number: int = 0
        self.stopped: str | None = None
        self.steps: Sequence[StepT] = steps
        self.chart: Statechart[Any] = chart
        self._last_call: str | None = None
        self._is_at_turn = False
        self._notes: dict[str, Any] = {}
        self._refusals: list[str] = []
        self.join(services)

    def join(self, services: Services) -> None:
        """Continue with the writer, log and time of a run."""
        self.services: Services = services
        self.chart = self.chart.bound(self.chart.name, services.logger, services.clock)

    async def turn(self) -> Turn:
        """Carry out one turn: the steps that are due, from the top; at most one asks the model.

        Steps that ask in the same state take turns. After a failure whose policy was to stop,
        nothing happens.

        Raises:
            AgentError: If a turn of this agent is under way.
        """
        if self._is_at_turn:
            raise AgentError(
                f"agent {self.agent_id!r} is at its turn {self.turn_number}: await one turn before "
                "the next, or give each task an agent of its own"
            )
        if self.stopped is not None:
            return self._turn(())

        self.turn_number += 1
        self.ticks_in_state += 1
        self._is_at_turn, fault = True, None
        try:
            await self.begin_turn()
            runs = await self._go_through()
        except Exception as error:
            fault = error
            raise
        finally:
            self.end_turn(fault)
            self._is_at_turn = False
        if runs and runs[-1].outcome == "failed":
            self.stopped = f"step {runs[-1].step!r}: {runs[-1].reason}"

        return self._turn(runs)

    def _turn(self, runs: Iterable[StepRun]) -> Turn:
        return Turn(self.turn_number, self.state.value, tuple(runs), self.stopped is not None)

    async def _go_through(self) -> list[StepRun]:
        runs: list[StepRun] = []
        has_called = False
        for number, step in enumerate(self.steps):
            if not self._is_here(step) or (step.asks and has_called):
                continue
            if not self.is_due(step) or self._leaves_its_turn(step, number):
                continue

            before = self.state
            runs.append(await self._run(step))
            if runs[-1].outcome == "failed":
                break
            if step.asks:
                has_called, self._last_call = True, step.name
            if self.state is not before:
                self._last_call = None

        return runs

    def _is_here(self, step: StepT) -> bool:
        return step.states is None or self.state.value in step.states

    def _leaves_its_turn(self, step: StepT, number: int) -> bool:
        """Return whether a step below asks first, since this one has had its turn in this state."""
        if not step.asks or self._last_call is None:
            return False
        last = [each.name for each in self.steps].index(self._last_call)
        return number <= last and any(
            each.asks and self._is_here(each) and self.is_due(each)
            for each in self.steps[last + 1 :]
        )

    async def _run(self, step: StepT) -> StepRun:
        state, target = self.state.value, None
        self._notes = {}
        # a model is asked again by its writer
        retries = step.max_retries if step.on_failure == "retry" and not step.asks else 0
        for left in range(retries, -1, -1):
            try:
                target = await self._carry_out(step)
                break
            except StepFailedError as error:
                if left == 0 or error.is_final:
                    outcome = "skipped" if step.on_failure == "skip" else "failed"
                    self._notes |= {"outcome": outcome, "reason": str(error)}
                    break
        if target is not None:
            self._notes["target"] = target
            self._notes["moved_to"], self._notes["reason"] = self._move(step, target)

        run = StepRun(step.name, step.kind, state, **self._notes)
        self.announce(run)
        return run

    async def _carry_out(self, step: StepT) -> str | None:
        written = None
        if step.asks:
            call = self.question(step)
            written = await self.services.writer.write(call, logger=self.services.logger)
            self._notes["cost"] = written.cost
        return await self.do(step, written)

    def _move(self, step: StepT, target: str) -> tuple[str | None, str | None]:
        """Make the transition to a state; return the new state, or why it was refused."""
        self._refusals.clear()
        state, chosen = self.state.value, type(self.state)(target)
        about = {"step": step.name}
        if self.chart.fire(self, step.trigger, about, chosen) is not None:
            return (None if target == state else target), None

        reason = "; ".join(self._refusals) or f"no transition from {state!r} to {target!r}"
        self.refused(step.name, target, reason)
        return None, reason

    async def once(self, key: str, effect: Effect, interrupted: Any) -> Any:
        """Carry out an effect on the outside world, and return its result.

        A dry run carries out none; a run that is resumed or replayed takes results from its
        journal.

        Args:
            key: Names the effect; no other of the agent has this name.
            effect: Carries it out, and returns plain data.
            interrupted: The result if the effect is not known to have been carried out.
        """
        writer = self.services.writer
        if is_trial() and not writer.is_repeating:
            return interrupted
        return await writer.once(f"{self.agent_id}:{key}", effect, interrupted)

    # In a world

    async def act(self, world: Any) -> None:
        """Take a turn in a world, unless the program has stopped; the run ends once all have."""
        if self.stopped is not None:
            return
        await self.turn_in(world)
        if (reason := self.stopped) and all(map(_is_over, world.agents)):
            world.stop(f"all agents have stopped; {self.agent_id}: {reason}")

    async def turn_in(self, world: Any) -> None:  # noqa: ARG002 - what a subclass looks at
        """Take a turn in a world."""
        await self.turn()

    # Alone in a run

    async def take_round(self) -> Any:
        """Take a round of a run."""
        return await self.turn()

    def final(self) -> dict[str, Any]:
        """Return what the agent has at the end of a run, plain data."""
        return {}

    def results(self, rounds: Sequence[Any]) -> ProgramResults:
        """Return the results of a run with these rounds."""
        # a cycle is one step
        runs = [run for each in rounds for run in getattr(each, "steps", (each,))]
        return ProgramResults(
            self.agent_id,
            len(rounds),
            self.state.value,
            self.stopped,
            sum(each.transitions for each in rounds),
            dict(sorted(Counter(run.outcome for run in runs).items())),
            sum(run.cost.tokens for run in runs if run.cost is not None),
            self.final(),
        )

    def close(self) -> None:
        """Release what the agent holds."""

    # What a kind of program adds

    def is_due(self, step: StepT) -> bool:  # noqa: ARG002 - what a subclass looks at
        """Return whether a step of this state should run now."""
        return True

    @abstractmethod
    def question(self, step: StepT) -> TextCall:
        """Return the request of a step that asks a model."""

    @abstractmethod
    async def do(self, step: StepT, written: Written | None) -> str | None:
        """Carry out a step, and return the name of the next state, or None to stay.

        Args:
            step: The step.
            written: The model's reply, if the step has asked for one.

        Raises:
            StepFailedError: If the step fails.
        """

    async def begin_turn(self) -> None:
        """Prepare a turn."""

    def end_turn(self, fault: Exception | None) -> None:
        """Keep what a turn has done, also if it raised an error."""

    def announce(self, run: StepRun) -> None:
        """Log the result of a step."""

    def refused(self, step: str, target: str | None, reason: str) -> None:
        """Log that a transition was refused."""

    def say(self, event: str, *, is_warning: bool = False, **keys: Any) -> None:
        """Log an event; a warning is shown even where structlog is not configured."""
        level: Level = "warning" if is_warning else "info"
        report(self.services.logger, level, event, {"agent_id": self.agent_id, **keys})


def _is_over(agent: Any) -> bool:
    program = getattr(agent, "object", None)
    return isinstance(program, ProgramAgent) and program.stopped is not None


@dataclass(frozen=True, slots=True)
class ProgramResults:
    """The results of a run of one agent.

    Args:
        agent_id: The agent.
        turns: Number of turns, or cycles, that it took.
        state: Its state at the end.
        stopped: Why the run ended early; None if it did not.
        transitions: Number of transitions that it made from one state to another.
        outcomes: How often steps, or cycles, had each outcome.
        tokens: Tokens that the model read and wrote, if known.
        final: What the agent has at the end: the variables of a workflow, or the sizes of a memory.
    """

    agent_id: str
    turns: int
    state: str
    stopped: str | None
    transitions: int
    outcomes: Mapping[str, int]
    tokens: int
    final: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, for ``run.json``."""
        return asdict(self)

    def totals(self) -> dict[str, int]:
        """Return the counts that end the log of every run."""
        return {"agent_ticks": self.turns, "transitions": self.transitions}
