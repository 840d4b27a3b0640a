"""Clients of language models that need no server."""

from typing import Any


class ScriptedClient:
    """A client that gives replies in their order, the last one again and again.

    Args:
        replies: Texts, or exceptions to raise.

    Attributes:
        prompts: What it was asked.
    """

    def __init__(self, *replies: str | BaseException) -> None:
        self.prompts: list[str] = []
        self._replies = replies

    async def run(self, prompt: str) -> str:
        """Reply to a prompt."""
        self.prompts.append(prompt)
        reply = self._replies[min(len(self.prompts), len(self._replies)) - 1]
        if isinstance(reply, BaseException):
            raise reply
        return reply


def choosing(*states: Any) -> list[str]:
    """Return the replies of a model that chooses these states, given as texts or members."""
    return [f'{{"next_state": "{getattr(state, "value", state)}"}}' for state in states]
