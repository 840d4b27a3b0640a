"""Population files that are refused, with the file, the line and the field of what is wrong."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.agents import load_population
from tests.kit.files import position_of, refusal

HEADER = "username,following_agentid_list,previous_tweets,user_char\n"
TWO_ROWS = HEADER + 'gardener,[],[],"grows tomatoes,\npatiently"\n'  # on three lines
A_LIST = "must be a list such as ['one', 'two'], got"


def row(name: str = "b", follows: str = "[]", tweets: str = "[]") -> str:
    """Return a row of a Twitter population, behind two and before another one."""
    cells = (name, follows, tweets, "bakes bread")
    quoted = ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)
    return f"{TWO_ROWS}{quoted}\nc,[],[],bakes\n"


def line(**fields: Any) -> str:
    """Return one line of a JSON Lines file."""
    return json.dumps({"agent_id": "a", "interests": ["tea"], **fields}) + "\n"


@pytest.mark.parametrize(
    ("name", "content", "at", "field", "problem"),
    [
        ("a.txt", "x", None, None, "must end in one of .jsonl, .json,"),
        ("a.jsonl", "", None, None, "is empty"),
        ("a.json", "[]", None, None, "holds no agents"),
        ("a.csv", HEADER, None, None, "holds no agents"),
        # JSON Lines
        ("a.jsonl", line(intrests=[]), None, "intrests", "is no field; did you mean 'interests'?"),
        ("a.jsonl", line() + '{"interests": ["tea"]}', 2, "agent_id", "is missing"),
        ("a.jsonl", line(agent_id="a\0"), 1, "agent_id", "contains a NUL or half"),
        ("a.jsonl", line() + line(), 2, "agent_id", "'a' is already used"),
        ("a.jsonl", line(following=["a", "c"]), 1, "following", "none of the 1 agents"),
        ("a.jsonl", line(engagement_threshold=2), 1, "engagement_threshold", "engagement"),
        # a mapping of names, or a card
        ("a.json", '{"ann": {},\n "bo": 5}', None, "bo", "must be an object or a description"),
        ("a.yaml", "ann:\n  persona: calm\nbo: [5]\n", 3, "bo", "must be an object or a"),
        ("a.yaml", "- ann\n", 1, "[0].name", "is missing"),
        ("a.json", '{"ann": {"persona": []}}', None, "ann.persona", "must be text, got []"),
        ("a.json", "null", None, "[0]", "must be an object or a description"),
        ("a.json", '{"first_mes": "Hello."}', None, "[0].name", "is missing"),
        # a Twitter population
        ("a.csv", "id,age\na,1\na,2\n", 3, "id", "'a' is already used"),
        ("a.csv", "id,age,,,age\na,1,,,2\n", 1, "age", "appears twice in the header"),
        ("a.csv", row(""), 4, "username", "must not be empty"),
        ("a.csv", row("b", "[0, 3]"), 4, "following_agentid_list", "none of the 3 agents"),
        ("a.csv", row("b", "[True]"), 4, "following_agentid_list", A_LIST),
        ("a.csv", row("b", "[" * 9_000), 4, "following_agentid_list", A_LIST),
        ("a.csv", row("b", "open('x')"), 4, "following_agentid_list", "none of the 3 agents"),
        ("a.csv", row(tweets="['one', 2.5]"), 4, "previous_tweets", A_LIST),
        ("a.csv", row(tweets=r"['\ud83d']"), 4, "previous_tweets", "contains a NUL or half"),
        ("a.csv", TWO_ROWS.replace(",", "|"), 1, None, "separate columns by commas, semicolons or"),
        ("a.csv", TWO_ROWS + "b,[],[]\n", 4, None, "has 3 cells, but the header has 4"),
        ("a.csv", TWO_ROWS + 'b,[],[],"bakes\n\nc,[],[],d\n', 4, None, "the row from this line on"),
        ("a.csv", TWO_ROWS.encode() + b"caf\xe9,[],[],bakes\n", None, None, "is not UTF-8 text"),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_a_file_is_refused_at_line_and_field(
    write: Callable[[str, str | bytes], Path],
    name: str,
    content: str | bytes,
    at: int | None,
    field: str | None,
    problem: str,
) -> None:
    """A row of a table is named by the line on which it begins, also if a quote stays open."""
    path = write(name, content)
    error = refusal(load_population, path)
    assert position_of(error) == (str(path), at, field)
    assert error.problem.startswith(problem)
