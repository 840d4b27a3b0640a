"""Worlds by name: those that come with prism, or from a module or a file."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from prism._faults import location_of
from prism.errors import InputError, PrismError
from prism.statechart.names import did_you_mean
from prism.worlds.world import World

EXAMPLES = "prism.examples"
FEED = "prism.social:Feed"


@cache
def named_worlds() -> Mapping[str, str]:
    """Return the addresses of the worlds that come with prism by their short names."""
    examples = importlib.import_module(EXAMPLES)
    names = (module.name for module in iter_modules(examples.__path__))
    # the class has the name of its file
    named = {name: f"{EXAMPLES}.{name}:{name.capitalize()}" for name in names}

    return dict(sorted({"feed": FEED, **named}.items()))


def object_at(address: str) -> Any:
    """Return the class of a world or of an agent from a module or a file.

    Args:
        address: ``package.module:Name`` or ``file.py:Name``.

    Raises:
        InputError: If there is no such module, file or class.
    """
    source, name = (address, "") if address.endswith(".py") else address.rsplit(":", 1)
    # no instances: another process would make one without its parameters
    classes = {each: cls for each, cls in vars(module_at(source)).items() if _can_run(cls)}
    if name not in classes:
        problem = f"must be {source}:Name, a world or an agent there, got {address!r}"
        raise InputError(f"{problem}{did_you_mean(name, [*classes])}", field="world")

    return classes[name]


def _can_run(value: Any) -> bool:
    """Return whether a value is the class of a world, or of an agent that is run alone."""
    if not isinstance(value, type) or value is World:
        return False
    return issubclass(value, World) or hasattr(value, "_prism_run_alone")


def class_of(world: Any) -> tuple[type[World[Any]], str | None]:
    """Return the class of a world, and its address if that was given.

    Raises:
        InputError: If it is no world.
    """
    address = None
    if isinstance(world, (str, Path)):
        names = named_worlds()
        address = names.get(str(world), str(world))
        if not all(address.rpartition(":")) and not address.endswith(".py"):
            must = "must be package.module:Name, file.py:Name or the name of a world"
            near = did_you_mean(str(world), [*names])
            raise InputError(f"{must}, got {str(world)!r}{near}", field="world")
        world = object_at(address)
    cls = world if isinstance(world, type) else type(world)
    if not issubclass(cls, World):
        raise InputError(f"must be a world, got {world!r}", field="world")
    return cls, address


def module_at(source: str) -> ModuleType:
    """Import a module by its name or file.

    Raises:
        InputError: If there is none, or it is no Python.
        Exception: What its code raises.
    """
    try:
        return (_load_file if source.endswith(".py") else importlib.import_module)(source)
    except Exception as error:
        # a fault of its code is raised as it is, with its line
        if isinstance(error, PrismError) or location_of(error) is not None:
            raise
        problem = f"cannot be imported: {type(error).__name__}: {error}"
        raise InputError(problem, field="world") from error


def _load_file(source: str) -> ModuleType:
    if not (path := Path(source)).is_file():
        raise InputError(f"names {path}, but there is no such file", field="world")
    # as for a script, the modules in its folder can be imported
    folder = str(path.absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
        importlib.invalidate_caches()
    module = importlib.import_module(path.stem)
    if Path(module.__file__ or "").absolute() != path.absolute():
        raise InputError(f"has the name of a loaded module, {path.stem}: rename it", path=path)
    return module


def address_of(cls: type[Any]) -> str:
    """Return the address of a class, from which another process can load it.

    Raises:
        InputError: If another process could not load it.
    """
    module = sys.modules[cls.__module__]
    if "<locals>" in cls.__qualname__ or getattr(module, cls.__name__, None) is not cls:
        problem = f"{cls.__qualname__} cannot be found again: define it at the top of a module"
        raise InputError(problem, field="world")
    if cls.__module__ == "__main__":
        return f"{file_of(cls)}:{cls.__name__}"
    # a package exports what its own modules define
    public = cls.__module__.partition("._")[0]
    is_exported = getattr(sys.modules[public], cls.__name__, None) is cls
    return f"{public if is_exported else cls.__module__}:{cls.__name__}"


def file_of(cls: type[Any]) -> str:
    """Return the file in which a class is defined.

    Raises:
        InputError: If it is in none.
    """
    file: str | None = getattr(sys.modules[cls.__module__], "__file__", None)
    # what is piped into Python has the file <stdin>
    if file is None or not Path(file).exists():
        problem = f"{cls.__name__} is not defined in a file, which a resume requires: put it in one"
        raise InputError(problem, field="world")
    return file


_ALONE = {".yaml": "WorkflowRun", ".yml": "WorkflowRun", ".json": "CognitiveRun"}
"""The classes of runs of a single agent, by the end of its file's name."""


def alone(world: Any) -> Any:
    """Return the class of runs of an agent that is run alone; None for a world.

    Raises:
        InputError: If the module of a class cannot be imported, or has nothing of that name.
    """
    kind = _ALONE.get(Path(world).suffix.lower()) if isinstance(world, (str, Path)) else None
    if kind is None:
        is_address = isinstance(world, (str, Path)) and all(str(world).rpartition(":"))
        cls = object_at(str(world)) if is_address else world
        kind = getattr(cls, "_prism_run_alone", None) if isinstance(cls, type) else None
    return kind and getattr(importlib.import_module("prism.programs._runs"), kind)
