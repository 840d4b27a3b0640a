"""Types of values in compiled steps, and what is known of a world's class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, TypeGuard, get_args, get_origin

from prism._faults import Place


@dataclass(frozen=True, slots=True)
class Type:
    """A type of compiled code.

    Args:
        name: Its description.
        options: Values of an enum or a `Literal`, represented by their positions.
    """

    name: str
    options: tuple[Any, ...] = ()


INT, FLOAT, BOOL = Type("a whole number"), Type("a float"), Type("True or False")
TRUTH = Type("a truth of several kinds of values")
AGENT, MAYBE_AGENT = Type("an agent"), Type("an agent or None")
STATE, MAYBE_STATE = Type("a state"), Type("a state or None")
NEIGHBOURS, STREAM = Type("neighbours"), Type("random numbers")
NUMBER, CONDITION = Type("a number"), Type("a condition")
"""Types that values are converted to: a float if a number is needed, and a condition."""

WEIGHTS, TEXT, NONE, WORLD = Type("weights"), Type("a text"), Type("None"), Type("the world")
OBJECT = Type("something that has no column")
LOST = Type("what was refused")
"""The type of an expression that was refused: whatever is done with it is no problem of its own."""

UNKNOWN: Any = object()
"""The value of an expression that only a run knows."""

ZERO: Mapping[Type, str] = {FLOAT: "0.0", BOOL: "False", TRUTH: "False"}
"""Initial values of local variables other than 0."""


@dataclass(frozen=True, slots=True)
class Value:
    """A translated expression.

    Args:
        text: Its text in compiled code.
        type: What it is.
        constant: The value itself if it is known, or `UNKNOWN`.
    """

    text: str
    type: Type
    constant: Any = UNKNOWN


def kind_of(of: Type) -> str:
    """Return how a record stores a value."""
    return {FLOAT: "f8", INT: "i8", BOOL: "?", TRUTH: "?"}.get(of, "i4")


def read_as(of: Type, text: str) -> str:
    """Return code that reads a value of a record."""
    return f"np.int64({text})" if kind_of(of) == "i4" else text


@dataclass(frozen=True, slots=True)
class Stored:
    """A field of agents, or a value of the world.

    Args:
        name: Its name in the record.
        type: What it is.
    """

    name: str
    type: Type

    def of(self, record: str) -> Value:
        """Return code that reads the value."""
        return Value(read_as(self.type, f"{record}.{self.name}"), self.type)


@dataclass(slots=True)
class Layout:
    """The facts about a world's class that compiled code depends on.

    Args:
        cls: The world's class.
        agent: The class of its agents.
        states: The states, in the order of their numbers.
        triggers: The triggers, in the order of theirs.
        fields: Fields of agents that have columns.
        values: Fields of the world that steps can read.
        others: Fields that have none, each with why.
        other_values: Fields of the world that steps cannot read, each with why.
    """

    cls: Any
    agent: Any
    states: Sequence[Any]
    triggers: Sequence[str]
    fields: dict[str, Stored] = field(default_factory=dict)
    values: dict[str, Stored] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    other_values: dict[str, str] = field(default_factory=dict)

    def number_of(self, state: Any) -> int | None:
        """Return the number of a state, or None if the chart lacks it."""
        return next((at for at, each in enumerate(self.states) if each is state), None)


@dataclass(slots=True, eq=False)
class Unit:
    """A world's class, compiled to text.

    Args:
        layout: The layout of its fields, states and triggers.
        text: The text of the module, but for the kernel.
        problems: The parts that cannot be compiled, each with file, line and what to do.
        records: Fields of the records of a run, its agents, waiting steps, and so on.
        uses_waits: Whether a step awaits something.
        has_limits: Whether a state times out.
        is_apart: Whether agents may have their turns in any order, since steps look at and change
            their own agents alone.
        may_be_endless: Whether a step may never end.
        places: Lines in which a step may fail, by their numbers in compiled code, from 1.
        functions: The texts of functions: steps, guards, and what they call.
        written: Fields that steps write.
    """

    layout: Layout
    text: str = ""
    problems: list[str] = field(default_factory=list)
    records: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    uses_waits: bool = False
    has_limits: bool = False
    is_apart: bool = True
    may_be_endless: bool = False
    places: list[Place] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    written: dict[str, None] = field(default_factory=dict)


def is_word(value: Any) -> TypeGuard[int]:
    """Return whether a value is an integer of 64 bits."""
    return type(value) is int and -(2**63) <= value < 2**63


def type_of(hint: Any) -> Type | None:
    """Return the type of a field, or None if it has no column."""
    plain = {int: INT, float: FLOAT, bool: BOOL}.get(hint)
    if plain is not None:
        return plain
    if get_origin(hint) is Literal:
        return Type("a text", get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Type(hint.__name__, tuple(hint))

    return None
