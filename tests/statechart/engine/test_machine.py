"""The Machine of a chart: what is added to it runs, and both ways to fire leave the same."""

import random
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from transitions import EventData, Machine, MachineError, State
from transitions.core import Condition, Event
from transitions.core import Transition as StockTransition

from prism.agents import StatechartMixin
from prism.errors import DefinitionError
from prism.statechart import State as Composite
from prism.statechart import Statechart, Transition, state_enum
from prism.telemetry import Instrument, instrumented
from tests.statechart.nested.phone import Day, day

Light = state_enum("Light", ["a text", "b", "c", "d"])
A, B, C, D = Light


class Lamp(StatechartMixin):
    """An agent that the engine writes directly."""

    state_type = Light
    agent_id = "x"


def plain_lamp() -> Any:
    return SimpleNamespace(state=A, ticks_in_state=0, state_history=[], agent_id="x")


def text_lamp() -> Any:
    return SimpleNamespace(
        state="a text",
        ticks_in_state=0,
        state_history=deque(maxlen=7),
        max_history_depth=7,
        agent_id="x",
    )


class Lines:
    """A logger that keeps what it is told, details included."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def _keep(self, event: str, **keys: Any) -> None:
        self.lines.append({"event": event, **keys, "exc_info": repr(keys.get("exc_info"))})

    debug = info = warning = error = _keep


def traces(agent: Any) -> list[tuple[Any, ...]]:
    return [
        (each.from_state, each.to_state, each.trigger, each.context) for each in agent.state_history
    ]


def lights(**more: Any) -> Statechart[Any]:
    return Statechart(
        Light,
        [Transition("go", A, B, lambda *_: True, lambda *_: None), Transition("go", B, A)],
        A,
        **more,
    )


def first_arc(chart: Statechart[Any]) -> Any:
    return chart.machine.events["go"].transitions[chart.machine.initial][0]


def test_a_chart_has_a_living_machine_without_models() -> None:
    """It is a Machine with the chart's states, events and initial state, and drives anybody."""
    chart, lamp = lights(), plain_lamp()
    assert isinstance(chart.machine, Machine)
    assert [each.value for each in chart.machine.states.values()] == list(Light)
    assert (list(chart.machine.events), chart.machine.models) == (["go"], [])
    chart.fire(lamp, "go")
    chart.machine.events["go"].trigger(lamp)
    assert chart.machine.models == []
    assert {*vars(lamp)} == {"state", "ticks_in_state", "state_history", "agent_id"}
    nested = Statechart([Composite(A, [B]), C], [Transition("go", A, C)], A)
    with pytest.raises(DefinitionError, match=r"has no Machine, as it has composites"):
        _ = nested.machine


# Changes


def leading(event: Any, target: Any = C) -> Any:
    """Give an event another transition, in a list of the application's own."""
    event.transitions[A.name] = [StockTransition(A.name, target.name)]
    return event


def closed_arc() -> Any:
    """Return a transition of another chart, whose guard is of prism's own kind."""
    return first_arc(Statechart(Light, [Transition("go", A, B, closed)], A))


class Stubborn(StockTransition):
    """A transition that is never made."""

    def execute(self, event_data: EventData) -> bool:
        return False


CHANGES: list[tuple[Any, Any]] = [
    (lambda _machine, arcs: arcs.__setitem__(0, StockTransition(arcs[0].source, C.name)), C),
    (lambda _machine, arcs: arcs.__setitem__(0, Stubborn(arcs[0].source, B.name)), None),
    (lambda machine, _arcs: leading(machine.events["go"]), C),
    (lambda machine, _arcs: machine.events["go"].transitions.pop(A.name), None),
    (lambda machine, _arcs: machine.events.update(go=leading(Event("go", machine))), C),
    (lambda machine, _arcs: machine.events.pop("go"), None),
    (lambda machine, _arcs: machine.remove_transition("go"), None),
    (lambda _machine, arcs: arcs[0].conditions.append(Condition(lambda event: False)), None),
    (lambda _machine, arcs: arcs[0].conditions.extend(closed_arc().conditions), None),
    (lambda _machine, arcs: arcs[0].before.append(lambda event: None), B),
    (lambda machine, arcs: (machine.add_states("E"), setattr(arcs[0], "dest", "E")), "E"),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_changes_of_the_machine_count(
    change: Any, expected: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever is changed about its transitions counts at the next event, by either way.

    An event that has lost its transitions is no mistake.
    """
    for way in range(2):
        chart, lamp = lights(), plain_lamp()
        machine = chart.machine
        lamp.state = C
        assert chart.fire(lamp, "go") is None
        lamp.state = A
        assert [chart.fire(lamp, "go"), chart.fire(lamp, "go")] == [B, A]
        change(machine, machine.events["go"].transitions[machine.initial])
        if way and "go" in machine.events:
            machine.events["go"].trigger(lamp)
        else:
            assert chart.fire(lamp, "go") == expected
        assert lamp.state == (expected or A)
        assert chart.can_be_in(lamp.state)
        machine.add_transition("go", C.name, A.name)
        machine.add_transition("stay", C.name, None)
        lamp = Lamp()
        lamp.state = C
        lamp.ticks_in_state = 4
        assert [chart.fire(lamp, "stay"), lamp.ticks_in_state, chart.fire(lamp, "go")] == [C, 4, A]
    assert not caplog.messages


CLASSES: dict[str, Any] = {
    "exit": lambda machine, make: machine.states.update({A.name: make(State)(A)}),
    "enter": lambda machine, make: machine.states.update({B.name: make(State)(B)}),
    "execute": lambda machine, make: machine.events["go"].transitions.update(
        {A.name: [make(StockTransition)(A.name, B.name)]}
    ),
    "_trigger": lambda machine, make: machine.events.update(
        go=leading(make(Event)("go", machine), B)
    ),
}


@pytest.mark.parametrize("method", CLASSES)
def test_classes_of_the_application_run(method: str) -> None:
    """A state, a transition or an event of a class of its own is run by either way."""
    ran: list[str] = []

    def make(cls: Any) -> Any:
        def noted(self: Any, *args: Any) -> Any:
            ran.append(method)
            return getattr(cls, method)(self, *args)

        return type("Noting", (cls,), {method: noted})

    chart, lamp = lights(), plain_lamp()
    assert [chart.fire(lamp, "go"), chart.fire(lamp, "go")] == [B, A]
    CLASSES[method](chart.machine, make)
    assert (chart.fire(lamp, "go"), ran) == (B, [method])
    lamp.state = A
    chart.machine.events["go"].trigger(lamp)
    assert (lamp.state, ran) == (B, [method] * 2)


@pytest.mark.parametrize("add", ["append", "extend", "insert", "__iadd__", "__setitem__"])
def test_a_hook_that_is_added_later_runs(add: str) -> None:
    """However it is added."""
    chart, lamp, ran = lights(), plain_lamp(), list[Any]()
    chart.fire(lamp, "go")
    more = {"append": [ran.append], "insert": [0, ran.append], "__setitem__": [slice(0)]}
    lists = [] if add in ("append", "insert") else [[ran.append]]
    getattr(chart.machine.after_state_change, add)(*more.get(add, []), *lists)
    chart.fire(lamp, "go")
    assert len(ran) == 1


@pytest.mark.parametrize("is_hook", [True, False])
def test_an_error_that_is_handled_after_the_move_leaves_it_made(
    is_hook: bool, capture: Any, logger: Any
) -> None:
    """By either way: `fire` returns the state, and state, record, log and Instruments agree."""
    made: list[Any] = []
    watching = type("", (Instrument,), {"transition": lambda _, *move: made.append(move[1])})()

    def fails(event: EventData) -> None:
        raise LookupError(event.event.name)

    with instrumented(watching):
        for stock in (True, False):
            chart, lamp = lights(logger=logger), plain_lamp()
            chart.machine.on_exception.append(lambda event: None)
            callbacks = chart.machine.states[B.name].on_enter
            callbacks = chart.machine.after_state_change if is_hook else callbacks
            callbacks.append(fails)
            if stock:
                chart.machine.events["go"].trigger(lamp)
            else:
                assert chart.fire(lamp, "go") is B
            callbacks.clear()
            chart.machine.before_state_change.append(fails)
            assert chart.fire(lamp, "go") is None
            assert (lamp.state, traces(lamp)) == (B, [(A, B, "go", None)])
    assert made == [0, 0]
    logged = [(each["event"], each.get("to_state")) for each in capture.entries]
    assert logged == [("statechart.transition", "b")] * 2


# Both ways


def compare_machines(seed: int) -> None:
    """Compare what 80 events leave behind by fire and by the Machine's own way."""
    make, changes = (Lamp, plain_lamp, text_lamp)[seed % 3], seed % 4 > 0
    first, second = (_driven(seed, make, stock=stock, changes=changes) for stock in (False, True))
    assert first == second, seed


@pytest.mark.parametrize("seed", range(80))
@pytest.mark.sampled(4)
def test_fire_and_the_stock_way_leave_the_same(seed: int) -> None:
    """Agent, history, log and calls are equal over random charts with faults and queued fires.

    Hooks, conditions, transitions, states and settings change at random between events.
    """
    compare_machines(seed)


@pytest.mark.long
@pytest.mark.parametrize("block", range(25))
def test_a_hundred_thousand_events_leave_the_same_by_both_ways(block: int) -> None:
    """As above: 25 times 50 charts of 80 events."""
    for seed in range(100 + 50 * block, 150 + 50 * block):
        compare_machines(seed)


def _driven(seed: int, make: Any, *, stock: bool, changes: bool) -> tuple[Any, ...]:
    """Drive an agent through a random chart; return all that can be seen afterwards."""
    drawn, log, seen = random.Random(seed), Lines(), []
    made: list[Statechart[Any]] = []

    def fires(agent: Any, context: Any) -> None:
        made[0].fire(agent, drawn_trigger, context)

    drawn_trigger = drawn.choice("ef")
    guards = [
        None,
        lambda _, context: seen.append("guard") or context["i"] % 3 > 0,
        lambda *_: 1 / 0,
    ]
    actions = [None, lambda *_: seen.append("action"), lambda *_: 1 / 0, fires]
    chart = Statechart(
        Light,
        [
            *(
                Transition(
                    drawn.choice("ef"),
                    drawn.choice([*Light]),
                    drawn.choice([*Light]),
                    drawn.choice(guards),
                    drawn.choice(actions),
                )
                for _ in range(6)
            ),
            *(Transition(trigger, "*", A, guards[1]) for trigger in "ef"),
        ],
        A,
        logger=log,
        clock=lambda: 1.0,
    )
    made.append(chart)
    agent = make()
    for number in range(80):
        if changes and drawn.random() < 0.3:
            _change(chart.machine, drawn, seen)
        trigger = drawn.choice("efh")
        if trigger not in chart.machine.events:
            continue
        try:
            if stock:
                chart.machine.events[trigger].trigger(agent, {"i": number})
            else:
                chart.fire(agent, trigger, {"i": number})
        except Exception as error:
            seen.append(type(error).__name__)
        seen.append((number, trigger, agent.state, agent.ticks_in_state))
        chart.tick(agent)
    return agent.state, type(agent.state), agent.ticks_in_state, traces(agent), log.lines, seen


def _change(machine: Machine, drawn: random.Random, seen: list[Any]) -> None:
    """Change something about a Machine."""

    def note(name: str) -> Any:
        return lambda event: seen.append((name, event.model.state, event.model.ticks_in_state))

    def even(event: EventData) -> bool:
        return event.args[0]["i"] % 2 == 0

    def ignore(value: bool) -> None:
        machine.ignore_invalid_triggers = value
        for each in machine.states.values():
            each.ignore_invalid_triggers = None

    every = [
        arc
        for event in machine.events.values()
        for arcs in event.transitions.values()
        for arc in arcs
    ]
    names = [each.name for each in Light]
    arc, state = drawn.choice(every), machine.states[drawn.choice(names)]
    hook = drawn.choice(["prepare_event", "before_state_change", "after_state_change"])
    event, dest = drawn.choice([*machine.events]), drawn.choice([*names, None])
    callbacks = drawn.choice([arc.before, arc.after, arc.prepare, state.on_enter, state.on_exit])
    changes = [
        lambda: arc.conditions.append(Condition(even, drawn.random() < 0.5)),
        lambda: arc.conditions.clear(),
        lambda: callbacks.append(note("callback")),
        lambda: callbacks.clear(),
        lambda: setattr(arc, "dest", dest),
        lambda: machine.add_transition(drawn.choice("efh"), state.name, drawn.choice(names)),
        lambda: setattr(machine, hook, drawn.choice([None, note("hook")])),
        lambda: getattr(machine, hook).append(note("hook")),
        lambda: setattr(machine, "on_exception", drawn.choice([None, note("exception")])),
        lambda: ignore(drawn.random() < 0.5),
    ]
    if len(machine.events) > 1:
        changes.append(lambda: machine.remove_transition(event, drawn.choice([state.name, "*"])))
    drawn.choice(changes)()


# Events that do not apply


def test_the_machine_decides_what_an_event_does_that_does_not_apply() -> None:
    """A strict chart raises as the package does, others do nothing; a guard may refuse."""
    strict, easy = lights(strict=True), lights()
    lamp = SimpleNamespace(state=C, agent_id="x")
    for drive in (
        lambda: strict.fire(lamp, "go"),
        lambda: strict.machine.events["go"].trigger(lamp),
    ):
        with pytest.raises(MachineError, match="Can't trigger event go from state"):
            drive()
    nested = Statechart([Composite(A, [B]), C], [Transition("go", A, C)], A, strict=True)
    # an answer that comes too late is no mistake
    assert strict.fire_to(lamp, "go", B) is nested.fire_to(lamp, "go", C) is None
    assert easy.fire(lamp, "go") is None
    easy.machine.states[C.name].ignore_invalid_triggers = False
    with pytest.raises(MachineError):
        easy.fire(lamp, "go")
    refusing = Statechart(Light, [Transition("go", A, B, lambda *_: False)], A, strict=True)
    assert refusing.fire(plain_lamp(), "go") is None


def closed(_agent: Any, _context: Any) -> bool:
    return False


def strays(agent: Any, _context: Any) -> None:
    agent.state = B


def test_a_refused_event_is_logged_with_the_guards_in_its_way(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """At debug level, once, by either way, and whether or not anything reacts to it.

    The package transitions has nothing to say of it.

    An answer names the guards before its target alone; with composites all that refused.
    """
    log = Lines()
    chart = Statechart(Light, [Transition("go", A, B, closed)], A, logger=log)
    lamp = plain_lamp()
    chart.fire(lamp, "go", {"post_id": "p1"})
    chart.machine.events["go"].trigger(lamp, {"post_id": "p1"})
    first, second = log.lines
    assert first == second
    assert (first["event"], first["state"], first["trigger"], first["guards"]) == (
        "statechart.event_refused",
        "a text",
        "go",
        ["closed"],
    )
    lamp.state = C
    chart.fire(lamp, "go")
    chart.machine.events["go"].trigger(lamp)
    assert log.lines[-1] == log.lines[-2]
    assert (log.lines[-1]["reason"], log.lines[-1]["guards"]) == ("no_transition", [])
    assert not caplog.messages
    moves = [Transition("go", A, B, closed), Transition("go", A, C, strays)]
    moves.append(Transition("go", A, A, lambda *_: False))
    flat, nested, hooked = (
        Statechart(states, moves, A, logger=log)
        for states in (Light, [A, B, Composite(D, [C])], Light)
    )
    hooked.machine.prepare_event.append(lambda event: None)
    cases = [(B, ["closed"]), (C, ["strays"]), (D, [])]
    answers = [(chart, A, *case) for chart in (flat, hooked) for case in cases]
    answers += [(nested, A, target, ["closed", "strays", "guard"]) for target in (B, C)]
    checks = [Transition("go", Day.IDLE, Day.FEED, closed)]
    checks.append(Transition("go", Day.FRESH, Day.TIRED, strays))
    answers.append((day(*checks, logger=log), "idle+fresh", "feed+tired", ["closed", "strays"]))
    for chart, state, target, guards in answers:
        lamp.state = state
        assert chart.fire_to(lamp, "go", target) is None
        refused = next(each for each in reversed(log.lines) if "guards" in each)
        assert (refused["state"], refused["guards"]) == (str(state), guards)
        assert refused["reason"] == ("guards" if guards else "no_transition")


def test_what_was_added_to_a_machine_is_refused_in_a_world() -> None:
    """A run binds charts as they were written; a hook or a transition would not run there."""
    for change in (
        lambda machine: machine.add_transition("leap", A.name, C.name),
        lambda machine: machine.after_state_change.append(print),
        lambda machine: machine.states[A.name].on_exit.append(print),
    ):
        chart = lights()
        assert chart.bound("own", None, lambda: 0.0).fire(Lamp(), "go") is B
        change(chart.machine)
        with pytest.raises(DefinitionError, match="has a changed Machine, which no world"):
            chart.bound("own", None, lambda: 0.0)
