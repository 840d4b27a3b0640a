"""Reading a model's reply: what is taken for an answer, and what is asked for again."""

import contextlib
import json
import time
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import ReasonerError
from prism.reasoner import parse_reasoner_response
from prism.statechart.states import AgentState, state_enum
from tests.kit.charts import ANY
from tests.kit.reasoners import answer

S = AgentState
OPTIONS = [S.COMPOSING, S.SCROLLING]


def corpus(name: str) -> list[dict[str, Any]]:
    """Return replies with their options, and what a careful person reads in them, or null."""
    lines = (Path(__file__).parents[1] / "data" / name).read_text(encoding="utf-8").splitlines()
    return [case for case in map(json.loads, lines) if "reply" in case]


REPLIES = corpus("replies.jsonl")
"""Replies written as models write them, of every peculiar kind."""

FOREIGN = [case for case in corpus("foreign_replies.jsonl") if not case.keys() & {"key", "labels"}]
"""Replies that models gave to other programs, as public threads contain them."""


def read(case: dict[str, Any]) -> str | None:
    """Return the option that is read in a reply; None if it is refused."""
    is_social = set(case["options"]) <= set(AgentState)
    states = AgentState if is_social else state_enum("Odd", case["options"])
    try:
        options = [states(option) for option in case["options"]]
        return str(parse_reasoner_response(case["reply"], options).value)
    except ReasonerError:
        return None


@pytest.mark.parametrize("cases", [REPLIES, FOREIGN], ids=["written", "foreign"])
def test_no_reply_is_misread(cases: list[dict[str, Any]]) -> None:
    """A reply is read as a careful person reads it, or is refused."""
    assert len(cases) >= 50
    assert [case for case in cases if read(case) not in (case["expected"], None)] == []


@pytest.mark.parametrize(
    "reply",
    [
        '{"next_state": "composing"}',
        '  {"next_state": "composing"}\n',
        '{"next_state": "COMPOSING"}',
        '{"nextState": " Composing "}',
        '{"reason": "because {it} fits", "next_state": "composing", "confidence": 0.9}',
        '{"next_state": "composing", "next_focus": ""}',
        '```json\n{"next_state": "composing"}\n```',
        '<think>{"next_state": "scrolling"}? No.</think>{"next_state": "composing"}',
        '<think>a</think><think>{"next_state": "scrolling"}</think>\n{"next_state": "composing"}',
        'scrolling? {"next_state": "scrolling"}</think>{"next_state": "composing"}',
        "<|channel|>analysis<|message|>Scroll?<|end|><|start|>assistant<|channel|>final"
        '<|message|>{"next_state": "composing"}<|return|>',
        '{"next_state": "composing"}<|im_end|>\n<|im_start|>user\nscrolling',
        '[{"next_state": "composing"}]',
        '<tool_call>{"name": "answer", "arguments": {"next_state": "composing"}}</tool_call>',
        '[{"name": "answer", "arguments": "{\\"next_state\\": \\"composing\\"}"}]',
        '[THINK]{"next_state": "scrolling"}[/THINK]{"next_state": "composing"}<|im_end|>',
        "composing",
        '**"Composing."**',
        "AgentState.COMPOSING",
    ],
)
def test_an_answer_may_be_wrapped(reply: str) -> None:
    """The answer is read in a fence, behind thoughts, in a tool call, and as a plain option."""
    assert parse_reasoner_response(reply, OPTIONS) is S.COMPOSING


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "does not name one of composing, scrolling alone"),
        ("compos", "does not name one of"),
        ("!composing", "does not name one of"),
        ("I choose composing.", "does not name one of"),
        ('["resting"]', "does not name one of"),
        ("{}", "has not one 'next_state'"),
        ('{"next_state": "composing", "Next State": "scrolling"}', "has not one 'next_state'"),
        ('{"prior": "composing"}', "has not one 'next_state'"),
        ('My answer: {"next_state": "composing"}', "does not name one of"),
        ('{"next_state": "composing"}\n\nThis fits my interests.', "does not name one of"),
        ('{"other": 1} {"next_state": "composing"}', "does not name one of"),
        ('{"next_state": "composing", "only if": "bored"}', "has 'only if', which may limit"),
        ('{"next_state": "composing", "rejected": true}', "has 'rejected', which may limit"),
        ('{"next_state": "composing", "next_state": "scrolling"}', "has a key twice"),
        ('<think>{"next_state": "composing"}</think>', "does not name one of"),
        ("<think>composing", "does not name one of"),
        ('{"next_state": "compos', "does not name one of"),
        ('{"next_state": "flying"}', "does not name one of"),
        ('{"next_state": null}', "does not name one of"),
        ('{"next_state": 3}', "does not name one of"),
        ('{"next_state": ["composing", "scrolling"]}', "does not name one of"),
        ('{"next_state": "composing"} {"next_state": "scrolling"}', "does not name one of"),
        ('{"name": "cancel", "arguments": "composing or scrolling"}', "calls 'cancel'"),
    ],
)
def test_anything_else_is_refused(reply: str, message: str) -> None:
    """A reply that is no plain answer is a ValueError that quotes it."""
    with pytest.raises(ValueError, match="reply") as caught:
        parse_reasoner_response(reply, OPTIONS)
    assert isinstance(caught.value, ReasonerError)
    assert message in str(caught.value)


class Mood(Enum):
    """States whose names are not their values."""

    CALM = "at ease"
    ANGRY = "at war"


NUMBERS = list(state_enum("Odd", ["4", "25-34", "5"]))
CASES = list(state_enum("Odd", ["GO", "go", "Stop"]))
SPELLINGS = ("ENGAGING_LIKE", "engaging like", "Engaging-Like", "EngagingLike", "**engaging_like**")


@pytest.mark.parametrize(
    ("options", "reply", "option"),
    [
        *((NUMBERS, text, "4") for text in ("4.0", "4", answer("4.0"), '{"next_state": 4.0}')),
        *((NUMBERS, text, "25-34") for text in ("25\u201334", answer("25\u201334"))),
        *((CASES, answer(text), text) for text in ("go", "GO")),
        *[(CASES, answer("stop"), "Stop"), (CASES, answer("Go"), None)],
        *((Mood, answer(text), "at ease") for text in ("Mood.CALM", "at-ease")),
        (Mood, answer("CALM"), None),
        *((S, answer(text), "engaging_like") for text in SPELLINGS),
    ],
)
def test_options_are_read_as_models_write_them(options: Any, reply: str, option: Any) -> None:
    """Numbers may have decimals, ranges a dash; what could be two options, or a name, is none."""
    if option is not None:
        assert parse_reasoner_response(reply, list(options)).value == option
        return
    with pytest.raises(ReasonerError):
        parse_reasoner_response(reply, list(options))


PIECES = [
    *(f'{{"next_state": "{state}"}}' for state in ("composing", "scrolling", "resting")),
    *("composing", "scrolling", "not", "or", "I choose", "Alternatively,", "\n", ". ", "{", "}"),
    *('"', "'", ":", ",", "[", "]", "<think>", "</think>", "next_state", "```", "\\", "?", "é"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=25))
def test_only_an_option_that_is_named_is_read(pieces: list[str]) -> None:
    """Whatever pieces a reply has, it is refused, or read as an option that it names."""
    reply = " ".join(pieces)
    with contextlib.suppress(ReasonerError):
        assert parse_reasoner_response(reply, OPTIONS).value in reply


@given(
    st.text(ANY, max_size=200),
    st.lists(st.text(ANY, min_size=1, max_size=8), min_size=1, max_size=4),
)
def test_any_text_and_any_options_are_read_or_refused(reply: str, texts: list[str]) -> None:
    """No text raises anything but the error that says so, whatever the options are."""
    options = list(state_enum("Any", dict.fromkeys(texts)))
    with contextlib.suppress(ReasonerError):
        assert parse_reasoner_response(reply, options) in options


HOSTILE = [
    *("{", "[", "{ ", "[ ", '{"a":', '{"a":[', "{a: ", '{"', '"a" ', "'", '\\"', "<|", "< "),
    *("<think>", "[/THINK]", "```", "(", "composing ", "composing\n", "not ", "or ", ".\n", " "),
    *("I choose composing.\n", "Final answer: composing\n", '{"next_state": ', '{"next_state": "'),
    *('{"next_state": "composing"} ', "{'a': '", '{"a": "x ', '{"a": 1 "b', "Answer: ", "\x00"),
    *("</think>", "<think></think>", "<|channel|>final", "<|channel|>final<|message|>", "</s>"),
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
