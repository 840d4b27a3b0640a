"""Searching memories by words, with SQLite's full-text search (FTS5)."""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import finalize

from prism.cognition._memory._values import MISSING, to_text
from prism.errors import InputError

NO_SEARCH = "this Python's SQLite has no full-text search (FTS5)"

TAG_WEIGHT = 3.0
"""A word of the tag counts as so many of the value."""

FEW_WORDS = 8
MOST_OF_FEW, MOST_OF_MANY = 100_000, 6_000
"""Places of words that are ranked, about 1.2 us each: all that a search of a few words has to look
at, in nearly every case; of a long text, such as a thought, those of its rarest words."""

MOST_NEWEST = 1_000
"""Entries that are ranked, the newest, if half of all have every word that is searched for."""

# words come to the index as they are searched for; this tokenizer leaves them so
_WORDS_TABLE = "CREATE VIRTUAL TABLE storage_words USING fts5(tag, value, tokenize='ascii')"
SCHEMA_OF_WORDS = f"""
{_WORDS_TABLE};
CREATE TABLE word_counts (word TEXT PRIMARY KEY, entries INTEGER NOT NULL) WITHOUT ROWID;
"""

_COUNT = """
INSERT INTO word_counts VALUES (?, ?)
ON CONFLICT (word) DO UPDATE SET entries = entries + excluded.entries
"""

# the innermost takes the newest of those with a word that very many have
_FIND = """
SELECT number, -score
FROM (
    SELECT rowid AS number, bm25(storage_words, ?, 1.0) AS score FROM storage_words
    WHERE storage_words MATCH ? ORDER BY rowid DESC LIMIT ?
)
ORDER BY score, number LIMIT ?
"""

# the letters of scripts that put no blanks between words count one by one
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")

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
    """Which entries of a database hold which words.

    Args:
        database: Has the tables of `SCHEMA_OF_WORDS`.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def put(self, entries: Iterable[tuple[int, str, Any, Any]]) -> None:
        """Add entries, and take out those that are no more.

        Args:
            entries: Number, tag and value, and the value that stood there before; either may be
                `MISSING`.
        """
        counts = Counter[str]()
        for number, tag, value, before in entries:
            if before is not MISSING:
                self._database.execute("DELETE FROM storage_words WHERE rowid = ?", (number,))
                counts.subtract({*words_of(tag), *words_of(to_text(before))})
            if value is MISSING:
                continue
            in_tag, in_value = words_of(tag), words_of(to_text(value))
            self._database.execute(
                "INSERT INTO storage_words (rowid, tag, value) VALUES (?, ?, ?)",
                (number, " ".join(in_tag), " ".join(in_value)),
            )
            counts.update({*in_tag, *in_value})

        changed = [(word, count) for word, count in counts.items() if count]
        self._database.executemany(_COUNT, changed)

    def search(self, text: str, limit: int, *, plurals: bool) -> list[tuple[int, float]]:
        """Return the numbers of the best entries and their scores, best first."""
        sought = dict.fromkeys(words_of(text))
        words = [forms_of(word) if plurals else [word] for word in sought]
        counts = {form: self._count(form) for forms in words for form in forms}
        known = sum(any(counts[form] for form in forms) for forms in words)
        # by the last number, since counting them all takes as long as a search
        entries = self._database.execute("SELECT max(rowid) FROM storage_words").fetchone()[0] or 0
        chosen = telling(counts, entries, MOST_OF_FEW if known <= FEW_WORDS else MOST_OF_MANY)
        if not chosen:
            return []

        # words have no quotes, so that nothing of the text is taken for FTS5's own language
        query = " OR ".join(f'"{word}"' for word in chosen)
        # what nearly all have ranks nothing
        is_common = 2 * counts[chosen[0]] > max(entries, 2 * MOST_NEWEST)
        limits = (TAG_WEIGHT, query, MOST_NEWEST if is_common else -1, limit)

        return self._database.execute(_FIND, limits).fetchall()

    def clear(self) -> None:
        """Take all entries out; an index that is damaged is sound again."""
        # a damaged index cannot be emptied, but dropped
        self._database.execute("DROP TABLE storage_words")
        self._database.execute(_WORDS_TABLE)
        self._database.execute("DELETE FROM word_counts")

    def _count(self, word: str) -> int:
        row = self._database.execute(
            "SELECT entries FROM word_counts WHERE word = ?", (word,)
        ).fetchone()
        return 0 if row is None else int(row[0])


def index_in_memory() -> WordIndex:
    """Return an index of entries that are in no database.

    Raises:
        InputError: If this Python's SQLite has no full-text search.
    """
    database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    index = WordIndex(database)
    finalize(index, database.close)
    try:
        database.executescript(SCHEMA_OF_WORDS)
    except sqlite3.OperationalError:
        raise InputError(NO_SEARCH) from None

    # never ended: an index that is merged at each change would cost eight times as much
    database.execute("BEGIN")
    return index


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


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, without case and accents."""
    if text.isascii():
        return [word[:_MOST_WORD] for word in _WORD.findall(text.lower())]

    # "ß" becomes "ss" by this, "é" an e and an accent, which is then left out; some signs, such as
    # that of a service mark, become capital letters only now
    letters = unicodedata.normalize("NFKD", text.casefold()).casefold()
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    whole = unicodedata.normalize("NFC", bare)

    return [word[:_MOST_WORD] for word in _WORD.findall(whole)]
