"""How relevant a post is to an agent's interests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Any

from prism.agents.words import telling_words
from prism.errors import FieldTypeError, FieldValueError


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
        FieldValueError: If the context gives a relevance outside 0 to 1.
        FieldTypeError: If no relevance can be computed from the context.
    """
    if context is None:
        return 0.0

    terms = getattr(context, "terms", None)
    if not isinstance(terms, Terms):
        is_number = isinstance(context, (int, float))
        given = context if is_number else _read(context, "relevance")
        if given is not None:
            return checked_relevance("relevance", given)
        terms = _terms_of_context(context)

    topics, words = interests.topics & terms.topics, interests.words & terms.words
    of_topics = len(topics) / sqrt(len(interests.topics) * len(terms.topics)) if topics else 0.0
    of_words = len(words) / sqrt(len(interests.words) * len(terms.words)) if words else 0.0
    return max(of_topics, of_words)


def checked_relevance(field: str, value: Any) -> float:
    """Return a relevance, or a threshold for one, as a float.

    Raises:
        FieldValueError: If it is not a number from 0.0 to 1.0; the message names the field.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 <= value <= 1.0:
        raise FieldValueError(f"{field} must be a number from 0.0 to 1.0, got {value!r}")
    return float(value)


def _terms_of_context(context: Any) -> Terms:
    topics, text = _read(context, "topics"), _read(context, "text")
    if text is None:
        text = _read(context, "content")
    if topics is None and text is None and not isinstance(context, Mapping):
        raise FieldTypeError(
            f"cannot tell the relevance of {context!r}: give a number from 0 to 1, a mapping with "
            "'relevance', 'topics' or 'text', or a post with topics and text"
        )
    # a string is also iterable, but its characters are not topics
    if isinstance(topics, str):
        raise FieldTypeError(f"topics must be a list of strings, got {topics!r}")

    return terms_of(topics or (), text or "")


def _read(context: Any, name: str) -> Any:
    return context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
