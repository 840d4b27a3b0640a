"""Logged data as people read it."""

import json
from typing import Any

import pytest

from prism.runlog._words import in_words, said_in, words_of


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"post_id": "p1", "tags": ["a", "b"]}, "post_id p1, tags a, b"),
        ({"share": 0.123456, "why": None}, "share 0.1235, why nothing"),
        ("plain", "plain"),
        ([], ""),
    ],
)
def test_data_is_told_without_braces_and_quotes(told: Any, words: str) -> None:
    """Names and values stand side by side."""
    assert in_words(told) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"text": "Hi there."}', "Hi there."),
        ('{"mood": "calm", "age": 3}', "mood calm, age 3"),
        ("Hi {there}.", "Hi {there}."),
        ('{"text": "cut', '{"text": "cut'),
    ],
)
def test_a_text_that_is_json_is_told_in_words(text: str, words: str) -> None:
    """Its text stands for it, else all it tells; what is no JSON stays as it is."""
    assert words_of(text) == words


@pytest.mark.parametrize(
    "body",
    [
        {"message": {"role": "assistant", "content": "hello"}},
        {"choices": [{"message": {"content": "hello"}}]},
        {"choices": [{"text": "hello"}]},
        {"response": "hello"},
    ],
)
def test_what_a_model_said_is_found_in_a_servers_answer(body: Any) -> None:
    """The wire of both dialects is passed over; a body that tells nothing is shown as it is."""
    assert said_in(json.dumps(body)) == "hello"
    assert said_in('{"error": "busy"}') == '{"error": "busy"}'
    assert said_in("<html>") == "<html>"
