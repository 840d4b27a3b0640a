"""The elements of a reply, with tags that are missing, misspelt or not escaped.

A value may hold anything, tags of this language among it. Where an element ends follows from what
comes after: the closing tag that belongs to its start tag, else what can only stand outside it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import count, islice

from prism.cognition._replies._tags import Markup, Tag, key_of, resolved
from prism.statechart.reasoner._replies._objects import excerpt

_LEAVES = ("next_state", "thinking_log", "type", "tags", "value")
_CONTAINERS = ("agent", "action")
_FREE = ("thinking_log", "value")
"""Elements whose text may hold anything; that of the others is a word or two."""

_ATTRIBUTE = re.compile(r"""(?<![\w:-])([\w:-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""")
_MOST_ATTRIBUTES = 100
_LAST_CLOSING = re.compile(r"(?:</?|/)\s{0,3}([\w-]{1,24})\s{0,3}/?>?\s*\Z")
_MOST_CLOSING = 40
_FIRST_CLOSING = re.compile(r"\s*</\s{0,3}([\w-]{1,24})\s{0,3}>")
_END_OF_ACTION = re.compile(r"</\s{0,3}action", re.IGNORECASE)
_LIKENESS = 0.75


@dataclass(slots=True)
class Element:
    """An agent or an action element, or what stands for one.

    Attributes:
        name: ``agent`` or ``action``; empty for what has no element around it.
        leaves: The texts of its elements; of one that appears twice, the first.
        attributes: What stands in its attributes instead.
        actions: The actions in it, in order.
        stray: The text in it that belongs to no element.
        is_closed: Whether its end was reached.
        is_clear: Whether there is no doubt where its value ends.
        is_mended: Whether one of its elements was not as it should be.
    """

    name: str = ""
    leaves: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    actions: list[Element] = field(default_factory=list)
    stray: str = ""
    is_closed: bool = False
    is_clear: bool = True
    is_mended: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been read into it."""
        return not (self.leaves or self.actions or self.attributes)


class Elements:
    """The elements that are found in a reply.

    Its tags are read from left to right, each into the innermost element that is open.

    Args:
        markup: The text and its tags.

    Attributes:
        agents: The agent elements that are no part of a thought, in order.
        loose: What stands outside of agent elements, as if there were one around it.
        loose_start: Where that begins.
        is_thinking: Whether the text ends within a thought.
        defects: What was mended.
    """

    def __init__(self, markup: Markup) -> None:
        self.loose_start = 0
        self.is_thinking = False
        self.defects: list[str] = []
        self._markup = markup
        end = len(markup.text)
        self._tags = [*markup.tags, Tag("rest", "", end, end)]
        self._at = 0
        self._position = 0
        self._begin_anew()
        self._lay_out()

        while self._at < len(self._tags):
            self._read(self._tags[self._at])
        if markup.is_doubtful:
            for element in (*self.agents, self.loose):
                element.is_clear = False

    def _begin_anew(self) -> None:
        self.agents: list[Element] = []
        self.loose = Element(is_closed=True)
        self._open = [self.loose]
        self._is_in_leaf = False

    def _lay_out(self) -> None:
        """Note what belongs together among the tags.

        That is the tag that closes each, as far as start and end tags balance; how many agent
        elements more are begun than closed at each; and in which part of the text it stands, as no
        leaf goes from one part to another, with the last closing tag of each name in each part.
        """
        self._partners: list[int | None] = [None] * len(self._tags)
        self._depths: list[int] = []
        self._parts: list[int] = []
        self._last: dict[tuple[int, str], int] = {}
        open_tags: dict[str, list[int]] = defaultdict(list)
        depth = part = 0
        for number, tag in enumerate(self._tags):
            self._depths.append(depth)
            self._parts.append(part)
            if tag.kind == "start":
                open_tags[tag.name].append(number)
            elif tag.kind == "end" and open_tags[tag.name]:
                self._partners[open_tags[tag.name].pop()] = number

            if tag.name in _CONTAINERS or tag.kind in ("said", "turn"):
                part += 1
                depth += {"start": 1, "end": -1}.get(tag.kind, 0) if tag.name == "agent" else 0
            elif tag.kind == "end":
                self._last[part, tag.name] = number

    def _read(self, tag: Tag) -> None:
        """Read what begins with a tag, if only the end of an element that it breaks off."""
        top = self._open[-1]
        is_over = self._is_over(tag)
        before = "" if is_over else self._markup.content(self._position, tag.start)
        if top is not self.loose and before.strip():
            top.stray += before
        if self.loose.is_empty:
            self.loose_start = tag.start

        if tag.kind == "thought":
            self._skip_thought()
        elif tag.kind == "said":
            # what precedes a lone end tag is a thought, too
            self._begin_anew()
            self._step()
        elif is_over:
            self._end(tag)
        elif tag.kind == "end":
            self._close(tag, top, before)
        elif tag.name in _CONTAINERS:
            self._begin(tag, top)
        elif tag.name:
            self._read_leaf(tag, top)
        else:
            self._step()

    def _is_over(self, tag: Tag) -> bool:
        """Return True at the end of the answer: a model that goes on writes the turns of others."""
        has_answer = self.agents or not self.loose.is_empty
        return tag.kind in ("open comment", "rest") or (tag.kind == "turn" and bool(has_answer))

    def _end(self, tag: Tag) -> None:
        """Leave what is open as it is, with the rest of the text as text in it."""
        end = len(self._markup.text) if tag.kind == "open comment" else tag.start
        rest = self._markup.content(self._position, end) if self._open[1:] else ""
        closing = _FIRST_CLOSING.match(rest)
        for element in self._open[1:]:
            if element.name == "agent" and closing is not None and _is_like(closing, "agent"):
                element.is_closed = True
                self.defects.append("the closing tag of agent is misspelled")
            else:
                element.stray += rest
        self._at = len(self._tags)

    def _close(self, tag: Tag, top: Element, before: str) -> None:
        """Read a closing tag."""
        if tag.name == top.name:
            top.is_closed = True
            self._open.pop()
        elif tag.name == "agent" and top.name:
            # elements that cross: the value may end before what it holds
            top.is_clear &= _END_OF_ACTION.search(top.leaves.get("value", "")) is None
            self._open.pop()
            return
        else:
            if tag.name == "value" and before.strip():
                # that of what is open, or was the last to be, may go on until here
                for element in [top] if top.name else self.agents[-1:]:
                    element.is_clear = False
            if top.name:
                self._mend(top, f"a closing tag of {tag.name} has no opening tag")
        self._step()

    def _begin(self, tag: Tag, top: Element) -> None:
        """Read a start tag of an agent or an action."""
        if tag.name == top.name and top.is_empty:
            # one around the other, or one that was broken off and begun again
            top.attributes |= _attributes_of(tag)
        elif tag.name == top.name or (tag.name == "agent" and top.name):
            self.defects.append(f"a new {tag.name} begins before the previous one is closed")
            self._open.pop()
            return
        else:
            # within a text that is not closed an agent may be a part of that, or the answer anew
            is_agent = tag.name == "agent"
            element = Element(
                tag.name,
                attributes=_attributes_of(tag),
                is_closed=tag.kind == "empty",
                is_clear=not (is_agent and self._is_in_leaf),
            )
            (self.agents if is_agent else top.actions).append(element)
            if not element.is_closed:
                self._open.append(element)
        self._step()

    def _read_leaf(self, tag: Tag, container: Element) -> None:
        """Read an element without elements in it."""
        text = self._text_of(tag, container)
        if tag.name in container.leaves:
            self._mend(container, f"{tag.name} appears twice; ignored: {excerpt(text)}")
        else:
            container.leaves[tag.name] = text

    def _text_of(self, tag: Tag, container: Element) -> str:
        if tag.kind == "empty":
            self._step()
            return _value_of(tag)
        if self._is_doubled(self._at):
            self._mend(container, f"{tag.name} begins twice")
            self._step()
            tag = self._tags[self._at]

        end = self._closing_tag(self._at)
        if end is None:
            return self._unclosed(tag, container)

        self._at = end
        self._step()
        return self._markup.content(tag.end, self._tags[end].start) or _value_of(tag)

    def _is_doubled(self, start: int) -> bool:
        """Return True for a start tag that another follows at once, without a text of its own."""
        end, inner_end = self._partners[start], self._partners[start + 1]
        is_same = self._tags[start + 1].name == self._tags[start].name
        if inner_end is None or not is_same or self._text_behind(start):
            return False

        return end is None or (end == inner_end + 1 and not self._text_behind(inner_end))

    def _closing_tag(self, start: int) -> int | None:
        """Return the number of the tag that closes a leaf."""
        name, partner = self._tags[start].name, self._partners[start]

        if partner is None or self._depths[start] < self._depths[partner]:
            # it may hold its own start tag as text: the last closing tag inside what is around it
            last = self._last.get((self._parts[start], name), start)
            partner = last if last > start else None

        # it may hold its own closing tag as text
        while partner is not None and self._tags[partner + 1][:2] == ("end", name):
            if not self._text_behind(partner):
                break
            partner += 1

        return partner

    def _unclosed(self, leaf: Tag, container: Element) -> str:
        """Return the text of a leaf that has no closing tag."""
        self._mend(container, f"{leaf.name} is not closed")
        seen = {*container.leaves, leaf.name}
        number = next(n for n in count(self._at + 1) if self._ends_leaf(n, leaf, seen))
        tag = self._tags[number]
        container.is_closed &= tag.kind != "rest"
        self._is_in_leaf |= tag.name == "agent"

        self._at, self._position = number, tag.start
        text = self._markup.content(leaf.end, tag.start)
        if self._stands_for_closing(number, leaf):
            self._step()
        else:
            text = _without_closing(_without_closing(text, "action"), leaf.name)

        return text if leaf.name in _FREE else text.partition("<")[0]

    def _ends_leaf(self, number: int, leaf: Tag, seen: set[str]) -> bool:
        tag = self._tags[number]
        if leaf.name not in _FREE or tag.kind in ("said", "turn", "rest"):
            return True
        if tag.kind == "end":
            return tag.name in _CONTAINERS or self._stands_for_closing(number, leaf)
        if tag.kind not in ("start", "empty"):
            return False
        if tag.name == "agent" or self._stands_for_closing(number, leaf):
            return True

        is_whole = tag.kind == "empty" or self._partners[number] is not None
        return tag.name not in seen and (tag.name == "action" or is_whole)

    def _stands_for_closing(self, number: int, leaf: Tag) -> bool:
        """Return True for a start tag that lacks its slash, or the closing tag of another leaf."""
        tag = self._tags[number]
        if tag.name not in _LEAVES or tag.kind == "empty":
            return False
        if tag.kind == "start" and tag.name != leaf.name:
            return False

        return self._tags[number + 1].kind != "rest" and not self._text_behind(number)

    def _mend(self, container: Element, defect: str) -> None:
        container.is_mended = True
        self.defects.append(defect)

    def _skip_thought(self) -> None:
        """Skip a thought, and end if it does not."""
        numbers = range(self._at + 1, len(self._tags))
        said = next((number for number in numbers if self._tags[number].kind == "said"), None)
        if said is None:
            self.defects.append("a thought is not closed")
            self.is_thinking = True
            self._open = self._open[:1] + self._open[1:-1]
            self._at = len(self._tags) - 1
        else:
            self._at = said
            self._step()

    def _text_behind(self, number: int) -> str:
        """Return the text between a tag and the one after it, without blanks around."""
        return self._markup.text[self._tags[number].end : self._tags[number + 1].start].strip()

    def _step(self) -> None:
        self._position = self._tags[self._at].end
        self._at += 1


def _attributes_of(tag: Tag) -> dict[str, str]:
    """Return the attributes of a tag that stand for elements, in the order of those."""
    found: dict[str, str] = {}
    for given in islice(_ATTRIBUTE.finditer(tag.attributes), _MOST_ATTRIBUTES):
        name, *texts = given.groups("")
        found.setdefault(key_of(name), resolved("".join(texts)))

    return {name: found[name] for name in _LEAVES if name in found}


def _value_of(tag: Tag) -> str:
    """Return the text of an element that has it in an attribute."""
    attributes = _attributes_of(tag)
    return attributes.get("value", attributes.get(tag.name, ""))


def _without_closing(text: str, name: str) -> str:
    """Drop a misspelt closing tag at the end of a text."""
    found = _LAST_CLOSING.search(text, max(len(text) - _MOST_CLOSING, 0))

    return text[: found.start()] if found is not None and _is_like(found, name) else text


def _is_like(closing: re.Match[str], name: str) -> bool:
    return SequenceMatcher(None, closing[1].lower(), name).ratio() >= _LIKENESS
