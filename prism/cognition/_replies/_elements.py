"""The elements of a reply, with tags that are missing, misspelt or not escaped.

A value may hold anything, tags of this language among it. Where an element ends follows from what
comes after: the closing tag that belongs to its start tag, else what can only stand outside it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import islice

from prism.cognition._replies._tags import NAMES, Markup, Tag, resolved
from prism.statechart.reasoner._replies._objects import excerpt

_OF_AGENT = ("next_state", "thinking_log")
_OF_ACTION = ("type", "tags", "value")
_CONTAINERS = ("agent", "action")
_FREE = ("thinking_log", "value")
"""Elements whose text may hold anything; that of the others is a word or two."""

_ATTRIBUTE = re.compile(r"""(?<![\w:-])([\w:-]++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""")
_LAST_CLOSING = re.compile(r"(?:</?|/)\s{0,3}([\w-]{1,24})\s{0,3}/?>?\s*\Z")
_MOST_CLOSING = 40
_MOST_ATTRIBUTES = 100
_FIRST_CLOSING = re.compile(r"\s*</\s{0,3}([\w-]{1,24})\s{0,3}>")
_END_OF_ACTION = re.compile(r"</\s{0,3}action", re.IGNORECASE)
_LIKENESS = 0.75


@dataclass(slots=True)
class Element:
    """An agent or an action element, or what stands for one.

    Attributes:
        leaves: The texts of its elements; of one that appears twice, the first.
        attributes: What stands in its attributes instead.
        actions: The actions in it, in order.
        stray: The text in it that belongs to no element.
        is_closed: Whether its end was reached.
        is_clear: Whether there is no doubt where its value ends.
        is_cut: Whether the text ends within one of its elements.
        is_mended: Whether one of its elements was not as it should be.
    """

    leaves: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    actions: list[Element] = field(default_factory=list)
    stray: str = ""
    is_closed: bool = False
    is_clear: bool = True
    is_cut: bool = False
    is_mended: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been read into it."""
        return not (self.leaves or self.actions or self.attributes)


class Elements:
    """The elements that are found in a reply.

    Its tags are read from left to right; every method leaves off behind what it has read.

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
        self.agents: list[Element] = []
        self.loose = Element()
        self.loose_start = 0
        self.is_thinking = False
        self.defects: list[str] = []
        self._markup = markup
        self._tags = markup.tags
        self._at = 0
        self._position = 0
        self._is_in_leaf = False
        self._lay_out()

        while self._at < len(self._tags) and not self._is_over(self._tags[self._at]):
            self._read_outside(self._tags[self._at])
        if markup.is_doubtful:
            for element in (*self.agents, self.loose):
                element.is_clear = False

    def _lay_out(self) -> None:
        """Note what belongs together among the tags.

        That is the tag that closes each, as far as start and end tags balance; how many agent
        elements more are begun than closed at each; the tags that no leaf goes beyond; and the
        closing tags of each leaf.
        """
        self._partners: list[int | None] = [None] * len(self._tags)
        self._depths: list[int] = []
        self._borders: list[int] = []
        self._closing: dict[str, list[int]] = {name: [] for name in (*_OF_AGENT, *_OF_ACTION)}
        open_tags: dict[str, list[int]] = defaultdict(list)
        depth = 0
        for number, tag in enumerate(self._tags):
            self._depths.append(depth)
            if tag.kind == "start":
                open_tags[tag.name].append(number)
            elif tag.kind == "end" and open_tags[tag.name]:
                self._partners[open_tags[tag.name].pop()] = number

            if tag.name in _CONTAINERS or tag.kind in ("said", "turn"):
                self._borders.append(number)
                depth += {"start": 1, "end": -1}.get(tag.kind, 0) if tag.name == "agent" else 0
            elif tag.kind == "end":
                self._closing[tag.name].append(number)

        self._borders.append(len(self._tags))

    def _is_over(self, tag: Tag) -> bool:
        """Return True at the end of the answer: a model that goes on writes the turns of others."""
        has_answer = self.agents or not self.loose.is_empty
        return tag.kind == "open comment" or (tag.kind == "turn" and bool(has_answer))

    def _read_outside(self, tag: Tag) -> None:
        """Read what begins with a tag outside of agent elements."""
        if tag.kind == "thought":
            self.is_thinking = not self._skip_thought()
        elif tag.kind == "said":
            # what precedes a lone end tag is a thought, too
            self.agents.clear()
            self.loose = Element()
            self._is_in_leaf = False
            self._step()
        elif tag.name == "agent" and tag.kind != "end":
            # within a text that is not closed it may be a part of that, or the answer begun anew
            self.agents.append(Element(is_clear=not self._is_in_leaf))
            self._read_container(tag, self.agents[-1])
        elif tag.kind in ("start", "empty"):
            self.loose_start = tag.start if self.loose.is_empty else self.loose_start
            self._read_child(tag, self.loose)
        else:
            self._doubt_value(tag)
            self._step()

    def _doubt_value(self, tag: Tag) -> None:
        """Note a closing tag of a value behind an agent element: its value may go on until here."""
        is_lone = tag.kind == "end" and tag.name == "value"
        if is_lone and self.agents and self._text_before(tag).strip():
            self.agents[-1].is_clear = False

    def _read_container(self, tag: Tag, container: Element) -> None:
        """Read an agent or action element into a container until it ends or is broken off."""
        container.attributes |= _leaves_among(_attributes_of(tag))
        self._step()
        container.is_closed = tag.kind == "empty"
        is_open = not container.is_closed

        while is_open:
            if self._at == len(self._tags):
                self._read_rest(tag.name, container)
                return

            next_tag = self._tags[self._at]
            self._note_stray(next_tag, container)
            is_open = self._read_part(tag.name, next_tag, container)

    def _read_rest(self, name: str, container: Element) -> None:
        """Read what follows the last tag, in a container that is still open."""
        rest = self._markup.content(self._position, len(self._markup.text))
        closing = _FIRST_CLOSING.match(rest)
        container.is_closed = name == "agent" and closing is not None and _is_like(closing, name)
        if container.is_closed:
            self.defects.append("the closing tag of agent is misspelled")
        else:
            container.stray += rest

    def _read_part(self, name: str, tag: Tag, container: Element) -> bool:
        """Read what begins with a tag in a container of a name; return False at its end."""
        if tag.kind in ("said", "turn"):
            return False
        if tag.kind == "thought":
            return self._skip_thought()
        if tag.kind == "comment":
            self._step()
        elif tag.kind == "open comment":
            self._at = len(self._tags)
        elif tag.kind == "end":
            return self._read_end(name, tag, container)
        elif tag.name in _CONTAINERS:
            return self._read_inner(name, tag, container)
        else:
            self._read_child(tag, container)

        return True

    def _read_end(self, name: str, tag: Tag, container: Element) -> bool:
        """Read a closing tag in a container; return False if it closes that, or what is around."""
        if tag.name == name:
            container.is_closed = True
            self._step()
            return False
        if tag.name == "agent":
            # elements that cross: the value may end before what it holds
            holds_end = _END_OF_ACTION.search(container.leaves.get("value", "")) is not None
            container.is_clear &= not holds_end
            return False

        if tag.name == "value" and self._text_before(tag).strip():
            container.is_clear = False
        self._mend(container, f"a closing tag of {tag.name} has no opening tag")
        self._step()

        return True

    def _read_inner(self, name: str, tag: Tag, container: Element) -> bool:
        """Read an agent or action element inside a container; return False if that ends there."""
        if tag.name == "action" and name == "agent":
            self._read_child(tag, container)
            return True

        # one around the other, or one that was broken off and begun again
        if container.is_empty and tag.name == name:
            container.attributes |= _leaves_among(_attributes_of(tag))
            self._step()
            return True

        self.defects.append(f"a new {tag.name} begins before the previous one is closed")
        return False

    def _read_child(self, tag: Tag, container: Element) -> None:
        if tag.name == "action":
            action = Element()
            container.actions.append(action)
            self._read_container(tag, action)
            return

        text = self._read_leaf(tag, container)
        if tag.name in container.leaves:
            self._mend(container, f"{tag.name} appears twice; ignored: {excerpt(text)}")
        else:
            container.leaves[tag.name] = text

    def _read_leaf(self, tag: Tag, container: Element) -> str:
        """Return the text of an element without elements in it."""
        if tag.kind == "empty":
            self._step()
            return _value_of(tag)

        tag = self._start_of(tag, container)
        end = self._closing_tag(self._at)
        if end is not None:
            text = self._markup.content(tag.end, self._tags[end].start)
            self._at, self._position = end + 1, self._tags[end].end
            return text or _value_of(tag)

        self._mend(container, f"{tag.name} is not closed")
        text, is_closing = self._unclosed(tag, container)
        if not is_closing:
            text = _without_closing(_without_closing(text, "action"), tag.name)

        return text if tag.name in _FREE else text.partition("<")[0]

    def _start_of(self, tag: Tag, container: Element) -> Tag:
        """Return the start tag of a leaf; the second, if it stands there twice."""
        if self._at + 1 == len(self._tags) or not self._is_doubled(self._at):
            return tag

        following = self._tags[self._at + 1]
        self._mend(container, f"{tag.name} begins twice")
        self._step()

        return following

    def _is_doubled(self, start: int) -> bool:
        """Return True for a start tag that another follows at once, without a text of its own."""
        end, inner_end = self._partners[start], self._partners[start + 1]
        is_same = self._tags[start + 1].name == self._tags[start].name
        if inner_end is None or not is_same or self._text_between(start):
            return False

        return end is None or (end == inner_end + 1 and not self._text_between(inner_end))

    def _text_between(self, number: int) -> str:
        """Return the text between a tag and the one after it, without blanks around."""
        return self._markup.text[self._tags[number].end : self._tags[number + 1].start].strip()

    def _closing_tag(self, start: int) -> int | None:
        """Return the number of the tag that closes a leaf."""
        name, partner = self._tags[start].name, self._partners[start]

        if partner is None or self._depths[start] < self._depths[partner]:
            # it may hold its own start tag as text: the last closing tag inside what is around it
            around = self._borders[bisect_right(self._borders, start)]
            closing = self._closing[name]
            last = bisect_left(closing, around) - 1
            partner = closing[last] if last >= 0 and closing[last] > start else None

        # it may hold its own closing tag as text
        while partner is not None and self._goes_on(partner, name):
            partner += 1

        return partner

    def _goes_on(self, partner: int, name: str) -> bool:
        if partner + 1 == len(self._tags):
            return False

        following = self._tags[partner + 1]
        is_closing = following.kind == "end" and following.name == name

        return is_closing and bool(self._text_between(partner))

    def _unclosed(self, leaf: Tag, container: Element) -> tuple[str, bool]:
        """Return the text of a leaf that has no closing tag, and whether another stood for it."""
        seen = {*container.leaves, leaf.name}
        number = self._at + 1
        while number < len(self._tags) and not self._ends_leaf(number, leaf, seen):
            number += 1

        is_last = number == len(self._tags)
        end = len(self._markup.text) if is_last else self._tags[number].start
        text = self._markup.content(leaf.end, end)
        container.is_cut |= is_last
        self._is_in_leaf |= not is_last and self._tags[number].name == "agent"

        stands_for_it = not is_last and self._stands_for_closing(number, leaf)
        self._at = number + 1 if stands_for_it else number
        self._position = self._tags[number].end if stands_for_it else end

        return text, stands_for_it

    def _ends_leaf(self, number: int, leaf: Tag, seen: set[str]) -> bool:
        tag = self._tags[number]
        if leaf.name not in _FREE or tag.kind in ("said", "turn"):
            return True
        if tag.kind == "end":
            return tag.name in _CONTAINERS or self._stands_for_closing(number, leaf)
        if tag.kind not in ("start", "empty"):
            return False
        if tag.name == "agent" or self._stands_for_closing(number, leaf):
            return True

        return tag.name not in seen and (tag.name == "action" or self._is_whole(number))

    def _is_whole(self, number: int) -> bool:
        """Return whether an element has an end, as far as can be said."""
        return self._tags[number].kind == "empty" or self._partners[number] is not None

    def _stands_for_closing(self, number: int, leaf: Tag) -> bool:
        """Return True for a start tag that lacks its slash, or the closing tag of another leaf."""
        tag = self._tags[number]
        if tag.name in _CONTAINERS or tag.kind not in ("start", "end"):
            return False
        if tag.kind == "start" and tag.name != leaf.name:
            return False
        if number + 1 == len(self._tags):
            return False

        return not self._text_between(number)

    def _mend(self, container: Element, defect: str) -> None:
        container.is_mended = True
        self.defects.append(defect)

    def _skip_thought(self) -> bool:
        """Skip a thought; return False if it does not end."""
        for number in range(self._at + 1, len(self._tags)):
            if self._tags[number].kind == "said":
                self._at, self._position = number + 1, self._tags[number].end
                return True

        self.defects.append("a thought is not closed")
        self._at = len(self._tags)
        return False

    def _note_stray(self, tag: Tag, container: Element) -> None:
        text = self._text_before(tag)
        if text.strip():
            container.stray += text

    def _text_before(self, tag: Tag) -> str:
        return self._markup.content(self._position, tag.start)

    def _step(self) -> None:
        self._position = self._tags[self._at].end
        self._at += 1


def _attributes_of(tag: Tag) -> dict[str, str]:
    found: dict[str, str] = {}
    for given in islice(_ATTRIBUTE.finditer(tag.attributes), _MOST_ATTRIBUTES):
        name, *texts = given.groups("")
        key = NAMES.get(re.sub(r"[-_]", "", name.lower()), name.lower())
        found.setdefault(key, resolved("".join(texts)))

    return found


def _leaves_among(attributes: dict[str, str]) -> dict[str, str]:
    return {name: attributes[name] for name in (*_OF_AGENT, *_OF_ACTION) if name in attributes}


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
