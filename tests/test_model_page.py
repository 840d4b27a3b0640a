"""The page of the model says what the feed's parameters are today."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from prism.social import PRESETS, Feed

DOCS = Path(__file__).parent.parent / "docs"
TABLES = (DOCS / "reference" / "feed-parameters.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """Return the script that makes the tables."""
    spec = importlib.util.spec_from_file_location("parameters", DOCS / "parameters.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_made_from_the_code(script: ModuleType) -> None:
    """The page gets a row for each parameter and each preset when the site is built."""
    page = script.written(TABLES)
    for name in (*Feed.fields, *PRESETS):
        assert f"| `{name}` |" in page
