"""One event, one agent: what is chosen, committed, recorded and logged, and what waits."""

import asyncio
import re
import tracemalloc
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from prism.agents import StatechartMixin
from prism.errors import RunawayError, UnknownStateError
from prism.statechart import AgentState, Statechart, Transition, identify
from tests.kit.moves import DRIVES, Post, chart_of, moves_of, snapshot

S = AgentState
NEVER_CAUGHT = [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]


def broken(agent: Any, context: Any) -> Any:
    raise LookupError("no such post")


def test_a_move_is_committed_whole(agent: Any, events: list[Any]) -> None:
    """A transition sets state, ticks and one record, logs one event, and returns the state."""
    seen: list[Any] = []

    def note(*given: Any) -> bool:
        seen.append((*given, snapshot(agent)))
        return True

    chart = chart_of(Transition("go", S.IDLE, S.SCROLLING, note, note), clock=lambda: 1769767200.0)
    agent.ticks_in_state, post = 4, Post("p1")
    assert chart.fire(agent, "go", post) is S.SCROLLING
    assert (agent.state, agent.ticks_in_state) == (S.SCROLLING, 0)
    # guard and action see the agent, the very context, and nothing committed
    assert seen == [(agent, post, (S.IDLE, 4, []))] * 2
    assert seen[0][1] is post
    ends = {"from_state": "idle", "to_state": "scrolling", "trigger": "go"}
    about = {"context": {"post_id": "p1"}}
    (entry,) = agent.state_history
    assert entry.to_dict() == {**ends, **about, "timestamp": "2026-01-30T10:00:00Z"}
    header = {"event": "statechart.transition", "log_level": "info", "chart": "statechart"}
    assert events == [{**header, "agent_id": "a1", **ends, "ticks_in_state": 4, **about}]


@pytest.mark.parametrize("where", ["guard", "action"])
def test_a_record_starts_where_the_applications_code_has_put_the_agent(
    agent: Any, where: str
) -> None:
    """A transition is recorded from the state that it left."""

    def moves(agent: Any, context: Any) -> bool:
        agent.state = S.COMPOSING
        return True

    chart = chart_of(Transition("go", S.IDLE, S.RESTING, **{where: moves}))
    for _ in range(2):
        agent.state = S.IDLE
        assert chart.fire(agent, "go") is S.RESTING
    assert moves_of(agent) == [("composing", "go", "resting")] * 2


def test_a_record_keeps_the_keys_of_its_context(agent: Any) -> None:
    """Whatever they are, and whatever contexts there were before."""
    chart = chart_of(Transition("go", S.IDLE, S.RESTING), Transition("go", S.RESTING, S.IDLE))
    kinds: list[Any] = [{"a": "1", "b": "2"}, {("a", "b"): "x"}, {None: "y"}, {"a": "z"}, None]
    contexts = [each for each in [*kinds, kinds[0]] for _ in range(2)]
    for context in contexts:
        chart.fire(agent, "go", context)
    assert [entry.context for entry in agent.state_history] == [*map(identify, contexts)]


def test_fifty_records_fit_in_ten_kilobytes() -> None:
    """A full history with contexts takes less than the 10 KB that the specification allows."""
    agents = [type("Kept", (StatechartMixin,), {})() for _ in range(100)]
    chart = chart_of(Transition("go", S.IDLE, S.RESTING), Transition("go", S.RESTING, S.IDLE))
    tracemalloc.start()
    try:
        for agent in agents:
            for number in range(50):
                chart.fire(agent, "go", {"post_id": f"post_{number}"})
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / len(agents) < 10_000


@pytest.mark.parametrize("target", [S.IDLE, None])
@pytest.mark.parametrize("with_action", [True, False])
def test_a_self_transition_only_runs_its_action(
    agent: Any, with_action: bool, target: Any, events: list[Any]
) -> None:
    """It returns the state, whose time begins anew unless the transition is internal.

    Nothing is recorded or logged.
    """
    ran: list[Any] = []
    action = (lambda *_: ran.append(1)) if with_action else None
    chart = chart_of(Transition("again", S.IDLE, target, action=action))
    agent.ticks_in_state = 4
    for _ in range(2):
        assert chart.fire(agent, "again") is S.IDLE
    assert len(ran) == 2 * with_action
    assert (snapshot(agent), events) == ((S.IDLE, 0 if target else 4, []), [])


@pytest.mark.parametrize(
    ("timeouts", "threshold", "ticks"), [({}, 3, 4), ({S.IDLE: 2}, 5, 3), ({S.RESTING: 1}, 3, 4)]
)
def test_a_timeout_fires_strictly_after_the_limit(
    agent: Any, timeouts: Any, threshold: int, ticks: int
) -> None:
    """The time-out fires on the first tick above the chart's limit, else the agent's own."""
    chart = chart_of(Transition("timeout", S.IDLE, S.SCROLLING), timeouts=timeouts)
    agent.timeout_threshold = threshold
    results = [chart.tick(agent, {"tick": number + 1}) for number in range(ticks)]
    assert results == [None] * (ticks - 1) + [S.SCROLLING]
    assert (agent.state, agent.ticks_in_state) == (S.SCROLLING, 0)
    assert agent.state_history[0].context == {"tick": ticks}


@pytest.mark.parametrize("drive", ["fire", "fire_to", "enabled_targets", "tick", "afire"])
@pytest.mark.parametrize("state", ["flying", S.COMPOSING, None])
def test_an_unknown_state_is_an_error(drive: str, state: Any) -> None:
    """A state outside the chart is a ValueError that lists the states, and nothing has changed."""
    chart = Statechart([S.IDLE, S.RESTING], [Transition("go", S.IDLE, S.RESTING)], S.IDLE, name="c")
    agent = SimpleNamespace(state=state, agent_id="a1", ticks_in_state=1)
    message = f"agent 'a1' is in state {state!r}, which is not in chart 'c': use a member of chart."
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        DRIVES[drive](chart, agent, "go")
    assert isinstance(caught.value, UnknownStateError)
    assert (agent.state, agent.ticks_in_state) == (state, 1)


# Faults

FAULTS = pytest.mark.parametrize(
    ("options", "event", "state"),
    [
        ({"guard": broken}, "statechart.guard_failed", S.IDLE),
        ({"action": broken}, "statechart.action_failed", S.SCROLLING),
    ],
)


@FAULTS
def test_a_fault_is_logged(
    agent: Any, options: Any, event: str, state: S, events: list[Any]
) -> None:
    """A guard that raises counts as false, an action that raises ends no transition."""
    chart_of(Transition("go", S.IDLE, S.SCROLLING, **options), name="c").fire(agent, "go")
    (entry,) = [entry for entry in events if entry["log_level"] == "error"]
    assert isinstance(entry.pop("exc_info"), LookupError)
    ends = {"from_state": "idle", "to_state": "scrolling", "trigger": "go"}
    where = {"event": event, "log_level": "error", "chart": "c", "agent_id": "a1"}
    assert entry == {**where, **ends, "error": "LookupError: no such post"}
    assert agent.state is state


@pytest.mark.parametrize("where", ["guard", "action"])
@pytest.mark.parametrize("error", [LookupError, *NEVER_CAUGHT])
@pytest.mark.parametrize("strict", [True, False])
def test_what_propagates_changes_nothing(agent: Any, error: Any, where: str, strict: bool) -> None:
    """Faults propagate in a strict chart; what must stop the program does in every one."""

    def stop(agent: Any, context: Any) -> Any:
        raise error

    move = Transition("go", S.IDLE, S.SCROLLING, **{where: stop})
    chart = chart_of(move, Transition("on", "*", S.RESTING), strict=strict)
    agent.ticks_in_state = 4
    before = snapshot(agent)
    if strict or error is not LookupError:
        with pytest.raises(error):
            chart.fire(agent, "go")
        assert snapshot(agent) == before
    assert chart.fire(agent, "on") is S.RESTING


# Run to completion


def test_fires_inside_an_action_run_in_order_behind_its_commit(agent: Any) -> None:
    """They return None; those that no longer apply are dropped, and those of others follow."""
    seen: list[Any] = []

    def fire_three(agent: Any, context: Any) -> None:
        triggers = ("on", "nonsense", "on")
        seen.extend((chart.fire(agent, each, {"post_id": each}), agent.state) for each in triggers)

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=fire_three),
        Transition("on", S.SCROLLING, S.EVALUATING, None, lambda a, c: chart.fire(a, "last")),
        Transition("on", S.EVALUATING, S.COMPOSING),
        Transition("last", S.EVALUATING, S.IDLE),
        Transition("last", S.COMPOSING, S.RESTING),
    )
    assert chart.fire(agent, "go") is S.RESTING
    assert seen == [(None, S.IDLE)] * 3
    assert [trigger for _, trigger, _ in moves_of(agent)] == ["go", "on", "on", "last"]
    assert agent.state_history[1].context == {"post_id": "on"}


def test_the_first_agent_of_a_class_moves_as_the_next_ones_do() -> None:
    """Even if a guard fires, which it must not: what a process did before changes no history."""
    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, lambda a, c: chart.fire(a, "on")),
        Transition("on", S.IDLE, S.RESTING),
    )
    agents = [SimpleNamespace(state=S.IDLE, state_history=deque()) for _ in range(2)]
    assert [chart.fire(each, "go") for each in agents] == [S.SCROLLING] * 2
    assert [len(each.state_history) for each in agents] == [2, 2]


def test_an_endless_chain_is_stopped(agent: Any) -> None:
    """Endless fires from actions end in an error that names chart, agent, trigger and cure."""

    def again(agent: Any, context: Any) -> None:
        chart.fire(agent, "go")

    chart = chart_of(
        Transition("go", S.IDLE, S.SCROLLING, action=again),
        Transition("go", S.SCROLLING, S.IDLE, action=again),
        Transition("stop", "*", S.RESTING),
        name="c",
    )
    message = r"chart 'c': agent 'a1' does not .* 1000 steps, .* 'go': make an action stop firing"
    with pytest.raises(RunawayError, match=message):
        chart.fire(agent, "go")
    assert chart.fire(agent, "stop") is S.RESTING
