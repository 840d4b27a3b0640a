"""The page of the model says what the feed's parameters are today."""

import importlib.util
import re
from dataclasses import fields
from pathlib import Path
from types import ModuleType

import pytest

from prism.social import Parameters
from prism.social._presets import PRESETS

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "model.md").read_text(encoding="utf-8")
TABLES = (DOCS / "reference" / "feed-parameters.md").read_text(encoding="utf-8")
ELEMENTS = (
    "Purpose and patterns",
    "Entities, state variables and scales",
    "Process overview and scheduling",
    "Design concepts",
    "Initialization",
    "Input data",
    "Submodels",
)
"""The seven elements of the ODD protocol (Grimm et al. 2020), in their order."""

CONCEPTS = (
    "Basic principles",
    "Emergence",
    "Adaptation",
    "Objectives",
    "Learning",
    "Prediction",
    "Sensing",
    "Interaction",
    "Stochasticity",
    "Collectives",
    "Observation",
)


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
    for name in (*(field.name for field in fields(Parameters)), *PRESETS):
        assert f"| `{name}` |" in page


def test_the_page_has_all_elements_of_the_protocol() -> None:
    """The seven elements are headings in their order, and the eleven design concepts a list."""
    assert re.findall(r"^## \d\. (.*)$", PAGE, re.MULTILINE) == list(ELEMENTS)
    assert re.findall(r"^\d+\. \*\*(.*?)\.\*\*", PAGE, re.MULTILINE) == list(CONCEPTS)


def test_the_page_names_parameters_that_there_are() -> None:
    """What the prose calls a parameter, beside a number or a formula, is one."""
    named = set(re.findall(r"`([a-z]+(?:_[a-z]+)+)`", PAGE))
    assert len(named) > 30
    known = {field.name for field in fields(Parameters)}
    assert named - known <= {"activity_level_frequency", "round_ends"}
