"""What holds for every file of tests, and for the names of prism's modules.

The rules are read from the source, so that they hold for tests that are left out of a run, too.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import prism

TESTS = Path(__file__).parent
ROOT = Path(prism.__file__).parent
MOST_LINES = 500

POLLS = ("kit/", "test_kills.py")
"""Where tests may sleep: the kit waits for other processes, and kills are slow or long."""

TIERS = ("slow", "long")

UNDOCUMENTED = r"def test_(?!\w*\([^()]*\)[^()\n]*:\n +\"\"\")"
"""Where a test may lack its docstring: nearly none, but those whose parameters hold brackets."""

PRIVATE = r"^(?!from |import ).*(?<!\bself)(?<!\bcls)[.'\"]_[A-Za-z]"
"""Where an attribute may be private, by a dot or by name."""

SLEEPS = r"\b(?:time|asyncio)\.sleep\((?!0\))"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def texts() -> Mapping[str, str]:
    """Return the files of tests, read when a test asks, not when tests are collected."""
    return {
        path.relative_to(TESTS).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(TESTS.rglob("*.py"))
    }


def trees(hint: str) -> Iterator[tuple[str, ast.Module]]:
    """Return the files in which a pattern is found; to parse all takes longer than most tests."""
    for path, text in texts().items():
        if re.search(hint, text, re.MULTILINE):
            yield path, parsed(path)


@cache
def parsed(path: str) -> ast.Module:
    """Return the tree of a file."""
    return ast.parse(texts()[path])


def is_slow(node: ast.Module | Function) -> bool:
    """Return True for a test, or a whole module, with the mark ``slow`` or ``long``."""
    marks = (
        node.decorator_list
        if not isinstance(node, ast.Module)
        else [
            each.value
            for each in node.body
            if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "pytestmark"
        ]
    )
    return any(f"pytest.mark.{tier}" in ast.unparse(mark) for mark in marks for tier in TIERS)


def collected_from(tree: ast.Module) -> Iterator[Function]:
    """Return the functions of a file that pytest collects."""
    for node in ast.walk(tree):
        if isinstance(node, Function) and node.name.startswith("test_"):
            yield node


def is_private(name: str) -> bool:
    """Return True for a name with one leading underscore, unless it is a protocol's own."""
    return name.startswith("_") and not name.startswith("__") and not name.endswith("_")


def private_attributes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Return where a file touches a private attribute, by a dot or by name, with that name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            of_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not of_itself:
                yield node.lineno, node.attr
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            function, name = ast.unparse(node.func).rpartition(".")[2], node.args[1]
            by_name = function in ("getattr", "setattr", "hasattr", "delattr")
            if by_name and isinstance(name, ast.Constant) and is_private(str(name.value)):
                yield node.lineno, str(name.value)


def sleeps(node: ast.AST) -> Iterator[int]:
    """Return the lines below a node at which time passes, slow tests left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function) and is_slow(child):
            continue
        if isinstance(child, ast.Call):
            called = ast.unparse(child.func)
            is_turn = called == "asyncio.sleep" and ast.unparse(child.args[0]) == "0"
            if called in ("time.sleep", "asyncio.sleep") and not is_turn:
                yield child.lineno

        yield from sleeps(child)


def assert_kept(offences: dict[str, Any]) -> None:
    """Assert that no file offends against a rule."""
    assert {path: found for path, found in offences.items() if found} == {}


def test_every_test_says_what_holds() -> None:
    """Every test has a docstring of its own."""
    assert_kept(
        {
            path: [test.name for test in collected_from(tree) if not ast.get_docstring(test)]
            for path, tree in trees(UNDOCUMENTED)
        }
    )


def test_no_file_of_tests_is_long() -> None:
    """A file of tests has at most 500 lines."""
    lengths = {path: len(text.splitlines()) for path, text in texts().items()}
    assert_kept({path: length for path, length in lengths.items() if length > MOST_LINES})


def test_no_test_touches_a_private_attribute() -> None:
    """Attributes with a leading underscore are used by their own objects alone."""
    assert_kept({path: list(private_attributes(tree)) for path, tree in trees(PRIVATE)})


def test_only_slow_tests_sleep() -> None:
    """A test that is not slow lets no time pass; it may give way with ``asyncio.sleep(0)``."""
    assert_kept(
        {
            path: list(sleeps(tree))
            for path, tree in trees(SLEEPS)
            if not path.startswith(POLLS) and not is_slow(tree)
        }
    )


def test_no_page_has_the_marks_of_a_merge() -> None:
    """Both sides of a conflict were brought together, in pages that no program reads, too."""
    checkout = TESTS.parent
    for page in (*checkout.glob("*.md"), *(checkout / "docs").rglob("*.md")):
        marks = re.findall(r"^(?:<{7}|>{7}) .*", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert not marks, page


def test_continuous_integration_names_tests_that_exist() -> None:
    """A test file that moves, moves in ``.ci/run``, too."""
    script = (TESTS.parent / ".ci" / "run").read_text(encoding="utf-8")
    named = re.findall(r"\btests/[a-z_/]+(?:\.py)?", script)
    assert len(named) > 20
    assert [path for path in named if not (TESTS.parent / path).exists()] == []


def test_no_module_is_hidden_by_a_name_of_its_package() -> None:
    """What a package offers has another name than its modules, which it would hide."""
    for package in sorted(path.parent for path in ROOT.rglob("__init__.py")):
        dotted = ".".join(["prism", *package.relative_to(ROOT).parts])
        modules = {path.stem for path in package.iterdir() if path.suffix == ".py" or path.is_dir()}
        module = import_module(dotted)
        offered = getattr(module, "__all__", vars(module))
        hidden = {name for name in modules & set(offered) if callable(getattr(module, name))}
        assert hidden == set(), dotted


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("agent._state", [(1, "_state")]),
        ("getattr(agent, '_state')", [(1, "_state")]),
        ("monkeypatch.setattr(pool, '_hosts', [])", [(1, "_hosts")]),
        ("self._state\nagent.state\nagent.__dict__\nfrom prism import _x", []),
    ],
)
def test_private_attributes_are_found(code: str, found: list[tuple[int, str]]) -> None:
    """The rule sees attributes by a dot and by name, and lets objects use their own."""
    assert list(private_attributes(ast.parse(code))) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("time.sleep(1)", [1]),
        ("async def test_a():\n    await asyncio.sleep(pause)", [2]),
        ("asyncio.sleep(0)", []),
        ("@pytest.mark.slow\ndef test_a():\n    time.sleep(1)", []),
    ],
)
def test_sleeps_are_found(code: str, found: list[int]) -> None:
    """The rule sees sleeps of any length, and neither turns of the loop nor slow tests."""
    assert list(sleeps(ast.parse(code))) == found
