"""Public modules and names are those of the reference, no more and no less.

A module is public if no part of its dotted name begins with an underscore. The reference names it
in a heading, by ``automodule`` or ``currentmodule``, or among the contract paths.
"""

import ast
import inspect
import re
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pytest

import prism
from prism import pytest_plugin
from prism._lazy import import_extra
from prism.errors import MissingExtraError

ROOT = Path(prism.__file__).parent
REFERENCE = ROOT.parent / "docs" / "reference"

_MODULE = re.compile(r"^(?:\.\. (?:automodule|currentmodule)::|#+) (prism(?:\.\w+)*)$")
_NAME = re.compile(r"^\.\. (?:auto\w+|py:(?!module)\w+):: ([\w.]+)")
_OPTION = re.compile(r"^\.\. option:: (--[\w-]+)", re.MULTILINE)
_CONTRACT = re.compile(r"^\| `(prism[\w.]+)` \| (.*?) \|$", re.MULTILINE)


def public_modules() -> list[str]:
    """Return the dotted names of prism's public modules."""
    paths = (path.relative_to(ROOT.parent).with_suffix("") for path in ROOT.rglob("*.py"))
    parts = (path.parts[:-1] if path.name == "__init__" else path.parts for path in paths)
    return sorted(
        ".".join(names)
        for names in parts
        if len(names) > 1 and not any(name.startswith("_") for name in names)
    )


@dataclass
class Documented:
    """What the reference says of one module.

    Attributes:
        names: Names that it documents one by one.
        members: Whether it documents all members that have a docstring.
        undocumented: Whether it shows those without a docstring, too.
    """

    names: set[str] = field(default_factory=set)
    members: bool = False
    undocumented: bool = False


@cache
def reference() -> dict[str, Documented]:
    """Return what the pages of the reference document, by module."""
    found: dict[str, Documented] = {}
    for page in sorted(REFERENCE.glob("*.md")):
        now = None
        is_of_module = False
        for line in page.read_text(encoding="utf-8").splitlines():
            if module := _MODULE.match(line):
                now = found.setdefault(module[1], Documented())
                is_of_module = line.startswith("..")
            elif name := _NAME.match(line):
                assert now is not None, f"{page.name} names {name[1]} before any module"
                now.names.add(name[1])
                is_of_module = False
            elif now is not None and is_of_module and line.strip().startswith(":members:"):
                listed = line.partition(":members:")[2].replace(",", " ").split()
                now.names.update(listed)
                now.members = now.members or not listed
            elif now is not None and is_of_module and line.strip() == ":undoc-members:":
                now.undocumented = True

    return found


def contract_paths() -> dict[str, list[str]]:
    """Return the modules that the reference lists as contract paths, with their names."""
    index = (REFERENCE / "index.md").read_text(encoding="utf-8")
    return {path: re.findall(r"`(\w+)`", names) for path, names in _CONTRACT.findall(index)}


def is_code(value: Any) -> bool:
    """Return True for a class or a function; a type alias can be called, too, but is data."""
    return inspect.isclass(value) or inspect.isroutine(value)


def described_data(module: ModuleType) -> set[str]:
    """Return the names of a module's data that have a docstring below them."""
    body = ast.parse(inspect.getsource(module)).body
    return {
        node.id
        for statement, below in pairwise(body)
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def documented_names(name: str) -> set[str]:
    """Return the public names that the reference documents, for one module."""
    module, page = import_module(name), reference()[name]
    names = set(page.names)
    if page.members:
        described = described_data(module)
        names |= {
            member
            for member in offered_names(module)
            if page.undocumented or is_code(getattr(module, member)) or member in described
        }

    # the names of reasoners can be imported from the engine, too
    parent = "prism.statechart" if name == "prism.reasoner" else name.rpartition(".")[0]
    if parent in reference():
        above = import_module(parent)
        # documented once, under the shorter path
        names |= {
            member
            for member in documented_names(parent) & set(offered_names(module))
            if getattr(above, member) is getattr(module, member)
        }

    return names


def offered_names(module: ModuleType) -> list[str]:
    """Return a module's ``__all__``, or what it defines itself without an underscore."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and not isinstance(value, TypeVar)
    ]


MODULES = public_modules()
DOCUMENTED = sorted(set(MODULES) & set(reference()))


def test_public_modules_are_those_of_the_reference() -> None:
    """Every module without an underscore in its path is in the reference, and no other is."""
    named = set(reference()) | set(contract_paths())
    assert sorted(set(MODULES) - named) == [], "public, and not in the reference"
    assert sorted(named - set(MODULES)) == [], "in the reference, and not a public module"


def test_no_room_imports_a_private_module_of_another() -> None:
    """What a room uses of another has a public path."""
    private = re.compile(r"from prism\.(?!_)(\w+)(?:\.\w+)*(?:\._| import _[a-z])")
    for path in ROOT.rglob("*.py"):
        rooms = {*private.findall(path.read_text(encoding="utf-8"))}
        assert rooms <= {path.relative_to(ROOT).parts[0]}, path


MADE = {"command-line", "events", "feed-parameters", "index"}
"""Pages of the reference that are made from something else than docstrings."""


def test_every_room_has_a_page_of_the_reference() -> None:
    """Every room has a page of its name; the plugin stands with the testing room."""
    rooms = {name.split(".")[1] for name in MODULES} - {"cli", "pytest_plugin"}
    assert {page.stem for page in REFERENCE.glob("*.md")} == rooms | MADE


def test_the_reference_documents_exactly_the_public_names() -> None:
    """What a module offers is what the reference documents, in both directions."""
    for name in DOCUMENTED:
        offered, documented = set(offered_names(import_module(name))), documented_names(name)
        assert sorted(offered - documented) == [], f"public in {name}, and not in the reference"
        assert sorted(documented - offered) == [], f"in the reference, and not public in {name}"


CONTRACT = {
    "prism.agents.social_agent": ["SocialAgent"],
    "prism.statechart.queries": ["agents_in_state"],
    "prism.statechart.reasoner": [
        "Reasoner",
        "build_reasoner_prompt",
        "parse_reasoner_response",
    ],
    "prism.statechart.social": ["social_media_chart"],
    "prism.statechart.statechart": ["Statechart"],
    "prism.statechart.states": ["AgentState"],
    "prism.statechart.transitions": ["StateTransition", "Transition"],
}
CONTRACT_NAMES = [(path, name) for path, names in CONTRACT.items() for name in names]
"""The paths that existing code imports from."""


@pytest.mark.parametrize(("path", "name"), CONTRACT_NAMES)
def test_a_contract_path_leads_to_the_public_name(path: str, name: str) -> None:
    """What a contract path offers is the same object as the room offers by its short path."""
    room = import_module(path.rpartition(".")[0])
    assert name in room.__all__
    assert getattr(import_module(path), name) is getattr(room, name)


def test_the_contract_paths_are_documented() -> None:
    """The reference lists the contract paths with their names, and no others."""
    assert contract_paths() == CONTRACT


def test_the_options_of_the_plugin_are_in_the_reference() -> None:
    """The options that the plugin adds to pytest are those that the reference documents."""
    added: list[str] = []

    class Parser:
        """A parser of options that keeps their names."""

        def getgroup(self, *_names: str) -> Any:
            return self

        def addoption(self, *names: str, **_settings: Any) -> None:
            added.extend(names)

    pytest_plugin.pytest_addoption(Parser())  # type: ignore[arg-type]
    page = (REFERENCE / "testing.md").read_text(encoding="utf-8")
    assert sorted(_OPTION.findall(page)) == sorted(added)


def test_only_the_package_of_an_extra_is_missed_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a package that is there misses itself is another fault, and no extra mends it."""
    (tmp_path / "half_there.py").write_text("import nowhere_at_all\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match=r"nowhere_at_all.*prism-statecharts\[science\]"):
        import_extra("nowhere_at_all.inside", "science")
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all") as caught:
        import_extra("half_there", "science")
    assert not isinstance(caught.value, MissingExtraError)
