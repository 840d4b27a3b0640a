"""What a reply says, without what its model thought before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.errors import ReasonerError
from prism.statechart.reasoner import parse_reasoner_response
from prism.statechart.reasoner._replies._thoughts import what_is_said, without_thoughts
from prism.statechart.states import AgentState

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
def test_tags_without_end_are_read_in_one_pass(unit: str) -> None:
    """Megabytes of tags are read at once; with the square of their length this would take hours."""
    with pytest.raises(ReasonerError):
        parse_reasoner_response(unit * 500_000, OPTIONS)
