"""The checks that a chart must pass, each with its message; a flat one is a tree of depth one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import accumulate, chain, islice
from typing import Any

from prism.statechart._nesting import DONE, SEPARATOR, EventDescriptor, In, State
from prism.statechart._tree.hierarchy import Hierarchy, member_of, with_insides
from prism.statechart._tree.numbers import CHART, Tree
from prism.statechart.states import is_state, state_text
from prism.statechart.transitions import (
    ALWAYS,
    History,
    Transition,
    as_tuple,
    is_any_state,
)

MOST_TRANSITIONS = 100_000
"""Transitions from leaf to leaf that a chart may stand for."""

MOST_TARGETS = 100
"""States that one target may name, since entering them takes time by their square."""

MOST_TOLD = 20
"""Problems, or names in one of them, that a message lists."""

_ROUNDING = 1e-9


def chart_problems(hierarchy: Hierarchy) -> list[str]:
    """List what is wrong, as far as a message can; each kind needs those before it to be sound."""
    members = [member_of(state) for state in with_insides(hierarchy.states)]
    kinds: tuple[Callable[[], Iterable[str]], ...] = (
        lambda: _set_problems(members),
        lambda: _text_problems(hierarchy, members),
        lambda: _naming_problems(hierarchy, members),
        lambda: _count_problems(sum(_sizes_as_written(hierarchy))),
        lambda: chain(
            _state_problems(hierarchy), _all_transitions(hierarchy), _share_problems(hierarchy)
        ),
        lambda: _size_problems(hierarchy),
    )
    for kind in kinds:
        # there may be as many as a product of what was written
        if problems := [*islice(kind(), MOST_TOLD)]:
            return problems if len(problems) < MOST_TOLD else [*problems, "and more"]
    return []


def need_problems(needs: Iterable[Any]) -> list[str]:
    """List what is wrong with ``needs``."""
    return [
        f"needs must list names of attributes, got {name!r}"
        for name in needs
        if not isinstance(name, str) or not name.isidentifier()
    ]


# Names


def _set_problems(states: Sequence[Any]) -> Iterator[str]:
    """Yield why values cannot be the states of a chart."""
    wrong = [repr(state) for state in states if not is_state(state)]
    enums = sorted({type(state).__name__ for state in states})
    if not states:
        yield "a chart needs at least one state"
    elif wrong:
        yield f"states must be members of a str-based Enum, such as a StrEnum, got {joined(wrong)}"
    elif len({type(state) for state in states}) > 1:
        yield f"states must all come from one enum, got members of {joined(enums)}"


def _text_problems(hierarchy: Hierarchy, members: Sequence[Any]) -> Iterator[str]:
    places = dict[str, list[str]]()
    for state in with_insides(hierarchy.states):
        for inside in state.states if isinstance(state, State) else ():
            text = state_text(member_of(inside))
            places.setdefault(text, []).append(f"in {state_text(member_of(state))!r}")
    for state in hierarchy.states:
        places.setdefault(state_text(member_of(state)), []).append("at the top")

    yield from (
        f"state {text!r} appears in the tree twice, {' and '.join(found)}: remove one"
        for text, found in places.items()
        if len(found) > 1
    )

    if any(isinstance(each, State) and each.parallel for each in with_insides(hierarchy.states)):
        yield from (
            f"state {state_text(member)!r} contains a {SEPARATOR!r}, which separates the leaves of "
            "a configuration: rename it"
            for member in members
            if SEPARATOR in state_text(member)
        )


def joined(items: Sequence[str], separator: str = ", ", beyond: int = 0) -> str:
    """Return several texts, and so many beyond them, as one; of very many only the first."""
    more = len(items) - MOST_TOLD + beyond
    return separator.join([*items[:MOST_TOLD], f"and {more} more"] if more > 0 else items)


def _naming_problems(hierarchy: Hierarchy, members: Sequence[Any]) -> Iterator[str]:
    """Yield a problem for each name that is no state of the chart."""
    known = set(members)
    is_not = f"is not among the states ({joined([*map(state_text, members)])})"
    yield from (
        f"{what} {state!r} {is_not}"
        for what, state in _named(hierarchy)
        if not _is_among(state, known)
    )
    for number, item in enumerate(hierarchy.transitions, start=1):
        if not isinstance(item, Transition):
            yield f"transition {number} must be a Transition, got {item!r}"
            continue
        yield from (
            f"transition {number} ({item}): {what} {state!r} is not among the states"
            for what, state in _named_by(item)
            if not _is_among(state, known)
        )


def _is_among(state: Any, known: set[Any]) -> bool:
    """Return whether a value is one of a chart's states."""
    # by enum, too: members of two enums with equal texts compare equal
    return isinstance(state, Enum) and type(state) is type(next(iter(known))) and state in known


def _named(hierarchy: Hierarchy) -> Iterator[tuple[str, Any]]:
    yield from (("initial state", state) for state in as_tuple(hierarchy.initial))
    yield from (("decision state", state) for state in hierarchy.decision_states)
    yield from (("final state", state) for state in hierarchy.final_states)
    yield from (("state with a limit in timeouts", state) for state in hierarchy.timeouts)
    for each in with_insides(hierarchy.states):
        if isinstance(each, State):
            yield from (
                ("initial state", state.state if isinstance(state, History) else state)
                for state in each.initial
            )


def _named_by(item: Transition[Any]) -> Iterator[tuple[str, Any]]:
    if not is_any_state(item.source):
        yield "source", item.source
    if isinstance(item.guard, In):
        yield "state of the guard", item.guard.state
    for target in () if item.target is None else as_tuple(item.target):
        yield "target", target.state if isinstance(target, History) else target
        if isinstance(target, History) and target.default is not None:
            yield from (("default", state) for state in as_tuple(target.default))


# States


def _state_problems(hierarchy: Hierarchy) -> Iterator[str]:
    tree = hierarchy.tree
    yield from _initial_problems(tree)
    yield from _final_problems(hierarchy)
    for node in tree.nodes[1:]:
        text = state_text(node.state)
        if node.kind == "final" and tree.nodes[node.parent].kind == "parallel":
            yield (
                f"state {text!r} is a region, which cannot be final itself: put a final state "
                "inside"
            )

    for state, ticks in hierarchy.timeouts.items():
        if type(ticks) is not int or ticks < 1:
            must = "must be a whole number of ticks, 1 or more"
            yield f"timeouts[{state_text(state)}] {must}, got {ticks!r}"


def _final_problems(hierarchy: Hierarchy) -> Iterator[str]:
    tree, deciding = hierarchy.tree, {*hierarchy.decision_states}
    for state in hierarchy.final_states:
        node = tree.nodes[tree.numbers[state_text(state)]]
        text = f"final state {state_text(state)!r}"
        if node.children:
            yield (
                f"{text} has substates: make one of these final, and the state around it is done "
                "when that one is entered"
            )
        if node.exit and node.parent == CHART:
            yield f"{text} has an exit action, but no agent leaves it: remove the action"
        if state in deciding:
            yield f"{text} cannot be a decision state: nothing is enabled there"
        if state in hierarchy.timeouts:
            yield f"{text} cannot have a limit in timeouts: no agent leaves it"


def _initial_problems(tree: Tree) -> Iterator[str]:
    for node in tree.nodes:
        text = "the chart" if node.number == CHART else repr(state_text(node.state))
        states = [number for number in node.initial if isinstance(number, int)]
        for number in states:
            if not tree.is_inside(number, node.number):
                inner = state_text(tree.nodes[number].state)
                yield f"initial state {inner!r} does not lie inside {text}: name a state inside"
        yield from (f"initial of {text}: {found}" for found in _apart(tree, states))


def _apart(tree: Tree, numbers: Sequence[int]) -> Iterator[str]:
    """Yield which of several states cannot be active together."""
    if len(numbers) > MOST_TARGETS:
        yield f"names more than {MOST_TARGETS} states: name a state around them"
        return
    # by which state inside it each state around was reached, and from which of the several
    reached: dict[int, tuple[int, int]] = {}
    for number in numbers:
        inner = number
        for around in (number, *tree.ancestors(number)):
            is_twice = around == number and number in reached
            before, first = reached.setdefault(around, (inner, number))
            is_between_regions = tree.nodes[around].kind == "parallel" and before != around
            if is_twice or not (before == inner or is_between_regions):
                one, other = (state_text(tree.nodes[each].state) for each in (first, number))
                yield (
                    f"{one!r} and {other!r} do not lie in different regions, so they are never "
                    "active together: name one state in each region"
                )
                break
            inner = around


# Transitions


def _all_transitions(hierarchy: Hierarchy) -> Iterator[str]:
    for number, item in enumerate(hierarchy.transitions, start=1):
        for problem in _transition_problems(hierarchy, item):
            yield f"transition {number} ({item}): {problem}"


def _transition_problems(hierarchy: Hierarchy, item: Transition[Any]) -> Iterator[str]:
    tree = hierarchy.tree
    # what was read from SCXML describes events, whatever their names
    trigger = None if isinstance(item.trigger, EventDescriptor) else item.trigger
    if trigger == "state":
        yield "a trigger cannot be called 'state': rename it"
    if trigger == ALWAYS and any(each.trigger is None for each in hierarchy.transitions):
        yield f"logs call eventless transitions {ALWAYS!r}: rename the trigger"
    if trigger is not None and trigger.startswith(DONE):
        number = tree.numbers.get(trigger.removeprefix(DONE))
        if number is None or not tree.nodes[number].children:
            yield "only a state with substates can be done: name a composite"

    yield from _target_problems(tree, item)
    if is_any_state(item.source):
        if item.internal:
            yield "a wildcard cannot be internal: name the composite"
        return

    source = tree.nodes[tree.numbers[state_text(item.source)]]
    if source.kind == "final":
        yield (
            f"it leaves {state_text(item.source)!r}, which is a final state: remove it, or take "
            "the state out of final_states"
        )
    if item.internal:
        yield from _internal_problems(tree, item, source.number)


def _target_problems(tree: Tree, item: Transition[Any]) -> Iterator[str]:
    numbers = []
    for target in () if item.target is None else as_tuple(item.target):
        is_history = isinstance(target, History)
        number = tree.numbers[state_text(target.state if is_history else target)]
        numbers.append(number)
        if not is_history:
            continue

        text = state_text(target.state)
        if not tree.nodes[number].children:
            yield f"{text!r} has no substates, so it has no history: name a composite"
        defaults = () if target.default is None else as_tuple(target.default)
        inside = [tree.numbers[state_text(each)] for each in defaults]
        for each in inside:
            if not tree.is_inside(each, number):
                inner = state_text(tree.nodes[each].state)
                yield f"the default {inner!r} does not lie inside {text!r}: name a state inside"
        yield from _apart(tree, inside)

    yield from _apart(tree, numbers)


def _internal_problems(tree: Tree, item: Transition[Any], source: int) -> Iterator[str]:
    targets = () if item.target is None else as_tuple(item.target)
    inside = [_lies_in(tree, source, each) for each in targets]
    if tree.nodes[source].kind != "composite":
        yield (
            f"it is internal, but {state_text(item.source)!r} is not a composite with one active "
            "substate: leave out internal"
        )
    elif not inside or not all(inside):
        yield (
            f"it is internal, so its target must lie inside {state_text(item.source)!r}: name a "
            "state inside, or leave out internal"
        )


def _lies_in(tree: Tree, composite: int, target: Any) -> bool:
    if not isinstance(target, History):
        return tree.is_inside(tree.numbers[state_text(target)], composite)
    # a composite's own history is something inside it
    number = tree.numbers[state_text(target.state)]
    return number == composite or tree.is_inside(number, composite)


def _share_problems(hierarchy: Hierarchy) -> Iterator[str]:
    shares: Counter[tuple[Any, int]] = Counter()
    has_shares = any(item.probability is not None for item in hierarchy.transitions)
    for arc in hierarchy.arcs if has_shares else ():
        share = arc.written.probability
        if share is None:
            continue
        shares[arc.written.trigger, arc.source] += share  # type: ignore[assignment]
        if any(number in hierarchy.decides for number in hierarchy.leaves_at(arc.source)):
            yield f"transition {arc.written}: a reasoner chooses there, so leave out probability"

    for (trigger, source), total in shares.items():
        if total > 1 + _ROUNDING:
            text = state_text(hierarchy.tree.nodes[source].state)
            yield (
                f"the probabilities of {trigger or ALWAYS!r} in {text!r} add up to {total:g}, "
                "which is more than 1: lower them"
            )


# Size


def _sizes_as_written(hierarchy: Hierarchy) -> Iterator[int]:
    """Yield how many transitions each one is, as a wildcard is one for every state at the top."""
    for item in hierarchy.transitions:
        yield len(hierarchy.states) if is_any_state(item.source) else 1


def _size_problems(hierarchy: Hierarchy) -> Iterator[str]:
    if any(node.children for node in hierarchy.tree.nodes[1:]):
        spans = ((arc, hierarchy.leaves_at(arc.source)) for arc in hierarchy.arcs)
        sizes = (len(leaves) * len(hierarchy.ends_of(arc, leaves[0])) for arc, leaves in spans)
        yield from _count_problems(next(filter(_is_too_large, accumulate(sizes)), 0))


def _is_too_large(count: int) -> bool:
    return count > MOST_TRANSITIONS


def _count_problems(count: int) -> Iterator[str]:
    if _is_too_large(count):
        yield (
            f"its transitions expand to more than {MOST_TRANSITIONS:,} between leaves: split it "
            "into several charts"
        )
