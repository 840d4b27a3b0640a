"""Replies as models write them, against what a careful person reads.

``tests/data/replies.jsonl`` has one reply a line, with the options it had to choose from, the
option that a careful person reads or null, and what is peculiar about it.
"""

import json
from pathlib import Path
from typing import Any

from prism.errors import ReasonerError
from prism.reasoner import parse_reasoner_response
from prism.statechart.states import AgentState, state_enum

CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "replies.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
LEAST_REPLIES = 150
LEAST_READ = 0.47
"""The share without words around the answer, for which the model is asked a second time."""


def read(case: dict[str, Any]) -> str | None:
    """Return the option that is read in a reply; None if it is refused."""
    social = set(case["options"]) <= set(AgentState)
    states = AgentState if social else state_enum("Odd", case["options"])
    try:
        return str(
            parse_reasoner_response(
                case["reply"], [states(option) for option in case["options"]]
            ).value
        )
    except ReasonerError:
        return None


def test_no_reply_is_misread() -> None:
    """A reply is read as a careful person reads it, or is refused."""
    assert [case for case in CORPUS if read(case) not in (case["expected"], None)] == []


def test_replies_without_words_around_the_answer_are_read() -> None:
    """Nearly half of the replies that a careful person can read are read the first time."""
    answered = [case for case in CORPUS if case["expected"] is not None]
    found = sum(read(case) == case["expected"] for case in answered)
    assert found >= LEAST_READ * len(answered)


def test_the_corpus_is_large_and_varied() -> None:
    """The corpus has many replies, none twice, with refusals and several sets of options."""
    asked = {(case["reply"], tuple(case["options"])) for case in CORPUS}
    assert len(asked) == len(CORPUS) >= LEAST_REPLIES
    assert sum(case["expected"] is None for case in CORPUS) >= LEAST_REPLIES // 3
    assert len({tuple(case["options"]) for case in CORPUS}) > 10
    assert all(case["expected"] in (*case["options"], None) for case in CORPUS)
