"""Calling objects of unknown types, and reading what they return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

KindT = TypeVar("KindT")


def has(client: object, method: str) -> bool:
    """Return True if an object has a method of this name."""
    return callable(getattr(client, method, None))


def first(thing: Any, *names: str) -> Any:
    """Return the first of these keys or attributes that has a value."""
    for name in names:
        value = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value

    return None


def of_kind(kind: type[KindT], value: Any) -> KindT | None:
    """Return a value if it is of a type, else None."""
    return value if isinstance(value, kind) else None


async def awaited(result: Any) -> Any:
    """Return what a call returned, or what awaiting that gives."""
    return await result if inspect.isawaitable(result) else result


def accepted(method: Callable[..., Any], offered: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the arguments that have a value and that a method takes."""
    names, takes_any = parameters(method)
    return {
        name: value
        for name, value in offered.items()
        if value is not None and (takes_any or name in names)
    }


def parameters(method: Callable[..., Any]) -> tuple[tuple[str, ...], bool]:
    """Return the names that a method takes, and whether it takes any other, too."""
    return _parameters_of(getattr(method, "__func__", method), hasattr(method, "__func__"))


@lru_cache(maxsize=64)
def _parameters_of(function: Callable[..., Any], bound: bool) -> tuple[tuple[str, ...], bool]:
    found = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
    takes_any = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in found)
    named = [item.name for item in found if item.kind is not inspect.Parameter.VAR_KEYWORD]
    return tuple(named), takes_any
