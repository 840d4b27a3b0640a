"""Untrusted expressions, parsed once and evaluated within bounds: the conditions of workflows."""

from prism.expressions._budget import Budget, ExpressionError
from prism.expressions._expression import Expression, UnknownNameError

__all__ = [
    "Budget",
    "Expression",
    "ExpressionError",
    "UnknownNameError",
]
