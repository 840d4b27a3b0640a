"""Ollama's paths, options, counts and statuses are known in one room."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import prism

ROOT = Path(prism.__file__).parent
KNOWING = (
    "llm/",
    "testing/_server/",
    "statechart/reasoner/_foreign.py",
    "statechart/reasoner/_faults.py",
    "watch/",
)
"""Who knows Ollama, the fake server, the adapter of other clients, and the server of the viewer."""

PATHS = ("/api/", "/v1/systemone")
NAMES = {"keep_alive", "prompt_eval_count", "eval_count", "capabilities", "status_code"}
STATUSES = {400, 401, 403, 404, 405, 413, 422, 429, 500, 501, 502, 503, 504}
SEEN = re.compile("|".join([*map(re.escape, [*PATHS, *NAMES]), *map(str, STATUSES)]))
DRAWING = (
    "drawing/",
    "report/",
    "statechart/statechart.py",
    "statechart/reasoner/_recollection.py",
    "worlds/_agent_measures.py",
)
"""Where a number like 400 is a size, of a picture, a memory or a table."""

OTHERS = [
    path
    for path in sorted(found.relative_to(ROOT).as_posix() for found in ROOT.rglob("*.py"))
    if not path.startswith(KNOWING)
]


def docstrings_of(tree: ast.AST) -> Iterator[ast.expr]:
    """Return the texts that stand alone in a tree, which are docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def words_of(source: str, *, statuses: bool = True) -> list[str]:
    """Return what a source says that only the room of Ollama should know, with its line."""
    # most modules hold none, also not in a docstring, and reading text is far cheaper than parsing
    if not SEEN.search(source):
        return []

    tree = ast.parse(source)
    silent = set(docstrings_of(tree))
    return [
        f"line {node.lineno}: {word!r}"
        for node in ast.walk(tree)
        if node not in silent
        for word in _words_in(node, statuses=statuses)
    ]


def _words_in(node: ast.AST, *, statuses: bool) -> Iterator[object]:
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, str) and (value in NAMES or any(path in value for path in PATHS)):
            yield value
        if statuses and type(value) is int and value in STATUSES:
            yield value
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield node.attr
    elif isinstance(node, (ast.keyword, ast.arg)) and node.arg in NAMES:
        yield node.arg


def test_only_one_room_knows_ollamas_words() -> None:
    """Outside `prism.llm` no code holds one of its words, but for the known exceptions."""
    said = {
        path: words_of(source_of(path), statuses=not path.startswith(DRAWING)) for path in OTHERS
    }
    assert {path: words for path, words in said.items() if words} == {}


def source_of(path: str) -> str:
    """Return a module's text."""
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "source",
    [
        'client.get("/api/show")',
        'path = f"{host}/v1/systemone"',
        "reply.eval_count",
        'first(shown, "capabilities")',
        "client.chat(keep_alive=1)",
        "def chat(keep_alive): ...",
        "status == 404",
        "error.status_code",
    ],
)
def test_the_words_are_found(source: str) -> None:
    """The test sees a path, a name and a status wherever code may hold one."""
    assert len(words_of(source)) == 1


@pytest.mark.parametrize("source", ['"""Asks /api/show."""', "size = 4040", "is_kept_alive"])
def test_other_words_are_not_found(source: str) -> None:
    """Docstrings, other numbers and other names are free."""
    assert words_of(source) == []


@pytest.mark.slow
def test_the_room_of_ollama_knows_them() -> None:
    """The modules that are excepted hold such words, so that the exceptions are needed."""
    for known in KNOWING:
        found = [
            path
            for path in ROOT.rglob("*.py")
            if path.relative_to(ROOT).as_posix().startswith(known)
        ]
        assert any(words_of(path.read_text(encoding="utf-8")) for path in found), known
