"""What an agent of the feed remembers: the posts it saw, what it did about them, what it wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from prism.social._posts import Network, Post
from prism.statechart import AgentState
from prism.statechart.social import ACTION_DONE, COMPOSE_DONE, SEES_POST

_DONE = {
    AgentState.ENGAGING_LIKE: "liked it",
    AgentState.ENGAGING_REPLY: "replied",
    AgentState.ENGAGING_RESHARE: "reshared it",
    AgentState.COMPOSING: "posted yourself",
}
"""What an agent has done that leaves a state because it is done."""


def recollect(network: Network, agent: Any, most: int) -> Sequence[str]:
    """Return the last posts that an agent saw, with what it did about them, oldest first.

    The post that it is weighing is not among them.

    Args:
        network: The posts.
        agent: The agent.
        most: How many at most.
    """
    history = list(getattr(agent, "state_history", None) or ())
    written = reversed(network.posts_by(agent.agent_id))
    told: list[str] = []
    done = ""

    # the newest first: of what the agent wrote, the last belongs to the last time it did so
    for record in reversed(history):
        if record.trigger == SEES_POST:
            post = network.post(str((record.context or {}).get("post_id")))
            if post is not None and record is not history[-1]:
                told.append(f"You saw {_in_words(post)}, and {done or 'scrolled on'}.")
            done = ""
        elif record.trigger in (ACTION_DONE, COMPOSE_DONE):
            done = _done(record, written) or done
        if len(told) == most:
            break

    return told[::-1]


def _done(record: Any, written: Iterator[Post]) -> str:
    """Return what an agent has done when a transition says that it is done."""
    if record.trigger == COMPOSE_DONE and record.to_state is not AgentState.RESTING:
        # on its way to a reply or a reshare, or nothing came of it
        return ""

    what = _DONE.get(record.from_state, "")
    if record.from_state is AgentState.ENGAGING_LIKE:
        return what

    post = next(written, None)
    return what if post is None else f'{what}: "{post.text}"'


def _in_words(post: Post) -> str:
    return f'a {post.kind} by {post.author_id}: "{post.text}"'
