"""The page of the model says what the feed's parameters are today."""

import importlib.util
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from prism.social import Parameters

DOCS = Path(__file__).parent.parent / "docs"
TABLES = (DOCS / "reference" / "feed-parameters.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """Return the script that writes the tables."""
    spec = importlib.util.spec_from_file_location("parameters", DOCS / "parameters.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_code(script: ModuleType) -> None:
    """The page has each parameter and preset of today: run  python docs/parameters.py."""
    assert script.written(TABLES) == TABLES
    for field in fields(Parameters):
        assert f"| `{field.name}` |" in TABLES
