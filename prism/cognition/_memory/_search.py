"""Searching memories by words, with SQLite's full-text search (FTS5)."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import finalize

from prism.agents.words import words_of
from prism.cognition._memory._values import to_text
from prism.errors import InputError

TAG_WEIGHT = 3.0
"""A word of the tag counts as so many of the value."""

FEW_WORDS = 8
MOST_OF_FEW, MOST_OF_MANY = 100_000, 6_000
"""Places of words that are ranked, about 1.2 us each: all that a search of a few words has to look
at, in nearly every case; of a long text, such as a thought, those of its rarest words."""

MOST_NEWEST = 1_000
"""Entries that are ranked, the newest, if half of all have every word that is searched for."""

# words come to the index as they are searched for; this tokenizer leaves them so
_TABLE = "CREATE VIRTUAL TABLE words USING fts5(tag, value, tokenize='ascii')"

# the innermost takes the newest of those with a word that very many have
_FIND = """
SELECT number, -score
FROM (
    SELECT rowid AS number, bm25(words, ?, 1.0) AS score FROM words
    WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?
)
ORDER BY score, number LIMIT ?
"""

_MOST_WORD = 64

_NUMBERS = (("", "s"), ("", "es"), ("y", "ies"))
_NO_PLURALS = ("ss", "us", "is")


@dataclass(frozen=True, slots=True)
class Match:
    """A memory in storage that a search found.

    Args:
        tag: Its tag.
        value: Its value, plain JSON data.
        score: How well it matches, above 0; comparable only within one search.
    """

    tag: str
    value: Any
    score: float


class WordIndex:
    """Which memories hold which words, in a database without a file.

    Raises:
        InputError: If this Python's SQLite has no full-text search.
    """

    def __init__(self) -> None:
        # the memory with the number n is the nth that came
        self._tags: list[str] = []
        self._numbers: dict[str, int] = {}
        self._counts = Counter[str]()
        self._database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        finalize(self, self._database.close)
        try:
            self._database.execute(_TABLE)
        except sqlite3.OperationalError:
            raise InputError("this Python's SQLite has no full-text search (FTS5)") from None

        # never ended: an index that is merged at each change would cost eight times as much
        self._database.execute("BEGIN")

    def put(self, tag: str, value: Any) -> None:
        """Add a memory, in place of the one that has its tag."""
        if tag in self._numbers:
            self._take_out(self._numbers[tag])
        else:
            self._tags.append(tag)
            self._numbers[tag] = len(self._tags)

        in_tag, in_value = _words_of(tag), _words_of(to_text(value))
        self._database.execute(
            "INSERT INTO words (rowid, tag, value) VALUES (?, ?, ?)",
            (self._numbers[tag], " ".join(in_tag), " ".join(in_value)),
        )
        self._counts.update({*in_tag, *in_value})

    def remove(self, tag: str) -> None:
        """Take a memory out."""
        self._take_out(self._numbers.pop(tag))

    def search(self, text: str, limit: int, *, plurals: bool) -> list[tuple[str, float]]:
        """Return the tags of the best memories and their scores, best first."""
        sought = dict.fromkeys(_words_of(text))
        words = [forms_of(word) if plurals else [word] for word in sought]
        counts = {form: self._counts[form] for forms in words for form in forms}
        known = sum(any(counts[form] for form in forms) for forms in words)
        # the last number, since counting them all takes as long as a search
        entries = len(self._tags)
        chosen = telling(counts, entries, MOST_OF_FEW if known <= FEW_WORDS else MOST_OF_MANY)
        if not chosen:
            return []

        # words have no quotes, so that nothing of the text is taken for FTS5's own language
        query = " OR ".join(f'"{word}"' for word in chosen)
        # what nearly all have ranks nothing
        is_common = 2 * counts[chosen[0]] > max(entries, 2 * MOST_NEWEST)
        limits = (TAG_WEIGHT, query, MOST_NEWEST if is_common else -1, limit)

        found = self._database.execute(_FIND, limits)
        return [(self._tags[number - 1], score) for number, score in found]

    def _take_out(self, number: int) -> None:
        query = "SELECT tag, value FROM words WHERE rowid = ?"
        (before,) = self._database.execute(query, (number,)).fetchall()
        self._counts.subtract({*" ".join(before).split()})
        self._database.execute("DELETE FROM words WHERE rowid = ?", (number,))


def telling(counts: Mapping[str, int], entries: int, left: int) -> list[str]:
    """Choose the words to search by: the rarest, as many as can be ranked in bounded time.

    A word that half of all entries have says next to nothing (its weight in BM25 is 0.000001), and
    costs most.

    Args:
        counts: Words, and how many entries hold each.
        entries: How many entries there are.
        left: How many places of words can be ranked.
    """
    held = {word: count for word, count in counts.items() if count}
    says_little = max(entries // 2, MOST_NEWEST)
    telling = {word: count for word, count in held.items() if count <= says_little} or held
    chosen: list[str] = []
    for word in sorted(telling, key=telling.__getitem__):
        left -= telling[word]
        if left < 0 and chosen:
            break
        chosen.append(word)

    return chosen


def forms_of(word: str) -> list[str]:
    """Return a word, and what its singular or plural may be in English."""
    found = [word]
    if len(word) > 2 and word.isascii() and word.isalpha():
        for singular, plural in _NUMBERS:
            if word.endswith(plural) and not word.endswith(_NO_PLURALS):
                found.append(word.removesuffix(plural) + singular)
            if word.endswith(singular):
                found.append(word.removesuffix(singular) + plural)

    return list(dict.fromkeys(found))


def _words_of(text: str) -> list[str]:
    return [word[:_MOST_WORD] for word in words_of(text)]
