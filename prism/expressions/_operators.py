"""The operators, functions and methods of expressions, which pay for what they do."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from prism.expressions._budget import Budget, ExpressionError

MAX_BITS = 1024
"""The largest whole number that arithmetic may give, in bits."""

_MAX_STRIPPED = 100
"""The most characters that `strip` may be told to drop: it looks for each in all of them."""

_MAX_DIGITS = 308
"""The most digits that `round` is asked for: as many as a float can have."""

Operator = Callable[[Budget, Any, Any], Any]


def _require_numbers(sign: str, *values: Any) -> None:
    if not all(isinstance(value, (int, float)) for value in values):
        raise TypeError(f"{sign} takes numbers")


def _require_small(bits: int) -> None:
    if bits > MAX_BITS:
        raise OverflowError(f"the result could have more than {MAX_BITS:,} bits")


def _plus(budget: Budget, left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        budget.spend(len(left) + len(right))
    else:
        _require_numbers("+", left, right)

    return left + right


def _of_numbers(sign: str, function: Callable[[Any, Any], Any]) -> Operator:
    def calculate(_budget: Budget, left: Any, right: Any) -> Any:
        _require_numbers(sign, left, right)  # on texts some of them repeat, or format to any width
        return function(left, right)

    return calculate


def _times(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        _require_small(left.bit_length() + right.bit_length())

    return left * right


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        _require_small(base.bit_length() * abs(exponent))

    found = base**exponent
    if isinstance(found, complex):
        raise ValueError(
            "a negative number is raised to a fraction: take abs() of it, or a whole exponent"
        )
    return found


BINARY: Mapping[type[ast.AST], Operator] = MappingProxyType(
    {
        ast.Add: _plus,
        ast.Sub: _of_numbers("-", operator.sub),
        ast.Mult: _of_numbers("*", _times),
        ast.Div: _of_numbers("/", operator.truediv),
        ast.FloorDiv: _of_numbers("//", operator.floordiv),
        ast.Mod: _of_numbers("%", operator.mod),
        ast.Pow: _of_numbers("**", _power),
    }
)
UNARY: Mapping[type[ast.AST], Callable[[Any], Any]] = MappingProxyType(
    {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_}
)


def _compared(function: Callable[[Any, Any], Any]) -> Operator:
    def compare(budget: Budget, left: Any, right: Any) -> Any:
        # what differs in kind or length is told apart at once, unless its order is asked for
        is_long = isinstance(left, (str, list, tuple, dict)) and type(left) is type(right)
        if is_long and (len(left) == len(right) or function not in _EQUALITIES):
            budget.look_through(left, right)

        return function(left, right)

    return compare


_EQUALITIES = (operator.eq, operator.ne)


def _is_in(budget: Budget, item: Any, container: Any) -> bool:
    budget.look_through(item)
    # a dict finds its key without looking through the others
    if not isinstance(container, dict):
        budget.look_through(container)

    return item in container


COMPARISONS: Mapping[type[ast.AST], Operator] = MappingProxyType(
    {
        ast.Eq: _compared(operator.eq),
        ast.NotEq: _compared(operator.ne),
        ast.Lt: _compared(operator.lt),
        ast.LtE: _compared(operator.le),
        ast.Gt: _compared(operator.gt),
        ast.GtE: _compared(operator.ge),
        ast.In: _is_in,
        ast.NotIn: lambda budget, item, container: not _is_in(budget, item, container),
        ast.Is: lambda _budget, left, right: left is right,
        ast.IsNot: lambda _budget, left, right: left is not right,
    }
)


def _looking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that pays for looking through its arguments."""

    def call(budget: Budget, *values: Any, **more: Any) -> Any:
        budget.look_through(*values, *more.values())
        return function(*values, **more)

    return call


def _free(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _budget, *values: function(*values)


def _rounded(number: Any, ndigits: Any = None) -> Any:
    if ndigits is not None and abs(ndigits) > _MAX_DIGITS:
        raise ValueError(f"round takes at most {_MAX_DIGITS} digits")

    return round(number, ndigits)


def _text(value: Any = "") -> str:
    """Convert anything to a text; the arguments of bytes are left out."""
    return str(value)


def _whole(value: Any = 0) -> int:
    """Convert a number or a text; the argument `base` is left out."""
    return int(value)


FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "abs": _free(abs),
        "bool": _free(bool),
        "float": _looking(float),
        "int": _looking(_whole),
        "len": _free(len),
        "max": _looking(max),
        "min": _looking(min),
        "round": lambda _budget, *values, **more: _rounded(*values, **more),
        "str": _looking(_text),
    }
)


def _listed(look: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a method that lists what a dict holds."""
    return lambda budget, owner: budget.make(list(look(owner)))


def _got(budget: Budget, owner: Any, key: Any, default: Any = None) -> Any:
    budget.look_through(key)
    return owner.get(key, default)


def _stripped(text: str, signs: str | None = None) -> str:
    if signs is not None and len(signs) > _MAX_STRIPPED:
        raise ExpressionError(f"strip removes at most {_MAX_STRIPPED} different characters")

    return text.strip(signs)


METHODS: Mapping[str, tuple[type, Callable[..., Any]]] = MappingProxyType(
    {
        "get": (dict, _got),
        "items": (dict, _listed(dict.items)),
        "keys": (dict, _listed(dict.keys)),
        "values": (dict, _listed(dict.values)),
        "endswith": (str, _looking(str.endswith)),
        "lower": (str, _looking(str.lower)),
        "startswith": (str, _looking(str.startswith)),
        "strip": (str, _looking(_stripped)),
        "upper": (str, _looking(str.upper)),
    }
)
"""Methods that only look, each with the one type that has it."""
