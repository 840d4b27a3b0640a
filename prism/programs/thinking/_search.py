"""The search over storage, in the full-text index of SQLite."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import finalize

from prism.agents.words import words_of

_TABLE = "CREATE VIRTUAL TABLE words USING fts5(tag, value, tokenize='porter unicode61')"
# the inner query takes the newest of the memories that have a very common word
_FIND = """
SELECT number, -score FROM (
    SELECT rowid AS number, bm25(words, 3.0, 1.0) AS score FROM words
    WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?
) ORDER BY score, number DESC LIMIT ?
"""
_MOST_RANKED = 100
"""How many memories a search ranks, those with its rarest words: 0.5 ms of 10,000 memories."""


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
    """Which memories hold which words.

    A memory keeps its number when its value changes. Of equal matches the newest comes first, also
    in a process that has just read the memory from its file.
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        finalize(self, self._database.close)
        self._database.execute(_TABLE)
        self._database.execute("BEGIN")  # never ended: nothing is merged before it is needed
        self._numbers: dict[str, int] = {}
        self._tags: list[str] = []
        self._counts: Counter[str] = Counter()

    def put(self, tag: str, text: str) -> None:
        """Add a memory, or replace its text."""
        if (number := self._numbers.get(tag)) is None:
            number = self._numbers[tag] = len(self._tags)
            self._tags.append(tag)
        else:
            self._database.execute("DELETE FROM words WHERE rowid = ?", (number,))
        in_tag, in_text = words_of(tag.replace("_", " ")), words_of(text)
        row = (number, " ".join(in_tag), " ".join(in_text))
        self._database.execute("INSERT INTO words (rowid, tag, value) VALUES (?, ?, ?)", row)
        self._counts.update({*in_tag, *in_text})

    def search(self, text: str, limit: int) -> list[tuple[str, float]]:
        """Return the tags that match a text best, best first, with their scores."""
        query = " OR ".join(f'"{word}"' for word in self._rarest(words_of(text)))
        if not query or limit < 1:
            return []
        rows = self._database.execute(_FIND, (query, _MOST_RANKED, limit))
        return [(self._tags[number], score) for number, score in rows]

    def _rarest(self, words: Iterable[str]) -> Iterator[str]:
        """Yield the rarest words, as many as can be ranked; at least one."""
        total = 0
        for word in sorted(dict.fromkeys(words), key=lambda word: self._counts[word]):
            if total and total + self._counts[word] > _MOST_RANKED:
                return
            total += self._counts[word]
            yield word
