"""Loading populations and posts from files."""

import csv
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from prism.agents import ARCHETYPES, Population, SeedPost, SocialAgent, load_population, load_posts
from prism.agents._loading.personas import OASIS_REDDIT_FIELDS, PRISM_FIELDS
from prism.errors import InputError

Write = Callable[[str, str | bytes], Path]

TWITTER_HEADER = "username,following_agentid_list,previous_tweets,user_char\n"
GARDENER = 'gardener,[],[],"grows tomatoes,\npatiently"\n'
TWO_ROWS = TWITTER_HEADER + GARDENER  # on three lines
NOT_CSV = "the row from this line on is not valid CSV: "


def line(**fields: Any) -> str:
    """Write one agent of a JSON Lines file; null leaves a field out."""
    agent = {"agent_id": "a", "interests": ["tea"], **fields}
    return json.dumps({name: value for name, value in agent.items() if value is not None}) + "\n"


def person(**fields: Any) -> str:
    """Write one person of a Reddit file, on three lines."""
    return (
        json.dumps({"username": "a", "interested_topics": ["tea"], **fields}, indent=1)[:-2] + "}"
    )


def row(**cells: str) -> str:
    """Write one row of a Twitter file."""
    person = {
        "username": "b",
        "following": "[]",
        "tweets": "[]",
        "character": "bakes bread",
        **cells,
    }
    return ",".join('"' + cell.replace('"', '""') + '"' for cell in person.values()) + "\n"


def refusal(load: Callable[[Path], object], path: Path) -> InputError:
    """Return the error that loading a file ends in."""
    with pytest.raises(InputError) as caught:
        load(path)
    return caught.value


def place(error: InputError) -> tuple[str | None, int | None, str | None]:
    return error.path, error.line, error.field


def told(population: Population) -> list[Any]:
    return [(agent.agent_id, agent.archetype, agent.following) for agent in population.agents]


# Files that are as they should be.


def test_oasis_personas_load_as_they_are(data: Path) -> None:
    """The Reddit personas of OASIS give 36 agents with their own names, interests and words."""
    path = data / "oasis" / "user_data_36.json"
    population = load_population(path)
    people = json.loads(path.read_text(encoding="utf-8"))
    assert len(population.agents) == 36
    assert not population.posts
    for agent, person in zip(population.agents, people, strict=True):
        assert (agent.agent_id, agent.name) == (person["username"], person["realname"])
        assert (agent.interests, agent.personality) == (
            person["interested_topics"],
            person["persona"],
        )
        assert agent.archetype in ARCHETYPES.values()
        assert agent.following == ()


@pytest.mark.parametrize(
    ("name", "follows"),
    [("twitter.csv", [2, 1, 3, 1, 1, 1, 0, 7]), ("twitter_large.csv", [2, 1, 1])],
)
def test_twitter_populations_load_with_their_follow_graph(
    data: Path, name: str, follows: list[int]
) -> None:
    """The two shapes of OASIS's Twitter files give agents who follow each other, never themselves, and nobody twice."""
    with (data / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    agents = load_population(data / name).agents
    ids = [row["username"] for row in rows]
    assert [agent.agent_id for agent in agents] == ids
    assert [(agent.name, agent.personality) for agent in agents] == [
        (row["name"], row["user_char"]) for row in rows
    ]
    assert [len(agent.following) for agent in agents] == follows
    for agent, row in zip(agents, rows, strict=True):
        followed = {ids[number] for number in json.loads(row["following_agentid_list"])}
        assert set(agent.following) == followed - {agent.agent_id}


def test_earlier_tweets_become_posts(data: Path) -> None:
    """Tweets are posts of their authors, in order, whole also over several lines, and blank ones are none."""
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


def test_interests_are_what_someone_talks_about(write: Write) -> None:
    """Without interests in the file, the words said most often are taken, and not what only looks like a word."""
    tweets = (
        r"['Bread!\nbread\nflour https://t.co/x https://t.co/y', 'bread \u2615 flour about about']"
    )
    path = write(
        "a.csv", TWITTER_HEADER + row(tweets=tweets, character="Someone who would bake rolls.")
    )
    assert load_population(path).agents[0].interests == ["bread", "flour", "rolls"]


def test_json_lines_hold_every_field_of_an_agent(write: Write) -> None:
    """A line of prism's own format sets the persona, the archetype, the follows and the thresholds."""
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
    assert set(ann) == set(PRISM_FIELDS)
    path = write(
        "a.jsonl", json.dumps(ann) + "\n\n" + line(agent_id="bob", archetype="contributor")
    )
    first, second = load_population(path).agents
    assert (first.agent_id, first.name, first.interests, first.personality) == (
        "ann",
        "Ann",
        ["tea", "open water"],
        "calm",
    )
    assert (first.archetype, first.following) == (ARCHETYPES["superuser"], ("bob",))
    assert (first.engagement_threshold, first.timeout_threshold, first.max_history_depth) == (
        0.0,
        9,
        3,
    )
    assert (second.name, second.following, second.engagement_threshold) == ("bob", (), 0.5)


def test_a_null_field_is_an_absent_one(write: Write) -> None:
    """Every field but the id and the interests may be null, which is as good as leaving it out."""
    nothing = dict.fromkeys(set(PRISM_FIELDS) - {"agent_id", "interests"})
    bare = {"agent_id": "a", "interests": ["tea"]}
    with_nulls = load_population(write("a.jsonl", json.dumps(bare | nothing))).agents[0]
    without = load_population(write("b.jsonl", json.dumps(bare))).agents[0]
    fields = [name for name in PRISM_FIELDS if name != "following"]
    assert [getattr(with_nulls, name) for name in fields] == [
        getattr(without, name) for name in fields
    ]


def test_archetypes_are_drawn_by_seed_and_name(write: Write) -> None:
    """An archetype that the file leaves open depends on the seed and the agent's id, and on nobody else in the file."""
    many = [line(agent_id=f"a{number}") for number in range(60)]
    path = write("a.jsonl", "".join(many))
    first = told(load_population(path, seed=1))
    assert told(load_population(path, seed=1)) == first
    assert told(load_population(path, seed=2)) != first
    assert told(load_population(write("b.jsonl", "".join(many[30:])), seed=1)) == first[30:]


@pytest.mark.parametrize(
    "content", [("a.jsonl", line()), ("a.json", f"[{person()}]"), ("a.CSV", TWITTER_HEADER + row())]
)
def test_a_byte_order_mark_is_no_text(write: Write, content: tuple[str, str]) -> None:
    """Each of the three kinds of file may begin with a byte order mark, and its ending may be in capitals."""
    name, text = content
    marked, plain = (
        load_population(write(name, "\ufeff" + text)),
        load_population(write("plain" + name, text)),
    )
    assert told(marked) == told(plain)


def test_blank_rows_are_passed_over(write: Write) -> None:
    """Blank lines between and after the rows of a CSV file are no agents."""
    path = write("a.csv", TWITTER_HEADER + "\n" + GARDENER + "\r\n" + row() + "\n\n")
    assert [agent.agent_id for agent in load_population(path).agents] == ["gardener", "b"]


def test_a_path_may_be_a_text(data: Path) -> None:
    """A path may be given as text."""
    assert len(load_population(str(data / "twitter.csv")).agents) == 8


@pytest.mark.parametrize("name", ["oasis/user_data_36.json", "twitter.csv"])
def test_archetypes_of_oasis_are_drawn_by_seed(data: Path, name: str) -> None:
    """The same seed gives a file's agents the same archetypes, another seed others."""
    one, again, other = (told(load_population(data / name, seed=seed)) for seed in (1, 1, 3))
    assert one == again != other


# Files that are not.


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.yaml", "x", "must end in one of .jsonl, .json, .csv, got '.yaml'"),
        ("people", "x", "must end in one of .jsonl, .json, .csv, got ''"),
        ("a.jsonl", "", "is empty"),
        ("a.json", "", "is empty"),
        ("a.csv", "", "is empty"),
        ("a.jsonl", "\n \n", "holds no agents"),
        ("a.json", "[]", "holds no agents"),
        ("a.csv", TWITTER_HEADER, "holds no agents"),
    ],
)
def test_a_file_without_agents_is_refused(
    write: Write, name: str, content: str, problem: str
) -> None:
    """A file of another kind, or with nobody in it, is an InputError that names it."""
    path = write(name, content)
    error = refusal(load_population, path)
    assert (place(error), error.problem) == ((str(path), None, None), problem)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_a_file_that_is_not_there_is_refused(tmp_path: Path, name: str) -> None:
    """A missing file and a folder in its place are InputErrors that name it."""
    path = tmp_path / name
    assert str(refusal(load_population, path)) == f"{path}: there is no such file"
    path.mkdir()
    assert str(refusal(load_population, path)) == f"{path}: is a folder, not a file"


@pytest.mark.parametrize(
    ("content", "at", "field", "problem"),
    [
        (
            line() + '{"agent_id": "b",\n' + line(agent_id="c"),
            2,
            None,
            "is not valid JSON: Expecting property name",
        ),
        (line() + '["b"]\n', 2, None, "must be a JSON object, got an array"),
        (
            line() + "\n" + line(agent_id="b", mood="calm"),
            3,
            "mood",
            "unknown field; known are agent_id, name",
        ),
        (line() + '{"interests": ["tea"]}', 2, "agent_id", "is missing"),
        (line() + '{"agent_id": "b"}', 2, "interests", "is missing"),
        (line(interests=[]), 1, "interests", "must have at least 1 entry, got an empty list"),
        (line(interests="tea"), 1, "interests", "must be a list of non-empty texts, got 'tea'"),
        (line(interests=["\ud83d"]), 1, "interests", "holds a NUL or half a surrogate pair"),
        (line(agent_id=5), 1, "agent_id", "must be text, got 5"),
        (line(agent_id="\ud83d"), 1, "agent_id", "holds a NUL or half a surrogate pair"),
        (line(agent_id="a\0"), 1, "agent_id", "holds a NUL or half a surrogate pair"),
        (line(name=["Ann"]), 1, "name", "must be text, got ['Ann']"),
        (line(personality={}), 1, "personality", "must be text, got {}"),
        (line() + line(), 2, "agent_id", "'a' is already used on line 1"),
        (
            line() + "\n" + line(agent_id="b", following=["a", "c"]),
            3,
            "following",
            "no agent of this file is called 'c'",
        ),
        (line(following=[0]), 1, "following", "must be a list of non-empty texts, got [0]"),
        (
            line(archetype="troll"),
            1,
            "archetype",
            "archetype must be one of lurker, contributor, superuser, got 'troll'",
        ),
        (
            line(engagement_threshold=1.5),
            1,
            "engagement_threshold",
            "engagement_threshold must be a number from 0.0 to",
        ),
        (
            line(engagement_threshold="1"),
            1,
            "engagement_threshold",
            "engagement_threshold must be a number from 0.0 to",
        ),
        (
            line(engagement_threshold=float("nan")),
            1,
            "engagement_threshold",
            "engagement_threshold must be a number",
        ),
        (
            line(timeout_threshold=0),
            1,
            "timeout_threshold",
            "timeout_threshold must be a whole number from 1 on, got 0",
        ),
        (
            line(max_history_depth=True),
            1,
            "max_history_depth",
            "max_history_depth must be a whole number from 1 on",
        ),
        (line().encode() + b'{"agent_id": "\xe9"}\n', 2, None, "is not UTF-8 text"),
    ],
)
def test_json_lines_are_refused_at_line_and_field(
    write: Write, content: str | bytes, at: int, field: str | None, problem: str
) -> None:
    """What is wrong with an agent in JSON Lines is told with file, line and field."""
    path = write("a.jsonl", content)
    error = refusal(load_population, path)
    assert place(error) == (str(path), at, field)
    assert error.problem.startswith(problem)


@pytest.mark.parametrize(
    ("second", "field", "problem"),
    [
        (person(username="b", mood="calm"), "mood", "unknown field; known are realname, username"),
        ('{"interested_topics": ["tea"]}', "username", "is missing"),
        (person(username=" "), "username", "must not be empty"),
        (person(username=5), "username", "must be text, got 5"),
        (person(), "username", "'a' is already used on line 2"),
        (
            person(username="b", interested_topics=[]),
            "interested_topics",
            "must have at least 1 entry",
        ),
        (
            person(username="b", interested_topics="tea"),
            "interested_topics",
            "must be a list of non-empty texts",
        ),
        ('{"username": "b"}', "interested_topics", "is missing"),
        (person(username="b", persona=5), "persona", "must be text, got 5"),
        (person(username="b", bio=[]), "bio", "must be text, got []"),
        ("[]", None, "must be a JSON object, got an array"),
    ],
)
def test_a_reddit_file_is_refused_at_line_and_field(
    write: Write, second: str, field: str, problem: str
) -> None:
    """What is wrong with a person is told with file, field and the line on which the person begins."""
    first = person()
    path = write("a.json", f"[\n{first},\n\n  {second}]")
    error = refusal(load_population, path)
    assert place(error) == (str(path), first.count("\n") + 4, field)
    assert error.problem.startswith(problem)


def test_a_truncated_reddit_file_is_refused(data: Path, write: Write) -> None:
    """A file that breaks off is an InputError at the line where it does."""
    text = (data / "oasis" / "user_data_36.json").read_text(encoding="utf-8")
    path = write("a.json", text[: len(text) // 2])
    error = refusal(load_population, path)
    assert place(error) == (str(path), text[: len(text) // 2].count("\n") + 1, None)
    assert error.problem.startswith("is not valid JSON: ")


def test_a_reddit_file_may_leave_out_the_rest(write: Write) -> None:
    """A person needs a name and interests; the bio stands in for a persona."""
    agent = load_population(write("a.json", f"[{person(bio='calm', age=40)}]")).agents[0]
    assert (agent.name, agent.personality, agent.interests) == ("a", "calm", ["tea"])
    assert {"bio", "age"} < set(OASIS_REDDIT_FIELDS)


@pytest.mark.parametrize(
    ("cells", "field", "problem"),
    [
        ({"username": ""}, "username", "must not be empty"),
        ({"username": "gardener"}, "username", "'gardener' is already used on line 2"),
        ({"username": "b\0"}, "username", "holds a NUL or half a surrogate pair"),
        (
            {"character": "a b"},
            "user_char",
            "has no words of three letters or more from which interests could",
        ),
        (
            {"following": "[0, 3]"},
            "following_agentid_list",
            "row 3 does not exist: rows are 0 to 2",
        ),
        ({"following": "[-1]"}, "following_agentid_list", "row -1 does not exist: rows are 0 to 2"),
        ({"following": "[0"}, "following_agentid_list", "must be a list such as [1, 2], got '[0'"),
        ({"following": "0"}, "following_agentid_list", "must be a list such as [1, 2], got '0'"),
        (
            {"following": "[True]"},
            "following_agentid_list",
            "must be a list such as [1, 2], got '[True]'",
        ),
        (
            {"following": "[0.5]"},
            "following_agentid_list",
            "must be a list such as [1, 2], got '[0.5]'",
        ),
        ({"following": "['0']"}, "following_agentid_list", "must be a list such as [1, 2], got"),
        (
            {"following": "[{[]}]"},
            "following_agentid_list",
            "must be a list such as [1, 2], got '[{[]}]'",
        ),
        (
            {"following": "open('x')"},
            "following_agentid_list",
            "must be a list such as [1, 2], got",
        ),
        (
            {"following": "[" * 9_000},
            "following_agentid_list",
            "must be a list such as [1, 2], got '[[[",
        ),
        (
            {"following": "-" * 90_000 + "1"},
            "following_agentid_list",
            "must be a list such as [1, 2], got '---",
        ),
        (
            {"following": "[" + "1" * 5_000 + "]"},
            "following_agentid_list",
            "must be a list such as [1, 2], got '[111",
        ),
        ({"tweets": "['one', 2]"}, "previous_tweets", "must be a list such as ['one', 'two'], got"),
        ({"tweets": "one"}, "previous_tweets", "must be a list such as ['one', 'two'], got 'one'"),
        ({"tweets": r"['\ud83d']"}, "previous_tweets", "holds a NUL or half a surrogate pair"),
        ({"tweets": r"['\x00']"}, "previous_tweets", "holds a NUL or half a surrogate pair"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_twitter_file_is_refused_at_line_and_column(
    write: Write, cells: dict[str, str], field: str, problem: str
) -> None:
    """What is wrong with a row is told with file, column and the line on which the row begins."""
    path = write("a.csv", TWO_ROWS + row(**cells) + row(username="c"))
    error = refusal(load_population, path)
    assert place(error) == (str(path), 4, field)
    assert error.problem.startswith(problem)


@pytest.mark.parametrize(
    ("content", "at", "field", "problem"),
    [
        (TWITTER_HEADER.replace("user_char", "bio"), 1, "bio", "unknown field; known are "),
        (
            TWITTER_HEADER.replace(",user_char", ""),
            1,
            "user_char",
            "this column is missing from the header",
        ),
        (
            TWITTER_HEADER.replace("username,", ""),
            1,
            "username",
            "this column is missing from the header",
        ),
        (
            TWITTER_HEADER.replace("user_char", "user_char,username"),
            1,
            "username",
            "this column is there twice",
        ),
        ("\ufeff", 1, "username", "this column is missing from the header"),
        ('"username\n' + TWITTER_HEADER, 1, None, NOT_CSV),
        (TWO_ROWS + "b,[],[]\n", 4, None, "has 3 cells, but the header has 4"),
        (TWO_ROWS + "b,[],[],bakes,bread\n", 4, None, "has 5 cells, but the header has 4"),
        (
            TWO_ROWS + 'b,[],[],"bakes\nbread\n\nc,[],[],rolls\n',
            4,
            None,
            NOT_CSV + "unexpected end of data",
        ),
        (TWO_ROWS + 'b,[],[],"bakes" bread\n', 4, None, NOT_CSV),
        (
            TWO_ROWS + row(character="x" * 16_000_001),
            4,
            None,
            NOT_CSV + "field larger than field limit",
        ),
        (TWO_ROWS.encode() + b"caf\xe9,[],[],bakes\n", 4, None, "is not UTF-8 text"),
        (TWO_ROWS.encode("utf-16"), 1, None, "is not UTF-8 text"),
    ],
    ids=lambda value: str(value)[-40:] if isinstance(value, str) else None,
)
def test_a_broken_csv_file_is_refused(
    write: Write, content: str | bytes, at: int, field: str | None, problem: str
) -> None:
    """A header or row that is broken is told with file and line, where an open quote begins and not where it ends."""
    path = write("a.csv", content)
    error = refusal(load_population, path)
    assert place(error) == (str(path), at, field)
    assert error.problem.startswith(problem)


@pytest.mark.parametrize("rest", ["", "c,[]\n"])
def test_loading_leaves_the_csv_module_as_it_was(write: Write, rest: str) -> None:
    """The limit that all users of the csv module share is the same after loading, whether it fails or not."""
    path = write("a.csv", TWO_ROWS + row(character="bakes bread " * 200) + rest)
    before = csv.field_size_limit(1_000)
    with pytest.raises(InputError) if rest else nullcontext():
        load_population(path)
    assert csv.field_size_limit(before) == 1_000


# Posts.

AUTHORS = [SocialAgent("ann"), SocialAgent("bob")]


def posts(path: Path) -> list[SeedPost]:
    return load_posts(path, AUTHORS)


def test_posts_load_in_order(write: Write) -> None:
    """A post needs author and text; topics and an id may be there, and null is as good as absent."""
    path = write(
        "posts.jsonl",
        '{"author_id": "bob", "text": "tea\\nis on", "topics": ["tea"], "post_id": "p1"}\n\n'
        '{"author_id": "ann", "text": "hello"}\n'
        '{"author_id": "ann", "text": "hello", "topics": null, "post_id": null}\n',
    )
    assert posts(path) == [
        SeedPost("bob", "tea\nis on", ("tea",), "p1"),
        *[SeedPost("ann", "hello")] * 2,
    ]


@pytest.mark.parametrize(
    ("second", "field", "problem"),
    [
        (
            '{"author_id": "eve", "text": "x"}',
            "author_id",
            "no agent of the population is called 'eve'",
        ),
        (
            '{"author_id": "ann", "text": "x", "post_id": "p1"}',
            "post_id",
            "'p1' is already used on line 1",
        ),
        ('{"author_id": "ann", "text": "x", "post_id": ""}', "post_id", "must not be empty"),
        ('{"author_id": "ann", "text": "x", "post_id": 5}', "post_id", "must be text, got 5"),
        ('{"author_id": "ann"}', "text", "is missing"),
        ('{"author_id": "ann", "text": ""}', "text", "must not be empty"),
        (
            '{"author_id": "ann", "text": "\\ud83d"}',
            "text",
            r"holds a NUL or half a surrogate pair: '\ud83d'",
        ),
        ('{"text": "x"}', "author_id", "is missing"),
        (
            '{"author_id": "ann", "text": "x", "topics": "tea"}',
            "topics",
            "must be a list of non-empty texts, got 'tea'",
        ),
        (
            '{"author_id": "ann", "text": "x", "likes": 3}',
            "likes",
            "unknown field; known are post_id, author_id",
        ),
        ('{"author_id": "ann", ', None, "is not valid JSON: "),
        ("3", None, "must be a JSON object, got a number"),
    ],
)
def test_posts_are_refused_at_line_and_field(
    write: Write, second: str, field: str | None, problem: str
) -> None:
    """What is wrong with a post is told with file, line and field."""
    path = write(
        "posts.jsonl", f'{{"author_id": "bob", "text": "x", "post_id": "p1"}}\n\n{second}\n'
    )
    error = refusal(posts, path)
    assert place(error) == (str(path), 3, field)
    assert error.problem.startswith(problem)


@pytest.mark.parametrize(("content", "problem"), [("", "is empty"), ("\n\n", "holds no posts")])
def test_a_file_without_posts_is_refused(write: Write, content: str, problem: str) -> None:
    """A posts file with nothing in it is an InputError that names it, and so is one that is not there."""
    path = write("posts.jsonl", content)
    assert str(refusal(posts, path)) == f"{path}: {problem}"
    path.unlink()
    assert str(refusal(posts, path)) == f"{path}: there is no such file"
