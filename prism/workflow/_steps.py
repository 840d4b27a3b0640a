"""One step of an agent: run, its transition made, and its result logged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, Protocol

from prism.errors import PrismError, ReplayError
from prism.expressions import Budget, Expression, ExpressionError
from prism.expressions._budget import MAX_SPENT
from prism.reasoner._requests import again
from prism.reasoner._spending import Cost
from prism.reasoner._texts import TextCall, Written
from prism.reasoner._words import PromptError
from prism.runs._lent import Lent
from prism.telemetry.events import WORKFLOW_ACTION, WORKFLOW_REFUSED, WORKFLOW_STEP
from prism.telemetry.loggers import active_logger, report
from prism.workflow._actions import Action, ActionResult, Actions
from prism.workflow._chart import STEP
from prism.workflow._document._definition import Step
from prism.workflow._sandbox._programs import CodeError, Program
from prism.workflow._sandbox._workers import Workers
from prism.workflow._variables import VariableError, Variables
from prism.workflow._workflow import Workflow

_MOST_OF_TURN = 10 * MAX_SPENT
"""Budget of all conditions of a turn together: a file may have thousands."""

StepOutcome = Literal["done", "failed", "skipped"]


class WorkflowStopped(PrismError, RuntimeError):  # noqa: N818 - it says what is so, not a fault
    """The workflow has stopped and takes no more turns."""


class _NoReplyError(ValueError):
    """No usable reply came."""


@dataclass(frozen=True, slots=True)
class StepRun:
    """The result of a step.

    Args:
        step: Its name.
        kind: ``llm``, ``code`` or ``transition``.
        state: State it ran in.
        outcome: ``done``; ``skipped`` or ``failed`` if it failed, by its policy.
        moved_to: State that it led to, if any.
        reason: Why it failed, or why its transition was refused.
        seconds: How long it took.
        cost: The cost of the model's replies, if one was asked.
        unknown: Variables of its prompt that were not provided.
        target: State that it named; the transition was refused if ``moved_to`` differs.
    """

    step: str
    kind: str
    state: str
    outcome: StepOutcome = "done"
    moved_to: str | None = None
    reason: str | None = None
    seconds: float = 0.0
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
        has_stopped: Whether the workflow stopped in it.
        has_finished: Whether the state after it is final, which ends the workflow.
    """

    number: int
    state: str
    steps: tuple[StepRun, ...] = ()
    has_stopped: bool = False
    has_finished: bool = False

    @property
    def transitions(self) -> int:
        """Number of transitions from one state to another."""
        return sum(step.moved_to not in (None, step.state) for step in self.steps)


_Told = dict[str, Any]
"""Fields of a `StepRun`, as they become known."""


class Acting(Protocol):
    """The parts of an agent that its steps need."""

    agent_id: str
    workflow: Workflow
    state: StrEnum
    turn_number: int
    variables: Variables
    actions: Actions


class StepRunner:
    """Carries out the steps of one agent.

    Args:
        agent: Whose steps they are.
        lent: Who answers prompts, where events go, what history is timed by. With a seed, steps
            take no time and their random numbers are the run's own.
        workers: Run code steps.

    Attributes:
        recorded: What an earlier run measured, where this one repeats it.
    """

    def __init__(self, agent: Acting, lent: Lent, workers: Workers) -> None:
        self.recorded: Recorded | None = None
        self._agent = agent
        self._lent = lent
        self._workers = workers
        self._driving = agent.workflow.driving(lent.logger, lent.clock)
        self._refusals: list[str] = []
        self._left = _MOST_OF_TURN

    def begin_turn(self) -> None:
        """Give the conditions of a turn their whole budget."""
        self._left = _MOST_OF_TURN

    def allows(self, condition: Expression) -> bool:
        """Return whether a condition allows the transition that is being made; note if not."""
        try:
            if self._holds(condition):
                return True
            reason = "is false"
        except ExpressionError as error:
            reason = f"failed: {error}"

        # guards have no way to say why they refuse, so it is left here
        self._refusals.append(f"the condition {condition.source!r} {reason}")

        return False

    def is_due(self, step: Step, *, quietly: bool = False) -> bool:
        """Return whether a step's ``run_if`` holds; one that fails is logged, unless quietly."""
        if step.run_if is None:
            return True

        try:
            return self._holds(step.run_if)
        except ExpressionError as error:
            if not quietly:
                self._refuse(step, None, f"run_if {step.run_if.source!r} failed: {error}")
            return False

    def _holds(self, condition: Expression) -> bool:
        """Return whether a condition holds, within its own budget and that of the turn."""
        given = min(MAX_SPENT, self._left)
        budget = Budget(given)
        try:
            return condition.holds(self._agent.variables, budget)
        finally:
            self._left -= given - max(0, budget.left)

    async def run(self, step: Step) -> StepRun:
        """Run a step, and make the transition that it names."""
        state, began = self._agent.state.value, perf_counter()
        told: _Told = {}
        try:
            await (self._run_code if step.kind == "code" else self._ask)(step, told)
        except (CodeError, PromptError, VariableError, _NoReplyError) as error:
            told["outcome"] = "skipped" if step.on_failure == "skip" else "failed"
            told["reason"] = str(error)
        if step.kind == "code":
            told["seconds"] = self._seconds_of(step, began)
        if told.get("target") is not None:
            told["moved_to"], told["reason"] = self._move(step, told["target"])

        run = StepRun(step.name, step.kind, state, **told)
        self._announce(run)

        return run

    async def _run_code(self, step: Step, told: _Told) -> None:
        assert step.code is not None
        variables = self._agent.variables
        given = _given(step.code, variables)
        # of a thousand agents each draws numbers of its own
        key = f"{self._agent.agent_id}:{self._key(step)}"
        if self._lent.seed is not None:
            key = f"{self._lent.seed}:{key}"

        left, context = _most_requests(step), variables.context
        while left:
            left -= 1
            try:
                variables.context = await self._workers.run(step.code, context, given, key)
                break
            except CodeError as error:
                # the limits would stop it again, after as long
                if left == 0 or error.is_of_limits:
                    raise

        told["target"] = step.transition_to

    def _seconds_of(self, step: Step, began: float) -> float:
        if self.recorded is not None:
            return self.recorded.seconds(self._key(step))

        return 0.0 if self._lent.seed is not None else round(perf_counter() - began, 6)

    async def _ask(self, step: Step, told: _Told) -> None:
        assert step.prompt is not None
        agent = self._agent
        prompt, unknown = step.prompt.fill(agent.variables)
        expected = agent.workflow.replies[step.name]
        most = _most_requests(step)
        call = TextCall(agent, self._key(step), prompt, expected.schema, expected.read, most)
        written = await self._written(step, call)
        told.update(unknown=tuple(unknown), cost=written.cost)
        if written.cost is not None:
            told["seconds"] = written.cost.latency
        if written.has_failed:
            raise _NoReplyError(written.reason or "there is no reply")

        agent.variables.context[step.name] = written.value
        told["target"] = step.transition_to
        if step.kind == "llm":
            await self._act(step, written.value)
        elif step.transition_map:
            decision = written.value["decision"]
            told["target"] = step.transition_map.get(decision)
            if decision is None:
                told["reason"] = f"the answer is none of {', '.join(step.transition_map)}"
                self._refuse(step, None, told["reason"])

    async def _written(self, step: Step, call: TextCall) -> Written:
        """Return the reply; ask once more if it is unclear which of the answers it is."""
        written = await self._lent.writer.write(call, logger=self._lent.logger)
        if not step.transition_map or written.has_failed or written.value["decision"]:
            return written

        spent = Cost()
        spent.follow(written.cost or Cost())
        if step.on_failure == "retry" and step.max_retries < max(1, spent.attempts):
            return written

        how = f"Respond with one of these alone: {', '.join(step.transition_map)}"
        prompt = again(call.prompt, "It is unclear which of the answers it is.", how)
        second = replace(call, key=f"{call.key}:again", prompt=prompt, most_requests=1)
        found = await self._lent.writer.write(second, logger=self._lent.logger)
        spent.follow(found.cost or Cost())
        better = written if found.has_failed else found

        return replace(better, cost=None if written.cost is None else spent)

    async def _act(self, step: Step, value: Any) -> None:
        action = value.get("action") if isinstance(value, dict) else None
        if not isinstance(action, dict):
            return

        agent = self._agent
        asked = Action(agent.agent_id, self._key(step), agent.turn_number, step.name, action)
        if self.recorded is None:
            result = await agent.actions.carry_out(asked)
        else:
            result = self.recorded.result_of(asked)
        if result is None:
            return

        agent.actions.add(result)
        self._tell("info", WORKFLOW_ACTION, step=step.name, key=asked.key, **result.to_dict())

    def _move(self, step: Step, target: str) -> tuple[str | None, str | None]:
        """Make the transition to a state; return the state, or why it was refused."""
        self._refusals.clear()
        state = self._agent.state.value
        chosen = type(self._agent.state)(target)
        chart = self._driving(state)
        about = {"step": step.name}
        if chart.fire_to(self._agent, STEP, chosen, about, quiet=True) is not None:
            return target, None

        reason = "; ".join(self._refusals) or f"no transition from {state!r} to {target!r}"
        self._refuse(step, target, reason)

        return None, reason

    def _key(self, step: Step) -> str:
        return f"{self._agent.turn_number}:{step.name}"

    def _announce(self, run: StepRun) -> None:
        cost = run.cost or Cost()
        self._tell(
            "info" if run.outcome == "done" else "warning",
            WORKFLOW_STEP,
            step=run.step,
            type=run.kind,
            state=run.state,
            outcome=run.outcome,
            target=run.target,
            moved_to=run.moved_to,
            reason=run.reason,
            seconds=run.seconds,
            input_tokens=cost.input_tokens,
            output_tokens=cost.output_tokens,
            unknown_variables=list(run.unknown),
        )

    def _tell(self, level: Literal["info", "warning"], event: str, **keys: Any) -> None:
        logger = active_logger(self._lent.logger)
        if logger is not None:
            agent = self._agent
            about = {"agent_id": agent.agent_id, "turn": agent.turn_number}
            getattr(logger, level)(event, **about, **keys)

    def _refuse(self, step: Step, target: str | None, reason: str) -> None:
        self.warn(WORKFLOW_REFUSED, step=step.name, target=target, reason=reason)

    def warn(self, event: str, **keys: Any) -> None:
        """Log a warning of the agent, which is shown even without structlog."""
        agent = self._agent
        about = {"agent_id": agent.agent_id, "turn": agent.turn_number, "state": agent.state.value}
        report(self._lent.logger, "warning", event, **about, **keys)


def _given(code: Program, variables: Variables) -> dict[str, Any]:
    """Return the variables beside the context that code may look at."""
    names = variables if code.sees_all else code.reads
    return {
        name: variables[name]
        for name in names
        if name not in variables.context and name in variables
    }


def _most_requests(step: Step) -> int:
    """Return how often a step is tried at most."""
    return 1 + (step.max_retries if step.on_failure == "retry" else 0)


class Recorded:
    """The seconds of code steps and the results of actions, as an earlier run had them.

    Args:
        path: Its log, for messages.
        agent_id: The agent.
        events: The events of that log.
    """

    def __init__(self, path: Path, agent_id: str, events: Iterable[Mapping[str, Any]]) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}
        self._results: dict[str, Mapping[str, Any]] = {}
        for event in events:
            if event.get("agent_id") != agent_id:
                continue
            if event.get("event") == WORKFLOW_STEP and event.get("type") == "code":
                self._seconds[f"{event['turn']}:{event['step']}"] = float(event["seconds"])
            elif event.get("event") == WORKFLOW_ACTION:
                self._results[event["key"]] = event

    def seconds(self, key: str) -> float:
        """Return the seconds that a code step took in the earlier run.

        Args:
            key: The turn and the step's name, as ``3:step``.

        Raises:
            ReplayError: If it did not run there.
        """
        if key not in self._seconds:
            turn, _, step = key.partition(":")
            raise ReplayError(
                f"{self._path} holds no code step {step!r} of turn {turn}: replay it with the "
                "workflow, context and turns of the recorded run"
            )

        return self._seconds[key]

    def result_of(self, action: Action) -> ActionResult | None:
        """Return the result of an action in the earlier run; None if it was not carried out."""
        found = self._results.get(action.key)
        if found is None:
            return None

        return ActionResult(action.action, found["result"], found["succeeded"])
