"""What a chart is, and what must hold before one is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic, cast

from prism.errors import DefinitionError
from prism.statechart.states import is_state, state_text
from prism.statechart.transitions import StateT, Transition, is_any_state

TIMEOUT = "timeout"
"""The trigger that `Statechart.tick` fires."""

DEFAULT_NAME = "statechart"
"""Name of a chart that is given none."""


@dataclass(frozen=True, slots=True, init=False, weakref_slot=True)
class Definition(Generic[StateT]):
    """What a chart is, apart from running it; a definition that exists is sound.

    Definitions are equal if all their fields are; members of two enums are, if their texts are.

    Args:
        states: Members of one ``str``-based Enum, or the Enum itself. Kept in definition order.
        transitions: The transitions. A wildcard source is replaced by one transition per state.
        initial: State that new agents start in.
        name: Name in logs and messages.
        decision_states: States in which a reasoner chooses among several enabled targets.
        timeouts: Ticks after which ``timeout`` fires, by state.
        strict: Whether exceptions of guards and actions propagate.
        final_states: States in which an agent is done; no transition leaves them.
        needs: Names of the attributes and methods that guards and actions use of an agent. Kept in
            the order given, each once.
        description: What the chart is about, in words; a model is told.

    Raises:
        DefinitionError: (a ValueError) listing everything that is wrong.
    """

    states: tuple[StateT, ...]
    transitions: tuple[Transition[StateT], ...]
    initial: StateT
    name: str
    decision_states: frozenset[StateT]
    timeouts: Mapping[StateT, int]
    strict: bool
    final_states: frozenset[StateT]
    needs: tuple[str, ...]
    description: str

    def __init__(
        self,
        states: Iterable[StateT],
        transitions: Iterable[Transition[StateT]],
        initial: StateT,
        name: str = DEFAULT_NAME,
        decision_states: Iterable[StateT] = (),
        timeouts: Mapping[StateT, int] | None = None,
        strict: bool = False,
        final_states: Iterable[StateT] = (),
        needs: Iterable[str] = (),
        description: str = "",
    ) -> None:
        states = in_definition_order(states)
        transitions = tuple(transitions)
        decision_states, final_states = listed(decision_states), listed(final_states)
        timeouts = dict(timeouts or {})
        # as for states, a single text is not a list of characters
        needs = (needs,) if isinstance(needs, str) else tuple(needs)

        problems = _problems(states, transitions, initial, decision_states, timeouts, final_states)
        problems += _need_problems(needs)
        if not isinstance(description, str):
            problems.append(f"description must be text, got {description!r}")
        if problems:
            raise DefinitionError(f"chart {name!r}: " + "; ".join(problems))

        # a frozen dataclass refuses plain assignment, in its own constructor too
        put = object.__setattr__
        put(self, "states", states)
        put(self, "transitions", _expanded(transitions, states, final_states))
        put(self, "initial", initial)
        put(self, "name", name)
        put(self, "decision_states", frozenset(decision_states))
        put(self, "timeouts", MappingProxyType(timeouts))
        put(self, "strict", strict)
        put(self, "needs", tuple(dict.fromkeys(needs)))
        put(self, "final_states", frozenset(final_states))
        put(self, "description", description)

    @property
    def state_type(self) -> type[StateT]:
        """The enum of the states."""
        return type(self.initial)

    def __hash__(self) -> int:
        """Hash the fields that are cheap to hash."""
        return hash((self.name, state_text(self.initial), len(self.states), len(self.transitions)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the constructor; guards and actions must be picklable themselves."""
        # a mapping proxy cannot be pickled
        return _from_arguments, ({**arguments_of(self), "timeouts": dict(self.timeouts)},)


def arguments_of(definition: Definition[Any]) -> dict[str, Any]:
    """Return the arguments that make a definition again, by name."""
    return {field.name: getattr(definition, field.name) for field in fields(definition)}


def _from_arguments(arguments: dict[str, Any]) -> Definition[Any]:
    return Definition(**arguments)


def in_definition_order(states: Iterable[StateT]) -> tuple[StateT, ...]:
    """Return states in the order of their enum; a set has no order to keep."""
    given = list(states)
    if not all(isinstance(state, Enum) for state in given):
        return tuple(given)

    position = {
        state: number
        for enum in {type(state) for state in given}
        for number, state in enumerate(enum)
    }

    return tuple(sorted(set(given), key=lambda state: position[state]))


def listed(states: Iterable[StateT]) -> tuple[StateT, ...]:
    """Return states as a tuple, also a single one."""
    # as text it is iterable, too, but not a list of characters
    return (cast("StateT", states),) if isinstance(states, str) else tuple(states)


def _expanded(
    transitions: Iterable[Transition[Any]], states: Sequence[Any], final_states: Iterable[Any]
) -> tuple[Transition[Any], ...]:
    """Replace each ``source="*"`` by one transition for every state that is not final, in place."""
    final = set(final_states)
    sources = [state for state in states if state not in final]
    expanded: list[Transition[Any]] = []
    for item in transitions:
        if is_any_state(item.source):
            expanded += [
                Transition(item.trigger, source, item.target, item.guard, item.action)
                for source in sources
            ]
        else:
            expanded.append(item)

    return tuple(expanded)


def _problems(
    states: Sequence[Any],
    transitions: Sequence[Any],
    initial: Any,
    decision_states: Iterable[Any],
    timeouts: Mapping[Any, Any],
    final_states: Sequence[Any],
) -> list[str]:
    problems = _state_set_problems(states)
    if problems:
        # without a set of states nothing else can be judged
        return problems

    known = set(states)
    listing = ", ".join(map(state_text, states))
    for number, item in enumerate(transitions, start=1):
        problems += _transition_problems(number, item, known)

    if not _is_among(initial, known):
        problems.append(f"initial state {initial!r} is not among the states ({listing})")

    problems += [
        f"decision state {state!r} is not among the states ({listing})"
        for state in decision_states
        if not _is_among(state, known)
    ]

    for state, ticks in timeouts.items():
        if not _is_among(state, known):
            problems.append(f"timeouts names {state!r}, which is not among the states ({listing})")

        if not isinstance(ticks, int) or isinstance(ticks, bool) or ticks < 1:
            problems.append(
                f"timeouts[{state_text(state)}] must be a whole number of ticks from 1 on, "
                f"got {ticks!r}"
            )

    for state in final_states:
        if _is_among(state, known):
            problems += _final_state_problems(state, transitions, decision_states, timeouts)
        else:
            problems.append(f"final state {state!r} is not among the states ({listing})")

    return problems


def _final_state_problems(
    state: Any, transitions: Sequence[Any], decision_states: Iterable[Any], timeouts: Iterable[Any]
) -> list[str]:
    """List what would have an agent do something in a final state."""
    text = state_text(state)
    problems = [
        f"transition {number} ({item}) leaves {text!r}, which is a final state: remove it, or take "
        "the state out of final_states"
        for number, item in enumerate(transitions, start=1)
        if isinstance(item, Transition) and not is_any_state(item.source) and item.source == state
    ]

    if state in decision_states:
        problems.append(
            f"final state {text!r} cannot be a decision state: nothing is enabled there"
        )
    if state in timeouts:
        problems.append(f"final state {text!r} cannot have a limit in timeouts: no agent leaves it")

    return problems


def _need_problems(needs: Iterable[Any]) -> list[str]:
    return [
        f"needs must list names of attributes, got {name!r}"
        for name in needs
        if not isinstance(name, str) or not name.isidentifier()
    ]


def _state_set_problems(states: Sequence[Any]) -> list[str]:
    if not states:
        return ["a chart needs at least one state"]

    wrong = [repr(state) for state in states if not is_state(state)]
    if wrong:
        return [
            f"states must be members of a str-based Enum such as AgentState, got {', '.join(wrong)}"
        ]

    enums = sorted({type(state).__name__ for state in states})
    if len({type(state) for state in states}) > 1:
        return [f"states must all come from one enum, got members of {', '.join(enums)}"]

    return []


def _transition_problems(number: int, item: Any, known: set[Any]) -> list[str]:
    if not isinstance(item, Transition):
        return [f"transition {number} must be a Transition, got {item!r}"]

    problems = []
    if not is_any_state(item.source) and not _is_among(item.source, known):
        problems.append(
            f"transition {number} ({item}): source {item.source!r} is not among the states"
        )

    if not _is_among(item.target, known):
        problems.append(
            f"transition {number} ({item}): target {item.target!r} is not among the states"
        )

    if item.trigger == "state":
        problems.append(
            f"transition {number} ({item}): a trigger cannot be called 'state', rename it"
        )

    return problems


def _is_among(state: Any, known: set[Any]) -> bool:
    # by enum, too: members of two enums with equal texts compare equal
    return isinstance(state, Enum) and type(state) is type(next(iter(known))) and state in known
