"""JSON as models write it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import ReasonerError
from prism.reasoner import parse_reasoner_response
from prism.reasoner._replies._objects import (
    MOST_DEPTH,
    CutText,
    Members,
    objects_in,
    parse_whole,
    what_is_said,
    without_thoughts,
)
from prism.statechart.states import AgentState
from tests.kit.texts import ANY

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(ANY, max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(ANY, max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(ANY, max_size=8), VALUES, min_size=1, max_size=5),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_valid_json_is_read_as_json(
    value: dict[str, Any], indent: int | None, ascii_only: bool
) -> None:
    """An object that is valid JSON is found in a text as the strict parser reads it."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    (found,) = objects_in(f"Here: {text} and so on")
    assert stripped(found.members) == stripped(parse_whole(text))


def stripped(value: Any) -> Any:
    """Return a value with spaces taken off the keys of its objects."""
    if isinstance(value, Members):
        return Members((key.strip(), stripped(inner)) for key, inner in value)
    return [stripped(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("{'a': 'b'}", [("a", "b")]),
        ('{"a": "b",}', [("a", "b")]),
        ('{"a": "b"', [("a", "b")]),
        ('{"a": "b"\n\nand so on', [("a", "b")]),
        ('{"a": "two\nlines"}', [("a", "two\nlines")]),
        ("{a: b, c: 1}", [("a", "b"), ("c", 1)]),
        ("{“a”: “b”}", [("a", "b")]),
        ("{'a': 'it isn't', 'b': True}", [("a", "it isn't"), ("b", True)]),
        ('{"a": "he said "no" to it", "b": None}', [("a", 'he said "no" to it'), ("b", None)]),
        ('{"a": 1 "b": 2}', [("a", 1), ("b", 2)]),
        ('{"a": "x" "b": 2}', [("a", "x"), ("b", 2)]),
        ('{"a": {"b": [1, 2]}}', [("a", [("b", [1, 2])])]),
        ('{"a": 1, "a": 2}', [("a", 1), ("a", 2)]),
        ('{"a": "\\u00e9 \\n \\q"}', [("a", "\\u00e9 \\n \\q")]),
        ('{"a": "\\u00e9"}', [("a", "é")]),
        ('{"a": b // why\n, "c": d}', [("a", "b"), ("c", "d")]),
    ],
)
def test_broken_json_is_read_as_it_is_meant(text: str, members: list[Any]) -> None:
    """Quotes, commas, braces and line breaks may be wrong."""
    assert [found.members for found in objects_in(text)] == [members]


def test_objects_are_found_one_after_another() -> None:
    """A text may hold several objects; what is broken ends where it is, and the next is found."""
    found = list(objects_in('{broken {"a": 1} {} {{"b": 2}} x {"c": {"d": 3}}'))
    assert [one.members for one in found] == [[("a", 1)], [("b", 2)], [("c", [("d", 3)])]]


def test_a_text_that_is_cut_off_is_marked() -> None:
    """A text without its closing quote is known as such."""
    ((key, value),) = next(objects_in('{"a": "b')).members
    assert (key, value) == ("a", "b")
    assert isinstance(value, CutText)


def test_nesting_is_bounded() -> None:
    """Objects nested too deeply are broken off, and the text behind them is read on."""
    deep = '{"a": ' * (MOST_DEPTH * 20)
    *_, last = objects_in(deep + "x " + '{"b": 1}')
    assert last.members == [("b", 1)]


OPTIONS = [AgentState.COMPOSING, AgentState.SCROLLING]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("<think>", "</think>"),
        ("<Thinking>", "</Thinking>"),
        ("<REASONING>", "</REASONING>"),
        ("<thought>", "</thought>"),
        ("[THINK]", "[/THINK]"),
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
        ("<|START_THINKING|>", "<|END_THINKING|>"),
        ("<seed:think>", "</seed:think>"),
        ("◁think▷", "◁/think▷"),
    ],
)
def test_thoughts_of_every_kind_are_dropped(start: str, end: str) -> None:
    """Thoughts of each kind in use count in no place, also without a start or an end tag."""
    said = [
        what_is_said(reply)
        for reply in (
            f"{start}thought{end}said",
            f"said{start}thought{end}",
            f"thought{end}said",
            f"said{start}thought",
            f"sa{start}thought{end}id",
        )
    ]
    assert said == ["said"] * 5


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b",
            "b",
        ),
        ("<|channel|>final <|constrain|>json<|message|>b<|return|>", "b"),
        ("<|channel|>commentary to=f<|message|>a<|call|>", ""),
        ("<|channel|>analysis<|message|>a", ""),
        ("analysis of it assistantfinal b", " b"),
        ("Thinking...\na\n...done thinking.\n\nb", "\n\nb"),
        ("b<|im_end|>\n<|im_start|>user\na", "b"),
        ("<think>a</think></s>b", "b"),
        ("I went out.\nObservation: b", "I went out.\nObservation: b"),
        ("b", "b"),
        ("", ""),
    ],
)
def test_only_the_models_own_turn_is_read(reply: str, said: str) -> None:
    """What counts is the final channel, and the turn until its end token."""
    assert what_is_said(reply) == said


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
    assert without_thoughts(text) == step_by_step(text)


@pytest.mark.parametrize("unit", ["</think>", "<think>", "<think></think>", "a</think><think>"])
@pytest.mark.sampled(4)
def test_tags_without_end_are_read_in_one_pass(unit: str) -> None:
    """Very many tags are read at once; with the square of their length this would take hours."""
    with pytest.raises(ReasonerError):
        parse_reasoner_response(unit * 100_000, OPTIONS)
