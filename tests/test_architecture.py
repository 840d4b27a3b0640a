"""The house: the order of its rooms, and what each may know."""

import sys
from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
SUB_ROOMS = {
    "prism.statechart": (
        "states",
        "_identity",
        "_asking",
        "transitions",
        "_nesting",
        "_definition_problems",
        "_tree",
        "_definition",
        "_extending",
        "_engine",
        "formats",
        "inspection",
        "reasoner",
        "statechart",
        "queries",
        "social",
    ),
    "prism.agents": (
        "_archetypes",
        "_relevance",
        "_mixin",
        "social_agent",
        "_population",
        "_kept",
        "_oasis",
        "_personas",
    ),
    "prism.analysis": ("_reading", "_tables", "_conformance"),
    "prism.report": ("_facts", "_figures", "_sections", "_document", "_page"),
    "prism.workflow": (
        "_variables",
        "_threads",
        "_sandbox",
        "_document",
        "_actions",
        "_replies",
        "_chart",
        "_workflow",
        "_state",
        "_steps",
        "_agent",
        "_results",
        "_run",
    ),
    "prism.cognition": (
        "_memory",
        "_settings",
        "_prompts",
        "_config",
        "_replies",
        "_actions",
        "_chart",
        "_paging",
        "_cycle",
        "_agent",
        "_run",
    ),
    "prism.worlds": (
        "_charts",
        "_phase",
        "_fields",
        "_parameters",
        "_assignments",
        "_agent_set",
        "_asking",
        "_notes",
        "_host",
        "_drawn",
        "_agent",
        "_networks",
        "_spaces",
        "_guest",
        "_results",
        "_world",
        "_people",
        "_agent_measures",
        "_regions",
        "_kinds",
        "_snapshot",
        "_pictures",
        "_treatments",
        "_treatment_tables",
        "_turns",
        "_rates",
        "_ticks",
        "_together",
        "_overlap",
        "_stage",
        "_loop",
        "_addresses",
        "_run",
        "_alone",
        "_about",
        "_rehearsing",
        "_rehearse",
    ),
    "prism.columns": (
        "_table",
        "_memory",
        "_compiler",
        "_world",
        "_numbers",
        "_orders",
        "_transitions",
        "_turns",
        "_types",
        "_language",
        "_pieces",
        "_unit",
        "_module",
        "_columns",
        "_apart",
        "_networks",
        "_rows",
        "_stage",
        "_check",
    ),
    "prism.watch": (
        "_index",
        "_tail",
        "_tally",
        "_watched",
        "_looking",
        "_facts",
        "_agents",
        "_agent_page",
        "_views",
        "_player",
        "_playing",
        "_runs",
        "_guard",
        "_server",
    ),
    "prism.testing": (
        "_server",
        "_coverage",
        "_explore",
        "_paths",
        "_scripts",
        "_reasoners",
        "_stand_ins",
        "_writers",
        "__main__",
    ),
}
"""Parts of rooms in their order, each of which imports only from those before it."""


def _load_house() -> ModuleType:
    """Load the script that draws the rooms; it reads the imports, once for all who load it here."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return import_module("house")
    finally:
        sys.path.remove(str(ROOT / "docs"))


house = _load_house()
MODULES: tuple[str, ...] = house.modules()


@cache
def imports() -> Mapping[str, set[str]]:
    """Return what each module imports; read when a test asks, not when tests are collected."""
    return {module: house.imports_of(module) for module in MODULES}


def importers_of(package: str) -> set[str]:
    """Return the modules that import a package of somebody else's."""
    return {
        module
        for module in MODULES
        if any(name.split(".")[0] == package for name in house.names_in(module))
    }


def test_a_room_imports_only_from_rooms_before_it() -> None:
    """Every module belongs to a known room and imports only from that room and those before it."""
    for module in MODULES:
        room = house.room_of(module)
        if room in ("", "pytest_plugin"):
            continue

        assert room in house.ROOMS, f"{module} is in no room of the house"
        allowed = {*house.ROOMS[: house.ROOMS.index(room) + 1], ""}
        later = {house.room_of(used) for used in imports()[module]} - allowed
        assert later == set(), module


@pytest.mark.parametrize("package", SUB_ROOMS)
def test_a_part_of_a_room_imports_only_from_parts_before_it(package: str) -> None:
    """Inside a room imports lead one way, too, and every part has its place in the order."""
    parts = SUB_ROOMS[package]
    depth = package.count(".") + 1
    inside = {module for module in MODULES if module.startswith(f"{package}.")}
    assert {module.split(".")[depth] for module in inside} == set(parts)

    for module in inside:
        place = parts.index(module.split(".")[depth])
        used = {name.split(".")[depth] for name in imports()[module] if name in inside}
        assert used <= set(parts[: place + 1]), module


def test_no_imports_run_in_a_circle() -> None:
    """No file imports itself by way of others, wherever in a file the imports stand."""
    TopologicalSorter(imports()).prepare()


def test_every_room_with_rooms_in_it_has_an_order() -> None:
    """A room that has a package in it is among those whose parts have an order."""
    packages = {module for module in MODULES if any(m.startswith(f"{module}.") for m in MODULES)}
    within = {".".join(name.split(".")[:2]) for name in packages if name.count(".") > 1}
    assert within <= set(SUB_ROOMS)


@pytest.mark.parametrize(
    "source",
    [
        "from prism.social import Post",
        "import prism.social",
        "from prism import social",
        "def late():\n    from prism.social import Post",
        "importlib.import_module('prism.social')",
        "import_module('prism.social._posts')",
    ],
)
def test_no_way_of_importing_is_missed(source: str) -> None:
    """However a module is imported, the reader of imports names it; ruff refuses relative ways."""
    assert any(name.startswith("prism.social") for name in house.names_imported(source))


def test_imports_are_read_at_all() -> None:
    """The reader of imports sees those that are there, inside functions, too."""
    assert "prism.agents._mixin" in imports()["prism.agents.social_agent"]
    assert "prism.analysis" in imports()["prism.cli._log"]
    assert "prism.errors" in imports()["prism.agents._mixin"]


def test_one_module_knows_the_transitions_package() -> None:
    """Only the adapter imports `transitions`; the chart names it only for its type."""
    known = importers_of("transitions")
    assert known <= {"prism.statechart._engine.machine", "prism.statechart.statechart"}

    assert "prism.statechart._engine.machine" in known


def test_servers_are_asked_over_one_wire() -> None:
    """No module imports a client of model servers; two carriers do HTTP."""
    assert importers_of("ollama") == importers_of("openai") == set()
    assert importers_of("httpx") == {"prism.llm._wire"}
    assert importers_of("aiohttp") == {"prism.llm._wire"}


def test_the_picture_of_the_house_is_drawn_from_its_imports() -> None:
    """The picture on the architecture page is what ``python docs/house.py`` draws today."""
    assert house.PICTURE.read_text(encoding="utf-8") == house.picture()
