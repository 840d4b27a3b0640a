"""The definition of a chart, and the checks that it must pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from itertools import islice
from types import MappingProxyType
from typing import Any, Generic, cast

from prism.errors import DefinitionError
from prism.statechart._hierarchy import Hierarchy, member_of
from prism.statechart._nesting import State, is_nested
from prism.statechart._problems import MOST_TRANSITIONS, chart_problems
from prism.statechart.states import state_text
from prism.statechart.transitions import DEFAULT_NAME, StateT, Transition, is_any_state


@dataclass(frozen=True, slots=True, init=False, weakref_slot=True)
class Definition(Generic[StateT]):
    """The definition of a chart. It is checked when it is made, and runs nothing.

    Definitions are equal if all their fields are. Members of two enums are equal if their texts
    are.

    Args:
        states: Members of one ``str``-based Enum, or the Enum itself. Kept in definition order. A
            `State` can contain states; the leaves are kept, in the order of the tree.
        transitions: The transitions. A wildcard source is replaced by one transition per state at
            the top, and a transition from or to a composite by transitions from and to its leaves.
        initial: State that new agents start in; a configuration in a chart with regions.
        name: Name in logs and messages.
        decision_states: States in which a reasoner chooses among several enabled targets.
        timeouts: Ticks after which ``timeout`` fires, by state.
        strict: Whether exceptions of guards and actions propagate.
        final_states: States in which an agent has finished; no transition leaves them.
        description: What the chart is about, for a model's prompt.

    Raises:
        DefinitionError: (a ValueError) listing all problems.
    """

    states: tuple[StateT, ...]
    transitions: tuple[Transition[StateT], ...]
    initial: StateT
    name: str
    decision_states: frozenset[StateT]
    timeouts: Mapping[StateT, int]
    strict: bool
    final_states: frozenset[StateT]
    description: str
    tree: Hierarchy | None = field(init=False, repr=False)
    """The definition of a chart with composites as it was written; None for a flat chart."""
    hierarchy: Hierarchy = field(init=False, repr=False, compare=False)
    """The same for any chart; a flat one is a tree of depth one."""

    def __init__(
        self,
        states: Iterable[StateT | State[StateT]],
        transitions: Iterable[Transition[StateT]],
        initial: StateT | tuple[StateT, ...],
        name: str = DEFAULT_NAME,
        decision_states: Iterable[StateT] = (),
        timeouts: Mapping[StateT, int] | None = None,
        strict: bool = False,
        final_states: Iterable[StateT] = (),
        description: str = "",
    ) -> None:
        tops = in_definition_order(states)
        decides, ends = (
            in_definition_order(listed(each)) for each in (decision_states, final_states)
        )
        limits = {each: (timeouts or {})[each] for each in in_definition_order(timeouts or {})}
        anywhere = tuple(each for each in map(member_of, tops) if each not in frozenset(ends))
        every = tuple(islice(_one_source_each(transitions, anywhere), MOST_TRANSITIONS + 1))
        written = Hierarchy(tops, every, initial, decides, limits, ends)
        if problems := chart_problems(written):
            raise DefinitionError(f"chart {name!r}: " + "; ".join(problems))

        tree = written if is_nested(tops, every) else None
        values = {
            "name": name,
            "timeouts": MappingProxyType(limits),
            "strict": strict,
            "description": description,
            "tree": tree,
            "states": tuple(written.nodes[leaf].state for leaf in written.leaves),
            "transitions": written.flat,
            "hierarchy": written,
            "initial": written.first,
            "decision_states": frozenset(written.nodes[leaf].state for leaf in written.decides),
            # an agent is done in those at the top alone
            "final_states": frozenset(map(member_of, tops)).intersection(ends),
        }
        for field_name, value in values.items():
            # a frozen dataclass refuses plain assignment, in its own constructor too
            object.__setattr__(self, field_name, value)

    @property
    def state_type(self) -> type[StateT]:
        """The enum of the states."""
        return type(self.states[0])

    @property
    def written(self) -> tuple[Transition[StateT], ...]:
        """The transitions as written, one for each source."""
        return self.hierarchy.transitions

    def leaves_of(self, state: Any) -> tuple[StateT, ...]:
        """Return the leaves inside a state, or the leaf itself; empty for another chart's state."""
        number = self.hierarchy.numbers.get(state_text(state), 0)
        # by identity, as states of two charts with one text are equal
        is_own = number and state is self.hierarchy.nodes[number].state
        return self.hierarchy.members_inside(state) if is_own else ()

    def __hash__(self) -> int:
        """Hash the fields that are cheap to hash."""
        return hash((self.name, state_text(self.initial), len(self.states), len(self.transitions)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the constructor; guards and actions must be picklable themselves."""
        # a mapping proxy cannot be pickled
        return _from_arguments, ({**arguments_of(self), "timeouts": dict(self.timeouts)},)


def arguments_of(definition: Definition[Any]) -> dict[str, Any]:
    """Return the arguments that a definition was made from, by name."""
    names = [field.name for field in fields(definition) if field.init]
    written = vars(definition.hierarchy)
    return {name: written[name] if name in written else getattr(definition, name) for name in names}


def _from_arguments(arguments: dict[str, Any]) -> Definition[Any]:
    return Definition(**arguments)


def in_definition_order(states: Iterable[Any]) -> tuple[Any, ...]:
    """Return states in the order of their enum, since a set has none."""
    members: list[Any] = list(states)
    # states with others inside are in the order in which they are written
    if not all(isinstance(state, Enum) for state in members):
        return tuple(members)

    enums: Any = {type(state) for state in members}
    position = {state: number for enum in enums for number, state in enumerate(enum)}
    return tuple(sorted(set(members), key=lambda state: position[state]))


def listed(states: Iterable[StateT]) -> tuple[StateT, ...]:
    """Return one state or several as a tuple."""
    # as text it is iterable, too, but not a list of characters
    return (cast("StateT", states),) if isinstance(states, str) else tuple(states)


def _one_source_each(
    transitions: Iterable[Transition[Any]], anywhere: tuple[Any, ...]
) -> Iterator[Transition[Any]]:
    """Replace each transition of several sources, or of any, by one for each of them."""
    for item in transitions:
        source = item.source if isinstance(item, Transition) else None
        if is_any_state(source) or isinstance(source, tuple):
            sources = source if isinstance(source, tuple) else anywhere
            yield from (replace(item, source=each) for each in sources)
        else:
            yield item
