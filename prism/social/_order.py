"""The order in which agents act and in which their first posts come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prism.agents import SeedPost, SocialAgent
from prism.randomness import RandomStream
from prism.runlog import SimulatedClock


class Order:
    """Who comes first: as in the population, or by keys that do not depend on its order.

    Args:
        agents: The population.
        seed: Seed of the run.
        is_shuffled: Whether the order is drawn anew in each tick.
    """

    def __init__(self, agents: Sequence[SocialAgent], seed: int, *, is_shuffled: bool) -> None:
        self._seed = seed
        self._is_shuffled = is_shuffled
        self._keys = (
            {each.agent_id: RandomStream(seed, "order", each.agent_id).random() for each in agents}
            if is_shuffled
            else {}
        )
        self._acting: Sequence[SocialAgent] = ()
        self._ordered: list[SocialAgent] = []

    def of_posts(self, posts: Iterable[SeedPost]) -> list[SeedPost]:
        """Return opening posts in their order; those of one author stay in theirs."""
        if not self._is_shuffled:
            return list(posts)

        # a stranger is refused later on
        return sorted(posts, key=lambda post: self._keys.get(post.author_id, 0.0))

    def of_tick(
        self, acting: Sequence[SocialAgent], clock: SimulatedClock
    ) -> Sequence[SocialAgent]:
        """Return the agents in the order of a tick."""
        if not self._is_shuffled:
            return acting
        if acting is not self._acting:
            self._acting = acting
            self._ordered = sorted(acting, key=lambda each: self._keys[each.agent_id])

        stream = RandomStream(self._seed, "order", clock.round, clock.tick)
        return stream.shuffled(self._ordered)
