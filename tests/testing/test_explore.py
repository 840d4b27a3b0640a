"""Invariants over random sequences of events."""

from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from transitions import Machine

from prism.agents import SocialAgent
from prism.errors import DefinitionError, FieldTypeError
from prism.statechart import AgentState, State, Statechart, Transition, social_media_chart
from prism.statechart.states import state_text
from prism.testing import Exploration, assert_path, explore
from tests.testing.paths import regions

CHART = social_media_chart()
S = AgentState


def ada() -> SocialAgent:
    """Make an agent."""
    return SocialAgent("ada")


def short(
    *args: Any, max_steps: int = 20, sequences: int = 10, **options: Any
) -> type[Exploration]:
    """Explore a few short sequences, the same ones every time."""
    made = explore(*args, max_steps=max_steps, **options)
    made.TestCase.settings = settings(
        made.TestCase.settings, database=None, derandomize=True, max_examples=sequences
    )
    return made


def notes_of(machine: type[Exploration]) -> list[str]:
    """Explore until something fails, and return the notes: the path, and each step."""
    with pytest.raises(Exception) as caught:  # noqa: PT011
        machine.run()
    return caught.value.__notes__


def path_of(machine: type[Exploration]) -> str:
    """Explore until something fails, and give the path in the note of the failure."""
    path = next(note for note in notes_of(machine) if note.startswith("path: "))
    return path.removeprefix("path: ")


def test_invariants_that_hold_pass() -> None:
    """Invariants are checked before the first event and after each; if all hold nothing is said."""
    asked: list[str] = []

    def keeps_count(agent: Any) -> None:
        asked.append(agent.state)
        assert len(agent.state_history) <= 20

    short(CHART, ada, invariants=[keeps_count, lambda agent: None, lambda agent: 0]).run()
    assert {S.IDLE, S.SCROLLING, S.EVALUATING, S.RESTING} <= set(asked)


def never_likes(agent: Any) -> bool:
    """Invariant: say by the result that liking is wrong."""
    return agent.state is not S.ENGAGING_LIKE


@pytest.mark.slow
def test_a_wrong_state_is_found_by_its_shortest_path() -> None:
    """Hypothesis shrinks to the fewest events, here by a move that only a reasoner would choose."""
    machine = short(
        CHART, ada, sequences=200, contexts={"decides": st.just(0.9)}, invariants=[never_likes]
    )
    path = "idle --feed_ready--> scrolling --sees_post--> evaluating --decides--> engaging_like"
    assert path_of(machine) == path


@pytest.mark.parametrize(
    "contexts",
    [
        None,
        st.sampled_from([0.1, 0.9]),
        st.fixed_dictionaries({"relevance": st.floats(0, 1), "topics": st.just([])}),
    ],
    ids=["none", "number", "mapping"],
)
@pytest.mark.slow
def test_steps_that_do_nothing_are_left_out(contexts: Any) -> None:
    """The sequence shown has only events that lead to the failure, and no loops."""
    never_rests = [lambda agent: agent.state is not S.RESTING]
    machine = short(CHART, ada, sequences=30, contexts=contexts, invariants=never_rests)
    notes = notes_of(machine)
    assert "path: idle --feed_ready--> scrolling --timeout--> resting" in notes
    steps = [note for note in notes if note.startswith("state.fire(")]
    assert len(steps) == 2, steps


def test_failure_keeps_its_own_message() -> None:
    """An invariant's own assertion is what is raised; one that returns False is named."""

    def stays_idle(agent: Any) -> None:
        assert agent.state is S.IDLE, "woke up"

    with pytest.raises(AssertionError, match="woke up"):
        short(CHART, ada, invariants=[stays_idle]).run()
    liking = SocialAgent("ada", state=S.ENGAGING_LIKE)
    with pytest.raises(AssertionError, match="'never_likes' does not hold"):
        short(CHART, lambda: liking, invariants=[never_likes]).run()


@pytest.mark.slow
def test_faults_of_the_engine_show_the_path() -> None:
    """What a strict chart raises carries the path to the event that caused it."""

    def is_known(agent: Any, context: Any) -> bool:
        raise LookupError("no such post")

    moves = [
        Transition("go", S.IDLE, S.SCROLLING),
        Transition("look", S.SCROLLING, S.EVALUATING, is_known),
    ]
    chart = Statechart(S, moves, S.IDLE, strict=True)
    assert path_of(short(chart, ada)) == "idle --go--> scrolling --look--> ?"


@pytest.mark.parametrize("is_nested", [False, True])
def test_strict_chart_may_refuse_events(is_nested: bool) -> None:
    """What a state of a strict chart does not react to is no failure."""
    states = StrEnum("states", ["OFF", "LOW", "HIGH", "ON"])
    inner = [states.LOW, states.HIGH]
    parts = [State(states.ON, states=inner)] if is_nested else inner
    moves = [
        Transition("on", states.OFF, states.LOW),
        Transition("more", states.LOW, states.HIGH),
        Transition("off", states.HIGH, states.OFF),
    ]
    chart = Statechart([states.OFF, *parts], moves, states.OFF, strict=True)
    short(chart, lambda: SimpleNamespace(state=states.OFF)).run()


def test_contexts_may_be_one_strategy_for_all() -> None:
    """One strategy serves every event; without any, events come without a context."""
    seen: set[Any] = set()

    def note(agent: Any, context: Any) -> bool:
        seen.add(context)
        return True

    chart = Statechart(S, [Transition("go", S.IDLE, S.SCROLLING, note)], S.IDLE)
    short(chart, ada, max_steps=2).run()
    assert seen == {None}
    short(chart, ada, max_steps=2, contexts=st.sampled_from([1, 2])).run()
    assert seen == {None, 1, 2}


def test_agent_in_a_state_of_no_chart_has_a_path() -> None:
    """An agent in a state that the chart lacks fails like any fault of the engine."""
    assert path_of(short(CHART, lambda: SimpleNamespace(state="lost"))).startswith("lost --")


def test_a_subclass_can_add_rules() -> None:
    """A subclass may add rules, and invariants are checked after them, too."""

    class Composing(short(CHART, ada, invariants=[lambda agent: agent.pending_action is None])):  # type: ignore[misc]
        @rule()
        def intend(self) -> None:
            self.agent.pending_action = "reply"

    with pytest.raises(AssertionError, match="does not hold"):
        run_state_machine_as_test(Composing, settings=settings(Composing.TestCase.settings))


@pytest.mark.parametrize(
    ("chart", "contexts", "problem"),
    [
        (CHART, {"decide": st.none()}, "has no trigger 'decide'; its triggers are feed_ready, s"),
        (Statechart(S, [], S.IDLE, name="empty"), None, "'empty' has no transitions to explore"),
        (CHART, [1, 2], r"contexts must not be \[1, 2\]: use strategies of hypothesis"),
        (CHART, {"decides": 0.9}, r"contexts must not be \{'decides': 0.9\}: use strategies"),
    ],
)
def test_without_such_triggers_nothing_is_explored(chart: Any, contexts: Any, problem: str) -> None:
    """A misspelt trigger, plain values and a chart without transitions are refused at once."""
    with pytest.raises((DefinitionError, FieldTypeError), match=problem):
        explore(chart, ada, contexts=contexts)


def test_models_of_a_machine_are_explored_where_they_have_their_state() -> None:
    """In the attribute that the Machine names; their path is that of their records."""
    machine = Machine(None, ["a", "b"], initial="a", model_attribute="phase")
    chart, models = Statechart.from_machine(machine), list[Any]()

    def model() -> Any:
        machine.add_model(made := SimpleNamespace())
        models.append(made)
        return made

    short(chart, model).run()
    assert {each.phase for each in models} == {"a", "b"}
    moved = model()
    moved.to_phase_b()
    assert_path(moved, "a > b", chart=chart)


def test_a_chart_with_regions_is_explored() -> None:
    """An agent that is in no configuration yet is begun, and all configurations are reached."""
    chart = regions()
    seen: set[str] = set()
    machine = short(
        chart,
        lambda: SimpleNamespace(state=next(iter(chart.state_type))),
        invariants=[lambda agent: seen.add(state_text(agent.state))],
    )
    machine.run()
    assert seen == {"a+c", "b+c", "out"}
