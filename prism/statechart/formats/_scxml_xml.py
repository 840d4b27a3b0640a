"""The XML of an SCXML document, with the line of each element, within bounds.

The standard library's expat reads it. No document type is read, so there are no entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from prism.errors import DefinitionError, InputError
from prism.statechart.formats._scxml_names import NAMESPACE, PRISM_NAMESPACE

MOST_CHARACTERS = 1_000_000
MOST_LEVELS = 100
MOST_ELEMENTS = 20_000

BETWEEN = " "
"""Stands between a namespace and a name."""

OWN = "prism:"
"""Stands before the names of prism's own attributes, whatever their prefix in the document."""


@dataclass(slots=True)
class Element:
    """One element.

    Args:
        tag: Its name; with its namespace before it if that is not SCXML's.
        attributes: Its attributes; with their namespace before them if they have one.
        line: Where it begins.
        name: What it is called as a state.
        children: The elements inside.
        text: The text directly inside.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    name: str = ""
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, *tags: str) -> list[Element]:
        """Return the elements directly inside with one of these names."""
        return [child for child in self.children if child.tag in tags]

    def is_set(self, name: str) -> bool:
        """Return whether an attribute of prism's own says so."""
        return self.attributes.get(OWN + name) == "true"

    def walk(self) -> Iterator[Element]:
        """Yield the element and all that are inside, in document order."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)


def parse(text: str) -> tuple[Element, bool]:
    """Read a text.

    Returns:
        The outermost element, and whether the text names prism's namespace, as documents do that
        prism has written.

    Raises:
        DefinitionError: If it is beyond a bound, or has a document type.
        InputError: If it is not well-formed; names the line.
    """
    if len(text) > MOST_CHARACTERS:
        raise DefinitionError(
            f"the document is longer than {MOST_CHARACTERS:,} characters: split it"
        )

    builder = _Builder()
    try:
        # a text has been decoded, whatever its declaration says
        builder.parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        raise InputError(f"is not well-formed XML: {problem}", line=error.lineno) from None

    assert builder.root is not None
    return builder.root, builder.is_own


class _Builder:
    def __init__(self) -> None:
        self.root: Element | None = None
        self.is_own = False
        self._open: list[Element] = []
        self._count = 0
        self.parser: Any = expat.ParserCreate("utf-8", BETWEEN)
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse_type
        self.parser.StartNamespaceDeclHandler = self._namespace
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def _refuse_type(self, *_args: Any) -> None:
        raise DefinitionError(
            f"line {self.parser.CurrentLineNumber}: the document has a DOCTYPE, which is not "
            "supported: remove it"
        )

    def _namespace(self, _prefix: str | None, uri: str | None) -> None:
        self.is_own = self.is_own or uri == PRISM_NAMESPACE

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        self._count += 1
        if self._count > MOST_ELEMENTS:
            raise DefinitionError(
                f"the document has more than {MOST_ELEMENTS:,} elements: split it"
            )
        if len(self._open) >= MOST_LEVELS:
            raise DefinitionError(
                f"line {line}: elements are nested more than {MOST_LEVELS} levels deep: split the "
                "document"
            )

        attributes = {
            key.replace(PRISM_NAMESPACE + BETWEEN, OWN, 1): value
            for key, value in attributes.items()
        }
        element = Element(name.removeprefix(NAMESPACE + BETWEEN), attributes, line)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self.root = element
        self._open.append(element)

    def _end(self, _name: str) -> None:
        self._open.pop()

    def _text(self, text: str) -> None:
        # most of it is space between elements
        if self._open and (self._open[-1].text or not text.isspace()):
            self._open[-1].text += text
