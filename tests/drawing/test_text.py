"""Texts of a diagram."""

from prism.drawing import printable, showable


def test_characters_that_cannot_be_shown_are_replaced() -> None:
    """Control characters and lone surrogates become replacement characters; the rest stays."""
    assert showable("a\0b\x1b[\ud800é\n😀") == "a\ufffdb\ufffd[\ufffdé\n😀"


def test_a_printable_text_stands_on_one_line() -> None:
    """Line breaks and control characters become blanks; letters of any script stay."""
    assert printable("a\n\x1b[1mé\u2028ß") == "a  [1mé ß"
