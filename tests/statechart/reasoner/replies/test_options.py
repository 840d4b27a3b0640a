"""Options named by the letter or number under which a prompt offered them."""

import pytest

from prism.errors import ReasonerError
from prism.statechart.reasoner._replies._reading import read_choice

KEYS = ["continue", "pivot", "ship"]
LETTERS = "A) CONTINUE - keep working\nB) PIVOT - try something different\nC) SHIP - move on\n"
NUMBERS = "1. continue\n2. **pivot**: try something different\n3. ship\n"
LABELS = {
    "A": {"A": "continue", "B": "pivot", "C": "ship"},
    "a": {"a": "continue", "b": "pivot", "c": "ship"},
    "1": {"1": "continue", "2": "pivot", "3": "ship"},
}

# {0} is the second option, {1} the first and {2} the third
CLEAR = [
    "{0}",
    " {0}.\n",
    "({0})",
    "**{0}**",
    "My answer: {0}",
    "Answer: **{0}**",
    "I choose {0}.",
    "I'd go with option {0} because it is stuck.",
    "The best option is {0}",
    "{0} - because it is stuck",
    "{0}: it is stuck",
    "{0}\n\nWe are stuck.",
    "We are stuck.\n\n{0}",
    "<think>{1}? or {2}</think>{0}",
    "\\boxed{{{0}}}",
    '{{"decision": "{0}"}}',
    '{{"choice": "{0}"}}',
    '["{0}"]',
    "```json\n{{'decision': '{0}'}}\n```",
]
UNCLEAR = [
    "not {0}",
    "do not choose {0}",
    "{0}?",
    "{0} or {1}",
    "{0}, {1}",
    "{0}/{1}",
    "{0}\n{1}",
    "{0}\n\nor rather {1}",
    "{0}, no wait, {1}",
    "{0}, or {1} if it is stuck",
    "both {0} and {1}",
    "I choose {0}, or {1}",
    "I choose {0}. No, {1}.",
    "I choose {0}. On the other hand, {1}",
    'They said "{0}"',
    "maybe {0}",
    '{{"decision": ["{0}", "{1}"]}}',
    '{{"decision": "{0}"}} or {{"decision": "{1}"}}',
]


def read(reply: str, labels: dict[str, str]) -> str | None:
    """Return the key that is read in a reply; None if it is refused."""
    try:
        return str(read_choice(reply, KEYS, key="decision", labels=labels))
    except ReasonerError:
        return None


def filled(template: str, names: list[str]) -> str:
    """Return a reply that names its options so."""
    return template.format(names[1], names[0], names[2])


@pytest.mark.parametrize("template", CLEAR)
@pytest.mark.parametrize("labels", LABELS.values(), ids=list(LABELS))
@pytest.mark.sampled(5)
def test_a_label_is_read_as_its_option_is(template: str, labels: dict[str, str]) -> None:
    """A reply that is clear with the option's own text is as clear with its label."""
    assert read(filled(template, KEYS), {}) == "pivot"
    assert read(filled(template, list(labels)), labels) == "pivot"


@pytest.mark.parametrize("template", UNCLEAR)
@pytest.mark.parametrize("labels", LABELS.values(), ids=list(LABELS))
@pytest.mark.sampled(5)
def test_an_unclear_label_is_refused_as_its_option_is(
    template: str, labels: dict[str, str]
) -> None:
    """Denials, questions, several labels and quotations are refused, as with the options' texts."""
    assert read(filled(template, KEYS), {}) is None
    assert read(filled(template, list(labels)), labels) is None


def test_without_labels_letters_are_no_answers() -> None:
    """What a prompt did not offer means nothing."""
    for template in (*CLEAR, *UNCLEAR):
        assert read(filled(template, ["A", "B", "C"]), {}) is None, template


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("option B", "pivot"),
        ("Option b.", "pivot"),
        ('{"decision": "option B"}', "pivot"),
        ("B) PIVOT", "pivot"),
        ("B. Pivot - we are stuck", "pivot"),
        ("(b) pivot", "pivot"),
        ("Option B: pivot", "pivot"),
        ('{"decision": "B) PIVOT"}', "pivot"),
        ("A) PIVOT", None),
        ("B) pivot, C) ship", None),
        ('{"decision": "A) PIVOT"}', None),
        ("Option B: ship", None),
        ("D", None),
        ("D) PIVOT", "pivot"),
        ("A good reason to ship", None),
        ("I choose a different path", None),
        ("I choose B, because it is a new idea.", "pivot"),
        ("I choose pivot. A new idea is needed.", None),
        ("B\n\nA new idea is needed.", None),
        ("Option A fails. I choose B.", None),
        ('{"A": false, "B": true, "C": false}', "pivot"),
        ('{"A": true, "B": true, "C": false}', None),
    ],
)
def test_a_label_and_words_beside_it_must_agree(reply: str, expected: str | None) -> None:
    """A label before another option is refused, and letters that are words are no labels."""
    assert read(reply, LABELS["A"]) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"decision": 2}', "pivot"),
        ('{"next_state": 2}', "pivot"),
        ('{"choice": 3}', "ship"),
        ("2", "pivot"),
        ("#2", "pivot"),
        ("No. 2", "pivot"),
        ('{"decision": true}', None),
        ('{"decision": 4}', None),
        ("2.5", None),
        ("12", None),
        ('{"decision": "2', None),  # cut off: it may have been 20
        ("I choose pivot. We are at 3 attempts.", "pivot"),
        ("I choose pivot. After 3 attempts nothing works.", None),
    ],
)
def test_numbers_are_labels_where_a_prompt_offered_them(reply: str, expected: str | None) -> None:
    """Numbers name an option as texts do, in JSON and in words; truth values do not."""
    assert read(reply, LABELS["1"]) == expected


def test_plain_texts_have_no_members() -> None:
    """What is named by the class of a text alone is no option."""
    for reply in ("str.", '{"decision": "str."}', "Answer: str.", "str.ship"):
        assert read(reply, {}) is None


@pytest.mark.parametrize("key", ["next_state", "decision", "verdict"])
def test_the_key_that_was_asked_for_goes_before_others(key: str) -> None:
    """What stands there is the answer, and what is no option there is refused."""
    assert read_choice(f'{{"{key}": "ship", "result": "pivot"}}', KEYS, key=key) == "ship"
    with pytest.raises(ReasonerError, match="hmm"):
        read_choice(f'{{"{key}": "hmm", "result": "pivot"}}', KEYS, key=key)
