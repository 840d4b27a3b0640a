"""Populations and cards that other projects write."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.agents import load_population

Write = Callable[[str, str | bytes], Path]

CARD = {
    "name": "Ida",
    "description": "{{char}} keeps bees. {{user}} buys honey from {{Char}}.",
    "personality": "patient",
    "scenario": "A market.",
    "first_mes": "Hello {{user}}.",
    "mes_example": "",
    "tags": ["bees"],
}


def loaded(path: Path) -> list[tuple[str, str, str, list[str]]]:
    """Return id, name, personality and interests of each agent."""
    agents: Any = load_population(path).agents
    return [(each.agent_id, each.name, each.personality, each.interests) for each in agents]


def test_a_population_of_oasis_needs_no_follows_tweets_or_topics(write: Write) -> None:
    """Interests are then the frequent words of the persona, and nobody follows anybody."""
    path = write(
        "a.csv",
        "user_id,name,username,user_char,description\n"
        '1,user_9,user9,"Beach walker, avid reader. I blog about books.",Beach walker.\n',
    )
    (agent,) = load_population(path).agents
    assert (agent.name, agent.following) == ("user_9", ())
    assert agent.interests == ["beach", "walker", "reader", "books"]


def test_a_persona_without_topics_has_those_of_its_text(write: Write) -> None:
    """A Reddit persona of MiroFish has a name, and its topics may be missing or empty."""
    people = [
        {"username": "lena_1", "name": "Lena Berg", "persona": "Calm.", "karma": 1000},
        {
            "username": "wang_2",
            "name": "王小明",
            "persona": "踢足球。",
            "interested_topics": [],
        },
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


@pytest.mark.parametrize("cell", ["['tea', 'open water']", "tea; open water,"])
def test_a_table_lists_topics_in_a_cell(cell: str, write: Write) -> None:
    """As Python writes a list, or separated by commas or semicolons."""
    path = write("a.csv", f'username,interests\na,"{cell}"\n')
    assert load_population(path).agents[0].interests == ["tea", "open water"]
