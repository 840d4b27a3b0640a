"""An application's own Machine as a chart: its models keep records, ticks and a log."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from functools import partial
from inspect import ismethod
from typing import Any, Self

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart._engine.deciding import Deciding
from prism.statechart._engine.machine import (
    ChartMachine,
    EventData,
    Machine,
    arcs_of,
    context_of,
    definition_of,
    snapshot_of,
    value_text,
)
from prism.statechart._engine.reporting import Reporter
from prism.statechart._engine.writing import (
    count_of,
    count_tick,
    depth_of,
    records_for,
    restart_time,
)
from prism.statechart.transitions import (
    DEFAULT_MAX_HISTORY_DEPTH,
    DEFAULT_TIMEOUT_THRESHOLD,
    TIMEOUT,
    append_record,
    make_record,
)
from prism.telemetry.instruments import ChartBuilt, GuardEvaluated, engine_hooks, observe
from prism.telemetry.loggers import EventLogger, somebody_listens


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
            names = {machine.get_state(each).name: ticks for each, ticks in timeouts.items()}
        except ValueError as error:
            raise DefinitionError(f"timeouts: {error}") from None
        self._title = name or (machine.name or "").removesuffix(": ") or "machine"
        self._machine = machine
        self._attribute = machine.model_attribute
        self._state_limits: dict[str, int] = names
        self._timeout_trigger = timeout_trigger
        self._reporter = Reporter(self._title, logger, strict=False)
        self._has_logger = logger is not None
        self._clock = clock
        self._events, self._edges, self._warned_of = {}, {}, set()
        self._built = []
        self._described: Definition[Any] | None = None
        self._observe_machine()
        for model in machine.models:
            self.adopt(model)
        if engine_hooks:
            observe("chart_built", ChartBuilt, self._definition)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the Machine, without what is only known while the chart is used."""
        unused: dict[str, Any] = {"_events": {}, "_edges": {}, "_described": None, "_built": []}
        return object.__new__, (type(self),), vars(self) | unused

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy with the Machine, which calls its chart."""
        make, arguments, state = self.__reduce__()
        twin: Self = memo.setdefault(id(self), make(*arguments))
        machine = deepcopy(self._machine, memo)
        vars(twin).update({**state, "_machine": machine})
        return twin

    @property
    def _triggers(self) -> dict[str, None]:  # type: ignore[override]
        """The events of the Machine, in definition order."""
        return dict.fromkeys(self._machine.events)

    @property
    def _definition(self) -> Definition[Any]:  # type: ignore[override]
        """The Machine as it is now, as a definition."""
        built = snapshot_of(self._machine)
        if self._described is None or built != self._built:
            # a definition has limits for the trigger of that name alone
            limits = self._state_limits if self._timeout_trigger == TIMEOUT else {}
            rest = {"name": self._title, "timeouts": limits}
            self._described, self._built = definition_of(self._machine, rest), built
        return self._described

    def release(self) -> None:
        """Give the Machine its own methods back."""
        for name in ("set_state", "_process"):
            vars(self._machine).pop(name, None)

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
        self._reporter.met(agent, value_text(self._require_known_state(agent)))
        return agent

    def _ticks_of(self, agent: Any) -> int | None:
        """Return the ticks of an agent in its state.

        A model that was added after the Machine was adopted gets what the others have.
        """
        ticks = count_of(agent, "ticks_in_state")
        if ticks is None and any(each is agent for each in self._machine.models):
            ticks = count_of(self.adopt(agent), "ticks_in_state")
        return ticks

    # What is observed of the Machine

    def _process(self, run: Any) -> Any:
        # the Machine reads the event from there if it drops those of a model
        observed = partial(self._run_event, run.args[0], run)
        return type(self._machine)._process(self._machine, observed)

    def _change_state(self, state: Any, model: Any = None) -> None:
        """Change the state of a model as the Machine does, and record it."""
        machine, events = self._machine, self._events.get(id(model), ())
        before, dwell = (self._value(model), self._ticks_of(model)) if events else (None, None)
        type(machine).set_state(machine, state, model)
        if not events:
            return
        now = self._value(model)
        if now == before:
            restart_time(model)
            return

        context = context_of(events[-1])
        edge = self._edge(before, now, events[-1].event.name)
        # the package calls a state by its name, whatever its value is
        edge.from_text, edge.to_text = value_text(before), value_text(now)
        if dwell is not None:
            model.ticks_in_state = 0
        record = make_record(edge, self._clock(), context)
        append_record(records_for(model), record, depth_of(model))
        if self._has_logger or somebody_listens():
            self._reporter.moved(model, edge, dwell, context)

    def _end_event(self, data: EventData) -> None:
        if engine_hooks and data.error is None:
            made: Any = data.transition if data.result else None
            source = getattr(data.state, "name", None) if made is None else made.source
            for arc in data.event.transitions.get(source or "", ()):
                outcome: Any = "passed" if arc is made else "failed"
                number = self._number_of(arc)
                if arc.conditions and number is not None:
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

    def tick(self, agent: Any, context: Any = None) -> Any:
        """Let one tick pass, and fire the time-out if the agent has dwelt too long."""
        ticks = self._ticks_of(agent)
        if ticks is None:
            return None
        ticks = count_tick(agent, ticks)
        state = self._machine.get_model_state(agent).name
        limit = self._state_limits.get(state) or count_of(agent, "timeout_threshold")
        if limit is None and not self._state_limits:
            limit = DEFAULT_TIMEOUT_THRESHOLD
        event = self._machine.events.get(self._timeout_trigger)
        if limit is None or ticks <= limit or event is None or not event.transitions.get(state):
            return None
        return self.fire(agent, self._timeout_trigger, *(() if context is None else (context,)))

    # Looking

    def _require_known_state(self, agent: Any) -> Any:
        return self._value(agent)

    def is_in(self, agent: Any, state: Any) -> bool:
        """Return whether an agent is in a state."""
        return value_text(self._value(agent)) == value_text(state)

    def active(self, state: Any) -> tuple[Any, ...]:
        """Return the state."""
        return (state,)

    def state_of(self, text: str) -> Any:
        """Return the member of the chart's states that a text stands for."""
        for state in self._definition.states:
            if value_text(state) == text:
                return state
        raise self._unknown_state(f"state {text!r}")

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
