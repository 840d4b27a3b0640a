"""Packages that are imported when a test uses them, not when it is collected."""

from importlib import import_module
from types import ModuleType
from typing import Any


class Later(ModuleType):
    """A module that is imported when something of it is used.

    Each worker collects all tests, and runs some of them.
    """

    def __getattr__(self, name: str) -> Any:
        # pytest looks for marks of its own in all that a module has
        if name.startswith("_"):
            raise AttributeError(name)

        return getattr(import_module(self.__name__), name)
