"""The definition of a chart, and the checks that it must pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from enum import Enum
from functools import partial
from itertools import islice, pairwise
from typing import Any, Generic

from prism._numbers import plain_number
from prism.errors import DefinitionError
from prism.statechart._appendix_d import ends_of, first_leaves
from prism.statechart._hierarchy import Arc, Hierarchy, HistoryAt, Node, Problem, Target
from prism.statechart._parts import State, as_state, as_tuple, as_written, in_order, with_insides
from prism.statechart.states import MOST_NAMED, SEPARATOR, joined, state_text
from prism.statechart.transitions import ANY_STATE, DEFAULT_NAME, StateT, Transition, trigger_text

MOST_TRANSITIONS = 100_000
"""Transitions of a chart, of which a wildcard makes as many as there are states."""

ROUNDING = 1e-9
"""By how much a sum of probabilities may miss 1."""


class Definition(Generic[StateT]):
    """The definition of a chart. It is checked when it is made, and runs nothing.

    Definitions are equal if they were made from equal arguments. Members of two enums are equal if
    their texts are.

    Args:
        states: Members of one Enum, or the Enum itself. Kept in definition order. A `State` can
            contain states; the leaves are kept, in the order of the tree.
        transitions: The transitions. One with several sources is replaced by one for each, and a
            wildcard source stands for every state at the top.
        initial: State that new agents start in; a configuration in a chart with regions.
        name: Name in logs and messages.
        decision_states: States in which a reasoner chooses among several enabled targets.
        timeouts: Ticks after which ``timeout`` fires, by state.
        strict: Whether exceptions of guards and actions propagate.
        final_states: States in which an agent has finished; no transition leaves them.
        description: What the chart is about, for a model's prompt.

    Attributes:
        arguments: What it was made from, by name.
        state_type: The enum of the states.
        limits: The time-outs by the texts of states.
        is_nested: Whether it says something that a flat chart cannot.
        hierarchy: The same in numbers; a flat chart is a tree of depth one.

    Raises:
        DefinitionError: (a ValueError) listing all problems.
    """

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
        tops = tuple(map(as_written, in_order(states)))
        # charts are equal in whatever order these are named
        decides, ends = (in_order({*in_order(each)}) for each in (decision_states, final_states))
        limits = {state: plain_number(ticks) for state, ticks in (timeouts or {}).items()}
        members, final = [each.state for each in map(as_state, tops)], frozenset(ends)
        # the first state, as in SCXML; one in a tuple is that state
        first = as_tuple(initial) or members[:1]
        anywhere = tuple(each for each in members if each not in final)
        every = tuple(islice(_one_source_each(transitions, anywhere), MOST_TRANSITIONS + 1))
        self.arguments: dict[str, Any] = {
            "states": tops,
            "transitions": every,
            "initial": first[0] if len(first) == 1 else first,
            "name": name,
            "decision_states": decides,
            "timeouts": limits,
            "strict": strict,
            "final_states": ends,
            "description": description,
        }
        # each kind of problem needs those before it to be solved
        self._refuse(_part_problems(tops, every))
        tree = Hierarchy(self.arguments)
        self._refuse(tree.problems)
        self._refuse(_tree_problems(tree, limits, final))

        self.hierarchy: Hierarchy = tree
        self.name: str = name
        self.strict: bool = strict
        self.description: str = description
        # what may react in each state, which the engine keeps here (`rows_of`)
        self.rows: Any = None
        self.is_nested: bool = _is_nested(tops, every)
        self.transitions: tuple[Transition[StateT], ...] = every
        self.timeouts: Mapping[StateT, int] = limits
        self.limits: Mapping[str, int] = {state_text(at): ticks for at, ticks in limits.items()}
        self.states: tuple[StateT, ...] = tree.members(tree.leaves)
        self.state_type: type[StateT] = type(self.states[0])
        self.initial: StateT = tree.state_at(first_leaves(tree))
        self.decision_states: frozenset[StateT] = frozenset(tree.members(tree.decides))
        # an agent is done in those at the top alone
        self.final_states: frozenset[StateT] = final.intersection(members)

    def _refuse(self, problems: Iterable[Problem]) -> None:
        """Refuse a chart with problems, as many as a message can list."""
        # there may be as many as a product of what was written
        if first := [*islice(problems, MOST_NAMED + 1)]:
            listing = joined([problem for _, problem in first], "; ")
            paths = dict.fromkeys(path for path, _ in first)
            raise DefinitionError(f"chart {self.arguments['name']!r}: {listing}", *paths)

    def leaves_of(self, state: Any) -> tuple[StateT, ...]:
        """Return the leaves inside a state, or the leaf itself; empty for another chart's state."""
        tree = self.hierarchy
        number = tree.numbers.get(state_text(state), 0)
        # by identity, as states of two charts with one text are equal
        is_same = number and state is tree.nodes[number].state
        return tree.members(tree.leaves_at(number)) if is_same else ()

    def steps_from(self, leaf: StateT) -> Iterator[tuple[Transition[StateT], StateT]]:
        """Yield the transitions from a leaf, inner ones first, with each leaf that they enter."""
        tree = self.hierarchy
        number = tree.numbers[state_text(leaf)]
        for arc in tree.arcs_around(number):
            for end in ends_of(tree, arc) or [number]:
                yield arc.written, tree.nodes[end].state

    def __eq__(self, other: object) -> bool:
        """Compare the arguments."""
        return isinstance(other, Definition) and self.arguments == other.arguments

    def __hash__(self) -> int:
        """Hash what is cheap to hash."""
        return hash((self.name, state_text(self.initial), len(self.states), len(self.transitions)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the constructor; guards and actions must be picklable themselves."""
        return partial(Definition, **self.arguments), ()


def _is_nested(states: Iterable[Any], transitions: Iterable[Transition[Any]]) -> bool:
    """Return whether a chart says something that a flat one cannot."""
    return any(isinstance(state, State) for state in states) or not all(
        isinstance(item.target, Enum)
        and type(item.trigger) is str
        and not item.internal
        and item.after is item.rate is item.probability is None
        for item in transitions
    )


def _one_source_each(transitions: Iterable[Transition[Any]], anywhere: Any) -> Iterator[Any]:
    """Replace each transition of several sources, or of any, by one for each of them."""
    for item in transitions:
        if not isinstance(item, Transition):
            raise DefinitionError(f"{item!r} is no Transition: write Transition(trigger, ...)")
        # a state may have the text of the wildcard
        is_any = item.source == ANY_STATE and not isinstance(item.source, Enum)
        sources = anywhere if is_any else item.source
        if isinstance(sources, tuple):
            yield from (replace(item, source=each) for each in sources)
        else:
            yield item


# What is wrong with it


def _part_problems(tops: Iterable[Any], transitions: Sequence[Any]) -> Iterator[Problem]:
    """Yield why values cannot be the states and transitions of a chart."""
    states = [*with_insides(tops)]
    members: list[Any] = [each.state for each in states]
    kinds = dict.fromkeys(type(member) for member in members)
    if len(kinds) != 1 or not all(issubclass(kind, Enum) for kind in kinds):
        names = joined([kind.__name__ for kind in kinds]) or "nothing"
        yield ("states",), f"states must be members of one Enum, such as a StrEnum, got {names}"

    has_regions = any(each.parallel for each in states)
    for text, count in Counter(map(state_text, members)).items():
        path = ("states", text)
        if count > 1:
            yield path, f"state {text!r} appears in the tree twice: remove one"
        if has_regions and SEPARATOR in text:
            yield path, f"state {text!r} contains a {SEPARATOR!r}, which joins leaves: rename it"
    if len(transitions) > MOST_TRANSITIONS:
        problem = f"it has more than {MOST_TRANSITIONS:,} transitions: split it into several charts"
        yield ("transitions",), problem


def _tree_problems(tree: Hierarchy, limits: Mapping[Any, Any], ends: Set[Any]) -> Iterator[Problem]:
    """Yield what is wrong with a chart whose names are right."""
    for state, ticks in limits.items():
        if type(ticks) is not int or ticks < 1:
            must = "must be a whole number of ticks, 1 or more"
            yield ("timeouts",), f"timeouts[{state_text(state)}] {must}, got {ticks!r}"
    for node in tree.nodes:
        for problem in _state_problems(tree, node, ends):
            text = tree.texts[node.number]
            # the chart itself is no state
            yield ("states", text), f"state {text!r}: {problem}" if node.number else problem

    shares: dict[tuple[str, str], float] = {}
    for arc in tree.arcs:
        path, trigger = ("transitions", arc.number), trigger_text(arc.written.trigger)
        for problem in _arc_problems(tree, arc):
            yield path, f"transition {arc.number + 1} ({arc.written}): {problem}"
        key = trigger, tree.texts[arc.source]
        total = shares[key] = shares.get(key, 0) + (arc.written.probability or 0)
        if total > 1 + ROUNDING:
            what = f"the probabilities of {trigger!r} in {tree.texts[arc.source]!r}"
            yield path, f"{what} add up to {total:g}, which is more than 1: lower them"


def _state_problems(tree: Hierarchy, node: Node, final: Set[Any]) -> Iterator[str]:
    if node.children and node.state in final:
        yield "it is final, but has substates: make one of these final"
    if node.kind == "final" and tree.nodes[node.parent].kind == "parallel":
        yield "it is a region, which cannot be final: put a final state inside"
    for problem in _target_problems(tree, node.initial, node.number):
        yield f"initial: {problem}"


def _arc_problems(tree: Hierarchy, arc: Arc) -> Iterator[str]:
    if tree.nodes[arc.source].kind == "final":
        yield "it leaves a final state: remove it, or take the state out of final_states"
    yield from _target_problems(tree, arc.targets)


def _target_problems(tree: Hierarchy, targets: Sequence[Target], around: int = 0) -> Iterator[str]:
    """Yield why targets cannot be entered together, those of a composite inside it."""
    for target in targets:
        # the own history of a composite leads inside
        is_local = isinstance(target, HistoryAt) and target.composite == around
        if not is_local and not tree.is_inside(_number(target), around):
            text = tree.texts[_number(target)]
            yield f"{text!r} does not lie inside {tree.texts[around]!r}: name a state inside"
        if isinstance(target, HistoryAt):
            if not tree.nodes[target.composite].children:
                text = tree.texts[target.composite]
                yield f"{text!r} has no substates, so it has no history: name a composite"
            yield from _target_problems(tree, target.default, target.composite)
    # in document order, neighbours tell of all others
    for one, other in pairwise(sorted(map(_number, targets))):
        around = next(each for each in (one, *tree.ancestors(one)) if tree.inside([other], each))
        if around == one or tree.nodes[around].kind != "parallel":
            yield (
                f"{tree.texts[one]!r} and {tree.texts[other]!r} do not lie in different regions, "
                "so they are never active together: name one state in each region"
            )


def _number(target: Target) -> int:
    return target.composite if isinstance(target, HistoryAt) else target
