"""Clients that take a prompt: agent-framework's clients and agents, and anything like them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prism.statechart.reasoner._bare_ollama import BareOllama, text_reply
from prism.statechart.reasoner._cost import Cost
from prism.statechart.reasoner._duck_typing import has, parameters
from prism.statechart.reasoner._model_client import Reply


class PromptClient(BareOllama):
    """Adapts a client with ``get_response`` or ``run``, or with a ``chat`` that takes a prompt.

    Where the method takes ``messages`` and ``options``, as agent-framework's do, the options hold
    schema and seed. Decision questions are put as to any other client.

    Args:
        client: The client.
        model: Model name, for decision questions.
        seed: Seed of the sampling.
        attempts: Requests for one question while its failures pass, at most.
    """

    def __init__(self, client: Any, model: str | None, seed: int | None, attempts: int = 1) -> None:
        super().__init__(client, model, seed, attempts)
        self._ask = _method_of(client)
        names = set(parameters(self._ask)[0]) if self._ask is not None else set()
        self._takes_options = {"messages", "options"} <= names and not has(client, "chat")

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        format: dict[str, Any] | None,  # noqa: A002 - as Ollama names it
        cost: Cost,
    ) -> Reply:
        """Put the prompt, which is the one message of a conversation.

        Raises:
            BadReplyError: If the reply has no text.
        """
        ask = self._ask
        assert ask is not None
        options: dict[str, Any] = {} if format is None else {"response_format": format}
        if self._seed is not None:
            options["seed"] = self._seed

        (message,) = messages
        more = {"options": options} if self._takes_options else {}
        reply = await self._sent(lambda: ask(message["content"], **more), cost)

        return text_reply(reply, cost)


def _method_of(client: Any) -> Callable[..., Any] | None:
    """Return the method that takes the prompt; None for a client that only decides."""
    for name in ("chat", "get_response", "run"):
        if has(client, name):
            method: Callable[..., Any] = getattr(client, name)
            return method

    return None
