"""The rules that a chart sets for a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from prism.statechart import Statechart
from prism.statechart._definition import TIMEOUT
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
    """What a chart allows, with states as the texts that a log has.

    Args:
        chart: The chart.
    """

    def __init__(self, chart: Statechart[Any]) -> None:
        self.chart: str = chart.name
        self._states = [state_text(state) for state in chart.definition.states]
        self._transitions = [
            (state_text(item.source), item.trigger, state_text(item.target))
            for item in chart.transitions
        ]

        timed = [item for item in chart.transitions if item.trigger == TIMEOUT]
        limits = {state_text(state): limit for state, limit in chart.timeouts.items()}
        sources = [state_text(item.source) for item in timed]
        self._limits = {source: limits.get(source) for source in sources}

        # A guard can block the time-out, and one that leads back to its state ends no visit.
        unguarded = {state_text(item.source) for item in timed if item.guard is None}
        loops = {state_text(item.source) for item in timed if item.source == item.target}
        self._surely_left = unguarded - loops

    def state_faults(self, state: str | None) -> Iterator[Fault]:
        """Check the name of a state."""
        if state not in self._states:
            yield Fault("unknown_state", str(state), f"the states {', '.join(self._states)}")

    def transition_faults(
        self, source: str, target: str, trigger: str, ticks: int | None, threshold: int | None
    ) -> Iterator[Fault]:
        """Check a transition.

        Args:
            source: State that is left.
            target: State that is entered.
            trigger: Trigger of the transition.
            ticks: Ticks that the agent stayed in the source, if known.
            threshold: Ticks that it may stay if the chart sets no limit, if known.
        """
        unknown = [*self.state_faults(source), *self.state_faults(target)]
        yield from unknown

        allowed = self._ways_out(source)
        if all(trigger != known for _, known, _ in self._transitions):
            yield Fault("unknown_trigger", str(trigger), allowed)
        elif not unknown and (source, trigger, target) not in self._transitions:
            yield Fault("unknown_move", f"{source} to {target} on {trigger}", allowed)

        yield from self._dwell_faults(source, trigger, ticks, threshold)

    def decision_faults(
        self, state: str, trigger: str, options: Sequence[str] | None, chosen: str | None
    ) -> Iterator[Fault]:
        """Check a decision.

        Args:
            state: State of the agent when it was asked.
            trigger: The ambiguous trigger.
            options: The states it could choose from; None if the log does not say.
            chosen: The state it chose.
        """
        unknown = list(self.state_faults(state))
        yield from unknown

        targets = self._targets(state, trigger)
        strange = [str(option) for option in options or () if option not in targets]
        if strange and not unknown:
            found = f"{', '.join(strange)} offered on {trigger}"
            allowed = ", ".join(targets) if targets else f"no {trigger}"
            yield Fault("unknown_option", found, f"{state} allows {allowed}")

        if options is not None and chosen not in options:
            allowed = f"its options {', '.join(map(str, options))}"
            yield Fault("not_an_option", f"{chosen} chosen", allowed)

    def _dwell_faults(
        self, state: str, trigger: str, ticks: int | None, threshold: int | None
    ) -> Iterator[Fault]:
        limit = self._limits[state] or threshold if state in self._limits else None
        if ticks is None or limit is None:
            return

        # A time-out comes with the first tick over the limit.
        found, allowed = f"{ticks} ticks in {state}", f"a time-out after {limit + 1}"
        if ticks > limit + 1 and state in self._surely_left:
            yield Fault("overstayed", found, allowed)

        if trigger == TIMEOUT and ticks <= limit:
            yield Fault("early_timeout", found, allowed)

    def _targets(self, state: str, trigger: str) -> list[str]:
        return list(
            dict.fromkeys(
                target
                for source, known, target in self._transitions
                if (source, known) == (state, trigger)
            )
        )

    def _ways_out(self, state: str) -> str:
        ways = [
            f"{trigger} to {target}"
            for source, trigger, target in self._transitions
            if source == state
        ]
        return f"{state} allows {', '.join(ways) or 'no transition'}"
