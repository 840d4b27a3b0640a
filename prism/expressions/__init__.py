"""Expressions that somebody else wrote, read once and evaluated within bounds.

The conditions of workflows are such expressions.
"""

from prism.expressions._budget import Budget, ExpressionError
from prism.expressions._expression import Expression, UnknownNameError

__all__ = ["Budget", "Expression", "ExpressionError", "UnknownNameError"]
