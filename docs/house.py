"""The picture of prism's rooms, drawn from the imports: ``python docs/house.py`` writes it anew."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import prism
from prism.drawing import Arrow, Diagram, draw_svg

PACKAGE = Path(prism.__file__).parent
PICTURE = Path(__file__).parent / "house.svg"

ROOMS = (
    "errors",
    "randomness",
    "telemetry",
    "files",
    "drawing",
    "expressions",
    "statechart",
    "llm",
    "runlog",
    "agents",
    "runs",
    "worlds",
    "workflow",
    "cognition",
    "examples",
    "social",
    "analysis",
    "report",
    "science",
    "watch",
    "testing",
    "cli",
)
"""The rooms in their order, those to come included: each imports only from those before it."""

_NO_ROOM = ("__init__", "__main__", "pytest_plugin")


@cache
def modules() -> tuple[str, ...]:
    """Return the dotted names of all modules of the package, a package by its own name."""
    return tuple(sorted(_name_of(path) for path in PACKAGE.rglob("*.py")))


@cache
def names_in(module: str) -> tuple[str, ...]:
    """Return every name that a module imports, with its module in front."""
    return tuple(names_imported(path_of(module).read_text(encoding="utf-8")))


def imports_of(module: str) -> set[str]:
    """Return the modules of the package that one imports, wherever in the file it does so."""
    known = _known()
    imported = set()

    for name in names_in(module):
        # `from prism.runs import RunFolder` names a module and something in it
        found = name if name in known else name.rpartition(".")[0]
        if found in known:
            imported.add(found)

    return imported - {module}


def room_of(module: str) -> str:
    """Return the room of a module; a public file at the top of the package is one of its own."""
    name = module.split(".")[1] if "." in module else ""
    return "" if name.startswith("_") else name


def imports_between_rooms() -> dict[str, set[str]]:
    """Return the rooms that each room imports from."""
    found: dict[str, set[str]] = {}

    for module in modules():
        room = room_of(module)
        if room and room not in _NO_ROOM:
            used = {room_of(name) for name in imports_of(module)} - {room, ""}
            found.setdefault(room, set()).update(used)

    return found


def picture() -> str:
    """Draw the rooms from top to bottom, without the arrows that other arrows imply."""
    imports = imports_between_rooms()
    rooms = tuple(room for room in ROOMS if room in imports)
    arrows = [
        Arrow(room, used)
        for room in reversed(rooms)
        for used in rooms
        if used in imports[room] and not _is_implied(room, used, imports)
    ]
    return draw_svg(Diagram(tuple(reversed(rooms)), tuple(arrows), name="The rooms of prism"))


def _is_implied(room: str, used: str, imports: dict[str, set[str]]) -> bool:
    """Return True if a longer way leads from one room to the other."""
    frontier, seen = list(imports[room] - {used}), set()

    while frontier:
        here = frontier.pop()
        if here == used:
            return True
        if here not in seen:
            seen.add(here)
            frontier += imports[here]

    return False


def names_imported(source: str) -> Iterator[str]:
    """Yield every name that a file imports, with its module in front."""
    tree = ast.parse(source)
    # of all nodes nine in ten are expressions, which import only by calling `import_module`
    for node in ast.walk(tree) if "import_module" in source else _statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and _is_import_module(node.func):
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        for each in getattr(node, field, ()):
            yield each
            yield from _statements(each)


def _is_import_module(called: ast.expr) -> bool:
    name = getattr(called, "id", None) or getattr(called, "attr", "")
    return str(name).endswith("import_module")


@cache
def _known() -> frozenset[str]:
    return frozenset(modules())


def _name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def path_of(module: str) -> Path:
    """Return the file of a module."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
