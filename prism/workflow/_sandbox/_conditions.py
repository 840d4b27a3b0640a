"""Conditions: expressions over the context's variables, evaluated by simpleeval, set up strictly.

Of Python's expressions it knows constants, names, comparisons, ``and``, ``or``, ``not``, ``in``,
arithmetic, conditional expressions, subscripts, lists, tuples and dicts, nine functions, and those
methods of dicts and texts that only look. There is no way to anything else: no attributes, no
f-strings, no comprehensions, no shifts, and no repetition or formatting of texts, which could ask
for any amount of memory.
"""

from __future__ import annotations

import ast
import operator
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import NoneType
from typing import Any

from prism.errors import MissingExtraError

MAX_CHARACTERS = 1000
MAX_DEPTH = 100
MAX_BITS = 1024
"""The largest whole number that arithmetic may give, in bits."""

_MAX_DIGITS = 308
"""The most digits that `round` is asked for: as many as a float can have."""

_METHODS: Mapping[type, frozenset[str]] = {
    dict: frozenset({"get", "items", "keys", "values"}),
    str: frozenset({"endswith", "lower", "startswith", "strip", "upper"}),
}


class ConditionError(ValueError):
    """A condition cannot be read, or cannot be evaluated with the variables that there are."""


class UnknownNameError(ConditionError):
    """A condition names a variable that the context does not have.

    Args:
        name: The variable.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is no variable {name!r}")


class Condition:
    """An expression that was read once and can be evaluated any number of times.

    Args:
        source: The expression, at most 1,000 characters.

    Raises:
        ConditionError: If it is not an expression, or uses what conditions do not have.
        MissingExtraError: If simpleeval is not installed.
    """

    __slots__ = ("_tree", "names", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._tree = _parsed(source)
        self.names = frozenset(
            node.id
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Name) and node.id not in _FUNCTIONS
        )

    def evaluate(self, variables: Mapping[str, Any]) -> bool:
        """Return whether the condition holds; any truthy value does.

        Args:
            variables: The context's variables, plain data as JSON has it.

        Raises:
            UnknownNameError: If a variable is missing that has to be looked up.
            ConditionError: If the expression fails.
        """
        return bool(self.value(variables))

    def value(self, variables: Mapping[str, Any]) -> Any:
        """Return what the expression gives.

        Args:
            variables: The context's variables, plain data as JSON has it.

        Raises:
            UnknownNameError: If a variable is missing that has to be looked up.
            ConditionError: If the expression fails.
        """
        evaluator = _evaluator()
        evaluator.names = variables
        try:
            return evaluator.eval(self.source, previously_parsed=self._tree)
        except _simpleeval().NameNotDefined as error:
            raise UnknownNameError(error.name) from None
        except Exception as error:  # whatever an expression of others can raise
            raise ConditionError(f"{type(error).__name__}: {_first_line(error)}") from None
        finally:
            evaluator.names = {}


def _parsed(source: str) -> ast.expr:
    if len(source) > MAX_CHARACTERS:
        raise ConditionError(f"has more than {MAX_CHARACTERS:,} characters")

    _simpleeval()  # told when a workflow is loaded, not at its first turn
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        problem = error.msg if isinstance(error, SyntaxError) else _first_line(error)
        raise ConditionError(f"is not an expression: {problem}") from None
    except (RecursionError, MemoryError):
        raise ConditionError("is nested too deeply") from None

    _require_shallow(tree)
    _refuse_unknown(tree)

    return tree


def _require_shallow(tree: ast.AST) -> None:
    # the evaluator calls itself once a level, and the host's stack may be nearly used up
    level, nodes = 0, [tree]
    while nodes:
        level += 1
        if level > MAX_DEPTH:
            raise ConditionError(f"is nested more than {MAX_DEPTH} deep")
        nodes = [child for node in nodes for child in ast.iter_child_nodes(node)]


def _refuse_unknown(tree: ast.AST) -> None:
    """Refuse at once what would fail whenever it is evaluated."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and not isinstance(node.value, _CONSTANTS):
            raise ConditionError(f"holds {node.value!r}, which JSON does not have")
        if type(node) not in _NODES:
            raise ConditionError(f"uses {type(node).__name__}, which conditions do not have")
        if isinstance(node, ast.Attribute) and node.attr not in _ALL_METHODS:
            raise ConditionError(
                f"uses .{node.attr}, which conditions do not have; "
                f"they have {', '.join(sorted(_ALL_METHODS))}"
            )
        if isinstance(node, ast.Call):
            _refuse_unknown_call(node)


def _refuse_unknown_call(node: ast.Call) -> None:
    function = node.func
    if isinstance(function, ast.Name) and function.id not in _FUNCTIONS:
        raise ConditionError(
            f"calls {function.id}(), which conditions do not have; "
            f"they have {', '.join(sorted(_FUNCTIONS))}"
        )
    if not isinstance(function, (ast.Name, ast.Attribute)):
        raise ConditionError("calls something that is not a function's name")


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]


def _evaluator() -> Any:
    """Return the thread's evaluator: it evaluates one condition at a time, and keeps nothing."""
    if not hasattr(_local, "evaluator"):
        _local.evaluator = _make_evaluator()

    return _local.evaluator


def _make_evaluator() -> Any:
    simpleeval = _simpleeval()

    class Evaluator(simpleeval.EvalWithCompoundTypes):  # type: ignore[name-defined,misc]
        """An evaluator whose only attributes are harmless methods, on exactly their types."""

        def _eval_attribute(self, node: ast.Attribute) -> Any:
            owner = self._eval(node.value)
            if node.attr not in _METHODS.get(type(owner), ()):
                raise ConditionError(f"a {type(owner).__name__} has no .{node.attr} here")
            return getattr(owner, node.attr)

    evaluator = Evaluator(operators=_operators(), functions=dict(_FUNCTIONS), names={})
    evaluator.nodes = {kind: handler for kind, handler in evaluator.nodes.items() if kind in _NODES}
    evaluator.nodes[ast.Attribute] = evaluator._eval_attribute

    return evaluator


@lru_cache(maxsize=1)
def _simpleeval() -> Any:
    try:
        import simpleeval  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtraError("workflow", "simpleeval") from error

    return simpleeval


def _operators() -> dict[type, Callable[..., Any]]:
    return {
        ast.Add: _plus,
        ast.Sub: operator.sub,
        ast.Mult: _times,
        ast.Div: operator.truediv,
        ast.FloorDiv: operator.floordiv,
        ast.Mod: _modulo,
        ast.Pow: _power,
        ast.USub: operator.neg,
        ast.UAdd: operator.pos,
        ast.Not: operator.not_,
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.In: lambda item, container: item in container,
        ast.NotIn: lambda item, container: item not in container,
        ast.Is: operator.is_,
        ast.IsNot: operator.is_not,
    }


def _plus(left: Any, right: Any) -> Any:
    if not _are_numbers(left, right) and not (isinstance(left, str) and isinstance(right, str)):
        raise TypeError("+ takes two numbers or two texts")

    return left + right


def _times(left: Any, right: Any) -> Any:
    _require_numbers("*", left, right)
    if isinstance(left, int) and isinstance(right, int):
        _require_small(left.bit_length() + right.bit_length())

    return left * right


def _power(base: Any, exponent: Any) -> Any:
    _require_numbers("**", base, exponent)
    if isinstance(base, int) and isinstance(exponent, int):
        _require_small(base.bit_length() * abs(exponent))

    return base**exponent


def _modulo(left: Any, right: Any) -> Any:
    _require_numbers("%", left, right)  # on texts it formats, to any width

    return left % right


def _rounded(number: Any, digits: Any = None) -> Any:
    if digits is not None and abs(digits) > _MAX_DIGITS:
        raise ValueError(f"round takes at most {_MAX_DIGITS} digits")

    return round(number, digits)


def _whole(value: Any = 0) -> int:
    """Convert a number or a text; the argument `base` is left out."""
    return int(value)


def _require_numbers(sign: str, left: Any, right: Any) -> None:
    if not _are_numbers(left, right):
        raise TypeError(f"{sign} takes two numbers")


def _are_numbers(left: Any, right: Any) -> bool:
    return isinstance(left, (int, float)) and isinstance(right, (int, float))


def _require_small(bits: int) -> None:
    if bits > MAX_BITS:
        raise OverflowError(f"the result could have more than {MAX_BITS:,} bits")


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs,
    "bool": bool,
    "float": float,
    "int": _whole,
    "len": len,
    "max": max,
    "min": min,
    "round": _rounded,
    "str": str,
}

_CONSTANTS = (str, int, float, NoneType)

_local = threading.local()

_ALL_METHODS = frozenset().union(*_METHODS.values())

_NODES: frozenset[type] = frozenset(
    {
        ast.Constant,
        ast.Name,
        ast.Load,
        ast.UnaryOp,
        ast.BinOp,
        ast.BoolOp,
        ast.And,
        ast.Or,
        ast.Compare,
        ast.IfExp,
        ast.Call,
        ast.keyword,
        ast.Attribute,
        ast.Subscript,
        ast.Slice,
        ast.List,
        ast.Tuple,
        ast.Dict,
        *_operators(),
    }
)
