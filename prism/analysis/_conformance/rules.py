"""What a chart allows in a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from prism.statechart import Statechart
from prism.statechart._definition import TIMEOUT, in_definition_order
from prism.statechart.states import state_text


class Fault(NamedTuple):
    """A step that a chart does not allow.

    Args:
        kind: One of the kinds that `prism.analysis.check_log` names.
        found: What the log says.
        allowed: What the chart would allow.
    """

    kind: str
    found: str
    allowed: str


class Rules:
    """What a chart allows, by the texts that stand in a log.

    Args:
        chart: The chart.
    """

    def __init__(self, chart: Statechart[Any]) -> None:
        self.chart: str = chart.name
        self._states = [state_text(state) for state in in_definition_order(chart.states)]
        self._moves = [
            (state_text(move.source), move.trigger, state_text(move.target))
            for move in chart.transitions
        ]
        limits = {state_text(state): limit for state, limit in chart.timeouts.items()}
        timed = [item for item in chart.transitions if item.trigger == TIMEOUT]
        self._limits = {
            state_text(item.source): limits.get(state_text(item.source)) for item in timed
        }
        sure = {state_text(item.source) for item in timed if item.guard is None}
        self._surely_left = sure - {
            state_text(item.source) for item in timed if item.source == item.target
        }

    def state_faults(self, state: str | None) -> Iterator[Fault]:
        """Check a state that is named."""
        if state not in self._states:
            yield Fault("unknown_state", str(state), f"the states {', '.join(self._states)}")

    def move_faults(
        self, source: str, target: str, trigger: str, ticks: int | None, threshold: int | None
    ) -> Iterator[Fault]:
        """Check a move.

        Args:
            source: State that it leaves.
            target: State that it enters.
            trigger: What caused it.
            ticks: Ticks that the agent dwelt in the source, where known.
            threshold: Ticks that it may dwell where the chart sets no limit, where known.
        """
        unknown = [*self.state_faults(source), *self.state_faults(target)]
        yield from unknown
        if all(trigger != known for _, known, _ in self._moves):
            yield Fault("unknown_trigger", str(trigger), self._ways_out(source))
        elif not unknown and (source, trigger, target) not in self._moves:
            yield Fault(
                "unknown_move", f"{source} to {target} on {trigger}", self._ways_out(source)
            )

        yield from self._dwell_faults(source, trigger, ticks, threshold)

    def decision_faults(
        self, state: str, trigger: str, options: Sequence[str] | None, chosen: str | None
    ) -> Iterator[Fault]:
        """Check a decision.

        Args:
            state: State in which the agent was asked.
            trigger: What it was asked about.
            options: What it could choose from; None if the log does not say.
            chosen: What was chosen.
        """
        unknown = list(self.state_faults(state))
        yield from unknown
        targets = self._targets(state, trigger)
        strange = [str(option) for option in options or () if option not in targets]
        if strange and not unknown:
            allowed = ", ".join(targets) if targets else f"no {trigger}"
            yield Fault(
                "unknown_option",
                f"{', '.join(strange)} offered on {trigger}",
                f"{state} allows {allowed}",
            )

        if options is not None and chosen not in options:
            yield Fault(
                "not_an_option", f"{chosen} chosen", f"its options {', '.join(map(str, options))}"
            )

    def _dwell_faults(
        self, state: str, trigger: str, ticks: int | None, threshold: int | None
    ) -> Iterator[Fault]:
        """Check how long a state was dwelt in; the time-out comes with the first tick over the limit.

        An agent may dwell on where a guard can hold the time-out back, or where it can lead back to
        the same state.
        """
        limit = self._limits[state] or threshold if state in self._limits else None
        if ticks is None or limit is None:
            return
        if ticks > limit + 1 and state in self._surely_left:
            yield Fault("overstayed", f"{ticks} ticks in {state}", f"a time-out after {limit + 1}")

        if trigger == TIMEOUT and ticks <= limit:
            yield Fault(
                "early_timeout", f"{ticks} ticks in {state}", f"a time-out after {limit + 1}"
            )

    def _targets(self, state: str, trigger: str) -> list[str]:
        return list(
            dict.fromkeys(
                end for start, cause, end in self._moves if (start, cause) == (state, trigger)
            )
        )

    def _ways_out(self, state: str) -> str:
        ways = [
            f"{trigger} to {target}" for source, trigger, target in self._moves if source == state
        ]
        return f"{state} allows {', '.join(ways) or 'no move'}"
