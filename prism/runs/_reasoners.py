"""From what the user asked for to a reasoner."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from prism.errors import InputError
from prism.llm import DEFAULT_HOST, AnswerCache, OllamaPool
from prism.runlog import ReplayReasoner
from prism.statechart import AgentState, BaseReasoner, Budget, PolicyReasoner, Reasoner


class ReasonerKind(StrEnum):
    """Who decides where several moves are open."""

    POLICY = "policy"
    OLLAMA = "ollama"


class ModeName(StrEnum):
    """How a model is asked."""

    AUTO = "auto"
    DECISION = "decision"
    CHAT = "chat"


class PickName(StrEnum):
    """What is done with a model's probabilities."""

    DRAW = "draw"
    ARGMAX = "argmax"


class ThinkName(StrEnum):
    """Whether a model may think before it answers, and how much."""

    FALSE = "false"
    TRUE = "true"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    def setting(self) -> bool | str:
        """Return what a client is told."""
        return {"false": False, "true": True}.get(self.value, self.value)


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What the command line says about asking a model; None where it says nothing.

    Args:
        model: Name of the model.
        host: Addresses of the servers.
        mode: How to ask.
        pick: What to do with probabilities.
        think: Whether the model may think first.
        concurrency: Questions under way at once on each server.
        timeout: Seconds to wait for one reply.
        patience: Seconds to wait for a server that fails.
        max_calls: Requests the run may make.
        max_tokens: Tokens it may use.
        deadline: Seconds it may ask for.
        cache: File of answers to keep.
    """

    model: str | None = None
    host: tuple[str, ...] | None = None
    mode: ModeName | None = None
    pick: PickName | None = None
    think: ThinkName | None = None
    concurrency: int | None = None
    timeout: float | None = None
    patience: float | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    deadline: float | None = None
    cache: Path | None = None

    def given(self) -> dict[str, Any]:
        """Return what was said, as plain data: what JSON would make of it."""
        said = {name: value for name, value in asdict(self).items() if value is not None}
        return dict(json.loads(json.dumps(said, default=str)))

    @classmethod
    def from_given(cls, given: Mapping[str, Any]) -> Self:
        """Read what `given` gave.

        Raises:
            TypeError: If a name is unknown.
            ValueError: If a mode, a pick or a way to think is unknown.
        """
        readers: dict[str, Callable[[Any], Any]] = {
            "host": tuple,
            "mode": ModeName,
            "pick": PickName,
            "think": ThinkName,
            "cache": Path,
        }
        return cls(
            **{name: readers.get(name, lambda value: value)(value) for name, value in given.items()}
        )


def make_reasoner(
    kind: ReasonerKind, options: ModelOptions, replay: Path | None, seed: int
) -> BaseReasoner:
    """Make the reasoner that was asked for.

    Raises:
        InputError: If options contradict each other, or one that is needed is missing.
    """
    if replay is not None or kind is ReasonerKind.POLICY:
        for name in options.given():
            needs = (
                "asks no model: leave it out with --replay"
                if replay is not None
                else "needs --reasoner ollama"
            )
            raise InputError(f"--{name.replace('_', '-')} {needs}")

    if replay is not None:
        return ReplayReasoner(replay, verbatim=True)

    return PolicyReasoner(seed) if kind is ReasonerKind.POLICY else _ask_ollama(options, seed)


def make_pool(options: ModelOptions, seed: int) -> OllamaPool:
    """Make the client for the servers that were named.

    Raises:
        InputError: If no model was named.
    """
    if options.model is None:
        raise InputError(
            "--reasoner ollama needs --model, the name of a model that 'ollama list' shows"
        )

    hosts: Sequence[str] = options.host or (DEFAULT_HOST,)
    said: dict[str, Any] = {
        name: getattr(options, name) for name in ("concurrency", "timeout", "patience")
    }
    settings = {name: value for name, value in said.items() if value is not None}
    if options.think is not None:
        settings["think"] = options.think.setting()

    return OllamaPool(hosts, options.model, seed=seed, **settings)


def _ask_ollama(options: ModelOptions, seed: int) -> Reasoner:
    budget = Budget(
        max_calls=options.max_calls, max_tokens=options.max_tokens, deadline=options.deadline
    )
    return Reasoner(
        make_pool(options, seed),
        mode=(options.mode or ModeName.AUTO).value,
        pick=(options.pick or PickName.DRAW).value,
        fallback=AgentState.SCROLLING,
        seed=seed,
        budget=budget,
        cache=None if options.cache is None else AnswerCache(options.cache),
    )
