"""The states of a social agent, and a way to make state enums at run time."""

from __future__ import annotations

import copyreg
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum, EnumMeta, StrEnum
from functools import lru_cache
from typing import Any, Self, cast
from weakref import WeakValueDictionary

from prism.errors import DefinitionError


class AgentState(StrEnum):
    """Behavioural state of a social media agent (specification, AgentState)."""

    IDLE = "idle"
    SCROLLING = "scrolling"
    EVALUATING = "evaluating"
    COMPOSING = "composing"
    ENGAGING_LIKE = "engaging_like"
    ENGAGING_REPLY = "engaging_reply"
    ENGAGING_RESHARE = "engaging_reshare"
    RESTING = "resting"


def state_enum(name: str, values: Iterable[str]) -> type[StrEnum]:
    """Make a state enum at run time, for charts whose states are read from a file.

    The name of a member is its text in capitals, with underscores: ``Mood = state_enum("Mood",
    ["calm", "very angry"])`` has ``Mood.CALM`` and ``Mood.VERY_ANGRY``. Any text can be a state: a
    text that cannot become a name, such as ``"7"``, is called ``S0``, ``S1``, ... by its position.
    Members are also found by value: ``Mood("very angry")``.

    Args:
        name: Name of the enum class.
        values: The states' texts, in definition order.

    Returns:
        A ``StrEnum`` with one member for each value; the same class for the same name and values.
        Its members can be pickled, although no module holds the class.

    Raises:
        DefinitionError: If there are no values, or any is empty, not a string, or given twice.
    """
    texts = tuple(values)
    wrong = [repr(text) for text in texts if not isinstance(text, str) or not text]
    if wrong or not texts:
        problem = f"got {', '.join(wrong)}" if wrong else "got none"
        raise DefinitionError(f"state enum {name!r}: states must be non-empty strings, {problem}")

    if twice := [repr(text) for text, count in Counter(texts).items() if count > 1]:
        raise DefinitionError(f"state enum {name!r}: remove the repeated states {', '.join(twice)}")

    return made_enum(name, texts)


class _MadeEnum(EnumMeta):
    """The class of enums made at run time, which no module holds."""


class _MadeState(StrEnum, metaclass=_MadeEnum):
    """A state of an enum made at run time."""


_enums_made: WeakValueDictionary[tuple[Any, ...], type[StrEnum]] = WeakValueDictionary()
"""The enums made so far, as long as somebody has a member: a chart takes members of one enum."""


def made_enum(name: str, texts: tuple[str, ...]) -> type[StrEnum]:
    """Return the enum with these texts, one and the same for the same arguments."""
    recipe = name, texts
    if (enum := _enums_made.get(recipe)) is None:
        members = list(zip(_names_for(texts), texts, strict=True))
        enum = cast("type[StrEnum]", cast(Any, _MadeState)(name, members))
        cast(Any, enum)._recipe = recipe
        # another thread may have been faster
        enum = _enums_made.setdefault(recipe, enum)
    return enum


copyreg.pickle(cast(Any, _MadeEnum), lambda enum: (made_enum, enum._recipe))


def _names_for(texts: tuple[str, ...]) -> list[str]:
    """Return a name for each text: in capitals, or else by its place."""
    names = [re.sub(r"\W+", "_", text, flags=re.ASCII).upper() for text in texts]
    counts = Counter(names)
    return [
        name if counts[name] == 1 and re.fullmatch(r"(?!S\d+$)[A-Z]\w*", name) else f"S{index}"
        for index, name in enumerate(names)
    ]


# members of two IntEnums may be equal
@lru_cache(maxsize=4096, typed=True)
def state_text(state: object) -> str:
    """Return a state's plain text; that of an enum whose values are no texts is its name."""
    if not isinstance(state, Enum):
        return str(state)
    # `value` is looked up by code of Python's own, which takes four times as long
    return state._value_ if isinstance(state._value_, str) else state._name_


# The states of agents in charts with regions

SEPARATOR = "+"
"""Stands between the leaves of a configuration."""


class Configuration(str):
    """The leaves that are active together: the state of an agent in a chart with regions.

    It is a text, ``"feed+tired"``, with the leaves in the order of the chart.

    Attributes:
        leaves: The active leaves.
        value: The text.
        name: The text, for code that expects a member of an enum.
    """

    __slots__ = ("leaves",)
    leaves: tuple[Any, ...]

    def __new__(cls, leaves: Iterable[Any]) -> Self:
        """Join the leaves' texts."""
        leaves = tuple(leaves)
        made = super().__new__(cls, SEPARATOR.join(map(state_text, leaves)))
        made.leaves = leaves
        return made

    @property
    def value(self) -> str:
        """The text alone."""
        return str.__str__(self)

    name = value

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the leaves."""
        return type(self), (self.leaves,)


def is_text(state: object) -> bool:
    """Return whether an agent has its state as plain text, as it then stays."""
    return isinstance(state, str) and not isinstance(state, (Enum, Configuration))


def leaf_texts(state: Any) -> list[str]:
    """Return the texts of an agent's leaves, also of a configuration that was read as text."""
    if isinstance(state, Configuration):
        return [state_text(leaf) for leaf in state.leaves]
    return str(state).split(SEPARATOR) if is_text(state) else [state_text(state)]


# Texts of states

MOST_NAMED = 20
"""Names, or problems, that one message lists."""


def joined(texts: Sequence[str], separator: str = ", ") -> str:
    """Return several texts as one; of very many only the first."""
    more = len(texts) - MOST_NAMED
    return separator.join([*texts[:MOST_NAMED], f"and {more} more"] if more > 0 else texts)
