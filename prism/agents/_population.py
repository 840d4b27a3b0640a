"""Populations: the agents of a simulation and their earlier posts, made or loaded from files."""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from prism.agents.social_agent import ARCHETYPES, Archetype, SocialAgent
from prism.agents.tables import (
    attributes_of,
    columns_of,
    id_column,
    ids_of,
    read_table,
    refuse_misspelt,
)
from prism.agents.words import keywords_of
from prism.errors import FieldValueError, InputError
from prism.files import Record, read_json_lines, reading
from prism.randomness import RandomStream

TOPICS = (
    *("climate", "cooking", "economics", "education", "football", "gaming", "gardening", "health"),
    *("literature", "movies", "music", "politics", "science", "technology", "travel"),
)
"""Interests of synthetic agents."""


_COMMUNITY = 100
_MOST_INTERESTS = 3
_FEWEST_FOLLOWS, _MOST_FOLLOWS = 2, 12
_HUB_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class SeedPost:
    """A post from before the simulation.

    Args:
        author_id: Id of its author.
        text: Its text.
        topics: Its topics.
        post_id: Its id; if missing, the simulation makes one.
    """

    author_id: str
    text: str
    topics: tuple[str, ...] = ()
    post_id: str | None = None


@dataclass(frozen=True, slots=True)
class Population:
    """Agents and their earlier posts.

    Args:
        agents: The agents, in the order in which they act.
        posts: Their earlier posts, oldest first.
    """

    agents: Sequence[SocialAgent]
    posts: Sequence[SeedPost] = ()


def synthetic_population(size: int, *, seed: int = 0) -> Population:
    """Generate a population with communities, archetypes, interests and a follow graph.

    Every hundred agents form a community with its own topics, so feeds are as busy in a large
    population as in a small one. Half of all follows go to contributors and superusers of the
    community, the others to any agent anywhere. A few agents therefore have many followers, as in
    real networks. Every agent has one earlier post on one of its interests.

    Args:
        size: Number of agents, from 1 on.
        seed: The same seed gives the same population.

    Raises:
        FieldValueError: If the size is below 1.
    """
    if size < 1:
        raise FieldValueError(f"a population needs at least one agent, got {size}")

    width = max(4, len(str(size)))
    ids = [f"agent_{number:0{width}}" for number in range(1, size + 1)]
    draw = random.Random(f"population {seed}")
    agents: list[SocialAgent] = []
    for start in range(0, size, _COMMUNITY):
        members = ids[start : start + _COMMUNITY]
        kinds = {agent_id: archetype_for(agent_id, seed) for agent_id in members}
        hubs = [each for each, kind in kinds.items() if kind.name != "lurker"] or members
        suffix = f" {start // _COMMUNITY + 1}" if start else ""
        topics = [topic + suffix for topic in TOPICS]

        agents += [
            SocialAgent(
                agent_id,
                interests=draw.sample(topics, draw.randint(1, _MOST_INTERESTS)),
                personality=f"A typical {kind.name}.",
                archetype=kind,
                following=sorted(_follows(draw, hubs, ids) - {agent_id}),
            )
            for agent_id, kind in kinds.items()
        ]

    return Population(agents, opening_posts(agents, seed=seed))


def _follows(draw: random.Random, hubs: Sequence[str], ids: Sequence[str]) -> set[str]:
    """Draw whom an agent follows, perhaps itself."""
    return {
        draw.choice(hubs if draw.random() < _HUB_SHARE else ids)
        for _ in range(draw.randint(_FEWEST_FOLLOWS, _MOST_FOLLOWS))
    }


def opening_posts(agents: Iterable[Any], *, seed: int = 0) -> list[SeedPost]:
    """Return one post of each agent on one of its interests, for a population without posts.

    Args:
        agents: The authors, in order; an agent without interests has no post.
        seed: The same seed gives the same posts.
    """
    posts = []
    for agent in agents:
        if agent.interests:
            stream = RandomStream(seed, agent.agent_id, "post")
            topic = agent.interests[stream.index(len(agent.interests))]
            text = f"What I have been thinking about {topic} lately."
            posts.append(SeedPost(agent.agent_id, text, (topic,)))

    return posts


def archetype_for(agent_id: str, seed: int) -> Archetype:
    """Draw the archetype of an agent in the archetypes' proportions.

    The draw depends only on the seed and the agent's id.
    """
    stream, kinds = RandomStream(seed, agent_id, "archetype"), list(ARCHETYPES.values())
    return kinds[stream.weighted_index([kind.share for kind in kinds])]


# Files

_SETTINGS = ("engagement_threshold", "timeout_threshold", "max_history_depth")
_NAMES = ("name", "realname")
_INTERESTS = ("interests", "interested_topics", "tags")
# of OASIS (Reddit, Twitter), of CrewAI, of prism and character cards
_PERSONAS = (
    ("persona",),
    ("user_char",),
    ("bio",),
    ("role", "goal", "backstory"),
    ("description", "personality", "scenario"),
)
_COLUMNS = (
    *("agent_id", "archetype", "following", "following_agentid_list", "previous_tweets"),
    *(*_NAMES, *_INTERESTS, *(column for columns in _PERSONAS for column in columns)),
)
_MACRO = re.compile(r"\{\{(char|user)\}\}", re.IGNORECASE)
_NOT_PYTHON = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)


def load_population(path: Path | str, *, seed: int = 0) -> Population:
    """Load a population from a file.

    An agent without an archetype draws one in the usual proportions. The draw depends only on the
    seed and the agent's id, so a line added to a file changes no other agent.

    Fields and columns without another use become ``attributes`` of agents. A column of a CSV file
    gives numbers if all its cells are numbers, truth values if all are true or false, and texts
    otherwise; an empty cell is None among numbers and truth values. In the formats of OASIS, the
    row (counted from 0) is appended to a repeated user name: ``ann#7``, as a note on the standard
    library's logger ``prism.agents`` says. The interests of an agent without any are the five most
    frequent long words of its persona and its earlier posts.

    Args:
        path: ``.jsonl``: prism's own format, one object per line with ``agent_id`` and, if known,
            ``name``, ``interests``, ``personality``, ``archetype``, ``following``,
            ``engagement_threshold``, ``timeout_threshold`` and ``max_history_depth``. ``.json``:
            Reddit personas of OASIS (camel-ai/oasis) or MiroFish, one array; a mapping of names to
            such objects or to descriptions; or a character card. ``.yaml``: such a mapping.
            ``.csv``: a Twitter population of OASIS, with its follow graph if it has one.
        seed: Seed for drawing archetypes.

    Returns:
        The agents in the file's order, with their earlier posts if the file has any.

    Raises:
        InputError: If the file is missing, empty, malformed or of another kind, or in prism's own
            format has two agents with one id, or a field that is nearly the name of another. The
            message names file, line and field.
    """
    path = Path(path)
    with reading(path):
        records = read_table(path)
    columns = columns_of(records)
    if path.suffix.lower() == ".jsonl":
        refuse_misspelt(path, columns, (*_COLUMNS, *_SETTINGS))
    id_name = id_column(columns) or "name"
    others = [name for name in columns if name not in (*_COLUMNS, id_name)]
    ids = ids_of(records, id_name)
    names = frozenset(ids)
    agents: list[SocialAgent] = []
    posts: list[SeedPost] = []
    for record, agent_id, values in zip(records, ids, attributes_of(records, others), strict=True):
        tweets = _listed(record, "previous_tweets")
        agent = _agent(record, agent_id, tweets, seed)
        followed = dict.fromkeys(_followed(record, ids, names))
        agent.following = tuple(name for name in followed if name != agent_id)
        for setting in _SETTINGS:
            if (value := values.pop(setting, None)) is not None:
                with record.at(setting):
                    setattr(agent, setting, value)
        agent.attributes = values
        agents.append(agent)
        topics = tuple(agent.interests)
        posts += [SeedPost(agent_id, text, topics) for text in tweets]

    return Population(agents, posts)


def _agent(record: Record, agent_id: str, tweets: Sequence[str], seed: int) -> SocialAgent:
    """Return an agent with its persona, and with interests from its texts if it has none."""
    kind = record.text("archetype", "")
    name = next(iter(_texts(record, _NAMES)), agent_id)
    about = next(filter(None, (_texts(record, columns) for columns in _PERSONAS)), [])
    interests = [topic for column in _INTERESTS for topic in _topics(record, column)]
    # a character card has macros in place of names
    names = {"char": name, "user": "the user"}
    with record.at("archetype"):
        return SocialAgent(
            agent_id,
            name,
            interests or keywords_of("\n".join((*about, *tweets))),
            _MACRO.sub(lambda macro: names[macro[1].lower()], "\n".join(about)),
            archetype=kind or archetype_for(agent_id, seed),
        )


def load_posts(path: Path | str, agents: Iterable[Any]) -> list[SeedPost]:
    """Load the posts that a simulation starts from.

    Args:
        path: JSON Lines with ``author_id``, ``text`` and, if known, ``topics`` and ``post_id``.
        agents: The population; every author must be one of them.

    Raises:
        InputError: If the file is missing or malformed, or an author or a field is unknown.
    """
    path = Path(path)
    authors = {agent.agent_id for agent in agents}
    with reading(path):
        records = list(read_json_lines(path))
    if not records:
        raise InputError("holds no posts", path=path)

    posts, known = [], [field.name for field in fields(SeedPost)]
    for record in records:
        for field in record.fields:
            if field not in known:
                raise record.wrong(field, f"unknown field; known are {', '.join(known)}")
        author = record.text("author_id")
        if author not in authors:
            raise record.wrong("author_id", f"no agent of the population is called {author!r}")

        topics, post_id = tuple(_listed(record, "topics")), record.text("post_id", "") or None
        posts.append(SeedPost(author, record.text("text"), topics, post_id))

    return posts


def _texts(record: Record, columns: Iterable[str]) -> list[str]:
    """Return the texts of some columns, without empty ones and the last line ends."""
    texts = (record.text(column, "").rstrip("\n") for column in columns)
    return [text for text in texts if text.strip()]


def _topics(record: Record, column: str) -> list[str]:
    """Return a list of topics, which a cell may also separate by commas or semicolons."""
    cell = record.fields.get(column)
    if not isinstance(cell, str) or cell.lstrip().startswith("["):
        return _listed(record, column)
    return [topic for each in re.split("[,;]", record.text(column, "")) if (topic := each.strip())]


def _followed(record: Record, ids: Sequence[str], agents: Set[str]) -> list[str]:
    """Return the ids that an agent follows, and those of the rows that it follows."""
    names, rows = _listed(record, "following"), _listed(record, "following_agentid_list", int)
    for name in names:
        if name not in agents:
            raise record.wrong("following", f"no agent of this file is called {name!r}")
    for row in rows:
        if not 0 <= row < len(ids):
            problem = f"row {row} does not exist: rows are 0 to {len(ids) - 1}"
            raise record.wrong("following_agentid_list", problem)
    return [*names, *(ids[row] for row in rows)]


def _listed(record: Record, column: str, kind: type = str) -> list[Any]:
    """Return a list, also of a text in which it is written as in Python; empty if missing."""
    value = record.fields.get(column)
    items = [] if value is None else value
    if isinstance(items, str):
        # unknown escape sequences are kept without a warning; only the reader of CSV bounds a text
        with warnings.catch_warnings(action="ignore"), suppress(*_NOT_PYTHON):
            items = ast.literal_eval(items.strip() or "[]")
    if not isinstance(items, list) or not all(type(item) is kind for item in items):
        example = "[1, 2]" if kind is int else "['one', 'two']"
        raise record.wrong(column, f"must be a list such as {example}, got {brief(value)}")
    if kind is str:
        record.require_writable(column, items)
        items = [item for item in items if item.strip()]
    return items
