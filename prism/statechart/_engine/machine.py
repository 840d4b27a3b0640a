"""The one module that knows the ``transitions`` package: the Machine that a chart runs on.

Guards are its conditions, actions its ``before`` callbacks. It tells its chart when an event begins
(`ChartMachine._process`) and when the state of an agent is to change (`ChartMachine.set_state`), so
`Statechart.fire`, ``chart.machine.events[trigger].trigger(agent)`` and whatever an application adds
to the Machine leave the same agent, history and log.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import partial
from types import CoroutineType
from typing import Any, NamedTuple, NoReturn, cast

from transitions import EventData, Machine, MachineError, State, Transition
from transitions.core import Condition, Event

from prism.errors import DefinitionError
from prism.statechart._asking import told
from prism.statechart._definition import Definition, arguments_of
from prism.statechart._identity import own_name
from prism.statechart.states import is_state, state_enum, state_text
from prism.statechart.transitions import Guard
from prism.statechart.transitions import Transition as Written
from prism.telemetry.instruments import GuardOutcome, engine_hooks

MACHINE_HOOKS = (
    "prepare_event",
    "before_state_change",
    "after_state_change",
    "finalize_event",
    "on_exception",
    "on_final",
)
"""The lists of callbacks of a Machine itself."""


class Verdict(NamedTuple):
    """The result of a guard: it passed, it failed, or it raised an error."""

    outcome: GuardOutcome
    error: Exception | None = None


PASSED = Verdict("passed")
FAILED = Verdict("failed")


def evaluate(guard: Guard | None, agent: Any, context: Any) -> Verdict:
    """Evaluate a guard; a transition without one always passes.

    What must stop the program, such as a ``KeyboardInterrupt``, propagates.
    """
    if guard is None:
        return PASSED

    try:
        # the truth of the result may raise, too
        result = guard(agent, context)
        if type(result) is CoroutineType:
            refuse_coroutine(result, "a guard")
        return PASSED if result else FAILED
    except Exception as error:
        return Verdict("raised", error)


def refuse_coroutine(result: CoroutineType[Any, Any, Any], who: str) -> NoReturn:
    """Refuse a coroutine that a guard or an action has returned, of which nothing has run.

    Raises:
        DefinitionError: In any case.
    """
    result.close()
    raise DefinitionError(
        f"{who} returned the coroutine {result.__qualname__!r}, which nobody awaits: only "
        "chart.afire awaits those of actions"
    )


def context_of(event: EventData) -> Any:
    """Return the context of an event: the argument of that name, else the first, else None."""
    if "context" in event.kwargs:
        return event.kwargs["context"]
    return next(iter(event.args), event.kwargs or None)


class GuardCondition(Condition):
    """A ``guard(agent, context)`` as a condition; one that raises counts as false."""

    def check(self, event_data: EventData) -> bool:
        """Evaluate the guard on the event's agent and context."""
        guard: Any = self.func
        verdict = evaluate(guard, event_data.model, context_of(event_data))
        if engine_hooks or verdict.error is not None:
            event_data.machine.chart._tell_guard(verdict, event_data)
        return verdict is PASSED


class ActionCallback:
    """An ``action(agent, context)`` as a ``before`` callback; its fault ends no transition."""

    __slots__ = ("func",)

    def __init__(self, func: Callable[[Any, Any], object]) -> None:
        self.func = func

    def __call__(self, event_data: EventData) -> None:
        """Run the action."""
        result, chart, agent = None, event_data.machine.chart, event_data.model
        edge = chart._edge_of(event_data.transition, event_data.event.name)
        try:
            result = self.func(agent, context_of(event_data))
        except Exception as error:
            chart._reporter.action_failed(error, agent, edge)
        if result is not None:
            chart._wait_for(result, agent, edge)


class Arc(Transition):
    """A transition of a chart's Machine.

    Attributes:
        number: Its place in the chart's transitions; None if the application has added it.
    """

    number: int | None = None

    def execute(self, event_data: EventData) -> bool:
        """Make the transition, if its conditions pass, and show it to the instruments."""
        made = bool(super().execute(event_data))
        if made:
            event_data.machine.chart._observe("transition", event_data)
        return made

    def _eval_conditions(self, event_data: EventData) -> bool:
        passes = bool(super()._eval_conditions(event_data))
        if passes:
            event_data.machine.chart._observe("transition_began", event_data)
        return passes


class _Watched(list[Any]):
    """The callbacks of a Machine itself, which fire has to know of."""

    machine: Any = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copy and pickle as a list; the Machine watches it again when it is assigned."""
        return list, ([*self],)


class _Events(OrderedDict[str, Event]):
    """The events of a Machine, which fire has to know of, too."""

    machine: Any = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copy and pickle as a dict."""
        return OrderedDict, ([*self.items()],)


class _Arcs(defaultdict[str, list[Any]]):
    """The transitions of an event by the state that they leave."""

    machine: Any = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Copy and pickle as a dict."""
        return defaultdict, (list, dict(self))


def _telling(base: type, name: str) -> Callable[..., Any]:
    change = getattr(base, name)

    def changed(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = change(self, *args, **kwargs)
        if self.machine is not None:
            self.machine._changed()
        return result

    return changed


_OF_LISTS = ("append", "extend", "insert", "remove", "pop", "clear", "__setitem__", "__delitem__")
for _name in (*_OF_LISTS, "__iadd__"):
    setattr(_Watched, _name, _telling(list, _name))
for _name in ("__setitem__", "__delitem__"):
    setattr(_Events, _name, _telling(OrderedDict, _name))
    setattr(_Arcs, _name, _telling(defaultdict, _name))


class ChartMachine(Machine):
    """The Machine of a chart, without models: agents are driven, never registered.

    Attributes:
        chart: The chart; None while the Machine is being made.
        values: The states by their values, so by text, too.
    """

    transition_cls = Arc
    chart: Any = None

    def _changed(self) -> None:
        self.values = {each.value: each for each in self.states.values()}
        if self.chart is not None:
            for event in self.events.values():
                self._watch_arcs(event)
            self.chart._machine_changed(any(getattr(self, name) for name in MACHINE_HOOKS))

    def get_model_state(self, model: Any) -> State:
        """Return the state of an agent, which may hold it as text."""
        value = getattr(model, self.model_attribute)
        found = self.values.get(value)
        return self.get_state(value) if found is None else found

    def get_state(self, state: Any) -> State:
        """Return a state by name, member or text."""
        found = self.states.get(state) or self.values.get(state)
        return super().get_state(state) if found is None else found

    def set_state(self, state: Any, model: Any = None) -> None:
        """Change the state of an agent, and write what a transition leaves behind."""
        target = state if isinstance(state, State) else self.get_state(state)
        for each in self.models if model is None else [model]:
            self.chart._change_state(each, target.value)

    def _process(self, trigger: Any) -> Any:
        """Run an event, or queue it behind one of the same agent that is under way."""
        return self.chart._process(trigger.args[0], trigger)

    def add_transition(self, *args: Any, **kwargs: Any) -> None:
        """Add a transition, as every Machine does."""
        super().add_transition(*args, **kwargs)
        self._changed()

    def remove_transition(self, *args: Any, **kwargs: Any) -> None:
        """Remove transitions, as every Machine does."""
        super().remove_transition(*args, **kwargs)
        self._changed()

    def add_states(self, *args: Any, **kwargs: Any) -> None:
        """Add states, as every Machine does."""
        super().add_states(*args, **kwargs)
        self._changed()

    def beginning_with(self, event: Event, first: Any, *, has_passed: bool) -> Event:
        """Return an event of which only one transition and those behind it are tried.

        Args:
            event: The event.
            first: The transition.
            has_passed: Whether its conditions have passed, and are not evaluated again.
        """
        arcs = event.transitions[first.source]
        rest = arcs[arcs.index(first) :]
        if has_passed:
            rest[0] = copy(first)
            rest[0].conditions = []
        twin: Any = copy(event)
        # what a refusal names
        twin.whole = event.transitions
        twin.transitions = {first.source: rest}
        made: Event = twin
        return made

    def serve(self, chart: Any) -> None:
        """Belong to a chart from now on."""
        self.chart = chart
        self._watch()
        self._changed()

    def copied(self) -> ChartMachine:
        """Return a Machine of the same states and transitions, to which a change goes alone."""
        twin = copy(self)
        twin.chart = None
        twin.states = self.states.copy()
        twin.events = OrderedDict()
        for name, event in self.events.items():
            own = twin.events[name] = copy(event)
            own.machine = twin
            own.transitions = defaultdict(
                list, {at: [*arcs] for at, arcs in event.transitions.items()}
            )
        for name in MACHINE_HOOKS:
            setattr(twin, "_" + name, [*getattr(self, name)])
        return twin

    def _watch_arcs(self, event: Event) -> None:
        if type(event.transitions) is not _Arcs or event.transitions.machine is not self:
            watched = _Arcs(list, event.transitions)
            watched.machine = self
            event.transitions = watched

    def _watch(self) -> None:
        events = _Events(self.events)
        for event in events.values():
            self._watch_arcs(event)
        events.machine = self
        self.events = events
        for name in MACHINE_HOOKS:
            setattr(self, name, getattr(self, name))


def _watched(name: str) -> property:
    stock = getattr(Machine, name)

    def assign(machine: ChartMachine, value: Any) -> None:
        stock.fset(machine, value)
        if machine.chart is not None:
            hooks = _Watched(getattr(machine, name))
            hooks.machine = machine
            setattr(machine, "_" + name, hooks)
            machine._changed()

    return property(stock.fget, assign, doc=stock.__doc__)


for _name in MACHINE_HOOKS:
    setattr(ChartMachine, _name, _watched(_name))

_READ_BY_FIRE = (
    *("callback", "callbacks", "resolve_callable", "get_model_state", "get_state", "set_state"),
    *("_process", "event_cls", "state_cls", "transition_cls"),
)


def is_usual(machine: Machine) -> bool:
    """Return whether a Machine's class runs events as `ChartMachine` does, so fire may, too."""
    cls = type(machine)
    return all(getattr(cls, name) is getattr(ChartMachine, name) for name in _READ_BY_FIRE)


def build_machine(
    definition: Definition[Any], cls: type[Machine], *, ignores: bool
) -> ChartMachine:
    """Make the Machine of a flat chart.

    Args:
        definition: The chart's definition.
        cls: The class of Machine to run on.
        ignores: Whether an event that does not apply in a state does nothing, instead of raising a
            `MachineError`.

    Raises:
        DefinitionError: If the class awaits its callbacks, or has states inside states.
    """
    if any(each.__name__ in ("AsyncMachine", "HierarchicalMachine") for each in cls.__mro__):
        raise DefinitionError(
            f"chart {definition.name!r} cannot run on {cls.__name__}: its callbacks must be plain "
            "functions, and states inside states are written as State(...)"
        )
    own: Any = ChartMachine
    if not issubclass(cls, ChartMachine):
        own = own if cls is Machine else type(cls.__name__, (ChartMachine, cls), {})
    else:
        own = cls
    machine: ChartMachine = own(
        model=None,
        states=[
            {"name": state, "final": state in definition.final_states}
            for state in definition.states
        ],
        initial=definition.initial,
        auto_transitions=False,
        send_event=True,
        ignore_invalid_triggers=ignores,
        name=definition.name,
    )
    for number, item in enumerate(definition.transitions):
        _add(machine, item, number)
    return machine


def _add(machine: ChartMachine, item: Written[Any], number: int) -> None:
    """Add a transition of the definition, past the check for new rows."""
    event = machine.events.get(item.trigger)
    if event is None:
        event = machine.events[item.trigger] = machine.event_cls(item.trigger, machine)
    action, source = told(item.action, item, item.source), cast(Any, item.source)
    before: list[Any] = [] if action is None else [ActionCallback(action)]
    arc: Any = machine.transition_cls(source.name, item.target.name, before=before)
    if item.guard is not None:
        arc.conditions.append(GuardCondition(told(item.guard, item, item.source)))
    arc.number = number
    event.add_transition(arc)


# What a Machine is, as a definition


class Conditions:
    """The conditions of a transition as one guard.

    Args:
        machine: The Machine.
        trigger: Name of the event.
        arc: The transition.
    """

    def __init__(self, machine: Machine, trigger: str, arc: Transition) -> None:
        self._machine, self._trigger, self._arc = machine, trigger, arc

    @property
    def __name__(self) -> str:
        """The names of the conditions."""
        return " and ".join(
            ("" if each.target else "not ") + callback_name(each.func)
            for each in self._arc.conditions
        )

    def __call__(self, agent: Any, context: Any) -> bool:
        """Evaluate them, without a word to anybody."""
        machine = self._machine
        event = EventData(
            machine.get_state(self._arc.source),
            machine.events.get(self._trigger),
            machine,
            agent,
            () if context is None and not isinstance(machine, ChartMachine) else (context,),
            {},
        )
        event.transition = self._arc
        for each in self._arc.conditions:
            # a chart's own guard, without the word that it has failed
            guard: Any = each.func if type(each) is GuardCondition else None
            if not (each.check(event) if guard is None else guard(agent, context)):
                return False
        return True


class Callbacks:
    """The callbacks of a transition as one action, for what shows it."""

    def __init__(self, names: list[str]) -> None:
        self.__name__ = ", ".join(names)

    def __call__(self, agent: Any, context: Any) -> None:
        """Do nothing: the Machine runs them."""


def callback_name(func: Any) -> str:
    """Return what messages call a callback."""
    if isinstance(func, ActionCallback):
        func = func.func
    while isinstance(func, partial):
        func = func.func
    return func if isinstance(func, str) else own_name(func) or type(func).__name__


def is_async(machine: Machine) -> bool:
    """Return whether the callbacks of a Machine are awaited."""
    return any(each.__name__ == "AsyncMachine" for each in type(machine).__mro__)


def is_hierarchical(machine: Machine) -> bool:
    """Return whether the states of a Machine lie inside each other."""
    return any(each.__name__ == "HierarchicalMachine" for each in type(machine).__mro__)


def value_text(value: Any) -> str:
    """Return the text of a state's value, which Machines may have of any kind."""
    if isinstance(value, (list, tuple)):
        return "+".join(map(value_text, value))
    return state_text(value) if isinstance(value, str) else str(getattr(value, "name", value))


def arcs_of(machine: Machine) -> Iterator[tuple[str, Any]]:
    """Yield triggers and transitions, without the ``to_x`` that a Machine adds by itself.

    A Machine that has no others moves by those. A transition from or to a state that the Machine
    does not have never moves anybody.
    """
    every = [
        (trigger, arc)
        for trigger, event in machine.events.items()
        for arcs in event.transitions.values()
        for arc in arcs
        if arc.source in machine.states and (arc.dest is None or arc.dest in machine.states)
    ]
    added = f"to_{machine.model_attribute}_" if machine.model_attribute != "state" else "to_"
    own = [
        (trigger, arc)
        for trigger, arc in every
        if not (machine.auto_transitions and trigger.removeprefix(added) == arc.dest)
    ]
    yield from own or every


def snapshot_of(machine: Machine) -> list[Any]:
    """Return what a definition says of a Machine, to tell whether it has changed since."""
    return [
        [*machine.states],
        *(
            (trigger, arc, arc.source, arc.dest, *arc.conditions, *arc.before, *arc.after)
            for trigger, arc in arcs_of(machine)
        ),
    ]


def definition_of(
    machine: Machine,
    name: str,
    written: Definition[Any] | None,
    timeouts: Mapping[str, int] | None = None,
) -> Definition[Any]:
    """Return a Machine's states and transitions as a definition.

    A final state of a Machine can be left, which one of a definition cannot; such a state counts as
    any other.

    Args:
        machine: The Machine.
        name: Name of the chart.
        written: The definition that it was made from, if there is one; of it the rest is taken.
        timeouts: The time-outs by the texts of states, if there is no such definition.
    """
    values = [each.value for each in machine.states.values()]
    members: dict[str, Any] = dict(zip(machine.states, values, strict=True))
    if not all(map(is_state, values)) or len({*map(type, values)}) > 1:
        texts = [*map(value_text, values)]
        members = dict(zip(machine.states, state_enum(name, texts), strict=True))

    arcs = [*arcs_of(machine)]
    made = [
        Written(
            trigger,
            members[arc.source],
            None if arc.dest is None else members[arc.dest],
            _guard_of(machine, trigger, arc),
            _action_of(arc),
        )
        for trigger, arc in arcs
    ]
    left = {arc.source for _, arc in arcs}
    ends = [members[at] for at, each in machine.states.items() if each.final and at not in left]
    if written is None:
        named = {value_text(each.value): members[at] for at, each in machine.states.items()}
        limits = {named[text]: ticks for text, ticks in (timeouts or {}).items()}
        rest: dict[str, Any] = {"name": name, "timeouts": limits}
    else:
        rest = arguments_of(written)
    rest |= {"states": [*members.values()], "transitions": made, "final_states": ends}
    rest["initial"] = members[machine.initial] if machine.initial else next(iter(members.values()))
    return Definition(**rest)


def _guard_of(machine: Machine, trigger: str, arc: Transition) -> Any:
    if len(arc.conditions) == 1 and type(arc.conditions[0]) is GuardCondition:
        return arc.conditions[0].func
    return Conditions(machine, trigger, arc) if arc.conditions else None


def _action_of(arc: Transition) -> Any:
    callbacks = [*arc.before, *arc.after]
    if len(callbacks) == 1 and type(callbacks[0]) is ActionCallback:
        return callbacks[0].func
    return Callbacks([*map(callback_name, callbacks)]) if callbacks else None


__all__ = [
    "FAILED",
    "PASSED",
    "ActionCallback",
    "Arc",
    "ChartMachine",
    "EventData",
    "GuardCondition",
    "Machine",
    "MachineError",
    "Verdict",
    "arcs_of",
    "build_machine",
    "callback_name",
    "context_of",
    "definition_of",
    "evaluate",
    "is_async",
    "is_hierarchical",
    "is_usual",
    "snapshot_of",
    "value_text",
]
