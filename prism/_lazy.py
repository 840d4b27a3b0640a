"""Public names of a room, and optional packages, that are loaded when they are first used.

A room whose names need much to be loaded imports them for type checkers alone, and takes two
functions from here::

    if TYPE_CHECKING:
        from prism.runs.running import begin, resume
    else:
        __getattr__, __dir__ = lazy_names(__name__)

The imports under ``if TYPE_CHECKING:`` say which module has a name: they are read from the room's
source when a name is asked for the first time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, *, extra: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Args:
        package: Its dotted name.
        extra: The extra of that name brings what the names need; None if they need none.
    """
    homes: dict[str, str] = {}

    def get(name: str) -> Any:
        if name.startswith("__"):  # asked by the import system of every module
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not homes:
            homes.update(_homes(package))
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")

        is_module = homes[name] == package
        try:
            module = import_module(f"{package}.{name}" if is_module else homes[name])
        except ModuleNotFoundError as error:
            if extra is None:
                raise
            from prism.errors import MissingExtraError

            raise MissingExtraError(extra, str(error.name)) from error

        value = module if is_module else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        module = sys.modules[package]
        return sorted({*vars(module), *module.__all__})

    return get, names


def import_extra(name: str, extra: str) -> Any:
    """Return a module of an optional package, which is loaded where it is used.

    Args:
        name: The module, such as ``statsmodels.tsa.stattools``.
        extra: The extra that brings it.

    Raises:
        MissingExtraError: If the package is not installed.
    """
    package = name.partition(".")[0]
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        # another module that is missing is another fault
        if error.name != package:
            raise
        from prism.errors import MissingExtraError

        raise MissingExtraError(extra, package) from None


def _homes(package: str) -> dict[str, str]:
    """Return the modules of the names that a package imports for type checkers."""
    import ast
    from pkgutil import get_data

    # by its loader, since the package may stand in an archive
    source = get_data(package, "__init__.py")
    assert source is not None
    homes: dict[str, str] = {}
    for condition in (node for node in ast.parse(source).body if isinstance(node, ast.If)):
        if ast.unparse(condition.test) == "TYPE_CHECKING":
            for node in condition.body:
                assert isinstance(node, ast.ImportFrom)
                homes |= dict.fromkeys((each.name for each in node.names), node.module or package)

    return homes
