"""Reading a model's reply."""

import contextlib
import json
import random
import time
from collections.abc import Callable
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import ReasonerError
from prism.reasoner import parse_reasoner_response
from prism.statechart.states import AgentState, state_enum
from tests.kit.reasoners import answer
from tests.kit.texts import ANY

S = AgentState
OPTIONS = [S.COMPOSING, S.SCROLLING]


@pytest.mark.parametrize(
    "reply",
    [
        '{"next_state": "composing"}',
        '  {"next_state": "composing"}\n',
        '{"next_state": "COMPOSING"}',
        '{"next_state": " Composing "}',
        '{"reason": "because {it} fits", "next_state": "composing", "confidence": 0.9}',
        '{"next_state": "composing", "next_focus": ""}',
        '```json\n{"next_state": "composing"}\n```',
        '<think>{"next_state": "scrolling"}? No.</think>{"next_state": "composing"}',
        '<think>a</think><think>{"next_state": "scrolling"}</think>\n{"next_state": "composing"}',
        '[{"next_state": "composing"}]',
        '{"next_state": "composing"}\n{"next_state": "composing"}',
        '<tool_call>{"name": "answer", "arguments": {"next_state": "composing"}}</tool_call>',
        '[{"name": "answer", "arguments": "{\\"next_state\\": \\"composing\\"}"}]',
        "composing",
        '**"Composing."**',
    ],
    ids=range(15),
)
def test_a_reply_may_be_wrapped(reply: str) -> None:
    """The answer is found in fences, behind thoughts, in a tool call, and as a plain option."""
    assert parse_reasoner_response(reply, OPTIONS) is S.COMPOSING


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "the reply names '', which is not one of composing, scrolling"),
        ("compos", "the reply names 'compos', which is not one of composing, scrolling"),
        ("I choose composing.", "names 'I choose composing.', which is not one of"),
        ("{}", "has no 'next_state'"),
        ('["resting"]', "the reply names 'resting', which is not one of composing, scrolling"),
        ('{"prior": "composing"}', "has no 'next_state'"),
        ('{"a": ' * 3000 + '{"next_state": "composing"}', "is longer than 10000 characters"),
        ("x" * 20_000 + '{"next_state": "composing"}', "is longer than 10000 characters"),
        ('My answer: {"next_state": "composing"}', "may retract it"),
        ('{"next_state": "composing"}\n\nThis fits my interests.', "may retract it"),
        ('{broken {"next_state": "composing"}', "may retract it"),
        ('{"other": 1} {"next_state": "composing"}', "has no 'next_state'"),
        ('{"next_state": "composing", "only if": "bored"}', "has 'only if', which may limit it"),
        ('{"next_state": "composing", "rejected": true}', "has 'rejected', which may limit it"),
        ('{"next_state": "composing", "next_state": "scrolling"}', "has several 'next_state'"),
        ('<think>{"next_state": "composing"}</think>', "names ''"),
        ('{"next_state": "compos', "the reply names 'compos'"),
        (
            '{"next_state": "flying"}',
            "the reply names 'flying', which is not one of composing, scrolling",
        ),
        ('{"next_state": ""}', "names '', which is not one of"),
        ('{"next_state": "composing, scrolling"}', "is not one of"),
        ('{"next_state": null}', "names None"),
        ('{"next_state": 3}', "names 3"),
        ('{"next_state": ["composing", "scrolling"]}', "names ['composing', 'scrolling']"),
        ('{"next_state": "composing"} {"next_state": "scrolling"}', "names several options"),
        ('{"next_state": "composing"}' + "x" * 20_000, "is longer than 10000 characters"),
        ('{"next_state": "composing"} {"next_state": "resting"}', "names 'resting'"),
    ],
)
def test_a_reply_outside_the_options_is_refused(reply: str, message: str) -> None:
    """A reply that names no option is a ValueError that quotes it and lists the options."""
    with pytest.raises(ValueError, match="reply") as caught:
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
    """Among states that differ only by case the one written exactly is meant, and else none."""
    odd = list(state_enum("Odd", ["GO", "go", "Stop"]))
    read = [parse_reasoner_response(answer(text), odd).value for text in ("go", "GO", "stop")]
    assert read == ["go", "GO", "Stop"]
    with pytest.raises(ReasonerError, match="names 'Go', which is not one of"):
        parse_reasoner_response(answer("Go"), odd)


def test_a_member_is_named_by_its_own_name() -> None:
    """A member of an enum may be named by its name, with its class before it."""

    class Mood(Enum):
        CALM = "at ease"
        ANGRY = "at war"

    assert parse_reasoner_response(answer("Mood.CALM"), list(Mood)) is Mood.CALM
    assert parse_reasoner_response(answer("at-ease"), list(Mood)) is Mood.CALM
    with pytest.raises(ReasonerError, match="names 'CALM'"):
        parse_reasoner_response(answer("CALM"), list(Mood))


@pytest.mark.parametrize(
    "reply", ["x" * 100_000, json.dumps({"next_state": "x" * 9_000}), answer("\udcff" * 5_000)]
)
def test_no_reply_fills_the_log(reply: str) -> None:
    """However long the reply or the state it names, the message about it stays short."""
    with pytest.raises(ReasonerError) as caught:
        parse_reasoner_response(reply, OPTIONS)
    assert len(str(caught.value)) < 250


DECORATIONS: list[Callable[[str], str]] = [
    "```json\n{}\n```".format,
    "<think>I could keep scrolling.</think>\n{}".format,
    '[THINK]{{"next_state": "scrolling"}}[/THINK]{}'.format,
    "\n\n  {}  \n".format,
    "{}<|im_end|>".format,
    "<answer>{}</answer>".format,
]
SPELLINGS: list[Callable[[str], str]] = [
    str,
    str.upper,
    str.title,
    "AgentState.{}".format,
    "**{}**".format,
    " {}. ".format,
    lambda text: text.replace("_", " "),
    lambda text: text.replace("_", "-"),
    lambda text: text.title().replace("_", ""),
]
SHAPES: list[Callable[[str], str]] = [
    '{{"next_state": "{}"}}'.format,
    '{{"nextState": "{}",}}'.format,
    "{{'next state': '{}'}}".format,
    '{{"next_state": "{}"'.format,
    '{{"reason": "two\nlines", "next_state": "{}"}}'.format,
    '[{{"next_state": ["{}"]}}]'.format,
    "{{next_state: '{}'}}".format,
]


@given(
    st.sampled_from(list(AgentState)),
    st.sampled_from(SPELLINGS),
    st.sampled_from(SHAPES),
    st.lists(st.sampled_from(DECORATIONS), max_size=3, unique=True),
)
def test_decorations_do_not_change_an_answer(
    state: AgentState,
    spell: Callable[[str], str],
    shape: Callable[[str], str],
    decorations: list[Callable[[str], str]],
) -> None:
    """Whatever a valid answer is wrapped in, and however it is spelled, the same state is read."""
    reply = shape(spell(state.value))
    for decorate in decorations:
        reply = decorate(reply)
    assert parse_reasoner_response(reply, list(AgentState)) is state


PIECES = [
    *(f'{{"next_state": "{state}"}}' for state in ("composing", "scrolling", "resting")),
    *("composing", "scrolling", "not", "or", "I choose", "Alternatively,", "\n", ". ", "{", "}"),
    *('"', "'", ":", ",", "[", "]", "<think>", "</think>", "next_state", "```", "\\", "?", "é"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_only_an_option_that_is_named_is_read(pieces: list[str]) -> None:
    """Whatever pieces a reply has, it is refused, or read as an option that it names."""
    reply = " ".join(pieces)
    try:
        read = parse_reasoner_response(reply, OPTIONS)
    except ReasonerError:
        return
    assert read.value in reply


@given(
    st.text(ANY, max_size=200),
    st.lists(st.text(ANY, min_size=1, max_size=8), min_size=1, max_size=4),
)
def test_any_text_and_any_options_are_read_or_refused(reply: str, texts: list[str]) -> None:
    """No text raises anything but the error that says so, whatever the options are."""
    options = list(state_enum("Any", dict.fromkeys(texts)))
    try:
        read = parse_reasoner_response(reply, options)
    except ReasonerError:
        return
    assert read in options


HOSTILE = [
    *("{", "[", "{ ", "[ ", '{"a":', '{"a":[', "{a: ", '{"', '"a" ', "'", '\\"', "<|", "< "),
    *("<think>", "[/THINK]", "```", "(", "composing ", "composing\n", "not ", "or ", ".\n", " "),
    *("I choose composing.\n", "Final answer: composing\n", '{"next_state": ', '{"next_state": "'),
    *('{"next_state": "composing"} ', "{'a': '", '{"a": "x ', '{"a": 1 "b', "Answer: ", "\x00"),
]


@pytest.mark.parametrize("unit", HOSTILE, ids=repr)
@pytest.mark.sampled(6)
def test_hostile_replies_cost_little(unit: str) -> None:
    """A quarter of a mebibyte of anything is read or refused at once: it is linear work."""
    reply = unit * (2**18 // len(unit))
    begun = time.process_time()
    with contextlib.suppress(ReasonerError):
        assert parse_reasoner_response(reply, OPTIONS) is S.COMPOSING
    # milliseconds on an idle machine; the square of the length would take hours
    assert time.process_time() - begun < 1.0


@pytest.mark.slow
def test_hostile_mixtures_cost_little() -> None:
    """Random mixtures of such pieces cost no more than the pieces."""
    draw = random.Random(0)
    begun = time.process_time()
    for _ in range(20):
        reply = "".join(draw.choices([*HOSTILE, *PIECES], k=20_000))
        with contextlib.suppress(ReasonerError):
            parse_reasoner_response(reply, OPTIONS)
    assert time.process_time() - begun < 10.0
