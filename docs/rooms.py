"""The reference of a room, from its docstrings: one template for all rooms."""

import ast
import inspect
import re
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

REFERENCE = Path(__file__).parent / "reference"
MADE = ("index", "command-line", "events", "feed-parameters")
"""Pages of the reference that are no room's."""

ROOMS = sorted({page.stem for page in REFERENCE.glob("*.md")} - {*MADE})
CONTRACT = re.findall(r"^\| `(prism[\w.]+)` \|", (REFERENCE / "index.md").read_text(), re.MULTILINE)
"""Modules that existing code imports from; their names are described under the room's path."""

Definition = tuple[ast.stmt, str]
"""Where a module defines a name, and the docstring."""


def page(room: str) -> str:
    """Return what stands below the title of a room's page."""
    modules = modules_below(f"prism.{room}")
    if room == "testing":
        modules.append("prism.pytest_plugin")
    sections = (f"## {module}\n\n{described(module)}" for module in modules)
    return "\n\n".join(["", described(f"prism.{room}"), *sections])


def modules_below(room: str, *, private: bool = False) -> list[str]:
    """Return the modules of a room, without those that existing code imports from."""
    path = getattr(import_module(room), "__path__", ())
    names = (module.name for module in walk_packages(path, f"{room}."))
    return sorted(name for name in names if private or ("._" not in name and name not in CONTRACT))


def described(name: str) -> str:
    """Return the directives for a module, and for what it offers under no shorter path."""
    module = import_module(name)
    lines = [f".. automodule:: {name}", "", f".. currentmodule:: {name}", ""]
    for each in offered(module):
        if is_at_home(module, each):
            lines += [*directive(module, each), ""]
    return "\n".join(["```{eval-rst}", *lines, "```"])


def offered(module: ModuleType) -> list[str]:
    """Return a module's ``__all__``, or what it defines and explains without an underscore."""
    if module.__name__ == "prism.telemetry.events":
        return []  # a page of its own
    if hasattr(module, "__all__"):
        return list(module.__all__)
    explained = definitions(module.__name__)
    return [name for name, (_, text) in explained.items() if text and name[0].isalpha()]


def is_at_home(module: ModuleType, name: str) -> bool:
    """Return True if no module above this one, and no other room, describes the same object."""
    value, path = getattr(module, name), module.__name__
    home = getattr(value, "__module__", None) or ""
    if home.startswith("prism.") and not f"{home}.".startswith(f"{path}."):
        return False
    above = [path.rsplit(".", count)[0] for count in range(1, path.count("."))]
    return all(name not in offered(import_module(each)) for each in above)


def directive(module: ModuleType, name: str) -> list[str]:
    """Return the directive for a name, by what it is."""
    value = getattr(module, name)
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        others = ",".join(base.__name__ for base in value.__mro__[1:] if not is_part(base))
        options = ["   :members:", f"   :inherited-members: {others}"]
        options += ["   :undoc-members:"] * issubclass(value, Enum)
        return [f".. {kind}:: {name}", *options]
    if inspect.isroutine(value):
        return [f".. autofunction:: {name}"]
    node, text = explained(module, name)
    kinds = (getattr(node, each, None) for each in ("annotation", "returns"))
    lines = [f"   :type: {ast.unparse(kind)}" for kind in kinds if kind is not None]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):  # a type's name
        lines = [f"   :value: {ast.unparse(node.value)}"]
    return [f".. py:data:: {name}", *lines, "", *(f"   {line}" for line in text.splitlines())]


def is_part(base: type) -> bool:
    """Return True for a class of prism that no page describes by itself."""
    if not base.__module__.startswith("prism."):
        return False
    names = base.__module__.split(".")
    paths = (".".join(names[:count]) for count in range(2, len(names) + 1))
    public = (import_module(path) for path in paths if "._" not in path)
    return all(base.__name__ not in offered(module) for module in public)


def explained(module: ModuleType, name: str) -> Definition:
    """Return the definition with a docstring of a name that is no class and no function."""
    value = getattr(module, name)
    for path in (module.__name__, *modules_below(module.__name__, private=True)):
        definition = definitions(path).get(name)
        if definition and definition[1] and getattr(import_module(path), name) is value:
            return definition
    raise LookupError(f"{module.__name__}.{name} has no docstring")


@cache
def definitions(path: str) -> dict[str, Definition]:
    """Return what a module defines, each name with its docstring or an empty text."""
    body = ast.parse(inspect.getsource(import_module(path))).body
    names: dict[str, Definition] = {}
    for node, below in pairwise([*body, ast.Pass()]):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names[node.name] = node, ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            text = ""
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                text = inspect.cleandoc(str(below.value.value))
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            names[ast.unparse(target)] = node, text
    return names
