"""Loading populations and posts from files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from prism.agents._archetypes import ARCHETYPES, Archetype, archetype_named
from prism.agents._kept import UniqueNames, kept_values, require_fields
from prism.agents._oasis import MOST_KEYWORDS, load_reddit, load_twitter
from prism.agents._population import Population, SeedPost, archetype_for
from prism.agents.social_agent import SocialAgent
from prism.errors import InputError
from prism.files import Record, read_json_lines, reading

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
POST_FIELDS = ("post_id", "author_id", "text", "topics")

_Loader = Callable[[Path, int, Sequence[str], Mapping[str, Archetype], int], Population]


def load_population(
    path: Path | str,
    *,
    seed: int = 0,
    keep: Iterable[str] = (),
    archetypes: Mapping[str, Archetype] = ARCHETYPES,
    most_keywords: int = MOST_KEYWORDS,
) -> Population:
    """Load a population from a file.

    An agent without an archetype draws one in the usual proportions. The draw depends only on the
    seed and the agent's id, so a line added to a file changes no other agent.

    An unknown key is refused in prism's own format, where it is probably misspelt. The formats of
    OASIS have many columns, so prism ignores unknown ones, with one warning on the standard
    library's logger ``prism.agents``. In these formats, the row (counted from 0) is appended to a
    repeated user name: ``ann#7``. People in a Twitter population who wrote no word of three letters
    have no interests.

    Args:
        path: ``.jsonl``: prism's own format, one object per line with ``PRISM_FIELDS``. ``.json``:
            Reddit personas of OASIS (camel-ai/oasis), one array. ``.csv``: a Twitter population of
            OASIS with its follow graph.
        seed: Seed for drawing archetypes.
        keep: Fields or columns to keep as `SocialAgent.attributes`. A column of a CSV file gives
            numbers if all its cells are numbers, truth values if all are true or false, and texts
            otherwise; an empty cell is None among numbers and truth values.
        archetypes: The kinds of agents by name, with their shares and thresholds.
        most_keywords: Most interests of an agent of a Twitter population, taken from its most
            frequent words.

    Returns:
        The agents in the file's order, with their earlier posts if the file has any.

    Raises:
        InputError: If the file is missing, empty, malformed or not one of the three kinds, lacks a
            field to keep, or has two agents with one id in prism's own format. The message names
            file, line and field.
    """
    path = Path(path)
    kept = list(dict.fromkeys(keep))
    loaders: dict[str, _Loader] = {
        ".jsonl": _load_prism,
        ".json": load_reddit,
        ".csv": load_twitter,
    }

    with reading(path):
        load = loaders.get(path.suffix.lower())
        if load is None:
            problem = f"must end in one of {', '.join(loaders)}, got {path.suffix!r}"
            raise InputError(problem, path=path)

        population = load(path, seed, kept, archetypes, most_keywords)

    if not population.agents:
        raise InputError("holds no agents", path=path)

    return population


def load_posts(path: Path | str, agents: Iterable[SocialAgent]) -> list[SeedPost]:
    """Load the posts that a simulation starts from.

    Args:
        path: JSON Lines with ``POST_FIELDS``; ``author_id`` and ``text`` are required.
        agents: The population; every author must be one of them.

    Raises:
        InputError: If the file is missing or malformed, an author is unknown, or two posts have the
            same id.
    """
    path = Path(path)
    authors = {agent.agent_id for agent in agents}
    ids = UniqueNames("post_id")
    posts: list[SeedPost] = []

    with reading(path):
        for record in read_json_lines(path):
            record.require_known(POST_FIELDS)
            is_named = record.fields.get("post_id") is not None
            post_id = ids.take(record) if is_named else None

            author = record.text("author_id")
            if author not in authors:
                problem = f"no agent of the population is called {author!r}"
                raise record.wrong("author_id", problem)

            text, topics = record.text("text"), tuple(record.texts("topics"))
            posts.append(SeedPost(author, text, topics, post_id))

    if not posts:
        raise InputError("holds no posts", path=path)

    return posts


def _load_prism(
    path: Path,
    seed: int,
    keep: Sequence[str],
    archetypes: Mapping[str, Archetype],
    _most_keywords: int,
) -> Population:
    agents: list[SocialAgent] = []
    records: list[Record] = []
    ids = UniqueNames("agent_id")

    for record in read_json_lines(path):
        record.require_known((*PRISM_FIELDS, *keep))
        agent = _prism_agent(record, ids.take(record), seed, archetypes)
        agent.attributes = kept_values(record, keep)
        agents.append(agent)
        records.append(record)

    require_fields(path, keep, (field for record in records for field in record.fields))

    # An agent may follow one that comes later, so this check needs the whole file.
    for record, agent in zip(records, agents, strict=True):
        for followed in agent.following:
            if followed not in ids:
                raise record.wrong("following", f"no agent of this file is called {followed!r}")

    return Population(agents)


def _prism_agent(
    record: Record, agent_id: str, seed: int, archetypes: Mapping[str, Archetype]
) -> SocialAgent:
    kind = record.text("archetype", "")
    with record.at("archetype"):
        archetype = (
            archetype_named(kind, archetypes) if kind else archetype_for(agent_id, seed, archetypes)
        )

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
