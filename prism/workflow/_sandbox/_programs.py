"""Code steps as programs: checked when they are loaded, and dressed for the sandbox.

A step's code becomes the body of a function, so that nothing it binds outlives it. The context
goes in as an argument and comes out as JSON text made inside the sandbox: a structure that shares
its parts may be small there and endless here.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

MAX_CHARACTERS = 20_000
MAX_RESULT_CHARACTERS = 1_000_000

MODULES = ("json", "math", "random", "re")
"""The modules that a code step may import: a replayed step must give the same result."""

_REFUSED_NAMES = frozenset(
    {"compile", "eval", "exec", "globals", "hash", "id", "input", "open", "vars"}
)
_LACKING: Mapping[type[ast.AST], str] = {
    ast.Delete: "del: write context.pop('name')",
    ast.Global: "global: put the value in context",
    ast.Nonlocal: "nonlocal: return the value, or put it in context",
    ast.Yield: "yield: return a list",
    ast.YieldFrom: "yield: return a list",
    ast.TryStar: "except*: write except",
}
"""Statements that the sandbox does not have yet, and what to write in their place."""

_BUILTINS = frozenset(dir(builtins))
_OPENING = "def _prism_step(context, _prism_given, _prism_locals=locals):\n    {}\n"
_LOCALS = "locals = lambda: {**_prism_given, **context}"
_CALL = "_prism_step(context, given)\n"
_HEADER_LINES = 2


class CodeError(ValueError):
    """A code step cannot be read, or failed; its context is unchanged.

    Args:
        problem: What is wrong.
        line: Line of the step's code, counted from 1, where known.
        is_of_limits: Whether it took too much time or memory, as it would again.
    """

    def __init__(
        self, problem: str, line: int | None = None, *, is_of_limits: bool = False
    ) -> None:
        self.is_of_limits = is_of_limits
        self.problem = problem
        self.line = line
        super().__init__(problem if line is None else f"line {line} of the code: {problem}")


class Program:
    """The code of a step, checked.

    Args:
        code: Python, at most 20,000 characters.

    Raises:
        CodeError: If it is not Python, or uses what the sandbox does not have.
    """

    __slots__ = ("_dressed", "_scan", "assigned", "code", "needs", "reads", "sees_all", "stored")

    def __init__(self, code: str) -> None:
        # a carriage return ends a line, too, and a form feed ends an indentation: behind either a
        # line would stand outside the function that the code becomes, and outlive the step
        code = code.replace("\r\n", "\n").replace("\r", "\n")
        tree = _parsed(code)
        scan = _Scan(tree)
        outside = [*_outside(tree.body)]
        _python(tree)

        self.code: str = code
        self.assigned: tuple[str, ...] = tuple(dict.fromkeys(_assigned(outside)))
        # what is called is a function, though a variable has the same name: those are plain data
        self.reads: tuple[str, ...] = tuple(
            sorted((scan.used | scan.bound) - scan.called - {"context"})
        )
        known = scan.bound | {"context"} | _BUILTINS
        self.needs: tuple[str, ...] = tuple(sorted(scan.used - known))
        self.stored: tuple[str, ...] = tuple(sorted(scan.stored))
        self.sees_all: bool = "locals" in scan.used
        self._scan = scan
        self._dressed: tuple[str, str] | None = None

    def source(self, context: Mapping[str, Any], given: Mapping[str, Any], key: str) -> str:
        """Return the program to run.

        Args:
            context: The context; those of its variables that the code names become bare names.
            given: Variables that are not in the context, likewise.
            key: What random numbers belong to.
        """
        body, epilogue = self._dress()
        bare = [
            f"{name} = {'context' if name in context else '_prism_given'}[{name!r}]"
            for name in self.reads
            if name in context or name in given
        ]
        if self.sees_all:
            bare.append(_LOCALS)
        if "random" in self._scan.modules:
            bare.append(f"import random as _prism_random; _prism_random.seed({key!r})")
        opening = _OPENING.format("; ".join(bare) or "pass")

        return f"{opening}{body}\n{epilogue}{_CALL}"

    def _dress(self) -> tuple[str, str]:
        """Return the body of the function that the code becomes, and what follows it."""
        if self._dressed is None:
            body = "\n".join(_indented(self.code, self._scan.texts)) or "    pass"
            epilogue = _epilogue(self.assigned)
            self._require_inside(_OPENING.format("pass") + f"{body}\n{epilogue}{_CALL}")
            self._dressed = body, epilogue

        return self._dressed

    def _require_inside(self, source: str) -> None:
        """Refuse code of which any part would be outside the function."""
        try:
            dressed = ast.parse(source).body
        except SyntaxError as error:
            raise CodeError(f"is not Python: {error.msg}", self.line(error.lineno or 0)) from None
        if [type(node) for node in dressed] != [ast.FunctionDef, ast.Expr]:
            raise CodeError("cannot be told from what surrounds it: indent it only with spaces")

    def line(self, line: int) -> int | None:
        """Return the line of the step's code that a line of the program is; None outside it."""
        own = line - _HEADER_LINES
        return own if 1 <= own <= self.code.count("\n") + 1 else None


def _parsed(code: str) -> Any:
    if len(code) > MAX_CHARACTERS:
        raise CodeError(f"has more than {MAX_CHARACTERS:,} characters")
    if "\f" in code:
        line = code.count("\n", 0, code.index("\f")) + 1
        raise CodeError("holds a form feed: write \\f in a text", line)

    return _python(code, ast.PyCF_ONLY_AST)


def _python(code: str | ast.Module, flags: int = 0) -> Any:
    """Parse code, or compile it, which also finds a return outside a function and the like."""
    try:
        return compile(code, "<code>", "exec", flags, dont_inherit=True, optimize=0)
    except SyntaxError as error:
        raise CodeError(f"is not Python: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise CodeError(f"is not Python: {error}") from None


class _Scan:
    """The names and imports of a program, found in one pass: a file may have many long programs.

    Args:
        tree: The program.

    Raises:
        CodeError: If it uses what the sandbox does not have.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.used: set[str] = set()
        self.bound: set[str] = set()
        self.called: set[str] = set()
        self.stored: set[str] = set()
        self.modules: set[str] = set()
        self.texts: set[tuple[int, int]] = set()

        for node in ast.walk(tree):
            if (see := _SEEN.get(type(node))) is not None:
                see(self, node)

    def name(self, node: ast.Name) -> None:
        if node.id in _REFUSED_NAMES or node.id.startswith(("__", "_prism")):
            raise CodeError(f"uses {node.id}, which code steps do not have", node.lineno)

        (self.used if isinstance(node.ctx, ast.Load) else self.bound).add(node.id)

    def attribute(self, node: ast.Attribute) -> None:
        if node.attr.startswith("__"):
            raise CodeError(f"uses .{node.attr}, which code steps do not have", node.lineno)

    def text(self, node: ast.Constant | ast.JoinedStr) -> None:
        end = node.end_lineno or node.lineno
        if end > node.lineno:
            self.texts.add((node.lineno, end))

    def call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name):
            self.called.add(node.func.id)

    def item(self, node: ast.Subscript) -> None:
        match node:
            case ast.Subscript(ast.Name("context"), ast.Constant(name), ast.Store()):
                self.stored.add(str(name))

    def imported(self, node: ast.Import | ast.ImportFrom) -> None:
        modules = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            modules = ["." * node.level + (node.module or "")]
        for module in modules:
            if module not in MODULES:
                known = ", ".join(MODULES)
                raise CodeError(f"imports {module}: code steps have {known}", node.lineno)

        self.modules.update(modules)
        self.bound.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)

    def lacking(self, node: Any) -> None:
        raise CodeError(f"uses {_LACKING[type(node)]}; code steps do not have it", node.lineno)

    def binding(self, node: ast.AST) -> None:
        names: Any = {getattr(node, field, None) for field in ("name", "arg", "rest")} - {None}
        self.bound |= names


_SEEN: Mapping[type[ast.AST], Callable[[_Scan, Any], None]] = {
    ast.Name: _Scan.name,
    ast.Attribute: _Scan.attribute,
    ast.Constant: _Scan.text,
    ast.JoinedStr: _Scan.text,
    ast.Call: _Scan.call,
    ast.Subscript: _Scan.item,
    **dict.fromkeys((ast.Import, ast.ImportFrom), _Scan.imported),
    **dict.fromkeys(_LACKING, _Scan.lacking),
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef), _Scan.binding),
    **dict.fromkeys((ast.arg, ast.ExceptHandler, ast.MatchAs), _Scan.binding),
    **dict.fromkeys((ast.MatchStar, ast.MatchMapping), _Scan.binding),
}
"""The function that examines each kind of node; others need none."""


def _outside(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all statements outside functions and classes."""
    for statement in body:
        yield statement
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from _outside(getattr(statement, field, ()))
            for block in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                yield from _outside(block.body)


def _assigned(statements: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names that become variables."""
    for statement in statements:
        if isinstance(statement, ast.Assign):
            yield from _public(statement.targets)
        elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
            yield from _public([statement.target])


def _public(targets: Iterable[ast.expr]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, ast.Name) and not target.id.startswith("_"):
            yield target.id
        elif isinstance(target, (ast.Tuple, ast.List)):
            yield from _public(target.elts)
        elif isinstance(target, ast.Starred):
            yield from _public([target.value])


def _indented(code: str, texts: Iterable[tuple[int, int]]) -> Iterator[str]:
    """Yield the code's lines as a function's body; the inside of a text is left as it is."""
    # every part of a formatted text may say that it stands where the whole text does
    inside = {line for start, end in texts for line in range(start + 1, end + 1)}
    for number, line in enumerate(code.split("\n"), 1):
        yield line if number in inside or not line.strip() else f"    {line}"


def _epilogue(assigned: Iterable[str]) -> str:
    names = "".join(f"{name!r}, " for name in assigned if name != "context")

    return (
        "    import json as _prism_json\n"
        "    _prism_all = _prism_locals()\n"
        "    _prism_new = {}\n"
        f"    for _prism_name in ({names}):\n"
        "        if _prism_name in _prism_all:\n"
        "            _prism_new[_prism_name] = _prism_all[_prism_name]\n"
        "    _prism_text = _prism_json.dumps([context, _prism_new])\n"
        "    return _prism_text\n"
    )
