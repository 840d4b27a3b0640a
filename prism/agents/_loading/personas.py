"""Loading populations from files: prism's own JSON Lines, and the personas of OASIS.

OASIS (camel-ai/oasis) publishes Reddit personas as one JSON array and Twitter populations as CSV
with a follow graph. Which of the three a file is, its ending tells.
"""

from __future__ import annotations

import ast
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from prism.agents._archetypes import archetype_named, draw_archetype
from prism.agents._loading.records import Record, json_array, json_lines, reading
from prism.agents._population import Population, SeedPost
from prism.agents.social_agent import SocialAgent
from prism.errors import InputError
from prism.statechart import RandomStream

_SETTINGS = ("engagement_threshold", "timeout_threshold", "max_history_depth")
PRISM_FIELDS = (
    "agent_id",
    "name",
    "interests",
    "personality",
    "archetype",
    "following",
    *_SETTINGS,
)
OASIS_REDDIT_FIELDS = (
    "realname",
    "username",
    "bio",
    "persona",
    "age",
    "gender",
    "mbti",
    "country",
    "profession",
    "interested_topics",
)
OASIS_TWITTER_FIELDS = (
    "",
    "user_id",
    "name",
    "username",
    "following_agentid_list",
    "previous_tweets",
    "user_char",
    "description",
    "following_count",
    "followers_count",
    "follower_count",
    "follower_agentid_list",
    "activity_level_frequency",
    "activity_level",
    "created_at",
    "following_list",
    "tweets_id",
)
POST_FIELDS = ("post_id", "author_id", "text", "topics")

_EXAMPLES = {int: "[1, 2]", str: "['one', 'two']"}
_KEYWORDS = 5
_KEYWORD = re.compile(r"[^\W\d_]{5,}")
_SHORT_WORD = re.compile(r"[^\W\d_]{3,}")
_MOST_CELL_CHARACTERS = 16_000_000
_COMMON = frozenset(
    [
        "about",
        "after",
        "again",
        "against",
        "although",
        "always",
        "among",
        "another",
        "around",
        "because",
        "before",
        "being",
        "between",
        "character",
        "could",
        "current",
        "doing",
        "during",
        "every",
        "first",
        "follow",
        "friend",
        "great",
        "heart",
        "having",
        "https",
        "interested",
        "known",
        "makes",
        "making",
        "might",
        "never",
        "often",
        "other",
        "others",
        "people",
        "person",
        "please",
        "really",
        "seems",
        "share",
        "should",
        "since",
        "small",
        "someone",
        "something",
        "sometimes",
        "still",
        "tends",
        "their",
        "there",
        "these",
        "thing",
        "things",
        "those",
        "though",
        "through",
        "today",
        "tweets",
        "twitter",
        "under",
        "until",
        "users",
        "usually",
        "where",
        "which",
        "while",
        "whose",
        "within",
        "without",
        "world",
        "would",
        "years",
        "yourself",
    ]
)


def load_population(path: Path | str, *, seed: int = 0) -> Population:
    """Load a population from a file.

    Agents whose file names no archetype draw one by the usual shares, keyed by seed and agent id,
    so adding a line to a file changes nobody else.

    Args:
        path: ``.jsonl``: one object a line with ``PRISM_FIELDS``; ``.json``: OASIS's Reddit
            personas; ``.csv``: an OASIS Twitter population.
        seed: Seed for drawing archetypes.

    Returns:
        The agents in the file's order, with their earlier posts where the file has any.

    Raises:
        InputError: If the file is missing, empty, malformed or not one of the three kinds, or two
            agents share an id. The message names file, line and field.
    """
    path = Path(path)
    readers: dict[str, Callable[[Path, int], Population]] = {
        ".jsonl": _load_prism,
        ".json": _load_oasis_reddit,
        ".csv": _load_oasis_twitter,
    }
    with reading(path):
        if path.suffix.lower() not in readers:
            raise InputError(
                f"must end in one of {', '.join(readers)}, got {path.suffix!r}", path=path
            )

        population = readers[path.suffix.lower()](path, seed)

    if not population.agents:
        raise InputError("holds no agents", path=path)

    return population


def load_posts(path: Path | str, agents: Iterable[SocialAgent]) -> list[SeedPost]:
    """Load the posts that a simulation starts from.

    Args:
        path: JSON Lines with ``POST_FIELDS``; ``author_id`` and ``text`` are required.
        agents: The population; every author must be one of them.

    Raises:
        InputError: If the file is missing or malformed, an author is unknown, or two posts share an
            id.
    """
    path = Path(path)
    authors = {agent.agent_id for agent in agents}
    posts: list[SeedPost] = []
    ids: dict[str, int] = {}

    with reading(path):
        for record in json_lines(path):
            record.require_known(POST_FIELDS)
            post_id = record.text("post_id") if record.fields.get("post_id") is not None else None
            if post_id is not None:
                _require_new(record, "post_id", post_id, ids)

            author = record.text("author_id")
            if author not in authors:
                raise record.wrong("author_id", f"no agent of the population is called {author!r}")

            posts.append(
                SeedPost(author, record.text("text"), tuple(record.texts("topics")), post_id)
            )

    if not posts:
        raise InputError("holds no posts", path=path)

    return posts


def _load_prism(path: Path, seed: int) -> Population:
    agents: list[SocialAgent] = []
    records: list[Record] = []
    lines: dict[str, int] = {}

    for record in json_lines(path):
        record.require_known(PRISM_FIELDS)
        agent_id = record.text("agent_id")
        _require_new(record, "agent_id", agent_id, lines)
        agents.append(_prism_agent(record, seed))
        records.append(record)

    for record, agent in zip(records, agents, strict=True):
        for followed in agent.following:
            if followed not in lines:
                raise record.wrong("following", f"no agent of this file is called {followed!r}")

    return Population(agents)


def _prism_agent(record: Record, seed: int) -> SocialAgent:
    agent_id = record.text("agent_id")
    kind = record.text("archetype", "")
    with record.at("archetype"):
        archetype = archetype_named(kind) if kind else _drawn(seed, agent_id)

    agent = SocialAgent(
        agent_id,
        name=record.text("name", ""),
        interests=record.texts("interests", least=1),
        personality=record.text("personality", ""),
        archetype=archetype,
        following=[name for name in dict.fromkeys(record.texts("following")) if name != agent_id],
    )
    for setting in _SETTINGS:
        if record.fields.get(setting) is not None:
            with record.at(setting):
                setattr(agent, setting, record.fields[setting])

    return agent


def _load_oasis_reddit(path: Path, seed: int) -> Population:
    agents: list[SocialAgent] = []
    lines: dict[str, int] = {}
    for record in json_array(path):
        record.require_known(OASIS_REDDIT_FIELDS)
        agent_id = record.text("username")
        _require_new(record, "username", agent_id, lines)
        agents.append(
            SocialAgent(
                agent_id,
                name=record.text("realname", ""),
                interests=record.texts("interested_topics", least=1),
                personality=record.text("persona", "") or record.text("bio", ""),
                archetype=_drawn(seed, agent_id),
            )
        )

    return Population(agents)


def _load_oasis_twitter(path: Path, seed: int) -> Population:
    records = list(_csv_records(path))
    lines: dict[str, int] = {}
    for record in records:
        _require_new(record, "username", record.text("username"), lines)

    names = [record.text("username") for record in records]
    agents: list[SocialAgent] = []
    posts: list[SeedPost] = []

    for record in records:
        tweets = [text for text in _literal_list(record, "previous_tweets", str) if text.strip()]
        agent = _twitter_agent(record, names, tweets, seed)
        agents.append(agent)
        posts += [SeedPost(agent.agent_id, text, tuple(agent.interests)) for text in tweets]

    return Population(agents, posts)


def _twitter_agent(record: Record, names: list[str], tweets: list[str], seed: int) -> SocialAgent:
    agent_id = record.text("username")
    followed = _literal_list(record, "following_agentid_list", int)
    outside = [row for row in followed if not 0 <= row < len(names)]
    if outside:
        raise record.wrong(
            "following_agentid_list",
            f"row {outside[0]} does not exist: rows are 0 to {len(names) - 1}",
        )

    return SocialAgent(
        agent_id,
        name=record.text("name", ""),
        interests=_keywords(record, tweets),
        personality=record.text("user_char", "") or record.text("description", ""),
        archetype=_drawn(seed, agent_id),
        following=[
            name for name in dict.fromkeys(names[row] for row in followed) if name != agent_id
        ],
    )


def _csv_records(path: Path) -> Iterator[Record]:
    before = csv.field_size_limit(_MOST_CELL_CHARACTERS)
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file, strict=True)
            header = next(rows, [])
            _check_header(path, header)
            line = rows.line_num + 1
            for row in rows:
                if row:
                    yield _csv_record(path, line, header, row)
                line = rows.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"the row from this line on is not valid CSV: {error}", path=path, line=line
        ) from None
    finally:
        csv.field_size_limit(before)


def _csv_record(path: Path, line: int, header: list[str], row: list[str]) -> Record:
    if len(row) != len(header):
        raise InputError(
            f"has {len(row)} cells, but the header has {len(header)}", path=path, line=line
        )

    return Record(path, line, dict(zip(header, row, strict=True)))


def _check_header(path: Path, header: list[str]) -> None:
    record = Record(path, 1, dict.fromkeys(header))
    record.require_known(OASIS_TWITTER_FIELDS)
    for column in ("username", "following_agentid_list", "previous_tweets", "user_char"):
        if column not in header:
            raise record.wrong(column, "this column is missing from the header")

    for column in header:
        if header.count(column) > 1:
            raise record.wrong(column, "this column is there twice")


def _literal_list(record: Record, field: str, kind: type) -> list[Any]:
    text = record.text(field, "").strip()
    if not text:
        return []

    try:
        value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise record.wrong(
            field, f"must be a list such as {_EXAMPLES[kind]}, got {text[:60]!r}"
        ) from None

    if not isinstance(value, list) or not all(type(item) is kind for item in value):
        raise record.wrong(field, f"must be a list such as {_EXAMPLES[kind]}, got {text[:60]!r}")
    if kind is str:
        record.require_clean(field, value)

    return value


def _keywords(record: Record, tweets: list[str]) -> list[str]:
    """Take an agent's interests from what it says; these files name none."""
    said = " ".join((record.text("description", ""), record.text("user_char", ""), *tweets))
    said = said.casefold()
    counts = Counter(word for word in _KEYWORD.findall(said) if word not in _COMMON)
    counts = counts or Counter(word for word in _SHORT_WORD.findall(said) if word not in _COMMON)
    if not counts:
        raise record.wrong(
            "user_char", "has no words of three letters or more from which interests could be taken"
        )

    return [word for word, _ in counts.most_common(_KEYWORDS)]


def _drawn(seed: int, agent_id: str) -> Any:
    return draw_archetype(RandomStream(seed, agent_id, "archetype"))


def _require_new(record: Record, field: str, value: str, lines: dict[str, int]) -> None:
    if value in lines:
        raise record.wrong(field, f"{value!r} is already used on line {lines[value]}")
    lines[value] = record.line
