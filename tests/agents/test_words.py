"""The words of a text, in languages with and without spaces between them."""
# ruff: noqa: RUF001 - letters of other scripts are what is tested

import pytest

from prism.agents.words import keywords_of, words_of

# a persona, a post on its subject, and one on cooking


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Two words, two_words; R2D2!", ["two", "words", "two", "words", "r2d2"]),
        ("Café STRASSE straße", ["cafe", "strasse", "strasse"]),
        ("हूँ और", ["हूँ", "और"]),
        ("足球", ["足", "足球", "球"]),
        ("AI技术", ["ai", "技", "技术", "术"]),
        ("ｶﾞｽ", ["ガ", "ガス", "ス"]),
        ("ทีม", ["ที", "ทีม", "ม"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("葛\U000e0100飾", ["葛", "葛飾", "飾"]),
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
