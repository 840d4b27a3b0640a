"""Modules that a test writes itself."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def own_modules(tmp_path: Path) -> Iterator[Path]:
    """Return a folder to write modules in, which are forgotten after the test, as is the path."""
    path = list(sys.path)
    importlib.invalidate_caches()
    yield tmp_path

    sys.path[:] = path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
