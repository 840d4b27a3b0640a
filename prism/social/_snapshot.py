"""Agents and feeds as plain data, and made again from that and from what the log tells."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from prism.agents import SocialAgent
from prism.errors import SimulationError
from prism.social._posts import Draft, Network, Post, Reader, Words
from prism.social._results import Activity, RoundSummary, count_names
from prism.statechart import AgentState, StateTransition, Written
from prism.statechart._engine.writing import make_record
from prism.statechart.social import SEES_POST
from prism.statechart.transitions import Edge, shared_edge
from prism.telemetry.events import (
    AGENT_REMOVED,
    POST_DISLIKED,
    POST_LIKED,
    POST_PUBLISHED,
    POST_VOTED,
    ROUND_ENDED,
    TRANSITION,
)

Event = Mapping[str, Any]


def describe_readers(network: Network) -> list[list[Any]]:
    """Return every agent and its feed as plain data."""
    return [_describe(reader) for reader in network.readers]


def require_same_readers(network: Network, described: list[list[Any]]) -> None:
    """Refuse what `describe_readers` returned of other agents.

    Raises:
        SimulationError: If there are other agents.
    """
    ids = [agent_id for agent_id, *_ in described]
    if ids != [reader.agent.agent_id for reader in network.readers]:
        raise SimulationError("the run to resume has other agents: give the same population")


def restore_readers(
    network: Network, described: list[list[Any]], events: Iterable[Event]
) -> list[RoundSummary]:
    """Make the agents and feeds of a new network what they were.

    Args:
        network: A network of the same agents, without any posts.
        described: What `describe_readers` returned.
        events: The log until then.

    Returns:
        The rounds that had ended.
    """
    # posts first: feeds refer to them by number
    finished = _read_log(network, events)
    for reader, of_reader in zip(network.readers, described, strict=True):
        _restore_agent(reader.agent, of_reader)
        _restore_feed(reader, of_reader, network.posts)

    return finished


def _describe(reader: Reader) -> list[Any]:
    agent = reader.agent
    return [
        agent.agent_id,
        agent.state.value,
        agent.ticks_in_state,
        agent.pending_action,
        reader.seen_until,
        [post.number for post in reader.unread],
    ]


def _restore_agent(agent: SocialAgent, described: list[Any]) -> None:
    _, state, ticks, pending, *_ = described
    agent.state = AgentState(state)
    agent.ticks_in_state = ticks
    agent.pending_action = pending


def _restore_feed(reader: Reader, described: list[Any], posts: list[Post]) -> None:
    *_, reader.seen_until, unread = described
    reader.unread = deque(posts[number] for number in unread)


def _read_log(network: Network, events: Iterable[Event]) -> list[RoundSummary]:
    """Publish, like and record what the log tells; return the rounds that had ended."""
    finished: list[RoundSummary] = []
    readers = {reader.agent.agent_id: reader for reader in network.readers}
    by_id: dict[str, Post] = {}

    def publish(event: Event) -> None:
        draft = Draft(
            event["kind"],
            event["text"],
            tuple(event["topics"]),
            event.get("template"),
            event.get("source"),
        )
        network.now = _seconds(event["timestamp"])
        parent = None if event["parent_id"] is None else by_id[event["parent_id"]]
        by_id[event["post_id"]] = network.publish_again(
            event["post_id"], event["agent_id"], draft, parent
        )

    def move(event: Event) -> None:
        reader = readers[event["agent_id"]]
        reader.agent.state_history.append(_record(event))
        if event["trigger"] == SEES_POST:
            reader.seen.add(by_id[event["context"]["post_id"]].number)

    handlers: dict[str, Callable[[Event], object]] = {
        TRANSITION: move,
        POST_PUBLISHED: publish,
        POST_LIKED: lambda event: network.like(by_id[event["post_id"]], readers[event["agent_id"]]),
        POST_DISLIKED: lambda event: network.vote(by_id[event["post_id"]], 0, 1),
        POST_VOTED: lambda event: network.vote(
            by_id[event["post_id"]], event["likes"], event["dislikes"]
        ),
        AGENT_REMOVED: lambda event: network.remove(event["agent_id"]),
        ROUND_ENDED: lambda event: finished.append(_summary(event)),
    }
    for event in events:
        handle = handlers.get(event["event"])
        if handle is not None:
            handle(event)

    return finished


def _record(event: Event) -> StateTransition:
    edge = _edge(event["from_state"], event["to_state"], event["trigger"])
    return make_record(edge, _seconds(event["timestamp"]), event["context"])


@lru_cache(maxsize=1024)
def _edge(source: str, target: str, trigger: str) -> Edge:
    return shared_edge(AgentState(source), AgentState(target), trigger)


@lru_cache(maxsize=1024)
def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def _summary(event: Event) -> RoundSummary:
    counts = {name: event[name] for name in count_names()}
    counts["timeouts"] = Counter(event["timeouts"])
    counts["fallbacks"] = Counter(event["fallbacks"])
    counts["texts"] = Counter(event.get("texts", {}))
    counts["fallback_examples"] = dict(event.get("fallback_examples", {}))
    return RoundSummary(
        event["round"], event["states"], Activity(**counts), event.get("measures", {})
    )


def describe_under_way(network: Network) -> dict[str, list[Any]]:
    """Return which post each agent looks at, and what it is about to publish, by its id."""
    return {
        reader.agent.agent_id: [
            None if reader.post is None else reader.post.number,
            _drafted(reader),
        ]
        for reader in network.readers
        if reader.post is not None or reader.draft is not None
    }


def restore_under_way(network: Network, described: Mapping[str, list[Any]]) -> None:
    """Make what `describe_under_way` returned of the same network, with all its posts."""
    for reader in network.readers:
        number, drafted = described.get(reader.agent.agent_id, (None, None))
        reader.post = None if number is None else network.posts[number]
        if drafted is not None:
            _restore(reader, *drafted)


def _drafted(reader: Reader) -> list[Any] | None:
    draft, words = reader.draft, reader.words
    if draft is None:
        return None

    # at the end of a round every text that was asked for is there
    written = None if words is None or words.written is None else words.written
    told = None if written is None else [written.text, written.source, written.value]

    return [draft.kind, draft.text, list(draft.topics), told]


def _restore(reader: Reader, kind: Any, text: str, topics: list[str], told: Any) -> None:
    reader.draft = Draft(kind, text, tuple(topics))
    if told is not None:
        reader.words = Words(reader.draft)
        reader.words.arrive(Written(*told))
