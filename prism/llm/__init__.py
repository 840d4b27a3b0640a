"""Language models: the only room that knows Ollama."""

from prism.llm.client import OllamaChatClient

__all__ = ["OllamaChatClient"]
