"""Replies of a thinking agent: well-formed ones written out, and families of hostile ones."""

import json
from collections.abc import Callable, Mapping
from typing import Any
from xml.sax.saxutils import escape

from hypothesis import strategies as st

LONGEST = 200_000
"""Characters of the longest reply that is read whole."""

TYPES = ("working_memory_add", "working_memory_remove", "storage_load", "storage_save")


def texts(max_size: int = 40) -> st.SearchStrategy[str]:
    """Return texts of any signs that XML can hold, and of markup.

    Not of a whole reply with a CDATA section in it: where those end cannot be told.
    """
    signs = st.characters(
        exclude_categories=("Cs", "Cc"),
        exclude_characters="\ufffe\uffff",
        include_characters="\t\n",
    )
    markup = st.sampled_from(
        [
            *("<b>", "</b>", "&", "&amp;", "<", "]]>", "<![CDATA[", "<!--", "{", '"'),
            *("<agent>", "</agent>", "</value>", "<value>", "</action>", "<type>", "</think>"),
        ]
    )
    drawn = st.lists(signs | markup, max_size=max_size).map("".join)

    return drawn.filter(lambda text: not ("<agent" in text and "<![CDATA[" in text))


REPLIES = st.fixed_dictionaries(
    {},
    optional={
        "next_state": st.sampled_from(["thinking", "executing", "paging"]),
        "thinking_log": texts().map(str.strip).filter(bool),
        "action": st.fixed_dictionaries(
            {"type": st.sampled_from(TYPES), "tags": texts(8).map(str.split).map("_".join)},
            optional={"value": texts()},
        ),
    },
)
"""What well-formed replies may say."""


def as_xml(parts: Mapping[str, Any], write: Callable[[str], str], between: str = "") -> str:
    """Write the parts of an element, each as an element of its own."""
    elements = [
        f"<{name}>{write(part) if isinstance(part, str) else as_xml(part, write, between)}</{name}>"
        for name, part in parts.items()
    ]
    return between.join(["", *elements, ""])


def in_cdata(text: str) -> str:
    """Write a text as CDATA sections, of which none holds the end of one."""
    return "".join(f"<![CDATA[{part}]]>" for part in text.replace("]]>", "]]\0>").split("\0"))


def renderings(reply: Mapping[str, Any]) -> list[str]:
    """Write a reply as XML in several ways, and as JSON."""
    turned = dict(reversed(reply.items()))
    quoted = {'"': "&quot;", "'": "&#39;"}
    return [
        as_xml({"agent": reply}, escape),
        as_xml({"agent": turned}, lambda text: escape(text, quoted), "\n  "),
        as_xml({"agent": reply}, in_cdata, "\n"),
        json.dumps({"agent": reply}),
    ]


def repeated(text: str, before: str = "", after: str = "") -> str:
    """Return a text of the greatest length that repeats another between two."""
    length = LONGEST - len(before) - len(after)
    return before + (text * (length // len(text) + 1))[:length] + after


_VALUE = (
    "<agent><action><type>storage_save</type><tags>a</tags><value>",
    "</value></action></agent>",
)

HOSTILE = {
    **{
        text: repeated(text)
        for text in (
            *("<", "&", "{", "[", '"', "'", "\\", " ", "\0", "\ud800", "</", "<a", "&amp;"),
            *("&lt;agent&gt;", "&amp;lt;agent&amp;gt;", "<agent>", "<agent></agent>", "<agent '"),
            *("<agent a='\"' b=\"'\">", "<agent><type>a</type></agent>", "<think>", "</think>"),
            *("<think><agent></think>", "<![CDATA[", "<!--", "<!DOCTYPE[", "<|im_end|>"),
            *(
                '{"',
                '{"a":[{',
                '{"action":{}}',
                '{"action":"}',
                "<value ",
                "-&lt;agent&gt;<!DOCTYPE",
            ),
        )
    },
    "actions in each other": repeated("<action>", "<agent>"),
    "values in each other": repeated("<value>", "<agent><action>"),
    "types not closed": repeated("<type>x", "<agent><action>"),
    "elements not closed": repeated("<type>x<tags>y<value>z", "<agent>"),
    "CDATA not closed in a value": repeated("<![CDATA[", _VALUE[0], "]]>" + _VALUE[1]),
    "references in a value": repeated("&#65;", *_VALUE),
    "blanks behind a type": repeated(" ", "<agent><action><abc>", "x</action></agent>"),
    "entities": repeated('<!ENTITY a "&b;&b;">', "<!DOCTYPE a [", "]><agent></agent>"),
    "attributes": repeated('a="b" ', "<agent ", ">"),
    "signs of attributes": repeated("a=", "<agent ", ">"),
    "a word of a state": repeated("a-", "<agent><next_state>", "</next_state></agent>"),
    "tags with blanks": repeated("a ", "<agent><action><tags>", "</tags></action></agent>"),
    "escapes in JSON": repeated('\\"', '{"action":"'),
    "digits in JSON": repeated("9", '{"action":', "}"),
    "quotes that end nothing in JSON": repeated("”a", "{“"),
    "halves of signs": repeated("\ud800\udc00", '{"agent":{"thinking_log":"'),
    "keys in JSON": '{"agent":{' + ",".join(f'"k{n}":1' for n in range(15_000)) + "}}",
    "lists in JSON": repeated("[", '{"action":{"type":"a","tags":"b","value":'),
    "JSON in JSON": repeated('{\\"action\\":', '{"agent":"', '"}'),
    "JSON in XML": repeated('{"action":', "<agent>", "</agent>"),
    "apostrophes in JSON in XML": repeated("x'y ", "<agent>{'action':{'value':'", "'}}</agent>"),
}
"""Replies of which each is as long as can be, and made to be slow or large to read."""
