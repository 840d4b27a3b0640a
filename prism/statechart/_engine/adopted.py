"""An application's own Machine as a chart: its models keep records, ticks and a log.

Two methods of the Machine are replaced in this instance: the one that runs an event, and
``set_state``, which then also writes what a transition leaves behind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import partial
from inspect import ismethod
from typing import Any, Self

from prism.errors import AgentError, DefinitionError
from prism.statechart._definition import TIMEOUT, Definition
from prism.statechart._engine.deciding import Deciding
from prism.statechart._engine.machine import (
    ChartMachine,
    Machine,
    MachineError,
    arcs_of,
    callback_name,
    context_of,
    definition_of,
    is_async,
    is_hierarchical,
    snapshot_of,
    value_text,
)
from prism.statechart._engine.pending import Choice
from prism.statechart._engine.reporting import Reporter
from prism.statechart._engine.writing import (
    DEFAULT_MAX_HISTORY_DEPTH,
    DEFAULT_TIMEOUT_THRESHOLD,
    append_record,
    count_of,
    count_tick,
    depth_of,
    make_record,
    records_for,
    restart_time,
)
from prism.statechart.transitions import Edge
from prism.telemetry.instruments import (
    ChartBuilt,
    GuardEvaluated,
    TransitionDetails,
    engine_hooks,
    observe,
)
from prism.telemetry.loggers import EventLogger, somebody_listens


class AdoptedEngine(Deciding[Any]):
    """What runs a chart that `Statechart.from_machine` made: the application's Machine."""

    _machine: Any

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
        self._title = name or (machine.name or "").removesuffix(": ") or "machine"
        self._machine = machine
        self._is_async = is_async(type(machine))
        self._is_hierarchical = is_hierarchical(type(machine))
        self._attribute: str = machine.model_attribute
        self._state_limits = {
            _state_named(machine, each): ticks for each, ticks in timeouts.items()
        }
        self._timeout_trigger = timeout_trigger
        self._reporter = Reporter(self._title, logger, strict=False)
        self._has_logger = logger is not None
        self._clock = clock
        self._edges: dict[tuple[Any, Any, str], Edge] = {}
        self._built: list[Any] = []
        self._described: Definition[Any] | None = None
        # the events under way, by the address of the model
        self._events: dict[int, list[Any]] = {}
        self._nested = self._steps = None
        self._warned_of = set()
        self._made = 0

        self._run_name = "process_context" if self._is_async else "_process"
        machine.set_state = self._write_state  # type: ignore[method-assign]
        setattr(machine, self._run_name, self._await_event if self._is_async else self._call_event)
        for model in machine.models:
            self.adopt(model)
        if engine_hooks and not self._is_hierarchical:
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
        self._require_flat("definition")
        built = snapshot_of(self._machine)
        if self._described is None or built != self._built:
            # a definition has limits for the trigger of that name alone
            limits = self._state_limits if self._timeout_trigger == TIMEOUT else {}
            rest = {"name": self._title, "timeouts": limits}
            self._described, self._built = definition_of(self._machine, rest), built
        return self._described

    def release(self) -> None:
        """Give the Machine its own methods back."""
        for name in ("set_state", self._run_name):
            vars(self._machine).pop(name, None)

    def adopt(self, agent: Any) -> Any:
        """Give a model the fields of an agent that it lacks."""
        records: Any = deque(maxlen=DEFAULT_MAX_HISTORY_DEPTH)
        for field, value in (("ticks_in_state", 0), ("state_history", records)):
            # classes with slots, and strict models, have no room: their records are kept beside
            if getattr(agent, field, None) is None:
                with suppress(Exception):
                    setattr(agent, field, value)
        self._reporter.met(agent, value_text(self._value(agent)))
        return agent

    def _ticks_of(self, agent: Any) -> int | None:
        """Return the ticks of an agent in its state.

        A model that was added after the Machine was adopted gets what the others have.
        """
        ticks = count_of(agent, "ticks_in_state")
        if ticks is None and any(each is agent for each in self._machine.models):
            ticks = count_of(self.adopt(agent), "ticks_in_state")
        return ticks

    # What the Machine does

    def _call_event(self, trigger: Any) -> Any:
        """Run an event, in place of the Machine's ``_process``."""

        def run() -> Any:
            with self._under_way(trigger.args[0]):
                return trigger()

        # the Machine takes the event from there if it drops those of a model
        queued = partial(_call, trigger.args[0], run)
        return type(self._machine)._process(self._machine, queued)

    async def _await_event(self, trigger: Any, model: Any) -> Any:
        """Run an event, in place of an AsyncMachine's ``process_context``."""

        async def run() -> Any:
            with self._under_way(trigger.args[0]):
                return await trigger()

        queued = partial(_call, trigger.args[0], run)
        return await type(self._machine).process_context(self._machine, queued, model)

    @contextmanager
    def _under_way(self, event: Any) -> Iterator[None]:
        """Keep an event in mind while it runs, and tell what became of it."""
        events = self._events.setdefault(id(event.model), [])
        events.append(event)
        try:
            yield
        finally:
            events.remove(event)
            if not events:
                del self._events[id(event.model)]
            if event.result:
                self._made += 1
                self._observe_made(event)
            elif event.error is None or isinstance(event.error, MachineError):
                self._refuse_event(event)

    def _write_state(self, state: Any, model: Any = None) -> None:
        """Change the state of a model, in place of the Machine's ``set_state``, and record it."""
        machine, events = self._machine, self._events.get(id(model), ())
        before, dwell = (self._value(model), self._ticks_of(model)) if events else (None, None)
        type(machine).set_state(machine, state, model)
        if not events:
            return
        now = self._value(model)
        if now == before:
            restart_time(model)
            return

        # that of an AsyncMachine may wait while another one goes on
        going = [each for each in events if each.transition and each.transition.dest == state]
        event = (going or events)[-1]
        edge = self._edge(_recorded(before), _recorded(now), _name_of(event))
        # the package calls a state by its name, whatever its value is
        edge.from_text, edge.to_text = value_text(before), value_text(now)
        record = make_record(edge, self._clock(), context_of(event))
        if dwell is not None:
            model.ticks_in_state = 0
        append_record(records_for(model), record, depth_of(model))
        if self._has_logger or somebody_listens():
            self._reporter.moved(model, edge, dwell, context_of(event))

    def _refuse_event(self, event: Any) -> None:
        arcs = _arcs_of(event, getattr(event.state, "name", None))
        self._observe_guards(event, arcs, "failed")
        guards = (callback_name(each.func) for arc in arcs for each in arc.conditions)
        state = value_text(self._value(event.model))
        self._reporter.refused(event.model, state, _name_of(event), guards, context_of(event))

    def _observe_made(self, event: Any) -> None:
        arcs = _arcs_of(event, event.transition.source)
        if not engine_hooks or self._is_hierarchical or event.transition not in arcs:
            return
        at = arcs.index(event.transition)
        self._observe_guards(event, arcs[:at], "failed")
        self._observe_guards(event, arcs[at : at + 1], "passed")
        number = self._number_of(event.transition)
        # no definition has the transitions to any state that a Machine adds by itself
        if number is not None:
            details = self._definition, number, event.model, context_of(event)
            observe("transition_began", TransitionDetails, *details)
            observe("transition", TransitionDetails, *details)

    def _observe_guards(self, event: Any, arcs: list[Any], outcome: Any) -> None:
        for arc in arcs if engine_hooks and not self._is_hierarchical else ():
            number = self._number_of(arc)
            if arc.conditions and number is not None:
                details = self._definition, number, event.model, context_of(event), outcome
                observe("guard", GuardEvaluated, *details)

    def _number_of(self, wanted: Any) -> int | None:
        """Return the place of a transition in the definition."""
        every = enumerate(arc for _, arc in arcs_of(self._machine))
        return next((number for number, arc in every if arc is wanted), None)

    # Firing

    def fire(self, agent: Any, trigger: str, *args: Any, **kwargs: Any) -> Any:
        """Trigger an event, as ``agent.trigger`` does, with the arguments that callbacks take.

        Returns:
            The agent's state if a transition was made, else None.

        Raises:
            MachineError: Where ``agent.trigger`` raises it.
        """
        if self._is_async:
            raise AgentError(
                f"chart {self._title!r} runs an AsyncMachine: write "
                "await chart.afire(agent, trigger)"
            )
        before, made = self._value(agent), self._made
        self._trigger(agent, trigger, *args, **kwargs)
        return self._moved(agent, before, made)

    async def afire(self, agent: Any, trigger: str, *args: Any, **kwargs: Any) -> Any:
        """Trigger an event of an `AsyncMachine`, as `fire` of any other."""
        if not self._is_async:
            return self.fire(agent, trigger, *args, **kwargs)
        before, made = self._value(agent), self._made
        await self._trigger(agent, trigger, *args, **kwargs)
        return self._moved(agent, before, made)

    @property
    def _trigger(self) -> Callable[..., Any]:
        machine = self._machine
        run: Callable[..., Any] = (
            machine.trigger_event if self._is_hierarchical else machine._get_trigger
        )
        return run

    def _moved(self, agent: Any, before: Any, made: int) -> Any:
        """Return an agent's state if a transition was made since, which a queue does not tell."""
        now = self._value(agent)
        return now if now != before or self._made != made else None

    def _value(self, agent: Any) -> Any:
        try:
            return getattr(agent, self._attribute)
        except AttributeError:
            raise AgentError(
                f"chart {self._title!r} cannot drive {type(agent).__name__!r}: it has no "
                f"{self._attribute!r}"
            ) from None

    def tick(self, agent: Any, context: Any = None) -> Any:
        """Let one tick pass, and fire the time-out if the agent has dwelt too long."""
        value, ticks = self._value(agent), self._ticks_of(agent)
        if ticks is None:
            return None
        ticks = count_tick(agent, ticks)
        state = None if self._is_hierarchical else self._machine.get_model_state(agent).name
        limit = self._state_limits.get(state or value_text(value))
        limit = limit or count_of(agent, "timeout_threshold")
        if limit is None and not self._state_limits:
            limit = DEFAULT_TIMEOUT_THRESHOLD
        event = self._machine.events.get(self._timeout_trigger)
        if limit is None or ticks <= limit or event is None:
            return None
        if state is not None and not event.transitions.get(state):
            return None
        return self.fire(agent, self._timeout_trigger, *(() if context is None else (context,)))

    # Looking

    def _require_known_state(self, agent: Any) -> Any:
        return self._value(agent)

    def _enabled(
        self, agent: Any, trigger: str, context: Any, target: Any = None
    ) -> Iterator[Choice]:
        self._require_flat("enabled transitions", also_async=True)
        return super()._enabled(agent, trigger, context, target)

    def is_in(self, agent: Any, state: Any) -> bool:
        """Return whether an agent is in a state; of a `HierarchicalMachine`, exactly in it."""
        return value_text(self._value(agent)) == value_text(state)

    def active(self, state: Any) -> tuple[Any, ...]:
        """Return the state."""
        return (state,)

    def state_of(self, text: str) -> Any:
        """Return the member of the chart's states that a text stands for."""
        states = {value_text(state): state for state in self._definition.states}
        if text not in states:
            raise self._unknown_state(f"state {text!r}")
        return states[text]

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

    def _require_flat(self, what: str, *, also_async: bool = False) -> None:
        if self._is_hierarchical or (also_async and self._is_async):
            kind = type(self._machine).__name__
            raise DefinitionError(
                f"chart {self._title!r} runs a {kind}, which has no {what}: history, ticks and the "
                "log work; for the rest, write it as a Statechart"
            )


def _call(_event: Any, run: Callable[[], Any]) -> Any:
    return run()


def _state_named(machine: Machine, state: Any) -> str:
    try:
        return str(machine.get_state(state).name)
    except ValueError as error:
        raise DefinitionError(f"timeouts: {error}") from None


def _recorded(value: Any) -> Any:
    """Return a state's value as records have it: that of parallel states as text."""
    return value_text(value) if isinstance(value, (list, tuple)) else value


def _name_of(event: Any) -> str:
    return getattr(event.event, "name", None) or "?"


def _arcs_of(event: Any, source: str | None) -> list[Any]:
    """Return the transitions that an event has from a state."""
    return list(getattr(event.event, "transitions", {}).get(source, ()))
