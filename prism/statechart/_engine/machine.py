"""The one module that knows the ``transitions`` package: the Machine that a chart runs on.

Guards are its conditions, actions its ``before`` callbacks. A chart observes a Machine, be it its
own or an application's, in two places: where it runs an event (``_process``), and where it sets the
state of an agent (``set_state``). So `Statechart.fire`,
``chart.machine.events[trigger].trigger(agent)`` and whatever an application adds to the Machine
leave the same agent, history and log.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import Enum
from itertools import chain
from types import CoroutineType
from typing import Any, NamedTuple, NoReturn

from transitions import EventData, Machine, MachineError, State
from transitions import Transition as Arc
from transitions.core import Condition, Event

from prism.errors import DefinitionError
from prism.statechart._definition import Definition
from prism.statechart._parts import Guard
from prism.statechart.names import function_name
from prism.statechart.states import state_enum, state_text
from prism.statechart.transitions import Transition, shared_edge
from prism.telemetry.instruments import installed

__all__ = ["Arc", "Event", "EventData", "Machine", "MachineError", "State"]

MACHINE_HOOKS = (
    "prepare_event", "before_state_change", "after_state_change",
    "finalize_event", "on_exception", "on_final",
)  # fmt: skip
"""The lists of callbacks of a Machine itself."""


class Verdict(NamedTuple):
    """The result of a guard: it passed, it failed, or it raised an error."""

    outcome: str
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
    problem = f"the coroutine {result.__qualname__!r}: await it before or after the event"
    raise DefinitionError(f"{who} returned {problem}")


def context_of(event: EventData) -> Any:
    """Return the context of an event: the argument of that name, else the first, else None."""
    if "context" in event.kwargs:
        return event.kwargs["context"]
    return next(iter(event.args), event.kwargs or None)


def is_made(event: EventData) -> bool:
    """Return whether an event has made its transition, whatever failed afterwards."""
    return bool(event.result) or "has_moved" in vars(event)


class Arguments(NamedTuple):
    """What an event of an application's own Machine is triggered with, instead of a context."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class GuardCondition(Condition):
    """A ``guard(agent, context)`` as a condition; one that raises counts as false."""

    def check(self, event_data: EventData) -> bool:
        """Evaluate the guard on the event's agent and context."""
        guard: Any = self.func
        verdict = evaluate(guard, event_data.model, context_of(event_data))
        if installed or verdict.error is not None:
            event_data.machine.chart._report_guard(verdict, event_data)
        return verdict is PASSED


class ActionCallback:
    """An ``action(agent, context)`` as a ``before`` callback; its fault ends no transition."""

    def __init__(self, func: Callable[[Any, Any], object]) -> None:
        self.func = func

    def __call__(self, event_data: EventData) -> None:
        """Run the action."""
        chart = event_data.machine.chart
        edge = chart._edge_of(event_data.transition, event_data.event.name)
        chart._run_action(self.func, event_data.model, edge, context_of(event_data))


# The Machine of a chart, which tells the chart of what `fire` does not look at


def _telling(change: Callable[..., Any]) -> Any:
    """Return a method that adds to a part of a Machine, and tells the Machine."""

    def changing(self: Any, *args: Any) -> Any:
        result = change(self, *args)
        self.machine.notice()
        return result

    return changing


class _Hooks(list[Any]):
    """The callbacks of a Machine at one point, which tell it when there are more of them.

    `Statechart.fire` asks only whether there are any: to look at six lists would take a sixth of
    its time. Where there are no longer any, it is as right, and slower.
    """

    machine: Any

    append = _telling(list.append)
    extend = _telling(list.extend)
    insert = _telling(list.insert)
    __iadd__ = _telling(list.__iadd__)
    __setitem__ = _telling(list.__setitem__)


class _States(OrderedDict[str, State]):
    """The states of a Machine by name, which tell it when there is another."""

    machine: Any

    __setitem__ = _telling(OrderedDict.__setitem__)


_WATCHED: dict[str, Any] = {"states": _States, **{f"_{name}": _Hooks for name in MACHINE_HOOKS}}


class ChartEvent(Event):
    """An event of a chart, whose refusal the chart itself logs.

    Attributes:
        rows: What `Statechart.fire` has read of it, by the states of agents.
    """

    def __init__(self, name: str, machine: Machine) -> None:
        super().__init__(name, machine)
        self.rows: dict[Any, tuple[Any, ...]] = {}

    def read(self, state: Any) -> bool:
        """Read what `Statechart.fire` needs in one state; return whether it is anything new.

        That is the name by which the event has the state's transitions, a copy of their list, each
        with its target, edge and guard, the state, and its member. Where fire does not know a
        class, which may do anything, the copy equals no list, so that the Machine itself runs.
        """
        source = self.machine.values[state]
        listed: Any = self.transitions.get(source.name)
        steps: list[tuple[Any, ...]] = []
        for arc in listed or ():
            end = source if arc.dest is None else self.machine.get_state(arc.dest)
            edge = shared_edge(source.value, end.value, self.name)
            steps.append((arc, arc.dest, end, edge, arc.conditions[:1]))
        parts = (each for arc, _, end, _, guards in steps for each in (arc, end, *guards))
        is_known = {*map(type, (self, source, *parts))} <= {ChartEvent, State, Arc, GuardCondition}
        row = source.name, (listed and [*listed]) if is_known else (), steps, source, source.value
        former, self.rows[state] = self.rows.get(state), row
        return former != row

    def _is_valid_source(self, state: State) -> bool:
        """Return whether a state reacts to the event, without the warning of transitions."""
        if state.name not in self.transitions and self.machine.chart._ignores(state):
            return False
        return super()._is_valid_source(state)


class ChartMachine(Machine):
    """The Machine of a chart, without models: agents are driven, never registered.

    Attributes:
        chart: The chart; None while the Machine is being made.
        values: The states by their values, so by text, too.
    """

    event_cls = ChartEvent
    chart: Any = None
    values: dict[Any, State]

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; the states, and lists of hooks, tell of changes from now on."""
        if (kind := _WATCHED.get(name)) is not None:
            value = kind(value)
            value.machine = self
        super().__setattr__(name, value)
        if kind is not None or name in ("chart", "events"):
            self.notice()

    def notice(self) -> None:
        """Let the chart read anew what has changed."""
        if self.chart is None:
            return
        states = self.states.values()
        # an agent may hold the text of a state whose value is no text
        self.values = {key: each for each in states for key in (each.value, state_text(each.value))}
        for event in self.events.values():
            if isinstance(event, ChartEvent):
                event.rows.clear()
        has_hooks = any(getattr(self, name) for name in MACHINE_HOOKS)
        self.chart._read_machine(has_hooks, self.events, self.values)

    def get_model_state(self, model: Any) -> State:
        """Return the state of an agent, which may hold it as text."""
        value = getattr(model, self.model_attribute)
        return self.values.get(value) or self.get_state(value)

    def get_state(self, state: Any) -> State:
        """Return a state by name, member or text."""
        return self.states.get(state) or self.values.get(state) or super().get_state(state)


def build_machine(definition: Definition[Any]) -> ChartMachine:
    """Make the Machine of a flat chart."""
    ends = definition.final_states
    states = [{"name": state, "final": state in ends} for state in definition.states]
    how: Any = {"name": definition.name, "send_event": True, "auto_transitions": False}
    ignores = not definition.strict
    machine = ChartMachine(None, states, definition.initial, ignore_invalid_triggers=ignores, **how)
    item: Any
    for number, item in enumerate(definition.transitions):
        # past `add_transition`, for which some texts of states and triggers mean something else
        if item.trigger not in machine.events:
            machine.events[item.trigger] = machine.event_cls(item.trigger, machine)
        arc: Any = Arc(item.source.name, item.target.name)
        arc.conditions += [] if item.guard is None else [GuardCondition(item.guard)]
        arc.before += [] if item.action is None else [ActionCallback(item.action)]
        # its place among the chart's transitions
        arc.number = number
        machine.events[item.trigger].add_transition(arc)
    return machine


def passes(machine: Machine, trigger: str, arc: Any, agent: Any, context: Any) -> bool:
    """Return whether the conditions of a transition pass; its ``prepare`` callbacks do not run."""
    state, event = machine.get_state(arc.source), machine.events.get(trigger)
    arguments = context if isinstance(context, Arguments) else Arguments((context,), {})
    data = EventData(state, event, machine, agent, *arguments)
    data.transition = arc
    return all(each.check(data) for each in arc.conditions)


# A Machine as a definition, for pictures, checks and explanations


def callback_name(func: Any) -> str:
    """Return what messages call a condition."""
    return func if isinstance(func, str) else function_name(func) or "guard"


def arcs_of(machine: Machine, asked: str = "") -> list[tuple[str, Any]]:
    """Return triggers and transitions, without the ``to_x`` that a Machine adds by itself.

    A Machine that has no others moves by those. A transition from or to a state that the Machine
    does not have never moves anybody.

    Args:
        machine: The Machine.
        asked: An event whose transitions are not left out.
    """
    ends = {None, *machine.states}
    every = [
        (trigger, arc)
        for trigger, event in machine.events.items()
        for arc in chain(*event.transitions.values())
        if {arc.source, arc.dest} <= ends
    ]
    if not machine.auto_transitions:
        return every
    added = f"to_{machine.model_attribute}_" if machine.model_attribute != "state" else "to_"
    mine = ((on, arc) for on, arc in every if on == asked or on.removeprefix(added) != arc.dest)
    return [*mine] or every


def snapshot_of(machine: Machine) -> list[Any]:
    """Return what may change about a Machine, to tell whether it has."""
    hooks = [[*getattr(machine, name)] for name in MACHINE_HOOKS]
    states = [(name, *each.on_enter, *each.on_exit) for name, each in machine.states.items()]
    arcs = [
        (trigger, arc, arc.source, arc.dest, *arc.conditions, *arc.prepare, *arc.before, *arc.after)
        for trigger, arc in arcs_of(machine)
    ]
    return [hooks, states, arcs]


def definition_of(machine: Machine, rest: Mapping[str, Any], asked: str = "") -> Definition[Any]:
    """Return a Machine's states, transitions and conditions as a definition, without callbacks.

    A final state of a Machine can be left, which one of a definition cannot; such a state counts as
    any other.

    Args:
        machine: The Machine.
        rest: The other arguments of the definition, with states as texts.
        asked: An event that it has, even if the Machine has added it by itself.
    """
    values = [each.value for each in machine.states.values()]
    texts = [value for value in values if isinstance(value, Enum) and isinstance(value, str)]
    if texts != values or len({*map(type, values)}) > 1:
        values = [*state_enum(rest["name"], [*map(state_text, values)])]
    members: dict[str, Any] = dict(zip(machine.states, values, strict=True))
    by_text = {state_text(member): member for member in values}

    transitions, left = [], set[str]()
    for trigger, arc in arcs_of(machine, asked):
        left.add(arc.source)
        ends = members[arc.source], None if arc.dest is None else members[arc.dest]
        action = next((each.func for each in arc.before if type(each) is ActionCallback), None)
        transitions.append(Transition(trigger, *ends, _guard_of(machine, trigger, arc), action))
    final = [at for at, each in machine.states.items() if each.final and at not in left]
    changed: dict[str, Any] = {
        "timeouts": {by_text[state_text(at)]: limit for at, limit in rest["timeouts"].items()},
        "decision_states": [by_text[state_text(at)] for at in rest.get("decision_states", ())],
        "final_states": [members[at] for at in final],
    }
    initial = members[machine.initial or next(iter(members))]
    parts = {"states": values, "transitions": transitions, "initial": initial}
    return Definition(**{**rest, **changed, **parts})


def _guard_of(machine: Machine, trigger: str, arc: Arc) -> Any:
    """Return the conditions of a transition as one guard."""
    conditions: list[Any] = arc.conditions
    if not conditions:
        return None
    if len(conditions) == 1 and type(conditions[0]) is GuardCondition:
        return conditions[0].func

    def guard(agent: Any, context: Any) -> bool:
        return passes(machine, trigger, arc, agent, context)

    names = (("" if each.target else "not ") + callback_name(each.func) for each in conditions)
    guard.__qualname__ = " and ".join(names)
    return guard
