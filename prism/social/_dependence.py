"""Which turns of readers may go ahead of earlier ones that are still to be taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prism.social._composing import TemplateComposer
from prism.social._readers import Reader
from prism.social._steps import FeedSteps, Playing
from prism.statechart import AgentState
from prism.worlds._world import STEP

_OWN_TURNS = (AgentState.RESTING, AgentState.SCROLLING)
"""States in which a turn changes and sees only its own agent."""

_CAN_LIKE = (AgentState.EVALUATING, AgentState.ENGAGING_LIKE)
"""States in which an agent may soon like the post that it looks at."""

_CAN_LOOK = (AgentState.EVALUATING, AgentState.SCROLLING)
"""States in which an agent may soon look at the first post of its feed."""

_HOOKS = ("setup", "round_begins", "round_ends", "until")
"""What runs when no turn is left to be taken."""

_JUDGED = ("should_engage", "rank")
"""What a feed may override besides the methods of its steps."""


def depends_with(feed: Any, playing: Playing) -> Callable[[Reader, Iterable[Reader]], bool] | None:
    """Return whether a reader's turn depends on others, or None if all may depend on each other.

    That is so if the user's own code takes part in the turns, or if a writer or a treatment may
    change a post when it has already been published.

    Args:
        feed: The feed.
        playing: Its state.
    """
    composer = feed.composer
    classes = {type(agent) for agent in playing.agents}
    is_known = (
        not any(map(_has_own_turns, type(feed).__mro__))
        and (composer is None or type(composer) is TemplateComposer)
        and feed.engages is None
        and playing.texts is None
        and all(map(_is_of_prism, classes))
    )
    if not is_known:
        return None

    def depends(reader: Reader, earlier: Iterable[Reader]) -> bool:
        if playing.of_posts or feed.dislike_chance:
            return True

        state = reader.agent.state
        if state is AgentState.EVALUATING:
            return _may_be_liked(reader.post, earlier)
        return state not in _OWN_TURNS

    return depends


def _is_of_prism(cls: type) -> bool:
    return cls.__module__.startswith("prism.")


def _has_own_turns(cls: type) -> bool:
    """Return whether a class of the user's has steps, or overrides what the feed's steps call."""
    if _is_of_prism(cls) or not issubclass(cls, FeedSteps):
        return False

    return any(
        callable(value) and (hasattr(value, STEP) or hasattr(FeedSteps, name) or name in _JUDGED)
        for name, value in vars(cls).items()
        if not (name.startswith("__") or name in _HOOKS)
    )


def _may_be_liked(post: Any, readers: Iterable[Reader]) -> bool:
    """Return whether a reader may like a post in the turn that it has to take, or the next two.

    In these, it can only like the post that it looks at, or the first of its feed.
    """
    for reader in readers:
        # most are settled by the posts, without a look at the state
        if reader.post is post and reader.agent.state in _CAN_LIKE:
            return True
        unread = reader.unread
        if unread and unread[0] is post and reader.agent.state in _CAN_LOOK:
            return True

    return False
