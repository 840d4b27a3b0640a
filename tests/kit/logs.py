"""Logs to read: a real run, and logs made line by line."""

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism import Run
from prism.social import Feed
from prism.worlds import WorldResults

AGENTS, ROUNDS, TICKS, SEED = 50, 4, 12, 3


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, WorldResults]:
    """Return the folder of a real run and what the simulation says came of it."""
    folder = tmp_path_factory.mktemp("runs") / "real"
    shape = {"rounds": ROUNDS, "ticks": TICKS, "seed": SEED}
    outcome = Run(Feed, AGENTS, **shape, parameters={"preset": "classic"}).keep(folder)
    return folder, outcome.results


@pytest.fixture
def folder(run: tuple[Path, WorldResults]) -> Path:
    """Return the folder of the real run."""
    return run[0]


@pytest.fixture
def events(folder: Path) -> list[dict[str, Any]]:
    """Return the events of the real run, read the plain way."""
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


@pytest.fixture
def write_log(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a log of events, or of raw lines, and gives its path."""

    def write(
        lines: Iterable[dict[str, Any] | bytes], name: str = "events.jsonl", *, end: bytes = b"\n"
    ) -> Path:
        data = (
            b"\n".join(
                line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines
            )
            + end
        )
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """Return functions that make events as the writer does; keys can be added or replaced."""

    def event(name: str, /, **keys: Any) -> dict[str, Any]:
        return {"event": name, "timestamp": "2026-01-01T00:00:00Z", "round": 1, "tick": 1, **keys}

    def move(
        agent: str, source: str, target: str, trigger: str = "go", **keys: Any
    ) -> dict[str, Any]:
        ends = {"agent_id": agent, "from_state": source, "to_state": target, "trigger": trigger}
        facts = {"chart": "c", "ticks_in_state": 1, "context": None}
        return event("statechart.transition", **{**ends, **facts, **keys})

    def started(**keys: Any) -> dict[str, Any]:
        facts = {
            "schema": 1,
            "chart": "c",
            "agents": 2,
            "rounds": 2,
            "ticks_per_round": 3,
            "seed": 7,
        }
        return event("run.started", **{"round": 0, "tick": 0, **facts, **keys})

    def joined(agent: str, state: str = "idle", **keys: Any) -> dict[str, Any]:
        return event("agent.joined", agent_id=agent, state=state, **{"round": 0, "tick": 0, **keys})

    def decision(agent: str, options: list[str], chosen: str, **keys: Any) -> dict[str, Any]:
        asked = {
            "agent_id": agent,
            "state": "a",
            "trigger": "go",
            "options": options,
            "chosen": chosen,
        }
        facts = {"source": "policy", "reason": None, "probabilities": None, "context": None}
        return event("reasoner.decision", **{**asked, **facts, **keys})

    def post(
        agent: str, post_id: str, parent: str | None = None, root: str | None = None, **keys: Any
    ) -> dict[str, Any]:
        facts = {
            "kind": "post" if parent is None else "reply",
            "parent_id": parent,
            "root_id": root or post_id,
        }
        return event(
            "post.published",
            agent_id=agent,
            post_id=post_id,
            **{**facts, "text": f"text of {post_id}", **keys},
        )

    def like(agent: str, post_id: str, author: str, **keys: Any) -> dict[str, Any]:
        return event("post.liked", agent_id=agent, post_id=post_id, author_id=author, **keys)

    return SimpleNamespace(
        event=event,
        move=move,
        started=started,
        joined=joined,
        decision=decision,
        post=post,
        like=like,
    )
