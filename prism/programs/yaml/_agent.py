"""An agent that carries out a workflow, a turn at a time, and the results of its turns."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Self

from prism.errors import FieldValueError, InputError
from prism.programs import _layer as layer
from prism.programs._layer import ProgramAgent, StepFailedError, StepRun, Turn, counted
from prism.programs.yaml._actions import Action, ActionResult, Actions, OnAction
from prism.programs.yaml._sandbox import Condition
from prism.programs.yaml._variables import (
    PROVIDED,
    TURN_SECONDS,
    HostVariable,
    Variables,
    as_context,
    as_data,
)
from prism.programs.yaml._workflow import Step, Workflow
from prism.reasoner._spending import Cost
from prism.reasoner._texts import TextCall, Written
from prism.reasoner._words import PromptError
from prism.runs._services import Services, writer_of
from prism.telemetry import events
from prism.telemetry.loggers import EventLogger

STATE_KEY = "_state_machine"
"""Name in the context under which the state is kept."""

_INTERRUPTED = "failed: the run was stopped in the middle of it, and does not repeat it"
_MOST_REPLY = 1024
"""Tokens that a reply may have, unless the model says another number."""

_TRIES_OF_CHOICE = 2
"""How often a model is asked at most if it is unclear which answer it gives."""


class WorkflowAgent(ProgramAgent):
    """An agent that carries out a workflow.

    Args:
        workflow: Its workflow.
        client: Answers its prompts: a writer, or any client that a `Writer` takes. None for an
            agent of a world, which has the run's.
        context: Variables to begin with, plain data. Under ``_state_machine`` it may hold the state
            of an earlier agent, as `to_dict` keeps it.
        agent_id: Its name, in logs and as a variable.
        variables: Variables of the host: values, or functions of the agent. Variables of the
            context, which steps may set, take precedence.
        on_action: Carries out the actions of llm steps; it may be async.
        turns: The planned number of turns, for ``time_remaining`` and ``progress_percent``.
        logger: A structlog logger for its events. None means structlog's own, once it is
            configured.

    Attributes:
        workflow: Its workflow.
        actions: Its actions and their results.
        variables: All variables, by name.
    """

    def __init__(
        self,
        workflow: Workflow,
        client: Any = None,
        context: Mapping[str, Any] | None = None,
        *,
        agent_id: str = "agent",
        variables: Mapping[str, HostVariable] | None = None,
        on_action: OnAction | None = None,
        turns: int | None = None,
        logger: EventLogger | None = None,
    ) -> None:
        if turns is not None and (type(turns) is not int or turns < 1):
            raise FieldValueError(f"turns must be a whole number, 1 or more, got {turns!r}")
        self.workflow: Workflow = workflow
        self.actions: Actions = Actions(on_action)
        for name, value in (variables or {}).items():
            if not callable(value):
                as_data(value, name)
        provided = {**PROVIDED, **_of_time(turns), **(variables or {})}
        self.variables: Variables = Variables(self, provided)
        services = Services(writer_of(client), logger)
        steps = [_step(step) for step in workflow.steps]
        super().__init__(workflow.chart, steps, services, agent_id=agent_id)
        self._take_context(context or {})

    @property
    def context(self) -> dict[str, Any]:
        """Its variables, plain data."""
        return self.variables.context

    @property
    def action_history(self) -> deque[ActionResult]:
        """The last actions and their results, oldest first."""
        return self.actions.history

    def allows(self, condition: Condition) -> bool:
        """Return whether a condition allows a transition; the chart's guards call it."""
        try:
            if condition.holds(self.variables):
                return True
            reason = "is false"
        except StepFailedError as error:
            reason = f"failed: {error}"
        # guards have no way to say why they refuse
        self._refusals.append(f"the condition {condition.source!r} {reason}")
        return False

    async def begin_turn(self) -> None:
        """Give conditions and code the time of a turn."""
        self.variables.seconds_left = TURN_SECONDS

    async def act(self, world: Any) -> None:  # noqa: ARG002 - what a subclass looks at
        """Take a turn in a world, unless the workflow has stopped."""
        if self.failure is None:
            await self.turn()

    # Its state as data

    def to_dict(self) -> dict[str, Any]:
        """Return its variables, with its state under ``_state_machine``.

        They are the context with which another agent continues from there.
        """
        machine = {
            "current_state": self.state.value,
            "history": [transition.to_dict() for transition in self.state_history],
            "states": [state.value for state in type(self.state)],
            "last_asked": self._last_asked,
        }
        return {**as_context(self.context), STATE_KEY: machine}

    def _take_context(self, values: Mapping[str, Any]) -> None:
        """Take over variables, and the state that is kept among them."""
        context = dict(values)
        machine = context.pop(STATE_KEY, None)
        self.variables.context = as_context(context)
        if machine is None:
            return
        if not isinstance(machine, Mapping) or "current_state" not in machine:
            raise InputError("must be a mapping with 'current_state'", field=STATE_KEY)
        states, current = type(self.state), machine["current_state"]
        if current in [state.value for state in states]:
            self.state: StrEnum = states(current)
            names, last = [step.name for step in self.steps], machine.get("last_asked")
            self._last_asked = last if last in names else None
            return
        about = {"from_state": str(current), "to_state": self.state.value}
        self._say_of_turn(events.WORKFLOW_RESET, is_warning=True, state=self.state.value, **about)

    # Steps

    def is_due(self, step: Step) -> bool:
        """Return whether a step's ``run_if`` holds; one that fails is logged."""
        try:
            return step.run_if is None or step.run_if.holds(self.variables)
        except StepFailedError as error:
            assert step.run_if is not None
            self.refused(step.name, None, f"run_if {step.run_if.source!r} failed: {error}")
            return False

    def question(self, step: Step) -> TextCall:
        """Return the request of a step that asks a model."""
        assert step.prompt is not None
        assert step.reply is not None
        try:
            prompt, unknown = step.prompt.fill(self.variables)
        except PromptError as error:
            raise StepFailedError(str(error)) from None
        self._notes["unknown"] = tuple(unknown)
        attempts = 1 + step.max_retries
        if step.on_failure != "retry":
            attempts = _TRIES_OF_CHOICE if step.transition_map else 1
        reply = step.reply
        return TextCall(
            self,
            self.key(step),
            prompt,
            reply.schema,
            reply.read,
            attempts,
            reply_tokens=_MOST_REPLY,
        )

    def run_code(self, step: Step) -> str | None:
        """Run the code of a step."""
        assert step.code is not None
        # of a thousand agents each draws numbers of its own
        seed = f"{self.services.seed}:{self.agent_id}:{self.key(step)}"
        self.variables.context = step.code.run(self.variables, seed)
        return step.transition_to

    async def take_reply(self, step: Step, written: Written) -> str | None:
        """Keep a reply, carry out its action, and return the state that it leads to."""
        if written.has_failed:
            reason = written.reason or "there is no reply"
            if not step.transition_map or written.text is None:
                raise StepFailedError(reason)
            # the model answered, but not clearly: the state stays
            self._notes["reason"] = f"the answer is none of {', '.join(step.transition_map)}"
            self.context[step.name] = {"decision": None, "reasoning": "", "next_focus": ""}
            self.refused(step.name, None, self._notes["reason"])
            return None

        self.context[step.name] = written.value
        if step.kind == "llm":
            await self._act(step, written.value)
        elif step.transition_map:
            return step.transition_map[written.value["decision"]]
        return step.transition_to

    async def _act(self, step: Step, value: Any) -> None:
        action = value.get("action") if isinstance(value, dict) else None
        if not isinstance(action, dict) or self.actions.on_action is None:
            return
        asked = Action(self.agent_id, self.key(step), self.turn_number, step.name, action)
        key, effect = f"{self.agent_id}:{asked.key}", partial(self.actions.carry_out, asked)
        interrupted = {"result": _INTERRUPTED, "succeeded": False}
        outcome = await self.services.writer.once(key, effect, interrupted)
        result = ActionResult(action, outcome["result"], outcome["succeeded"])
        self.actions.add(result)
        self._say_of_turn(events.WORKFLOW_ACTION, step=step.name, key=asked.key, **result.to_dict())

    def key(self, step: Step) -> str:
        """Return the name of a step in this turn."""
        return f"{self.turn_number}:{step.name}"

    # The log

    def announce(self, run: StepRun) -> None:
        """Log the result of a step."""
        cost = run.cost or Cost()
        self._say_of_turn(
            events.WORKFLOW_STEP,
            is_warning=run.outcome != "done",
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

    def refused(self, step: str, target: str | None, reason: str) -> None:
        """Log that a transition was refused."""
        about = {"state": self.state.value, "step": step, "target": target}
        self._say_of_turn(events.WORKFLOW_REFUSED, is_warning=True, **about, reason=reason)

    def _say_of_turn(self, event: str, *, is_warning: bool = False, **keys: Any) -> None:
        self.say(event, is_warning=is_warning, turn=self.turn_number, **keys)


def _step(step: Step) -> layer.Step:
    """Return a step of a workflow as a step of a program."""

    async def do(agent: WorkflowAgent, written: Written | None) -> str | None:
        return agent.run_code(step) if written is None else await agent.take_reply(step, written)

    return layer.Step(
        step.name,
        do,
        kind=step.kind,
        states=step.in_state,
        ask=None if step.prompt is None else lambda agent: agent.question(step),
        is_due=lambda agent: agent.is_due(step),
        on_failure=step.on_failure,
        max_retries=step.max_retries,
    )


def _of_time(turns: int | None) -> dict[str, HostVariable]:
    """Return the variables of the agent that depend on the planned number of turns."""
    if turns is None:
        return {}
    return {
        "time_remaining": lambda agent: max(0, turns - agent.turn_number + 1),
        "progress_percent": lambda agent: round(100 * min(1.0, (agent.turn_number - 1) / turns), 2),
    }


@dataclass(frozen=True, slots=True)
class WorkflowResults:
    """The results of a run of turns.

    Args:
        agent_id: The agent.
        turns: Number of turns that it took.
        state: Its state at the end.
        failure: Why the workflow stopped before the last turn; None if it did not.
        has_finished: Whether that state is a final one, in which a run is complete.
        transitions: Number of transitions that it made, without self-transitions.
        steps: How often steps ran, by their outcome.
        refused: How often transitions were refused, by step, target and reason; the most frequent
            first.
        actions: How often actions of the application were ``done`` or ``failed``.
        tokens: Tokens that the model read and wrote, if known.
        context: Its variables at the end.
    """

    agent_id: str
    turns: int
    state: str
    failure: str | None = None
    has_finished: bool = False
    transitions: int = 0
    steps: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    actions: Mapping[str, int] = field(default_factory=dict)
    tokens: int = 0
    context: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, for ``run.json``."""
        return asdict(self)

    def totals(self) -> dict[str, int]:
        """Return the counts that end the log of every run."""
        return {"agent_ticks": self.turns, "transitions": self.transitions}

    @classmethod
    def of(cls, agent: WorkflowAgent, turns: Sequence[Turn]) -> Self:
        """Return the results of an agent's turns.

        Args:
            agent: The agent, after the last of them.
            turns: The turns.
        """
        steps = [step for turn in turns for step in turn.steps]
        refused = (
            f"{step.step}: {step.state} -> {step.target or 'nowhere'}: {step.reason}"
            for step in steps
            if step.outcome == "done" and step.reason is not None
        )
        done = agent.actions.successes
        return cls(
            agent.agent_id,
            len(turns),
            agent.state.value,
            agent.failure,
            agent.has_finished,
            sum(turn.transitions for turn in turns),
            steps=counted(step.outcome for step in steps),
            refused=dict(Counter(refused).most_common()),
            actions={
                k: n for k, n in (("done", done), ("failed", agent.actions.number - done)) if n
            },
            tokens=sum(step.cost.tokens for step in steps if step.cost is not None),
            context=dict(agent.context),
        )
