"""A reader that follows rules finds in a prompt what a person would find there."""

import pytest

from prism.statechart import build_reasoner_prompt
from prism.statechart.states import AgentState
from prism.testing._server.reading import Option, Reading

OPTIONS = [
    AgentState.ENGAGING_LIKE,
    AgentState.SCROLLING,
    AgentState.COMPOSING,
]


def feed_prompt(interests: list[str], options: list[AgentState] = OPTIONS) -> str:
    """Return the specification's prompt about a post on night trains."""
    post = {"author_id": "bo", "text": "Night trains are back!", "topics": ["trains"]}
    return build_reasoner_prompt(
        "Ada", interests, "Curious.", AgentState.EVALUATING, "decides", list(options), post
    )


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "- idle: Stop\n- resting: Pause",
            [("idle", "idle", "Stop"), ("resting", "resting", "Pause")],
        ),
        ("- idle\n- resting", [("idle", "idle", ""), ("resting", "resting", "")]),
        ("A: idle (Stop)\nB: resting", [("A", "idle", "Stop"), ("B", "resting", "")]),
        ("A) buy\nB) sell", [("A", "buy", ""), ("B", "sell", "")]),
        ("1. buy: Now\n2. sell", [("buy", "buy", "Now"), ("sell", "sell", "")]),
        ("- only one", []),
        ("no list", []),
    ],
)
def test_options_are_the_last_list(lines: str, expected: list[tuple[str, str, str]]) -> None:
    """Options are the last list of two or more lines, named by their letters or names."""
    before = "" if not expected else "You saw:\n- a cat: black\n- a dog\n\n"
    reading = Reading(f"{before}Now choose.\n\n{lines}\n\nThank you.")
    assert list(reading.options) == [Option(*one) for one in expected]


def test_an_interest_speaks_for_acting() -> None:
    """Whoever shares an interest with a post acts, and whoever does not goes on."""
    keen, cold = Reading(feed_prompt(["trains"])), Reading(feed_prompt(["chess"]))
    assert keen.themes == ["trains"]
    assert keen.choose() == Option("engaging_like", "engaging_like", "Like this post")
    assert cold.choose() == Option("scrolling", "scrolling", "Continue browsing without engaging")


def test_the_order_of_options_decides_only_between_equals() -> None:
    """In another order the same option is chosen, unless several are equally good."""
    ahead = [AgentState.SCROLLING, *OPTIONS]
    chosen = {Reading(feed_prompt(["chess"], order)).choose() for order in (OPTIONS, ahead[:3])}
    assert {one.name for one in chosen if one} == {"scrolling"}


def test_what_was_done_lately_is_not_repeated() -> None:
    """An option that the prompt names among what was done speaks for itself less."""
    prompt = "You like tea.\n\nTea is served.\n\n{}\n\n- drink: Drink the tea\n- talk: Talk of tea"
    assert Reading(prompt.format("")).choose() == Option("talk", "talk", "Talk of tea")
    tired = Reading(prompt.format("Lately you chose: talk, talk, talk."))
    assert tired.choose() == Option("drink", "drink", "Drink the tea")


def test_what_was_cut_away_is_not_known() -> None:
    """Without the front of a prompt the interest is gone, and with it the wish to act."""
    prompt = feed_prompt(["trains"])
    assert Reading(prompt[prompt.index("Choose your") :]).choose() == Option(
        "scrolling", "scrolling", "Continue browsing without engaging"
    )


def test_a_text_is_on_the_prompts_subject_and_within_its_limit() -> None:
    """A text names what the prompt is about, and is no longer than it allows."""
    prompt = "Write a post of at most {} about night trains.\n\nYou love night trains."
    assert "trains" in Reading(prompt.format("60 words")).write()
    assert len(Reading(prompt.format("4 words")).write().split()) == 4
    assert len(Reading(prompt.format("20 characters")).write()) <= 20


def test_a_schema_is_filled_from_the_prompt() -> None:
    """An answer has all members of a schema, with figures and options that the prompt names."""
    schema = {
        "type": "object",
        "properties": {
            "choice": {"enum": ["stay", "go"]},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "price": {"type": "number"},
            "sure": {"type": "boolean"},
            "why": {"type": "string", "maxLength": 12},
            "tags": {"type": "array", "items": {"const": "x"}, "minItems": 2},
            "note": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        },
    }
    reading = Reading(
        "You have 42 coins for the train.\n\nThe train leaves.\n\n- stay: Wait\n- go: Join"
    )
    assert reading.fill(schema) == {
        "choice": "go",
        "count": 9,
        "price": 42.0,
        "sure": True,
        "why": reading.write()[:12],
        "tags": ["x", "x"],
        "note": None,
    }


def test_names_in_a_schema_are_those_of_lettered_options() -> None:
    """A schema may list names of options that the prompt offers by letters, in capitals."""
    lately = "Your last decisions: continue, continue, continue"
    prompt = f"{lately}\n\nA) CONTINUE - keep working\nB) SHIP - move on\n"
    assert Reading(prompt).fill({"enum": ["continue", "ship"]}) == "ship"


@pytest.mark.parametrize("shown", ["<state>go</state>", '{"state": "go"}'])
def test_without_a_list_an_answer_is_what_the_example_shows(shown: str) -> None:
    """A value that the prompt shows as an answer is taken, if the schema allows it."""
    schema = {"properties": {"state": {"enum": ["stay", "go"]}}}
    assert Reading(f"stay: Wait\ngo: Join\n\nReply so: {shown}").fill(schema) == {"state": "go"}
    assert Reading(f"Reply so: {shown[:-6]}").fill({"enum": ["stay", "go"]}) == "stay"


def test_tags_are_no_subject() -> None:
    """A text is about what stands between the tags of a prompt, not about the tags."""
    reading = Reading("<note>\nTea.\n</note>\n\n<note>\nTea again.\n</note>")
    assert reading.subjects == ["tea"]


def test_the_key_of_an_answer_is_read_from_its_example() -> None:
    """Where a prompt shows the JSON it wants, the answer has that key."""
    assert Reading('Reply so:\n{"next_state": "<one>"}').key_of_answer == "next_state"
    assert Reading("Reply as you like.").key_of_answer is None
