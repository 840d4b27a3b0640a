"""The words of a text, in any script: what memories are searched by and posts are rated by.

Scripts that put no spaces between words (Chinese, Japanese, Thai, Khmer), and Korean, whose words
take endings, are read as pairs of neighbouring letters; all others as words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import groupby, pairwise

_ASCII_WORD = re.compile(r"[^\W_]+")
_LETTER_WITH_MARKS = re.compile(r"\w\W*")
_NARROW_WITHOUT_SPACES = ("THAI", "LAO", "KHMER", "MYANMAR")

_LEAST_TELLING = 3
_LEAST_KEYWORD, _LEAST_KEYWORD_OF_PAIRS = 5, 2
_MOST_KEYWORDS = 5
_COMMON_TEXT = """
about after again against although always among another around because before being between
character could current doing during every first follow friend great heart having https interested
known makes making might never often other others people person please really seems share should
since small someone something sometimes still tends their there these thing things those though
through today tweets twitter under until users usually where which while whose within without
world would years yourself
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
    return frozenset(filter(_is_telling, words_of(text)))


def _is_telling(word: str) -> bool:
    least = _LEAST_TELLING if _has_spaces(word[0]) else _LEAST_TELLING - 1
    return len(word) >= least


def keywords_of(text: str) -> list[str]:
    """Return the five most frequent long words of a text, and clauses of scripts without spaces."""
    counts = Counter(
        run
        for run, has_spaces in _runs(_folded(re.sub(r"[\d_]", " ", text)))
        if len(run) >= (_LEAST_KEYWORD if has_spaces else _LEAST_KEYWORD_OF_PAIRS)
        and run not in _COMMON_WORDS
    )
    return [word for word, _ in counts.most_common(_MOST_KEYWORDS)]


def _folded(text: str) -> str:
    # some signs, such as that of a service mark, become capital letters only when normalised
    whole = unicodedata.normalize("NFKC", text.casefold()).casefold()
    return "".join(letter for letter in whole if not _is_invisible(letter))


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


@cache
def _is_invisible(letter: str) -> bool:
    """Return True for joiners and selectors of glyphs, which may stand inside words."""
    if unicodedata.category(letter) == "Cf":
        return True

    return unicodedata.name(letter, "").startswith("VARIATION SELECTOR")
