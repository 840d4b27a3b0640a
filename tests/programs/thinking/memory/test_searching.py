"""Searching memories by words."""

import random
import sqlite3
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prism.programs.thinking._memory._search import forms_of, words_of

from prism.programs.thinking import Memory

FACTS = {
    "alice": "adventurous, nature-loving, 25 years old",
    "bob": "a friend of Alice, afraid of water",
    "plot_chapter_1": "Alice discovers a mysterious letter in the attic",
    "plot_chapter_2": "Bob and Alice follow the map",
    "place": {"name": "Été", "near": ["the sea", "猫の島"]},
    "weather": "rain",
}


@pytest.fixture
def memory() -> Memory:
    """Return a memory with some facts in storage."""
    return Memory.in_memory({"storage": FACTS})


def tags(memory: Memory, text: str, most: int = 10) -> list[str]:
    """Return the tags that a search finds."""
    return [match.tag for match in memory.search(text, most)]


def test_ranking(memory: Memory) -> None:
    """Tags count more than values, rare words more than frequent ones, short texts more."""
    assert tags(memory, "alice")[0] == "alice"
    assert tags(memory, "mysterious alice")[0] == "plot_chapter_1"
    assert tags(memory, "plot chapter 2")[0] == "plot_chapter_2"
    assert tags(memory, "RAIN") == ["weather"]


def test_words_inside_data_accents_and_scripts_without_blanks(memory: Memory) -> None:
    """Words of other JSON data, without their accents, and single letters of Japanese are found."""
    assert tags(memory, "ete") == tags(memory, "ÉTÉ") == tags(memory, "猫") == ["place"]
    assert memory.search("sea", 1)[0].value == FACTS["place"]


def test_only_storage_is_searched(memory: Memory) -> None:
    """Working memory is searched by nobody: the agent sees it."""
    memory.add("sun", "sunshine")
    assert tags(memory, "sunshine") == []
    memory.save("sun")
    assert tags(memory, "sunshine") == ["sun"]
    memory.save("sun", "clouds")
    assert (tags(memory, "sunshine"), tags(memory, "clouds")) == ([], ["sun"])


@pytest.mark.parametrize(
    "text",
    [
        *('"', "'", "*", "a* OR b", "NEAR(a b)", "tag:alice", "AND", "-alice", "^alice", "(", "{"),
        *("", " ", "\x00", "\ud800", "alice'; DROP TABLE storage; --", "%", "_", "?" * 10_000),
    ],
)
@pytest.mark.sampled(8)
def test_any_text_is_safe(memory: Memory, text: str) -> None:
    """Quotes, operators and odd characters are no language: only words count."""
    words = set(words_of(text))
    found = memory.search(text, 10)
    assert bool(found) == bool(words & {"alice", "a", "and"})
    assert memory.stored_count == len(FACTS)


@given(st.text(st.characters()), st.text(st.characters()))
def test_a_text_is_found_by_its_words(text: str, other: str) -> None:
    """Whatever a value is, each of its words finds it, and nothing else does."""
    memory = Memory.in_memory()
    memory.save("x", text)
    for word in words_of(text):
        assert tags(memory, word) == ["x"]
    sought = {form for word in words_of(other) for form in forms_of(word)}
    assert bool(tags(memory, other)) == bool(sought & {"x", *words_of(text)})


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("letter", "letters"),
        ("box", "boxes"),
        ("city", "cities"),
        ("movie", "movies"),
        ("house", "houses"),
        ("key", "keys"),
    ],
)
def test_a_singular_finds_its_plural_and_the_other_way_round(
    memory: Memory, one: str, many: str
) -> None:
    """English plurals are found by the singular, and singulars by the plural."""
    memory.save("first", f"the {one} there")
    memory.save("second", f"the {many} there")
    assert {*tags(memory, one)} >= {"first", "second"}
    assert {*tags(memory, many)} >= {"first", "second"}


@pytest.mark.parametrize("word", ["this", "glass", "is", "bus", "virus", "as", "w12s", "és"])
def test_what_is_no_plural_is_left_as_it_is(word: str) -> None:
    """Other words that end in s, and words with digits or other letters, lose nothing."""
    assert not [form for form in forms_of(word) if len(form) < len(word)]


def test_bounds(memory: Memory) -> None:
    """No more matches are returned than are asked for."""
    assert len(tags(memory, "alice", 2)) == 2
    assert tags(memory, "alice", 0) == tags(memory, "alice", -1) == []


@pytest.mark.parametrize(
    "size",
    [
        500,
        pytest.param(8_000, marks=pytest.mark.slow),
        pytest.param(100_000, marks=pytest.mark.long),
    ],
)
def test_the_first_ten_are_those_of_the_whole_ranking(size: int) -> None:
    """A search of three words finds the same first ten as BM25 over all entries, nine in ten."""
    draw = random.Random(1)
    words = [f"w{number}" for number in range(20_000)]
    totals = list(accumulate(1 / (number + 10) for number in range(len(words))))

    def text(length: int) -> str:
        return " ".join(draw.choices(words, cum_weights=totals, k=length))

    entries = {f"t{number}": text(draw.randrange(8, 60)) for number in range(size)}
    memory = Memory.in_memory({"storage": entries})
    # the same ranking by SQLite alone, over everything
    whole = sqlite3.connect(":memory:")
    whole.execute("CREATE VIRTUAL TABLE found USING fts5(tag, value, tokenize='ascii')")
    whole.executemany("INSERT INTO found VALUES (?, ?)", entries.items())
    ranking = (
        "SELECT tag FROM found WHERE found MATCH ? ORDER BY bm25(found, 3.0, 1.0), rowid LIMIT 10"
    )
    same = 0
    for _ in range(50):
        query = text(3)
        wanted = [tag for (tag,) in whole.execute(ranking, (" OR ".join(query.split()),))]
        same += tags(memory, query) == wanted
    whole.close()
    assert same >= 45


@pytest.mark.sampled(2)
def test_a_thought_of_very_many_words(memory: Memory) -> None:
    """A text of thousands of words, each of which some memory has, is searched by."""
    words = [f"word{number}" for number in range(3_000)]
    for start in range(0, 3_000, 100):
        memory.save(f"part {start}", " ".join(words[start : start + 100]))
    assert len(tags(memory, " ".join(words), 40)) == 30
    assert len(tags(memory, " ".join(reversed(words)), 40)) == 30
