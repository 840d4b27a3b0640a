"""What a model reads: values in words, texts of other people, and templates.

A text that the chart's author did not write, such as a post or a personality, never has a line at
the left margin of a prompt, so that it cannot pose as a part of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from enum import Enum
from math import isfinite
from typing import Any

from prism.errors import ReasonerError
from prism.statechart.names import agent_name, identify
from prism.statechart.states import state_text

_BRACES = re.compile(r"\{([^{}\n]{1,200})\}")
_FIRST_WORD = re.compile(r"\s*([^\W\d]\w*)[\w.]*")

_LARGE = 1e15
"""Numbers from here on have an exponent in a prompt."""


# Other people's texts


def one_line(text: Any) -> str:
    """Return a text as a single line, as a name has to be."""
    return " ".join(str(text).split())


def indented(text: str) -> str:
    """Return a text whose lines after the first are indented."""
    return "\n  ".join(text.splitlines())


def quotation(text: str) -> str:
    """Return a text as a quotation: each of its lines indented, behind a mark."""
    return "\n".join(f"  > {line}".rstrip() for line in text.splitlines())


# Values


def in_words(value: Any) -> str:
    """Return a value in words: numbers with all of their digits, lists with commas."""
    for kinds, write in _IN_WORDS:
        if isinstance(value, kinds):
            return write(value)

    return in_words(list((identify(value) or {}).values()))


def number_in_words(number: float) -> str:
    """Return a number with the fewest digits that are exact, and no exponent below 1e15."""
    text = repr(number)
    if not isfinite(number) or abs(number) >= _LARGE:
        return text
    return format(Decimal(text), "f").removesuffix(".0")


def _member_in_words(member: Enum) -> str:
    return state_text(member) if isinstance(member, str) else in_words(member.value)


def _mapping_in_words(mapping: Mapping[Any, Any]) -> str:
    return ", ".join(f"{in_words(key)}: {in_words(item)}" for key, item in mapping.items())


_IN_WORDS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (Enum, _member_in_words),
    (bool, lambda value: "yes" if value else "no"),
    (float, number_in_words),
    (Mapping, _mapping_in_words),
    ((set, frozenset), lambda value: ", ".join(sorted(map(in_words, value)))),
    ((list, tuple), lambda value: ", ".join(map(in_words, value))),
    (type(None), lambda _: "none"),
    ((str, int), str),
)
"""The wording of each kind of value; enum members and truth values may also be texts or numbers."""


def lines_of(values: Mapping[str, Any]) -> list[str]:
    """Return values as lines such as ``age: 34``."""
    return [f"{one_line(name)}: {indented(in_words(value))}" for name, value in values.items()]


def attribute_of(agent: Any, name: str) -> Any:
    """Return an attribute of an agent: from its ``attributes``, or else its own.

    Raises:
        ReasonerError: If there is none.
    """
    further = getattr(agent, "attributes", None)
    sources = [further, agent] if isinstance(further, Mapping) else [agent]
    return value_in(sources, name, f"agent {agent_name(agent)!r}")


def value_in(sources: Sequence[Any], name: str, owner: str) -> Any:
    """Return a key or an attribute of the first object that has it.

    Args:
        sources: The objects.
        name: The key or the attribute.
        owner: What to call the objects in a message.

    Raises:
        ReasonerError: If none of them has it.
    """
    for source in sources:
        if isinstance(source, Mapping):
            if name in source:
                return source[name]
        elif not name.startswith("_") and hasattr(source, name):
            value = getattr(source, name)
            if not callable(value):
                return value

    names = dict.fromkeys(each for source in sources for each in _names_in(source))
    listed = ", ".join(names) or "nothing"
    raise ReasonerError(f"a prompt names {name!r}, which {owner} does not have: it has {listed}")


def _names_in(source: Any) -> list[str]:
    names = source if isinstance(source, Mapping) else getattr(source, "__dict__", ())
    return [str(name) for name in names if not str(name).startswith("_")]


# Templates


class Template:
    """A text with ``{variables}``, which is parsed once and filled often.

    Nothing in it is evaluated, and variables are not replaced inside values.

    Args:
        text: The text.
        pattern: The pattern of a variable, with its name as the only group.
    """

    __slots__ = ("_parts", "names")

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        # literal, name, literal, name, ..., literal
        self._parts: list[str] = pattern.split(text)
        self.names: tuple[str, ...] = tuple(dict.fromkeys(self._parts[1::2]))

    def fill(self, variables: Mapping[str, str]) -> str:
        """Return the text with its variables filled in, of which each has a value."""
        parts = list(self._parts)
        parts[1::2] = [variables[name] for name in parts[1::2]]
        return "".join(parts)


def template_of(
    text: str, fields: Sequence[str], objects: Sequence[str]
) -> tuple[Template, list[str]]:
    """Return a template of fields, and what is wrong with it.

    Fields are ``{name}`` and ``{agent.age}``, perhaps with a format: ``{agent.age:.1f}``. Braces
    that begin with none of these words stay as they are, so a prompt may contain JSON.

    Args:
        text: The text.
        fields: The names of fields.
        objects: Names of objects, whose attributes are fields.
    """
    dotted = (rf"{each}\.[^\W\d_]\w*" for each in objects)
    name = "|".join((*fields, *dotted))
    pattern = re.compile(rf"\{{\s*((?:{name})(?::[^{{}}\n]*)?)\s*\}}")
    listed = ", ".join((*fields, *(f"{each}.<...>" for each in objects)))
    problems = [
        f"names {{{inside}}}, which is not a field: there are {listed}, each with a format or "
        "without, as in {agent.age:.1f}"
        for inside in _BRACES.findall(text)
        if not pattern.fullmatch(f"{{{inside}}}") and _is_nearly_a_field(inside, fields, objects)
    ]
    return Template(text, pattern), problems


def _is_nearly_a_field(inside: str, fields: Sequence[str], objects: Sequence[str]) -> bool:
    word = _FIRST_WORD.match(inside)
    return word is not None and (word[1] in {*fields, *objects} or word[0] == inside)


def fill_fields(
    template: Template,
    fields: Mapping[str, Callable[[], str]],
    objects: Mapping[str, Callable[[str], Any]],
) -> str:
    """Return a template's text with its fields filled in.

    Args:
        template: The template.
        fields: Functions that return the text of a field.
        objects: Functions that return an attribute of an object.

    Raises:
        ReasonerError: If an attribute does not exist, or its format does not fit.
    """
    texts = {}
    for name in template.names:
        field, _, form = name.partition(":")
        owner, _, attribute = field.partition(".")
        value = objects[owner](attribute) if attribute else fields[owner]()
        if not form:
            texts[name] = indented(in_words(value)) if attribute else value
            continue
        try:
            texts[name] = format(value, form)
        except (ValueError, TypeError) as error:
            raise ReasonerError(f"a prompt names {{{name}}}: {error}") from error

    return template.fill(texts)


# Lengths

TokenCounter = Callable[[str], int]
"""Returns the number of tokens of a text, or more; never fewer if a limit must hold."""

_BYTES_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """Estimate the number of tokens in a text: one for four bytes, as in English.

    Args:
        text: The text, in any language.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)
