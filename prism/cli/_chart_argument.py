"""The chart that a user names: a built-in one, a file, or an attribute of a module."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from prism.errors import DefinitionError, InputError
from prism.files import reading
from prism.statechart import Statechart, social_media_chart

_BUILT_IN: dict[str, Callable[[], Statechart[Any]]] = {
    "social_media": social_media_chart,
    "social_feed": partial(social_media_chart, has_ideas=True),
    "social_media_acts": partial(social_media_chart, acts=True),
    "social_feed_acts": partial(social_media_chart, has_ideas=True, acts=True),
}


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
    path = Path(text)
    if text in _BUILT_IN:
        return _BUILT_IN[text]()
    if path.suffix in (".json", ".scxml"):
        return _from_file(path)
    if path.suffix in (".yaml", ".yml"):
        # the room needs an extra, which may be missing
        from prism.programs.yaml import Workflow

        return Workflow.load(path).chart
    if ":" in text:
        return _from_module(text)

    raise InputError(
        f"there is no chart {text!r}: use a built-in one ({', '.join(_BUILT_IN)}), a .json or "
        ".scxml file, a workflow (.yaml), or package.module:attribute (or file.py:attribute)"
    )


def _from_file(path: Path) -> Statechart[Any]:
    with reading(path):
        text = path.read_text(encoding="utf-8-sig")

    transitions = social_media_chart().transitions
    guards = {each.guard.__name__: each.guard for each in transitions if each.guard is not None}
    read = Statechart.from_scxml if path.suffix == ".scxml" else Statechart.from_json
    try:
        return read(text, guards=_Functions(guards), actions=_Functions({}))
    except InputError as error:
        raise InputError(error.problem, path=path, line=error.line, field=error.field) from None
    except DefinitionError as error:
        raise InputError(str(error), path=path) from None


class _Functions(dict[str, Callable[[Any, Any], object]]):
    """Functions by name, with one that cannot be called for every unknown name."""

    def __missing__(self, name: str) -> Callable[[Any, Any], object]:
        def unknown(_agent: Any, _context: Any) -> object:
            raise DefinitionError(
                f"{name!r} is known by name only: load the chart in Python, with "
                f"Statechart.from_json(text, guards={{{name!r}: function}})"
            )

        unknown.__name__ = unknown.__qualname__ = name
        return self.setdefault(name, unknown)


def _from_module(where: str) -> Statechart[Any]:
    """Return the chart, the result of the function, or that of the class of agents."""
    from prism.worlds import Agent
    from prism.worlds.addresses import module_at
    from prism.worlds.kinds import chart_of

    module, _, attribute = where.rpartition(":")
    value = module_at(module)
    for name in attribute.split("."):
        if not hasattr(value, name):
            raise InputError(f"{where}: {getattr(value, '__name__', value)!r} has no {name!r}")
        value = getattr(value, name)

    if isinstance(value, type) and issubclass(value, Agent):
        value = chart_of(value)
    elif callable(value) and not isinstance(value, Statechart):
        try:
            value = value()
        except Exception as error:  # of the function that a user names
            raise InputError(f"{where}: {type(error).__name__}: {error}") from error
    if not isinstance(value, Statechart):
        raise InputError(
            f"{where} is {type(value).__name__}, not a chart: name a Statechart, a function that "
            "returns one, or a class of a world's agents"
        )
    return value
