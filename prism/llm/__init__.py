"""Language models: the only room that knows Ollama."""

from prism.llm.addresses import DEFAULT_HOST
from prism.llm.cache import AnswerCache
from prism.llm.doctor import Check, diagnose
from prism.llm.host import ChatReply, DecisionReply
from prism.llm.pool import OllamaChatClient, OllamaPool

__all__ = [
    "DEFAULT_HOST",
    "AnswerCache",
    "ChatReply",
    "Check",
    "DecisionReply",
    "OllamaChatClient",
    "OllamaPool",
    "diagnose",
]
