"""An application's own Machine as a chart: it runs as before, and keeps records, ticks, a log."""

import copy
import itertools
import pickle
import random
from collections.abc import Callable
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest
from transitions import EventData, Machine, MachineError, State
from transitions.extensions import GraphMachine, HierarchicalMachine, LockedMachine
from transitions.extensions.asyncio import AsyncMachine
from transitions.extensions.states import Tags, Timeout, add_state_features

from prism.errors import DefinitionError, UnknownStateError
from prism.statechart import Statechart, Transition
from prism.telemetry import Instrument, instrumented


class Phase(Enum):
    """States of an application that are no text."""

    WAITING = 1
    RUNNING = 2


class Model:
    """A model whose callbacks take whatever a Machine hands them, and note their calls."""

    agent_id = "m"

    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.ok = True

    def is_ok(self, *_: Any, **__: Any) -> bool:
        return self.ok

    def is_bad(self, *_: Any, **__: Any) -> bool:
        return not self.ok

    def on_enter_b(self, *_: Any, **__: Any) -> None:
        self.seen.append(("enters b", self.state))

    def note(self, *_: Any, **__: Any) -> None:
        self.seen.append(("note", self.state))

    state: str
    back: Callable[..., bool]


def steps_of(records: Any) -> list[tuple[Any, ...]]:
    return [(each.from_state, each.to_state, each.trigger) for each in records]


def moves(model: Any) -> list[tuple[Any, ...]]:
    return steps_of(model.state_history)


def two_states(model: Any = None, cls: type[Machine] = Machine, **more: Any) -> Machine:
    return cls(
        model,
        states=["a", "b"],
        initial="a",
        transitions=[["go", "a", "b"], ["go", "b", "a"]],
        **more,
    )


def everything(model: Model, cls: type[Machine], **more: Any) -> Any:
    """A Machine with about all that one can have."""
    drawn: Any = {"graph_engine": "mermaid"} if cls is GraphMachine else {}
    machine: Any = cls(
        model,
        states=["a", "b", State("c", on_enter="note", on_exit=["note"])],
        initial="a",
        after_state_change="note",
        **drawn,
        **more,
    )
    machine.add_transition(
        *("go", "a", "b"),
        conditions=["is_ok", lambda *_, **__: True],
        unless=["is_bad"],
        prepare="note",
        before="note",
        after="note",
    )
    machine.add_transition("go", "b", "=", after=model.note)
    machine.add_transition("inner", "*", None, after="note")
    machine.add_transition("on", "b", "c", after=lambda *_, **__: model.back())
    machine.add_transition("back", ["b", "c"], "a")
    machine.add_transition("timeout", "*", "a")
    machine.add_ordered_transitions(["a", "b", "c"])
    return machine


EVENTS = ["go", "inner", "on", "back", "next_state", "to_c", "to_a"]


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except MachineError as error:
        return str(error)


@pytest.mark.parametrize("ignores", [False, True])
@pytest.mark.parametrize("sends", [False, True])
@pytest.mark.parametrize("queued", [False, True])
@pytest.mark.parametrize("cls", [Machine, GraphMachine, LockedMachine])
@pytest.mark.sampled(5)
def test_a_machine_behaves_as_before(
    cls: type[Machine], queued: bool, sends: bool, ignores: bool, logger: Any, capture: Any
) -> None:
    """With any settings: results, errors, states, order of callbacks; also by ``chart.fire``."""
    models = [Model(), Model(), Model()]
    options = {"queued": queued, "send_event": sends, "ignore_invalid_triggers": ignores}
    machines = [everything(model, cls, **options) for model in models]
    Statechart.from_machine(machines[1], logger=logger)
    chart = Statechart.from_machine(machines[2])
    drawn = random.Random(3)
    for number in range(300):
        event = drawn.choice(EVENTS)
        for model in models:
            model.ok = number % 5 > 0
        results = [outcome(getattr(model, event), number) for model in models[:2]]
        fired = outcome(chart.fire, models[2], event, number)
        assert results[0] == results[1]
        assert isinstance(fired, str) is bool(results[0]) or queued or fired == results[0]
        assert models[0].state == models[1].state == models[2].state
    assert models[0].seen == models[1].seen == models[2].seen
    records = moves(models[1])
    assert records == moves(models[2])
    assert len(records) == 50
    assert records[-1][1] == models[1].state
    assert all(one[1] == two[0] for one, two in itertools.pairwise(records))
    refused = [each for each in capture.entries if each["event"] == "statechart.event_refused"]
    assert {each["reason"] for each in refused} == {"guards", "no_transition"}


@pytest.mark.parametrize("sends", [False, True])
def test_explain_takes_what_fire_takes(sends: bool, capture: Any, logger: Any) -> None:
    """Conditions get the same arguments, and say what `fire` does; a typo is in the log, too."""
    model = Model()

    def is_light(event: Any = None, *, limit: int = 10) -> bool:
        return bool((event.kwargs.get("limit", 10) if sends else limit) > 5)

    machine = two_states(model, send_event=sends, ignore_invalid_triggers=True)
    machine.add_transition("load", "a", "b", conditions=is_light)
    machine.add_transition("leave", "a", "b", unless=is_light)
    chart = Statechart.from_machine(machine, logger=logger)
    for trigger, limit in itertools.product(("load", "leave"), (3, 30)):
        model.state = "a"
        said = chart.explain(model, trigger, limit=limit)
        enabled = chart.enabled_targets(model, trigger, limit=limit)
        assert [chart.fire(model, trigger, limit=limit)] == (enabled or [None]) == [said.target]
    assert chart.explain(model, "to_a").target == chart.fire(model, "to_a")
    assert chart.fire(model, "laod", limit=3) is None
    assert "did you mean 'load'?" in str(chart.explain(model, "laod", limit=3))
    assert capture.entries[-1]["trigger"] == "laod"


def test_fire_tells_whether_a_queued_machine_has_made_a_transition() -> None:
    """The Machine itself always says that it has made one, and none whose error is handled."""
    model = Model()
    machine = Machine(model, ["a", "b"], "a", queued=True, on_exception="is_ok")
    machine.add_transition("go", "a", "b", conditions="is_ok")
    machine.add_transition("stay", "b", "=")
    machine.add_transition("fail", "b", "a", after=lambda: bool(1 / 0))
    machine.add_transition("linger", "a", "=", after=lambda: bool(1 / 0))
    chart = Statechart.from_machine(machine)
    model.ok = False
    assert chart.fire(model, "go") is None
    model.ok = True
    events = ("go", "stay", "fail", "linger")
    assert [chart.fire(model, each) for each in events] == ["b", "b", "a", "a"]
    pair: Any = [Model(), Model()]
    plain = Machine(pair, ["a", "b"], "a", transitions=[["go", "a", "b"]])
    plain.add_transition("pull", "a", "b", conditions=lambda: not pair[1].go())
    # another model has moved meanwhile
    assert Statechart.from_machine(plain).fire(pair[0], "pull") is None


def test_ticks_and_time_outs() -> None:
    """Ticks are counted in the state, begin anew on entry, and fire the time-out."""
    model = Model()
    machine = everything(model, Machine)
    chart = Statechart.from_machine(machine, timeouts={"b": 2})
    model.to_b()  # type: ignore[attr-defined]
    assert [chart.tick(model) for _ in range(3)] == [None, None, "a"]
    assert moves(model)[-1] == ("b", "a", "timeout")
    chart.tick(model)
    model.go()  # type: ignore[attr-defined]
    chart.tick(model)
    model.go()  # type: ignore[attr-defined]
    assert (model.state, model.ticks_in_state) == ("b", 0)  # type: ignore[attr-defined]
    later = Model()
    machine.add_model(later, initial="b")
    assert [chart.tick(later) for _ in range(3)] == [None, None, "a"]
    with pytest.raises(ValueError, match="nowhere"):
        Statechart.from_machine(two_states(), timeouts={"nowhere": 2}, timeout_trigger="go")
    with pytest.raises(DefinitionError, match="has no event 'timeout': name that of time-outs"):
        Statechart.from_machine(two_states(), timeouts={"a": 2})


def test_what_can_be_asked_of_the_chart() -> None:
    """Explanations, checks, pictures and queries read the Machine as it is now."""
    model = Model()
    machine = everything(model, Machine)
    chart = Statechart.from_machine(machine, name="mine", timeouts={"b": 2})
    assert (chart.name, {*chart.states}, chart.initial) == ("mine", {"a", "b", "c"}, "a")
    assert dict(chart.definition.timeouts) == {"b": 2}
    assert chart.enabled_targets(model, "go") == ["b"]
    model.ok = False
    assert "is_ok" in str(chart.explain(model, "go"))
    assert chart.enabled_targets(model, "go") == []
    assert not chart.check()
    assert chart.valid_targets("a", "inner") == ["a"]
    assert chart.is_in(model, "a")
    assert not chart.is_in(model, "b")
    with pytest.raises(UnknownStateError):
        chart.valid_triggers("nowhere")

    machine.add_state("d")
    machine.add_transition("dig", "a", "d")
    assert "d" in chart.states
    assert "dig" in chart.triggers
    assert chart.valid_targets("a", "dig") == ["d"]
    assert "dig" in f"{chart:mermaid}"
    assert {(each.kind, each.state) for each in chart.check()} == {("no_way_out", "d")}


def test_events_inside_callbacks_are_recorded_in_their_order() -> None:
    """Also what an exception in ``after`` has left changed."""
    model: Any = Model()
    machine = Machine(model, states=["a", "b", "c", "d"], initial="a")
    machine.add_transition("go", "a", "b", after=lambda: model.further())
    machine.add_transition("further", "b", "c")
    machine.add_transition("back", "c", "a", before=lambda: model.to_d())
    machine.add_transition("fail", "a", "b", after=lambda: bool(1 / 0))
    Statechart.from_machine(machine)
    model.go()
    model.back()
    with pytest.raises(ZeroDivisionError):
        model.fail()
    assert ["".join(each[:2]) + " " + each[2] for each in moves(model)] == [
        *("ab go", "bc further", "cd to_d", "da back", "ab fail")
    ]


def test_an_own_attribute_an_enum_and_the_states_of_an_extension(logger: Any, capture: Any) -> None:
    """The state is where the application keeps it, and what it is."""

    @add_state_features(Tags, Timeout)
    class Extended(Machine):
        pass

    model: Any = SimpleNamespace()
    states = [
        {"name": Phase.WAITING, "tags": ["first"]},
        {"name": Phase.RUNNING, "timeout": 5, "on_timeout": lambda: None},
    ]
    machine = Extended(model, states=states, initial=Phase.WAITING, model_attribute="phase")
    machine.add_transition("go", Phase.WAITING, Phase.RUNNING)
    chart = Statechart.from_machine(machine, timeout_trigger="go", logger=logger)
    assert chart.fire(model, "go") is Phase.RUNNING
    assert model.phase is Phase.RUNNING
    assert not hasattr(model, "state")
    assert moves(model) == [(Phase.WAITING, Phase.RUNNING, "go")]
    ends = [capture.entries[0][key] for key in ("from_state", "to_state")]
    assert ends == ["WAITING", "RUNNING"]
    assert chart.is_in(model, Phase.RUNNING)
    assert [str(each) for each in chart.states if each == "RUNNING"] == ["RUNNING"]
    model.to_phase_WAITING()
    assert chart.enabled_targets(model, "go") == [Phase.RUNNING]


def test_a_list_of_the_models_own_stays_its_own() -> None:
    """Be it empty when the Machine is adopted, or emptied later."""
    model: Any = Model()
    model.state_history = []
    chart = Statechart.from_machine(two_states(model))
    model.go()
    model.state_history.append("mine")
    model.go()
    model.state_history.clear()
    assert chart.fire(model, "go") == "b"
    assert (model.state_history, model.ticks_in_state) == ([], 0)
    assert steps_of(chart.history(model)) == [("a", "b", "go"), ("b", "a", "go"), ("a", "b", "go")]


@pytest.mark.parametrize("sends", [False, True])
@pytest.mark.parametrize("again", [lambda it: pickle.loads(pickle.dumps(it)), copy.deepcopy])
def test_a_copy_keeps_its_own_records(again: Any, sends: bool) -> None:
    """By pickle and by deepcopy, with the chart or without."""
    model: Any = Model()
    chart = Statechart.from_machine(two_states(model, send_event=sends))
    model.go()
    assert chart.states == {"a", "b"}
    twin, twins_chart = again((model, chart))
    alone = again(model)
    twin.go()
    alone.go()
    assert moves(model) == [("a", "b", "go")]
    assert moves(twin) == moves(alone) == [("a", "b", "go"), ("b", "a", "go")]
    assert twins_chart.fire(twin, "go") == "b"
    assert [twins_chart.tick(twin) for _ in range(2)] == [None, None]
    assert twins_chart.machine is not chart.machine
    assert twins_chart.states == chart.states


def test_a_refused_event_leaves_nothing_in_the_chart() -> None:
    """A chart does not grow by the events that its Machine refuses."""
    model = Model()
    chart = Statechart.from_machine(two_states(model))
    before = len(pickle.dumps(chart))
    with pytest.raises(AttributeError, match="unheard"):
        chart.fire(model, "unheard")
    assert len(pickle.dumps(chart)) == before


def test_what_an_adopted_machine_does_not_do_is_refused_in_words() -> None:
    """Calls that an adopted Machine does not support raise an error that names them."""
    chart = Statechart.from_machine(two_states())
    for cls in (AsyncMachine, HierarchicalMachine):
        with pytest.raises(DefinitionError, match=f"takes no {cls.__name__}"):
            Statechart.from_machine(two_states(cls=cls))
    for no_machine in (None, Machine, Model()):
        with pytest.raises(DefinitionError, match="takes a Machine of transitions, got"):
            Statechart.from_machine(no_machine)
    for name in ("afire", "begin", "bound", "extended", "fire_to"):
        with pytest.raises(DefinitionError, match="runs your Machine"):
            getattr(chart, name)(Model())
    states = chart.definition.states
    own = Statechart(states, [Transition("go", *states)], chart.initial)
    for machine in (own.machine, chart.machine):
        with pytest.raises(DefinitionError, match="belongs to a chart"):
            Statechart.from_machine(machine)
    with pytest.raises(AttributeError, match="no attribute 'state'"):
        chart.fire(SimpleNamespace(), "go")


class Watching(Instrument):
    """Keeps the numbers of transitions and the outcomes of guards."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.asked: list[Any] = []

    def transition(self, chart: Any, number: Any, *_: Any) -> None:
        self.made.append(chart.transitions[number].trigger)

    def guard(self, _chart: Any, number: Any, _agent: Any, _context: Any, *verdict: Any) -> None:
        self.asked.append((number, *verdict))


def test_instruments_see_what_a_machine_does() -> None:
    """So coverage does; transitions that are added meanwhile are seen, too."""

    def only(event: EventData) -> bool:
        model: Any = event.model
        return bool(model.ok)

    model: Any = Model()
    machine = Machine(model, states=["a", "b"], initial="a", send_event=True)
    machine.add_transition("go", "a", "b", conditions=only)
    machine.add_transition("go", "a", "nowhere", conditions=only)
    machine.add_transition("go", "a", "b", conditions=only)
    machine.add_transition("back", "b", "a")
    Statechart.from_machine(machine)
    watching = Watching()
    with instrumented(watching):
        model.ok = False
        model.go()
        model.ok = True
        model.go()
        machine.add_transition("home", "b", "a")
        model.home()
        model.to_b()
    assert watching.made == ["go", "home"]
    assert watching.asked == [(0, "failed"), (1, "failed"), (0, "passed")]
