"""Language models: the only room that knows how their servers are spoken to."""

from prism.llm._addresses import DEFAULT_HOST
from prism.llm._answer_cache import AnswerCache
from prism.llm._doctor import Check, diagnose
from prism.llm._host import ChatReply, DecisionReply
from prism.llm._model_pool import ModelPool
from prism.llm._pool import OllamaChatClient, OllamaPool, OpenAIPool
from prism.llm._slots import Slots

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
