"""The definition of a chart, and the checks that it must pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from functools import partial
from itertools import chain, islice, pairwise
from types import MappingProxyType
from typing import Any, Generic, cast

from prism.errors import DefinitionError
from prism.statechart._appendix_d import ends_of, first_leaves
from prism.statechart._hierarchy import Arc, Hierarchy, HistoryAt, Node
from prism.statechart._parts import History, State, as_tuple, as_written, member_of, with_insides
from prism.statechart.states import MOST_NAMED, SEPARATOR, is_state, joined, state_text
from prism.statechart.transitions import ALWAYS, DEFAULT_NAME, StateT, Transition, is_any_state

MOST_TRANSITIONS = 100_000
"""Leaves that the transitions of a chart leave and enter, with the squares of their targets."""

_ROUNDING = 1e-9


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
        # one state in a tuple is that state
        if isinstance(initial, tuple) and len(initial) == 1:
            (initial,) = initial
        tops = in_definition_order(map(as_written, states))
        decides, ends = (
            in_definition_order(listed(each)) for each in (decision_states, final_states)
        )
        limits = {each: (timeouts or {})[each] for each in in_definition_order(timeouts or {})}
        anywhere = tuple(each for each in map(member_of, tops) if each not in frozenset(ends))
        every = tuple(islice(_one_source_each(transitions, anywhere), MOST_TRANSITIONS + 1))
        self.arguments: dict[str, Any] = {
            "states": tops,
            "transitions": every,
            "initial": initial,
            "name": name,
            "decision_states": decides,
            "timeouts": limits,
            "strict": strict,
            "final_states": ends,
            "description": description,
        }
        # each kind of problem needs those before it to be solved
        self._refuse(_set_problems(tops))
        self._refuse(_naming_problems(self.arguments))
        tree = Hierarchy(tops, every, initial, ends, decides, limits)
        self._refuse(_size_problems(tree))
        self._refuse(_part_problems(tree, limits))

        self.hierarchy: Hierarchy = tree
        self.name: str = name
        self.strict: bool = strict
        self.description: str = description
        self.is_nested: bool = _is_nested(tops, every)
        self.transitions: tuple[Transition[StateT], ...] = every
        self.timeouts: Mapping[StateT, int] = MappingProxyType(limits)
        self.states: tuple[StateT, ...] = tuple(tree.nodes[leaf].state for leaf in tree.leaves)
        self.initial: StateT = tree.state_at(first_leaves(tree))
        self.decision_states: frozenset[StateT] = frozenset(
            tree.nodes[leaf].state for leaf in tree.decides
        )
        # an agent is done in those at the top alone
        self.final_states: frozenset[StateT] = frozenset(map(member_of, tops)).intersection(ends)

    def _refuse(self, problems: Iterator[str]) -> None:
        """Refuse a chart with problems, as many as a message can list."""
        # there may be as many as a product of what was written
        if first := [*islice(problems, MOST_NAMED)]:
            more = ["and more"] if len(first) == MOST_NAMED else []
            raise DefinitionError(f"chart {self.arguments['name']!r}: " + "; ".join(first + more))

    @property
    def state_type(self) -> type[StateT]:
        """The enum of the states."""
        return type(self.states[0])

    def leaves_of(self, state: Any) -> tuple[StateT, ...]:
        """Return the leaves inside a state, or the leaf itself; empty for another chart's state."""
        tree = self.hierarchy
        number = tree.numbers.get(state_text(state), 0)
        # by identity, as states of two charts with one text are equal
        is_own = number and state is tree.nodes[number].state
        return tuple(tree.nodes[leaf].state for leaf in tree.leaves_at(number) if is_own)

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
        is_state(item.target)
        and type(item.trigger) is str
        and not item.internal
        and item.after is item.rate is item.probability is None
        for item in transitions
    )


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
    # a text is iterable, too, but not a list of characters
    return (cast("StateT", states),) if isinstance(states, (str, Enum)) else tuple(states)


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


# What is wrong with it: its names


def _set_problems(tops: Iterable[Any]) -> Iterator[str]:
    """Yield why values cannot be the states of a chart."""
    states = [*with_insides(tops)]
    members = [*map(member_of, states)]
    wrong = [repr(member) for member in members if not is_state(member)]
    enums = {type(member): type(member).__name__ for member in members}
    if not members:
        yield "a chart needs at least one state"
    elif wrong:
        yield f"states must be members of an Enum, such as a StrEnum, got {joined(wrong)}"
    elif len(enums) > 1:
        names = joined(sorted(enums.values()))
        yield f"states must all come from one enum, got members of {names}"

    has_regions = any(isinstance(each, State) and each.parallel for each in states)
    for text, count in Counter(map(state_text, members)).items():
        if count > 1:
            yield f"state {text!r} appears in the tree twice: remove one"
        if has_regions and SEPARATOR in text:
            yield f"state {text!r} contains a {SEPARATOR!r}, which separates leaves: rename it"


def _naming_problems(written: Mapping[str, Any]) -> Iterator[str]:
    """Yield a problem for each name that is no state of the chart."""
    states = [*with_insides(written["states"])]
    members = dict.fromkeys(map(member_of, states))
    enum, listing = type(next(iter(members))), joined([*map(state_text, members)])
    named: list[tuple[str, Any]] = [
        ("initial state", written["initial"]),
        ("decision state", written["decision_states"]),
        ("final state", written["final_states"]),
        ("state with a limit in timeouts", tuple(written["timeouts"])),
        *(("initial state", each.initial) for each in states if isinstance(each, State)),
    ]
    if written["initial"] == ():
        yield "initial must name a state, got none"
    for number, item in enumerate(written["transitions"], start=1):
        if not isinstance(item, Transition):
            yield f"transition {number} must be a Transition, got {item!r}"
            continue
        where = f"transition {number} ({item}):"
        named.append((f"{where} source", item.source))
        if item.target is not None:
            named.append((f"{where} target", item.target))
    for each in states:
        if isinstance(each, State) and each.states and each.state in written["final_states"]:
            yield (
                f"final state {state_text(each.state)!r} has substates: make one of these final, "
                "and the state around it is done when that one is entered"
            )
    for what, value in named:
        for each in chain.from_iterable(map(_names_in, as_tuple(value))):
            # by enum, too: members of two enums with equal texts compare equal
            if not isinstance(each, Enum) or type(each) is not enum or each not in members:
                yield f"{what} {each!r} is not among the states ({listing})"


def _names_in(target: Any) -> tuple[Any, ...]:
    if not isinstance(target, History):
        return (target,)
    return target.state, *(() if target.default is None else as_tuple(target.default))


# Its size


def _size_problems(hierarchy: Hierarchy) -> Iterator[str]:
    """Count what a chart takes to be checked and run before anything of that size is made."""
    count = sum(len(node.initial) ** 2 for node in hierarchy.nodes)
    for arc in hierarchy.arcs:
        # entering several targets takes time by their square
        count += len(hierarchy.leaves_at(arc.source)) + len(arc.targets) ** 2
        if count <= MOST_TRANSITIONS:
            count += len(ends_of(hierarchy, arc))
        if count > MOST_TRANSITIONS:
            yield (
                f"its transitions leave and enter more than {MOST_TRANSITIONS:,} states: split it "
                "into several charts"
            )
            return


# Its parts, in numbers


def _part_problems(hierarchy: Hierarchy, timeouts: Mapping[Any, object]) -> Iterator[str]:
    for node in hierarchy.nodes:
        yield from _state_problems(hierarchy, node)
    for state, ticks in timeouts.items():
        if type(ticks) is not int or ticks < 1:
            must = "must be a whole number of ticks, 1 or more"
            yield f"timeouts[{state_text(state)}] {must}, got {ticks!r}"
    for arc in hierarchy.arcs:
        for problem in _arc_problems(hierarchy, arc):
            yield f"transition {arc.number + 1} ({arc.written}): {problem}"
    yield from _share_problems(hierarchy)


def _state_problems(tree: Hierarchy, node: Node) -> Iterator[str]:
    text = repr(tree.texts[node.number]) if node.number else "the chart"
    if node.kind == "final" and tree.nodes[node.parent].kind == "parallel":
        yield f"state {text} is a region, which cannot be final itself: put a final state inside"
    for problem in _target_problems(tree, node.initial, node.number):
        yield f"initial of {text}: {problem}"


def _arc_problems(tree: Hierarchy, arc: Arc) -> Iterator[str]:
    source, text = tree.nodes[arc.source], tree.texts[arc.source]
    if source.kind == "final":
        yield (
            f"it leaves {text!r}, which is a final state: remove it, or take the state out of "
            "final_states"
        )
    yield from _target_problems(tree, arc.targets)
    is_inside = arc.targets and not [*_outside(tree, arc.source, arc.targets)]
    if arc.written.internal and not (source.kind == "composite" and is_inside):
        yield (
            "it is internal, so its source must be a composite with one active substate, and its "
            "targets must lie inside that: leave out internal"
        )


def _target_problems(
    tree: Hierarchy, targets: Sequence[int | HistoryAt], around: int = 0
) -> Iterator[str]:
    """Yield why targets cannot be entered together, those of a composite inside it."""
    for outside in _outside(tree, around, targets):
        yield f"{outside!r} does not lie inside {tree.texts[around]!r}: name a state inside"
    for target in targets:
        if isinstance(target, HistoryAt):
            if not tree.nodes[target.composite].children:
                text = tree.texts[target.composite]
                yield f"{text!r} has no substates, so it has no history: name a composite"
            yield from _target_problems(tree, target.default, target.composite)
    # in document order, neighbours tell of all others
    for one, other in pairwise(sorted(map(_number, targets))):
        around = next(
            each
            for each in (one, *tree.ancestors(one))
            if each == other or tree.is_inside(other, each)
        )
        if around == one or tree.nodes[around].kind != "parallel":
            yield (
                f"{tree.texts[one]!r} and {tree.texts[other]!r} do not lie in different regions, "
                "so they are never active together: name one state in each region"
            )


def _number(target: int | HistoryAt) -> int:
    return target.composite if isinstance(target, HistoryAt) else target


def _outside(tree: Hierarchy, composite: int, targets: Iterable[int | HistoryAt]) -> Iterator[str]:
    """Yield the targets that do not lie inside a composite; its own history does."""
    for target in targets:
        is_own = isinstance(target, HistoryAt) and target.composite == composite
        if not is_own and not tree.is_inside(_number(target), composite):
            yield tree.texts[_number(target)]


def _share_problems(hierarchy: Hierarchy) -> Iterator[str]:
    shares: dict[tuple[str | None, int], float] = {}
    for arc in hierarchy.arcs:
        key = arc.written.trigger, arc.source
        shares[key] = shares.get(key, 0.0) + (arc.written.probability or 0.0)
    for (trigger, source), total in shares.items():
        if total > 1 + _ROUNDING:
            yield (
                f"the probabilities of {trigger or ALWAYS!r} in {hierarchy.texts[source]!r} "
                f"add up to {total:g}, which is more than 1: lower them"
            )
