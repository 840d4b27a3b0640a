"""Appendix D of the SCXML recommendation, transcribed: it shares nothing with prism.

https://www.w3.org/TR/scxml/#AlgorithmforSCXMLInterpretation, function by function, under its names.
Data, invocations and delayed events are left out. Guards are functions of the configuration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field


@dataclass(eq=False)
class Element:
    """A ``<state>``, ``<parallel>``, ``<final>``, ``<history>`` or the ``<scxml>`` itself."""

    id: str
    tag: str = "state"
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)
    transitions: list[TransitionElement] = field(default_factory=list)
    initial: list[Element] = field(default_factory=list)
    deep: bool = False
    order: int = 0


@dataclass(eq=False)
class TransitionElement:
    """A ``<transition>``; without an event it is eventless."""

    name: int
    source: Element
    target: list[Element]
    event: str | None = None
    cond: Callable[[Interpreter], bool] | None = None
    internal: bool = False


class Interpreter:
    """The global variables and procedures of the appendix."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self.configuration: set[Element] = set()
        self.historyValue: dict[Element, list[Element]] = {}
        self.internalQueue: deque[str] = deque()
        self.running = True
        self.trace: list[str] = []
        self.microsteps = 0

    # procedure interpret, mainEventLoop

    def interpret(self) -> None:
        """Enter the initial states and settle."""
        start = TransitionElement(-1, self.root, self.root.initial)
        self.enterStates([start])
        self.macrostep()

    def send(self, event: str) -> bool:
        """Process one external event; return whether it enabled anything."""
        if not self.running:
            return False
        enabled = self.selectTransitions(event)
        if enabled:
            self.microstep(enabled)
            self.macrostep()
        return bool(enabled)

    def macrostep(self) -> None:
        """Take eventless transitions and internal events until there are none."""
        while self.running:
            enabled = self.selectTransitions(None)
            if not enabled:
                if not self.internalQueue:
                    return
                enabled = self.selectTransitions(self.internalQueue.popleft())
            if enabled:
                self.microstep(enabled)

    # selecting

    def selectTransitions(self, event: str | None) -> list[TransitionElement]:
        """As in the appendix; without an event, ``selectEventlessTransitions``."""
        enabledTransitions: list[TransitionElement] = []
        for state in self.inDocumentOrder(filter(isAtomicState, self.configuration)):
            loop = (t for s in [state, *getProperAncestors(state, None)] for t in s.transitions)
            found = next((t for t in loop if t.event == event and self.conditionMatch(t)), None)
            if found is not None and found not in enabledTransitions:
                enabledTransitions.append(found)
        return self.removeConflictingTransitions(enabledTransitions)

    def conditionMatch(self, t: TransitionElement) -> bool:
        """As in the appendix."""
        return t.cond is None or t.cond(self)

    def removeConflictingTransitions(
        self, enabledTransitions: list[TransitionElement]
    ) -> list[TransitionElement]:
        """As in the appendix."""
        filteredTransitions: list[TransitionElement] = []
        for t1 in enabledTransitions:
            t1Preempted = False
            transitionsToRemove = []
            for t2 in filteredTransitions:
                if self.computeExitSet([t1]) & self.computeExitSet([t2]):
                    if isDescendant(t1.source, t2.source):
                        transitionsToRemove.append(t2)
                    else:
                        t1Preempted = True
                        break
            if not t1Preempted:
                for t3 in transitionsToRemove:
                    filteredTransitions.remove(t3)
                filteredTransitions.append(t1)
        return filteredTransitions

    # a microstep

    def microstep(self, enabledTransitions: list[TransitionElement]) -> None:
        """As in the appendix."""
        self.microsteps += 1
        if self.microsteps > 400:
            raise RecursionError("no rest")
        self.exitStates(enabledTransitions)
        for t in enabledTransitions:
            self.trace.append(f"t{t.name}")
        self.enterStates(enabledTransitions)

    def exitStates(self, enabledTransitions: list[TransitionElement]) -> None:
        """As in the appendix."""
        statesToExit = self.computeExitSet(enabledTransitions)
        ordered = list(reversed(self.inDocumentOrder(statesToExit)))
        for s in ordered:
            for h in s.children:
                if h.tag == "history" and h.deep:
                    self.historyValue[h] = self.inDocumentOrder(
                        s0 for s0 in self.configuration if isAtomicState(s0) and isDescendant(s0, s)
                    )
                elif h.tag == "history":
                    self.historyValue[h] = self.inDocumentOrder(
                        s0 for s0 in self.configuration if s0.parent is s
                    )
        for s in ordered:
            self.trace.append(f"-{s.id}")
            self.configuration.discard(s)

    def computeExitSet(self, transitions: Iterable[TransitionElement]) -> set[Element]:
        """As in the appendix."""
        statesToExit = set()
        for t in transitions:
            if t.target:
                domain = self.getTransitionDomain(t)
                for s in self.configuration:
                    if isDescendant(s, domain):
                        statesToExit.add(s)
        return statesToExit

    def enterStates(self, enabledTransitions: list[TransitionElement]) -> None:
        """As in the appendix."""
        statesToEnter: set[Element] = set()
        self.computeEntrySet(enabledTransitions, statesToEnter)
        for s in self.inDocumentOrder(statesToEnter):
            self.configuration.add(s)
            self.trace.append(f"+{s.id}")
            if s.tag == "final":
                parent = s.parent
                assert parent is not None
                if parent.tag == "scxml":
                    self.running = False
                else:
                    self.internalQueue.append(f"done.state.{parent.id}")
                    grandparent = parent.parent
                    assert grandparent is not None
                    if grandparent.tag == "parallel" and all(
                        self.isInFinalState(child) for child in getChildStates(grandparent)
                    ):
                        self.internalQueue.append(f"done.state.{grandparent.id}")

    def computeEntrySet(
        self, transitions: list[TransitionElement], statesToEnter: set[Element]
    ) -> None:
        """As in the appendix."""
        for t in transitions:
            for s in t.target:
                self.addDescendantStatesToEnter(s, statesToEnter)
            ancestor = self.root if t.name == -1 else self.getTransitionDomain(t)
            for s in self.getEffectiveTargetStates(t):
                self.addAncestorStatesToEnter(s, ancestor, statesToEnter)

    def addDescendantStatesToEnter(self, state: Element, statesToEnter: set[Element]) -> None:
        """As in the appendix."""
        if state.tag == "history":
            for s in self.historyValue.get(state, state.initial):
                self.addDescendantStatesToEnter(s, statesToEnter)
            for s in self.historyValue.get(state, state.initial):
                self.addAncestorStatesToEnter(s, state.parent, statesToEnter)
            return

        statesToEnter.add(state)
        if isCompoundState(state):
            for s in state.initial:
                self.addDescendantStatesToEnter(s, statesToEnter)
            for s in state.initial:
                self.addAncestorStatesToEnter(s, state, statesToEnter)
        elif state.tag == "parallel":
            for child in getChildStates(state):
                if not any(isDescendant(s, child) for s in statesToEnter):
                    self.addDescendantStatesToEnter(child, statesToEnter)

    def addAncestorStatesToEnter(
        self, state: Element, ancestor: Element | None, statesToEnter: set[Element]
    ) -> None:
        """As in the appendix."""
        for anc in getProperAncestors(state, ancestor):
            statesToEnter.add(anc)
            if anc.tag == "parallel":
                for child in getChildStates(anc):
                    if not any(isDescendant(s, child) for s in statesToEnter):
                        self.addDescendantStatesToEnter(child, statesToEnter)

    def isInFinalState(self, s: Element) -> bool:
        """As in the appendix."""
        if isCompoundState(s):
            return any(c.tag == "final" and c in self.configuration for c in getChildStates(s))
        if s.tag == "parallel":
            return all(self.isInFinalState(c) for c in getChildStates(s))
        return False

    def getTransitionDomain(self, t: TransitionElement) -> Element | None:
        """As in the appendix."""
        tstates = self.getEffectiveTargetStates(t)
        if not tstates:
            return None
        if (
            t.internal
            and isCompoundState(t.source)
            and all(isDescendant(s, t.source) for s in tstates)
        ):
            return t.source
        return self.findLCCA([t.source, *tstates])

    def findLCCA(self, stateList: list[Element]) -> Element:
        """As in the appendix."""
        for anc in getProperAncestors(stateList[0], None):
            is_candidate = isCompoundState(anc) or anc.tag == "scxml"
            if is_candidate and all(isDescendant(s, anc) for s in stateList[1:]):
                return anc
        raise AssertionError("the scxml element is an ancestor of all")

    def getEffectiveTargetStates(self, transition: TransitionElement) -> list[Element]:
        """As in the appendix."""
        targets: list[Element] = []
        for s in transition.target:
            found = self.historyValue.get(s, s.initial) if s.tag == "history" else [s]
            targets += [each for each in found if each not in targets]
        return targets

    # helpers of the tests

    def inDocumentOrder(self, states: Iterable[Element]) -> list[Element]:
        """Sort states."""
        return sorted(states, key=lambda s: s.order)

    def leaves(self) -> tuple[str, ...]:
        """The atomic states that are active."""
        return tuple(s.id for s in self.inDocumentOrder(filter(isAtomicState, self.configuration)))


def getProperAncestors(state1: Element, state2: Element | None) -> list[Element]:
    """As in the appendix; the scxml element is one of them."""
    found = []
    anc = state1.parent
    while anc is not None and anc is not state2:
        found.append(anc)
        anc = anc.parent
    return found


def isDescendant(state1: Element, state2: Element | None) -> bool:
    """As in the appendix."""
    return state2 in getProperAncestors(state1, None)


def getChildStates(state1: Element) -> list[Element]:
    """As in the appendix: without histories."""
    return [child for child in state1.children if child.tag != "history"]


def isCompoundState(s: Element) -> bool:
    """As in the appendix: a state that has children."""
    return s.tag == "state" and bool(getChildStates(s))


def isAtomicState(s: Element) -> bool:
    """As in the appendix."""
    return s.tag in ("state", "final") and not getChildStates(s)
