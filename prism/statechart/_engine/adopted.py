"""An application's own Machine as a chart: its models keep records, ticks and a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from inspect import ismethod
from operator import attrgetter
from typing import Any

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart._engine import machine as adapter
from prism.statechart._engine.driving import Driving
from prism.statechart._engine.firing import Engine
from prism.statechart._engine.machine import Arguments, EventData, Machine
from prism.statechart._engine.rows import NestedRows, rows_of
from prism.statechart._engine.writing import add_missing_fields, keep_record, records_for
from prism.statechart.memory import count_of
from prism.statechart.states import state_text
from prism.statechart.transitions import read_only, shared_edge
from prism.telemetry.instruments import installed
from prism.telemetry.loggers import EventLogger


class AdoptedEngine(Driving[Any]):
    """What runs a chart that `Statechart.from_machine` made: the application's Machine."""

    def __init__(
        self,
        machine: Machine,
        name: str | None,
        timeouts: Mapping[Any, int],
        timeout_trigger: str,
        logger: EventLogger | None,
        clock: Callable[[], Any],
    ) -> None:
        _require_adoptable(machine)
        if timeouts and timeout_trigger not in machine.events:
            problem = f"has no event {timeout_trigger!r}: name that of time-outs in timeout_trigger"
            raise DefinitionError(f"the Machine {problem}")
        limits = {machine.get_state(at).value: limit for at, limit in timeouts.items()}
        title = name or (machine.name or "").removesuffix(": ") or "machine"
        self.state_attribute: str = machine.model_attribute
        self._timeout_trigger = timeout_trigger
        definition = adapter.definition_of(machine, {"name": title, "timeouts": limits})
        self._machine = machine
        # the events that `fire` has asked for, by the address of their model
        self._fired: dict[int, list[EventData]] = {}
        # past the constructor of a chart, which would make a definition of its own
        Engine.__init__(self, definition, logger, clock)
        for model in machine.models:
            self.adopt(model)

    # pickled and copied with the Machine, which calls its chart
    __reduce__: Any = object.__reduce__
    __deepcopy__: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what cannot be pickled, and is only known while the chart is used."""
        return {**vars(self), "_under_way": [], "_described": None, "_built": None}

    definition: Definition[Any] = read_only(attrgetter("_as_it_runs"))
    """The Machine as it is now, as a definition."""

    _rows: NestedRows = read_only(lambda chart: rows_of(chart.definition))
    # whatever state the application has put a model in
    _require_state = Engine._value

    def adopt(self, agent: Any) -> Any:
        """Give a model the fields of an agent that it lacks."""
        if getattr(agent, "state_history", None) is not None:
            # before it has ticks, which would make an empty list of its own one of prism's
            records_for(agent)
        # classes with slots, and strict models, have no room: their records are kept beside
        with suppress(Exception):
            add_missing_fields(agent, ("ticks_in_state", "state_history"))
        self._reporter.met(agent, state_text(self._value(agent)))
        return agent

    def tick(self, agent: Any, context: Any = None) -> Any:
        """Let one tick pass, as `Driving.tick`, also for a model that was added later."""
        if count_of(agent, "ticks_in_state") is None:
            self.adopt(agent)
        return super().tick(agent, context)

    # What is observed of the Machine

    def _process(self, run: Any) -> Any:
        # the Machine reads the event from there if it drops those of a model
        machine, data = self._machine, run.args[0]
        self._fired.pop(id(data.model), []).append(data)
        return type(machine)._process(machine, partial(self._run_event, data, run))

    def _change_state(self, state: Any, model: Any = None) -> None:
        """Change the state of a model as the Machine does, and record it."""
        machine, event = self._machine, self._event_of(model)
        if event is None:
            type(machine).set_state(machine, state, model)
            return
        event.has_moved = True
        before, dwell = self._value(model), count_of(model, "ticks_in_state")
        type(machine).set_state(machine, state, model)
        edge = shared_edge(before, self._value(model), event.event.name)
        self._write(model, edge, partial(keep_record, dwell), adapter.context_of(event))

    def _end_event(self, data: EventData) -> None:
        if installed and data.error is None and data.state is not None:
            made = data.transition if adapter.is_made(data) else None
            # the event began in the state that the transition left
            arcs = data.event.transitions.get(made.source if made else data.state.name, [])
            for arc in arcs[: arcs.index(made) + 1 if made else None]:
                if arc.conditions:
                    self._observe("guard", data, arc, "passed" if arc is made else "failed")
        super()._end_event(data)

    def _number_of(self, arc: Any) -> int | None:
        # no definition has the transitions to any state that a Machine adds by itself
        every = enumerate(adapter.arcs_of(self._machine))
        return next((number for number, (_, each) in every if each is arc), None)

    # Firing

    def fire(self, agent: Any, trigger: str, *args: Any, **kwargs: Any) -> Any:
        """Trigger an event, as ``agent.trigger`` does, with the arguments that callbacks take.

        Returns:
            The agent's state if a transition was made, else None.

        Raises:
            MachineError: Where ``agent.trigger`` raises it.
        """
        # other events may be under way meanwhile, in callbacks and in other threads
        fired = self._fired[id(agent)] = list[EventData]()
        try:
            if trigger not in self._machine.events:
                source = self._machine.get_model_state(agent)
                self._refuse(agent, source, trigger, next(iter(args), kwargs or None), None)
            self._machine._get_trigger(agent, trigger, *args, **kwargs)
        finally:
            # an event that was refused before it ran has not taken it
            self._fired.pop(id(agent), None)
        # a queue does not tell, nor does an event whose error `on_exception` has handled
        return self._value(agent) if any(map(adapter.is_made, fired)) else None

    # Looking

    def enabled_targets(self, agent: Any, trigger: str, *args: Any, **kwargs: Any) -> list[Any]:
        """Return the targets whose conditions pass now, with the arguments that `fire` takes."""
        return super().enabled_targets(agent, trigger, Arguments(args, kwargs))

    def _is_not_for_it(self, *_: Any, **__: Any) -> Any:
        """Refuse what an adopted Machine has no use for."""
        raise DefinitionError(f"chart {self.name!r} runs your Machine: write a Statechart for this")

    afire: Any = _is_not_for_it
    begin: Any = _is_not_for_it
    bound: Any = _is_not_for_it
    extended: Any = _is_not_for_it
    fire_to: Any = _is_not_for_it


def _require_adoptable(machine: Any) -> None:
    kinds = {each.__name__ for each in type(machine).__mro__}
    if "Machine" not in kinds:
        raise DefinitionError(f"from_machine takes a Machine of transitions, got {machine!r}")
    if isinstance(machine, adapter.ChartMachine) or ismethod(vars(machine).get("set_state")):
        raise DefinitionError("the Machine belongs to a chart already: use that one")
    for kind in kinds & {"AsyncMachine", "HierarchicalMachine"}:
        raise DefinitionError(f"from_machine takes no {kind}: Statechart has composites and afire")
