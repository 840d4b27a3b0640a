"""Messages between agents."""

from __future__ import annotations

from typing import Any

from prism.errors import AgentError, SimulationError
from prism.reasoner._words import in_words
from prism.statechart.names import identify
from prism.telemetry.events import MESSAGE_SENT
from prism.worlds._agent import Agent, Message

_MOST_CONTENT = 2_000
"""Most characters of a message that are logged."""


def send(turns: Any, message: Message, to: Agent) -> None:
    """Deliver a message now, or at the end of the tick.

    Raises:
        AgentError: If the recipient is not an agent of the run.
    """
    if getattr(to, "world", None) is not turns.world:
        raise AgentError(f"the receiver of a message must be an agent of the world, got {to!r}")
    if turns.refusing is not None:
        raise SimulationError(f"nothing can be sent: {turns.refusing}")
    turns.defer(lambda: _deliver(turns, message, to), message.sender)


def _deliver(turns: Any, message: Message, to: Agent) -> None:
    if to.has_left:
        return
    to.inbox.append(message)
    if turns.remembers:
        content = in_words(message.content)
        message.sender._note(f"You told {to.name}: {content}")
        to._note(f"{message.sender.name} told you: {content}")
    if turns.events.are_heard:
        (content,) = (identify({"content": message.content}) or {}).values()
        if isinstance(content, str):
            content = content[:_MOST_CONTENT]
        turns.events.emit(
            MESSAGE_SENT,
            agent_id=message.sender.agent_id,
            receiver=to.agent_id,
            content=content,
        )
