"""An agent that carries out a workflow, a turn at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from time import time
from typing import Any, Self

from prism.errors import InputError
from prism.programs import _layer as layer
from prism.programs._layer import ProgramAgent, StepFailedError, StepRun
from prism.programs.yaml._actions import (
    DEFAULT_ACTION_SECONDS,
    Action,
    ActionResult,
    Actions,
    OnAction,
)
from prism.programs.yaml._definition import Step
from prism.programs.yaml._sandbox import Condition
from prism.programs.yaml._state import STATE_KEY, SavedAgent, SavedMachine, read_saved
from prism.programs.yaml._variables import PROVIDED, HostVariable, Variables, as_context, as_data
from prism.programs.yaml._workflow import Workflow
from prism.reasoner._spending import Cost
from prism.reasoner._texts import TextCall, Written
from prism.reasoner._words import PromptError
from prism.runs._services import Services, writer_of
from prism.telemetry.events import (
    WORKFLOW_ACTION,
    WORKFLOW_REFUSED,
    WORKFLOW_RESET,
    WORKFLOW_STEP,
)
from prism.telemetry.loggers import EventLogger

_INTERRUPTED = "failed: the run was stopped in the middle of it, and does not repeat it"
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
        action_seconds: Seconds that an action may take; a plain function cannot be interrupted.
        turns: The planned number of turns, for ``time_remaining`` and ``progress_percent``.
        logger: A structlog logger for its events. None means structlog's own, once it is
            configured.
        clock: Returns the time of entries in its history, in seconds since the epoch. None means
            real time.

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
        action_seconds: float = DEFAULT_ACTION_SECONDS,
        turns: int | None = None,
        logger: EventLogger | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.workflow: Workflow = workflow
        self.actions: Actions = Actions(on_action, action_seconds)
        for name, value in (variables or {}).items():
            if not callable(value):
                as_data(value, name)
        provided = {**PROVIDED, **_of_time(turns), **(variables or {})}
        self.variables: Variables = Variables(self, provided)
        services = Services(writer_of(client), logger, clock or time)
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

    async def act(self, world: Any) -> None:  # noqa: ARG002 - what a subclass looks at
        """Take a turn in a world, unless the workflow has stopped."""
        if self.failure is None:
            await self.turn()

    # Between two processes

    @classmethod
    def from_dict(
        cls, workflow: Workflow, client: Any, data: Mapping[str, Any], **settings: Any
    ) -> Self:
        """Return an agent that continues where an earlier one stopped.

        A state that the workflow does not declare is reset to the initial one, which is logged as
        ``workflow.reset``.

        Args:
            workflow: Its workflow.
            client: As for `WorkflowAgent`.
            data: What `to_dict` returned.
            settings: The other arguments of `WorkflowAgent`, except context and agent_id.

        Raises:
            InputError: If the data is something else; the message names the key.
        """
        saved = read_saved(SavedAgent, data)
        agent = cls(workflow, client, agent_id=saved.agent_id, **settings)
        agent.turn_number, agent.failure = saved.turn_number, saved.failure
        agent.ticks_in_state = saved.ticks_in_state
        agent._take_context(saved.context)
        agent.actions.number, agent.actions.successes = saved.actions, saved.successes
        agent.actions.history.extend(each.to_result() for each in saved.action_history)
        return agent

    def to_dict(self) -> dict[str, Any]:
        """Return the agent, between two turns, as plain data for `from_dict`.

        Its state is in the context, under ``_state_machine``.
        """
        machine = {
            "current_state": self.state.value,
            "history": [transition.to_dict() for transition in self.state_history],
            "states": [state.value for state in self.workflow.states],
            "last_asked": self._last_asked,
        }
        return {
            "agent_id": self.agent_id,
            "context": {**as_context(self.context), STATE_KEY: machine},
            "turn_number": self.turn_number,
            "ticks_in_state": self.ticks_in_state,
            "failure": self.failure,
            "actions": self.actions.number,
            "successes": self.actions.successes,
            "action_history": [item.to_dict() for item in self.action_history],
        }

    def _take_context(self, values: Mapping[str, Any]) -> None:
        """Take over variables, and the state that is kept among them."""
        context = dict(values)
        machine = context.pop(STATE_KEY, None)
        self.variables.context = as_context(context)
        if machine is None:
            return

        if not isinstance(machine, Mapping):
            raise InputError("must be a mapping of keys", field=STATE_KEY)
        states, saved = self.workflow.states, read_saved(SavedMachine, machine)
        self.state_history.extend(saved.transitions(states))
        if saved.current_state in [state.value for state in states]:
            self.state: StrEnum = states(saved.current_state)
            self._last_asked = saved.last_asked
            return
        self.ticks_in_state = 0
        about = {"from_state": saved.current_state, "to_state": self.state.value}
        self._say_of_turn(WORKFLOW_RESET, is_warning=True, state=self.state.value, **about)

    # Steps

    def is_due(self, step: Step) -> bool:
        """Return whether a step's ``run_if`` holds; one that fails is logged."""
        try:
            return step.run_if is None or step.run_if.holds(self.variables)
        except StepFailedError as error:
            assert step.run_if is not None
            self.refused(step.name, None, f"run_if {step.run_if.source!r} failed: {error}")
            return False

    def question(self, step: Step, attempts: int) -> TextCall:
        """Return the request of a step that asks a model."""
        assert step.prompt is not None
        try:
            prompt, unknown = step.prompt.fill(self.variables)
        except PromptError as error:
            raise StepFailedError(str(error)) from None
        self._notes["unknown"] = tuple(unknown)
        expected = self.workflow.replies[step.name]
        if step.transition_map and step.on_failure != "retry":
            attempts = _TRIES_OF_CHOICE
        return TextCall(self, self.key(step), prompt, expected.schema, expected.read, attempts)

    async def run_code(self, step: Step) -> str | None:
        """Run the code of a step."""
        assert step.code is not None
        variables, code = self.variables, step.code
        names = variables.provided if code.sees_all else code.reads & variables.provided.keys()
        provided = {name: variables[name] for name in names if name not in variables.context}
        # of a thousand agents each draws numbers of its own
        seed = f"{self.services.seed}:{self.agent_id}:{self.key(step)}"
        variables.context = code.run(variables.context, provided, seed)
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
        self._say_of_turn(WORKFLOW_ACTION, step=step.name, key=asked.key, **result.to_dict())

    def key(self, step: Step) -> str:
        """Return the name of a step in this turn."""
        return f"{self.turn_number}:{step.name}"

    # The log

    def announce(self, run: StepRun) -> None:
        """Log the result of a step."""
        cost = run.cost or Cost()
        self._say_of_turn(
            WORKFLOW_STEP,
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
        self._say_of_turn(WORKFLOW_REFUSED, is_warning=True, **about, reason=reason)

    def _say_of_turn(self, event: str, *, is_warning: bool = False, **keys: Any) -> None:
        self.say(event, is_warning=is_warning, turn=self.turn_number, **keys)


def _step(step: Step) -> layer.Step:
    """Return a step of a workflow as a step of a program."""
    made = layer.Step(
        name=step.name,
        kind=step.kind,
        do=partial(_do, step),
        states=step.in_state,
        is_due=lambda agent: agent.is_due(step),
        on_failure=step.on_failure,
        max_retries=step.max_retries,
    )
    if step.kind == "code":
        return made
    attempts = made.attempts
    return replace(made, ask=lambda agent: agent.question(step, attempts))


async def _do(step: Step, agent: WorkflowAgent, written: Written | None) -> str | None:
    return await (agent.run_code(step) if written is None else agent.take_reply(step, written))


def _of_time(turns: int | None) -> dict[str, HostVariable]:
    """Return the variables of the agent that depend on the planned number of turns."""
    if turns is None:
        return {}
    return {
        "time_remaining": lambda agent: max(0, turns - agent.turn_number + 1),
        "progress_percent": lambda agent: round(100 * min(1.0, (agent.turn_number - 1) / turns), 2),
    }
