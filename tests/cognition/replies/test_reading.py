"""Replies as models write them, against what a careful person reads.

``tests/data/agent_replies.jsonl`` has one reply a line, with what it must give and what is
peculiar about it. An action there is one that may be carried out: null where the reply is cut off.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from string import punctuation
from xml.sax.saxutils import escape

import pytest

from prism.cognition._replies import AgentReply, AskedAction, read_reply
from tests.kit.agent_replies import TYPES, as_json

CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "agent_replies.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
LEAST_REPLIES = 150

SAVE = AskedAction("storage_save", "alice", "Alice is 25")
REMOVE = AskedAction("working_memory_remove", "alice", None)
BEGINNING = (
    "<agent>",
    "<action>",
    "<type>",
    "storage_save",
    "</type>",
    "<tags>",
    "alice",
    "</tags>",
)
WRITTEN: dict[AskedAction, tuple[str, ...]] = {
    SAVE: (*BEGINNING, "<value>", "Alice is 25", "</value>", "</action>", "</agent>"),
    REMOVE: (
        *("working_memory_remove" if part == "storage_save" else part for part in BEGINNING),
        *("</action>", "</agent>"),
    ),
}
PARTS = WRITTEN[SAVE]
DAMAGES: dict[str, Callable[[str], str]] = {
    "left out": lambda tag: "",
    "without its beginning": lambda tag: tag[1:],
    "without its end": lambda tag: tag[:-1],
    "with two letters exchanged": lambda tag: f"{tag[:-3]}{tag[-2]}{tag[-3]}>",
    "twice": lambda tag: tag * 2,
    "in upper case": str.upper,
    "with blanks": lambda tag: f"< {tag[1:-1]} >",
    "escaped": escape,
    "without its slash": lambda tag: tag.replace("/", ""),
    "with a slash too many": lambda tag: f"</{tag.lstrip('</')}",
    "as another": lambda tag: "</tags>" if "/" in tag else "<tags>",
}


def carried_out(reply: AgentReply) -> AskedAction | None:
    """Return the action that a reply has carried out."""
    return None if reply.is_truncated else reply.action


def test_replies_are_read_as_a_careful_person_reads_them() -> None:
    """State, log, action and whether it is cut off are what the reply says."""
    for case in CORPUS:
        reply = read_reply(case["reply"])
        action = None if case["action"] is None else AskedAction(*case["action"])

        assert carried_out(reply) == action, case["why"]
        assert reply.next_state == case["next_state"], case["why"]
        assert reply.thinking_log == case["thinking_log"], case["why"]
        assert reply.is_truncated == case["is_truncated"], case["why"]


def test_the_corpus_is_large_and_varied() -> None:
    """The corpus has many replies, none twice, cut ones among them and ones without an action."""
    assert len({case["reply"] for case in CORPUS}) == len(CORPUS) >= LEAST_REPLIES
    assert len({case["why"] for case in CORPUS}) == len(CORPUS)
    assert sum(case["is_truncated"] for case in CORPUS) >= 30
    assert sum(case["action"] is not None for case in CORPUS) >= 100


def damaged(parts: tuple[str, ...], is_sign: Callable[[str], bool]) -> Iterator[frozenset[int]]:
    """Return the numbers of one sign or two among the parts of a text, in every way."""
    signs = [number for number, part in enumerate(parts) if is_sign(part)]
    for count in (1, 2):
        yield from map(frozenset, itertools.combinations(signs, count))


def assert_meant(text: str, action: AskedAction) -> None:
    """Assert that a reply has an action carried out, or none that can be.

    Signs around a value that stand for its quotes may be taken for a part of it.
    """
    found = carried_out(read_reply(text))
    if found is None or found.type not in TYPES or not found.tags:
        return

    value = found.value if found.value is None else found.value.strip(punctuation)
    assert replace(found, value=value) == action, text


@pytest.mark.parametrize("action", WRITTEN, ids=lambda action: action.type)
@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.sampled(3)
def test_no_damage_to_a_tag_gives_another_action(how: str, action: AskedAction) -> None:
    """With one tag or two damaged, the action is what was meant, or cannot be carried out."""
    parts = WRITTEN[action]
    for numbers in damaged(parts, lambda part: part.startswith("<")):
        text = "".join(
            DAMAGES[how](part) if number in numbers else part for number, part in enumerate(parts)
        )
        assert_meant(text, action)


@pytest.mark.parametrize("replacement", ["", "'", "{", "}", ",", ":", "\\", "\n", "<", '""'])
@pytest.mark.parametrize("action", WRITTEN, ids=lambda action: action.type)
@pytest.mark.sampled(21)
def test_no_damage_to_json_gives_another_action(replacement: str, action: AskedAction) -> None:
    """With one sign of JSON or two left out or exchanged, it is what was meant, or nothing."""
    signs = tuple(as_json(AgentReply(action=action)))
    for numbers in damaged(signs, lambda sign: sign in '{}":,'):
        text = "".join(
            replacement if number in numbers else sign for number, sign in enumerate(signs)
        )
        assert_meant(text, action)


def test_mending_is_told() -> None:
    """What had to be mended is said in the reply's defects, and a good reply has none."""
    assert read_reply("".join(PARTS)).defects == ()
    assert read_reply("".join(PARTS).replace("</type>", "")).defects == ("type is not closed",)
    in_attributes = '<agent><action type="storage_load" tags="a"></action></agent>'
    assert read_reply(in_attributes).defects == ("attributes instead of elements: type, tags",)


def test_defects_are_few_and_short() -> None:
    """A reply with a great many defects names some of them, each in a line."""
    reply = read_reply(
        "<agent>" + "".join(f"<type>{n}</type>x{n}" for n in range(500)) + "</agent>"
    )
    assert 0 < len(reply.defects) <= 20
    assert all(len(defect) < 300 for defect in reply.defects)


def test_a_reply_that_is_too_long_is_cut() -> None:
    """Beyond 200,000 characters nothing is read, so that an action that ends there is cut off."""
    text = "".join(PARTS).replace("Alice is 25", "x" * 200_000)
    reply = read_reply(text)
    assert reply.is_truncated
    assert "200,000" in reply.defects[0]


def test_a_long_thought_does_not_hide_the_answer() -> None:
    """A thought of any length before the answer leaves the answer to be read."""
    reply = read_reply("<think>" + "so " * 200_000 + "</think>" + "".join(PARTS))
    assert carried_out(reply) == SAVE


ACTS = "<agent><action><type>storage_load</type>{}</action></agent>"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        # an object that stands before elements without an agent around them
        (
            'So: {"action": {"type": "storage_load", "tags": "a"}}, not <type>storage_save</type>',
            (None, None, AskedAction("storage_load", "a", None)),
        ),
        # of two agents, one that thinks anew takes nothing from the one before
        (
            "<agent><next_state>executing</next_state><thinking_log>a</thinking_log></agent>"
            "<agent><thinking_log>b</thinking_log></agent>",
            (None, "b", None),
        ),
        # neither does one that acts from another that acts
        (
            "<agent><type>storage_load</type><tags>x</tags></agent>" + ACTS.format(""),
            (None, None, AskedAction("storage_load", "", None)),
        ),
        (
            "<agent><next_state>executing</next_state></agent>" + ACTS.format("<tags>a</tags>"),
            ("executing", None, AskedAction("storage_load", "a", None)),
        ),
        # an agent that begins inside a value may be a part of it, or the answer anew
        (
            "<agent><action><type>storage_save</type><tags>a</tags><value>one "
            "<agent><thinking_log>x</thinking_log> two</value></action></agent>",
            (None, "x", None),
        ),
    ],
)
def test_one_answer_is_not_mixed_with_another(text: str, read: tuple[object, ...]) -> None:
    """Of answers in several places one is read, and only thoughts are put before an action."""
    reply = read_reply(text)
    assert (reply.next_state, reply.thinking_log, reply.action) == read


def test_no_value_goes_on_beyond_the_turn() -> None:
    """A value that begins twice and is closed once, behind the end of the turn, is cut off."""
    reply = read_reply(
        "<agent><action><type>storage_save</type><tags>a</tags><value>say <value>x"
        "<|im_end|></value></action></agent>"
    )
    assert reply.is_truncated
    assert reply.action == AskedAction("storage_save", "a", "say <value>x")
