"""Tags, CDATA sections and references in a text."""

import pytest

from prism.cognition._replies._tags import (
    MOST_SIGNS,
    MOST_TAGS,
    Markup,
    TooManyTagsError,
    resolved,
)


def kinds(text: str) -> list[tuple[str, str]]:
    """Return kind and name of each tag."""
    return [(tag.kind, tag.name) for tag in Markup(text).tags]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<agent>", [("start", "agent")]),
        ("<AGENT id='1'>", [("start", "agent")]),
        ("< next-state >", [("start", "next_state")]),
        ("<thinkingLog/>", [("empty", "thinking_log")]),
        ("</ value >", [("end", "value")]),
        ("<\\/value>", [("end", "value")]),
        ("</value</action>", [("end", "value"), ("end", "action")]),
        ("<tag>", [("start", "tags")]),
        ('<value a=">">', [("start", "value")]),
        ("<values><typed></agenda>", []),
        ("<b>&lt;agent&gt;</b>", []),
        ("</agent", []),
        ("<agent", []),
        ('<agent a="', []),
        ("<think></think>", [("thought", ""), ("said", "")]),
        ("<|channel|>analysis<|message|>", [("thought", "")]),
        ("<|channel|>final <|constrain|>json<|message|>", [("said", "")]),
        ("<|im_end|></s><end_of_turn>", [("turn", "")] * 3),
        ("<!-- <agent> -->", [("comment", "")]),
        ("<!-- <agent>", [("open comment", ""), ("start", "agent")]),
        ("<![CDATA[<agent>]]><type>", [("start", "type")]),
        ("<!DOCTYPE a [<!ENTITY b '<agent>'>]><type>", [("start", "type")]),
        ("<!DOCTYPE a><type>", [("start", "type")]),
    ],
)
def test_tags_are_found(text: str, found: list[tuple[str, str]]) -> None:
    """Known tags are found in every way that they are written, and no others."""
    assert kinds(text) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a < b & c", "a < b & c"),
        ("&lt;&gt;&amp;&quot;&apos;", "<>&\"'"),
        ("&amp;lt; &#38;lt; &#x26;#65;", "&lt; &lt; &#65;"),
        ("&#9;&#10;&#13;&#32;", "\t\n\r "),
        ("&#0;&#11;&#xDFFF;&#x110000;", "&#0;&#11;&#xDFFF;&#x110000;"),
        ("&nbsp;&unknown;&;", "&nbsp;&unknown;&;"),
    ],
)
def test_references_are_resolved_once(text: str, said: str) -> None:
    """XML's own references become signs, once; all others stay as they are."""
    assert resolved(text) == said


def test_a_cdata_section_says_what_it_holds() -> None:
    """Inside a CDATA section nothing is resolved; around it everything is."""
    text = "&lt;<![CDATA[&lt;</agent>]]>&lt;"
    assert Markup(text).content(0, len(text)) == "<&lt;</agent><"


def test_a_cdata_section_without_an_end_is_text() -> None:
    """The mark of a CDATA section that does not end is dropped, and the tags after it count."""
    text = "<![CDATA[a</value>"
    markup = Markup(text)
    assert markup.content(0, markup.tags[0].start) == "a"
    assert [tag.name for tag in markup.tags] == ["value"]


def test_too_many_tags_are_refused() -> None:
    """A text with more tags, or more signs, than can be read in time is not read."""
    Markup("<agent>" * (MOST_TAGS - 1))
    Markup("<" * MOST_SIGNS)
    for text in ("<agent>" * (MOST_TAGS + 1), "<" * (MOST_SIGNS + 1)):
        with pytest.raises(TooManyTagsError):
            Markup(text)
