"""What a guard or an action must be: a plain function of agent and context."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

_IS_ASYNC = "is async, but runs without an event loop: use 'def'"
_IS_GENERATOR = "is a generator, whose body does not run when it is called: leave out 'yield'"


def callable_problems(kind: str, value: object) -> list[str]:
    """Return what keeps a value from being a guard or an action; None is fine.

    Args:
        kind: ``guard`` or ``action``.
        value: What was given.
    """
    if value is None:
        return []
    if not callable(value):
        return [f"{kind} must be callable as {kind}(agent, context), got {value!r}"]

    problem = _kind_problem(value) or _arity_problem(kind, value)

    return [f"{kind} {_name_of(value)} {problem}"] if problem else []


def _kind_problem(value: Any) -> str | None:
    while isinstance(value, partial):
        value = value.func

    # an instance is called by the code of its class
    for called in (value, type(value).__call__):
        if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
            return _IS_ASYNC
        if inspect.isgeneratorfunction(called):
            return _IS_GENERATOR

    return None


def _arity_problem(kind: str, value: Any) -> str | None:
    try:
        # a decorator is called itself, whatever it wraps
        signature = inspect.signature(value, follow_wrapped=False)
    except (TypeError, ValueError):
        # some callables of C code do not tell
        return None

    try:
        signature.bind("agent", "context")
    except TypeError:
        return f"must take two arguments, {kind}(agent, context), but is {_call_of(signature)}"

    return None


def _call_of(signature: inspect.Signature) -> str:
    return f"called as {signature.replace(return_annotation=inspect.Signature.empty)}"


def _name_of(value: object) -> str:
    return repr(getattr(value, "__name__", value))
