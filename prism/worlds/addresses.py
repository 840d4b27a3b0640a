"""Worlds by name: those that come with prism, or from a module or a file."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from prism._faults import Place, place_of
from prism.errors import InputError, PrismError
from prism.worlds.world import World

EXAMPLES = "prism.examples"
FEED = "prism.social:Feed"


@cache
def known_worlds() -> Mapping[str, str]:
    """Return the addresses of the worlds that come with prism by their short names."""
    examples = importlib.import_module(EXAMPLES)
    names = (module.name for module in iter_modules(examples.__path__))
    # the class has the name of its file
    named = {name: f"{EXAMPLES}.{name}:{name.capitalize()}" for name in names}

    return dict(sorted({"feed": FEED, **named}.items()))


def address_of(world: str | type[Any]) -> str:
    """Return the address of a world, from which another process can load it.

    Args:
        world: A short name, ``package.module:Name``, ``file.py:Name`` or a class.

    Raises:
        InputError: If there is no such short name, or another process could not load the class.
    """
    if not isinstance(world, str):
        return _address_of_class(world)
    addresses = known_worlds()
    if world not in addresses and not all(world.rpartition(":")):
        listed = ", ".join(addresses)
        raise InputError(
            f"must be package.module:Name, file.py:Name or one of {listed}, got {world!r}",
            field="world",
        )

    return addresses.get(world, world)


def object_at(address: str) -> Any:
    """Return the class of a world or of an agent from a module or a file.

    Args:
        address: ``package.module:Name`` or ``file.py:Name``.

    Raises:
        InputError: If there is no such module, file or class.
    """
    source, _, name = address.rpartition(":")
    # no instances: another process would make one without its parameters
    classes = {each: cls for each, cls in vars(module_at(source)).items() if _can_run(cls)}
    if name not in classes:
        listed = ", ".join(classes) or "none"
        problem = f"{source} has no world or agent {name!r}: it has {listed}"
        raise InputError(problem, field="world")

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
    address = address_of(str(world)) if isinstance(world, (str, Path)) else None
    value = world if address is None else object_at(address)
    cls = value if isinstance(value, type) else type(value)
    if not issubclass(cls, World):
        raise InputError(f"must be a world, got {value!r}", field="world")
    return cls, address


def module_at(source: str) -> ModuleType:
    """Import a module by its name or file.

    Raises:
        InputError: If there is none, or it cannot be imported.
    """
    try:
        is_file = source.endswith(".py")
        return _load_file(Path(source)) if is_file else importlib.import_module(source)
    except PrismError:
        raise
    except Exception as error:
        message, place = str(error), place_of(error)
        if isinstance(error, SyntaxError):
            # whose text has its place, too
            message = error.msg
            place = Place(str(error.filename), error.lineno or 1, "", error.text or "")
        message = f"importing {source} failed: {type(error).__name__}: {message}"
        if place is None:
            raise InputError(message, field="world") from error
        excerpt = f": {place.text.strip()}" if place.text else ""
        near = min(os.path.relpath(place.file), place.file, key=len)
        raise InputError(f"{message}{excerpt}", path=near, line=place.line) from error


def _load_file(path: Path) -> ModuleType:
    loaded = sys.modules.get(path.stem)
    if loaded is not None:
        if (file := getattr(loaded, "__file__", None)) and Path(file).absolute() == path.absolute():
            return loaded
        raise InputError(
            f"has the name of the module {path.stem!r}, which is loaded: name it otherwise",
            path=path,
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"names {path}, but there is no such file", field="world")
    # as for a script, the modules in its folder can be imported
    folder = str(path.absolute().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)

    module = importlib.util.module_from_spec(spec)
    # classes of the file are looked up later by the name of their module
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise

    return module


def _address_of_class(cls: type[Any]) -> str:
    module = sys.modules[cls.__module__]
    if "<locals>" in cls.__qualname__ or getattr(module, cls.__name__, None) is not cls:
        raise InputError(
            f"{cls.__qualname__} cannot be found again: define it at the top of a module",
            field="world",
        )
    if cls.__module__ != "__main__":
        # a package exports what its own modules define
        public = cls.__module__.partition("._")[0]
        is_shown = getattr(sys.modules[public], cls.__name__, None) is cls
        return f"{public if is_shown else cls.__module__}:{cls.__name__}"

    return f"{file_of(cls)}:{cls.__name__}"


def file_of(cls: type[Any]) -> str:
    """Return the file in which a class is defined.

    Raises:
        InputError: If it is in none.
    """
    file: str | None = getattr(sys.modules[cls.__module__], "__file__", None)
    # what is piped into Python has the file <stdin>
    if file is None or not Path(file).exists():
        raise InputError(
            f"{cls.__name__} is not defined in a file, which a resume requires: put it in one",
            field="world",
        )
    return file


# What runs

_ALONE = {"workflow": "WorkflowRun", "cognition": "CognitiveRun"}
"""The classes of runs of a single agent, by the key of ``run.json`` that only they have."""

_KEYS = {".yaml": "workflow", ".yml": "workflow", ".json": "cognition"}


def key_of(world: Any) -> str | None:
    """Return ``workflow`` or ``cognition`` for an agent that is run alone; None for a world.

    Raises:
        InputError: If the module of a class cannot be imported, or has nothing of that name.
    """
    if isinstance(world, (str, Path)):
        if (key := _KEYS.get(Path(world).suffix.lower())) is not None:
            return key
        world = object_at(str(world)) if all(str(world).rpartition(":")) else None
    return getattr(world, "_prism_run_alone", None) if isinstance(world, type) else None


def key_in(config: Mapping[str, Any]) -> str | None:
    """Return what `key_of` says of the world of a ``run.json``."""
    return next((key for key in _ALONE if key in config), None)


def alone(key: str) -> Any:
    """Return the class of runs of a single agent."""
    return getattr(importlib.import_module("prism.programs._runs"), _ALONE[key])
