"""Attributes of agents, keys of events and parameters of worlds in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from prism.errors import FieldValueError, ReasonerError
from prism.statechart._identity import identify, name_or_address
from prism.statechart.states import state_text

_TELLING = (str, int, float, Enum, list, tuple, dict, type(None))


def attribute_names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the attributes for prompts; a single text names one.

    Raises:
        FieldValueError: If one of them is not a name.
    """
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or not name:
            raise FieldValueError(f"attributes must be names of attributes, got {name!r}")

    return names


def attribute_lines(agent: Any, attributes: Sequence[str]) -> list[str]:
    """Return attributes of an agent as lines such as ``age: 34``.

    Raises:
        ReasonerError: If it has no such attribute, or the value cannot be put in words.
    """
    return [f"{name.replace('_', ' ')}: {attribute_of(agent, name)}" for name in attributes]


def attribute_of(agent: Any, name: str) -> str:
    """Return an attribute of an agent in words: from its ``attributes``, or else its own.

    Raises:
        ReasonerError: If there is none, or the value cannot be put in words.
    """
    return _told(_sources_of(agent), name, f"agent {name_or_address(agent)!r}")


def key_of(context: Any, name: str) -> str:
    """Return a key or an attribute of an event's context in words.

    Raises:
        ReasonerError: As `attribute_of`.
    """
    return _told([context], name, "the context")


def parameter_of(parameters: Mapping[str, Any] | None, name: str) -> str:
    """Return a parameter of the world in words.

    Raises:
        ReasonerError: If there is none.
    """
    return _told([parameters or {}], name, "the world")


def in_words(value: Any) -> str:
    """Return a value in words: numbers with four digits, lists with commas."""
    for kinds, tell in _IN_WORDS:
        if isinstance(value, kinds):
            return tell(value)

    return in_words(list((identify(value) or {}).values()))


def _member_in_words(member: Enum) -> str:
    return state_text(member) if isinstance(member, str) else in_words(member.value)


def _mapping_in_words(mapping: Mapping[Any, Any]) -> str:
    return ", ".join(f"{in_words(key)}: {in_words(item)}" for key, item in mapping.items())


_IN_WORDS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (Enum, _member_in_words),
    (bool, lambda value: "yes" if value else "no"),
    (float, lambda value: f"{value:.4g}"),
    (Mapping, _mapping_in_words),
    ((set, frozenset), lambda value: ", ".join(sorted(map(in_words, value)))),
    ((list, tuple), lambda value: ", ".join(map(in_words, value))),
    (type(None), lambda _: "none"),
    ((str, int), str),
)
"""The wording of each kind of value; enum members and truth values may also be texts or numbers."""


def _sources_of(agent: Any) -> list[Any]:
    own = getattr(agent, "attributes", None)
    return [own, agent] if isinstance(own, Mapping) else [agent]


def _told(sources: Sequence[Any], name: str, whose: str) -> str:
    for source in sources:
        if isinstance(source, Mapping):
            if name in source:
                return in_words(source[name])
        elif not name.startswith("_") and hasattr(source, name):
            value = getattr(source, name)
            if not callable(value):
                return in_words(value)

    names = dict.fromkeys(each for source in sources for each in _names_in(source))
    known = ", ".join(names) or "nothing"
    raise ReasonerError(f"a prompt names {name!r}, which {whose} does not have: it has {known}")


def _names_in(source: Any) -> list[str]:
    """Return the names of values that can be put in words."""
    if isinstance(source, Mapping):
        return [str(name) for name in source]

    return [name for name in dir(source) if not name.startswith("_") and _is_telling(source, name)]


def _is_telling(source: Any, name: str) -> bool:
    try:
        return isinstance(getattr(source, name), _TELLING)
    except Exception:  # a property of the user's class, such as that of a detached database row
        return False
