"""Populations: made up, and in files of prism, of OASIS, and of other projects."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.agents import (
    ARCHETYPES,
    Population,
    SeedPost,
    SocialAgent,
    load_population,
    load_posts,
    opening_posts,
    synthetic_population,
)


def contents_of(population: Population) -> list[Any]:
    """Return what is drawn for a population's agents, and their posts."""
    names = ("agent_id", "interests", "archetype", "following")
    return [
        [[getattr(each, name) for name in names] for each in population.agents],
        [*population.posts],
    ]


def test_a_seed_fixes_the_population() -> None:
    """The same seed gives the same population, another seed a different one in every field."""
    one, again, other = (synthetic_population(150, seed=seed) for seed in (7, 7, 8))
    assert contents_of(one) == contents_of(again)
    for name in ("interests", "archetype", "following"):
        assert [getattr(a, name) for a in one.agents] != [getattr(a, name) for a in other.agents]
    assert [post.topics for post in one.posts] != [post.topics for post in other.posts]


@pytest.mark.parametrize("size", [1, 2, 99, 100, 101, 250])
def test_a_population_is_well_formed(size: int) -> None:
    """Ids are unique, follows exist, and every agent has interests and a post on one of them."""
    population = synthetic_population(size, seed=1)
    ids = {agent.agent_id for agent in population.agents}
    assert len(population.agents) == len(ids) == size
    for agent, post in zip(population.agents, population.posts, strict=True):
        assert 1 <= len(agent.interests) == len(set(agent.interests))
        assert set(agent.following) <= ids - {agent.agent_id}
        assert len(set(agent.following)) == len(agent.following)
        assert post.author_id == agent.agent_id
        assert post.topics[0] in agent.interests
        assert post.topics[0] in post.text


def test_opening_posts_are_of_agents_with_interests() -> None:
    """Each agent with interests gets one post, which depends only on the seed and its id."""
    tea, music = (SocialAgent(name[0], interests=[name]) for name in ("tea", "music"))
    nothing = SocialAgent("b")
    posts = opening_posts([tea, nothing, music], seed=4)
    assert [(post.author_id, post.topics) for post in posts] == [("t", ("tea",)), ("m", ("music",))]
    assert all(isinstance(post, SeedPost) and post.post_id is None for post in posts)
    assert opening_posts([music], seed=4) == posts[1:]


Write = Callable[[str, str | bytes], Path]


def line(**fields: Any) -> str:
    """Return one line of a JSON Lines file; a field that is None is left out."""
    agent = {"agent_id": "a", "interests": ["tea"], **fields}
    return json.dumps({name: value for name, value in agent.items() if value is not None}) + "\n"


def kinds(population: Population) -> list[Any]:
    """Return the id, archetype and follows of each agent."""
    return [(agent.agent_id, agent.archetype, agent.following) for agent in population.agents]


def test_json_lines_set_every_field_of_an_agent(write: Write) -> None:
    """A line of prism's own format sets persona, archetype, follows and thresholds."""
    ann = {
        "agent_id": "ann",
        "name": "Ann",
        "interests": ["tea", "open water"],
        "personality": "calm",
        "archetype": "superuser",
        "following": ["bob", "ann", "bob"],
        "engagement_threshold": 0,
        "timeout_threshold": 9,
        "max_history_depth": 3,
    }
    path = write(
        "a.jsonl", json.dumps(ann) + "\n\n" + line(agent_id="bob", archetype="contributor")
    )
    first, second = load_population(path).agents
    given = {name: getattr(first, name) for name in ann}
    assert given == {**ann, "archetype": ARCHETYPES["superuser"], "following": ("bob",)}
    assert (second.name, second.following, second.engagement_threshold) == ("bob", (), 0.5)


def test_archetypes_are_drawn_by_seed_and_name(write: Write) -> None:
    """An archetype that is not in the file depends only on the seed and the agent's id."""
    many = [line(agent_id=f"a{number}") for number in range(60)]
    path = write("a.jsonl", "".join(many))
    first = kinds(load_population(path, seed=1))
    assert kinds(load_population(path, seed=1)) == first
    assert kinds(load_population(path, seed=2)) != first
    assert kinds(load_population(write("b.jsonl", "".join(many[30:])), seed=1)) == first[30:]


def test_posts_load_in_order(write: Write) -> None:
    """A post needs author and text; topics and id are optional, and null counts as absent."""
    path = write(
        "posts.jsonl",
        '{"author_id": "bob", "text": "tea\\nis on", "topics": ["tea"], "post_id": "p1"}\n\n'
        '{"author_id": "ann", "text": "hello"}\n'
        '{"author_id": "ann", "text": "hello", "topics": null, "post_id": null}\n',
    )
    assert load_posts(path, [SocialAgent("ann"), SocialAgent("bob")]) == [
        SeedPost("bob", "tea\nis on", ("tea",), "p1"),
        *[SeedPost("ann", "hello")] * 2,
    ]


def test_reddit_personas_load(data: Path) -> None:
    """The 36 Reddit personas of OASIS load with their names, interests and personalities."""
    path = data / "oasis" / "user_data_36.json"
    population = load_population(path)
    people = json.loads(path.read_text(encoding="utf-8"))
    assert len(population.agents) == 36
    assert not population.posts
    for agent, person in zip(population.agents, people, strict=True):
        assert (agent.agent_id, agent.name) == (person["username"], person["realname"])
        assert agent.interests == person["interested_topics"]
        assert agent.personality == person["persona"]
        assert agent.archetype in ARCHETYPES.values()
        assert agent.following == ()


def test_a_twitter_population_loads_with_its_follow_graph(data: Path) -> None:
    """It has its follows, without self-follows and duplicates."""
    path = data / "twitter.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    agents = load_population(path).agents
    ids = [row["username"] for row in rows]
    assert [agent.agent_id for agent in agents] == ids
    assert [(agent.name, agent.personality) for agent in agents] == [
        (row["name"], row["user_char"]) for row in rows
    ]
    assert [len(agent.following) for agent in agents] == [2, 1, 3, 1, 1, 1, 0, 7]
    for agent, row in zip(agents, rows, strict=True):
        followed = {ids[number] for number in json.loads(row["following_agentid_list"])}
        assert set(agent.following) == followed - {agent.agent_id}


def test_earlier_tweets_become_posts(data: Path) -> None:
    """Tweets become posts of their authors, in order and over several lines; blank ones do not."""
    population = load_population(data / "twitter.csv")
    texts = [(post.author_id, post.text) for post in population.posts]
    assert texts[:2] == [
        ("gardener_one", "Tomatoes are early this year.\nThe marrows are not."),
        ("gardener_one", "Compost, compost, compost!"),
    ]
    assert [text for author, text in texts if author == "baker_one"] == [
        "Sourdough, day one.",
        "Sourdough, day two:\n- flour\n- water\n- patience",
    ]
    interests = {agent.agent_id: tuple(agent.interests) for agent in population.agents}
    assert all(post.topics == interests[post.author_id] for post in population.posts)


def test_a_foreign_population_loads(data: Path) -> None:
    """A file with the peculiarities of published ones loads."""
    path = data / "twitter_foreign.csv"
    agents = load_population(path).agents
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    ids = [agent.agent_id for agent in agents]
    assert [name.partition("#")[0] for name in ids] == [row["username"] for row in rows]
    assert [name for name in ids if "#" in name] == ["twin#5", "twin#9"]
    for number, (agent, row) in enumerate(zip(agents, rows, strict=True)):
        followed = dict.fromkeys(json.loads(row["following_agentid_list"]))
        assert agent.following == tuple(ids[other] for other in followed if other != number)
        assert agent.personality == row["user_char"]
        assert agent.attributes["user_id"] == int(row["user_id"])

    without = [agent.agent_id for agent in agents if not agent.interests]
    assert without == ["balloonist", "number", "silent", "emoji"]


CARD = {
    **{"name": "Ida", "description": "{{char}} keeps bees. {{user}} buys honey from {{Char}}."},
    **{"personality": "patient", "scenario": "A market.", "first_mes": "Hello.", "tags": ["bees"]},
}


def loaded(path: Path) -> list[tuple[str, str, str, list[str]]]:
    """Return id, name, personality and interests of each agent."""
    agents: Any = load_population(path).agents
    return [(each.agent_id, each.name, each.personality, each.interests) for each in agents]


def test_a_population_of_oasis_needs_no_follows_tweets_or_topics(write: Write) -> None:
    """Interests are then the frequent words of persona and tweets, and nobody follows anybody."""
    path = write(
        "a.csv",
        "user_id,name,username,user_char,description,previous_tweets\n"
        '1,user_9,user9,"Beach walker, avid reader. I blog about books.",Beach walker.,\n'
        "2,user_8,user8,,,\"['A tulip.', 'More tulip.']\"\n",
    )
    agent, other = load_population(path).agents
    assert (agent.name, agent.following) == ("user_9", ())
    assert agent.interests == ["beach", "walker", "reader", "books"]
    assert other.interests == ["tulip"]


def test_a_persona_without_topics_has_those_of_its_text(write: Write) -> None:
    """A Reddit persona of MiroFish has a name, and its topics may be missing or empty."""
    people = [
        {"username": "lena_1", "name": "Lena Berg", "persona": "Calm.", "karma": 1000},
        {"username": "wang_2", "name": "王小明", "persona": "踢足球。", "interested_topics": []},
        {"username": "hall_3", "name": "City Hall", "bio": "B.", "interested_topics": ["Roads"]},
    ]
    assert loaded(write("a.json", json.dumps(people))) == [
        ("lena_1", "Lena Berg", "Calm.", []),
        ("wang_2", "王小明", "踢足球。", ["踢足球"]),
        ("hall_3", "City Hall", "B.", ["Roads"]),
    ]


MAPPING = {
    "ann": {"persona": "Grows apples.", "interests": ["fruit"]},
    "Bo Example": "Repairs clocks.",
    "researcher": {"role": "Analyst\n", "goal": "Uncover developments\n", "backstory": "Seasoned."},
}


@pytest.mark.parametrize("name", ["a.json", "a.yaml", "a.yml"])
def test_a_mapping_of_names_is_a_population(name: str, write: Write) -> None:
    """Names have the fields of an agent or its description, in JSON and in YAML."""
    assert loaded(write(name, json.dumps(MAPPING, indent=1))) == [
        ("ann", "ann", "Grows apples.", ["fruit"]),
        ("Bo Example", "Bo Example", "Repairs clocks.", ["repairs", "clocks"]),
        (
            "researcher",
            "researcher",
            "Analyst\nUncover developments\nSeasoned.",
            ["analyst", "uncover", "developments", "seasoned"],
        ),
    ]


@pytest.mark.parametrize(
    "document",
    [
        CARD,
        {"spec": "chara_card_v2", "spec_version": "2.0", "data": CARD},
        {"spec": "chara_card_v3", "spec_version": "3.0", "data": CARD},
        [{"spec": "chara_card_v2", "spec_version": "2.0", "data": CARD}],
    ],
    ids=["version 1", "version 2", "version 3", "list"],
)
def test_a_character_card_is_an_agent(document: Any, write: Write) -> None:
    """Its description, personality and scenario are the persona, its tags the interests."""
    persona = "Ida keeps bees. the user buys honey from Ida.\npatient\nA market."
    assert loaded(write("card.json", json.dumps(document))) == [("Ida", "Ida", persona, ["bees"])]


@pytest.mark.parametrize(
    ("name", "text", "agents"),
    [
        ("a.csv", "id,name,age\n007,Ann,3\n", [("007", "Ann", {"age": 3})]),
        ("a.json", '[{"id": 7, "name": "Ann"}]', [("7", "Ann", {})]),
        ("a.csv", ",,id,username,name\n0,0,7,ann,Ann\n", [("ann", "Ann", {"id": 7})]),
        ("a.csv", "agent_id,username\n7,ann\n", [("7", "7", {"username": "ann"})]),
    ],
)
def test_the_first_column_of_names_is_the_id(
    name: str, text: str, agents: list[Any], write: Write
) -> None:
    """It is ``agent_id``, ``username`` or ``id``; others become attributes if they have a name."""
    population = load_population(write(name, text))
    assert [(each.agent_id, each.name, each.attributes) for each in population.agents] == agents


@pytest.mark.parametrize("cell", ["['tea', 'open water']", "tea; open water,"])
def test_a_table_lists_topics_in_a_cell(cell: str, write: Write) -> None:
    """As Python writes a list, or separated by commas or semicolons; a tweet may stand alone."""
    path = write("a.csv", f'username,interests,previous_tweets\na,"{cell}","Tea, at last"\n')
    population = load_population(path)
    assert population.agents[0].interests == ["tea", "open water"]
    assert [post.text for post in population.posts] == ["Tea, at last"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '[{"id": 1, "following": [2, "2"]}, {"id": 2}]'),
        ("a.json", '[{"name": 1, "following": [2]}, {"name": 2}]'),
        ("a.jsonl", '{"agent_id": 1, "following": [2]}\n{"agent_id": "2"}'),
        ("a.csv", "agent_id,following\n1,[2]\n2,\n"),
        ("a.csv", "id,following\n1,2\n2,\n"),
    ],
)
def test_ids_may_be_numbers_wherever_they_stand(name: str, text: str, write: Write) -> None:
    """An agent follows another by its number, and a post names its author and itself by one."""
    agents = load_population(write(name, text)).agents
    assert [(each.agent_id, each.following) for each in agents] == [("1", ("2",)), ("2", ())]
    path = write("posts.jsonl", '{"author_id": 2, "text": "Hm.", "post_id": 7}')
    assert load_posts(path, agents) == [SeedPost("2", "Hm.", (), "7")]


HEADER = "username,following_agentid_list,previous_tweets,user_char"


def table(column: list[str]) -> str:
    """Return a Twitter population with one more column, ``x``."""
    rows = [f'agent{row},[],[],bread,"{cell}"' for row, cell in enumerate(column)]
    return "\n".join([f"{HEADER},x", *rows]) + "\n"


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (["1", "-20", "0"], [1, -20, 0]),
        (["1", " 2 ", ""], [1, 2, None]),
        (["1", "0.5", "2e3"], [1, 0.5, 2000.0]),
        (["True", "false", ""], [True, False, None]),
        (["1", "two", ""], ["1", "two", ""]),
        (["007", "1"], ["007", "1"]),
        (["1", "True"], ["1", "True"]),
        (["", ""], ["", ""]),
        (["nan", "1"], ["nan", "1"]),
        (["[1, 2]"], ["[1, 2]"]),
        (["\u0661", "1"], ["\u0661", "1"]),
    ],
)
def test_a_column_has_one_type(column: list[str], values: list[Any], write: Write) -> None:
    """A column is numbers or truth values if it has nothing else, and texts if it has."""
    population = load_population(write("a.csv", table(column)))
    read = [agent.attributes for agent in population.agents]
    assert read == [{"x": value} for value in values]
    assert [type(found["x"]) for found in read] == [type(value) for value in values]


def test_a_table_may_have_tabs(write: Write) -> None:
    """A file of tab-separated values has lists, numbers and truth values as one with commas."""
    rows = ("agent_id\tinterests\tage\ttimeout_threshold", "ann\ttea, chess\t31\t9", "bo\ttea\t\t")
    ann, bo = load_population(write("a.tsv", "\n".join(rows))).agents
    assert (ann.interests, ann.attributes) == (["tea", "chess"], {"age": 31})
    assert ann.timeout_threshold == 9 != bo.timeout_threshold
    assert bo.attributes == {"age": None}
