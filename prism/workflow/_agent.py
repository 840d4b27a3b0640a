"""An agent that carries out a workflow, a turn at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from enum import StrEnum
from operator import itemgetter
from time import time
from typing import Any, Self

from prism.errors import AgentError
from prism.expressions import Expression
from prism.runs._lent import Lent, writer_of
from prism.statechart import Statechart, StateTransition
from prism.telemetry.events import WORKFLOW_RESET
from prism.telemetry.loggers import EventLogger
from prism.workflow._actions import DEFAULT_ACTION_SECONDS, ActionResult, Actions, OnAction
from prism.workflow._chart import Clock
from prism.workflow._document._definition import Step
from prism.workflow._sandbox._workers import workers_of
from prism.workflow._state import STATE_KEY, SavedAgent, SavedMachine, read_saved
from prism.workflow._steps import Recorded, StepRun, StepRunner, Turn, WorkflowStopped
from prism.workflow._variables import PROVIDED, HostVariable, Variables, as_context, as_data
from prism.workflow._workflow import Workflow

MOST_HISTORY = 50


class WorkflowAgent:
    """An agent that carries out a workflow.

    Args:
        workflow: Its workflow.
        client: Answers its prompts: a writer, or any client that a `Writer` takes. None for an
            agent of a world, which lends it a writer.
        context: Variables to begin with, plain data. Under ``_state_machine`` it may hold the state
            of an earlier agent, as `to_dict` keeps it.
        agent_id: Its name, in logs and as a variable.
        variables: Variables of the host: values, or functions of the agent. Variables of the
            context, which steps may set, take precedence.
        on_action: Carries out the actions of llm steps; it may be async.
        action_seconds: Seconds that an action may take.
        workers: Number of code steps that may run at once. Agents of a process with the same number
            share the limit; None means 2, shared by all agents that name no number.
        turns: The planned number of turns, for ``time_remaining`` and ``progress_percent``.
        logger: A structlog logger for its events. None means structlog's own, once it is
            configured.
        clock: Returns the time of entries in its history, in seconds since the epoch. None means
            real time.

    Attributes:
        state: Its state, a member of the chart's enum.
        actions: Its actions and their results.
        context: Its variables, plain data.
        turn_number: Number of turns so far.
        action_history: The last actions and their results, oldest first.
        failure: Why the workflow stopped; None while it runs.
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
        workers: int | None = None,
        turns: int | None = None,
        logger: EventLogger | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.workflow: Workflow = workflow
        self.agent_id: str = agent_id
        self.state: StrEnum = workflow.initial
        self.ticks_in_state: int = 0
        self.state_history: deque[StateTransition] = deque(maxlen=MOST_HISTORY)
        self.max_history_depth: int = MOST_HISTORY
        self.turn_number: int = 0
        self.failure: str | None = None
        self.actions: Actions = Actions(on_action, action_seconds)
        self._workers = workers_of(workers)
        self._steps = StepRunner(
            self, Lent(writer_of(client), logger, clock or time, seed=None), self._workers
        )
        for name, value in (variables or {}).items():
            if not callable(value):
                as_data(value, name)
        provided = {**PROVIDED, **_of_time(turns), **(variables or {})}
        self.variables: Variables = Variables(self, {}, provided)
        self._is_at_turn = False
        self._asked_last: str | None = None
        self._take_context(context or {})

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
        agent_id = read_saved(SavedAgent, data, "agent").agent_id
        agent = cls(workflow, client, agent_id=agent_id, **settings)
        agent.restore(data)

        return agent

    # In a world

    @property
    def chart(self) -> Statechart[StrEnum]:
        """The workflow's chart."""
        return self.workflow.chart

    def join(self, lent: Lent) -> None:
        """Use the writer, log, time and random numbers of a world's run."""
        self._steps = StepRunner(self, lent, self._workers)

    async def act(self, world: Any) -> None:  # noqa: ARG002 - what a class of the user's looks at
        """Take a turn in a world, unless the workflow has stopped."""
        if self.failure is None:
            await self.turn()

    def snapshot(self) -> dict[str, Any]:
        """Return the agent's data, as `to_dict` does, for a checkpoint."""
        return self.to_dict()

    def restore(self, data: Mapping[str, Any]) -> None:
        """Restore the agent from the data that `snapshot` returned.

        Raises:
            InputError: If the data is something else; the message names the key.
        """
        saved = read_saved(SavedAgent, data, "agent")
        self.turn_number, self.failure = saved.turn_number, saved.failure
        self.ticks_in_state = saved.ticks_in_state
        self._asked_last = None
        self.state_history.clear()
        self._take_context(saved.context)
        self.actions.number, self.actions.successes = saved.actions, saved.successes
        self.actions.history.clear()
        self.actions.history.extend(each.to_result() for each in saved.action_history)

    def to_dict(self) -> dict[str, Any]:
        """Return the agent, between two turns, as plain data for `from_dict`.

        Its state is in the context, under ``_state_machine``.
        """
        machine = {
            "current_state": self.state.value,
            "history": [transition.to_dict() for transition in self.state_history],
            "states": [state.value for state in self.workflow.states],
            "asked_last": self._asked_last,
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

    @property
    def context(self) -> dict[str, Any]:
        """Its variables, plain data."""
        return self.variables.context

    @property
    def action_history(self) -> deque[ActionResult]:
        """The last actions and their results, oldest first."""
        return self.actions.history

    @property
    def has_finished(self) -> bool:
        """Whether it is in a final state, in which it takes no more turns."""
        return self.state.value in self.workflow.definition.final_states

    @property
    def repeats(self) -> Recorded | None:
        """What it takes from an earlier run, if anything."""
        return self._steps.recorded

    def repeat(self, recorded: Recorded) -> None:
        """Take the duration of code steps and the results of actions from an earlier run."""
        self._steps.recorded = recorded

    def allows(self, condition: Expression) -> bool:
        """Return whether a condition allows a transition; the chart's guards call it."""
        return self._steps.allows(condition)

    async def turn(self) -> Turn:
        """Carry out one turn: all code steps in their order, and one step that asks a model.

        Steps that ask a model in the same state take turns.

        In a final state there is nothing to do: the call does not count as a turn, and returns an
        empty one that says ``has_finished``.

        Raises:
            WorkflowStopped: If the workflow has stopped because a step failed.
            AgentError: If a turn of this agent is under way.
        """
        if self._is_at_turn:
            raise AgentError(
                f"agent {self.agent_id!r} is at its turn {self.turn_number}: await one turn "
                "before the next, or give each task an agent of its own"
            )

        if self.failure is not None:
            raise WorkflowStopped(
                f"the workflow {self.workflow.name!r} of agent {self.agent_id!r} has stopped: "
                f"{self.failure}"
            )
        if self.has_finished:
            return Turn(self.turn_number, self.state.value, has_finished=True)

        self.turn_number += 1
        self.ticks_in_state += 1
        self._steps.begin_turn()
        self._is_at_turn = True
        try:
            runs = await self._go_through()
        finally:
            self._is_at_turn = False

        if runs and runs[-1].outcome == "failed":
            self.failure = f"step {runs[-1].step!r}: {runs[-1].reason}"

        return Turn(
            self.turn_number,
            self.state.value,
            tuple(runs),
            has_stopped=self.failure is not None,
            has_finished=self.has_finished,
        )

    async def _go_through(self) -> list[StepRun]:
        """Go through the list of steps once, until one fails for good."""
        runs: list[StepRun] = []
        has_asked, here = False, self.workflow.steps_in(self.state.value)
        order, waiting = _Order(self._steps, here, self._asked_last), deque(here)
        while waiting:
            place, step = waiting.popleft()
            asks = step.kind != "code"
            if asks and (has_asked or not order.may_ask(place)):
                continue
            if not self._steps.is_due(step):
                continue

            before = self.state
            run = await self._steps.run(step)
            runs.append(run)
            if run.outcome == "failed":
                return runs

            order.look_again()
            if asks:
                has_asked, self._asked_last = True, step.name
            if self.state is not before:
                here, self._asked_last = self.workflow.steps_in(self.state.value), None
                order = _Order(self._steps, here, None)
                waiting = deque(here[bisect_right(here, place, key=itemgetter(0)) :])

        if order.has_left_turn and not has_asked:
            self._asked_last = None

        return runs

    def _take_context(self, given: Mapping[str, Any]) -> None:
        """Take over variables, and the state that is kept among them."""
        context = dict(given)
        machine = context.pop(STATE_KEY, None)
        self.variables.context = as_context(context)
        if machine is None:
            return

        states, saved = self.workflow.states, read_saved(SavedMachine, machine, STATE_KEY)
        self.state_history.extend(saved.transitions(states))
        if saved.current_state in [state.value for state in states]:
            self.state, self._asked_last = states(saved.current_state), saved.asked_last
            return

        self.ticks_in_state = 0
        about = {"from_state": saved.current_state, "to_state": self.state.value}
        self._steps.warn(WORKFLOW_RESET, **about)


def _of_time(turns: int | None) -> dict[str, HostVariable]:
    """Return the variables of the agent that depend on the planned number of turns."""
    if turns is None:
        return {}

    return {
        "time_remaining": lambda agent: max(0, turns - agent.turn_number + 1),
        "progress_percent": lambda agent: round(100 * min(1.0, (agent.turn_number - 1) / turns), 2),
    }


class _Order:
    """Which steps of a state may ask a model: those below the last that asked go first.

    Args:
        runner: Says which steps are due.
        steps: The steps of the state, each with its place in the list.
        asked_last: Name of the step that asked last in this state; None after entering it.

    Attributes:
        has_left_turn: Whether a step has left its turn to one below the last that asked.
    """

    def __init__(
        self, runner: StepRunner, steps: Sequence[tuple[int, Step]], asked_last: str | None
    ) -> None:
        self.has_left_turn = False
        self._runner = runner
        self._last = next((place for place, step in steps if step.name == asked_last), -1)
        self._below = [step for place, step in steps if place > self._last and step.kind != "code"]
        self._is_one_due: bool | None = None

    def may_ask(self, place: int) -> bool:
        """Return whether a step that asks a model is not to leave its turn to another one."""
        if place > self._last:
            return True
        if self._is_one_due is None:
            due = (self._runner.is_due(step, quietly=True) for step in self._below)
            self._is_one_due = any(due)

        self.has_left_turn |= self._is_one_due

        return not self._is_one_due

    def look_again(self) -> None:
        """Look again which steps are due: one that has run may have changed it."""
        self._is_one_due = None
