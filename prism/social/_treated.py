"""What treatments have done to a feed: agents who left, and what becomes of new posts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from prism.agents import SocialAgent
from prism.errors import FieldValueError
from prism.social._posts import Network, Post
from prism.telemetry.events import AGENT_REMOVED, POST_VOTED
from prism.worlds._host import RunHost
from prism.worlds._treating import tell_assigned


class PostTreatment(Protocol):
    """What is done to posts as they are published."""

    def treat(self, world: Any, posts: Sequence[Post]) -> None:
        """Do it to some posts."""


class Treated:
    """What treatments have done to a feed.

    Args:
        world: The feed.
        agents: The population.
        network: Its posts.
        host: The run.
        emit: Writes an event.

    Attributes:
        acting: The agents who have not been removed, in their order.
        of_posts: What is done to posts as they are published.
    """

    def __init__(
        self,
        world: Any,
        agents: Sequence[SocialAgent],
        network: Network,
        host: RunHost,
        emit: Callable[..., None],
    ) -> None:
        self.acting: Sequence[SocialAgent] = agents
        self.of_posts: list[PostTreatment] = []
        self._world = world
        self._agents = agents
        self._by_id = {agent.agent_id: agent for agent in agents}
        self._network = network
        self._host = host
        self._emit = emit

    def published(self, post: Post) -> None:
        """Do to a new post what treatments do to posts, unless it is older than the run."""
        if self.of_posts and self._host.round:
            for treatment in self.of_posts:
                treatment.treat(self._world, [post])

            tell_assigned(self._host, self._emit)

    def agent(self, agent_id: str) -> SocialAgent:
        """Return the agent of an id.

        Raises:
            FieldValueError: If there is none.
        """
        found = self._by_id.get(agent_id)
        if found is None:
            raise FieldValueError(f"there is no agent {agent_id!r} in the run")

        return found

    def vote(self, post: Post, likes: int, dislikes: int) -> None:
        """Give a post likes or dislikes that are no agent's."""
        self._network.vote(post, likes, dislikes)
        self._emit(POST_VOTED, post_id=post.post_id, likes=likes, dislikes=dislikes)

    def remove(self, agent_id: str) -> None:
        """Have an agent take no further step.

        Raises:
            FieldValueError: If there is no such agent.
        """
        agent = self.agent(agent_id)
        if agent_id in self._network.removed:
            return

        self._network.remove(agent_id)
        self.leave_out_removed()
        self._emit(
            AGENT_REMOVED,
            agent_id=agent_id,
            state=agent.state.value,
            ticks_in_state=agent.ticks_in_state,
        )

    def leave_out_removed(self) -> None:
        """Have those agents act that the network has not removed."""
        gone = self._network.removed
        self.acting = [agent for agent in self._agents if agent.agent_id not in gone]
