"""An agent that carries out a workflow, a turn at a time."""

from __future__ import annotations

import inspect
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from prism.errors import InputError
from prism.programs._documents import as_data, require_count
from prism.programs._layer import ProgramAgent, StepFailedError, StepRun, writer_of
from prism.programs.yaml._sandbox import (
    PROVIDED,
    TURN_SECONDS,
    Condition,
    HostVariable,
    Variables,
    as_context,
)
from prism.programs.yaml._workflow import Step, Workflow
from prism.reasoner import Cost, TextCall, Written
from prism.telemetry import events
from prism.telemetry.loggers import EventLogger, describe, warn_standard
from prism.worlds.guests import Services

STATE_KEY = "_state_machine"
"""Name in the context under which the state is kept."""

_INTERRUPTED = "failed: the run was stopped in the middle of it, and does not repeat it"
_MOST_ACTIONS = 20
_LOGGED = ("step", "state", "outcome", "target", "moved_to", "reason")
_MOST_REPLY = 1024
"""Tokens that a reply may have, unless the model says another number."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action that an agent wants to have carried out.

    Args:
        agent_id: The agent that wants it.
        key: Identifies it in the run.
        turn: Number of the turn, from 1.
        step: Name of the step that asked for it.
        action: The action as the model wrote it, plain data.
    """

    agent_id: str
    key: str
    turn: int
    step: str
    action: Mapping[str, Any]


OnAction = Callable[[Action], Any | Awaitable[Any]]


class WorkflowAgent(ProgramAgent[Step]):
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
        context: Its variables, plain data, but for those that others provide.
        variables: All variables, by name.
        on_action: Carries out actions; None if nobody does.
        actions: How many actions were ``done``, and how many ``failed``.
        action_history: The last twenty actions with their ``result``, and whether they
            ``succeeded``.
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
        turns = require_count("turns", turns)
        self.workflow: Workflow = workflow
        self.on_action: OnAction | None = on_action
        self.actions: Counter[str] = Counter()
        self._refused: dict[str, str] = {}
        self.action_history: deque[dict[str, Any]] = deque(maxlen=_MOST_ACTIONS)
        constant = {name: each for name, each in (variables or {}).items() if not callable(each)}
        as_context(constant)
        provided = {**PROVIDED, **_of_time(turns), **(variables or {})}
        self.variables: Variables = Variables(self, provided)
        services = Services(writer_of(client), logger)
        super().__init__(workflow.chart, workflow.steps, services, agent_id=agent_id)
        self._take_context(context or {})

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

    def final(self) -> dict[str, Any]:
        """Return what it has done and has at the end of a run."""
        return {"actions": dict(self.actions), "context": dict(self.context)}

    # Its state as data

    def to_dict(self) -> dict[str, Any]:
        """Return its variables, with its state under ``_state_machine``.

        They are the context with which another agent continues from there.
        """
        machine = {
            "current_state": self.state.value,
            "history": [transition.to_dict() for transition in self.state_history],
            "states": [state.value for state in type(self.state)],
            "last_call": self._last_call,
        }
        return {**as_context(self.context), STATE_KEY: machine}

    def _take_context(self, values: Mapping[str, Any]) -> None:
        """Take over variables, and the state that is kept among them."""
        context = dict(values)
        machine = context.pop(STATE_KEY, None)
        self.context: dict[str, Any] = as_context(context)
        if machine is None:
            return
        states = [state.value for state in type(self.state)]
        if not isinstance(machine, Mapping) or machine.get("current_state") not in states:
            problem = f"must be a mapping whose 'current_state' is one of {', '.join(states)}"
            raise InputError(problem, field=STATE_KEY)
        self.state: StrEnum = type(self.state)(machine["current_state"])
        names, last = [step.name for step in self.steps], machine.get("last_call")
        self._last_call = last if last in names else None

    # Steps

    def is_due(self, step: Step) -> bool:
        """Return whether a step's ``run_if`` holds; one that fails is logged."""
        if step.run_if is None:
            return True
        try:
            return step.run_if.holds(self.variables)
        except StepFailedError as error:
            about = {"state": self.state.value, "step": step.name}
            about["reason"] = f"{step.run_if.source!r} failed: {error}"
            self._say_of_turn(events.WORKFLOW_RUN_IF_FAILED, is_warning=True, **about)
            return False

    def question(self, step: Step) -> TextCall:
        """Return the request of a step that asks a model."""
        assert step.prompt is not None
        assert step.reply is not None
        values = self.variables.of(step.prompt.reads)
        unknown = tuple(name for name in step.prompt.reads if name not in values)
        self._notes["unknown"] = unknown
        # once for all agents that share the prompt
        if unknown and self.turn_number == 1 and not step.prompt.is_warned_of:
            step.prompt.is_warned_of = True
            listed = ", ".join(unknown)
            warn_standard(f"nobody has set {listed}, which the prompt of {step.name} names")
        attempts = 1 + (step.max_retries if step.on_failure == "retry" else 0)
        prompt = step.prompt.fill(values)
        if step.name in self._refused:
            prompt += f"\n\n{self._refused[step.name]}"
        return TextCall(
            self,
            self.key(step),
            prompt,
            step.reply.schema,
            step.reply.read,
            attempts,
            reply_tokens=_MOST_REPLY,
            limit=step.reply_tokens,
            how=step.reply.how,
        )

    async def do(self, step: Step, written: Written | None) -> str | None:
        """Run the code of a step, or take its reply; return the state that it leads to."""
        if written is not None:
            return await self._take_reply(step, written)
        assert step.code is not None
        # of a thousand agents each draws numbers of its own
        seed = f"{self.services.seed}:{self.agent_id}:{self.key(step)}"
        self.context = step.code.run(self.variables, self.context, seed)
        return step.transition_to

    async def _take_reply(self, step: Step, written: Written) -> str | None:
        """Keep a reply, carry out its action, and return the state that it leads to."""
        if written.has_failed:
            reason = written.reason or "there is no reply"
            if written.text is not None:
                refusal = f"Your reply in turn {self.turn_number} was refused: {reason}"
                self._refused[step.name] = refusal
            if not step.transition_map or written.text is None:
                raise StepFailedError(reason)
            # the model answered, but not clearly: the state stays
            self._notes["reason"] = reason
            self.context[step.name] = {"decision": None, "reasoning": "", "next_focus": ""}
            self.refused(step.name, None, reason)
            return None

        self._refused.pop(step.name, None)
        self.context[step.name] = written.value
        if step.kind == "llm":
            await self._act(step, written.value)
        elif step.transition_map:
            return step.transition_map[written.value["decision"]]
        return step.transition_to

    async def _act(self, step: Step, value: Any) -> None:
        """Have the application carry out the action of a reply, and keep the result."""
        action = value.get("action") if isinstance(value, dict) else None
        act = self.on_action
        if not isinstance(action, dict) or act is None:
            return
        key = self.key(step)
        # the application may change its copy: log and context have what the model wrote
        request = Action(self.agent_id, key, self.turn_number, step.name, deepcopy(action))

        async def effect() -> dict[str, Any]:
            try:
                returned = act(request)
                result = await returned if inspect.isawaitable(returned) else returned
                return {"result": as_data(result, "the result of an action"), "succeeded": True}
            except Exception as error:  # the workflow goes on, and the log says what failed
                return {"result": f"failed: {describe(error)}", "succeeded": False}

        outcome = await self.once(key, effect, {"result": _INTERRUPTED, "succeeded": False})
        result = {"action": action, **outcome}
        self.actions["done" if outcome["succeeded"] else "failed"] += 1
        self.action_history.append(result)
        self._say_of_turn(events.WORKFLOW_ACTION, step=step.name, key=key, **result)

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
            type=run.kind,
            **{key: getattr(run, key) for key in _LOGGED},
            seconds=cost.latency,
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


def _of_time(turns: int | None) -> dict[str, HostVariable]:
    """Return the variables of the agent that depend on the planned number of turns."""
    if turns is None:
        return {}
    return {
        "time_remaining": lambda agent: max(0, turns - agent.turn_number + 1),
        "progress_percent": lambda agent: round(100 * min(1.0, (agent.turn_number - 1) / turns), 2),
    }
