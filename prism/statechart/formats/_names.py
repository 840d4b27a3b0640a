"""Guards and actions by the names under which documents have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from reprlib import repr as brief
from typing import Any

from prism.statechart._identity import own_name
from prism.statechart._tree.problems import joined

Functions = Mapping[str, Callable[[Any, Any], object]]
"""Guards or actions by the names under which charts are written and read."""


@dataclass
class Names:
    """Names the functions of one kind, each name for one function, and collects the problems."""

    kind: str
    given: Functions | None
    problems: list[str] = field(default_factory=list)
    _taken: dict[str, object] = field(default_factory=dict)
    _known: dict[int, str] = field(default_factory=dict)

    def of(self, function: object, item: object) -> str:
        """Name a function; one that cannot be named goes among the problems, once."""
        name = self._known.get(id(function))
        if name is None:
            name = self._known[id(function)] = self._found(function, item)
        return name

    def _found(self, function: object, item: object) -> str:
        name = name_of(function, self.given)
        advice = f"register it, {self.kind}s={{'some_name': function}}"
        if name is None:
            self.problems.append(
                f"the {self.kind} of {item} has no name of its own ({brief(function)}): {advice}"
            )
            return ""

        if (self.given or {}).get(name, function) != function or self._taken.setdefault(
            name, function
        ) != function:
            self.problems.append(
                f"two {self.kind}s are called {name!r}, one of them in {item}; "
                f"for that one, {advice}"
            )

        return name


def name_of(function: object, given: Functions | None) -> str | None:
    """Return the name under which a function is registered, else its own; None without any."""
    found = (name for name, known in (given or {}).items() if known == function)
    return next(found, None) or own_name(function)


def looked_up(functions: Functions, name: str | None) -> Callable[[Any, Any], object] | None:
    """Return the function with a name; None if there is none, or no name."""
    try:
        return None if name is None else functions[name]
    except KeyError:
        return None


def unknown(kind: str, name: str, known: Functions) -> str:
    """Return what is wrong with a name that no function has."""
    listing = joined([*map(brief, known)])
    given = f"which has {listing}" if listing else "which is empty"
    return f"unknown {kind} {brief(name)}: pass it in {kind}s=, {given}"
