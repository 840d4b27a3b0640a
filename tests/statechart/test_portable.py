"""Charts as values: compared, hashed, formatted, shown in a notebook."""

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism.statechart import AgentState, Statechart, Transition, social_media_chart, state_enum

Mood = state_enum("Mood", ["calm", "angry"])
CALM, ANGRY = Mood


def is_strong(agent: Any, force: Any) -> bool:
    return bool(force > 3)


def moods(**changes: Any) -> Statechart[Any]:
    parts: dict[str, Any] = {
        "states": Mood,
        "transitions": [Transition("bumped", CALM, ANGRY, is_strong)],
        "initial": CALM,
        "name": "moods",
        "decision_states": [CALM],
        "timeouts": {ANGRY: 2},
        "strict": False,
    }
    return Statechart(**{**parts, **changes})


OTHERS: dict[str, dict[str, Any]] = {
    "name": {"name": "other"},
    "states": {"states": state_enum("More", ["calm", "angry", "sad"])},
    "order of states": {"states": state_enum("Turned", ["angry", "calm"])},
    "initial": {"initial": ANGRY},
    "decision states": {"decision_states": []},
    "timeouts": {"timeouts": {ANGRY: 3}},
    "strict": {"strict": True},
    "no transition": {"transitions": []},
    "another guard": {"transitions": [Transition("bumped", CALM, ANGRY, bool)]},
    "an action": {"transitions": [Transition("bumped", CALM, ANGRY, is_strong, print)]},
}


def over(enum: Any, **changes: Any) -> Statechart[Any]:
    """Make the chart over another enum."""
    by_text = {str(member): member for member in enum}
    move = Transition("bumped", by_text["calm"], by_text["angry"], is_strong)
    parts = {
        "transitions": [move],
        "initial": by_text["calm"],
        "decision_states": [by_text["calm"]],
    }
    return moods(states=enum, timeouts={by_text["angry"]: 2}, **{**parts, **changes})


def test_charts_of_one_definition_are_equal() -> None:
    """Charts that are defined alike are equal and hash alike, whatever their clock, logger or enum class."""
    twin = state_enum("Twin", ["calm", "angry"])
    for other in (moods(), moods(clock=lambda: 0.0), over(twin), copy.deepcopy(moods())):
        assert other == moods()
        assert hash(other) == hash(moods())
    assert {moods(): 1}[over(twin)] == 1


def test_a_pickled_chart_equals_itself() -> None:
    """The social chart is equal to its own copy from a pickle."""
    assert pickle.loads(pickle.dumps(social_media_chart())) == social_media_chart()


@pytest.mark.parametrize("what", OTHERS)
def test_charts_that_differ_in_one_part_are_unequal(what: str) -> None:
    """A difference in any part of the definition makes charts unequal."""
    changes = dict(OTHERS[what])
    other = over(changes.pop("states"), **changes) if "states" in changes else moods(**changes)
    assert other != moods()


def test_a_chart_equals_no_other_thing() -> None:
    """A chart compared with something else is unequal, without an error."""
    assert moods() != "moods"
    assert moods() != moods().to_dict()


def test_an_empty_format_is_the_plain_text() -> None:
    """``f"{chart}"`` is what ``str`` gives."""
    assert (
        f"{moods()}"
        == str(moods())
        == "Statechart('moods', 2 states, 1 transitions, initial='calm')"
    )


@pytest.mark.parametrize(
    ("spec", "beginning"),
    [
        ("mermaid", "stateDiagram-v2\n"),
        ("dot", 'digraph "moods" {\n'),
        ("scxml", "<?xml "),
        ("json", '{\n  "schema": 1,'),
        ("svg", "<svg "),
    ],
)
def test_formats_are_named_by_the_spec(spec: str, beginning: str) -> None:
    """``format(chart, spec)`` writes each of the formats."""
    assert format(moods(), spec).startswith(beginning)


def test_an_unknown_format_is_refused() -> None:
    """Another format is a ValueError that names those there are."""
    with pytest.raises(
        ValueError, match="no format 'png': use one of mermaid, dot, scxml, json, svg"
    ):
        format(moods(), "png")


def test_a_notebook_gets_a_picture_and_text() -> None:
    """A notebook is offered the plain text, a fenced Mermaid diagram and the drawing."""
    bundle = moods()._repr_mimebundle_(include=None, exclude=None)
    assert bundle == {
        "text/plain": repr(moods()),
        "text/markdown": f"```mermaid\n{moods():mermaid}```\n",
        "image/svg+xml": f"{moods():svg}",
    }


def test_a_notebook_is_spared_a_picture_nobody_can_read() -> None:
    """Of a chart with very many transitions only the texts are given."""
    chart = moods(transitions=[Transition(f"t{number}", CALM, ANGRY) for number in range(501)])
    assert sorted(chart._repr_mimebundle_()) == ["text/markdown", "text/plain"]


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_any_chart_can_be_written_in_every_format(random_charts: Any, data: st.DataObject) -> None:
    """No text of a state, trigger or function keeps a chart from being written, in characters that a file can hold."""
    chart = data.draw(random_charts.charts())
    for spec in ("", "mermaid", "dot", "scxml", "json", "svg"):
        assert format(chart, spec).encode()
        assert format(chart, spec) == format(chart, spec)


def test_members_of_agent_state_are_written_by_their_text() -> None:
    """The texts of states stand in the formats, never the names of enum members."""
    assert "engaging_like" in f"{social_media_chart():json}"
    assert (
        AgentState.ENGAGING_LIKE.name
        not in f"{social_media_chart():json}{social_media_chart():mermaid}"
    )
