"""An application's own Machine as a chart: its models keep records, ticks and a log."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from inspect import ismethod
from typing import Any

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart._engine.deciding import Deciding
from prism.statechart._engine.described import arcs_of, definition_of, snapshot_of
from prism.statechart._engine.machine import ChartMachine, EventData, Machine, context_of
from prism.statechart._engine.reporting import Reporter
from prism.statechart._engine.writing import count_of, depth_of, records_for
from prism.statechart.states import state_text
from prism.statechart.transitions import (
    DEFAULT_MAX_HISTORY_DEPTH,
    DEFAULT_TIMEOUT_THRESHOLD,
    TIMEOUT,
    Edge,
    append_record,
    make_record,
)
from prism.telemetry.instruments import ChartBuilt, GuardEvaluated, engine_hooks, observe
from prism.telemetry.loggers import EventLogger


class AdoptedEngine(Deciding[Any]):
    """What runs a chart that `Statechart.from_machine` made: the application's Machine."""

    def __init__(
        self,
        machine: Machine,
        name: str | None,
        timeouts: Mapping[Any, int],
        timeout_trigger: str,
        logger: EventLogger | None,
        clock: Callable[[], float],
    ) -> None:
        # past the constructor of a chart, which would make a Machine of its own
        if not isinstance(machine, Machine):
            kind = type(machine).__name__
            raise DefinitionError(f"from_machine takes a Machine of transitions, got {kind}")
        if isinstance(machine, ChartMachine) or ismethod(vars(machine).get("set_state")):
            raise DefinitionError("the Machine belongs to a chart already: use that one")
        kinds = {each.__name__ for each in type(machine).__mro__}
        for kind in kinds & {"AsyncMachine", "HierarchicalMachine"}:
            raise DefinitionError(
                f"from_machine takes no {kind}: write its states and transitions as a Statechart, "
                "which has composites (State) and awaits decisions (afire)"
            )
        try:
            self._limits = {machine.get_state(at).value: limit for at, limit in timeouts.items()}
        except ValueError as error:
            raise DefinitionError(f"timeouts: {error}") from None
        self._usual_limit = None if timeouts else DEFAULT_TIMEOUT_THRESHOLD
        self._title = name or (machine.name or "").removesuffix(": ") or "machine"
        self._machine = machine
        self._attribute = machine.model_attribute
        self._timeout_trigger = timeout_trigger
        self._reporter = Reporter(self._title, logger, strict=False)
        self._has_logger = logger is not None
        self._clock = clock
        self._events, self._edges, self._firing, self._warned_of = {}, {}, {}, set()
        self._built: Any = None
        self._observe_machine()
        for model in machine.models:
            self.adopt(model)
        if engine_hooks:
            observe("chart_built", ChartBuilt, self._definition)

    # pickled and copied with the Machine, which calls its chart
    __reduce__: Any = object.__reduce__
    __deepcopy__: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is only known while the chart is used."""
        return {**vars(self), "_events": {}, "_built": None, "_described": None}

    @property
    def _triggers(self) -> dict[str, None]:  # type: ignore[override] # what it has now
        return dict.fromkeys(self._machine.events)

    @property
    def _definition(self) -> Definition[Any]:  # type: ignore[override] # what it has now
        built = snapshot_of(self._machine)
        if built != self._built:
            # a definition has limits for the trigger of that name alone
            limits = self._limits if self._timeout_trigger == TIMEOUT else {}
            rest = {"name": self._title, "timeouts": limits}
            self._described, self._built = definition_of(self._machine, rest), built
        return self._described

    def adopt(self, agent: Any) -> Any:
        """Give a model the fields of an agent that it lacks."""
        if getattr(agent, "state_history", None) is not None:
            # before it has ticks, which would make an empty list of its own one of prism's
            records_for(agent)
        records: Any = deque(maxlen=DEFAULT_MAX_HISTORY_DEPTH)
        for field, value in (("ticks_in_state", 0), ("state_history", records)):
            # classes with slots, and strict models, have no room: their records are kept beside
            if getattr(agent, field, None) is None:
                with suppress(Exception):
                    setattr(agent, field, value)
        self._reporter.met(agent, state_text(self._value(agent)))
        return agent

    def _ticks_of(self, agent: Any) -> int | None:
        # a model that was added after the Machine was adopted gets what the others have
        if count_of(agent, "ticks_in_state") is None and any(
            each is agent for each in self._machine.models
        ):
            self.adopt(agent)
        return count_of(agent, "ticks_in_state")

    # What is observed of the Machine

    def _process(self, run: Any) -> Any:
        # the Machine reads the event from there if it drops those of a model
        observed = partial(self._run_event, run.args[0], run)
        return type(self._machine)._process(self._machine, observed)

    def _change_state(self, state: Any, model: Any = None) -> None:
        """Change the state of a model as the Machine does, and record it."""
        machine, events = self._machine, self._events.get(id(model))
        if not events:
            type(machine).set_state(machine, state, model)
            return
        before, dwell = self._value(model), self._ticks_of(model)
        type(machine).set_state(machine, state, model)
        edge = self._edge(before, self._value(model), events[-1].event.name)
        self._commit(model, edge, partial(_write, dwell), context_of(events[-1]))

    def _end_event(self, data: EventData) -> None:
        if engine_hooks and data.error is None and data.state is not None:
            made = data.transition if data.result else None
            # the event began in the state that the transition left
            source = data.state.name if made is None else made.source
            for arc in data.event.transitions.get(source, ()):
                number = self._number_of(arc)
                if arc.conditions and number is not None:
                    outcome = "passed" if arc is made else "failed"
                    details = self._definition, number, data.model, context_of(data), outcome
                    observe("guard", GuardEvaluated, *details)
                if arc is made:
                    break
        super()._end_event(data)

    def _number_of(self, arc: Any) -> int | None:
        # no definition has the transitions to any state that a Machine adds by itself
        every = enumerate(arcs_of(self._machine))
        return next((number for number, (_, each) in every if each is arc), None)

    # Firing

    def fire(self, agent: Any, trigger: str, *args: Any, **kwargs: Any) -> Any:
        """Trigger an event, as ``agent.trigger`` does, with the arguments that callbacks take.

        Returns:
            The agent's state if a transition was made, else None.

        Raises:
            MachineError: Where ``agent.trigger`` raises it.
        """
        before, made = self._value(agent), self._made
        self._machine._get_trigger(agent, trigger, *args, **kwargs)
        now = self._value(agent)
        # a queue does not tell
        return now if now != before or self._made != made else None

    async def afire(self, agent: Any, trigger: str, *args: Any, **kwargs: Any) -> Any:
        """Trigger an event, as `fire`; nobody decides."""
        return self.fire(agent, trigger, *args, **kwargs)

    # Looking

    def can_be_in(self, state: object) -> bool:
        """Return whether the Machine has a state."""
        states = (each.value for each in self._machine.states.values())
        return state_text(state) in map(state_text, states)

    def _require_known_state(self, agent: Any) -> Any:
        return self._value(agent)

    def _member(self, state: Any) -> Any:
        members = (each for each in self._definition.states if each == state_text(state))
        return next(members, state)

    def _is_not_for_it(self, *_: Any, **__: Any) -> Any:
        """Refuse what an adopted Machine has no use for."""
        raise DefinitionError(
            f"chart {self._title!r} runs an application's own Machine: begin, bound, extended and "
            "fire_to are for charts that are written as a Statechart"
        )

    begin: Any = _is_not_for_it
    bound: Any = _is_not_for_it
    extended: Any = _is_not_for_it
    fire_to: Any = _is_not_for_it


def _write(dwell: int | None, agent: Any, edge: Edge, time: float, context: object) -> int | None:
    """Record a transition that the Machine has made."""
    if dwell is not None:
        agent.ticks_in_state = 0
    append_record(records_for(agent), make_record(edge, time, context), depth_of(agent))
    return dwell
