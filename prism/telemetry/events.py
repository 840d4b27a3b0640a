"""Names of the events that prism announces."""

__all__ = [
    "ACTION_FAILED",
    "AGENT_JOINED",
    "AGENT_REMOVED",
    "ANSWER_DISCARDED",
    "CACHE_FAILED",
    "COGNITION_ACTION",
    "COGNITION_CYCLE",
    "COGNITION_MEMORY_CHANGED",
    "COGNITION_PAGED",
    "COGNITION_REFUSED",
    "COGNITION_RESET",
    "DECISION",
    "GUARD_FAILED",
    "MODE_UNKNOWN",
    "POST_DISLIKED",
    "POST_LIKED",
    "POST_PUBLISHED",
    "POST_VOTED",
    "POST_WEIGHED",
    "ROUND_ENDED",
    "ROUND_STARTED",
    "RUN_ENDED",
    "RUN_STARTED",
    "SCHEMA_VERSION",
    "TEXT_WRITTEN",
    "TRANSITION",
    "TREATMENT_APPLIED",
    "TREATMENT_ASSIGNED",
    "WORKFLOW_ACTION",
    "WORKFLOW_REFUSED",
    "WORKFLOW_RESET",
    "WORKFLOW_STEP",
]

SCHEMA_VERSION = 1
"""Version of the events and their keys; it rises when a reader would have to change."""

TRANSITION = "statechart.transition"
GUARD_FAILED = "statechart.guard_failed"
ACTION_FAILED = "statechart.action_failed"
ANSWER_DISCARDED = "statechart.answer_discarded"
DECISION = "reasoner.decision"
CACHE_FAILED = "reasoner.cache_failed"
MODE_UNKNOWN = "reasoner.mode_unknown"
TEXT_WRITTEN = "text.written"

RUN_STARTED = "run.started"
AGENT_JOINED = "agent.joined"
AGENT_REMOVED = "agent.removed"
ROUND_STARTED = "round.started"
ROUND_ENDED = "round.ended"
POST_PUBLISHED = "post.published"
POST_LIKED = "post.liked"
POST_DISLIKED = "post.disliked"
POST_VOTED = "post.voted"
POST_WEIGHED = "post.weighed"
TREATMENT_APPLIED = "treatment.applied"
TREATMENT_ASSIGNED = "treatment.assigned"
RUN_ENDED = "run.ended"

WORKFLOW_STEP = "workflow.step"
WORKFLOW_ACTION = "workflow.action"
WORKFLOW_REFUSED = "workflow.refused"
WORKFLOW_RESET = "workflow.reset"

COGNITION_CYCLE = "cognition.cycle"
COGNITION_ACTION = "cognition.action"
COGNITION_PAGED = "cognition.paged"
COGNITION_REFUSED = "cognition.refused"
COGNITION_RESET = "cognition.reset"
COGNITION_MEMORY_CHANGED = "cognition.memory_changed"
