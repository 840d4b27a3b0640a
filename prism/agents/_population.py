"""Populations: the agents of a simulation and their earlier posts, made or loaded from files."""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from reprlib import repr as brief
from typing import Any

from prism.agents import tables
from prism.agents.social_agent import ARCHETYPES, Archetype, SocialAgent
from prism.agents.tables import text_of
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
# macros of character cards in place of names
_CHARACTER, _USER = (re.compile(rf"{{{{{who}}}}}", re.IGNORECASE) for who in ("char", "user"))
_NOT_PYTHON = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)


def load_population(path: Path | str, *, seed: int = 0) -> Population:
    """Load a population from a file.

    An agent without an archetype draws one in the usual proportions. The draw depends only on the
    seed and the agent's id, so a line added to a file changes no other agent.

    Fields and columns without another use become ``attributes`` of agents. A column of a CSV file
    gives numbers if all its cells are numbers, truth values if all are true or false, and texts
    otherwise; an empty cell is None among numbers and truth values. In the formats of OASIS, the
    row (counted from 0) is appended to a repeated user name: ``ann#7``. Ids may be numbers. The
    interests of an agent without any are the five most frequent long words of its persona and its
    earlier posts.

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
        records = tables.read_table(path)
    columns = tables.columns_of(records)
    if path.suffix.lower() == ".jsonl":
        tables.refuse_misspelt(path, columns, (*_COLUMNS, *_SETTINGS))
    id_name = tables.id_column(columns) or "name"
    others = [name for name in columns if name not in (*_COLUMNS, id_name)]
    ids = tables.ids_of(records, id_name)
    names = {name: name for name in ids}
    rows = {str(row): name for row, name in enumerate(ids)}
    agents: list[SocialAgent] = []
    posts: list[SeedPost] = []
    attributes = tables.attributes_of(records, others)
    for record, agent_id, values in zip(records, ids, attributes, strict=True):
        tweets = _listed(record, "previous_tweets")
        agent = _agent(record, agent_id, tweets, seed)
        followed = dict.fromkeys(_followed(record, names, rows))
        agent.following = tuple(name for name in followed if name != agent_id)
        for setting in _SETTINGS:
            if (value := values.pop(setting, None)) is not None:
                with record.at(setting):
                    setattr(agent, setting, value)
        agent.attributes = values
        agents.append(agent)
        posts += [SeedPost(agent_id, text, tuple(agent.interests)) for text in tweets]

    return Population(agents, posts)


def _agent(record: Record, agent_id: str, tweets: Sequence[str], seed: int) -> SocialAgent:
    """Return an agent with its persona, and with interests from its texts if it has none."""
    name = next(iter(_texts(record, _NAMES)), agent_id)
    about = next(filter(None, (_texts(record, columns) for columns in _PERSONAS)), [])
    interests = [topic for column in _INTERESTS for topic in _listed(record, column)]
    with record.at("archetype"):
        return SocialAgent(
            agent_id,
            name,
            interests or keywords_of("\n".join((*about, *tweets))),
            _USER.sub("the user", _CHARACTER.sub(lambda _: name, "\n".join(about))),
            archetype=text_of(record, "archetype", "") or archetype_for(agent_id, seed),
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
        if unknown := [field for field in record.fields if field not in known]:
            raise record.wrong(unknown[0], f"unknown field; known are {', '.join(known)}")
        author = text_of(record, "author_id")
        if author not in authors:
            raise record.wrong("author_id", f"no agent of the population is called {author!r}")

        topics, post_id = tuple(_listed(record, "topics")), text_of(record, "post_id", "") or None
        posts.append(SeedPost(author, record.text("text"), topics, post_id))

    return posts


def _texts(record: Record, columns: Iterable[str]) -> list[str]:
    """Return the texts of some columns, without empty ones and the last line ends."""
    texts = (text_of(record, column, "").rstrip("\n") for column in columns)
    return [text for text in texts if text.strip()]


def _followed(record: Record, names: Mapping[str, str], rows: Mapping[str, str]) -> Iterator[str]:
    """Yield the ids that an agent follows, which it may name by their rows."""
    for column, ids in (("following", names), ("following_agentid_list", rows)):
        for name in _listed(record, column):
            if name not in ids:
                raise record.wrong(column, f"none of the {len(ids)} agents of the file is {name}")
            yield ids[name]


def _listed(record: Record, column: str) -> list[str]:
    """Return the texts and numbers of a list, as texts.

    A cell may have them as Python writes a list, or separated by commas or semicolons; other text
    in place of tweets is one tweet.
    """
    value = record.fields.get(column)
    items: Any = [] if value is None else value
    if isinstance(value, str) and value.lstrip().startswith("["):
        # unknown escape sequences are kept without a warning; only the reader of CSV bounds a text
        with warnings.catch_warnings(action="ignore"), suppress(*_NOT_PYTHON):
            items = ast.literal_eval(value.strip())
    elif isinstance(value, str):
        items = [value] if column == "previous_tweets" else re.split(r"\s*[,;]\s*", value.strip())
    if not isinstance(items, list) or not {*map(type, items)} <= {int, str}:
        raise record.wrong(column, f"must be a list such as ['one', 'two'], got {brief(value)}")
    texts = [text for item in items if (text := str(item)).strip()]
    record.require_writable(column, texts)
    return texts
