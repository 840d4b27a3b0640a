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
from prism.statechart.reasoner import parse_reasoner_response
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
        '{"reason": "because {it} fits", "next_state": "composing", "sure": true}',
        '```json\n{"next_state": "composing"}\n```',
        '<think>{"next_state": "scrolling"}? No.</think>{"next_state": "composing"}',
        'I would say: {"next_state": "composing"}, because it is my topic.',
        'Based on my interests, my answer is {"next_state": "composing"}.',
        'Here is my answer:\n\n{"next_state": "composing"}\n\nThis fits my interests.',
        '<think>a</think><think>{"next_state": "scrolling"}</think>\n{"next_state": "composing"}',
        '[{"next_state": "composing"}]',
        "{" * 3000 + '{"next_state": "composing"}',
        "I would say that I choose composing, all things considered.",
        "On balance, I'd say I'd go with composing.",
        "I guess the answer is composing, in the end.",
    ],
    ids=range(16),
)
def test_a_reply_may_be_wrapped(reply: str) -> None:
    """The answer is found in fences, behind lead-ins and thoughts, and in broken JSON."""
    assert parse_reasoner_response(reply, OPTIONS) is S.COMPOSING


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "no JSON object with 'next_state' in the reply ''"),
        ("compos", "no JSON object with 'next_state' in the reply 'compos', nor a plain answer"),
        ("{}", "no JSON object"),
        ('["resting"]', "the reply names 'resting', which is not one of composing, scrolling"),
        ('{"prior": "composing"}', "no JSON object"),
        ('{"a": ' * 3000 + '{"next_state": "composing"}', "is longer than 10000 characters"),
        ("x" * 20_000 + '{"next_state": "composing"}', "is longer than 10000 characters"),
        ('{"a": ' * 300 + '{"next_state": "composing"}', "nor a plain answer"),
        ('Well. I would say {"next_state": "composing"} is best.', "may retract it"),
        ("I would say that I choose composing, all things considered, if bored.", "no JSON object"),
        ("Overall, most would say that I choose composing.", "no JSON object"),
        ('Most people would say {"next_state": "composing"}', "may retract it"),
        ('{broken {"next_state": "composing"}', "may retract it"),
        ('{"other": 1} {"next_state": "composing"}', "may retract it"),
        ('{"next_state": "composing", "only if": "bored"}', "sets a condition"),
        (
            'not this: {"next_state": "scrolling"} but this: {"next_state": "composing"}',
            "names several options",
        ),
        ('<think>{"next_state": "composing"}</think>', "no JSON object"),
        ('{"next_state": "compos', "the reply names 'compos'"),
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
        ('{"next_state": ["composing", "scrolling"]}', "several options: 'composing, scrolling'"),
        ('{"next_state": "composing"} or {"next_state": "scrolling"}', "names several options"),
        ('I would never say {"next_state": "composing"}', "may retract it"),
        ('{"next_state": "composing"} Alternatively, rest.', "may retract it"),
        ('I choose scrolling. {"next_state": "composing"}', "may retract it"),
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


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"name": "composing", "arguments": {"text": "if it rains"}}', S.COMPOSING),
        ('<tool_call>{"name": "composing", "arguments": {"name": "x"}}</tool_call>', S.COMPOSING),
        ("<function=composing>\n<parameter=text>\nhi\n</parameter>\n</function>", S.COMPOSING),
        ('<invoke name="composing"></invoke>', S.COMPOSING),
        ("<function=composing></function> <function=scrolling></function>", None),
        ("Do not call <function=composing></function>", None),
        ('{"name": "composing", "next_state": "scrolling"}', S.SCROLLING),
        ('{"name": "composing", "action": "scrolling"}', None),
        ('[{"type": "function", "function": {"name": "composing"}}]', S.COMPOSING),
        ('{"tool_calls": [{"name": "composing"}, {"name": "scrolling"}]}', None),
        ('{"name": "composing", "condition": "it rains"}', None),
        ('{"name": "composing", "arguments": "{\\"only_if\\": \\"it rains\\"}"}', None),
        ('{"name": "composing", "arguments": {"next_state": "scrolling"}}', None),
        ('{"name": "Composing.", "parameters": {"post": {"name": "scrolling"}}}', S.COMPOSING),
    ],
)
def test_a_tool_that_is_called_by_an_options_name_is_chosen(reply: str, expected: S | None) -> None:
    """A call names its option, in JSON and in tags, if no other one is named beside it."""
    assert _read_or_none(reply) is expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Thought: I could scroll on.\nAction: composing", S.COMPOSING),
        ("Thought: I could scroll on.\nAction: composing\nAction Input: none", S.COMPOSING),
        ("I considered scrolling, but it is my topic.\n\nFinal answer: composing", S.COMPOSING),
        ('I could be scrolling.\n\n**Answer:** {"next_state": "composing"}', S.COMPOSING),
        ("Answer: scrolling\nAnswer: composing", None),
        ('{"next_state": "scrolling"}\nFinal answer: composing', None),
        ("Most people would write:\nAnswer: composing", None),
        ("Final answer: composing, unless it rains", None),
        ("Answer: composing?", None),
    ],
)
def test_a_last_line_with_a_label_settles_the_answer(reply: str, expected: S | None) -> None:
    """What precedes a labelled last line is thinking aloud, unless it is an answer itself."""
    assert _read_or_none(reply) is expected


@pytest.mark.parametrize(
    "words",
    [
        *(
            "I choose not to.",
            "I will not do this.",
            "It is the opposite.",
            "This is a test.",
            "Ha!",
        ),
        *("We are joking.", "My sister likes that.", "Niemals.", "I want something else instead."),
    ],
)
def test_words_beside_an_answer_are_manners_or_reasons(words: str) -> None:
    """Whatever else stands beside an answer refuses it, before it as behind it."""
    assert _read_or_none('{"next_state": "composing"}\n\nThis fits my interests.') is S.COMPOSING
    assert _read_or_none(f'{{"next_state": "composing"}}\n\n{words}') is None
    assert _read_or_none(f"Answer: composing\n\n{words}") is None


def _read_or_none(reply: str) -> S | None:
    try:
        return S(parse_reasoner_response(reply, OPTIONS))
    except ReasonerError:
        return None


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
    "Sure! Here is my answer:\n{}".format,
    "<think>I could keep scrolling.</think>\n{}".format,
    '[THINK]{{"next_state": "scrolling"}}[/THINK]{}'.format,
    "{}\n\nThis matches my interests.".format,
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
    '{{"next_state": {{"state": "{}"}}}}'.format,
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
