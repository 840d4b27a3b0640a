"""Values from texts and JSON, by their types."""

from collections import deque
from enum import Enum, StrEnum
from typing import Any, Literal

import pytest

from prism.worlds._fields import plain_value, read_value, shown_value, words_of_type


class Level(Enum):
    """An enum of numbers."""

    LOW = 1
    HIGH = 2


class Mood(StrEnum):
    """An enum of texts."""

    CALM = "quite calm"


READ: list[tuple[Any, Any, Any]] = [
    (int, "3", 3),
    (float, "0.3", 0.3),
    (float, 3, 3),
    (bool, "Yes", True),
    (bool, "false", False),
    (str, "none", "none"),
    (Level, "HIGH", Level.HIGH),
    (Level, "2", Level.HIGH),
    (Level, 2, Level.HIGH),
    (Level, Level.LOW, Level.LOW),
    (Mood, "quite calm", Mood.CALM),
    (Mood, "CALM", Mood.CALM),
    (Literal["a", 2], "a", "a"),
    (Literal["a", 2], "2", 2),
    (int | None, "none", None),
    (int | None, None, None),
    (int | None, "7", 7),
    (str | int, "7", 7),
    (str | int, "seven", "seven"),
    (Level | None, "LOW", Level.LOW),
    (list[int], "[1, 2]", [1, 2]),
    (tuple[int, ...], [1, 2], (1, 2)),
    (tuple[int, Level], "[1, 2]", (1, Level.HIGH)),
    (deque[int], [1], deque([1])),
    (list[Level], [1, "HIGH"], [Level.LOW, Level.HIGH]),
    (Any, "x", "x"),
]


@pytest.mark.parametrize(("hint", "given", "value"), READ)
def test_what_a_text_stands_for_is_read_by_its_type(hint: Any, given: Any, value: Any) -> None:
    """A text, or a value of JSON, gives the value of its type, and that gives itself as JSON."""
    found = read_value(hint, given)
    assert (found, type(found)) == (value, type(value))
    assert read_value(hint, plain_value(found)) == value


@pytest.mark.parametrize(
    ("hint", "given"),
    [
        (int, "3.5"),
        (int, ""),
        (float, "nan"),
        (float, "inf"),
        (bool, "maybe"),
        (Level, "MID"),
        (Level, True),
        (Literal["a"], "b"),
        (int | None, "x"),
        (int | bool, "x"),
        (list[int], "1, 2"),
        (tuple[int, int], "[1]"),
        (tuple[int, int], "[1, 2, 3]"),
        (dict[str, int], "a"),
    ],
)
def test_what_stands_for_nothing_of_the_type_is_refused(hint: Any, given: Any) -> None:
    """A text that is no value of the type raises, instead of becoming a text."""
    with pytest.raises(ValueError):  # noqa: PT011
        read_value(hint, given)


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (float, "float"),
        (Level, "one of LOW, HIGH"),
        (Mood, "one of quite calm"),
        (Literal["a", 2], "one of a, 2"),
        (int | None, "int or none"),
        (list[Level], "list[Level]"),
    ],
)
def test_messages_name_types_with_their_values(hint: Any, words: str) -> None:
    """An enum and a Literal are named by what may be given."""
    assert words_of_type(hint, hint) == words


def test_a_value_is_shown_as_it_is_read() -> None:
    """An enum's member is shown by the name that a text stands for, all else as JSON has it."""
    assert [shown_value(each) for each in (Level.HIGH, Mood.CALM, (1, 2))] == [
        "HIGH",
        Mood.CALM.value,
        [1, 2],
    ]
    assert read_value(Level, shown_value(Level.HIGH)) is Level.HIGH
