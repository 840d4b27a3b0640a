"""Events of a log as the writer writes them, for logs made line by line: keys can be replaced."""

from typing import Any

Event = dict[str, Any]


def event(name: str, /, **keys: Any) -> Event:
    return {"event": name, "timestamp": "2026-01-01T00:00:00Z", "round": 1, "tick": 1, **keys}


def started(**keys: Any) -> Event:
    size = {"agents": 2, "rounds": 2, "ticks_per_round": 3, "seed": 7}
    return event(
        "run.started", **{"round": 0, "tick": 0, "schema": 1, "chart": "c", **size, **keys}
    )


def joined(agent: str, state: str = "idle", **keys: Any) -> Event:
    return event("agent.joined", agent_id=agent, state=state, **{"round": 0, "tick": 0, **keys})


def move(agent: str, source: str, target: str, trigger: str | None = "go", **keys: Any) -> Event:
    ends = {"agent_id": agent, "from_state": source, "to_state": target, "trigger": trigger}
    about = {"chart": "c", "ticks_in_state": 1, "context": None}
    return event("statechart.transition", **{**ends, **about, **keys})


def refused(agent: str, state: str, trigger: str, *guards: str, **keys: Any) -> Event:
    about = {"state": state, "trigger": trigger, "reason": "guards", "guards": [*guards]}
    return event("statechart.event_refused", agent_id=agent, **{**about, **keys})


def decision(agent: str, options: list[str] | None, chosen: str, **keys: Any) -> Event:
    asked = {"agent_id": agent, "state": "a", "trigger": "go", "options": options}
    about = {"source": "policy", "reason": None, "probabilities": None, "context": None}
    return event("reasoner.decision", **{**asked, "chosen": chosen, **about, **keys})


def post(
    agent: str, post_id: str, parent: str | None = None, root: str | None = None, **keys: Any
) -> Event:
    kind = "post" if parent is None else "reply"
    where = {"kind": kind, "parent_id": parent, "root_id": root or post_id}
    own = {"agent_id": agent, "post_id": post_id, "text": f"text of {post_id}"}
    return event("post.published", **{**own, **where, **keys})


def like(agent: str, post_id: str, author: str, **keys: Any) -> Event:
    return event("post.liked", agent_id=agent, post_id=post_id, author_id=author, **keys)
