"""Language models: the only room that knows how their servers are spoken to."""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.llm._addresses import DEFAULT_HOST
    from prism.llm._answer_cache import AnswerCache
    from prism.llm._doctor import Check, diagnose
    from prism.llm._host import ChatReply, DecisionReply
    from prism.llm._pool import ModelPool, OllamaChatClient, OllamaPool, OpenAIPool
    from prism.llm._slots import Slots
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DEFAULT_HOST",
    "AnswerCache",
    "ChatReply",
    "Check",
    "DecisionReply",
    "ModelPool",
    "OllamaChatClient",
    "OllamaPool",
    "OpenAIPool",
    "Slots",
    "diagnose",
]
