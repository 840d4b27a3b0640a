"""The code of a world: its module, and what that imports from beside it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prism.errors import InputError
from prism.worlds._world import World

_OWN_PACKAGE = "prism"
_INSTALLED = ("site-packages", "dist-packages")


def code_of(cls: type[World[Any]], place: str) -> dict[str, Path]:
    """Return the files that a world's code is in, by what they are called in ``run.json``.

    These are its module, and those that it imports, or that they import in turn, from the same
    folder (a file) or the same package. Packages that are installed beside it are not among them.

    Args:
        cls: The world's class.
        place: Where it is: a module or a file.

    Raises:
        InputError: If it is in no file, or one cannot be read.
    """
    module = sys.modules[cls.__module__]
    file = getattr(module, "__file__", None)
    if file is None:
        raise InputError(f"{cls.__name__} is defined in no file: put it into one", field="world")

    path = Path(file)
    package = ""
    if not place.endswith(".py"):
        is_package = hasattr(module, "__path__")
        package = cls.__module__ if is_package else cls.__module__.rpartition(".")[0]

    top = package.partition(".")[0]
    root = path.parents[package.count(".") + 1] if package else path.parent
    # prism's own code is told by its version
    is_alone = top == _OWN_PACKAGE or (not top and any(each in path.parts for each in _INSTALLED))
    if is_alone:
        return {place: path}

    found = _reached(path, root, top, package)
    named = (
        {file: Path(place).parent / file.relative_to(root) for file in found}
        if not top and place.endswith(".py")
        else {file: _dotted(file, root) for file in found}
    )

    return {place: path, **{str(named[file]): file for file in found if file != path}}


def _reached(path: Path, root: Path, top: str, package: str) -> list[Path]:
    """Return a file and all that it imports from below a folder, each once, in order."""
    # the packages around a module are run before it
    waiting, found = [(path, package), *_files_of(package, root)], dict[Path, None]()
    while waiting:
        file, inside = waiting.pop()
        if file in found:
            continue

        found[file] = None
        for name in _names_imported(file, inside):
            first = name.partition(".")[0]
            # beside a world in a checkout of prism lies prism itself
            if first == top or (not top and first != _OWN_PACKAGE):
                waiting += list(_files_of(name, root))

    return sorted(found)


def _names_imported(file: Path, package: str) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(f"cannot be read as Python: {error}", path=file) from None

    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:
                above = package.split(".")[: package.count(".") + 2 - node.level]
                start = ".".join(filter(None, [*above, start]))
            yield start
            # what is imported may be a module itself
            yield from (f"{start}.{each.name}" for each in node.names)


def _files_of(name: str, root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files that an import of a module runs, each with the package it belongs to."""
    parts = name.split(".") if name else []
    for count in range(1, len(parts) + 1):
        place = root.joinpath(*parts[:count])
        if (inside := place / "__init__.py").is_file():
            yield inside, ".".join(parts[:count])
        elif (module := place.with_name(f"{place.name}.py")).is_file():
            yield module, ".".join(parts[: count - 1])


def _dotted(file: Path, root: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
