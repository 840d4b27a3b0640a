"""Reading a model's reply."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import ReasonerError
from prism.statechart.reasoner._replies import (
    MOST_REPLY_CHARACTERS,
    _without_thoughts,
    parse_reasoner_response,
    read_probabilities,
)
from prism.statechart.states import AgentState, state_enum
from tests.kit.reasoners import answer

S = AgentState
OPTIONS = [S.COMPOSING, S.SCROLLING]


@pytest.mark.parametrize(
    "reply",
    [
        '{"next_state": "composing"}',
        '  {"next_state": "composing"}\n',
        '{"next_state": "COMPOSING"}',
        '{"next_state": " Composing "}',
        '{"reason": "because {it} fits", "next_state": "composing", "sure": true}',
        '```json\n{"next_state": "composing"}\n```',
        'Well. I would say {"next_state": "composing"} is best.',
        '<think>{"next_state": "scrolling"}? No.</think>{"next_state": "composing"}',
        '<think>a</think><think>{"next_state": "scrolling"}</think>\n{"next_state": "composing"}',
        'not this: {"next_state": "scrolling"} but this: {"next_state": "composing"}',
        '{broken {"next_state": "composing"}',
        '{"other": 1} {"next_state": "composing"} {"other": 2}',
        '[{"next_state": "composing"}]',
        '{"x": ' + "1" * 5000 + '} {"next_state": "composing"}',
        "{" * 3000 + '{"next_state": "composing"}',
        '{"a": ' * 3000 + '{"next_state": "composing"}',
        "x" * (2 * MOST_REPLY_CHARACTERS) + '{"next_state": "composing"}',
    ],
    ids=range(17),
)
def test_a_reply_may_be_wrapped(reply: str) -> None:
    """The answer is found in fences, text, thoughts, broken JSON and any case; the last counts."""
    assert parse_reasoner_response(reply, OPTIONS) is S.COMPOSING


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "no JSON object with 'next_state' in the reply ''"),
        ("composing", "no JSON object with 'next_state' in the reply 'composing'"),
        ("{}", "no JSON object"),
        ('["composing"]', "no JSON object"),
        ('{"next": "composing"}', "no JSON object"),
        ('<think>{"next_state": "composing"}</think>', "no JSON object"),
        ('{"next_state": "composing"', "no JSON object"),
        (
            '{"next_state": "flying"}',
            "the reply names 'flying', which is not one of composing, scrolling",
        ),
        ('{"next_state": "resting"}', "names 'resting', which is not one of composing, scrolling"),
        ('{"next_state": ""}', "names '', which is not one of"),
        ('{"next_state": "compos"}', "names 'compos', which is not one of"),
        ('{"next_state": "composing, scrolling"}', "is not one of"),
        ('{"next_state": null}', "names None"),
        ('{"next_state": 3}', "names 3"),
        ('{"next_state": ["composing"]}', "which is not one of"),
        ('{"next_state": "composing"} {"next_state": "resting"}', "names 'resting'"),
    ],
)
def test_a_reply_outside_the_options_is_refused(reply: str, message: str) -> None:
    """A reply that names no option is a ValueError that quotes it and lists the options."""
    with pytest.raises(ValueError, match=r"next_state|not one of") as caught:
        parse_reasoner_response(reply, OPTIONS)
    assert isinstance(caught.value, ReasonerError)
    assert message in str(caught.value)


def test_a_long_reply_is_quoted_in_part() -> None:
    """The message about a long reply quotes its beginning only."""
    with pytest.raises(ReasonerError) as caught:
        parse_reasoner_response("blah " * 1000, OPTIONS)
    assert "..." in str(caught.value)
    assert len(str(caught.value)) < 250


def test_an_exact_answer_beats_one_in_another_case() -> None:
    """Among states that differ only by case the one written exactly is meant."""
    odd = state_enum("Odd", ["GO", "go", "Stop"])
    assert [
        parse_reasoner_response(answer(text), list(odd)).value
        for text in ("go", "GO", "Go", "stop")
    ] == [
        "go",
        "GO",
        "GO",
        "Stop",
    ]


@pytest.mark.parametrize(
    "reply", ["x" * 100_000, json.dumps({"next_state": "x" * 9_000}), answer("\udcff" * 5_000)]
)
def test_no_reply_fills_the_log(reply: str) -> None:
    """However long the reply or the state it names, the message about it stays short."""
    with pytest.raises(ReasonerError) as caught:
        parse_reasoner_response(reply, OPTIONS)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("given", "chances"),
    [
        ({"composing": 0.25, "scrolling": 0.75}, {"composing": 0.25, "scrolling": 0.75}),
        ({"scrolling": 0.75, "composing": 0.25}, {"composing": 0.25, "scrolling": 0.75}),
        ({"composing": 0, "scrolling": 1}, {"composing": 0.0, "scrolling": 1.0}),
        ({"composing": 0.49, "scrolling": 0.49}, {"composing": 0.5, "scrolling": 0.5}),
        ({"composing": 0.52, "scrolling": 0.52}, {"composing": 0.5, "scrolling": 0.5}),
    ],
)
def test_probabilities_are_read_in_the_options_order(given: Any, chances: dict[str, float]) -> None:
    """Probabilities come in the options' order and sum to one, rounding in the reply taken out."""
    read = read_probabilities(given, OPTIONS)
    assert read == pytest.approx(chances)
    assert list(read) == ["composing", "scrolling"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "the reply has no probabilities but None"),
        ([0.5, 0.5], r"no probabilities but \[0.5, 0.5\]"),
        ({}, "gives 'composing' the probability None, which is not a number from 0 to 1"),
        ({"composing": 1.0}, "gives 'scrolling' the probability None"),
        ({"composing": float("nan"), "scrolling": 0.5}, "the probability nan"),
        ({"composing": float("inf"), "scrolling": 0.5}, "the probability inf"),
        ({"composing": 10**400, "scrolling": 0.5}, "the probability 1000"),
        ({"composing": -0.1, "scrolling": 1.0}, "the probability -0.1"),
        ({"composing": 1.1, "scrolling": 0.0}, "the probability 1.1"),
        ({"composing": "0.5", "scrolling": 0.5}, "the probability '0.5'"),
        ({"composing": True, "scrolling": 0.0}, "the probability True"),
        (
            {"composing": 0.5, "scrolling": 0.5, "resting": 0.0},
            "weighs 'resting', which is not one of composing,",
        ),
        ({"composing": 0.5, "scrolling": 0.5, 3: 0.0}, "weighs 3, which is not one of"),
        ({"composing": 0.4, "scrolling": 0.4}, "probabilities sum to 0.8 instead of 1"),
        ({"composing": 0.9, "scrolling": 0.9}, "probabilities sum to 1.8 instead of 1"),
        ({"composing": 0, "scrolling": 0}, "probabilities sum to 0 instead of 1"),
    ],
)
def test_probabilities_that_are_none_are_refused(given: Any, message: str) -> None:
    """Each option needs a number from 0 to 1, no other has one, and they sum to about one."""
    with pytest.raises(ValueError, match=message) as caught:
        read_probabilities(given, OPTIONS)
    assert isinstance(caught.value, ReasonerError)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    "reply",
    [
        '{"next_state": "composing"} <think>or also {"next_state": "scrolling"}</think>',
        '<think>{"next_state": "scrolling"}</think>{"next_state": "composing"}<think>well</think>',
        'scrolling? {"next_state": "scrolling"}</think>{"next_state": "composing"}',
        '{"next_state": "composing"}<think>or {"next_state": "scrolling"}',
    ],
)
def test_thoughts_do_not_count(reply: str) -> None:
    """A think block holds no answer, wherever it stands, even if one of its tags is missing."""
    assert (
        parse_reasoner_response(reply, [AgentState.COMPOSING, AgentState.SCROLLING])
        is AgentState.COMPOSING
    )


def step_by_step(text: str) -> str:
    """Drop thoughts by looking for the next tags again and again: slow, but plain to see."""
    said: list[str] = []
    while True:
        start, end = text.find("<think>"), text.find("</think>")
        if end >= 0 and (start < 0 or end < start):
            said.clear()
        elif start >= 0:
            said.append(text[:start])
            end = text.find("</think>", start)
        else:
            return "".join((*said, text))
        if end < 0:
            return "".join(said)
        text = text[end + len("</think>") :]


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "a", "b", "<", ">", "think", "/"]), max_size=30
    ).map("".join)
)
def test_thoughts_are_dropped_as_step_by_step(text: str) -> None:
    """Whatever tags a text has, in any order, what is left is what a stepwise search leaves."""
    assert _without_thoughts(text) == step_by_step(text)


@pytest.mark.parametrize("unit", ["</think>", "<think>", "<think></think>", "a</think><think>"])
def test_tags_without_end_are_read_in_one_pass(unit: str) -> None:
    """Megabytes of tags are read at once; with the square of their length this would take hours."""
    with pytest.raises(ReasonerError):
        parse_reasoner_response(unit * 500_000, OPTIONS)
