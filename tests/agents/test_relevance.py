"""How much a post has to do with an agent's interests, and the words of a text."""

# ruff: noqa: RUF001 - letters of other scripts are what is tested

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism.agents.words import Terms, keywords_of, relevance, terms_of, words_of
from prism.errors import FieldTypeError, FieldValueError

topic_sets = st.frozensets(
    st.sampled_from(["Music", "Travel", "Health", "Movie nights", "Open water", "Tea"])
)


@dataclass
class Post:
    """A post of another simulation."""

    text: str = ""
    topics: Iterable[str] = ()


@dataclass
class Prepared:
    """A post with its terms, like those of prism's simulation."""

    terms: Terms
    text: str = field(default="music")


def rate(interests: Iterable[str], context: Any) -> float:
    return relevance(terms_of(interests), context)


@given(topic_sets, topic_sets)
def test_relevance_is_a_symmetric_measure_from_zero_to_one(
    one: frozenset[str], other: frozenset[str]
) -> None:
    """Relevance is between 0 and 1 and symmetric in agent and post."""
    rating = rate(one, Post(topics=other))
    assert 0.0 <= rating <= 1.0
    assert rating == rate(other, Post(topics=one))


@pytest.mark.parametrize(
    ("interests", "context", "expected"),
    [
        # the cosine of topics or of words, whichever is larger
        (["music", "tea"], {"topics": ["music"]}, 1 / 2**0.5),
        (["a", "b", "c", "d"], {"topics": ["a", "b", "x", "y"]}, 0.5),
        (["open water"], {"topics": ["open fire"]}, 0.5),
        (["tea"], {"text": "Tea, tea and MORE tea!"}, 1 / 3**0.5),
        (["tea"], {"text": "no such thing"}, 0.0),
        (["Straße"], {"text": "STRASSE"}, 1.0),
        (["ai"], {"text": "ai"}, 0.0),
        (["ai"], {"topics": ["AI "]}, 1.0),
        ([], {"topics": ["tea"]}, 0.0),
        (["tea"], {"topics": []}, 0.0),
        (["tea"], {"text": ""}, 0.0),
        # a post of any shape
        (["music"], Post(text="all about music"), 1 / 3**0.5),
        (["music"], {"content": "all about music"}, 1 / 3**0.5),
        (["music"], {"topics": (name for name in ["about", "all", "music"])}, 1 / 3**0.5),
        (["music"], Prepared(terms_of((), "all about music"), text="not read"), 1 / 3**0.5),
        # a relevance that is given
        (["music"], 0, 0.0),
        (["music"], 1, 1.0),
        (["music"], 0.25, 0.25),
        (["music"], {"relevance": 0.75, "topics": ["music"]}, 0.75),
        (["music"], None, 0.0),
    ],
)
def test_relevance_is_given_or_the_cosine_of_the_better_fit(
    interests: list[str], context: Any, expected: float
) -> None:
    """Of a post its terms are read, else its text or content, and its topics."""
    assert rate(interests, context) == pytest.approx(expected)


OUTSIDE = (-0.001, 1.001, float("nan"), float("inf"), True, "0.5")


@pytest.mark.parametrize(
    ("context", "error", "message"),
    [
        *(({"relevance": each}, FieldValueError, r"from 0\.0 to 1\.0, got ") for each in OUTSIDE),
        (object(), FieldTypeError, "cannot tell the relevance of <object"),
        ("music", FieldTypeError, "of 'music': give a number from 0 to 1"),
        ({"topics": "music"}, FieldValueError, "topics must be a list of strings, got the text"),
    ],
)
def test_what_cannot_be_rated_is_refused(
    context: Any, error: type[Exception], message: str
) -> None:
    """The message shows it, and says what to give."""
    with pytest.raises(error, match=message):
        rate(["music"], context)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two words, two_words; R2D2!", ["two", "words", "two", "words", "r2d2"]),
        ("Café STRASSE straße", ["cafe", "strasse", "strasse"]),
        ("हूँ और", ["हूँ", "और"]),
        ("足\U000e0100球", ["足", "足球", "球"]),
        ("AI技术", ["ai", "技", "技术", "术"]),
        ("ｶﾞｽ", ["ガ", "ガス", "ス"]),
        ("ทีม", ["ที", "ทีม", "ม"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("❤\ufe0f — 👩🏻\u200d💻", []),
    ],
)
def test_words_are_those_of_the_script(text: str, words: list[str]) -> None:
    """Words have no case and no accents; letters without spaces stand alone and in pairs."""
    assert words_of(text) == words


def test_keywords_are_frequent_and_long() -> None:
    """Keywords are the most frequent words of five letters or more, without very common ones."""
    text = "Bread and bread, flour5flour, about about about rolls tea 我踢足球"
    assert keywords_of(text) == ["bread", "flour", "rolls", "我踢足球"]
