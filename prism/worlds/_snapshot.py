"""Fields as JSON, and back: what a checkpoint keeps of agents, Things and the world.

A column holds one field of all agents of a kind, so that a field of plain numbers or texts costs
hardly anything. A value that JSON lacks is an object with one key that names its type::

    {"t": [...]}    a tuple             {"a": 7}              the eighth agent
    {"q": [...]}    a deque             {"o": 3}              the fourth Thing
    {"d": [[...]]}  a dict, as pairs    {"e": [class, name]}  a member of an enum
    {"n": "nan"}    a number that JSON does not have
    {"s": [...]}    a set of agents
"""

from __future__ import annotations

import marshal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, Flag
from math import isfinite
from typing import Any

import orjson

from prism.errors import SimulationError
from prism.statechart import Configuration
from prism.worlds._agent import Agent, Thing
from prism.worlds._agent_set import AgentSet

Column = list[Any]

_PLAIN = {int, str, bool, type(None)}
_WITH_FLOATS = {*_PLAIN, float}
_LARGEST = 2**63


class CannotKeepError(Exception):
    """A value that a checkpoint cannot represent; the message says what to use instead."""


_WRITTEN: Mapping[type, Callable[[Callable[[Any], Any], Any], Any]] = {
    list: lambda write, held: list(held) if _is_plain(held) else list(map(write, held)),
    tuple: lambda write, held: {"t": list(map(write, held))},
    AgentSet: lambda write, held: {"s": list(map(write, held))},
    deque: lambda write, held: {"q": [list(map(write, held)), held.maxlen]},
    dict: lambda write, held: {"d": [[write(key), write(each)] for key, each in held.items()]},
}


class Encoder:
    """Turns fields into plain data.

    Args:
        agents: The population.
        home: Module of the world's class, whose classes are called by their bare names.
    """

    def __init__(self, agents: Sequence[Agent], home: str) -> None:
        self._agents = agents
        self._home = home
        self._things: dict[int, int] = {}
        self._waiting: list[Thing] = []
        # kept alive, so that no other object gets an address that was recorded
        self._seen: dict[int, tuple[Any, str]] = {}
        self._where = ""

    def column(
        self,
        owners: Sequence[Any],
        read: Callable[[Any], Any],
        name: str,
        *,
        is_new: bool = False,
    ) -> Column:
        """Return one field of several objects.

        Args:
            owners: The objects.
            read: Returns the value of one.
            name: Name of the field.
            is_new: Whether each value was made by reading it, so that no other field holds it.

        Raises:
            SimulationError: If a value cannot be kept; the message names class, object and field.
        """
        values = list(map(read, owners))
        if _is_plain(values) or (is_new and _survives(values)):
            return values

        encode, done = self.value, []
        for owner, value in zip(owners, values, strict=True):
            self._where = f"{type(owner).__name__}.{name} of {_name_of(owner)}"
            try:
                done.append(encode(value))
            except CannotKeepError as problem:
                raise SimulationError(f"{self._where} cannot be kept: {problem}") from None
            except RecursionError:
                raise SimulationError(
                    f"{self._where} cannot be kept: it is nested too deeply: use a Thing"
                ) from None

        return done

    def things(self) -> list[list[Any]]:
        """Return the Things encountered so far, in order, and the Things that they refer to."""
        done: list[list[Any]] = []
        # a Thing may refer to others, which are appended
        while len(done) < len(self._waiting):
            thing = self._waiting[len(done)]
            fields = [
                self.column([thing], lambda each, name=name: getattr(each, name), name)[0]  # type: ignore[misc]
                for name in type(thing).fields
            ]
            done.append([self._class_name(type(thing)), fields])

        return done

    def value(self, value: Any) -> Any:
        """Return one value.

        Raises:
            CannotKeepError: If it cannot be represented.
        """
        kind = type(value)
        if kind in _PLAIN or kind is float:
            return value if _is_plain_alone(value) else _number_of_no_json(value)
        if kind in _WRITTEN:
            if kind not in (tuple, AgentSet):
                self._note(value)
            return _WRITTEN[kind](self.value, value)
        if isinstance(value, Agent):
            return {"a": self._place_of(value)}
        if isinstance(value, Thing):
            return {"o": self._number_of(value)}
        if isinstance(value, Configuration):
            return {"c": [self.value(leaf) for leaf in value.leaves]}
        if isinstance(value, Flag):
            # a combination of flags has no name of its own
            return {"e": [self._class_name(kind), self.value(value.value)]}
        if isinstance(value, Enum):
            return {"e": [self._class_name(kind), value.name]}

        raise CannotKeepError(f"{_shown(value)} is a {kind.__name__}: {_mend(value)}")

    def _note(self, container: Any) -> None:
        known = self._seen.get(id(container))
        if known is not None:
            raise CannotKeepError(
                f"it is the same {type(container).__name__} as in {known[1]}, and resuming "
                "would turn it into two: put it in a Thing, or in the world"
            )

        self._seen[id(container)] = container, self._where

    def _place_of(self, agent: Agent) -> int:
        place: int | None = getattr(agent, "_place", None)
        if place is None or place >= len(self._agents) or self._agents[place] is not agent:
            raise CannotKeepError(f"{agent!r} is not among the agents of the world")

        return place

    def _number_of(self, thing: Thing) -> int:
        number = self._things.setdefault(id(thing), len(self._things))
        if number == len(self._waiting):
            self._class_name(type(thing))
            self._waiting.append(thing)

        return number

    def _class_name(self, cls: type) -> str:
        home = "" if cls.__module__ == self._home else cls.__module__
        name = f"{home}:{cls.__qualname__}"
        if find_class(name, self._home) is not cls:
            raise CannotKeepError(
                f"the class {cls.__qualname__} cannot be found again: define it at the top of a "
                "module, under its own name"
            )

        return name


class Decoder:
    """Turns plain data into fields.

    Args:
        agents: The population.
        home: Module of the world's class.
        things: What `Encoder.things` returned.
    """

    def __init__(self, agents: Sequence[Agent], home: str, things: Iterable[Sequence[Any]]) -> None:
        self._agents = agents
        self._home = home
        described = list(things)
        # make all of them before filling any, since they may refer to each other
        self._things = [self._empty(name) for name, _ in described]
        for thing, (_, values) in zip(self._things, described, strict=True):
            for name, value in zip(type(thing).fields, values, strict=True):
                setattr(thing, name, self.value(value))

    def value(self, value: Any) -> Any:
        """Return the original value."""
        if type(value) is list:
            return list(map(self.value, value))
        if type(value) is not dict:
            return value

        ((form, content),) = value.items()

        return _FORMS[form](self, content)

    def _empty(self, name: str) -> Thing:
        cls = find_class(name, self._home)
        if not (isinstance(cls, type) and issubclass(cls, Thing)):
            raise SimulationError(f"the run to resume has Things of an unknown class {name!r}")

        return cls.__new__(cls)

    def _member(self, content: Sequence[Any]) -> Enum:
        cls = find_class(content[0], self._home)
        if not (isinstance(cls, type) and issubclass(cls, Enum)):
            raise SimulationError(f"the run to resume has an unknown enum {content[0]!r}")

        if issubclass(cls, Flag):
            return cls(self.value(content[1]))

        return cls[content[1]]

    def _dict(self, pairs: Iterable[Sequence[Any]]) -> dict[Any, Any]:
        return {self.value(key): self.value(item) for key, item in pairs}

    def _deque(self, content: Sequence[Any]) -> deque[Any]:
        return deque(map(self.value, content[0]), maxlen=content[1])

    def _tuple(self, content: Iterable[Any]) -> tuple[Any, ...]:
        return tuple(map(self.value, content))


_FORMS: Mapping[str, Callable[[Decoder, Any], Any]] = {
    "t": Decoder._tuple,
    "s": lambda decoder, content: AgentSet(map(decoder.value, content)),
    "q": Decoder._deque,
    "d": Decoder._dict,
    "e": Decoder._member,
    "c": lambda decoder, leaves: Configuration(map(decoder.value, leaves)),
    "a": lambda decoder, place: decoder._agents[place],
    "o": lambda decoder, number: decoder._things[number],
    "n": lambda _, text: float(text) if text in ("nan", "inf", "-inf") else int(text),
}


def find_class(name: str, home: str) -> Any:
    """Return a class by module and name; only loaded modules are searched."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module or home)
    for part in path.split("."):
        found = getattr(found, part, None)

    return found


def _is_plain(values: Sequence[Any]) -> bool:
    """Return True if values survive JSON unchanged."""
    kinds = set(map(type, values))

    def of(kind: type) -> Sequence[Any]:
        if kinds == {kind}:
            return values
        return [each for each in values if type(each) is kind] if kind in kinds else ()

    return (
        kinds <= _WITH_FLOATS
        and _are_whole(of(str))
        and all(map(isfinite, of(float)))
        and all(-_LARGEST <= each < _LARGEST for each in of(int))
    )


def _survives(values: list[Any]) -> bool:
    """Return True if lists of plain values survive JSON unchanged, found out by writing them.

    That is one operation for all of them, and takes a tenth of the time.
    """
    try:
        # refuses members of an enum, which may be equal to what JSON gives back
        marshal.dumps(values)
        text = orjson.dumps(values)
    except (TypeError, ValueError):
        return False

    # an object of JSON would be taken for one that names a type
    return b"{" not in text and bool(orjson.loads(text) == values)


def _is_plain_alone(value: Any) -> bool:
    """Return True if one value survives JSON unchanged."""
    # most values, without the general look
    if value is None or type(value) is bool:
        return True
    if type(value) is int:
        return -_LARGEST <= value < _LARGEST

    return _is_plain((value,))


def _number_of_no_json(value: Any) -> dict[str, str]:
    """Return the representation of a number that JSON lacks, or None for a text."""
    if isinstance(value, str):
        raise CannotKeepError(
            f"{_shown(value)} holds half a character (a lone surrogate), which no file can: read "
            'texts with errors="replace"'
        )

    return {"n": repr(value)}


def _are_whole(texts: Iterable[str]) -> bool:
    """Return False if a text has a character that UTF-8 cannot encode."""
    try:
        # all at once, since a column may have thousands of texts
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False

    return True


def _name_of(owner: Any) -> str:
    return owner.agent_id if isinstance(owner, Agent) else f"the {type(owner).__name__}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _mend(value: Any) -> str:
    if isinstance(value, (set, frozenset)):
        return "use a dict[..., None], which has an order"
    if type(value).__module__.partition(".")[0] == "numpy":
        return "convert it with .item() or .tolist()"
    if callable(value):
        return "store its name, and look it up"

    return (
        "fields can hold numbers, texts, enums, lists, dicts, tuples, deques, agents and Things: "
        "derive its class from Thing"
    )
