"""Worlds whose agents are rows of arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from os import PathLike
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from prism.arrays._charts import Arc, Codes
from prism.arrays._networks import ArrayNetwork
from prism.arrays._numbers import Agents, Mask, Population, checked, for_each, times_named
from prism.errors import FieldTypeError, FieldValueError, SimulationError
from prism.runlog import RunLog, SimulatedClock
from prism.statechart import Statechart
from prism.statechart.states import state_text
from prism.statechart.transitions import TIMEOUT, shared_edge
from prism.telemetry import events

Weights: TypeAlias = Mapping[Any, ArrayLike]


@dataclass(frozen=True, slots=True)
class ArrayRound:
    """One round.

    Attributes:
        number: Its number, from 1.
        states: Agents in each state at its end.
        measures: What `ArrayWorld.measures` returned.
        transitions: Transitions between states.
    """

    number: int
    states: Mapping[str, int]
    measures: Mapping[str, float]
    transitions: int


class ArrayWorld(Population):
    """A world of many agents, with one chart or one for each kind, and a method `step`.

    Attributes of the class are parameters, unless they are methods or begin with an underscore.

    Args:
        size: Number of agents; of several kinds a number for each chart.
        seed: Seed of every random number.
        parameters: Values of parameters.

    Attributes:
        chart: The chart of its agents, or a tuple with one for each kind of agents.
        rounds: Number of rounds; in each, agents have one tick.
        agents: All agents by number, those of the first kind first.
        size: Number of agents.
        seed: The seed.
        round: The current round, from 1; 0 in `setup`.
        network: The network, once `setup` has made one.

    Raises:
        DefinitionError: If the charts cannot be those of agents in arrays.
        FieldTypeError: If there is no such parameter.
        FieldValueError: If a kind has no agents.
    """

    chart: ClassVar[Statechart[Any] | tuple[Statechart[Any], ...]]
    rounds: int = 10
    network: ArrayNetwork

    def __init__(self, size: int | Sequence[int], *, seed: int = 0, **parameters: Any) -> None:
        values = {name: getattr(type(self), name) for name in dir(type(self)) if name[0] != "_"}
        kinds = str | int | float | np.number
        self._parameters = {name: each for name, each in values.items() if isinstance(each, kinds)}
        if unknown := [name for name in parameters if name not in self._parameters]:
            raise FieldTypeError(f"{unknown[0]!r} is none of {', '.join(self._parameters)}")
        self._parameters |= parameters
        vars(self).update(parameters)
        charts = self.chart if isinstance(self.chart, tuple) else (self.chart,)
        self._codes = Codes(charts)
        sizes = np.atleast_1d(np.asarray(size))
        if sizes.shape != (len(charts),) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
            raise FieldValueError(f"size must be above 0 for each of {len(charts)} charts: {size}")

        super().__init__(int(sizes.sum()), seed)
        self._state = np.repeat(np.array(self._codes.initial, self._codes.dtype), sizes)
        self._since = np.zeros(self.size, np.int32)
        self._moved = 0
        self._log: Callable[..., object] = lambda *_event, **_keys: None
        self._is_logged: Mask = np.zeros(self.size, bool)
        self.setup()

    # What a world defines

    def setup(self) -> None:
        """Make columns and the network."""

    def step(self) -> None:
        """Let all agents act, once a round."""

    def measures(self) -> dict[str, float]:
        """Return what is measured at the end of each round."""
        return {}

    # What its methods use

    def begin_in(self, who: ArrayLike, state: Any) -> None:
        """Let agents begin in another state of their chart, in `setup`.

        Raises:
            FieldValueError: If it is none of theirs.
        """
        who, code = checked(who, self.size), self._codes.codes[state]
        if not self.is_in(who, *self._codes.kind_of(state)).all():
            raise FieldValueError(f"{state!r} is no state of these agents' chart")
        self._state[who] = code

    def where(self, *states: Any) -> Agents:
        """Return the agents in one of some states, in their order; all of a kind by ``*Enum``."""
        return self.agents[self.is_in(self.agents, *states)]

    def is_in(self, who: ArrayLike, *states: Any) -> Mask:
        """Return for each of some agents whether it is in one of some states."""
        now = self._state if who is self.agents else self._state[checked(who, self.size)]
        result = np.zeros(len(now), bool)
        for state in states:
            result |= now == self._codes.codes[state]
        return result

    def ticks_in_state(self, who: ArrayLike) -> NDArray[np.int32]:
        """Return the ticks since the last transition of each of some agents; 0 in its tick."""
        return self.round - self._since[checked(who, self.size)]

    def count(self, state: Any) -> int:
        """Return how many agents are in a state."""
        return int(np.count_nonzero(self._state == self._codes.codes[state]))

    def share(self, state: Any) -> float:
        """Return the share of agents in a state, among those of its chart."""
        return self.count(state) / sum(map(self.count, self._codes.kind_of(state)))

    def fire(self, who: ArrayLike, trigger: str) -> Mask:
        """Fire an event for some agents, for all at once.

        Returns:
            For each of them whether a transition was made. For an agent that is named twice, the
            event is fired once, where it is named first.

        Raises:
            KeyError: If no transition has this trigger.
        """
        who = checked(who, self.size)
        is_first, arcs = times_named(who) == 0, self._codes.arcs[trigger]
        once = who[is_first]
        fits = self._enabled(arcs, once)
        choice = np.where(fits.any(axis=0), fits.argmax(axis=0), -1)
        self._make(arcs, once, choice)
        result = np.zeros(len(who), bool)
        result[is_first] = choice >= 0
        return result

    def decide(self, who: ArrayLike, trigger: str, weights: Weights) -> dict[Any, Mask]:
        """Fire an event for some agents, each of which draws one of the transitions it enables.

        An agent that is named twice decides twice, the second time in its new state.

        Args:
            who: The agents.
            trigger: The event.
            weights: For each target the relative probabilities, a number of 0 or more for each of
                these agents, or one for all. A target without any is never drawn.

        Returns:
            For each target, which of these agents have drawn it.

        Raises:
            KeyError: If no transition has this trigger.
            FieldValueError: If weights are no such numbers, or of a state that is no target.
        """
        who, arcs = checked(who, self.size), self._codes.arcs[trigger]
        table = self._weights(len(who), trigger, [arc.target for arc in arcs], weights)
        drawn = {arc.item.target: np.zeros(len(who), bool) for arc in arcs}
        self._draws += 1
        times = times_named(who)
        waves = np.split(np.argsort(times, kind="stable"), np.bincount(times).cumsum()[:-1])
        for wave in waves:
            fits = self._enabled(arcs, who[wave])
            chances = np.where(fits, table[:, wave], 0.0).cumsum(axis=0)
            # beyond the last transition where none has a chance
            numbers = self._drawn(who[wave], times[wave]) * chances[-1]
            choice = (numbers >= chances).sum(axis=0)
            for row, arc in enumerate(arcs):
                drawn[arc.item.target][wave[choice == row]] = True
            self._make(arcs, who[wave], choice)
        return drawn

    def run(self, log: PathLike[str] | str | None = None, sample: int = 1000) -> list[ArrayRound]:
        """Run all rounds, once.

        Args:
            log: File to write a log to; it must not exist yet.
            sample: How many agents it covers, which the seed draws. Its counts and measures are
                those of all agents.

        Raises:
            SimulationError: If the world has run before.
            FileExistsError: If the file exists.
        """
        if self.round:
            raise SimulationError("a world runs once: make another one")
        clock = SimulatedClock()
        with nullcontext() if log is None else RunLog(log, clock) as run_log:
            if run_log is not None:
                self._log = run_log.logger.info
                self._is_logged[np.argsort(self._keys)[: max(sample, 0)]] = True
            self._log_beginning()
            rounds = [self._round(number, clock) for number in range(1, self.rounds + 1)]
            self._log(events.RUN_ENDED)
        return rounds

    def _round(self, number: int, clock: SimulatedClock) -> ArrayRound:
        self.round = number
        self._draws = self._moved = 0
        clock.begin_round(number)
        self._log(events.ROUND_STARTED)
        clock.advance()
        if TIMEOUT in self._codes.arcs:
            is_late = self.round - self._since > self._codes.limits[self._state]
            self.fire(np.flatnonzero(is_late), TIMEOUT)
        self.step()
        states = {state_text(state): self.count(state) for state in self._codes.states}
        measures = {name: float(value) for name, value in self.measures().items()}
        counts = {"states": states, "measures": measures, "transitions": self._moved}
        self._log(events.ROUND_ENDED, agent_ticks=self.size, **counts)
        return ArrayRound(number, states, measures, self._moved)

    # Parts

    def _enabled(self, arcs: Sequence[Arc], who: Agents) -> Mask:
        """Return which transitions each of some agents enables, a row for each transition."""
        states = self._state[who]
        return np.stack([arc.enabled(self, who, states) for arc in arcs])

    def _weights(
        self, size: int, trigger: str, targets: Sequence[int], weights: Weights
    ) -> NDArray[np.float64]:
        """Return the weights of each transition, a row of numbers."""
        what = f"the weights of {trigger!r}"
        by_code = {
            self._codes.codes[state]: for_each(weight, size, what)
            for state, weight in weights.items()
        }
        if wrong := by_code.keys() - targets:
            raise FieldValueError(f"{what} never lead to {self._codes.states[wrong.pop()]!r}")
        table = np.stack([by_code.get(target, np.zeros(size)) for target in targets]).astype(float)
        if not (np.isfinite(table) & (table >= 0)).all():
            raise FieldValueError(f"{what} must be numbers of 0 or more")
        return table

    def _make(self, arcs: Sequence[Arc], who: Agents, choice: NDArray[np.intp]) -> None:
        """Make the transition that each of some agents chose, by its row."""
        for row, arc in enumerate(arcs):
            movers = who[choice == row]
            if arc.item.action is not None and len(movers):
                arc.item.action(self, movers)
            if arc.source != arc.target:
                self._log_moves(arc, movers)
                self._moved += len(movers)
            self._state[movers] = arc.target
            self._since[movers] = self.round

    def _log_beginning(self) -> None:
        sample = self.agents[self._is_logged].tolist()
        sizes = {"agents": self.size, "logged_agents": len(sample), "rounds": self.rounds}
        run = {"world": type(self).__name__, "seed": self.seed, "parameters": self._parameters}
        self._log(
            events.RUN_STARTED, schema=events.SCHEMA_VERSION, ticks_per_round=1, **sizes, **run
        )
        for agent in sample:
            state = state_text(self._codes.states[self._state[agent]])
            self._log(events.AGENT_JOINED, agent_id=f"agent_{agent + 1}", state=state)

    def _log_moves(self, arc: Arc, who: Agents) -> None:
        ends = shared_edge(arc.item.source, arc.item.target, arc.item.trigger).ends
        event = {"chart": arc.chart, **ends, "context": None}
        for agent in who[self._is_logged[who]].tolist():
            agent_id, ticks = f"agent_{agent + 1}", self.round - int(self._since[agent])
            self._log(events.TRANSITION, agent_id=agent_id, ticks_in_state=ticks, **event)
