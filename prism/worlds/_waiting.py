"""What steps wait for: decisions, texts and messages."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from prism.statechart import TextCall, Written


class Waits:
    """What a step waits for: the step yields it, and is sent the answer."""

    __slots__ = ("agent", "answer")

    agent: Any
    answer: Any

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for the answer."""
        return (yield self)


class Asked(Waits):
    """A decision. It is carried out at once if nothing is left to decide.

    It has the form of a question, for a policy.
    """

    __slots__ = ("context", "options", "prompt", "reason", "since", "state", "trigger", "weights")

    options: tuple[Any, ...]
    state: Any
    since: Any

    def __init__(
        self,
        agent: Any,
        trigger: str,
        context: Any,
        weights: Mapping[Any, float] | None,
        prompt: str | None,
    ) -> None:
        self.agent, self.trigger, self.context = agent, trigger, context
        self.weights, self.prompt = weights, prompt
        self.reason: str | None = None
        agent.world.turns.unawaited = self

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for the decision."""
        self.agent.world.turns.unawaited = None
        settled = self.agent.world.turns.settle(self)
        return (yield self) if settled is self else settled


class Writing(Waits):
    """A text that an agent is to write."""

    __slots__ = ("call",)

    def __init__(self, agent: Any, call: TextCall) -> None:
        self.agent, self.call = agent, call
        self.answer: Written

    async def value(self) -> Any:
        """Return the text, or the data."""
        written: Written = await self
        return written.value


class Receiving(Waits):
    """A wait for a message."""

    __slots__ = ()

    def __init__(self, agent: Any) -> None:
        self.agent = agent

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for the oldest message."""
        if not self.agent.inbox:
            yield self
        return self.agent.inbox.popleft() if self.agent.inbox else None
