"""The features of one kind of document's expressions beyond those of workflows.

All are translated to Python's form first: ECMAScript by its operators and words, ``_event.data`` as
a look-up of a key, and ``In('s')`` as a look-up in a variable ``In``. So they share one check and
one evaluator.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from prism.expressions._budget import ExpressionError
from prism.expressions._operators import Join, JoinAsText

_TOKENS = re.compile(
    r"""\s*(?:
        (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<word>[A-Za-z_$][\w$]*)
      | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
      | (?P<sign>===|!==|==|!=|<=|>=|=>|&&|\|\||[-+*/%<>!()\[\]{}.,:?])
    )""",
    re.VERBOSE,
)
_SIGNS = {"===": "==", "!==": "!=", "&&": " and ", "||": " or "}
_WORDS = {"true": "True", "false": "False", "null": "None", "undefined": "None"}
_REFUSED = frozenset(
    {"and", "or", "not", "is", "in", "if", "else", "lambda", "for", "None", "True", "False"}
    | {"await", "typeof", "instanceof", "new", "function", "delete", "void", "var", "let", "const"}
)
_OPENING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """The features of one kind of document's expressions beyond those of workflows.

    Args:
        look_ups: Functions of one argument, such as ``In``. Each evaluation has them among its
            variables, as a mapping from arguments to results.
        dotted: Variables whose keys may follow a dot, as in ``_event.data``; None for all.
        is_ecmascript: Whether expressions are written in ECMAScript, limited to what Python also
            has: ``===``, ``!==``, ``&&``, ``||``, ``!``, ``true``, ``null``, ``undefined``.
    """

    look_ups: frozenset[str] = frozenset()
    dotted: frozenset[str] | None = frozenset()
    is_ecmascript: bool = False

    def to_python(self, source: str) -> str:
        """Return an expression in Python's syntax.

        Raises:
            ExpressionError: If it has something that means something else in Python.
            SyntaxError: If it is not an expression.
        """
        return "".join(_translated(_tokens(source))) if self.is_ecmascript else source

    def read(self, tree: ast.expr) -> ast.expr:
        """Return a tree in the form for checking and evaluating."""
        if self == PYTHON:
            return tree
        found: ast.expr = _Reader(self).visit(tree)
        return found


PYTHON = Dialect()


class _Reader(ast.NodeTransformer):
    """Translates a dialect into the form that all expressions share."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Look up a key that follows a dot."""
        root: ast.expr = node
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            root = root.value
        dotted = self._dialect.dotted
        value = self.visit(node.value)
        if self._dialect.is_ecmascript and node.attr == "length":
            return ast.Call(ast.Name("len"), [value], [])
        if isinstance(root, ast.Name) and (dotted is None or root.id in dotted):
            key = ast.Constant(node.attr)
            if self._dialect.is_ecmascript:
                # what is not there is undefined
                return ast.Call(ast.Attribute(value, "get"), [key], [])
            return ast.Subscript(value, key)

        return ast.Attribute(value, node.attr)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Look up the result of a function of the document."""
        function = node.func
        if isinstance(function, ast.Attribute):
            # a method is no key
            function = ast.Attribute(self.visit(function.value), function.attr)
        if isinstance(function, ast.Name) and function.id in self._dialect.look_ups:
            if len(node.args) != 1 or node.keywords:
                raise ExpressionError(f"calls {function.id}() without one argument")
            return ast.Subscript(function, self.visit(node.args[0]))

        keywords = [ast.keyword(each.arg, self.visit(each.value)) for each in node.keywords]
        return ast.Call(function, [self.visit(each) for each in node.args], keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Join lists, or texts and numbers."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Add):
            node.op = JoinAsText() if self._dialect.is_ecmascript else Join()
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Refuse a chain of comparisons, which means something else in ECMAScript."""
        if self._dialect.is_ecmascript and len(node.ops) > 1:
            raise ExpressionError("compares in a chain: write each comparison with &&")
        return self.generic_visit(node)  # type: ignore[return-value]


# ECMAScript


def _tokens(source: str) -> list[tuple[str, str]]:
    found, place, source = [], 0, source.strip()
    while place < len(source):
        match = _TOKENS.match(source, place)
        if match is None:
            raise SyntaxError(f"unexpected {source[place:].strip()[:1]!r}")
        kind = match.lastgroup or ""
        if match[kind] in _REFUSED or match[kind] in {"?", "=>"}:
            raise ExpressionError(f"uses {match[kind]!r}, which expressions do not have")
        found.append((kind, match[kind]))
        place = match.end()

    return found


def _translated(tokens: list[tuple[str, str]]) -> Iterator[str]:
    """Yield Python's words, with the operand of each ``!`` in parentheses."""
    closing: dict[int, int] = {}
    for place, (kind, text) in enumerate(tokens):
        following = tokens[place + 1][1] if place + 1 < len(tokens) else ""
        if (kind, text) == ("sign", "!"):
            end = _end_of_operand(tokens, place + 1)
            closing[end] = closing.get(end, 0) + 1
            yield "(not "
        elif kind == "word":
            yield _word(text, tokens[place - 1] if place else ("", ""), following)
        else:
            yield _SIGNS.get(text, text) if kind == "sign" else text
        yield ")" * closing.get(place, 0)
        # two words beside each other are no expression in Python either
        yield " " if kind != "sign" and following not in {".", "(", "["} else ""


def _word(text: str, before: tuple[str, str], following: str) -> str:
    if following == ":":  # the key of an object
        return repr(text)

    return text if before == ("sign", ".") else _WORDS.get(text, text)


def _end_of_operand(tokens: list[tuple[str, str]], place: int) -> int:
    """Return the place of the last token of an operand."""
    while place < len(tokens) and tokens[place] in {("sign", "!"), ("sign", "-"), ("sign", "+")}:
        place += 1
    place = _end_of_group(tokens, place)
    while place + 1 < len(tokens) and tokens[place + 1][0] == "sign":
        following = tokens[place + 1][1]
        if following == ".":
            place += 2
        elif following in {"(", "["}:
            place = _end_of_group(tokens, place + 1)
        else:
            break

    return min(place, len(tokens) - 1)


def _end_of_group(tokens: list[tuple[str, str]], place: int) -> int:
    """Return the place of the bracket that closes another; the place itself if there is none."""
    depth = 0
    for end in range(place, len(tokens)):
        kind, text = tokens[end]
        if kind == "sign" and text in _OPENING:
            depth += 1
        elif kind == "sign" and text in _OPENING.values():
            depth -= 1
        if depth <= 0:
            return end

    return len(tokens) - 1
