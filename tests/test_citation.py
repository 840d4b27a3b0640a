"""How to cite prism: CITATION.cff says what the package says of itself."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import prism

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
REQUIRED = {"cff-version", "message", "title", "authors"}
"""What the Citation File Format 1.2.0 requires (Druskat et al. 2021)."""


@pytest.fixture(scope="module")
def citation() -> dict[str, Any]:
    """Return the file."""
    found: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return found


def test_the_citation_names_this_version(citation: dict[str, Any]) -> None:
    """Version and license are those of the package, in the file and in what it prefers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for each in (citation, citation["preferred-citation"]):
        assert (each["version"], each["license"]) == (prism.__version__, project["license"])


def test_the_citation_has_what_the_format_requires(citation: dict[str, Any]) -> None:
    """Every entry has a title, authors with names and a type, and articles a DOI."""
    assert set(citation) >= REQUIRED
    assert citation["cff-version"] == "1.2.0"
    for each in (citation, citation["preferred-citation"], *citation["references"]):
        names = [author.get("name") or author.get("family-names") for author in each["authors"]]
        assert all((each["title"], each["type"], names, *names))
        assert each["type"] != "article" or re.fullmatch(r"10\.\d{4,}/\S+", each["doi"])
