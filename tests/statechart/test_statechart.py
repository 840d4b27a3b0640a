"""The engine: firing, asking, ticking, adopting."""

import asyncio
import copy
import logging
import pickle
import re
from collections import deque
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pydantic
import pytest

from prism.agents._mixin import StatechartMixin
from prism.errors import AgentError, DefinitionError, ReasonerError, RunawayError, UnknownStateError
from prism.statechart._engine.interpreter import MOST_QUEUED_FIRES
from prism.statechart.social import social_media_chart
from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState, state_enum
from prism.statechart.transitions import Transition

S = AgentState
NEVER_CAUGHT = [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]


@dataclass
class Post:
    post_id: str


class Slots:
    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = S.IDLE


@dataclass
class Record:
    state: S = S.IDLE
    ticks_in_state: int = 3


@dataclass(slots=True)
class SlotRecord:
    state: S = S.IDLE
    ticks_in_state: int = 3


class StateOnly:
    def __init__(self, **more: Any) -> None:
        self.state = S.IDLE
        vars(self).update(more)


class Text:
    def __init__(self) -> None:
        self.state = "idle"


class Model(pydantic.BaseModel):
    state: S = S.IDLE
    ticks_in_state: int = 3


class OwnAgent:
    """Keeps its own books, as an agent class written before this library may."""

    def __init__(self) -> None:
        self.state: Any = S.IDLE
        self.ticks_in_state = 3
        self.state_history: list[Any] = []
        self.moves: list[Any] = []

    def transition_to(self, new_state: S, trigger: str, context: Any = None) -> None:
        self.moves.append((self.state, new_state, trigger, context))
        self.state = new_state


class Hooked(StateOnly):
    """Fires again as soon as its state is written."""

    chart: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if self.chart is not None:
            self.chart.fire(self, "go")


class Chooser:
    """A reasoner that does what it is told, and keeps what it was asked."""

    def __init__(self, choice: Any, *, meanwhile: Any = None) -> None:
        self.choice, self.meanwhile, self.asked = choice, meanwhile, []

    async def decide(self, *question: Any) -> Any:
        self.asked.append(question)
        await asyncio.sleep(0)
        if self.meanwhile is not None:
            self.meanwhile()
        return self.choice


class Patient:
    """A reasoner that answers when it is let."""

    def __init__(self, choice: Any) -> None:
        self.choice, self.asked, self.let = choice, asyncio.Event(), asyncio.Event()

    async def decide(self, *question: Any) -> Any:
        self.asked.set()
        await self.let.wait()
        return self.choice


def no(agent: Any, context: Any) -> bool:
    return False


def broken(agent: Any, context: Any) -> Any:
    raise LookupError("no such post")


def chart_of(*moves: Transition[S], **options: Any) -> Statechart[S]:
    return Statechart(S, moves, S.IDLE, **options)


def snapshot(agent: Any) -> tuple[Any, ...]:
    """Return all that a move could change."""
    return agent.state, agent.ticks_in_state, list(agent.state_history)


def moves_of(agent: Any) -> list[tuple[str, str, str]]:
    return [
        (entry.from_state.value, entry.trigger, entry.to_state.value)
        for entry in agent.state_history
    ]


# Construction


def test_chart_gives_back_its_definition() -> None:
    """A chart shows its states as a set, its transitions in order with wildcards expanded, and its settings."""
    chart = Statechart(
        {S.RESTING, S.IDLE},
        [Transition("go", S.IDLE, S.RESTING), Transition("stop", "*", S.IDLE)],
        S.IDLE,
        name="small",
        decision_states=[S.IDLE],
        timeouts={S.RESTING: 2},
    )
    assert chart.states == {S.IDLE, S.RESTING}
    assert [str(move) for move in chart.transitions] == [
        "idle --go--> resting",
        "idle --stop--> idle",
        "resting --stop--> idle",
    ]
    assert (chart.initial, chart.name, chart.decision_states) == (S.IDLE, "small", {S.IDLE})
    assert chart.timeouts == {S.RESTING: 2}
    assert repr(chart) == "Statechart('small', 2 states, 3 transitions, initial='idle')"


def test_bad_definition_lists_everything() -> None:
    """A chart that is not well defined is one ValueError that names the chart and every offender."""
    message = "chart 'c': .*target.*; initial state.*; decision state.*; timeouts"
    with pytest.raises(ValueError, match=message) as caught:
        Statechart(
            [S.IDLE],
            [Transition("go", S.IDLE, S.RESTING)],
            S.RESTING,
            name="c",
            decision_states=[S.RESTING],
            timeouts={S.IDLE: 0},
        )
    assert isinstance(caught.value, DefinitionError)


def test_initial_state_must_be_among_the_states() -> None:
    """An initial state outside the chart is a ValueError that lists the states to use."""
    with pytest.raises(
        ValueError, match=r"initial state .* is not among the states \(idle, scrolling\)"
    ):
        Statechart([S.SCROLLING, S.IDLE], [], S.RESTING)


def test_settings_cannot_be_changed_through_their_source() -> None:
    """Changing what a chart was made from does not change the chart."""
    moves, timeouts = [Transition("go", S.IDLE, S.RESTING)], {S.IDLE: 2}
    chart = Statechart(S, moves, S.IDLE, timeouts=timeouts)
    moves.clear()
    timeouts.clear()
    assert len(chart.transitions) == 1
    assert dict(chart.timeouts) == {S.IDLE: 2}
    with pytest.raises(TypeError):
        chart.timeouts[S.IDLE] = 3  # type: ignore[index]


def test_a_chart_serves_any_str_enum() -> None:
    """A chart runs over an enum made at run time, whatever its states are called."""
    mood = state_enum("Mood", ["calm", "mro", "*"])
    calm, mro, star = mood
    moves = [Transition("on", calm, mro), Transition("on", mro, star), Transition("off", "*", calm)]
    chart = Statechart(mood, moves, calm)
    agent = SimpleNamespace(state=calm)
    assert [chart.fire(agent, trigger) for trigger in ("on", "on", "on", "off")] == [
        mro,
        star,
        None,
        calm,
    ]


# Choosing a transition


@pytest.mark.parametrize(
    ("guards", "expected"),
    [
        ([True, True], S.SCROLLING),
        ([False, True], S.RESTING),
        ([False, False], None),
        (["yes", True], S.SCROLLING),
        ([[], True], S.RESTING),
        ([[0], False], S.SCROLLING),
        ([0.0, 1], S.RESTING),
        ([None, "x"], S.RESTING),
    ],
)
@pytest.mark.parametrize("times", [1, 2])
def test_first_truthy_guard_wins(
    agent: Any, guards: list[Any], expected: S | None, times: int
) -> None:
    """Candidates are tried in definition order, and the first with a truthy guard makes the move."""
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, lambda _agent, given: given[0]),
        Transition("go", S.IDLE, S.RESTING, lambda _agent, given: given[1]),
    )
    for _ in range(times):
        agent.state = S.IDLE
        assert chart.fire(agent, "go", guards) is expected
        assert agent.state is (expected or S.IDLE)


def test_later_guards_are_not_evaluated(agent: Any) -> None:
    """Once a guard has passed, no later one is called."""
    called: list[str] = []
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, lambda *_: called.append("first") or True),
        Transition("go", S.IDLE, S.RESTING, lambda *_: called.append("second") or True),
    )
    chart.fire(agent, "go")
    assert called == ["first"]


def test_guards_and_actions_get_agent_and_context(agent: Any) -> None:
    """Guards and actions are called with the agent and the very object given as context."""
    seen: list[Any] = []

    def note(*given: Any) -> bool:
        seen.append(given)
        return True

    chart = chart_of(Transition("go", S.IDLE, S.RESTING, note, note))
    post = Post("p1")
    chart.fire(agent, "go", post)
    assert all(given[0] is agent and given[1] is post for given in seen)
    assert len(seen) == 2


def test_wildcard_applies_in_every_state(agent: Any) -> None:
    """A wildcard transition fires from every state, and stands at its place in the definition order."""
    chart = chart_of(
        Transition("stop", S.COMPOSING, S.RESTING), Transition("stop", "*", S.SCROLLING)
    )
    for state in S:
        agent.state = state
        assert chart.fire(agent, "stop") is (S.RESTING if state is S.COMPOSING else S.SCROLLING)


@pytest.mark.parametrize("trigger", ["nonsense", "", "on", None, ["go"]])
def test_unknown_trigger_changes_nothing(agent: Any, trigger: Any) -> None:
    """An event that the state does not react to gives None and changes nothing."""
    chart = chart_of(Transition("go", S.IDLE, S.RESTING), Transition("on", S.RESTING, S.IDLE))
    agent.ticks_in_state = 4
    before = snapshot(agent)
    assert chart.fire(agent, trigger) is None
    assert snapshot(agent) == before


def via_afire(chart: Any, agent: Any) -> Any:
    return asyncio.run(chart.afire(agent, "go", reasoner=Chooser(None)))


@pytest.mark.parametrize(
    "drive",
    [
        lambda chart, agent: chart.fire(agent, "go"),
        lambda chart, agent: chart.fire_to(agent, "go", S.RESTING),
        lambda chart, agent: chart.enabled_targets(agent, "go"),
        lambda chart, agent: chart.tick(agent),
        via_afire,
    ],
)
@pytest.mark.parametrize("state", ["flying", S.COMPOSING, None, ["idle"]])
def test_unknown_state_is_an_error(drive: Any, state: Any) -> None:
    """An agent in a state outside the chart is a ValueError that lists the states to use, and nothing has changed."""
    chart = Statechart([S.IDLE, S.RESTING], [Transition("go", S.IDLE, S.RESTING)], S.IDLE, name="c")
    agent = SimpleNamespace(state=state, agent_id="a1", ticks_in_state=1)
    message = re.escape(
        f"agent 'a1' is in state {state!r}, which is not in chart 'c': use one of idle, resting"
    )
    with pytest.raises(ValueError, match=message) as caught:
        drive(chart, agent)
    assert isinstance(caught.value, UnknownStateError)
    assert (agent.state, agent.ticks_in_state) == (state, 1)


def test_adopt_refuses_an_unknown_state() -> None:
    """An object in a state outside the chart cannot be adopted, and the message lists the states to use."""
    with pytest.raises(
        UnknownStateError, match=r"in state 'flying', which is not in chart .* use one of idle"
    ):
        chart_of().adopt(SimpleNamespace(state="flying"))


@pytest.mark.parametrize("method", ["valid_targets", "valid_triggers"])
def test_asking_about_an_unknown_state_is_an_error(method: str) -> None:
    """A question about a state outside the chart is an UnknownStateError that lists the states."""
    chart = Statechart([S.IDLE], [], S.IDLE)
    with pytest.raises(
        UnknownStateError, match="state 'flying' is not in chart 'statechart': use one of idle"
    ):
        getattr(chart, method)(*("flying", "go")[: 2 if method == "valid_targets" else 1])


@pytest.mark.parametrize("method", ["fire", "fire_to", "enabled_targets", "tick"])
def test_an_object_without_state_is_refused(method: str) -> None:
    """An object without a state is a TypeError that names its class and three ways to mend it."""
    chart = chart_of(Transition("go", S.IDLE, S.RESTING))
    agent = SimpleNamespace(ticks_in_state=9)
    arguments = {
        "fire": ["go"],
        "fire_to": ["go", S.RESTING],
        "enabled_targets": ["go"],
        "tick": [],
    }[method]
    message = r"cannot drive 'SimpleNamespace': it has no 'state'; give it one, call chart.adopt\(obj\), or derive"
    with pytest.raises(TypeError, match=message) as caught:
        getattr(chart, method)(agent, *arguments)
    assert isinstance(caught.value, AgentError)


# Committing a transition


def test_a_move_is_committed_whole(agent: Any) -> None:
    """A move sets the state, resets the ticks, appends one record with the context, and returns the state."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), clock=lambda: 1769767200.0)
    agent.ticks_in_state = 4
    assert chart.fire(agent, "go", {"post_id": "p1"}) is S.SCROLLING
    assert (agent.state, agent.ticks_in_state) == (S.SCROLLING, 0)
    (entry,) = agent.state_history
    assert entry.to_dict() == {
        "from_state": "idle",
        "to_state": "scrolling",
        "trigger": "go",
        "timestamp": "2026-01-30T10:00:00Z",
        "context": {"post_id": "p1"},
    }


def test_the_object_given_as_context_is_not_kept(agent: Any) -> None:
    """A post given as context is recorded by its id only."""
    chart_of(Transition("go", S.IDLE, S.SCROLLING)).fire(agent, "go", Post("p1"))
    assert agent.state_history[0].context == {"post_id": "p1"}


def test_the_action_runs_before_the_commit(agent: Any) -> None:
    """An action sees the agent in the source state, with its ticks and without the new record."""
    seen: list[Any] = []
    chart = chart_of(
        Transition(
            "go", S.IDLE, S.SCROLLING, action=lambda agent, _post: seen.append(snapshot(agent))
        )
    )
    agent.ticks_in_state = 4
    chart.fire(agent, "go")
    assert seen == [(S.IDLE, 4, [])]
    assert agent.state is S.SCROLLING


def test_assigning_the_returned_state_changes_nothing(agent: Any) -> None:
    """A caller that sets agent.state to the returned state, as the contract shows, records nothing twice."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING))
    state = chart.fire(agent, "go")
    before = snapshot(agent)
    agent.state = state
    assert snapshot(agent) == before
    assert len(agent.state_history) == 1


def test_history_is_pruned_first_in_first_out(agent: Any) -> None:
    """The history is a deque that holds the last max_history_depth moves."""
    agent.max_history_depth = 3
    chart = chart_of(Transition("go", S.IDLE, S.RESTING), Transition("go", S.RESTING, S.IDLE))
    for number in range(5):
        chart.fire(agent, "go", {"number": number})
    assert isinstance(agent.state_history, deque)
    assert [entry.context["number"] for entry in agent.state_history] == [2, 3, 4]


def test_a_list_history_is_pruned_too() -> None:
    """A plain list of an agent's own is kept within its depth, oldest entries first to go."""
    agent = SimpleNamespace(state=S.IDLE, state_history=[], max_history_depth=2)
    chart = chart_of(Transition("go", S.IDLE, S.RESTING), Transition("go", S.RESTING, S.IDLE))
    for number in range(4):
        chart.fire(agent, "go", {"number": number})
    assert [entry.context["number"] for entry in agent.state_history] == [2, 3]


@pytest.mark.parametrize("with_action", [True, False])
def test_a_self_transition_only_runs_its_action(
    agent: Any, with_action: bool, events: list[Any]
) -> None:
    """A self-transition returns the state and runs its action, but records, announces and resets nothing."""
    ran: list[Any] = []
    action = (lambda *_: ran.append(1)) if with_action else None
    chart = chart_of(
        Transition("again", S.IDLE, S.IDLE, action=action), Transition("go", S.IDLE, S.RESTING)
    )
    chart.fire(type(agent)(), "go")
    events.clear()
    agent.ticks_in_state = 4
    for _ in range(2):
        assert chart.fire(agent, "again") is S.IDLE
    assert len(ran) == 2 * with_action
    assert snapshot(agent) == (S.IDLE, 4, [])
    assert events == []


# Faults


FAULTS = pytest.mark.parametrize(
    ("move", "event", "state"),
    [
        (Transition("go", S.IDLE, S.SCROLLING, guard=broken), "statechart.guard_failed", S.IDLE),
        (
            Transition("go", S.IDLE, S.SCROLLING, action=broken),
            "statechart.action_failed",
            S.SCROLLING,
        ),
    ],
)


@FAULTS
def test_a_fault_is_logged_by_configured_structlog(
    agent: Any, move: Any, event: str, state: S, events: list[Any]
) -> None:
    """A fault is logged once with the exception and the place, whatever the agent does next."""
    chart_of(move, name="c").fire(agent, "go")
    (entry,) = [entry for entry in events if entry["log_level"] == "error"]
    assert isinstance(entry.pop("exc_info"), LookupError)
    assert entry == {
        "event": event,
        "log_level": "error",
        "error": "LookupError: no such post",
        "chart": "c",
        "agent_id": "a1",
        "from_state": "idle",
        "to_state": "scrolling",
        "trigger": "go",
    }
    assert agent.state is state


@FAULTS
def test_a_fault_is_logged_by_the_given_logger(
    agent: Any, move: Any, event: str, state: S, logger: Any, capture: Any
) -> None:
    """A fault goes to the chart's own logger with its traceback."""
    chart_of(move, logger=logger).fire(agent, "go")
    entry = capture.entries[0]
    assert entry["event"] == event
    assert entry["exc_info"].__traceback__.tb_next.tb_frame.f_code.co_name == "broken"


@FAULTS
def test_a_fault_is_logged_by_standard_logging(
    agent: Any, move: Any, event: str, state: S, caplog: pytest.LogCaptureFixture
) -> None:
    """Without structlog a fault reaches the logger prism.statechart with its traceback."""
    chart_of(move).fire(agent, "go")
    (entry,) = caplog.records
    assert (entry.name, entry.levelno) == ("prism.statechart", logging.ERROR)
    assert event in caplog.text
    assert "in broken" in caplog.text


@FAULTS
def test_a_fault_propagates_in_a_strict_chart(agent: Any, move: Any, event: str, state: S) -> None:
    """In a strict chart the exception propagates and nothing has changed."""
    chart = chart_of(move, Transition("on", S.IDLE, S.RESTING), strict=True)
    agent.ticks_in_state = 4
    before = snapshot(agent)
    with pytest.raises(LookupError, match="no such post"):
        chart.fire(agent, "go")
    assert snapshot(agent) == before
    assert chart.fire(agent, "on") is S.RESTING


def test_a_raising_guard_counts_as_false(agent: Any) -> None:
    """After a guard that raised the next candidate is tried."""
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, broken), Transition("go", S.IDLE, S.RESTING)
    )
    assert chart.fire(agent, "go") is S.RESTING


def test_a_result_that_has_no_truth_value_counts_as_false(
    agent: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A guard whose result raises when its truth is asked is a guard that raised."""

    class Unclear:
        def __bool__(self) -> bool:
            raise ValueError("ambiguous")

    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING, lambda *_: Unclear()))
    assert chart.fire(agent, "go") is None
    assert chart.enabled_targets(agent, "go") == []
    assert caplog.text.count("ValueError: ambiguous") == 2


@pytest.mark.parametrize("error", NEVER_CAUGHT)
@pytest.mark.parametrize("where", ["guard", "action"])
@pytest.mark.parametrize("strict", [True, False])
def test_what_must_stop_the_program_always_propagates(
    agent: Any, error: Any, where: str, strict: bool
) -> None:
    """Interrupts, exits and cancellations propagate from guards and actions, log nothing, and change nothing."""

    def stop(agent: Any, context: Any) -> Any:
        raise error

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, **{where: stop}),
        Transition("on", S.IDLE, S.RESTING),
        strict=strict,
    )
    agent.ticks_in_state = 4
    before = snapshot(agent)
    with pytest.raises(error):
        chart.fire(agent, "go")
    assert snapshot(agent) == before
    assert chart.fire(agent, "on") is S.RESTING


@pytest.mark.parametrize("error", NEVER_CAUGHT)
def test_what_must_stop_the_program_propagates_from_questions_too(agent: Any, error: Any) -> None:
    """Interrupts, exits and cancellations propagate from guards that are asked without firing."""

    def stop(agent: Any, context: Any) -> Any:
        raise error

    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING, stop))
    with pytest.raises(error):
        chart.enabled_targets(agent, "go")
    with pytest.raises(error):
        chart.fire_to(agent, "go", S.SCROLLING)


# Run to completion


def test_a_fire_inside_an_action_is_queued(agent: Any) -> None:
    """A fire from inside an action gives None, runs after the commit, and the outer fire gives the final state."""
    seen: list[Any] = []

    def go_on(agent: Any, context: Any) -> None:
        seen.append(chart.fire(agent, "on", {"post_id": "p2"}))
        seen.append(agent.state)

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=go_on),
        Transition("on", S.SCROLLING, S.RESTING),
    )
    assert chart.fire(agent, "go", {"post_id": "p1"}) is S.RESTING
    assert seen == [None, S.IDLE]
    assert moves_of(agent) == [("idle", "go", "scrolling"), ("scrolling", "on", "resting")]
    assert [entry.context for entry in agent.state_history] == [
        {"post_id": "p1"},
        {"post_id": "p2"},
    ]


def test_queued_fires_run_in_order(agent: Any) -> None:
    """Fires that actions queue run first in, first out, and those that no longer apply are dropped."""

    def fire_three(agent: Any, context: Any) -> None:
        for trigger in ("on", "nonsense", "on"):
            chart.fire(agent, trigger)

    def fire_last(agent: Any, context: Any) -> None:
        chart.fire(agent, "last")

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=fire_three),
        Transition("on", S.SCROLLING, S.EVALUATING, action=fire_last),
        Transition("on", S.EVALUATING, S.COMPOSING),
        Transition("last", S.EVALUATING, S.IDLE),
        Transition("last", S.COMPOSING, S.RESTING),
    )
    assert chart.fire(agent, "go") is S.RESTING
    assert [trigger for _, trigger, _ in moves_of(agent)] == ["go", "on", "on", "last"]


def test_assigning_after_a_chain_changes_nothing(agent: Any) -> None:
    """The state returned after a chain is the agent's own, so assigning it changes and records nothing."""
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=lambda agent, _post: chart.fire(agent, "on")),
        Transition("on", S.SCROLLING, S.RESTING),
    )
    agent.state = chart.fire(agent, "go")
    assert agent.state is S.RESTING
    assert len(agent.state_history) == 2


def test_a_targeted_fire_inside_an_action_is_queued(agent: Any) -> None:
    """fire_to from inside an action waits for the commit too, and its guards are evaluated then."""
    seen: list[Any] = []
    chart = chart_of(
        Transition(
            "go",
            S.IDLE,
            S.SCROLLING,
            action=lambda agent, _post: seen.append(chart.fire_to(agent, "on", S.RESTING)),
        ),
        Transition("on", S.SCROLLING, S.COMPOSING),
        Transition(
            "on", S.SCROLLING, S.RESTING, guard=lambda agent, _post: agent.state is S.SCROLLING
        ),
    )
    assert chart.fire(agent, "go") is S.RESTING
    assert seen == [None]
    assert chart.fire(agent, "nonsense") is None


@pytest.mark.parametrize("decision_states", [(), (S.IDLE,)])
def test_an_afire_stepped_inside_an_action_is_queued(agent: Any, decision_states: Any) -> None:
    """An afire that starts inside an action asks nobody and is queued as a plain fire."""
    reasoner = Chooser(S.RESTING)

    def step(agent: Any, context: Any) -> None:
        with pytest.raises(StopIteration):
            chart.afire(agent, "on", reasoner=reasoner).send(None)

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=step),
        Transition("on", "*", S.COMPOSING),
        Transition("on", "*", S.RESTING),
        decision_states=decision_states,
    )
    assert chart.fire(agent, "go") is S.COMPOSING
    assert reasoner.asked == []


def test_code_that_runs_on_assignment_cannot_nest_a_fire() -> None:
    """A class that fires whenever its state is written runs to completion like an action, every time."""
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.RESTING)
    )
    for _ in range(2):
        agent = Hooked()
        agent.__dict__.update(chart=chart, state_history=[])
        chart.fire(agent, "go")
        assert moves_of(agent) == [("idle", "go", "scrolling"), ("scrolling", "go", "resting")]


def test_agents_that_compare_equal_do_not_share_a_queue() -> None:
    """A fire on another agent, even one that compares equal, runs at once inside an action."""
    first, second = Record(), Record()
    states: list[Any] = []

    def is_first(agent: Any, context: Any) -> bool:
        return agent is first

    def fire_second(agent: Any, context: Any) -> None:
        states.append(chart.fire(second, "go"))

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, is_first, fire_second),
        Transition("go", S.IDLE, S.RESTING),
    )
    assert first == second
    assert chart.fire(first, "go") is S.SCROLLING
    assert states == [S.RESTING]


def test_an_endless_chain_is_stopped(agent: Any) -> None:
    """Actions that fire without end are stopped by an error that names chart, agent, trigger and mend."""

    def again(agent: Any, context: Any) -> None:
        chart.fire(agent, "go")

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=again),
        Transition("go", S.SCROLLING, S.IDLE, action=again),
        Transition("stop", "*", S.RESTING),
        name="c",
    )
    with pytest.raises(
        RunawayError,
        match=r"chart 'c': .* agent 'a1' fired 1000 .* 'go': let an action end the chain",
    ):
        chart.fire(agent, "go")
    assert chart.fire(agent, "stop") is S.RESTING
    assert chart.fire(agent, "stop") is S.RESTING


def test_a_chain_of_the_greatest_length_is_let_through(agent: Any) -> None:
    """As many queued fires as the limit allows run to completion."""
    left = iter(range(MOST_QUEUED_FIRES))

    def fire_while_any_left(agent: Any, context: Any) -> None:
        if next(left, None) is not None:
            chart.fire(agent, "go")

    chart = chart_of(Transition("go", S.IDLE, S.IDLE, action=fire_while_any_left))
    assert chart.fire(agent, "go") is S.IDLE
    assert next(left, None) is None


def test_an_interrupt_inside_a_chain_keeps_what_was_committed(agent: Any) -> None:
    """An exception in a queued fire leaves the moves before it in place and drops the rest of the queue."""

    def stop(agent: Any, context: Any) -> None:
        raise KeyboardInterrupt

    def queue_two(agent: Any, context: Any) -> None:
        chart.fire(agent, "on")
        chart.fire(agent, "later")

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=queue_two),
        Transition("on", S.SCROLLING, S.EVALUATING, action=stop),
        Transition("later", "*", S.COMPOSING),
        Transition("rest", "*", S.RESTING),
    )
    with pytest.raises(KeyboardInterrupt):
        chart.fire(agent, "go")
    assert agent.state is S.SCROLLING
    assert chart.fire(agent, "rest") is S.RESTING
    assert len(agent.state_history) == 2


# What is possible


def test_targets_and_triggers_are_listed_once_in_definition_order(agent: Any) -> None:
    """Targets and triggers are unique and stand in definition order, with guards regarded only where enabled."""
    chart = chart_of(
        Transition("on", S.IDLE, S.RESTING, broken),
        Transition("go", S.IDLE, S.RESTING),
        Transition("go", S.IDLE, S.COMPOSING, no),
        Transition("on", S.IDLE, S.IDLE),
        Transition("go", S.IDLE, S.RESTING, no),
        Transition("go", S.IDLE, S.EVALUATING, lambda _agent, post: post == "p1"),
        Transition("back", S.RESTING, S.IDLE),
        Transition("stop", "*", S.IDLE),
    )
    assert chart.valid_triggers(S.IDLE) == ["on", "go", "stop"]
    assert chart.valid_triggers(S.RESTING) == ["back", "stop"]
    assert chart.valid_targets(S.IDLE, "go") == [S.RESTING, S.COMPOSING, S.EVALUATING]
    assert chart.valid_targets(S.IDLE, "back") == []
    assert chart.enabled_targets(agent, "go", "p1") == [S.RESTING, S.EVALUATING]
    assert chart.enabled_targets(agent, "go") == [S.RESTING]
    assert chart.enabled_targets(agent, "on") == [S.IDLE]
    assert chart.enabled_targets(agent, "nonsense") == []


def test_asking_for_enabled_targets_changes_nothing(agent: Any) -> None:
    """Listing enabled targets runs no action and leaves the agent as it was."""
    chart = chart_of(Transition("go", S.IDLE, S.RESTING, action=broken), strict=True)
    before = snapshot(agent)
    assert chart.enabled_targets(agent, "go") == [S.RESTING]
    assert snapshot(agent) == before


def test_a_strict_chart_shows_the_faults_of_guards_it_lists(agent: Any) -> None:
    """In a strict chart a guard that raises while targets are listed propagates."""
    with pytest.raises(LookupError):
        chart_of(Transition("go", S.IDLE, S.RESTING, broken), strict=True).enabled_targets(
            agent, "go"
        )


def test_check_reports_all_findings() -> None:
    """The chart's own check finds what is wrong with it."""
    chart = chart_of(Transition("go", S.IDLE, S.RESTING), Transition("go", S.IDLE, S.SCROLLING, no))
    kinds = {finding.kind for finding in chart.check()}
    assert kinds == {"unreachable", "no_way_out", "shadowed", "no_timeout"}


# Asking a reasoner


def is_ready(agent: Any, context: Any) -> bool:
    return bool(agent.ready)


def doing(what: str) -> Any:
    """Make an action that notes what was done."""
    return lambda agent, _post: agent.done.append(what)


def decision_chart(**options: Any) -> Statechart[S]:
    return chart_of(
        Transition("decide", S.IDLE, S.COMPOSING, is_ready, doing("compose")),
        Transition("decide", S.IDLE, S.RESTING, None, doing("rest")),
        Transition("decide", S.IDLE, S.COMPOSING, None, doing("compose anyway")),
        Transition("decide", S.SCROLLING, S.COMPOSING),
        Transition("decide", S.SCROLLING, S.RESTING),
        Transition("look", S.IDLE, S.EVALUATING),
        Transition("look", S.EVALUATING, S.IDLE),
        Transition("same", S.IDLE, S.RESTING),
        Transition("same", S.IDLE, S.RESTING),
        **{"decision_states": (S.IDLE,), **options},
    )


@pytest.fixture
def decider(agent: Any) -> Any:
    """Return an agent that has something to decide, and that notes which action ran."""
    agent.ready, agent.done = True, []
    return agent


async def test_the_reasoner_is_asked_where_several_targets_are_enabled(decider: Any) -> None:
    """In a decision state the reasoner is asked once, with the distinct enabled targets and the context."""
    reasoner, post = Chooser(S.RESTING), Post("p1")
    assert await decision_chart().afire(decider, "decide", post, reasoner=reasoner) is S.RESTING
    assert reasoner.asked == [(decider, S.IDLE, "decide", [S.COMPOSING, S.RESTING], post)]
    assert decider.done == ["rest"]
    assert moves_of(decider) == [("idle", "decide", "resting")]
    assert decider.state_history[0].context == {"post_id": "p1"}


@pytest.mark.parametrize(("ready", "action"), [(True, "compose"), (False, "compose anyway")])
async def test_the_chosen_transition_runs_its_own_action(
    decider: Any, ready: bool, action: str
) -> None:
    """The first enabled transition to the chosen target commits, with its own action."""
    decider.ready = ready
    await decision_chart().afire(decider, "decide", reasoner=Chooser(S.COMPOSING))
    assert decider.done == [action]
    assert decider.state is S.COMPOSING


@pytest.mark.parametrize(
    ("state", "trigger", "expected"),
    [
        (S.IDLE, "same", S.RESTING),
        (S.IDLE, "look", S.EVALUATING),
        (S.IDLE, "nonsense", None),
        (S.SCROLLING, "decide", S.COMPOSING),
        (S.RESTING, "decide", None),
    ],
)
async def test_nobody_is_asked_where_nothing_is_open(
    decider: Any, state: S, trigger: str, expected: S | None
) -> None:
    """Outside decision states, and with at most one distinct target, afire is fire and no reasoner is called."""
    twin = copy.deepcopy(decider)
    decider.state = twin.state = state
    reasoner = Chooser(S.RESTING)
    chart = decision_chart(clock=lambda: 0.0)
    assert await chart.afire(decider, trigger, reasoner=reasoner) is expected
    assert chart.fire(twin, trigger) is expected
    assert snapshot(decider) == snapshot(twin)
    assert reasoner.asked == []


async def test_fire_never_asks(decider: Any) -> None:
    """A plain fire takes the first match in a decision state too."""
    assert decision_chart().fire(decider, "decide") is S.COMPOSING


def leave(chart: Any, agent: Any) -> None:
    chart.fire(agent, "look")


def leave_and_come_back(chart: Any, agent: Any) -> None:
    chart.fire(agent, "look")
    chart.fire(agent, "look")


@pytest.mark.parametrize("bare", [True, False])
@pytest.mark.parametrize(
    ("meanwhile", "now_in"), [(leave, S.EVALUATING), (leave_and_come_back, S.IDLE)]
)
async def test_a_stale_answer_is_discarded(
    decider: Any, bare: bool, meanwhile: Any, now_in: S, events: list[Any]
) -> None:
    """The answer for an agent that moved meanwhile, even back again, is discarded with a warning."""
    chart = decision_chart(name="c")
    agent = StateOnly(ready=True, done=[], agent_id="a1") if bare else decider
    chart.fire(type(agent)(), "look")
    reasoner = Chooser(S.COMPOSING, meanwhile=lambda: meanwhile(chart, agent))
    assert await chart.afire(agent, "decide", reasoner=reasoner) is None
    assert agent.state is now_in
    assert agent.done == []
    assert [entry for entry in events if entry["log_level"] == "warning"] == [
        {
            "event": "statechart.answer_discarded",
            "log_level": "warning",
            "chart": "c",
            "agent_id": "a1",
            "trigger": "decide",
            "asked_in": "idle",
            "now_in": now_in.value,
            "chosen": "composing",
        }
    ]


async def test_a_move_that_the_chart_did_not_make_is_noticed_too(decider: Any) -> None:
    """An answer is stale as well if the agent moved and came back by its own transition_to."""

    def wander() -> None:
        decider.transition_to(S.EVALUATING, "look")
        decider.transition_to(S.IDLE, "look")

    reasoner = Chooser(S.COMPOSING, meanwhile=wander)
    assert await decision_chart().afire(decider, "decide", reasoner=reasoner) is None
    assert decider.state is S.IDLE


async def test_moves_of_others_do_not_make_an_answer_stale(decider: Any) -> None:
    """While an agent waits for its answer, others move, and it may pass through self-transitions."""
    chart = decision_chart()
    other = SimpleNamespace(state=S.IDLE, ready=True, done=[])
    reasoner = Chooser(S.RESTING, meanwhile=lambda: leave_and_come_back(chart, other))
    assert await chart.afire(decider, "decide", reasoner=reasoner) is S.RESTING


@pytest.mark.parametrize("bare", [True, False])
async def test_of_two_answers_for_one_agent_the_first_counts(decider: Any, bare: bool) -> None:
    """Of two questions under way for one agent the first answer moves it and makes the other stale."""
    chart = decision_chart()
    agent = StateOnly(ready=True, done=[]) if bare else decider
    slow, quick = Patient(S.COMPOSING), Patient(S.RESTING)
    tasks = [
        asyncio.create_task(chart.afire(agent, "decide", reasoner=reasoner))
        for reasoner in (slow, quick)
    ]
    await asyncio.gather(slow.asked.wait(), quick.asked.wait())
    quick.let.set()
    assert await tasks[1] is S.RESTING
    slow.let.set()
    assert await tasks[0] is None
    assert agent.done == ["rest"]


async def test_a_failed_question_does_not_make_another_stale(decider: Any) -> None:
    """Cancelling one of two questions for an agent leaves the other in force."""
    chart = decision_chart()
    first, second = Patient(S.COMPOSING), Patient(S.RESTING)
    tasks = [
        asyncio.create_task(chart.afire(decider, "decide", reasoner=reasoner))
        for reasoner in (first, second)
    ]
    await asyncio.gather(first.asked.wait(), second.asked.wait())
    tasks[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    second.let.set()
    assert await tasks[1] is S.RESTING


async def test_a_cancelled_afire_leaves_the_agent_as_it_was(decider: Any) -> None:
    """Cancelling afire while the answer is under way changes nothing, and the agent can be fired again."""
    chart, reasoner = decision_chart(), Patient(S.COMPOSING)
    decider.ticks_in_state = 4
    before = snapshot(decider)
    task = asyncio.create_task(chart.afire(decider, "decide", reasoner=reasoner))
    await reasoner.asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert snapshot(decider) == before
    assert chart.fire(decider, "decide") is S.COMPOSING


@pytest.mark.parametrize("answer", [S.SCROLLING, "flying", None, S.EVALUATING])
async def test_an_answer_outside_the_options_is_an_error(decider: Any, answer: Any) -> None:
    """A reasoner that answers outside the options is a ValueError that lists them, and nothing has changed."""
    before = snapshot(decider)
    message = re.escape(
        f"the reasoner chose {answer!r}, which is not among the options (composing, resting)"
    )
    with pytest.raises(ValueError, match=message) as caught:
        await decision_chart().afire(decider, "decide", reasoner=Chooser(answer))
    assert isinstance(caught.value, ReasonerError)
    assert snapshot(decider) == before


async def test_an_answer_may_be_the_plain_text_of_an_option(decider: Any) -> None:
    """A reasoner may answer with an option's text; the agent still gets the member."""
    await decision_chart().afire(decider, "decide", reasoner=Chooser("resting"))
    assert decider.state is S.RESTING


async def test_an_exception_of_the_reasoner_propagates(decider: Any) -> None:
    """What a reasoner raises reaches the caller, and the agent is as it was."""

    class Broken:
        async def decide(self, *question: Any) -> Any:
            raise LookupError("no model")

    before = snapshot(decider)
    with pytest.raises(LookupError):
        await decision_chart().afire(decider, "decide", reasoner=Broken())
    assert snapshot(decider) == before


@pytest.mark.parametrize(
    ("ready", "target", "action"),
    [
        (True, S.COMPOSING, ["compose"]),
        (False, S.COMPOSING, ["compose anyway"]),
        (True, S.RESTING, ["rest"]),
        (True, S.SCROLLING, []),
        (True, S.IDLE, []),
    ],
)
def test_fire_to_makes_only_the_wanted_move(
    decider: Any, ready: bool, target: S, action: list[str]
) -> None:
    """fire_to commits the first enabled transition to the target, and gives None where there is none."""
    decider.ready = ready
    assert decision_chart().fire_to(decider, "decide", target) is (target if action else None)
    assert decider.done == action
    assert len(decider.state_history) == len(action)


def test_fire_to_regards_guards(agent: Any) -> None:
    """fire_to gives None if the guard of the only transition to the target fails."""
    chart = chart_of(Transition("go", S.IDLE, S.RESTING, no), Transition("go", S.IDLE, S.SCROLLING))
    assert chart.fire_to(agent, "go", S.RESTING) is None
    assert agent.state is S.IDLE


# Time


@pytest.mark.parametrize(
    ("timeouts", "threshold", "ticks"), [({}, 3, 4), ({S.IDLE: 2}, 5, 3), ({S.RESTING: 1}, 3, 4)]
)
def test_a_timeout_fires_strictly_after_the_limit(
    agent: Any, timeouts: Any, threshold: int, ticks: int
) -> None:
    """The time-out fires on the first tick above the limit: the chart's for the state, else the agent's."""
    chart = chart_of(Transition("timeout", S.IDLE, S.SCROLLING), timeouts=timeouts)
    agent.timeout_threshold = threshold
    results = [chart.tick(agent, {"tick": number + 1}) for number in range(ticks)]
    assert results == [None] * (ticks - 1) + [S.SCROLLING]
    assert (agent.state, agent.ticks_in_state) == (S.SCROLLING, 0)
    assert agent.state_history[0].context == {"tick": ticks}


def test_a_stuck_agent_recovers(agent: Any) -> None:
    """An agent far over its limit is moved by the next tick."""
    agent.ticks_in_state = 10
    assert chart_of(Transition("timeout", S.IDLE, S.SCROLLING)).tick(agent) is S.SCROLLING


def test_ticks_go_on_without_a_timeout_transition(agent: Any) -> None:
    """In a state that no time-out leaves, ticks are counted and nothing else happens."""
    chart = chart_of(Transition("timeout", S.RESTING, S.IDLE))
    assert [chart.tick(agent) for _ in range(8)] == [None] * 8
    assert agent.ticks_in_state == 8


@pytest.mark.parametrize("make", [Record, SlotRecord, Model, OwnAgent])
def test_ticks_are_counted_on_any_object_that_has_them(make: Any) -> None:
    """A tick is counted on every kind of object with ticks; without a limit anywhere there is no time-out."""
    agent = make()
    assert chart_of(Transition("timeout", S.IDLE, S.SCROLLING)).tick(agent) is None
    assert agent.ticks_in_state == 4
    assert (
        chart_of(Transition("timeout", S.IDLE, S.SCROLLING), timeouts={S.IDLE: 4}).tick(agent)
        is S.SCROLLING
    )


def test_an_object_without_ticks_never_times_out() -> None:
    """An object that counts no ticks is left alone."""
    agent = StateOnly()
    assert (
        chart_of(Transition("timeout", S.IDLE, S.SCROLLING), timeouts={S.IDLE: 1}).tick(agent)
        is None
    )
    assert vars(agent) == {"state": S.IDLE}


# Kinds of agents


@pytest.mark.parametrize(
    "make", [Slots, Record, SlotRecord, StateOnly, Text, Model, SimpleNamespace]
)
def test_anything_with_a_state_can_be_driven(make: Any) -> None:
    """Slots, dataclasses, models and plain objects are moved with the fields they have and given no others."""
    agent = make() if make is not SimpleNamespace else make(state=S.IDLE)
    fields = set(dir(agent))
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING),
        Transition("again", S.SCROLLING, S.SCROLLING),
        Transition("go", S.SCROLLING, S.IDLE),
    )
    for expected in (S.SCROLLING, S.IDLE) * 2:
        assert chart.fire(agent, "go") is expected
        assert agent.state is expected
        assert getattr(agent, "ticks_in_state", 0) == 0
    assert set(dir(agent)) == fields


def test_a_state_given_as_text_is_understood() -> None:
    """An agent whose state is plain text is asked about, ticked and driven like any other, and gets members."""
    chart = chart_of(Transition("again", S.IDLE, S.IDLE), Transition("go", S.IDLE, S.RESTING))
    agent = Text()
    assert chart.enabled_targets(agent, "go") == [S.RESTING]
    assert chart.fire(agent, "again") is S.IDLE
    assert chart.fire_to(agent, "go", S.RESTING) is S.RESTING


def test_own_transition_to_is_the_only_write_path(events: list[Any]) -> None:
    """A class with its own transition_to is written only through it: its ticks and history are its own affair."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.IDLE))
    agent = OwnAgent()
    assert [chart.fire(agent, "go", Post("p1")) for _ in range(2)] == [S.SCROLLING, S.IDLE]
    assert agent.moves == [
        (S.IDLE, S.SCROLLING, "go", {"post_id": "p1"}),
        (S.SCROLLING, S.IDLE, "go", {"post_id": "p1"}),
    ]
    assert (agent.ticks_in_state, agent.state_history) == (3, [])
    assert [entry["ticks_in_state"] for entry in events] == [3, 3]


def test_a_self_transition_does_not_call_transition_to() -> None:
    """A self-transition writes nothing, so an own transition_to is not called for it."""
    agent = OwnAgent()
    assert chart_of(Transition("again", S.IDLE, S.IDLE)).fire(agent, "again") is S.IDLE
    assert agent.moves == []


def test_own_transition_to_must_move() -> None:
    """A transition_to that does not move the agent is an error that names its class and the mend."""

    class Stubborn(OwnAgent):
        def transition_to(self, new_state: S, trigger: str, context: Any = None) -> None:
            """Stay."""

    with pytest.raises(
        AgentError, match=r"Stubborn.transition_to left the agent in 'idle' .* must set self.state"
    ):
        chart_of(Transition("go", S.IDLE, S.SCROLLING)).fire(Stubborn(), "go")


def test_one_chart_serves_many_agents() -> None:
    """Agents of several classes that share a chart do not affect each other."""
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.RESTING)
    )
    agents: list[Any] = [
        make() for make in (Slots, Record, Model, OwnAgent, Text) for _ in range(3)
    ]
    for number, agent in enumerate(agents):
        for _ in range(number % 3):
            chart.fire(agent, "go")
    assert [agent.state for agent in agents] == [S.IDLE, S.SCROLLING, S.RESTING] * 5


def test_adopt_adds_what_is_missing() -> None:
    """An adopted object is the same object with all fields of an agent, in the chart's initial state."""
    agent = SimpleNamespace(name="x", timeout_threshold=9)
    chart = Statechart(S, [Transition("go", S.RESTING, S.IDLE)], S.RESTING)
    assert chart.adopt(agent) is agent
    assert (agent.state, agent.ticks_in_state, agent.timeout_threshold, agent.name) == (
        S.RESTING,
        0,
        9,
        "x",
    )
    assert chart.fire(agent, "go") is S.IDLE
    assert moves_of(agent) == [("resting", "go", "idle")]


@pytest.mark.parametrize("state", ["scrolling", S.SCROLLING])
def test_adopt_keeps_the_state_an_object_is_in(state: Any) -> None:
    """An adopted object keeps its state, and one given as text becomes the member."""
    agent = SimpleNamespace(state=state)
    chart_of().adopt(agent)
    assert agent.state is S.SCROLLING


def test_adopt_leaves_a_whole_agent_alone(agent: Any) -> None:
    """Adopting an agent that lacks nothing changes nothing."""
    agent.state = S.RESTING
    before = copy.deepcopy(vars(agent))
    chart_of().adopt(agent)
    assert vars(agent) == before


def test_adopt_refuses_an_object_without_room() -> None:
    """An object whose class takes no fields is refused with the fields and the mend in the message."""
    with pytest.raises(
        AgentError, match=r"Slots has no room for engagement_threshold, .*: declare these fields"
    ):
        chart_of().adopt(Slots())


class Patched(StatechartMixin):
    """Keeps its ticks itself, as a class attribute that instances shadow."""

    ticks_in_state = 0


def test_a_mixin_class_with_a_field_of_its_own_is_written_whole() -> None:
    """A class that adds the mixin but keeps one field itself has that field written like the others."""
    agent: Any = Patched()
    agent.ticks_in_state = 4
    assert chart_of(Transition("go", S.IDLE, S.SCROLLING)).fire(agent, "go") is S.SCROLLING
    assert agent.ticks_in_state == 0
    assert moves_of(agent) == [("idle", "go", "scrolling")]


# The log


def test_every_move_is_one_event(agent: Any, events: list[Any]) -> None:
    """Each move, also each of a chain, is announced by one event with its dwell time and identified context."""
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING),
        Transition(
            "on", S.SCROLLING, S.EVALUATING, action=lambda agent, _post: chart.fire(agent, "back")
        ),
        Transition("back", S.EVALUATING, S.IDLE),
        name="c",
    )
    agent.ticks_in_state = 4
    for trigger in ("go", "nonsense", "on"):
        chart.fire(agent, trigger, Post("p1"))
    common = {"event": "statechart.transition", "log_level": "info", "chart": "c", "agent_id": "a1"}
    moves = [
        ("idle", "scrolling", "go", 4),
        ("scrolling", "evaluating", "on", 0),
        ("evaluating", "idle", "back", 0),
    ]
    assert events == [
        {
            **common,
            "from_state": source,
            "to_state": target,
            "trigger": trigger,
            "ticks_in_state": dwell,
            "context": None if trigger == "back" else {"post_id": "p1"},
        }
        for source, target, trigger, dwell in moves
    ]


@pytest.mark.parametrize("make", [Slots, Record, Model, OwnAgent, Text])
def test_moves_of_every_kind_of_agent_are_announced(make: Any, events: list[Any]) -> None:
    """Whatever an agent is made of, each of its moves is one event in plain texts."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.IDLE))
    agent = make()
    for _ in range(3):
        chart.fire(agent, "go")
    assert [(entry["from_state"], entry["to_state"]) for entry in events] == [
        ("idle", "scrolling"),
        ("scrolling", "idle"),
        ("idle", "scrolling"),
    ]
    assert all(type(entry["to_state"]) is str for entry in events)


def test_a_given_logger_hears_moves_without_configuration(
    agent: Any, logger: Any, capture: Any
) -> None:
    """A chart with a logger of its own announces its moves there though structlog is not configured."""
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.IDLE), logger=logger
    )
    chart.fire(agent, "go")
    chart.fire(agent, "go")
    assert [entry["event"] for entry in capture.entries] == ["statechart.transition"] * 2


def test_without_configuration_moves_are_silent(
    agent: Any, capsys: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Moves print nothing and log nothing until the application configures structlog."""
    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING), Transition("go", S.SCROLLING, S.IDLE))
    for _ in range(3):
        chart.fire(agent, "go")
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []


# Copies, and actions that move the agent


def test_a_chart_is_shared_by_copies() -> None:
    """Copying an agent that refers to its chart copies the agent, not the chart."""
    chart = chart_of(Transition("go", S.IDLE, S.RESTING))
    agent = SimpleNamespace(state=S.IDLE, chart=chart)
    assert copy.deepcopy(agent).chart is copy.copy(chart) is chart


def test_a_chart_can_be_pickled() -> None:
    """A pickled chart has the same definition, and moves agents as the first."""
    chart = social_media_chart()
    again = pickle.loads(pickle.dumps(chart))
    assert again.transitions == chart.transitions
    assert (again.states, again.initial, again.name) == (chart.states, chart.initial, chart.name)
    assert (again.timeouts, again.decision_states) == (chart.timeouts, chart.decision_states)
    agent = SimpleNamespace(state=S.COMPOSING, pending_action="reply")
    assert again.fire(agent, "compose_done") is S.ENGAGING_REPLY


def test_history_tells_the_truth_about_a_meddling_action(capture: Any, logger: Any) -> None:
    """An action that moves the agent itself is reported, and the record starts from where it left the agent."""

    def meddle(agent: Any, context: Any) -> None:
        agent.state = S.RESTING

    chart = Statechart(
        S, [Transition("go", S.IDLE, S.SCROLLING, action=meddle)], S.IDLE, logger=logger
    )
    agent = SimpleNamespace(state=S.IDLE, state_history=deque())
    assert chart.fire(agent, "go") is S.SCROLLING
    assert [(record.from_state, record.to_state) for record in agent.state_history] == [
        (S.RESTING, S.SCROLLING)
    ]
    fault = capture.entries[0]
    assert (fault["event"], fault["log_level"]) == ("statechart.action_failed", "error")
    assert "let it fire an event instead" in fault["error"]


@pytest.mark.parametrize("broken_id", [RecursionError, RuntimeError])
def test_a_context_that_cannot_tell_its_id_spoils_no_move(broken_id: type[Exception]) -> None:
    """A context whose identifier raises is recorded by its type; state, ticks and history agree."""

    class Row:
        @property
        def id(self) -> str:
            raise broken_id("no session")

    agent = SimpleNamespace(state=S.IDLE, ticks_in_state=4, state_history=deque())
    assert chart_of(Transition("go", S.IDLE, S.RESTING)).fire(agent, "go", Row()) is S.RESTING
    assert (agent.ticks_in_state, [record.context for record in agent.state_history]) == (
        0,
        [{"type": "Row"}],
    )


def test_a_logger_of_the_standard_library_is_refused() -> None:
    """A standard library logger, which takes no keys, is refused when the chart is made."""
    with pytest.raises(
        DefinitionError, match="must be a structlog logger, got the standard library's 'mine'"
    ):
        Statechart(S, [], S.IDLE, logger=logging.getLogger("mine"))


def test_a_single_decision_state_is_taken_for_itself() -> None:
    """One decision state may be given without a list around it."""
    assert Statechart(S, [], S.IDLE, decision_states=S.EVALUATING).decision_states == {S.EVALUATING}
