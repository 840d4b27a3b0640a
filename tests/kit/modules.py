"""Modules that a test writes itself."""

import importlib
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


class Later(ModuleType):
    """A module that is imported when something of it is used.

    Each worker collects all tests, and runs some of them.
    """

    def __getattr__(self, name: str) -> Any:
        # pytest looks for marks of its own in all that a module has
        if name.startswith("_"):
            raise AttributeError(name)

        return getattr(import_module(self.__name__), name)


@pytest.fixture
def own_modules(tmp_path: Path) -> Iterator[Path]:
    """Return a folder to write modules in, which are forgotten after the test, as is the path."""
    with forgotten_modules(tmp_path):
        yield tmp_path


@contextmanager
def forgotten_modules(folder: Path) -> Iterator[None]:
    """Forget in the end the modules that were imported from a folder meanwhile, and the path."""
    path, known = list(sys.path), set(sys.modules)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        for name in sys.modules.keys() - known:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


def environment(folder: Path, *packages: str) -> Path:
    """Make an environment with packages of others in a folder, and return its interpreter."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, *packages], check=True)
    return python
