"""The checks that a chart must pass, each with its message; a flat one is a tree of depth one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from itertools import accumulate, islice, pairwise
from typing import Any

from prism.statechart._hierarchy import Hierarchy, member_of, with_insides
from prism.statechart._nesting import DONE, EventDescriptor, In, State
from prism.statechart._numbers import CHART, Arc, HistoryAt, Node, Tree
from prism.statechart.states import MOST_NAMED, SEPARATOR, is_state, joined, state_text
from prism.statechart.transitions import ALWAYS, History, Transition, as_tuple, is_any_state

MOST_TRANSITIONS = 100_000
"""Transitions from leaf to leaf that a chart may stand for."""

MOST_TARGETS = 100
"""States that one target may name, since entering them takes time by their square."""

_ROUNDING = 1e-9


def chart_problems(hierarchy: Hierarchy) -> list[str]:
    """List what is wrong, as far as a message can; each kind needs those before it to be sound."""
    kinds: tuple[Callable[[Hierarchy], Iterable[str]], ...] = (
        _set_problems,
        _naming_problems,
        _size_as_written,
        _part_problems,
        _size_problems,
    )
    for kind in kinds:
        # there may be as many as a product of what was written
        if problems := [*islice(kind(hierarchy), MOST_NAMED)]:
            return [*problems, "and more"] if len(problems) == MOST_NAMED else problems
    return []


# Names


def _set_problems(hierarchy: Hierarchy) -> Iterator[str]:
    """Yield why values cannot be the states of a chart."""
    states = [*with_insides(hierarchy.states)]
    members = [*map(member_of, states)]
    enums = {type(member) for member in members}
    wrong = [repr(member) for member in members if not is_state(member)]
    if not members:
        yield "a chart needs at least one state"
    elif wrong:
        yield f"states must be members of a str-based Enum, such as a StrEnum, got {joined(wrong)}"
    elif len(enums) > 1:
        names = sorted(enum.__name__ for enum in enums)
        yield f"states must all come from one enum, got members of {joined(names)}"

    has_regions = any(isinstance(each, State) and each.parallel for each in states)
    for text, count in Counter(map(state_text, members)).items():
        if count > 1:
            yield f"state {text!r} appears in the tree twice: remove one"
        if has_regions and SEPARATOR in text:
            yield f"state {text!r} contains a {SEPARATOR!r}, which separates leaves: rename it"


def _naming_problems(hierarchy: Hierarchy) -> Iterator[str]:
    """Yield a problem for each name that is no state of the chart."""
    members = [*map(member_of, with_insides(hierarchy.states))]
    enum, known = type(members[0]), {*members}
    listing = joined([*map(state_text, members)])

    def strangers(what: str, value: Any) -> Iterator[str]:
        """Yield what is not among the states of all that a value names."""
        for each in as_tuple(value):
            state = each.state if isinstance(each, History) else each
            # by enum, too: members of two enums with equal texts compare equal
            if not isinstance(state, Enum) or type(state) is not enum or state not in known:
                yield f"{what} {state!r} is not among the states"
            if isinstance(each, History) and each.default is not None:
                yield from strangers("default", each.default)

    beginnings = (
        each.initial for each in with_insides(hierarchy.states) if isinstance(each, State)
    )
    for what, value in (
        ("initial state", hierarchy.initial),
        ("decision state", hierarchy.decision_states),
        ("final state", hierarchy.final_states),
        ("state with a limit in timeouts", tuple(hierarchy.timeouts)),
        *(("initial state", initial) for initial in beginnings),
    ):
        yield from (f"{problem} ({listing})" for problem in strangers(what, value))
    for number, item in enumerate(hierarchy.transitions, start=1):
        if not isinstance(item, Transition):
            yield f"transition {number} must be a Transition, got {item!r}"
            continue
        for what, value in (
            ("source", () if is_any_state(item.source) else item.source),
            ("state of the guard", item.guard.state if isinstance(item.guard, In) else ()),
            ("target", () if item.target is None else item.target),
        ):
            for problem in strangers(what, value):
                yield f"transition {number} ({item}): {problem}"


# The parts of the chart, in numbers


def _part_problems(hierarchy: Hierarchy) -> Iterator[str]:
    tree = hierarchy.tree
    for node in tree.nodes:
        yield from _state_problems(tree, node)
    for text in map(state_text, hierarchy.final_states):
        if tree.nodes[tree.numbers[text]].children:
            yield (
                f"final state {text!r} has substates: make one of these final, and the state "
                "around it is done when that one is entered"
            )
    for state, ticks in hierarchy.timeouts.items():
        if type(ticks) is not int or ticks < 1:
            must = "must be a whole number of ticks, 1 or more"
            yield f"timeouts[{state_text(state)}] {must}, got {ticks!r}"
    # those of a wildcard are alike
    for place, arc in {arc.place: arc for arc in hierarchy.arcs}.items():
        for problem in _arc_problems(tree, arc):
            yield f"transition {place + 1} ({arc.written}): {problem}"
    yield from _share_problems(hierarchy)


def _state_problems(tree: Tree, node: Node) -> Iterator[str]:
    text = repr(tree.texts[node.number]) if node.number else "the chart"
    if node.kind == "final" and tree.nodes[node.parent].kind == "parallel":
        yield f"state {text} is a region, which cannot be final itself: put a final state inside"
    for outside in _outside(tree, node.number, node.initial):
        yield f"initial state {outside!r} does not lie inside {text}: name a state inside"
    for problem in _target_problems(tree, node.initial):
        yield f"initial of {text}: {problem}"


def _arc_problems(tree: Tree, arc: Arc) -> Iterator[str]:
    source, text, trigger = tree.nodes[arc.source], tree.texts[arc.source], arc.written.trigger
    # what was read from SCXML describes events, whatever their names
    if trigger is not None and not isinstance(trigger, EventDescriptor):
        done = tree.numbers.get(trigger.removeprefix(DONE), CHART)
        if trigger.startswith(DONE) and not (done and tree.nodes[done].children):
            yield "only a state with substates can be done: name a composite"
    if source.kind == "final":
        yield (
            f"it leaves {text!r}, which is a final state: remove it, or take the state out of "
            "final_states"
        )
    yield from _target_problems(tree, arc.targets)
    is_inside = arc.targets and not [*_outside(tree, arc.source, arc.targets)]
    is_sound = source.kind == "composite" and is_inside and not is_any_state(arc.written.source)
    if arc.written.internal and not is_sound:
        yield (
            "it is internal, so its source must be a composite with one active substate, and its "
            "targets must lie inside that: leave out internal"
        )


def _target_problems(tree: Tree, targets: Sequence[int | HistoryAt]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, HistoryAt):
            text = tree.texts[target.composite]
            if not tree.nodes[target.composite].children:
                yield f"{text!r} has no substates, so it has no history: name a composite"
            for outside in _outside(tree, target.composite, target.default):
                yield f"the default {outside!r} does not lie inside {text!r}: name a state inside"
            yield from _apart(tree, target.default)
    yield from _apart(tree, [*map(_number, targets)])


def _number(target: int | HistoryAt) -> int:
    return target.composite if isinstance(target, HistoryAt) else target


def _outside(tree: Tree, composite: int, targets: Iterable[int | HistoryAt]) -> Iterator[str]:
    """Yield the targets that do not lie inside a composite; its own history does."""
    for target in targets:
        is_own = isinstance(target, HistoryAt) and target.composite == composite
        if not is_own and not tree.is_inside(_number(target), composite):
            yield tree.texts[_number(target)]


def _apart(tree: Tree, numbers: Sequence[int]) -> Iterator[str]:
    """Yield why several states cannot be active together."""
    if len(numbers) > MOST_TARGETS:
        yield f"names more than {MOST_TARGETS} states: name a state around them"
        return
    # in document order, neighbours tell of all others
    for one, other in pairwise(sorted(numbers)):
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


def _share_problems(hierarchy: Hierarchy) -> Iterator[str]:
    shares: Counter[tuple[str | None, int]] = Counter()
    for arc in hierarchy.arcs:
        share = arc.written.probability
        if share is None:
            continue
        shares[arc.written.trigger, arc.source] += share  # type: ignore[assignment]
        if not hierarchy.decides.isdisjoint(hierarchy.leaves_at(arc.source)):
            yield f"transition {arc.written}: a reasoner chooses there, so leave out probability"

    for (trigger, source), total in shares.items():
        if total > 1 + _ROUNDING:
            yield (
                f"the probabilities of {trigger or ALWAYS!r} in {hierarchy.tree.texts[source]!r} "
                f"add up to {total:g}, which is more than 1: lower them"
            )


# Size


def _size_as_written(hierarchy: Hierarchy) -> Iterator[str]:
    """Count a wildcard as one for every state at the top."""
    wildcards = sum(is_any_state(item.source) for item in hierarchy.transitions)
    yield from _too_many([len(hierarchy.transitions) + wildcards * (len(hierarchy.states) - 1)])


def _size_problems(hierarchy: Hierarchy) -> Iterator[str]:
    spans = ((arc, hierarchy.leaves_at(arc.source)) for arc in hierarchy.arcs)
    sizes = (len(leaves) * len(hierarchy.ends_of(arc, leaves[0])) for arc, leaves in spans)
    if hierarchy.tree.has_composites:
        yield from _too_many(accumulate(sizes))


def _too_many(counts: Iterable[int]) -> Iterator[str]:
    if any(count > MOST_TRANSITIONS for count in counts):
        yield (
            f"its transitions expand to more than {MOST_TRANSITIONS:,} between leaves: split it "
            "into several charts"
        )
