"""What histories, logs and documents call things: contexts, agents, guards and actions.

A guard may receive any object as context, such as the post an agent looks at. History and log keep
only its identifying fields, never the object, so that a thousand records do not keep a thousand
posts alive.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from enum import Enum
from functools import lru_cache
from numbers import Real
from os import urandom
from sys import intern
from typing import Any, cast

from prism._numbers import plain_number
from prism.statechart.memory import field_of, kept_beside
from prism.statechart.states import joined

Keys = str | tuple[str, ...] | None
"""Keys of a recorded context: one, several, or none because there was no context."""

_SEQUENCES = (list, tuple, deque, set, frozenset)
_AS_THEY_ARE = frozenset((str, int, float, bool, type(None)))
_VALUES = {"datetime", "decimal", "ipaddress", "numpy", "pathlib", "uuid"}


# Contexts


def identify(context: object) -> dict[str, Any] | None:
    """Reduce a context to plain data for a record.

    A mapping keeps its keys, with each value made plain; a scalar becomes ``{"value": scalar}``;
    any other object keeps its identifier: for a class ``Post`` the attribute ``post_id``, which may
    be named after a base class, else ``id``, recorded as ``post_id`` either way. An object without
    an identifier is recorded as ``{"type": class name}``.

    Args:
        context: Anything that was passed to ``fire``.

    Returns:
        A new dict of JSON values, or None for None.
    """
    if context is None:
        return None
    try:
        plain = _plain(context)
    except Exception:  # no transition fails with a context that cannot be read
        return {"type": type(context).__name__}
    return plain if isinstance(plain, dict) else {"value": plain}


def pack(context: object) -> tuple[Keys, Any]:
    """Split a context into keys, which many records have in common, and values.

    The common ``{"post_id": ...}`` becomes a bare key and a bare value, so it costs a record only
    two references. Agents that saw the same post refer to one copy of its id.

    Returns:
        ``(None, None)`` for None, ``(key, value)`` for one key, else ``(keys, values)`` as two
        tuples.
    """
    if (plain := identify(context)) is None:
        return None, None
    values = [intern(each) if type(each) is str else each for each in plain.values()]
    return (next(iter(plain)), values[0]) if len(values) == 1 else (tuple(plain), tuple(values))


def unpack(keys: Keys, value: Any) -> dict[str, Any] | None:
    """Undo `pack`: return the recorded context as a new dict, or None."""
    if keys is None:
        return None
    return {keys: value} if isinstance(keys, str) else dict(zip(keys, value, strict=True))


def _plain(value: object) -> Any:
    cls: Any = type(value)
    if cls in _AS_THEY_ARE:
        return value
    # nearly all others are dicts, or agents
    if cls is dict:
        return {_key(key): _inside(each) for key, each in cast(Any, value).items()}
    if names := _identifiers(cls):
        return _identity(value, names)
    # JSON has no form for values of numpy's
    value = plain_number(value.value if isinstance(value, Enum) else value)
    if isinstance(value, Mapping):
        return _plain({**value})
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, _SEQUENCES):
        # a set has no order of its own, and a log is to be the same each time
        return [*map(_inside, sorted(value, key=repr) if isinstance(value, Set) else value)]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _key(key: object) -> str:
    return key if type(key) is str else str(key.value if isinstance(key, Enum) else key)


def _inside(value: object) -> Any:
    """Return a value of a context as plain data; of an object its identifier alone."""
    cls: Any = type(value)
    names = () if cls in _AS_THEY_ARE else _identifiers(cls)
    return next(iter(_identity(value, names).values())) if names else _plain(value)


def _identity(value: object, names: Iterable[tuple[str, str]]) -> dict[str, Any]:
    for name, key in names:
        # None for that of a detached database row, which cannot be read
        if (identifier := field_of(value, name)) is not None:
            # nearly all are texts, and each event of a log asks
            if type(identifier) is not str:
                plain = plain_number(identifier)
                identifier = plain if isinstance(plain, (str, int, float)) else str(plain)
            return {key: identifier}
    return {"type": type(value).__name__}


@lru_cache(maxsize=256)
def _identifiers(cls: type) -> list[tuple[str, str]]:
    """Return the attributes that may identify an object of a class, and their keys in a record.

    There are none if its objects are values, such as numbers, texts, lists or dates.
    """
    values = (Enum, str, int, Real, type(None), bytes, Mapping, *_SEQUENCES)
    modules = {base.__module__.partition(".")[0] for base in cls.__mro__}
    if issubclass(cls, values) or modules & _VALUES:
        return []
    keys = _class_keys(cls)
    named = [(name, name) for name in (*keys, "post_id", "agent_id")]
    return [*named, ("id", keys[0]), ("unique_id", keys[0])]


def _class_keys(cls: type) -> tuple[str, ...]:
    """Return the attributes that a class and its bases name after themselves: ``ticket_id``."""
    words = (re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", each.__name__) for each in cls.__mro__[:-1])
    return tuple(f"{each.lower().strip('_')}_id" for each in words)


# Agents


def agent_name(agent: Any) -> str:
    """Return what logs and messages call an agent: its id or name, else one that is made for it.

    No other object ever gets the name that is made, so agents without an id are not taken for one
    another.
    """
    # nearly all have this one, and each event of a log asks
    name = field_of(agent, "agent_id")
    if name := name if type(name) is str else declared_name(agent):
        return name
    beside = kept_beside(agent)
    beside.name = beside.name or f"{type(agent).__name__}@{urandom(6).hex()}"
    return beside.name


def declared_name(agent: Any) -> str | None:
    """Return an agent's id or name, or None if it has neither."""
    cls: Any = type(agent)
    for name in _names_of(cls):
        # a class may have a method of that name
        if (value := field_of(agent, name)) is not None and not callable(value):
            return str(value)
    return None


@lru_cache(maxsize=256)
def _names_of(cls: type) -> tuple[str, ...]:
    """Return the attributes that may name an agent of a class."""
    return ("agent_id", "unique_id", "id", *_class_keys(cls), "name")


# Guards and actions


def function_name(function: object) -> str | None:
    """Return the name that a guard or an action has by itself.

    That is its ``__qualname__`` from the innermost function on, or else a ``__name__``, which
    callable objects may set. A lambda and a ``functools.partial`` have none.
    """
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    inner = name.rpartition("<locals>.")[2] if isinstance(name, str) else ""
    return inner if inner and "<lambda>" not in inner else None


def function_label(function: object, kind: str) -> str | None:
    """Return what pictures and reports call a guard or an action; None if there is none.

    Args:
        function: The function, or None.
        kind: ``guard`` or ``action``, for a function that has no name of its own.
    """
    return None if function is None else function_name(function) or kind


# What is called wrongly


def unknown_trigger_problem(trigger: object, triggers: Iterable[str]) -> str:
    """Return what is wrong with a trigger that a chart does not have, and what may be meant."""
    return f"no transition has the trigger {trigger!r}{did_you_mean(trigger, list(triggers))}"


def did_you_mean(text: object, names: Sequence[str]) -> str:
    """Return the end of a message: the most similar of the known texts, or all that there are."""
    # loaded only for a message: it costs more than the engine's own modules
    from difflib import get_close_matches

    close = get_close_matches(text, names, n=1) if isinstance(text, str) else []
    return f"; did you mean {close[0]!r}?" if close else f": known are {joined(names) or 'none'}"
