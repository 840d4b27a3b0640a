"""The chart that a user names: a built-in one, a file, or an attribute of a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from prism.cli._options import import_from_here
from prism.errors import DefinitionError, InputError, PrismError
from prism.files import reading
from prism.statechart import (
    Statechart,
    social_feed_chart,
    social_media_chart,
    social_media_guards,
)

BUILT_IN: dict[str, Callable[[], Statechart[Any]]] = {
    "social_media": social_media_chart,
    "social_feed": social_feed_chart,
    "social_media_acts": partial(social_media_chart, acts=True),
    "social_feed_acts": partial(social_feed_chart, acts=True),
}
MOST_CHARACTERS = 10_000_000

_DOCUMENTS = (".json", ".scxml")
_WORKFLOWS = (".yaml", ".yml")


def chart_from(text: str) -> Statechart[Any]:
    """Return the chart that a user names.

    The guards and actions of a file are known by name only, apart from those of built-in charts:
    such a chart can be shown, written and checked, but not run.

    Args:
        text: Name of a built-in chart, a ``.json`` or ``.scxml`` file, a workflow (``.yaml``,
            ``.yml``), or ``package.module:attribute``: a chart, a function that returns one, or
            the class of a world's agents. ``file.py:attribute`` names a module by its file.

    Raises:
        InputError: If there is none, or it cannot be read.
    """
    if text in BUILT_IN:
        return BUILT_IN[text]()
    if text.endswith(_DOCUMENTS):
        return _from_file(Path(text))
    if text.endswith(_WORKFLOWS):
        return _of_workflow(Path(text))

    if _names_an_attribute(text):
        return _called(text, _owner_of_chart(text) or imported_attribute(text))

    from prism.worlds._addresses import known_worlds

    if text in known_worlds():
        raise InputError(f"{text} is a world, not a chart: prism world show {text} has its charts")

    raise InputError(
        f"there is no chart {text!r}: use a built-in one ({', '.join(BUILT_IN)}), a .json or "
        ".scxml file, a workflow (.yaml), or package.module:attribute (or file.py:attribute)"
    )


def _of_workflow(path: Path) -> Statechart[Any]:
    # the room needs an extra, which may be missing
    from prism.programs.yaml import Workflow

    return Workflow.load(path).chart


def _from_file(path: Path) -> Statechart[Any]:
    with reading(path), path.open(encoding="utf-8-sig") as file:
        text = file.read(MOST_CHARACTERS + 1)

    if len(text) > MOST_CHARACTERS:
        problem = f"is longer than {MOST_CHARACTERS:,} characters, the limit for a chart"
        raise InputError(problem, path=path)

    guards, actions = _Functions("guard", social_media_guards()), _Functions("action")
    try:
        read = Statechart.from_scxml if path.suffix == ".scxml" else Statechart.from_json
        return read(text, guards=guards, actions=actions)
    except InputError as error:
        raise InputError(error.problem, path=path, line=error.line, field=error.field) from None
    except DefinitionError as error:
        raise InputError(str(error), path=path) from None


class _Functions(dict[str, Callable[[Any, Any], object]]):
    """Functions by name, with one that cannot be called for every unknown name."""

    def __init__(
        self, kind: str, known: Mapping[str, Callable[[Any, Any], object]] = MappingProxyType({})
    ) -> None:
        super().__init__(known)
        self._kind = kind

    def __missing__(self, name: str) -> Callable[[Any, Any], object]:
        kind = self._kind

        def unknown(_agent: Any, _context: Any) -> object:
            raise DefinitionError(
                f"the {kind} {name!r} is known by name only: load the chart in Python, with "
                f"Statechart.from_json(text, {kind}s={{{name!r}: function}})"
            )

        unknown.__name__ = unknown.__qualname__ = name
        return self.setdefault(name, unknown)


def _names_an_attribute(text: str) -> bool:
    module, _, attribute = text.rpartition(":")
    names = [] if module.endswith(".py") else module.split(".")
    return all(part.isidentifier() for part in (*names, *attribute.split(".")))


def imported_attribute(where: str) -> Any:
    """Return what ``package.module:attribute`` or ``file.py:attribute`` names.

    Raises:
        InputError: If there is no such thing.
    """
    from prism.worlds._addresses import module_at

    if not _names_an_attribute(where):
        raise InputError(f"{where!r} must be package.module:attribute")

    module, _, attribute = where.rpartition(":")
    import_from_here()
    try:
        found: Any = module_at(module)
    except InputError as error:
        # a fault in the user's file says where it is
        if error.path is not None:
            raise
        raise InputError(f"{where}: {error.problem}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise InputError(f"{where}: {getattr(found, '__name__', found)!r} has no {name!r}")
        found = getattr(found, name)

    return found


def _owner_of_chart(where: str) -> Any:
    """Return the class of a world's agents whose chart is named; None for anything else.

    In logs, a chart without a name of its own has that of the class.
    """
    owner, _, attribute = where.rpartition(".")
    if attribute != "chart" or ":" not in owner:
        return None

    from prism.worlds._agent import Agent

    found = imported_attribute(owner)
    return found if isinstance(found, type) and issubclass(found, Agent) else None


def _called(where: str, found: Any) -> Statechart[Any]:
    if isinstance(found, type):
        found = _of_kind(where, found)
    elif callable(found) and not isinstance(found, Statechart):
        found = result_of(where, found)

    if not isinstance(found, Statechart):
        raise InputError(
            f"{where} is {type(found).__name__}, not a chart: "
            "name a Statechart, a function that returns one, or a class of a world's agents"
        )

    return found


def _of_kind(where: str, found: type) -> Any:
    """Return the chart of a class of a world's agents, or the result of calling any other class."""
    from prism.worlds._agent import Agent
    from prism.worlds._kinds import chart_of

    make = partial(chart_of, found) if issubclass(found, Agent) else found
    return result_of(where, make)


def result_of(where: str, function: Callable[[], Any]) -> Any:
    """Call a user's function without arguments, and return its result.

    Raises:
        InputError: If the function raises an exception.
    """
    try:
        return function()
    except PrismError as error:
        raise InputError(f"{where}: {error}") from error
    except Exception as error:
        problem = f"calling it failed: {type(error).__name__}: {error}"
        raise InputError(f"{where}: {problem}") from error
