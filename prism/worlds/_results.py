"""What a run of a world comes to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from prism.runs._rounds import RoundFrames, frames_of

Measured = float | int | None

_COUNTS = ("agent_ticks", "transitions", "decisions_asked", "decisions_answered")
_ALWAYS = ("states", "measures", *_COUNTS, "timeouts")
_ONLY_IF_ANY = ("texts", "fallbacks", "fallback_examples")

_MOST_EXAMPLE = 300
_EXCEPTION = re.compile(r"[A-Za-z_]\w*(?=: |$)")


def fallback_group(reason: str | None, host: str | None) -> tuple[str, str]:
    """Return under what a decision that took the fallback is counted, and its reason in full.

    Args:
        reason: Why; it begins with the exception, as a `Reasoner`'s reasons do.
        host: The server that was asked last, where known.
    """
    named = None if reason is None else _EXCEPTION.match(reason)
    kind = "other" if named is None else named.group()
    example = reason or "no reason given"
    brief = example if len(example) <= _MOST_EXAMPLE else f"{example[: _MOST_EXAMPLE - 3]}..."

    return kind + (f" at {host}" if host else ""), brief


@dataclass(frozen=True, slots=True)
class WorldRound:
    """One round.

    Args:
        number: The round, counted from 1.
        states: Agents in each state at its last tick.
        measures: What the measures came to, by name; None where there was nothing to measure.
        agent_ticks: Agents times ticks.
        transitions: Transitions between states.
        decisions_asked: Questions put to the reasoner.
        decisions_answered: Those that it answered itself; the others took the fallback.
        timeouts: Time-outs by the state that was left.
        texts: Texts by who wrote them: ``model``, ``cache``, ``replay``, ``template``,
            ``fallback``, or ``failed`` where there was none.
        fallbacks: Decisions that took the fallback, by the kind of reason and the server.
        fallback_examples: The first reason of each of these, in full.
        stopped: If the run was stopped in this round: at which tick, after how much time in rounds
            since the beginning, and the reason; None otherwise.
    """

    number: int
    states: Mapping[str, int]
    measures: Mapping[str, Measured]
    agent_ticks: int
    transitions: int
    decisions_asked: int
    decisions_answered: int
    timeouts: Mapping[str, int]
    texts: Mapping[str, int] = field(default_factory=dict)
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    fallback_examples: Mapping[str, str] = field(default_factory=dict)
    stopped: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the round as plain data."""
        return {
            "round": self.number,
            "states": dict(self.states),
            **_counts_of(self),
            "timeouts": dict(sorted(self.timeouts.items())),
            **({"texts": dict(self.texts)} if self.texts else {}),
            **_told_fallbacks(self.fallbacks, self.fallback_examples),
            "measures": dict(self.measures),
            **({"stopped": dict(self.stopped)} if self.stopped else {}),
        }

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> WorldRound:
        """Read what `to_dict` returned, in a line of a log."""
        return cls(
            event["round"],
            **{name: event[name] for name in _ALWAYS},
            **{name: event.get(name, {}) for name in _ONLY_IF_ANY},
            stopped=event.get("stopped"),
        )


class Measuring:
    """What the results of every run of a world tell of its rounds."""

    __slots__ = ()

    rounds: Any

    def series(self, measure: str) -> list[Measured]:
        """Return what a measure came to in every round.

        Raises:
            KeyError: If there is no such measure.
        """
        return [each.measures[measure] for each in self.rounds]

    def to_frames(self) -> RoundFrames:
        """Return the rounds as polars frames.

        The run's own events are in its log: see `prism.analysis.world_events`.

        Raises:
            MissingExtraError: If polars is not installed, which the extra ``analysis`` brings.
        """
        return frames_of([each.to_dict() for each in self.rounds])


@dataclass(frozen=True, slots=True)
class WorldResults(Measuring):
    """A whole run.

    Args:
        agents: Number of agents.
        rounds: Every round, in order.
    """

    agents: int
    rounds: tuple[WorldRound, ...]

    @property
    def stopped(self) -> Mapping[str, Any] | None:
        """When the run was stopped, and why: round, tick, time in rounds, and reason.

        None for a run that went through all its rounds.
        """
        last = self.rounds[-1] if self.rounds else None
        return {"round": last.number, **last.stopped} if last and last.stopped else None

    def totals(self) -> dict[str, Any]:
        """Return the counts of all rounds together, as plain data."""
        sums = {name: sum(getattr(each, name) for each in self.rounds) for name in _COUNTS}
        timeouts, texts, fallbacks = (
            _added(getattr(each, name) for each in self.rounds)
            for name in ("timeouts", "texts", "fallbacks")
        )
        examples = {
            group: example
            for each in reversed(self.rounds)
            for group, example in each.fallback_examples.items()
        }

        return {
            **sums,
            "timeouts": timeouts,
            **({"texts": texts} if texts else {}),
            **_told_fallbacks(fallbacks, examples),
            **({"stopped": dict(self.stopped)} if self.stopped else {}),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, the same for the same run."""
        return {
            "agents": self.agents,
            "totals": self.totals(),
            "rounds": [each.to_dict() for each in self.rounds],
        }


def _told_fallbacks(
    fallbacks: Mapping[str, int], examples: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Return them as plain data, only where there are any."""
    if not fallbacks:
        return {}

    return {
        "fallbacks": dict(sorted(fallbacks.items())),
        "fallback_examples": dict(sorted(examples.items())),
    }


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in filter(None, counts):
        total.update(each)

    return dict(sorted(total.items()))


def _counts_of(each: WorldRound) -> dict[str, int]:
    return {name: getattr(each, name) for name in _COUNTS}
