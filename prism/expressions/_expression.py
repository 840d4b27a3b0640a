"""Python expressions over variables, as closures of a few kinds of nodes.

They may have constants, names, comparisons, ``and``, ``or``, ``not``, ``in``, arithmetic,
conditional expressions, subscripts, lists, tuples and dicts, nine functions, and the read-only
methods of dicts and texts. Nothing else is allowed: no attributes, no f-strings, no comprehensions,
no shifts, and no repetition or formatting of texts, which could take any amount of memory.
Functions and methods can only be called: an expression that just names one would always hold.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import Any

from prism.expressions._budget import Budget, ExpressionError
from prism.expressions._operators import BINARY, COMPARISONS, FUNCTIONS, METHODS, UNARY

MAX_CHARACTERS = 1000
MAX_DEPTH = 100

_CONSTANTS = (str, int, float, NoneType)


class UnknownNameError(ExpressionError):
    """An expression names an unknown variable.

    Args:
        name: The variable.
    """

    def __init__(self, name: str) -> None:
        self.name: str = name
        super().__init__(f"there is no variable {name!r}")


class _Run:
    """One evaluation."""

    __slots__ = ("budget", "variables")

    def __init__(self, variables: Mapping[str, Any], budget: Budget) -> None:
        self.variables = variables
        self.budget = budget


_Closure = Callable[[_Run], Any]


class Expression:
    """An expression, parsed once and evaluated any number of times.

    Args:
        source: The expression, at most 1,000 characters.

    Raises:
        ExpressionError: If it is not an expression, or uses something that is not allowed.

    Attributes:
        source: The expression.
        names: The variables that it names.
    """

    __slots__ = ("_closure", "names", "source")

    def __init__(self, source: str) -> None:
        self.source: str = source
        self.names: frozenset[str] = frozenset(_checked(_parsed(source)))
        # made when it is first needed: a file may have thousands
        self._closure: _Closure | None = None

    def holds(self, variables: Mapping[str, Any], budget: Budget | None = None) -> bool:
        """Return whether the expression has a truthy value.

        Args:
            variables: The variables, plain data as JSON has it.
            budget: A budget shared with other evaluations; None for a separate one.

        Raises:
            UnknownNameError: If a variable that is looked up is missing.
            ExpressionError: If the expression fails.
        """
        return bool(self.value(variables, budget))

    def value(self, variables: Mapping[str, Any], budget: Budget | None = None) -> Any:
        """Return the value of the expression.

        Args:
            variables: The variables, plain data as JSON has it.
            budget: A budget shared with other evaluations; None for a separate one.

        Raises:
            UnknownNameError: If a variable that is looked up is missing.
            ExpressionError: If the expression fails.
        """
        if self._closure is None:
            self._closure = _closure(_parsed(self.source))
        try:
            return self._closure(_Run(variables, budget or Budget()))
        except ExpressionError:
            raise
        except Exception as error:  # whatever an expression of others can raise
            raise ExpressionError(f"{type(error).__name__}: {_first_line(error)}") from None

    def __eq__(self, other: object) -> bool:
        """Compare the sources."""
        return isinstance(other, Expression) and self.source == other.source

    def __hash__(self) -> int:
        """Hash the source."""
        return hash(self.source)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by source."""
        return Expression, (self.source,)


# Reading


def _parsed(source: str) -> ast.expr:
    if len(source) > MAX_CHARACTERS:
        raise ExpressionError(f"has more than {MAX_CHARACTERS:,} characters")

    try:
        return ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        problem = error.msg if isinstance(error, SyntaxError) else _first_line(error)
        raise ExpressionError(f"is not an expression: {problem}") from None
    except (RecursionError, MemoryError):
        raise ExpressionError("is nested too deeply") from None


def _checked(tree: ast.expr) -> Iterator[str]:
    """Yield the variables of an expression; refuse at once what would always fail."""
    level, nodes = 0, [tree]
    while nodes:
        level += 1
        # a closure calls those inside it, and the host's stack may be nearly used up
        if level > MAX_DEPTH:
            raise ExpressionError(f"is nested more than {MAX_DEPTH} levels deep")

        inside: list[ast.expr] = []
        for node in nodes:
            if type(node) is ast.Name:
                yield node.id
            elif type(node) is not ast.Constant or not isinstance(node.value, _CONSTANTS):
                inside += _parts(node)
        nodes = inside


def _parts(node: ast.expr) -> list[ast.expr]:
    """Return the parts of a node that are expressions themselves."""
    if isinstance(node, ast.Constant):
        raise ExpressionError(f"holds {node.value!r}, which JSON does not have")
    if isinstance(node, ast.Attribute):
        _require_method(node.attr)
        raise ExpressionError(f"names .{node.attr} without calling it: write .{node.attr}(...)")

    parts = _PARTS.get(type(node))
    sign = type(getattr(node, "op", None))
    if parts is None or sign not in _SIGNS:
        named = (sign if parts else type(node)).__name__
        raise ExpressionError(f"uses {named}, which expressions do not have")

    return parts(node)


def _parts_of_dict(node: ast.Dict) -> list[ast.expr]:
    keys = [key for key in node.keys if key is not None]
    if len(keys) < len(node.keys):
        raise ExpressionError("uses **, which dicts in expressions do not have")

    return keys + node.values


def _parts_of_subscript(node: ast.Subscript) -> list[ast.expr]:
    place = node.slice
    bounds = (place.lower, place.upper, place.step) if isinstance(place, ast.Slice) else (place,)
    return [node.value, *(each for each in bounds if each is not None)]


def _parts_of_call(node: ast.Call) -> list[ast.expr]:
    return [*_owner(node.func), *node.args, *map(_value_of, node.keywords)]


_PARTS: Mapping[type[ast.expr], Callable[[Any], list[ast.expr]]] = {
    ast.BinOp: lambda node: [node.left, node.right],
    ast.BoolOp: lambda node: node.values,
    ast.Call: _parts_of_call,
    ast.Compare: lambda node: [node.left, *node.comparators],
    ast.Dict: _parts_of_dict,
    ast.IfExp: lambda node: [node.test, node.body, node.orelse],
    ast.List: lambda node: node.elts,
    ast.Subscript: _parts_of_subscript,
    ast.Tuple: lambda node: node.elts,
    ast.UnaryOp: lambda node: [node.operand],
}
_SIGNS = frozenset({*BINARY, *UNARY, ast.And, ast.Or, NoneType})


def _owner(function: ast.expr) -> list[ast.expr]:
    """Return the object of a called method, if it is a method."""
    match function:
        case ast.Name(id=name):
            if name not in FUNCTIONS:
                raise ExpressionError(
                    f"calls {name}(), which expressions do not have; "
                    f"they have {', '.join(sorted(FUNCTIONS))}"
                )
            return []
        case ast.Attribute(value=owner, attr=name):
            _require_method(name)
            return [owner]

    raise ExpressionError("calls something other than a named function")


def _require_method(name: str) -> None:
    if name not in METHODS:
        raise ExpressionError(
            f"uses .{name}, which expressions do not have; they have {', '.join(sorted(METHODS))}"
        )


def _value_of(keyword: ast.keyword) -> ast.expr:
    if keyword.arg is None:
        raise ExpressionError("uses **, which calls in expressions do not have")

    return keyword.value


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0][:200]


# Closures


def _closure(node: ast.expr) -> _Closure:
    """Return a function that evaluates a checked node."""
    return _CLOSURES[type(node)](node)


def _constant(node: ast.Constant) -> _Closure:
    value = node.value
    return lambda _run: value


def _variable(node: ast.Name) -> _Closure:
    name = node.id

    def look_up(run: _Run) -> Any:
        try:
            return run.variables[name]
        except KeyError:
            raise UnknownNameError(name) from None

    return look_up


def _bool_op(node: ast.BoolOp) -> _Closure:
    *firsts, last = map(_closure, node.values)
    stops_at = isinstance(node.op, ast.Or)

    def evaluate(run: _Run) -> Any:
        for part in firsts:
            value = part(run)
            if bool(value) is stops_at:
                return value

        return last(run)

    return evaluate


def _binary(function: Callable[..., Any], left: ast.expr, right: ast.expr) -> _Closure:
    one, other = _closure(left), _closure(right)
    return lambda run: function(run.budget, one(run), other(run))


def _unary(node: ast.UnaryOp) -> _Closure:
    function, of = UNARY[type(node.op)], _closure(node.operand)
    return lambda run: function(of(run))


def _choice(node: ast.IfExp) -> _Closure:
    holds, then, otherwise = _closure(node.test), _closure(node.body), _closure(node.orelse)
    return lambda run: then(run) if holds(run) else otherwise(run)


def _comparison(node: ast.Compare) -> _Closure:
    operators = [COMPARISONS[type(op)] for op in node.ops]
    if len(operators) == 1:
        return _binary(operators[0], node.left, node.comparators[0])

    first, others = _closure(node.left), [_closure(each) for each in node.comparators]

    def compare(run: _Run) -> Any:
        left, holds = first(run), True
        for function, other in zip(operators, others, strict=True):
            right = other(run)
            holds = function(run.budget, left, right)
            if not holds:
                break
            left = right

        return holds

    return compare


def _subscript(node: ast.Subscript) -> _Closure:
    value, place = _closure(node.value), node.slice
    if not isinstance(place, ast.Slice):
        at = _closure(place)
        return lambda run: value(run)[at(run)]

    def of(bound: ast.expr | None) -> _Closure:
        return (lambda _run: None) if bound is None else _closure(bound)

    lower, upper, step = of(place.lower), of(place.upper), of(place.step)

    def cut(run: _Run) -> Any:
        whole = value(run)
        return run.budget.make(whole[lower(run) : upper(run) : step(run)])

    return cut


def _call(node: ast.Call) -> _Closure:
    args = [_closure(each) for each in node.args]
    more = {str(each.arg): _closure(each.value) for each in node.keywords}

    def called(run: _Run, function: Callable[..., Any], *owner: Any) -> Any:
        given = {name: each(run) for name, each in more.items()}
        return function(run.budget, *owner, *(each(run) for each in args), **given)

    if isinstance(node.func, ast.Name):
        function = FUNCTIONS[node.func.id]
        return lambda run: called(run, function)

    assert isinstance(node.func, ast.Attribute)
    owner, name = _closure(node.func.value), node.func.attr
    kind, method = METHODS[name]

    def call(run: _Run) -> Any:
        of = owner(run)
        # not of a class of its own, whose methods are the host's code
        if type(of) is not kind:
            raise ExpressionError(f"a {type(of).__name__} has no .{name} here")
        return called(run, method, of)

    return call


def _dict(node: ast.Dict) -> _Closure:
    keys = [_closure(key) for key in node.keys if key is not None]
    values = [_closure(each) for each in node.values]
    return lambda run: {key(run): of(run) for key, of in zip(keys, values, strict=True)}


def _items(node: ast.List | ast.Tuple) -> _Closure:
    items = [_closure(each) for each in node.elts]
    if isinstance(node, ast.List):
        return lambda run: [each(run) for each in items]
    return lambda run: tuple(each(run) for each in items)


_CLOSURES: Mapping[type[ast.expr], Callable[[Any], _Closure]] = {
    ast.BinOp: lambda node: _binary(BINARY[type(node.op)], node.left, node.right),
    ast.BoolOp: _bool_op,
    ast.Call: _call,
    ast.Compare: _comparison,
    ast.Constant: _constant,
    ast.Dict: _dict,
    ast.IfExp: _choice,
    ast.List: _items,
    ast.Name: _variable,
    ast.Subscript: _subscript,
    ast.Tuple: _items,
    ast.UnaryOp: _unary,
}
