"""What agents have under way between two rounds, as plain data and made again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prism.social._posts import Draft, Network, Reader, Words
from prism.statechart import Written


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
