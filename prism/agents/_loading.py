"""Loading populations and posts from files."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from prism.agents._archetypes import ARCHETYPES, Archetype, archetype_named
from prism.agents._population import Population, SeedPost, archetype_for
from prism.agents.social_agent import SocialAgent
from prism.agents.tables import (
    attributes_of,
    note,
    note_left_out,
    read_table,
    told_apart,
    unique_names,
)
from prism.errors import InputError
from prism.files import Record, read_json_lines, reading

_SETTINGS = ("engagement_threshold", "timeout_threshold", "max_history_depth")
_PRISM = (
    *("agent_id", "name", "interests", "personality", "archetype", "following"),
    *_SETTINGS,
)
_REDDIT = ("username", "realname", "interested_topics", "persona", "bio")
_TWITTER_NEEDS = ("username", "following_agentid_list", "previous_tweets", "user_char")
_TWITTER = (*_TWITTER_NEEDS, "name", "description")
_POST = ("post_id", "author_id", "text", "topics")

_MOST_KEYWORDS = 5
_KEYWORD = re.compile(r"[^\W\d_]{5,}")
_COMMON_TEXT = """
about after again against although always among another around because before being between
character could current doing during every first follow friend great heart having https interested
known makes making might never often other others people person please really seems share should
since small someone something sometimes still tends their there these thing things those though
through today tweets twitter under until users usually where which while whose within without
world would years yourself
"""
_COMMON_WORDS = frozenset(_COMMON_TEXT.split())

_KindOf = Callable[[str], Archetype]


def load_population(
    path: Path | str,
    *,
    seed: int = 0,
    keep: Iterable[str] = (),
    archetypes: Mapping[str, Archetype] = ARCHETYPES,
) -> Population:
    """Load a population from a file.

    An agent without an archetype draws one in the usual proportions. The draw depends only on the
    seed and the agent's id, so a line added to a file changes no other agent.

    An unknown key is refused in prism's own format, where it is probably misspelt. The formats of
    OASIS have many columns, so prism notes once which it ignores, on the standard library's logger
    ``prism.agents``. In these formats, the row (counted from 0) is appended to a repeated user
    name: ``ann#7``. The interests of a Twitter user are the five most frequent long words.

    Args:
        path: ``.jsonl``: prism's own format, one object per line with ``agent_id``, ``interests``
            and, if known, ``name``, ``personality``, ``archetype``, ``following``,
            ``engagement_threshold``, ``timeout_threshold`` and ``max_history_depth``. ``.json``:
            Reddit personas of OASIS (camel-ai/oasis), one array. ``.csv``: a Twitter population of
            OASIS with its follow graph.
        seed: Seed for drawing archetypes.
        keep: Fields or columns to keep as `SocialAgent.attributes`. A column of a CSV file gives
            numbers if all its cells are numbers, truth values if all are true or false, and texts
            otherwise; an empty cell is None among numbers and truth values.
        archetypes: The kinds of agents by name, with their shares and thresholds.

    Returns:
        The agents in the file's order, with their earlier posts if the file has any.

    Raises:
        InputError: If the file is missing, empty, malformed or not one of the three kinds, lacks a
            field to keep, or has two agents with one id in prism's own format. The message names
            file, line and field.
    """
    path, kept = Path(path), list(dict.fromkeys(keep))
    with reading(path):
        records = read_table(path, kept)

    suffix = path.suffix.lower()
    kind_of = partial(archetype_for, seed=seed, archetypes=archetypes)
    if suffix == ".jsonl":
        population = Population(_prism_agents(records, kept, kind_of, archetypes))
    elif suffix == ".json":
        note_left_out(records, (*_REDDIT, *kept))
        population = Population(_reddit_agents(records, kind_of))
    else:
        note_left_out(records, (*_TWITTER, *kept))
        population = _twitter_population(records, kind_of)

    for agent, own in zip(population.agents, attributes_of(records, kept), strict=True):
        agent.attributes = own

    return population


def load_posts(path: Path | str, agents: Iterable[SocialAgent]) -> list[SeedPost]:
    """Load the posts that a simulation starts from.

    Args:
        path: JSON Lines with ``author_id``, ``text`` and, if known, ``topics`` and ``post_id``.
        agents: The population; every author must be one of them.

    Raises:
        InputError: If the file is missing or malformed, an author is unknown, or two posts have the
            same id.
    """
    path = Path(path)
    authors = {agent.agent_id for agent in agents}
    with reading(path):
        records = list(read_json_lines(path))
    if not records:
        raise InputError("holds no posts", path=path)

    unique_names([each for each in records if each.fields.get("post_id") is not None], "post_id")
    posts = []
    for record in records:
        record.require_known(_POST)
        author = record.text("author_id")
        if author not in authors:
            raise record.wrong("author_id", f"no agent of the population is called {author!r}")

        text, topics = record.text("text"), tuple(record.texts("topics"))
        posts.append(SeedPost(author, text, topics, record.fields.get("post_id")))

    return posts


def _prism_agents(
    records: Sequence[Record],
    keep: Sequence[str],
    kind_of: _KindOf,
    archetypes: Mapping[str, Archetype],
) -> list[SocialAgent]:
    """Return the agents of a file in prism's own format."""
    agents = []
    ids = unique_names(records, "agent_id")
    known = frozenset(ids)
    for record, agent_id in zip(records, ids, strict=True):
        record.require_known((*_PRISM, *keep))
        following = record.texts("following")
        for followed in following:
            if followed not in known:
                raise record.wrong("following", f"no agent of this file is called {followed!r}")

        kind = record.text("archetype", "")
        with record.at("archetype"):
            archetype = archetype_named(kind, archetypes) if kind else kind_of(agent_id)

        agent = SocialAgent(
            agent_id,
            name=record.text("name", ""),
            interests=record.texts("interests", least=1),
            personality=record.text("personality", ""),
            archetype=archetype,
            following=_others(agent_id, following),
        )
        for setting in _SETTINGS:
            if record.fields.get(setting) is not None:
                with record.at(setting):
                    setattr(agent, setting, record.fields[setting])
        agents.append(agent)

    return agents


def _reddit_agents(records: Sequence[Record], kind_of: _KindOf) -> list[SocialAgent]:
    """Return the Reddit personas of a JSON array."""
    return [
        SocialAgent(
            agent_id,
            name=record.text("realname", ""),
            interests=record.texts("interested_topics", least=1),
            personality=record.text("persona", "") or record.text("bio", ""),
            archetype=kind_of(agent_id),
        )
        for record, agent_id in zip(records, _user_names(records), strict=True)
    ]


def _twitter_population(records: Sequence[Record], kind_of: _KindOf) -> Population:
    """Return a Twitter population, in which rows follow other rows."""
    for column in _TWITTER_NEEDS:
        if column not in records[0].fields:
            problem = "this column is missing from the header"
            raise InputError(problem, path=records[0].path, line=1, field=column)

    ids = _user_names(records)
    agents: list[SocialAgent] = []
    posts: list[SeedPost] = []
    for record, agent_id in zip(records, ids, strict=True):
        tweets = [text for text in _cell(record, "previous_tweets", str) if text.strip()]
        record.require_writable("previous_tweets", tweets)
        agent = SocialAgent(
            agent_id,
            name=record.text("name", ""),
            interests=_keywords(record, tweets),
            personality=record.text("user_char", "") or record.text("description", ""),
            archetype=kind_of(agent_id),
            following=_others(agent_id, _followed(record, ids)),
        )
        agents.append(agent)
        posts += [SeedPost(agent_id, text, tuple(agent.interests)) for text in tweets]

    return Population(agents, posts)


def _user_names(records: Sequence[Record]) -> list[str]:
    """Return a unique name for every record, since several may have the same user name."""
    names = [record.text("username") for record in records]
    ids = told_apart(names)
    if renamed := [told for told, name in zip(ids, names, strict=True) if told != name]:
        note(records, "repeated user names are told apart by their row", renamed)

    return ids


def _others(agent_id: str, following: Iterable[str]) -> list[str]:
    """Return whom an agent follows, each once and not itself."""
    return [name for name in dict.fromkeys(following) if name != agent_id]


def _followed(record: Record, ids: Sequence[str]) -> list[str]:
    rows = _cell(record, "following_agentid_list", int)
    for row in rows:
        if not 0 <= row < len(ids):
            problem = f"row {row} does not exist: rows are 0 to {len(ids) - 1}"
            raise record.wrong("following_agentid_list", problem)

    return [ids[row] for row in rows]


def _cell(record: Record, column: str, kind: type) -> list[Any]:
    """Return the list in a cell, written as in Python, such as ``['one', 'two']``."""
    text = record.text(column, "").strip()
    items = _read_list(text) if text else []
    if not isinstance(items, list) or not all(type(item) is kind for item in items):
        example = "[1, 2]" if kind is int else "['one', 'two']"
        raise record.wrong(column, f"must be a list such as {example}, got {text[:60]!r}")

    return items


def _read_list(text: str) -> Any:
    """Return the list in a text, which only the reader of CSV bounds; None if it is no list."""
    try:
        # takes a hundredth of the memory that Python's own parser takes
        return json.loads(text)
    except (ValueError, RecursionError):
        pass

    with warnings.catch_warnings():
        # unknown escape sequences are kept without a warning
        warnings.simplefilter("ignore")
        try:
            return ast.literal_eval(text)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return None


def _keywords(record: Record, tweets: Sequence[str]) -> list[str]:
    """Return an agent's most frequent words as its interests, since these files have none."""
    said = " ".join((record.text("description", ""), record.text("user_char", ""), *tweets))
    words = _KEYWORD.findall(said.casefold())
    counts = Counter(word for word in words if word not in _COMMON_WORDS)
    return [word for word, _ in counts.most_common(_MOST_KEYWORDS)]
