"""Language models and the protocols of their servers."""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.llm._doctor import Check
    from prism.llm.model import Model
    from prism.llm.pool import OllamaChatClient
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Check", "Model", "OllamaChatClient"]
