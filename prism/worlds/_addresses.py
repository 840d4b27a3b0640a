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
from traceback import extract_tb
from types import ModuleType
from typing import Any

from prism._faults import place_of
from prism.errors import InputError, PrismError
from prism.worlds._world import World, source_digest

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


def load_world(address: str) -> type[World[Any]]:
    """Return the class of a world from a module or a file.

    Args:
        address: ``package.module:Name`` or ``file.py:Name``.

    Raises:
        InputError: If there is no such module, file or world.
    """
    source, _, name = address.rpartition(":")
    worlds = {
        each: value
        for each, value in vars(module_at(source)).items()
        if isinstance(value, type) and issubclass(value, World) and value is not World
    }
    if name not in worlds:
        listed = ", ".join(worlds) or "no world"
        problem = f"{source} has no world or agent {name!r}: it has {listed}"
        raise InputError(problem, field="world")

    return worlds[name]


def found_at(address: str) -> Any:
    """Return what an address names; None if its module has nothing of that name.

    Raises:
        InputError: If the module cannot be imported.
    """
    source, _, name = address.rpartition(":")
    return getattr(module_at(source), name, None)


def module_at(source: str) -> ModuleType:
    """Import a module by its name or file.

    Raises:
        InputError: If there is none, or it cannot be imported.
    """
    try:
        return _load_file(Path(source)) if source.endswith(".py") else _load_module(source)
    except PrismError:
        raise
    except Exception as error:
        # Python puts the place of a syntax error into its text, too
        text = error.msg if isinstance(error, SyntaxError) else error
        message = f"{type(error).__name__}: {text}"
        file, line, code = _where(error)
        excerpt = f": {code.strip()}" if code else ""
        near = min(os.path.relpath(file), file, key=len)
        begins = "" if Path(file) == Path(source).absolute() else f"importing {source} failed: "
        raise InputError(f"{begins}{message}{excerpt}", path=near, line=line) from error


def _where(error: Exception) -> tuple[str, int | None, str | None]:
    """Return file, line and code of the user's that failed, or else of what it called."""
    if isinstance(error, SyntaxError):
        return str(error.filename), error.lineno, error.text
    if (users := place_of(error)) is not None:
        return users.file, users.line, users.text

    last = extract_tb(error.__traceback__)[-1]
    return last.filename, last.lineno, last.line


def _load_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        raise InputError(
            f"there is no module {name!r} (no {error.name!r} on Python's path): install it, or "
            "name the file, as in  rumour.py:Rumour",
            field="world",
        ) from None


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
        InputError: If it is in none, or the file has changed since.
    """
    file: str | None = getattr(sys.modules[cls.__module__], "__file__", None)
    # what is piped into Python has the file <stdin>
    if file is None or not Path(file).exists():
        raise InputError(
            f"{cls.__name__} is not defined in a file, which a resume requires: put it in one",
            field="world",
        )
    if getattr(cls, "_source", None) not in (None, source_digest(cls)):
        raise InputError(
            f"has changed since {cls.__name__} was imported: start Python anew, or reload it",
            path=file,
        )

    return file


# What runs

_ALONE = {
    "workflow": ("prism.programs._runs", "WorkflowRun"),
    "cognition": ("prism.programs._runs", "CognitiveRun"),
}
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
        address = str(world)
        is_named = all(address.rpartition(":"))
        world = (found_at(address) or load_world(address)) if is_named else None
    return getattr(world, "_prism_run_alone", None) if isinstance(world, type) else None


def key_in(config: Mapping[str, Any]) -> str | None:
    """Return what `key_of` says of the world of a ``run.json``."""
    return next((key for key in _ALONE if key in config), None)


def alone(key: str) -> Any:
    """Return the class of runs of a single agent."""
    module, name = _ALONE[key]
    return getattr(importlib.import_module(module), name)


def class_of(world: Any) -> tuple[type[World[Any]], str | None]:
    """Return the class of a world, and its address if that was given."""
    if isinstance(world, (str, Path)):
        address = address_of(str(world))
        return load_world(address), address
    cls = world if isinstance(world, type) else type(world)
    if not issubclass(cls, World):
        raise InputError(f"must be a world, got {world!r}", field="world")
    return cls, None
