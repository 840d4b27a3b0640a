"""Replies of a thinking agent: well-formed ones written out, and families of hostile ones."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from hypothesis import strategies as st


@dataclass(frozen=True)
class AskedAction:
    """What a reply asks for."""

    type: str
    tags: str
    value: str | None


@dataclass(frozen=True)
class AgentReply:
    """What a reply says."""

    next_state: str | None
    thinking_log: str | None
    action: AskedAction | None


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


@st.composite
def replies(draw: Callable[[Any], Any]) -> AgentReply:
    """Return what a well-formed reply may say."""
    log = draw(st.none() | texts().map(str.strip))
    action = AskedAction(
        draw(st.sampled_from(TYPES)),
        "_".join(draw(texts(8)).split()),
        draw(st.none() | texts()),
    )

    return AgentReply(
        next_state=draw(st.none() | st.sampled_from(["thinking", "executing", "paging"])),
        thinking_log=log or None,
        action=draw(st.none() | st.just(action)),
    )


@dataclass(frozen=True)
class Rendering:
    """How a reply is written.

    Args:
        write: Writes a text of an element.
        between: What stands between elements.
        is_reversed: Whether the elements stand in the reverse order.
    """

    write: Callable[[str], str]
    between: str = ""
    is_reversed: bool = False

    def __call__(self, reply: AgentReply) -> str:
        """Write a reply as XML."""
        parts = [
            self._element("next_state", reply.next_state),
            self._element("thinking_log", reply.thinking_log),
            self._action(reply.action),
        ]
        return self._around("agent", parts)

    def _action(self, action: AskedAction | None) -> str:
        if action is None:
            return ""

        parts = [
            self._element("type", action.type),
            self._element("tags", action.tags),
            self._element("value", action.value),
        ]
        return self._around("action", parts)

    def _around(self, name: str, parts: list[str]) -> str:
        given = [part for part in parts if part]
        inner = self.between.join(["", *(reversed(given) if self.is_reversed else given), ""])
        return f"<{name}>{inner}</{name}>"

    def _element(self, name: str, text: str | None) -> str:
        return "" if text is None else f"<{name}>{self.write(text)}</{name}>"


def in_cdata(text: str) -> str:
    """Write a text as CDATA sections, of which none holds the end of one."""
    return "".join(f"<![CDATA[{part}]]>" for part in text.replace("]]>", "]]\0>").split("\0"))


RENDERINGS = (
    Rendering(escape),
    Rendering(lambda text: escape(text, {'"': "&quot;", "'": "&#39;"}), "\n  ", True),
    Rendering(in_cdata, "\n"),
)


def as_json(reply: AgentReply, **options: Any) -> str:
    """Write a reply as JSON."""
    agent: dict[str, Any] = {}
    if reply.next_state is not None:
        agent["next_state"] = reply.next_state
    if reply.thinking_log is not None:
        agent["thinking_log"] = reply.thinking_log
    if reply.action is not None:
        agent["action"] = {"type": reply.action.type, "tags": reply.action.tags}
        if reply.action.value is not None:
            agent["action"]["value"] = reply.action.value

    return json.dumps({"agent": agent}, **options)


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
            *("<", "&", "{", "[", "}", '"', "'", "\\", " ", "\n", "\0", "\ud800", "\ud83d\ude00"),
            *("</", "< ", "<a", "&amp;", "&#65;", "&lt;", "&lt;agent&gt;", "&amp;lt;agent&amp;gt;"),
            *(
                "<agent>",
                "</agent>",
                "<agent></agent>",
                "<agent",
                "<agent ",
                "<agent '",
                "<agent \"'",
            ),
            *("<agent a='\"' b=\"'\">", "<agent a='b' c=\"d\">", "<agent><type>a</type></agent>"),
            *("<think>", "</think>", "<think></think>", "<think><agent></think>", "thinking "),
            *("<![CDATA[", "<![CDATA[x]]>", "<!--", "<!-- -->", "<!DOCTYPE ", "<!DOCTYPE["),
            *("<|im_end|>", "<|channel|>analysis<|message|>", "</s>", "Thinking...", "analysis"),
            *(
                '{"',
                '{"a":',
                '{"a":[{',
                "{}",
                '{"a":1}',
                '{"action":{}}',
                "{'",
                "{a:",
                '{"action":"}',
            ),
            *("<value ", "</value ", "&lt;agent&gt;<!DOCTYPE", "-&lt;agent&gt;<!DOCTYPE"),
        )
    },
    "actions in each other": repeated("<action>", "<agent>"),
    "values in each other": repeated("<value>", "<agent><action>"),
    "values not closed": repeated("<value>x", "<agent><action>"),
    "types not closed": repeated("<type>x", "<agent><action>"),
    "types closed": repeated("x</type>", "<agent>"),
    "elements not closed": repeated("<type>x<tags>y<value>z", "<agent>"),
    "closing tags in a value": repeated("</value>x", _VALUE[0]),
    "CDATA in a value": repeated("<![CDATA[x]]>", *_VALUE),
    "CDATA not closed in a value": repeated("<![CDATA[", _VALUE[0], "]]>" + _VALUE[1]),
    "markup in a value": repeated("<p class='a'>x &amp; y</p>", *_VALUE),
    "references in a value": repeated("&#65;", *_VALUE),
    "blanks behind a type": repeated(" ", "<agent><action><abc>", "x</action></agent>"),
    "blanks in a type": repeated(" ", "<agent><action><abc", "</action></agent>"),
    "entities": repeated('<!ENTITY a "&b;&b;">', "<!DOCTYPE a [", "]><agent></agent>"),
    "attributes": repeated('a="b" ', "<agent ", ">"),
    "an attribute": repeated("x", '<agent next_state="', '">'),
    "words of attributes": repeated("aaaa ", "<agent ", ">"),
    "signs of attributes": repeated("a=", "<agent ", ">"),
    "a word of a state": repeated("a-", "<agent><next_state>", "</next_state></agent>"),
    "a state without a word": repeated("*", "<agent><next_state>", "</next_state></agent>"),
    "tags with blanks": repeated("a ", "<agent><action><tags>", "</tags></action></agent>"),
    "quotes in JSON": repeated('",', '{"action":"'),
    "escapes in JSON": repeated('\\"', '{"action":"'),
    "numbers in JSON": repeated("1,", '{"action":['),
    "digits in JSON": repeated("9", '{"action":', "}"),
    "quotes of people in JSON": repeated("“", "{"),
    "quotes that end nothing in JSON": repeated("”a", "{“"),
    "lines in JSON": repeated("next_state: executing\n", "{"),
    "halves of signs": repeated("\ud800\udc00", '{"agent":{"thinking_log":"'),
    "keys in JSON": '{"agent":{' + ",".join(f'"k{n}":1' for n in range(15_000)) + "}}",
    "lists in JSON": repeated("[", '{"action":{"type":"a","tags":"b","value":'),
    "XML in JSON": repeated("<agent>", '{"agent":"', '"}'),
    "JSON in JSON": repeated('{\\"action\\":', '{"agent":"', '"}'),
    "JSON in XML": repeated('{"action":', "<agent>", "</agent>"),
    "apostrophes in JSON in XML": repeated("x'y ", "<agent>{'action':{'value':'", "'}}</agent>"),
}
"""Replies of which each is as long as can be, and made to be slow or large to read."""
