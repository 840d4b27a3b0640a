"""What an event would do to an agent, as data: the candidates, their guards, the outcome."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from prism.statechart._engine.checks import unknown_trigger_problem
from prism.statechart._identity import shown_name
from prism.statechart.states import state_text
from prism.statechart.transitions import Transition, target_text
from prism.telemetry.loggers import describe

CandidateOutcome = Literal["passed", "failed", "raised", "not asked"]
FireOutcome = Literal[
    "moves", "draws", "stays", "refused", "no reaction", "raises", "unknown event", "unknown state"
]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A transition that an event could cause, and the outcome of its guard.

    Args:
        transition: The transition.
        outcome: ``passed`` (also without a guard), ``failed``, ``raised``, or ``not asked`` because
            an earlier candidate was chosen.
        error: The exception that the guard raised.
    """

    transition: Transition[Any]
    outcome: CandidateOutcome
    error: Exception | None = None

    def __str__(self) -> str:
        """Return outcome, transition and guard on one line."""
        guard, error = shown_name(self.transition.guard, "guard"), self._error()
        notes = (f" [{guard}]" if guard else "") + (f": {error}" if error else "")
        return f"{self.outcome:<9}  {self.transition}{notes}"

    def to_dict(self) -> dict[str, Any]:
        """Return the candidate as plain data, ready for JSON."""
        return {
            "target": target_text(self.transition.target),
            "guard": shown_name(self.transition.guard, "guard"),
            "outcome": self.outcome,
            "error": self._error(),
        }

    def _error(self) -> str | None:
        return None if self.error is None else describe(self.error)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What an event would do to an agent, and why; ``str`` shows it as a block of lines.

    Args:
        chart: Name of the chart.
        agent: Name of the agent.
        state: State it is in.
        trigger: The event.
        candidates: The transitions that the event could cause in that state, in definition order.
        outcome: What `Statechart.fire` would do: the agent ``moves``; it ``draws`` one of several
            transitions weighted by probability; it ``stays``, since a self-transition only runs its
            actions; it is ``refused`` by all guards; the state has ``no reaction`` to the event; no
            transition of the chart has that trigger (``unknown event``), which raises in a strict
            chart and otherwise warns; a guard of a strict chart ``raises``; the chart does not have
            the state (``unknown state``), and raises.
        target: Where ``fire`` would lead; None if nowhere.
        options: The targets from which `Statechart.afire` would have a reasoner choose; empty if it
            would not ask.
        reacts_to: The events that the state reacts to, in definition order.
        known: The states of the chart; for an ``unknown event`` its triggers.
        is_final: Whether the state is a final one.
        is_strict: Whether the chart is strict, so that an event without a reaction is an error.
    """

    chart: str
    agent: str
    state: Any
    trigger: str
    candidates: tuple[Candidate, ...]
    outcome: FireOutcome
    target: Any = None
    options: tuple[Any, ...] = ()
    reacts_to: tuple[str, ...] = ()
    known: tuple[Any, ...] = ()
    is_final: bool = False
    is_strict: bool = False

    def __str__(self) -> str:
        """Return the block: who and where, a line for each candidate, and the outcome."""
        return "\n".join(self._lines())

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain data, ready for JSON."""
        return {
            "chart": self.chart,
            "agent": self.agent,
            "state": _shown(self.state),
            "trigger": self.trigger,
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "outcome": self.outcome,
            "target": None if self.target is None else state_text(self.target),
            "options": [state_text(option) for option in self.options],
            "reacts_to": list(self.reacts_to),
        }

    def _lines(self) -> Iterator[str]:
        yield (
            f"agent {self.agent!r} in {_shown(self.state)!r}, event {self.trigger!r}, "
            f"chart {self.chart!r}:"
        )
        yield from (f"  {candidate}" for candidate in self.candidates)
        yield f"  {self._fire()}"
        if self.options:
            options = ", ".join(map(state_text, self.options))
            yield f"  afire asks the reasoner to choose from {options}"

    def _fire(self) -> str:
        state = _shown(self.state)
        match self.outcome:
            case "moves":
                return f"fire moves the agent to {state_text(self.target)!r}"
            case "draws":
                return "fire draws one of those that passed, weighted by probability"
            case "stays":
                return (
                    f"fire runs the action; the agent stays in {state!r}, and nothing is recorded"
                )
            case "refused":
                return "fire does nothing: no guard passes"
            case "raises":
                return "fire raises the guard's exception: the chart is strict"
            case "unknown event":
                problem = unknown_trigger_problem(self.trigger, self.known)
                return f"fire knows no such event: {problem}"
            case "no reaction":
                does = "raises MachineError" if self.is_strict else "does nothing"
                triggers = ", ".join(self.reacts_to) or "no event"
                end = (
                    "is final and reacts to no event" if self.is_final else f"reacts to {triggers}"
                )
                return f"fire {does}: {state!r} {end}"
            case _ if self.state in self.known:
                return (
                    f"fire raises UnknownStateError: {state!r} is a member of another enum than "
                    "the chart's states"
                )
            case _:
                known = ", ".join(map(state_text, self.known))
                return f"fire raises UnknownStateError: the chart's states are {known}"


def _shown(state: Any) -> str:
    # what is no state at all may be unhashable, too
    return state_text(state) if isinstance(state, str) else str(state)
