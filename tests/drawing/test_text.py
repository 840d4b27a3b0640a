"""Texts of a diagram."""

import pytest

from prism.drawing import printable, showable
from prism.drawing._text import label_text, state_text, text_width


def test_characters_that_cannot_be_shown_are_replaced() -> None:
    """Control characters and lone surrogates become replacement characters; the rest stays."""
    assert showable("a\0b\x1b[\ud800é\n😀") == "a\ufffdb\ufffd[\ufffdé\n😀"


def test_a_printable_text_stands_on_one_line() -> None:
    """Line breaks and control characters become blanks; letters of any script stay."""
    assert printable("a\n\x1b[1mé\u2028ß") == "a  [1mé ß"


def test_the_width_of_any_script_is_estimated() -> None:
    """Wide characters count as wide, combining marks as nothing."""
    assert text_width("日本") > text_width("ab")
    assert text_width("e\u0301") == text_width("e")
    assert text_width("") == 0


def test_a_long_name_is_wrapped_and_cut() -> None:
    """A long name takes four lines and ends in an ellipsis; the tooltip has it in full."""
    name = "a state of many words that goes on and on " * 5
    text = state_text(name, timeout=None)

    assert len(text.lines) == 4
    assert max(map(len, text.lines)) <= 22
    assert text.lines[-1].endswith("…")
    assert text.full == name


@pytest.mark.parametrize("state", ["", " \n "])
def test_a_blank_name_takes_a_line(state: str) -> None:
    """A state without visible characters still gets a line of text."""
    assert state_text(state, timeout=None).lines == (" ",)


def test_a_time_out_stands_below_the_name() -> None:
    """A state with a time-out gets a second, smaller line."""
    text = state_text("resting", timeout=2)
    assert (text.lines, text.classes) == (("resting", "time-out after 2 ticks"), ("name", "small"))


def test_a_label_counts_the_triggers_left_out() -> None:
    """A label shows five of nine triggers, how many are left out, and the count of its traffic."""
    text = label_text([f"trigger {number}" for number in range(9)], [40_000], "")
    assert text.lines[4:] == ("trigger 4", "and 4 more", "40,000\N{MULTIPLICATION SIGN}")
    assert text.classes[4:] == ("small", "small", "count")


def test_labels_of_pictures_side_by_side_have_the_same_room() -> None:
    """A label keeps the room of the longest count among the pictures beside it."""
    counts = ([7, 40_000_000], [40_000_000, 7])
    few, many = (label_text(["go"], shown, "") for shown in counts)
    assert (few.lines[-1], many.lines[-1]) == (
        "7\N{MULTIPLICATION SIGN}",
        "40,000,000\N{MULTIPLICATION SIGN}",
    )
    assert few.width == many.width > label_text(["go"], [7], "").width
