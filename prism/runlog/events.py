"""Names of the events of a run log, besides those that the engine itself announces."""

from prism.statechart.events import (
    ACTION_FAILED,
    ANSWER_DISCARDED,
    CACHE_FAILED,
    DECISION,
    GUARD_FAILED,
    MODE_UNKNOWN,
    TRANSITION,
)

SCHEMA_VERSION = 1
"""Version of the events and their keys; it rises when a reader would have to change."""

RUN_STARTED = "run.started"
AGENT_JOINED = "agent.joined"
ROUND_STARTED = "round.started"
ROUND_ENDED = "round.ended"
POST_PUBLISHED = "post.published"
POST_LIKED = "post.liked"
RUN_ENDED = "run.ended"

__all__ = [
    "ACTION_FAILED",
    "AGENT_JOINED",
    "ANSWER_DISCARDED",
    "CACHE_FAILED",
    "DECISION",
    "GUARD_FAILED",
    "MODE_UNKNOWN",
    "POST_LIKED",
    "POST_PUBLISHED",
    "ROUND_ENDED",
    "ROUND_STARTED",
    "RUN_ENDED",
    "RUN_STARTED",
    "SCHEMA_VERSION",
    "TRANSITION",
]
