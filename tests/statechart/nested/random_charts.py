"""Random charts, each as the elements of Appendix D and as a chart of prism's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

from prism.statechart import History, State, Statechart, Transition, state_enum
from tests.statechart.nested.appendix_d import (
    Element,
    Interpreter,
    TransitionElement,
    getChildStates,
    isCompoundState,
    isDescendant,
)

EVENTS = ("a", "b", "c")


@dataclass
class Twins:
    """One chart, twice."""

    chart: Statechart[Any]
    agent: Any
    interpreter: Interpreter
    trace: list[str]


def make_twins(seed: int, *, settles: bool = True) -> Twins:
    """Make a random chart, in which events may follow of themselves."""
    rng = Random(seed)
    root = _tree(rng, settles)
    states = [each for each in _all(root) if each.tag not in ("history", "scxml")]
    _transitions(rng, root, states, settles)
    trace: list[str] = []
    chart = _chart(root, states, trace)
    agent = SimpleNamespace(state=None, state_memory=None)
    return Twins(chart, agent, Interpreter(root), trace)


def _tree(rng: Random, settles: bool) -> Element:
    names = (f"s{number}" for number in range(1000))
    root = Element("root", "scxml")

    def grow(parent: Element, depth: int) -> None:
        least = 2 if parent.tag == "parallel" else 1
        for _ in range(rng.randint(least, 3)):
            made = Element(next(names), parent=parent)
            parent.children.append(made)
            roll = rng.random()
            if depth < 4 and (parent.tag == "parallel" or roll < 0.5):
                is_parallel = depth < 3 and rng.random() < 0.35
                made.tag = "parallel" if is_parallel else "state"
                grow(made, depth + 1)
            elif roll > 0.85 and parent.tag == "state" and settles:
                made.tag = "final"

        if parent.tag != "parallel":
            while all(child.tag == "final" for child in parent.children):
                parent.children[0].tag = "state"
            inner = [each for each in _all(parent) if each is not parent]
            direct = rng.random() < 0.7
            parent.initial = [rng.choice(parent.children if direct else inner)]

    grow(root, 1)
    _add_histories(rng, root)
    for order, element in enumerate(_all(root)):
        element.order = order
    return root


def _add_histories(rng: Random, root: Element) -> None:
    for state in [each for each in _all(root) if getChildStates(each) and each is not root]:
        for deep in (False, True):
            if rng.random() < 0.5:
                default = getChildStates(state) if state.tag == "parallel" else state.initial
                name = f"{state.id}.H{'*' * deep}"
                made = Element(name, "history", state, initial=default, deep=deep)
                state.children.append(made)


def _all(element: Element) -> list[Element]:
    return [element, *(found for child in element.children for found in _all(child))]


def _transitions(rng: Random, root: Element, states: list[Element], settles: bool) -> None:
    sources = [state for state in states if state.tag != "final"]
    histories = [each for each in _all(root) if each.tag == "history"]
    composites = [state for state in states if getChildStates(state)]
    for name in range(rng.randint(6, 14)):
        source = rng.choice(sources)
        event: str | None = rng.choice(EVENTS)
        cond_on = rng.choice(states) if rng.random() < 0.3 else None
        roll = rng.random()
        if settles and roll < 0.12:
            event, cond_on = None, rng.choice(states)
        elif settles and composites and roll < 0.3:
            event = f"done.state.{rng.choice(composites).id}"

        targets = [rng.choice(states)]
        roll = rng.random()
        if histories and roll < 0.2:
            targets = [rng.choice(histories)]
        elif roll < 0.27:
            targets = []
        elif roll < 0.4:
            targets = _one_in_each_region(rng, states) or targets

        is_inside = bool(targets) and all(isDescendant(each, source) for each in targets)
        # what leads out of a composite is not internal, whatever it says
        internal = rng.random() < 0.6 if isCompoundState(source) and is_inside else name % 4 == 3
        cond = None if cond_on is None else partial(_is_active, cond_on)
        source.transitions.append(TransitionElement(name, source, targets, event, cond, internal))


def _is_active(state: Element, interpreter: Interpreter) -> bool:
    return state in interpreter.configuration


def _one_in_each_region(rng: Random, states: list[Element]) -> list[Element]:
    parallels = [state for state in states if state.tag == "parallel"]
    if not parallels:
        return []
    regions = getChildStates(rng.choice(parallels))
    inside = [[each for each in states if isDescendant(each, region)] for region in regions]
    return [rng.choice(own) for own in inside if own]


# As a chart of prism's


def _chart(root: Element, states: list[Element], trace: list[str]) -> Statechart[Any]:
    enum = state_enum("Random", [state.id for state in states])

    def target(element: Element) -> Any:
        if element.tag == "history":
            assert element.parent is not None
            return History(enum(element.parent.id), deep=element.deep, default=_default_of(element))
        return enum(element.id)

    def _default_of(element: Element) -> Any:
        given = tuple(enum(each.id) for each in element.initial)
        return given if len(given) > 1 else given[0]

    def written(element: Element) -> Any:
        inside = getChildStates(element)
        return State(
            enum(element.id),
            [written(child) for child in inside],
            initial=enum(element.initial[0].id) if isCompoundState(element) else None,
            parallel=element.tag == "parallel",
            entry=_Note(f"+{element.id}", trace),
            exit=_exit_of(element, trace),
        )

    items = [item for state in states for item in state.transitions]
    is_in = {state.id: _IsIn(state) for state in states}
    return Statechart(
        [written(child) for child in root.children],
        [
            Transition(
                item.event,
                enum(item.source.id),
                tuple(map(target, item.target)) or None,
                None if item.cond is None else is_in[item.cond.args[0].id],  # type: ignore[attr-defined]
                _Note(f"t{item.name}", trace),
                internal=item.internal,
            )
            for item in items
        ],
        initial=enum(root.initial[0].id),
        final_states=[enum(state.id) for state in states if state.tag == "final"],
    )


def _exit_of(element: Element, trace: list[str]) -> Any:
    assert element.parent is not None
    # no agent leaves a final state at the top
    ends = element.tag == "final" and element.parent.tag == "scxml"
    return None if ends else _Note(f"-{element.id}", trace)


class _IsIn:
    """A guard that passes while a state is active."""

    def __init__(self, element: Element) -> None:
        self.__name__ = f"in {element.id}"
        self._leaves = {each.id for each in _all(element)}

    def __call__(self, agent: Any, context: Any) -> bool:
        return not self._leaves.isdisjoint(agent.state.split("+"))


class _Note:
    """An action that notes that it ran."""

    def __init__(self, text: str, trace: list[str]) -> None:
        self.text = self.__name__ = text
        self.trace = trace

    def __call__(self, agent: Any, context: Any) -> None:
        self.trace.append(self.text)
