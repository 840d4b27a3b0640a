"""What a step waits for: a decision, a text, or a message."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, Self

from prism.errors import SimulationError
from prism.statechart import TextCall, Written


class Asked:
    """A decision of an agent: carried out at once, or a question to wait for.

    Args:
        agent: Who decides.
        trigger: The event.
        context: What it is about.
        weights: How likely each target is.
        prompt: What to tell a model.
    """

    __slots__ = ("agent", "context", "prompt", "question", "since", "trigger", "weights")

    def __init__(
        self,
        agent: Any,
        trigger: str,
        context: Any,
        weights: Mapping[Any, float] | None,
        prompt: str | None,
    ) -> None:
        self.agent = agent
        self.trigger = trigger
        self.context = context
        self.weights = weights
        self.prompt = prompt
        self.question: Any = None
        self.since: Any = None
        _begin_waiting(self, "decide", ", where it can wait for its answer; here, use fire")

    def __await__(self) -> Generator[Any, Any, Any]:
        """Carry out what leaves nothing to decide, else hand the question to the run."""
        host = self.agent._host
        host.unawaited = None
        settled = host.settle(self)

        return (yield self) if settled is self else settled


class Writing:
    """A text that an agent is to write; awaiting it gives what was `Written`.

    Args:
        agent: Who writes.
        call: What is asked of the run's writer.
    """

    __slots__ = ("_only_value", "agent", "call")

    def __init__(self, agent: Any, call: TextCall) -> None:
        self.agent = agent
        self.call = call
        self._only_value = False
        _begin_waiting(self, "write", ", where it can wait for the text")

    def value(self) -> Self:
        """Have awaiting it give what the text says, alone."""
        self._only_value = True
        return self

    def __await__(self) -> Generator[Any, Any, Any]:
        """Hand the call to the run."""
        self.agent._host.unawaited = None
        written: Written = yield self

        return written.value if self._only_value else written


class Receiving:
    """An agent's wait for a message.

    Args:
        agent: Who waits.
    """

    __slots__ = ("agent",)

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        _begin_waiting(self, "receive", "; here, look into inbox")

    def __await__(self) -> Generator[Any, Any, Any]:
        """Return the oldest message, else hand the wait to the run."""
        self.agent._host.unawaited = None
        if not self.agent.inbox:
            yield self

        return self.agent.inbox.popleft() if self.agent.inbox else None


def _begin_waiting(waiting: Asked | Writing | Receiving, doing: str, instead: str) -> None:
    """Note that somebody waits for something, to be awaited; only steps can wait.

    Args:
        waiting: What is waited for.
        doing: What the agent does.
        instead: Why only in a step, or what to do elsewhere.
    """
    agent = waiting.agent
    host = agent._joined(doing)
    if not host.may_ask:
        raise SimulationError(
            f"agent {agent.agent_id!r}: {doing} belongs into a step (@during){instead}"
        )

    host.unawaited = waiting
