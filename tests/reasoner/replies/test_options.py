"""Options named by the letter or number under which a prompt offered them."""

import pytest

from prism.errors import ReasonerError
from prism.reasoner._replies._reading import read_choice

KEYS = ["continue", "pivot", "ship"]
LETTERS = "A) CONTINUE - keep working\nB) PIVOT - try something different\nC) SHIP - move on\n"
NUMBERS = "1. continue\n2. **pivot**: try something different\n3. ship\n"
LABELS = {
    "A": {"A": "continue", "B": "pivot", "C": "ship"},
    "a": {"a": "continue", "b": "pivot", "c": "ship"},
    "1": {"1": "continue", "2": "pivot", "3": "ship"},
}

# {0} is the second option and {1} the first
CLEAR = [
    "{0}",
    " {0}.\n",
    "({0})",
    "**{0}**",
    "<think>{1}?</think>{0}",
    '{{"decision": "{0}"}}',
    '["{0}"]',
    "```json\n{{'decision': '{0}'}}\n```",
]
UNCLEAR = [
    "not {0}",
    "{0}?",
    "{0} or {1}",
    "{0}\n{1}",
    "{0}\n\nWe are stuck.",
    "I choose {0}.",
    '{{"decision": ["{0}", "{1}"]}}',
    '{{"decision": "{0}"}} or {{"decision": "{1}"}}',
]


def read(reply: str, labels: dict[str, str]) -> str | None:
    """Return the key that is read in a reply; None if it is refused."""
    try:
        return str(read_choice(reply, KEYS, key="decision", labels=labels))
    except ReasonerError:
        return None


@pytest.mark.parametrize("template", [*CLEAR, *UNCLEAR])
@pytest.mark.parametrize("labels", LABELS.values(), ids=list(LABELS))
@pytest.mark.sampled(10)
def test_a_label_is_read_as_its_option_is(template: str, labels: dict[str, str]) -> None:
    """A reply that is clear or unclear with the option's own text is so with its label."""
    expected = "pivot" if template in CLEAR else None
    assert read(template.format(KEYS[1], KEYS[0]), {}) == expected
    names = list(labels)
    assert read(template.format(names[1], names[0]), labels) == expected
    # what a prompt did not offer means nothing
    assert read(template.format(names[1], names[0]), {}) is None


@pytest.mark.parametrize(
    ("reply", "labels", "expected"),
    [
        ("option B", "A", "pivot"),
        ('{"decision": "option B"}', "A", "pivot"),
        ("B) PIVOT", "A", "pivot"),
        ("(b) pivot", "a", "pivot"),
        ("A) PIVOT", "A", None),
        ("D", "A", None),
        ("A good reason to ship", "A", None),
        ('{"decision": 2}', "1", "pivot"),
        ('{"decision": true}', "1", None),
        ('{"decision": 4}', "1", None),
        ("12", "1", None),
        ('{"decision": "2', "1", None),  # cut off: it may have been 20
    ],
)
def test_a_label_stands_alone(reply: str, labels: str, expected: str | None) -> None:
    """Words beside a label, and numbers that nobody offered, name nothing."""
    assert read(reply, LABELS[labels]) == expected


@pytest.mark.parametrize(("reply", "option"), [("4.0", "4"), ("25\u201334", "25-34"), ("4", "4")])
def test_numbers_are_read_as_models_write_them(reply: str, option: str) -> None:
    """A whole number may have decimals, and a range a dash."""
    assert read_choice(reply, ["4", "25-34", "5"]) == option
    assert read_choice(f'{{"next_state": "{reply}"}}', ["4", "25-34", "5"]) == option


@pytest.mark.parametrize("key", ["next_state", "decision", "verdict"])
def test_only_the_key_that_was_asked_for_answers(key: str) -> None:
    """What stands under another key is no answer."""
    assert read_choice(f'{{"{key}": "ship"}}', KEYS, key=key) == "ship"
    with pytest.raises(ReasonerError, match=f"no '{key}'"):
        read_choice('{"result": "pivot"}', KEYS, key=key)
