"""The results of a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Measured = float | int | None

_COUNTS = ("agent_ticks", "transitions", "decisions_asked", "decisions_answered")

_EXCEPTION = re.compile(r"^([A-Za-z_]\w*)(?:: |$)")


def fallback_group(reason: str | None, host: str | None) -> str:
    """Return the group in which a fallback is counted.

    Args:
        reason: Its reason, which begins with the exception, as those of `Reasoner` do.
        host: The last server that was asked, if known.
    """
    named = None if reason is None else _EXCEPTION.match(reason)
    kind = "other" if named is None else named[1]
    return kind + (f" at {host}" if host else "")


@dataclass(frozen=True, slots=True)
class WorldRound:
    """One round.

    Args:
        number: The round, counted from 1.
        states: Agents in each state at the last tick.
        measures: The values of the measures by name, or None if there was nothing to measure.
        agent_ticks: The number of agents times the number of ticks.
        transitions: Transitions between states.
        decisions_asked: Questions to the reasoner.
        decisions_answered: Questions that it answered. The others took the fallback.
        timeouts: Time-outs by the state that they ended.
        texts: Texts by their source: ``model``, ``cache``, ``template``, ``fallback``,
            or ``failed`` if there was none.
        fallbacks: Decisions that took the fallback, by kind of reason and server.
        stopped: If the run was stopped in this round, the tick, the time in rounds since the
            beginning, and the reason. Otherwise None.
        counts: The world's own counts by name; see `World.round_counts`.
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
    stopped: Mapping[str, Any] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the round as plain data."""
        return {
            "round": self.number,
            "states": dict(self.states),
            **_counts_of(self),
            **self.counts,
            "timeouts": dict(sorted(self.timeouts.items())),
            **({"texts": dict(self.texts)} if self.texts else {}),
            **({"fallbacks": dict(sorted(self.fallbacks.items()))} if self.fallbacks else {}),
            "measures": dict(self.measures),
            **({"stopped": dict(self.stopped)} if self.stopped else {}),
        }


@dataclass(frozen=True, slots=True)
class WorldResults:
    """The results of a whole run.

    Args:
        agents: Number of agents.
        rounds: Every round, in order.
    """

    agents: int
    rounds: tuple[WorldRound, ...]

    def series(self, measure: str) -> list[Measured]:
        """Return the value of a measure in every round.

        Raises:
            KeyError: If the measure does not exist.
        """
        return [each.measures[measure] for each in self.rounds]

    @property
    def stopped(self) -> Mapping[str, Any] | None:
        """When and why the run was stopped: round, tick, time in rounds, and reason.

        None if the run completed all its rounds.
        """
        last = self.rounds[-1] if self.rounds else None
        return {"round": last.number, **last.stopped} if last and last.stopped else None

    def totals(self) -> dict[str, Any]:
        """Return the sums of the counts of all rounds, as plain data."""
        sums = {name: sum(getattr(each, name) for each in self.rounds) for name in _COUNTS}
        timeouts, texts, fallbacks = (
            _added(getattr(each, name) for each in self.rounds)
            for name in ("timeouts", "texts", "fallbacks")
        )

        return {
            **sums,
            **_added(each.counts for each in self.rounds),
            "timeouts": timeouts,
            **({"texts": texts} if texts else {}),
            **({"fallbacks": fallbacks} if fallbacks else {}),
            **({"stopped": dict(self.stopped)} if self.stopped else {}),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, identical for identical runs."""
        return {
            "agents": self.agents,
            "totals": self.totals(),
            "rounds": [each.to_dict() for each in self.rounds],
        }


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in filter(None, counts):
        total.update(each)

    return dict(sorted(total.items()))


def _counts_of(each: WorldRound) -> dict[str, int]:
    return {name: getattr(each, name) for name in _COUNTS}
