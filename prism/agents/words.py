"""The words of a text, in any script, and how relevant a post is to an agent by its words.

Scripts that put no spaces between words (Chinese, Japanese, Thai, Khmer), and Korean, whose words
take endings, are read as pairs of neighbouring letters; all others as words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby, pairwise
from math import sqrt
from typing import Any

from prism._numbers import plain_number
from prism.errors import FieldTypeError, FieldValueError

_ASCII_WORD = re.compile(r"[^\W_]+")
_LETTER_WITH_MARKS = re.compile(r"\w\W*")
_VARIATION_SELECTOR = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_NARROW_WITHOUT_SPACES = ("THAI", "LAO", "KHMER", "MYANMAR")

_COMMON_TEXT = """
about after again against although always among another around because before being between
character could current doing during every first follow friend great heart having https interested
known makes making might never often other others people person please really seems share should
since small someone something sometimes still tends their there these thing things those though
through today tweets twitter under until users usually where which while whose within without world
would years yourself
"""
_COMMON_WORDS = frozenset(_COMMON_TEXT.split())


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, without case and accents.

    Of scripts without spaces, each letter is a word, and so is it with the next one. A phrase has
    the same words in the same order wherever it stands.
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())

    words: list[str] = []
    for run, has_spaces in _runs(_without_accents(text)):
        letters = [run] if has_spaces else _LETTER_WITH_MARKS.findall(run)
        words.append(letters[0])
        for letter, following in pairwise(letters):
            words += letter + following, following

    return words


def telling_words(text: str) -> frozenset[str]:
    """Return the words that say what a text is about: those of three letters or more, and pairs."""
    return frozenset(each for each in words_of(text) if len(each) >= 2 + bool(_has_spaces(each[0])))


def keywords_of(text: str) -> list[str]:
    """Return the five most frequent long words of a text, and clauses of scripts without spaces."""
    counts = Counter(
        run
        for run, has_spaces in _runs(_folded(re.sub(r"[\d_]", " ", text)))
        if len(run) >= (5 if has_spaces else 2) and run not in _COMMON_WORDS
    )
    return [word for word, _ in counts.most_common(5)]


def _folded(text: str) -> str:
    # some signs, such as that of a service mark, become capital letters only when normalised
    whole = unicodedata.normalize("NFKC", text.casefold()).casefold()
    # joiners and selectors of glyphs may stand inside words
    letters = _VARIATION_SELECTOR.sub("", whole)
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Cf")


def _without_accents(text: str) -> str:
    letters = unicodedata.normalize("NFD", _folded(text))
    # vowel signs, viramas and voicing marks make other words and stay; accents have these classes
    bare = "".join(letter for letter in letters if unicodedata.combining(letter) < 200)
    return unicodedata.normalize("NFC", bare)


def _runs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the runs of letters, marks and digits, and whether their script has spaces."""
    for has_spaces, letters in groupby(text, _has_spaces):
        run = "".join(letters)
        if has_spaces is not None and any(map(str.isalnum, run)):
            yield run, has_spaces


@cache
def _has_spaces(letter: str) -> bool | None:
    """Return whether a letter's script has spaces between words; None if it is no letter."""
    if unicodedata.category(letter) not in _OF_WORDS:
        return None
    if unicodedata.east_asian_width(letter) == "W":
        return False

    return not unicodedata.name(letter, "").startswith(_NARROW_WITHOUT_SPACES)


_OF_WORDS = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Nl", "No"))


# Relevance


@dataclass(frozen=True, slots=True)
class Terms:
    """The topics and words of a post, or of an agent's interests, in lower case.

    Args:
        topics: Whole topics, such as ``"culture & society"``.
        words: Single words of three letters or more; of scripts without spaces, pairs of letters.
    """

    topics: frozenset[str]
    words: frozenset[str]


def terms_of(topics: Iterable[str], text: str = "") -> Terms:
    """Return the terms of topics and a text; the words of a topic also count as words."""
    return _terms(tuple(topics), text)


@lru_cache(maxsize=4096)
def _terms(topics: tuple[str, ...], text: str) -> Terms:
    """Return the terms, which posts from one template share, as agents of like interests do."""
    names = [topic.casefold().strip() for topic in topics]
    return Terms(frozenset(names), telling_words(" ".join((*names, text))))


def relevance(interests: Terms, context: Any) -> float:
    """Return the relevance of an event's context to an agent, from 0.0 (irrelevant) to 1.0.

    The relevance of a post is the overlap of topics or that of words, whichever is larger, as the
    cosine similarity of the two sets (Otsuka-Ochiai coefficient): ``|A & B| / sqrt(|A| * |B|)``.

    Args:
        interests: The agent's terms.
        context: A number from 0 to 1, which is the relevance itself; a mapping with ``relevance``,
            ``topics`` or ``text``; a post with ``topics`` and ``text``; or None. None is
            irrelevant, and so is a mapping without these keys, such as ``{"post_id": ...}``.

    Raises:
        FieldValueError: If the context gives a relevance outside 0 to 1, or topics as one text.
        FieldTypeError: If no relevance can be computed from the context.
    """
    if context is None:
        return 0.0

    # first, since a feed rates each post for each of its readers
    terms = getattr(context, "terms", None)
    if not isinstance(terms, Terms):
        context = plain_number(context)
        number = context if isinstance(context, (int, float)) else _read(context, "relevance")
        if number is not None:
            return checked_relevance("relevance", number)
        terms = _terms_of_context(context)

    topics, words = _overlap(interests.topics, terms.topics), _overlap(interests.words, terms.words)
    return max(topics, words)


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / sqrt(len(one) * len(other)) if shared else 0.0


def checked_relevance(field: str, value: Any) -> float:
    """Return a relevance, or a threshold for one, as a float.

    Raises:
        FieldValueError: If it is not a number from 0.0 to 1.0; the message names the field.
    """
    number = plain_number(value)
    if type(number) not in (int, float) or not 0.0 <= number <= 1.0:
        raise FieldValueError(f"{field} must be a number from 0.0 to 1.0, got {value!r}")
    return float(number)


def checked_texts(field: str, values: Iterable[str]) -> list[str]:
    """Return texts as a list.

    Raises:
        FieldValueError: If they are one text, which is iterable, too; the message names the field.
    """
    if isinstance(values, str):
        raise FieldValueError(f"{field} must be a list of strings, got the text {values!r}")
    return list(values)


def _terms_of_context(context: Any) -> Terms:
    topics, text = _read(context, "topics"), _read(context, "text")
    if text is None:
        text = _read(context, "content")
    if topics is None and text is None and not isinstance(context, Mapping):
        cure = "give a number from 0 to 1, or a mapping or post with topics or text"
        raise FieldTypeError(f"cannot tell the relevance of {context!r}: {cure}")
    return terms_of(checked_texts("topics", topics or ()), text or "")


def _read(context: Any, name: str) -> Any:
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
