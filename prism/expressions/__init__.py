"""Expressions that somebody else wrote, read once and evaluated within bounds.

The conditions of workflows are such expressions, and those of statecharts in SCXML.
"""

from prism.expressions._budget import Budget, ExpressionError
from prism.expressions._dialects import Dialect
from prism.expressions._expression import Expression, MalformedError, UnknownNameError

__all__ = [
    "Budget",
    "Dialect",
    "Expression",
    "ExpressionError",
    "MalformedError",
    "UnknownNameError",
]
