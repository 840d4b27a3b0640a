"""What names stand for, once an element or an object gave something for each."""

from typing import Any

import pytest

from prism.cognition._replies._reading import (
    UNREAD,
    AskedAction,
    Defects,
    key_of,
    reply_of,
    written,
)


def action_of(parts: Any, **options: Any) -> AskedAction | None:
    """Return the action in what a reply gives for it."""
    return reply_of({"action": parts}, Defects(), **{"is_truncated": False, **options}).action


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ("thinking", "thinking"),
        ("  Executing.\n", "executing"),
        ("**paging** now", "paging"),
        ("executing: now", "executing"),
        ("<b>executing</b>", "executing"),
        (["executing"], "executing"),
        ("thinking|executing", None),
        ("thinking / executing", None),
        ("!?", None),
        ("", None),
        (None, None),
        (3, None),
        ({"a": 1}, None),
    ],
)
def test_a_state_is_the_leading_word(given: Any, word: str | None) -> None:
    """The first word counts, in lower case; a choice between words is none."""
    assert reply_of({"next_state": given}, Defects(), is_truncated=False).next_state == word


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        (" a  b\nc ", "a_b_c"),
        (["a", "b c"], "a_b_c"),
        ("<tag>a</tag><tag>b</tag>", "a_b"),
        ("a<b", "a<b"),
        (7, "7"),
        (None, ""),
        ([1, None], ""),
    ],
)
def test_tags_become_one_identifier(given: Any, tags: str) -> None:
    """Blanks become underscores, and several tags one."""
    action = action_of({"type": "storage_load", "tags": given})
    assert action is not None
    assert action.tags == tags


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("  a\n", "  a\n"),
        ("", ""),
        (None, None),
        (1.5, "1.5"),
        (True, "true"),
        ({"ä": [1, None]}, '{"ä":[1,null]}'),
        ("a\x00\ud800", "a\ufffd"),
    ],
)
def test_values_are_texts(given: Any, value: str | None) -> None:
    """A text stays as it is but for what cannot be written; other values are compact JSON."""
    action = action_of({"type": "storage_save", "tags": "a", "value": given})
    assert action == AskedAction("storage_save", "a", value)


@pytest.mark.parametrize(
    ("kind", "options", "counts"),
    [
        ("storage_save", {}, False),
        ("working_memory_add", {}, False),
        ("anything_else", {}, False),
        ("storage_load", {}, True),
        ("working_memory_remove", {}, True),
        ("storage_save", {"is_truncated": True}, True),
    ],
)
def test_a_missing_value_beside_other_text(
    kind: str, options: dict[str, Any], counts: bool
) -> None:
    """What is to be stored is not missing where there is text that could not be read."""
    action = action_of({"type": kind, "tags": "a", UNREAD: "Alice"}, **options)
    assert (action is not None) == counts


def test_a_missing_value_alone() -> None:
    """An action without a value and without other text counts; not in JSON that is broken."""
    parts = {"type": "storage_save", "tags": "a"}
    assert action_of(parts) == AskedAction("storage_save", "a", None)
    assert action_of(parts, is_valid=False) is None


@pytest.mark.parametrize("key", ["next_state", "NextState", "next-state", "NEXT STATE"])
def test_names_in_every_spelling(key: str) -> None:
    """A name may be spelled with other signs between its words."""
    assert key_of(key) == "next_state"
    assert key_of("something") == "something"


def test_halves_of_a_sign_are_put_together() -> None:
    """A sign that came in two halves is whole again; a half alone is replaced, and told."""
    defects: list[str] = []
    assert written("a\ud83d\ude00b", []) == "a😀b"
    assert written("a\ude00", defects) == "a\ufffd"
    assert defects == ["invalid characters were replaced"]
