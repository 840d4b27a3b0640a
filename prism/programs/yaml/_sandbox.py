"""Conditions and code steps, in the sandbox of pydantic-monty; the only module that imports it.

Monty is an interpreter in a process of its own, without files, network or clock, which keeps limits
on time, memory and depth. It is called synchronously: a condition takes 0.2 ms, a step 0.8 ms, and
neither can take more than `MAX_SECONDS`.
"""

from __future__ import annotations

import ast
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
from prism.programs.yaml._variables import Variables, through_json

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

_HUNG_SECONDS = 2.0
_CONDITIONS_PER_SESSION = 500
_REFUSED_NAMES = ("compile", "eval", "exec", "globals", "id", "input", "open", "vars")


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
    """

    __slots__ = ("_names", "_text", "source")

    def __init__(self, source: str) -> None:
        if len(source) > MAX_CONDITION_CHARACTERS:
            raise CodeError(f"has more than {MAX_CONDITION_CHARACTERS:,} characters")
        tree = _parsed(source.strip(), "eval")
        self.source: str = source
        self._names = sorted(_names_in(tree))
        try:
            self._text = ast.unparse(tree)
        except RecursionError:
            raise CodeError("is nested too deeply") from None

    def holds(self, variables: Variables) -> bool:
        """Return whether the expression is true; only the variables that it names are looked up.

        Raises:
            CodeError: If it fails, or names an unknown variable whose value it needs.
        """
        values = {name: variables[name] for name in self._names if name in variables}
        program = f"(lambda {', '.join(values)}: not not ({self._text}))(**_prism_values)"
        with variables.timed():
            return bool(_sandbox().evaluate(program, {"_prism_values": values}))


class Program:
    """The code of a step.

    Args:
        code: Python, at most 20,000 characters.

    Raises:
        CodeError: If it is not Python, or uses what the sandbox does not have.

    Attributes:
        names: Names that it mentions; None if it may read any variable, by ``locals``.
    """

    __slots__ = ("_code", "_epilogue", "names")

    def __init__(self, code: str) -> None:
        if len(code) > MAX_CHARACTERS:
            raise CodeError(f"has more than {MAX_CHARACTERS:,} characters")
        tree = _parsed(code, "exec")
        names = _names_in(tree)
        self.names: frozenset[str] | None = None if "locals" in names else names - {"context"}
        self._code = code
        self._epilogue = _epilogue(dict.fromkeys(_assigned(tree.body)))

    def run(self, variables: Variables, seed: str) -> dict[str, Any]:
        """Run the code on a copy of the context, and return the context after it.

        Args:
            variables: All variables; only those that the code names are looked up.
            seed: Seed of its random numbers.

        Raises:
            CodeError: If the code fails, exceeds a limit or leaves something that is not data.
        """
        context = variables.context
        inputs = {
            name: variables[name] for name in variables if self.names is None or name in self.names
        }
        with variables.timed():
            text = _sandbox().run(self._code, self._epilogue, {**inputs, "context": context}, seed)
        provided = {name: value for name, value in inputs.items() if name not in context}
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


def _names_in(tree: ast.AST) -> frozenset[str]:
    """Return the names of variables that code mentions; what it calls is a function.

    Raises:
        CodeError: If it uses what the sandbox does not have.
    """
    names: set[str] = set()
    called: set[str] = set()
    for node in ast.walk(tree):
        line = getattr(node, "lineno", None)
        match node:
            case ast.Name(id=name):
                names.add(name)
                if name in _REFUSED_NAMES or name.startswith(("__", "_prism")):
                    raise CodeError(f"uses {name}, which the sandbox does not have", line)
            case ast.Call(func=ast.Name(id=name)):
                called.add(name)
            case ast.Attribute(attr=name) if name.startswith("__"):
                raise CodeError(f"uses .{name}, which the sandbox does not have", line)
            case ast.Import(names=aliases):
                _require_modules((alias.name for alias in aliases), line)
            case ast.ImportFrom(module=module, level=level):
                _require_modules([f"{'.' * level}{module}"], line)
    return frozenset(names - called)


def _require_modules(modules: Iterable[str], line: int | None) -> None:
    for module in modules:
        if module not in MODULES:
            raise CodeError(f"imports {module}: code steps have {', '.join(MODULES)}", line)


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
