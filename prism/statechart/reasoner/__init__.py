"""Reasoners: an ambiguous event, decided by a policy or by a language model.

The contract is the specification's reasoner contract. A `Writer` lets a model write a text, or JSON
of a schema, with the same client, retries and budget.
"""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.statechart.reasoner._model_client import ModelClient
    from prism.statechart.reasoner._policy import PolicyReasoner
    from prism.statechart.reasoner._prompts import (
        STATE_DESCRIPTIONS,
        build_reasoner_prompt,
        format_context,
    )
    from prism.statechart.reasoner._questions import BaseReasoner, Decision, Question
    from prism.statechart.reasoner._reasoner import Reasoner
    from prism.statechart.reasoner._recollection import Recollection
    from prism.statechart.reasoner._recording import AnswerStore, PromptRecord
    from prism.statechart.reasoner._replies._reading import parse_reasoner_response
    from prism.statechart.reasoner._router import EarlierAnswers, Router
    from prism.statechart.reasoner._spending import Budget, Cost
    from prism.statechart.reasoner._texts import BaseWriter, TextCall, Written
    from prism.statechart.reasoner._wording import Wording
    from prism.statechart.reasoner._writer import Writer
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "STATE_DESCRIPTIONS",
    "AnswerStore",
    "BaseReasoner",
    "BaseWriter",
    "Budget",
    "Cost",
    "Decision",
    "EarlierAnswers",
    "ModelClient",
    "PolicyReasoner",
    "PromptRecord",
    "Question",
    "Reasoner",
    "Recollection",
    "Router",
    "TextCall",
    "Wording",
    "Writer",
    "Written",
    "build_reasoner_prompt",
    "format_context",
    "parse_reasoner_response",
]
