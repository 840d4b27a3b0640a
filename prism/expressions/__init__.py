"""Untrusted expressions, parsed once and evaluated within bounds.

Conditions of workflows and of SCXML documents are such expressions.
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
