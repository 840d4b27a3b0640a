"""How to cite prism: CITATION.cff says what the package says of itself."""

import tomllib
from pathlib import Path

import pytest

import prism

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent


def test_the_citation_names_this_version() -> None:
    """Version and license are those of the package, in the file and in what it prefers."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for each in (citation, citation["preferred-citation"]):
        assert (each["version"], each["license"]) == (prism.__version__, project["license"])
