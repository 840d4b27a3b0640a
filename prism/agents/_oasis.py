"""Loading populations of OASIS (camel-ai/oasis): Reddit personas and Twitter follow graphs."""

from __future__ import annotations

import ast
import json
import logging
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prism.agents._archetypes import ARCHETYPES, Archetype
from prism.agents._kept import kept_cells, kept_values, require_fields, told_apart
from prism.agents._population import Population, SeedPost, archetype_for
from prism.agents.social_agent import SocialAgent
from prism.files import Record, read_json_array
from prism.files._records import MOST_NUMBER, read_csv

_MOST_EVALUATED = 256_000
"""Maximum length of a list that is left to Python's own parser."""

_NUMBERS = re.compile(r"\[(?:-?(?:0|[1-9]\d*), ?)*+-?(?:0|[1-9]\d*)\]", re.ASCII)


def read_list(text: str) -> list[Any] | None:
    """Return the list that a text holds in Python's notation; None if it is something else.

    Python's own parser takes hundreds of bytes per item, so lists of numbers are left to JSON's.

    Args:
        text: The text, such as ``[1, 'two']``.
    """
    with warnings.catch_warnings():
        # unknown escape sequences are kept without a warning
        warnings.simplefilter("ignore")
        try:
            if _NUMBERS.fullmatch(text):
                found = json.loads(text)
            else:
                found = ast.literal_eval(text) if len(text) <= _MOST_EVALUATED else None
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None

    return found if isinstance(found, list) else None


_logger = logging.getLogger("prism.agents")

REDDIT_FIELDS = (
    *("realname", "username", "bio", "persona", "age", "gender", "mbti", "country"),
    *("profession", "interested_topics"),
)
TWITTER_FIELDS = (
    *("", "user_id", "name", "username", "following_agentid_list", "previous_tweets", "user_char"),
    *("description", "following_count", "followers_count", "follower_count"),
    *("follower_agentid_list", "activity_level_frequency", "activity_level", "created_at"),
    *("following_list", "tweets_id"),
)
_REQUIRED_TWITTER_FIELDS = ("username", "following_agentid_list", "previous_tweets", "user_char")
_READ_TWITTER_FIELDS = (*_REQUIRED_TWITTER_FIELDS, "name", "description")

_LIST_EXAMPLES = {int: "[1, 2]", str: "['one', 'two']"}

_MOST_LISTED = 10

MOST_KEYWORDS = 5
"""The default number of interests that an agent gets from its words."""

_KEYWORD = re.compile(r"[^\W\d_]{5,}")
_SHORT_KEYWORD = re.compile(r"[^\W\d_]{3,}")
_COMMON_TEXT = """
about after again against although always among another around because before being between
character could current doing during every first follow friend great heart having https interested
known makes making might never often other others people person please really seems share should
since small someone something sometimes still tends their there these thing things those though
through today tweets twitter under until users usually where which while whose within without
world would years yourself
"""
_COMMON_WORDS = frozenset(_COMMON_TEXT.split())


def load_reddit(
    path: Path,
    seed: int,
    keep: Sequence[str] = (),
    archetypes: Mapping[str, Archetype] = ARCHETYPES,
    _most_keywords: int = MOST_KEYWORDS,
) -> Population:
    """Load Reddit personas: a JSON array of objects with ``REDDIT_FIELDS``."""
    records = list(read_json_array(path))
    fields = dict.fromkeys(field for record in records for field in record.fields)
    require_fields(path, keep, fields)
    note_left_out(path, [field for field in fields if field not in (*REDDIT_FIELDS, *keep)])

    agents = [
        SocialAgent(
            agent_id,
            name=record.text("realname", ""),
            interests=record.texts("interested_topics", least=1),
            personality=record.text("persona", "") or record.text("bio", ""),
            archetype=archetype_for(agent_id, seed, archetypes),
            attributes=kept_values(record, keep),
        )
        for record, agent_id in zip(records, _ids(path, records), strict=True)
    ]

    return Population(agents)


def load_twitter(
    path: Path,
    seed: int,
    keep: Sequence[str] = (),
    archetypes: Mapping[str, Archetype] = ARCHETYPES,
    most_keywords: int = MOST_KEYWORDS,
) -> Population:
    """Load a Twitter population: CSV with ``TWITTER_FIELDS``, in which rows follow other rows."""
    records = list(read_csv(path, lambda header: _check_header(path, header, keep)))
    ids = _ids(path, records)
    kept = kept_cells(records, keep)

    agents: list[SocialAgent] = []
    posts: list[SeedPost] = []
    for row, record in enumerate(records):
        tweets = [text for text in _literal_list(record, "previous_tweets", str) if text.strip()]
        kind = archetype_for(ids[row], seed, archetypes)
        interests = _keywords(record, tweets, most_keywords)
        agent = _twitter_agent(record, ids[row], ids, interests, kind)
        agent.attributes = kept[row]
        agents.append(agent)
        posts += [SeedPost(agent.agent_id, text, tuple(agent.interests)) for text in tweets]

    _note_wordless(path, agents)

    return Population(agents, posts)


def _twitter_agent(
    record: Record, agent_id: str, ids: list[str], interests: list[str], archetype: Archetype
) -> SocialAgent:
    rows = _literal_list(record, "following_agentid_list", int)
    outside = [row for row in rows if not 0 <= row < len(ids)]
    if outside:
        problem = f"row {outside[0]} does not exist: rows are 0 to {len(ids) - 1}"
        raise record.wrong("following_agentid_list", problem)

    followed = dict.fromkeys(ids[row] for row in rows)

    return SocialAgent(
        agent_id,
        name=record.text("name", ""),
        interests=interests,
        personality=record.text("user_char", "") or record.text("description", ""),
        archetype=archetype,
        following=[name for name in followed if name != agent_id],
    )


def _ids(path: Path, records: Sequence[Record]) -> list[str]:
    """Return a unique name for every record, since several may have the same user name."""
    names = [record.text("username") for record in records]
    ids = told_apart(names)
    renamed = [told for told, name in zip(ids, names, strict=True) if told != name]
    if renamed:
        _logger.warning(
            "%s: repeated user names are told apart by their row: %s", path, _listed(renamed)
        )

    return ids


def note_left_out(path: Path, fields: Sequence[str]) -> None:
    if fields:
        _logger.warning(
            "%s: ignored unknown columns (to keep them as attributes, use 'keep'): %s",
            path,
            _listed(fields),
        )


def _note_wordless(path: Path, agents: Sequence[SocialAgent]) -> None:
    wordless = [agent.agent_id for agent in agents if not agent.interests]
    if wordless:
        _logger.warning(
            "%s: %d of %d agents have no interests, since no text of theirs has a word of three "
            "letters: %s",
            path,
            len(wordless),
            len(agents),
            _listed(wordless),
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_LISTED])
    return shown if len(names) <= _MOST_LISTED else f"{shown} and {len(names) - _MOST_LISTED} more"


def _check_header(path: Path, header: list[str], keep: Sequence[str]) -> None:
    record = Record(path, 1, dict.fromkeys(header))
    for column in _REQUIRED_TWITTER_FIELDS:
        if column not in header:
            raise record.wrong(column, "this column is missing from the header")

    require_fields(path, keep, header)
    for column, count in Counter(header).items():
        if count > 1 and column in (*_READ_TWITTER_FIELDS, *keep):
            raise record.wrong(column, "this column appears twice")

    known = {*TWITTER_FIELDS, *keep}
    note_left_out(path, [column for column in dict.fromkeys(header) if column not in known])


def _literal_list(record: Record, field: str, kind: type) -> list[Any]:
    """Return the list in a cell, written as in Python, such as ``['one', 'two']``."""
    text = record.text(field, "").strip()
    if not text:
        return []

    wrong = record.wrong(field, f"must be a list such as {_LIST_EXAMPLES[kind]}, got {text[:60]!r}")
    value = read_list(text)
    if value is None or not all(type(item) is kind for item in value):
        raise wrong
    if kind is int and any(abs(item) > MOST_NUMBER for item in value):
        raise record.wrong(field, "must be a list of numbers of at most 64 bits")
    if kind is str:
        record.require_writable(field, value)

    return value


def _keywords(record: Record, tweets: list[str], most: int) -> list[str]:
    """Return an agent's most frequent words as its interests, since these files have none."""
    said = " ".join((record.text("description", ""), record.text("user_char", ""), *tweets))

    for pattern in (_KEYWORD, _SHORT_KEYWORD):
        words = pattern.findall(said.casefold())
        counts = Counter(word for word in words if word not in _COMMON_WORDS)
        if counts:
            return [word for word, _ in counts.most_common(most)]

    return []
