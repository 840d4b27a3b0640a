"""Choosing a transition: the first candidate whose guard passes."""

import asyncio
import re
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transitions import MachineError

from prism.errors import UnknownStateError, UnknownTriggerError
from prism.statechart import State
from prism.statechart.statechart import Statechart
from prism.statechart.states import AgentState
from prism.statechart.transitions import Transition
from prism.telemetry import GuardEvaluated, Instrument, instrumented
from prism.testing._stand_ins import transition_log

S = AgentState


@dataclass
class Post:
    post_id: str


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


def chart_of(*moves: Transition[S], **options: Any) -> Statechart[S]:
    return Statechart(S, moves, S.IDLE, **options)


def test_a_guard_that_fails_in_a_composite_does_not_hold(events: list[Any]) -> None:
    """It is logged, and the transition of the state around is made."""
    tree = [State(S.SCROLLING, [S.IDLE, S.EVALUATING]), S.RESTING]
    moves = [
        Transition("go", S.IDLE, S.EVALUATING, lambda _agent, _context: 1 / 0),
        Transition("go", S.SCROLLING, S.RESTING),
    ]
    chart = Statechart(tree, moves, S.IDLE)
    assert chart.fire(SimpleNamespace(state=S.IDLE), "go") is S.RESTING
    assert events[0]["event"] == "statechart.guard_failed"

    regions = [State(S.COMPOSING, [S.IDLE, S.EVALUATING]), State(S.SCROLLING, [S.RESTING])]
    tree = [State(S.ENGAGING_LIKE, regions, parallel=True)]
    chart = Statechart(tree, [moves[0], Transition("go", S.IDLE, S.EVALUATING)], S.ENGAGING_LIKE)
    agent = SimpleNamespace(state=chart.initial)
    assert chart.fire(agent, "go") == "evaluating+resting"
    assert [each["event"] for each in events].count("statechart.guard_failed") == 2


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
    """A state outside the chart is a ValueError that lists the states, and nothing has changed."""
    chart = Statechart([S.IDLE, S.RESTING], [Transition("go", S.IDLE, S.RESTING)], S.IDLE, name="c")
    agent = SimpleNamespace(state=state, agent_id="a1", ticks_in_state=1)
    message = re.escape(
        f"agent 'a1' is in state {state!r}, which is not in chart 'c': use one of idle, resting"
    )
    with pytest.raises(ValueError, match=message) as caught:
        drive(chart, agent)
    assert isinstance(caught.value, UnknownStateError)
    assert (agent.state, agent.ticks_in_state) == (state, 1)


class NotingContext(dict[str, Any]):
    """A context that notes which of its outcomes guards have read."""

    def __init__(self, outcomes: dict[str, Any]) -> None:
        super().__init__(outcomes)
        self.read: list[str] = []

    def __getitem__(self, name: str) -> Any:
        self.read.append(name)
        return super().__getitem__(name)


class Nothing(Instrument):
    """An instrument that overrides a hook and does nothing, so that no fire takes the fast path."""

    def guard(self, details: GuardEvaluated, /) -> None:
        """Do nothing."""


def outcome_of(chart: Statechart[Any], agent: Any, trigger: str, context: NotingContext) -> Any:
    """Fire, and return all that can be seen of it: result, state, guards read, events logged."""
    with transition_log() as log:
        try:
            result = chart.fire(agent, trigger, context)
        except (LookupError, MachineError, UnknownTriggerError) as error:
            result = repr(error)

    events = [{**event, "exc_info": repr(event.get("exc_info"))} for event in log.events]
    return result, agent.state, context.read, events


OUTCOMES = st.sampled_from([True, False, "raise", "yes", "", None])


@pytest.mark.usefixtures("_faults_unheard")
@settings(max_examples=2 * settings().max_examples)
@given(data=st.data())
def test_the_inlined_loop_chooses_as_the_interpreter_does(
    random_charts: Any, data: st.DataObject
) -> None:
    """Over random charts and guards, fire with and without an instrument does exactly the same."""
    chart = data.draw(random_charts.charts())
    plain, observed = (SimpleNamespace(state=chart.initial, agent_id="a") for _ in range(2))
    triggers = [*{item.trigger: None for item in chart.transitions}, "unheard of"]
    outcomes = st.fixed_dictionaries(dict.fromkeys(random_charts.guards, OUTCOMES))

    events = data.draw(st.lists(st.tuples(st.sampled_from(triggers), outcomes), max_size=8))
    for trigger, given_ in events:
        foreseen = chart.explain(plain, trigger, NotingContext(given_))
        result = outcome_of(chart, plain, trigger, NotingContext(given_))
        with instrumented(Nothing()):
            assert outcome_of(chart, observed, trigger, NotingContext(given_)) == result

        if chart.strict and foreseen.outcome == "no reaction":
            name = "MachineError" if trigger in chart.triggers else "UnknownTriggerError"
            assert result[0].startswith(f"{name}(")
            continue

        errors = [repr(found.error) for found in foreseen.candidates if found.error]
        assert result[0] == (errors[-1] if foreseen.outcome == "raises" else foreseen.target)
