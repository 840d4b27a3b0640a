"""Reasoners: an ambiguous event, decided by a policy or by a language model.

The contract is the specification's reasoner contract. A `Writer` lets a model write a text, or JSON
of a schema, with the same client, retries and budget.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.reasoner._policy import PolicyReasoner
    from prism.reasoner.prompts import STATE_DESCRIPTIONS, build_reasoner_prompt, format_context
    from prism.reasoner.questions import BaseReasoner, Decision, Question, Router
    from prism.reasoner.reasoner import Reasoner
    from prism.reasoner.replies import parse_reasoner_response
    from prism.reasoner.requests import Budget, Cost
    from prism.reasoner.texts import BaseWriter, TextCall, Writer, Written
    from prism.reasoner.wording import Wording
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "STATE_DESCRIPTIONS",
    "BaseReasoner",
    "BaseWriter",
    "Budget",
    "Cost",
    "Decision",
    "PolicyReasoner",
    "Question",
    "Reasoner",
    "Router",
    "TextCall",
    "Wording",
    "Writer",
    "Written",
    "build_reasoner_prompt",
    "format_context",
    "parse_reasoner_response",
]
