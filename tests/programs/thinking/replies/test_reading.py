"""Replies as models write them, against what a careful person reads.

``tests/data/agent_replies.jsonl`` has one reply a line, with what it says and what is peculiar
about it. An action there is one that may be carried out: null where the reply is cut off.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from string import punctuation
from xml.sax.saxutils import escape

import pytest

from prism.programs.thinking._replies import AgentReply, AskedAction, read_reply
from tests.kit.agent_replies import TYPES, as_json

CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "agent_replies.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
LEAST_REPLIES = 300
LEAST_READ = 200

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
    """Return the action that a reply has carried out: one without a type or tags is refused."""
    action = None if reply.is_truncated else reply.action
    return action if action is not None and action.type and action.tags else None


def test_replies_are_read_as_a_careful_person_reads_them_or_not_at_all() -> None:
    """State, log and action are what the reply says, or nothing is, and then there is a reason."""
    read = 0
    for case in CORPUS:
        reply = read_reply(case["reply"])
        action = None if case["action"] is None else AskedAction(*case["action"])
        found = (reply.next_state, reply.thinking_log, carried_out(reply))
        said = (case["next_state"], case["thinking_log"], action)
        read += found == said
        assert all(one in (None, other) for one, other in zip(found, said, strict=True)), case

    assert len({case["reply"] for case in CORPUS}) == len(CORPUS) >= LEAST_REPLIES
    assert read >= LEAST_READ


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ("  Executing.\n", "executing"),
        ("**paging** now", "paging"),
        ("thinking|executing", None),
        ("thinking / executing", None),
        ("!?", None),
        (3, None),
    ],
)
def test_a_state_is_the_leading_word(given: object, word: str | None) -> None:
    """The first word counts, in lower case; a choice between words is none."""
    assert read_reply(json.dumps({"next_state": given})).next_state == word


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("  a\n", "  a\n"),
        ("", ""),
        (1.5, "1.5"),
        ({"ä": [1, None]}, '{"ä":[1,null]}'),
        ("a\x00\ud800", "a\ufffd"),
    ],
)
def test_values_are_texts(given: object, value: str) -> None:
    """A text stays as it is but for what cannot be written; other values are compact JSON."""
    reply = read_reply(
        json.dumps({"action": {"type": "storage_save", "tags": "a", "value": given}})
    )
    assert reply.action == AskedAction("storage_save", "a", value)


def test_why_a_reply_is_not_read_is_told() -> None:
    """A good reply has no defect, and one that is refused names its own."""
    assert read_reply("".join(PARTS)).defects == ()
    (not_closed,) = read_reply("".join(PARTS).replace("</type>", "")).defects
    assert "is not XML" in not_closed
    assert read_reply("Sure!").defects == ("there is no agent element and no object with its keys",)


@pytest.mark.parametrize("before", ["```xml\n", "So:\n", "- ", "<think>Or {}?</think>"])
def test_what_stands_around_does_not_matter(before: str) -> None:
    """Fences, prose and thoughts with drafts leave what a reply says."""
    draft = "".join(WRITTEN[REMOVE])
    text = before.format(draft) + "".join(PARTS) + "\n```\nThat is it."
    assert carried_out(read_reply(text)) == SAVE
    assert carried_out(read_reply(f"<think>Or {draft}")) is None


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


def test_a_reply_that_is_too_long_is_cut() -> None:
    """Beyond 200,000 characters nothing is read, so that an action that ends there is cut off."""
    text = "".join(PARTS).replace("Alice is 25", "x" * 200_000)
    assert read_reply(text).is_truncated


def test_a_long_thought_does_not_hide_the_answer() -> None:
    """A thought of any length before the answer leaves the answer to be read."""
    reply = read_reply("<think>" + "so " * 200_000 + "</think>" + "".join(PARTS))
    assert carried_out(reply) == SAVE
