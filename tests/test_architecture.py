"""The rooms, and what each may import."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import prism

ROOT = Path(prism.__file__).parent
ROOMS = [
    {"prism"},
    {"errors"},
    {"randomness"},
    {"telemetry"},
    {"files"},
    {"drawing"},
    {"statechart"},
    {"llm"},
    {"runlog"},
    {"agents"},
    {"workflow"},
    {"cognition"},
    {"worlds"},
    {"simulation"},
    {"social"},
    {"runs"},
    {"analysis"},
    {"report"},
    {"science"},
    {"testing"},
    {"pytest_plugin"},
    {"cli", "__main__"},
]
ORDER = {room: number for number, rooms in enumerate(ROOMS) for room in rooms}
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


def room_of(module: str) -> str:
    """Return the room of a dotted module name; the package itself is a room of its own."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def name_of(path: str) -> str:
    """Return the dotted name of a file of the package."""
    parts = ["prism", *Path(path).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: str) -> Iterator[tuple[str, str]]:
    """Return every module that a file imports, and the name it imports from there."""
    package = name_of(path).split(".")[: None if path.endswith("__init__.py") else -1]
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield from ((module, alias.name) for alias in node.names)


def rooms_used_by(path: str) -> set[str]:
    """Return the rooms that a file imports from."""
    used = set()
    for module, name in imports_of(path):
        if module == "prism" and name in ORDER:
            used.add(name)
        elif module.split(".")[0] == "prism":
            used.add(room_of(module))
    return used


def importers_of(package: str) -> set[str]:
    """Return the files that import a package."""
    return {
        path
        for path in MODULES
        if any(module.split(".")[0] == package for module, _ in imports_of(path))
    }


@pytest.mark.parametrize("path", MODULES)
def test_a_room_imports_only_from_rooms_above(path: str) -> None:
    """Every module belongs to a known room and imports only from that room and those above it."""
    own = room_of(name_of(path))
    assert own in ORDER, f"{path} is in no room of the architecture"
    below = {
        room for room in rooms_used_by(path) - {own} if ORDER.get(room, len(ROOMS)) >= ORDER[own]
    }
    assert not below, f"{path} imports from {below}, which stand beside or below {own}"


def test_imports_are_read_at_all() -> None:
    """The reader of imports sees those that are there."""
    assert {"errors", "statechart"} <= rooms_used_by("statechart/statechart.py")
    assert (
        {"errors", "statechart", "agents"}
        >= rooms_used_by("agents/_mixin.py")
        >= {"errors", "statechart"}
    )


def test_one_module_knows_the_transitions_package() -> None:
    """Only the adapter imports the transitions package; the chart names it as a type."""
    assert importers_of("transitions") == {
        "statechart/_engine/machine.py",
        "statechart/statechart.py",
    }
    tree = ast.parse((ROOT / "statechart/statechart.py").read_text(encoding="utf-8"))
    guarded = [
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
    ]
    named = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "transitions"
    ]
    assert named
    assert all(node in guarded for node in named)


def test_one_room_knows_ollama() -> None:
    """The ollama package is imported inside prism/llm and nowhere else."""
    assert {path.split("/")[0] for path in importers_of("ollama")} <= {"llm"}
