"""Conditions and code steps, in the sandbox of pydantic-monty; the only module that imports it.

Monty is an interpreter in a process of its own, without files, network or clock, which keeps limits
on time, memory and depth. It is called synchronously: a condition takes 0.2 ms, a step 0.8 ms, and
neither can take more than `MAX_SECONDS`.
"""

from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from weakref import finalize

from prism._lazy import import_extra
from prism.errors import InputError
from prism.files import parse_json
from prism.programs._layer import StepFailedError
from prism.programs.yaml._variables import through_json

MAX_SECONDS = 1.0
"""How long one step or condition may compute."""

MAX_MEMORY = 32 << 20
"""Bytes that one step or condition may use."""

MAX_DEPTH = 100
MAX_CHARACTERS = 20_000
MAX_CONDITION_CHARACTERS = 1_000
MAX_RESULT_CHARACTERS = 1_000_000

MODULES = ("json", "math", "random", "re")
"""The modules that a code step may import: a replayed step must have the same result."""

_HUNG_SECONDS = 3.0
_CONDITIONS_PER_SESSION = 500
_REFUSED_NAMES = frozenset({"compile", "eval", "exec", "globals", "id", "input", "open", "vars"})
_BUILTINS = frozenset(dir(builtins))


class CodeError(StepFailedError):
    """A condition or code step cannot be read, or failed; the context is unchanged.

    Args:
        problem: What is wrong.
        line: Line of the step's code, counted from 1, where known.
        is_final: Whether it exceeded a limit, as it would again.
    """

    def __init__(self, problem: str, line: int | None = None, *, is_final: bool = False) -> None:
        self.problem = problem
        self.line = line
        text = problem if line is None else f"line {line} of the code: {problem}"
        super().__init__(text, is_final=is_final)


class Condition:
    """A Python expression over variables.

    Args:
        source: The expression, at most 1,000 characters.

    Raises:
        CodeError: If it is not an expression, or uses what the sandbox does not have.

    Attributes:
        source: The expression.
        names: The variables that it names.
    """

    __slots__ = ("_text", "names", "source")

    def __init__(self, source: str) -> None:
        if len(source) > MAX_CONDITION_CHARACTERS:
            raise CodeError(f"has more than {MAX_CONDITION_CHARACTERS:,} characters")
        tree = _parsed(source.strip(), "eval")
        used, bound = _names_in(tree)
        self.source: str = source
        self.names: frozenset[str] = frozenset(used - bound - _BUILTINS)
        try:
            self._text = ast.unparse(tree)
        except RecursionError:
            raise CodeError("is nested too deeply") from None

    def holds(self, variables: Mapping[str, Any]) -> bool:
        """Return whether the expression is true; only the variables that it names are looked up.

        Raises:
            CodeError: If it fails, or names an unknown variable whose value it needs.
        """
        values = {name: variables[name] for name in sorted(self.names) if name in variables}
        program = f"(lambda {', '.join(values)}: bool({self._text}))(**_prism_values)"
        return bool(_sandbox().evaluate(program, {"_prism_values": values}))

    def __eq__(self, other: object) -> bool:
        """Compare the sources."""
        return isinstance(other, Condition) and self.source == other.source

    def __hash__(self) -> int:
        """Hash the source."""
        return hash(self.source)


class Program:
    """The code of a step.

    Args:
        code: Python, at most 20,000 characters.

    Raises:
        CodeError: If it is not Python, or uses what the sandbox does not have.

    Attributes:
        code: The code.
        assigned: Names that it assigns at the top level, which become variables.
        reads: Names that it reads.
        needs: Names that it reads, and neither assigns nor finds in Python.
        stored: Names that it stores in ``context``.
        sees_all: Whether it may read any variable, by ``locals``.
    """

    __slots__ = ("_epilogue", "assigned", "code", "needs", "reads", "sees_all", "stored")

    def __init__(self, code: str) -> None:
        if len(code) > MAX_CHARACTERS:
            raise CodeError(f"has more than {MAX_CHARACTERS:,} characters")
        tree = _parsed(code, "exec")
        used, bound = _names_in(tree)
        # what is called is a function, though a variable has the same name
        calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
        called = {node.id for node in calls if isinstance(node, ast.Name)}
        self.code: str = code
        self.assigned: tuple[str, ...] = tuple(dict.fromkeys(_assigned(tree.body)))
        self.reads: frozenset[str] = frozenset((used | bound) - called - {"context"})
        self.needs: frozenset[str] = frozenset(used - bound - _BUILTINS - {"context"})
        self.stored: frozenset[str] = frozenset(_stored(tree))
        self.sees_all: bool = "locals" in used
        self._epilogue = _epilogue(self.assigned)

    def run(
        self, context: Mapping[str, Any], provided: Mapping[str, Any], seed: str
    ) -> dict[str, Any]:
        """Run the code on a copy of the context, and return the context after it.

        Args:
            context: The context, plain data as JSON has it.
            provided: Variables beside it that the code may read.
            seed: Seed of its random numbers.

        Raises:
            CodeError: If the code fails, exceeds a limit or leaves something that is not data.
        """
        names = {**provided, **context}
        if not self.sees_all:
            names = {name: names[name] for name in names if name in self.reads}
        inputs = {**names, "context": dict(context)}
        text = _sandbox().run(self.code, self._epilogue, inputs, seed)
        return _merged(context, provided, text)


def _parsed(code: str, mode: str) -> Any:
    """Parse code, and compile it, which also finds a return outside a function and the like."""
    try:
        tree: Any = compile(code, "<code>", mode, ast.PyCF_ONLY_AST, dont_inherit=True)
        compile(tree, "<code>", mode, dont_inherit=True)
    except SyntaxError as error:
        if mode == "eval":
            raise CodeError(f"is not an expression: {error.msg}") from None
        raise CodeError(f"is not Python: {error.msg}", error.lineno) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise CodeError(f"is not Python: {str(error)[:200]}") from None
    return tree


def _names_in(tree: ast.AST) -> tuple[set[str], set[str]]:
    """Return the names that code uses and those that it binds.

    Raises:
        CodeError: If it uses what the sandbox does not have.
    """
    used: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                bound |= {_module_of(node, alias) for alias in aliases}
            case ast.Attribute(attr=name) if name.startswith("__"):
                raise CodeError(f"uses .{name}, which the sandbox does not have", node.lineno)
        name = getattr(node, "id", "")
        if name in _REFUSED_NAMES or name.startswith(("__", "_prism")):
            line = getattr(node, "lineno", None)
            raise CodeError(f"uses {name}, which the sandbox does not have", line)
    return used, bound


def _module_of(node: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    module = alias.name if isinstance(node, ast.Import) else f"{'.' * node.level}{node.module}"
    if module not in MODULES:
        modules = ", ".join(MODULES)
        raise CodeError(f"imports {module}: code steps have {modules}", node.lineno)
    return alias.asname or alias.name


def _assigned(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the public names that statements outside functions and classes assign."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(statement, ast.Assign):
            yield from _public(statement.targets)
        elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
            yield from _public([statement.target])
        for block in ("body", "orelse", "finalbody"):
            yield from _assigned(getattr(statement, block, ()))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _assigned(part.body)


def _stored(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(ast.Name("context"), ast.Constant(str(name)), ast.Store()):
                yield name


def _public(targets: Iterable[ast.expr]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, ast.Name) and not target.id.startswith("_"):
            yield target.id
        elif isinstance(target, (ast.Tuple, ast.List)):
            yield from _public(target.elts)
        elif isinstance(target, ast.Starred):
            yield from _public([target.value])


def _epilogue(assigned: Iterable[str]) -> str:
    """Return the program that writes out, as JSON, what a step leaves behind."""
    lines = ["import json as _prism_json", "_prism_new = {}"]
    for name in assigned:
        if name != "context":  # a branch that was not taken has not assigned it
            lines += ["try:", f"    _prism_new[{name!r}] = {name}", "except NameError:", "    pass"]
    return "\n".join([*lines, "_prism_json.dumps([context, _prism_new])"])


def _merged(before: Mapping[str, Any], provided: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the context after a step; what was assigned to it takes precedence over bare names.

    A bare name that only repeats what the host provides does not become part of the context, where
    its value would never change again.
    """
    if len(text) > MAX_RESULT_CHARACTERS:
        raise CodeError(f"the context grew over {MAX_RESULT_CHARACTERS:,} characters")
    try:
        after, assigned = parse_json(text)
    except InputError as error:
        raise CodeError(f"left a value that is not data: {error.problem}") from None
    if not isinstance(after, dict):
        raise CodeError("replaced context with something other than a dict")

    for name, value in assigned.items():
        was_set = name in after and (name not in before or after[name] != before[name])
        if not was_set and not (name in provided and provided[name] == value):
            after[name] = value
    try:
        return {name: through_json(value) for name, value in after.items()}
    except (TypeError, ValueError) as error:
        raise CodeError(f"left a value that is not data: {error}") from None


# The interpreter


class _Sandbox:
    """The interpreters of this process: one session for all conditions, a fresh one for each step.

    Nothing that a step does outlives its session. A condition is one lambda, which binds nothing.
    """

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._pool = require_monty().Monty(
            min_processes=0, max_processes=2, request_timeout=_HUNG_SECONDS
        )
        self._pool.__enter__()
        self._conditions: Any = None
        self._evaluated = 0
        finalize(self, _close, self.owner, self._pool)

    def run(self, code: str, epilogue: str, inputs: dict[str, Any], seed: str) -> str:
        """Run a step, and return what it leaves behind as text."""
        try:
            with self._session(seed) as session:
                # without a statement, the inputs would not be bound
                session.feed_run(f"{code}\npass", inputs=inputs, print_callback=_drop)
                return str(session.feed_run(epilogue))
        except require_monty().MontyError as error:
            raise _failure(error) from None

    def evaluate(self, program: str, inputs: dict[str, Any]) -> Any:
        """Evaluate an expression."""
        if self._conditions is None or self._evaluated >= _CONDITIONS_PER_SESSION:
            self._end_conditions()
            self._conditions = self._session("conditions")
            self._conditions.__enter__()
        self._evaluated += 1
        try:
            return self._conditions.feed_run(program, inputs=inputs, print_callback=_drop)
        except require_monty().MontyError as error:
            self._end_conditions()  # a limit leaves no guarantees about the session
            failure = _failure(error)
            raise CodeError(failure.problem, is_final=failure.is_final) from None

    def _end_conditions(self) -> None:
        session, self._conditions, self._evaluated = self._conditions, None, 0
        if session is not None:
            session.__exit__(None, None, None)

    def _session(self, seed: str) -> Any:
        return self._pool.checkout(
            script_name="code",
            limits={
                "max_memory": MAX_MEMORY,
                "max_feed_duration_secs": MAX_SECONDS,
                "max_recursion_depth": MAX_DEPTH,
                "max_total_sleep_secs": 0,
            },
            # the same at every replay, should a program find a clock
            os_policy={
                "datetime": datetime(1970, 1, 1, tzinfo=UTC),
                "random_start": {"seed": seed},
            },
        )


_process_sandboxes: dict[int, _Sandbox] = {}


def _sandbox() -> _Sandbox:
    if os.getpid() not in _process_sandboxes:
        if _process_sandboxes:
            # monty's threads are not in the fork, which would wait for them without end
            problem = "this process was forked from one that has run code: start it by spawn"
            raise CodeError(problem, is_final=True)
        _process_sandboxes[os.getpid()] = _Sandbox()
    return _process_sandboxes[os.getpid()]


def _close(owner: int, pool: Any) -> None:
    if owner == os.getpid():
        pool.__exit__(None, None, None)


def _drop(_stream: str, _text: str) -> None:
    """Drop what a step prints: it can print without end."""


def _failure(error: Any) -> CodeError:
    if not hasattr(error, "traceback"):  # the interpreter is gone, or refuses an input
        return CodeError(str(error).partition("\n")[0][:300], is_final=True)

    problem = " ".join(error.display("type-msg").split())[:300]
    if isinstance(error.exception(), TimeoutError):
        # monty reports the nanoseconds that it took, which no replay repeats
        return CodeError(f"TimeoutError: takes more than {MAX_SECONDS:g} s", is_final=True)
    frames = error.traceback()
    line = frames[-1].line if frames else None
    return CodeError(problem, line, is_final=isinstance(error.exception(), MemoryError))


@lru_cache(maxsize=1)
def require_monty() -> Any:
    """Return pydantic-monty.

    Raises:
        MissingExtraError: If it is not installed: nothing runs outside a sandbox.
    """
    return import_extra("pydantic_monty", "programs.yaml", extra="workflow")
