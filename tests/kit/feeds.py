"""Readers without a run, for tests of what carries posts to them."""

from __future__ import annotations

from collections.abc import Iterable

from prism.agents import SocialAgent
from prism.social import Network, Reader


def readers_of(agents: Iterable[SocialAgent]) -> list[Reader]:
    """Return a reader for each agent, with what joining a run gives it."""
    return [_reader_of(agent) for agent in agents]


def network_of_agents(agents: Iterable[SocialAgent]) -> Network:
    """Return a network of the readers of some agents."""
    return Network(readers_of(agents))


def _reader_of(agent: SocialAgent) -> Reader:
    reader = Reader(object=agent, agent_id=agent.agent_id, name=agent.name)
    for name, field in Reader.fields.items():
        if not field.declared.is_required and name not in ("agent_id", "name"):
            setattr(reader, name, field.declared.value())

    return reader
