"""What a run measures at the end of each round: results, measures of agents, and pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from itertools import chain
from math import isfinite
from typing import Any

from prism._faults import location_of_method
from prism._numbers import plain_number
from prism.errors import SimulationError
from prism.statechart.states import state_text
from prism.worlds._events import Events
from prism.worlds._spaces import Plane, Space
from prism.worlds.fields import MEASURE, PICTURE, marked

Measured = float | int | None

COUNTS = ("agent_ticks", "transitions", "decisions_asked", "decisions_answered")
"""What every run counts: see `WorldRound`."""


@dataclass(frozen=True, slots=True)
class WorldRound:
    """One round.

    Args:
        number: The round, counted from 1.
        states: Agents in each state at the last tick.
        measures: The values of the measures by name, or None if there was nothing to measure.
        counts: Counts by name: ``agent_ticks``, agents times ticks; ``transitions`` between states;
            ``decisions_asked``, questions to the reasoner; ``decisions_answered``, those that did
            not take the fallback; and those of the world, such as ``posts``.
        timeouts: Time-outs by the state that they ended.
        texts: Texts by their source: ``model``, ``cache``, ``template``, ``fallback``,
            or ``failed`` if there was none.
        fallbacks: Decisions that took the fallback, by kind of reason and server.
        stopped: If the run was stopped in this round, the tick, the time in rounds since the
            beginning, and the reason. Otherwise None.
    """

    number: int
    states: Mapping[str, int]
    measures: Mapping[str, Measured]
    counts: Mapping[str, int]
    timeouts: Mapping[str, int]
    texts: Mapping[str, int] = field(default_factory=dict)
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    stopped: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the round as plain data."""
        return {
            "round": self.number,
            "states": dict(self.states),
            **self.counts,
            **_by_name([self]),
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
        sums: Counter[str] = Counter()
        for each in self.rounds:
            sums.update(each.counts)
        stopped = {"stopped": dict(self.stopped)} if self.stopped else {}
        return {**sums, **_by_name(self.rounds), **stopped}

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain data, identical for identical runs."""
        return {
            "agents": self.agents,
            "totals": self.totals(),
            "rounds": [each.to_dict() for each in self.rounds],
        }

    def _repr_html_(self) -> str:
        """Offer a notebook a table."""
        return rounds_as_html(self.rounds)


def rounds_as_html(rounds: Iterable[WorldRound]) -> str:
    """Return a table with a row for each round: agents in each state, and measures."""
    rows: list[Any] = [{"round": each.number, **each.states, **each.measures} for each in rounds]
    names = dict.fromkeys(chain.from_iterable(rows))
    lines = [list(names), *([row.get(name, "") for name in names] for row in rows)]
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in line) for line in lines)
    return f"<table><tr>{'</tr><tr>'.join(cells)}</tr></table>"


def _by_name(rounds: Iterable[WorldRound]) -> dict[str, dict[str, int]]:
    """Return what some rounds count by names, added up; only time-outs may be none."""
    sums = {name: Counter[str]() for name in ("timeouts", "texts", "fallbacks")}
    for each in rounds:
        for name, total in sums.items():
            total.update(getattr(each, name))
    return {
        name: dict(sorted(total.items()))
        for name, total in sums.items()
        if total or name == "timeouts"
    }


# Measures

_LARGEST_WHOLE = 2**63
_MOST_DRAWN = 10_000
"""The largest number of agents whose picture is logged."""


def measured(world: Any) -> dict[str, Measured]:
    """Return the current values of a world's measures by name."""
    cls = type(world)
    return {name: _number(getattr(world, name)(), cls, name) for name in marked(cls, MEASURE)}


def _number(value: Any, cls: type, name: str) -> Measured:
    """Return the value of a measure as JSON represents it.

    Raises:
        SimulationError: If it is neither a finite number nor None.
    """
    number = plain_number(value)
    if number is None or isinstance(number, bool):
        return number
    if isinstance(number, (int, float)) and isfinite(number):
        # JSON cannot represent numbers that are too large for it
        is_whole = isinstance(number, int) and abs(number) < _LARGEST_WHOLE
        return number if is_whole else float(number)

    problem = f"must return a finite number, or None if there is nothing to measure, got {value!r}"
    raise SimulationError(f"{location_of_method(cls, name)}: {cls.__name__}.{name} {problem}")


# Pictures


class Pictures:
    """The positions and colours of the agents of a world, for the log.

    Args:
        world: The world.
        events: Writes the run's log.
    """

    def __init__(self, world: Any, events: Events) -> None:
        self._world, self._events = world, events
        self._look = next(iter(marked(type(world), PICTURE)), None)
        self._ids: list[str] | None = None

    def take(self) -> dict[str, Any]:
        """Return the keys of a picture's event; none without a picture, or agents in the log."""
        world, agents, log = self._world, self._world.agents, self._events
        # each holds what has changed since the one before, which may have been silent
        is_heard = log.are_heard or getattr(log.logger, "is_silent", False)
        if log.covered == frozenset() or not is_heard or len(agents) > _MOST_DRAWN:
            return {}

        fields = (getattr(world, name) for name in type(world).fields)
        ground = next((each for each in fields if isinstance(each, (Space, Plane))), world._network)
        keys: dict[str, Any] = {} if ground is None else ground.pictured(agents)
        if self._look is not None:
            keys["colours"] = [getattr(world, self._look)(agent) for agent in agents]
        if not keys:
            return {}

        ids = [agent.agent_id for agent in agents]
        is_new, self._ids = ids != self._ids, ids
        texts = [state_text(agent.state) for agent in agents]
        numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        return {
            **keys,
            "state_names": [*numbers],
            "agent_states": [numbers[text] for text in texts],
            **({"agent_ids": ids} if is_new else {}),
        }
