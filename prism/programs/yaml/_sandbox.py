"""Variables, conditions, and code steps in the sandbox of pydantic-monty.

Monty is an interpreter in a process of its own, without files, network or clock, which keeps limits
on time, memory and depth. It is called synchronously: a condition takes 0.1 ms, a step 0.2 ms, and
neither can take more than `MAX_SECONDS`.
"""

from __future__ import annotations

import ast
import atexit
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from time import monotonic
from typing import Any

from prism._lazy import import_extra
from prism.errors import FieldTypeError, InputError
from prism.files import parse_json
from prism.programs._documents import as_data
from prism.programs._layer import StepFailedError
from prism.telemetry.loggers import describe

MAX_SECONDS = 1.0
"""How long one step or condition may compute."""

MAX_MEMORY = 32 << 20
"""Bytes that one step or condition may use."""

MAX_DEPTH = 300
MAX_CHARACTERS = 20_000
MAX_CONDITION_CHARACTERS = 1_000
MAX_RESULT_CHARACTERS = 1_000_000

_LIMITS = (TimeoutError, MemoryError, RecursionError)
"""What code raises at a limit, where another attempt would end, too."""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

# Variables

HostVariable = Any | Callable[[Any], Any]
"""A value, or a function of the agent that returns it."""

TURN_SECONDS = 2.5
"""How long all conditions and code steps of a turn may compute."""


def _last_result(agent: Any) -> Any:
    return agent.action_history[-1]["result"] if agent.action_history else None


PROVIDED: Mapping[str, HostVariable] = {
    "agent_id": attrgetter("agent_id"),
    "tick": attrgetter("turn_number"),
    "state": attrgetter("state.value"),
    "_current_state": attrgetter("state.value"),
    "action_history": lambda agent: [*agent.action_history],
    "last_action_result": _last_result,
    "success_rate": lambda agent: agent.actions["done"] / max(1, agent.actions.total()),
}
"""Variables of the specification that every agent provides itself."""


class Variables:
    """The context, then what the host provides, then what the agent provides.

    Args:
        agent: The agent, for functions that provide a variable.
        provided: What the host and the agent provide.

    Attributes:
        seconds_left: How long conditions and code may still compute in this turn.
    """

    def __init__(self, agent: Any, provided: Mapping[str, HostVariable]) -> None:
        self._agent = agent
        self._provided = provided
        self.seconds_left: float = TURN_SECONDS

    def of(self, names: Iterable[str]) -> dict[str, Any]:
        """Return variables as plain data, without those that nobody provides.

        Args:
            names: Which. Only for these, functions that provide one are called.

        Raises:
            StepFailedError: If the host's function fails, or returns what is not data.
        """
        every = {**self._provided, **self._agent.context}
        return {
            name: self._agent.context[name] if name in self._agent.context else self._made(name)
            for name in names
            if name in every
        }

    def _made(self, name: str) -> Any:
        value = self._provided[name]
        try:
            value = value(self._agent) if callable(value) else value
            return as_data(value, f"the variable {name!r}")
        except FieldTypeError as error:
            raise StepFailedError(str(error)) from None
        except Exception as error:  # of the host's code: the step fails, and the log says so
            raise StepFailedError(f"the variable {name!r} failed: {describe(error)}") from error

    def run(self, programs: list[str], values: Mapping[str, Any], seed: str = "") -> Any:
        """Run programs in the sandbox, within the time of the turn; return the last one's result.

        Raises:
            StepFailedError: If one fails, or those before have taken all the time.
        """
        if self.seconds_left <= 0:
            problem = f"conditions and code of this turn have taken {TURN_SECONDS:g} s already"
            raise StepFailedError(problem)
        began = monotonic()
        try:
            return _run(programs, {**values}, seed)
        finally:
            self.seconds_left -= monotonic() - began


def as_context(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return variables as data.

    Raises:
        FieldTypeError: If JSON cannot hold one of them.
    """
    return {str(name): as_data(value, f"the variable {name!r}") for name, value in values.items()}


# Conditions and code


class CodeError(StepFailedError):
    """A condition, code or schema cannot be read, or code failed; the context is unchanged.

    Args:
        problem: What is wrong.
        line: Line of the step's code, counted from 1, where known.
    """

    def __init__(self, problem: str, line: int | None = None) -> None:
        self.problem = problem
        self.line = line
        text = problem if line is None else f"line {line} of the code: {problem}"
        super().__init__(text)


class Condition:
    """A Python expression over variables.

    Args:
        source: The expression, at most 1,000 characters.

    Raises:
        CodeError: If it is not an expression.

    Attributes:
        source: The expression.
        reads: Names that it mentions.
    """

    def __init__(self, source: str) -> None:
        tree = _parsed(source.strip(), "eval", MAX_CONDITION_CHARACTERS)
        self.source: str = source
        self.reads: list[str] = sorted(_names_in(tree))

    def holds(self, variables: Variables) -> bool:
        """Return whether the expression is true; only the variables that it names are looked up.

        Raises:
            CodeError: If it fails, or names an unknown variable whose value it needs.
        """
        program = f"not not (\n{self.source.strip()}\n)"
        return bool(variables.run([program], variables.of(self.reads)))


class Program:
    """The code of a step.

    Args:
        code: Python, at most 20,000 characters.

    Raises:
        CodeError: If it is not Python.

    Attributes:
        names: Names of variables that it mentions.
    """

    def __init__(self, code: str) -> None:
        tree = _parsed(code, "exec", MAX_CHARACTERS)
        self.names: frozenset[str] = _names_in(tree) - {"context"}
        self._code = code
        self._epilogue = _epilogue(dict.fromkeys(_assigned(tree)))

    def run(self, variables: Variables, context: Mapping[str, Any], seed: str) -> dict[str, Any]:
        """Run the code on a copy of the context, and return the context after it.

        Args:
            variables: All variables; only those that the code names are looked up.
            context: The context.
            seed: Seed of its random numbers.

        Raises:
            CodeError: If the code fails, exceeds a limit or leaves something that is not data.
        """
        inputs = variables.of(self.names)
        # without a statement, the inputs would not be bound
        code = [f"{self._code}\npass", self._epilogue]
        text = str(variables.run(code, {**inputs, "context": context}, seed))
        provided = {name: value for name, value in inputs.items() if name not in context}
        return _merged(context, provided, text)


def _parsed(code: str, mode: str, most_characters: int) -> Any:
    if len(code) > most_characters:
        raise CodeError(f"has more than {most_characters:,} characters")
    try:
        return compile(code, "<code>", mode, ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        line = error.lineno if mode == "exec" else None
        raise CodeError(f"is not Python: {error.msg}", line) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise CodeError(f"is not Python: {str(error)[:200]}") from None


def _names_in(tree: ast.AST) -> frozenset[str]:
    """Return the names of variables that code mentions; what it calls is a function."""
    nodes = [*ast.walk(tree)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = (node for node in nodes if isinstance(node, ast.Name))
    return frozenset(name.id for name in names if id(name) not in called)


def _assigned(tree: ast.AST) -> Iterator[str]:
    """Yield the public names that statements outside functions and classes assign."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            names = (each for each in ast.walk(node) if isinstance(each, ast.Name))
            stored = (name.id for name in names if isinstance(name.ctx, ast.Store))
            yield from (name for name in stored if name[0] != "_")
        elif not isinstance(node, _SCOPES):
            yield from _assigned(node)


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
        return {name: as_data(value, name) for name, value in after.items()}
    except FieldTypeError as error:
        raise CodeError(f"left a value that is not data: {error}") from None


# The interpreter


def _run(programs: list[str], inputs: dict[str, Any], seed: str) -> Any:
    """Run programs in a session, which nothing outlives; return the result of the last one."""
    limits = {
        "max_memory": MAX_MEMORY,
        "max_feed_duration_secs": MAX_SECONDS,
        "max_recursion_depth": MAX_DEPTH,
        "max_total_sleep_secs": 0,
    }
    # the same at every replay
    policy = {"datetime": datetime(1970, 1, 1, tzinfo=UTC), "random_start": {"seed": seed}}
    process, pool = _pool()
    if process != os.getpid():
        # monty's threads are not in the fork, which would wait for them without end
        raise CodeError("this process was forked from one that has run code: start it by spawn")
    program = result = None
    try:
        with pool.checkout(script_name="code", limits=limits, os_policy=policy) as session:
            for program in programs:
                # what a step prints is dropped: it can print without end
                result = session.feed_run(program, inputs=inputs, print_callback=lambda *_: None)
                inputs = {}
            return result
    except require_monty().MontyError as error:
        # the last program is a condition, or writes out what the code has left
        failure = _failure(error, has_lines=program is not programs[-1])
        # without a traceback, the interpreter is gone, or refuses an input
        failure.is_final = not hasattr(error, "traceback") or isinstance(error.exception(), _LIMITS)
        raise failure from None


@cache
def _pool() -> tuple[int, Any]:
    """Return the number of the process that first ran code, and its interpreters."""
    monty, seconds = require_monty(), 2 * MAX_SECONDS
    pool = monty.Monty(min_processes=0, max_processes=2, request_timeout=seconds)
    atexit.register(_close)
    return os.getpid(), pool.__enter__()


def _close() -> None:
    process, pool = _pool()
    if process == os.getpid():
        pool.__exit__(None, None, None)


def _failure(error: Any, *, has_lines: bool) -> CodeError:
    if not hasattr(error, "traceback"):  # the interpreter is gone, or refuses an input
        return CodeError(str(error).partition("\n")[0][:300])

    problem = " ".join(error.display("type-msg").split())[:300]
    if isinstance(error.exception(), TimeoutError):
        # monty reports the nanoseconds that it took, which no replay repeats
        return CodeError(f"TimeoutError: takes more than {MAX_SECONDS:g} s")
    frames = error.traceback()
    line = frames[-1].line if frames and has_lines else None
    return CodeError(problem, line)


def require_monty() -> Any:
    """Return pydantic-monty.

    Raises:
        MissingExtraError: If it is not installed: nothing runs outside a sandbox.
    """
    return import_extra("pydantic_monty", "programs")
