"""How relevant a post is to an agent's interests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

from prism.errors import FieldTypeError, FieldValueError

_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class Terms:
    """The topics and words of a post, or of an agent's interests, in lower case.

    Args:
        topics: Whole topics, such as ``"culture & society"``.
        words: Single words of three letters or more.
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
    return Terms(frozenset(names), frozenset(_WORD.findall(" ".join((*names, text.casefold())))))


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
        FieldValueError: If the context gives a relevance outside 0 to 1.
        FieldTypeError: If no relevance can be computed from the context.
    """
    if context is None:
        return 0.0
    if isinstance(context, (int, float)):
        return _checked(context)

    terms = getattr(context, "terms", None)
    if not isinstance(terms, Terms):
        given = _read(context, "relevance")
        if given is not None:
            return _checked(given)
        terms = _terms_of_context(context)

    return overlap(interests, terms)


def overlap(one: Terms, other: Terms) -> float:
    """Return the overlap of topics or that of words, whichever is larger, from 0.0 to 1.0."""
    topics, words = one.topics & other.topics, one.words & other.words
    of_topics = len(topics) / sqrt(len(one.topics) * len(other.topics)) if topics else 0.0
    of_words = len(words) / sqrt(len(one.words) * len(other.words)) if words else 0.0

    return of_topics if of_topics > of_words else of_words


def _checked(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0.0 <= number <= 1.0:
        raise FieldValueError(f"relevance must be a number from 0.0 to 1.0, got {number!r}")
    return float(number)


def _terms_of_context(context: Any) -> Terms:
    topics, text = _read(context, "topics"), _read(context, "text")
    if text is None:
        text = _read(context, "content")
    if topics is None and text is None:
        if isinstance(context, Mapping):
            return terms_of(())
        raise FieldTypeError(
            f"cannot tell the relevance of {context!r}: give a number from 0 to 1, a mapping with "
            "'relevance', 'topics' or 'text', or a post with topics and text"
        )

    names = [] if topics is None else _names(topics)
    if text is not None and not isinstance(text, str):
        raise FieldTypeError(f"the text of a post must be a string, got {text!r}")

    return terms_of(names, text or "")


def _names(topics: Any) -> list[str]:
    # A string is also iterable, but its characters are not topics.
    names = None if isinstance(topics, str) or not isinstance(topics, Iterable) else list(topics)
    if names is None or not all(isinstance(name, str) for name in names):
        raise FieldTypeError(f"topics must be a list of strings, got {topics!r}")

    return names


def _read(context: Any, name: str) -> Any:
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
