"""A chart's JSON form as it is declared, and read.

pydantic checks the shape of a document, and the chart's own checks say everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from reprlib import repr as brief
from typing import Any, Literal

from pydantic import Field

from prism.errors import DefinitionError
from prism.files._declarations import AnyText, Declaration, WholeNumber, shaped
from prism.files._source import Problem, Problems, Where
from prism.statechart._definition import DEFAULT_NAME, Definition
from prism.statechart._nesting import EventDescriptor, In, State
from prism.statechart._tree.problems import joined
from prism.statechart.formats._names import Functions, looked_up, unknown
from prism.statechart.states import state_enum, state_text
from prism.statechart.transitions import ANY_STATE, History, Transition

MOST_LEVELS = 100
"""Levels of states inside states that a document may have."""

Names = AnyText | list[AnyText]


class HistoryDocument(Declaration):
    """A history as a target."""

    history: AnyText
    deep: bool = False
    default: Names | None = None


Place = AnyText | HistoryDocument


class StateDocument(Declaration):
    """A state with others inside, or with actions; they stand in it by name."""

    state: AnyText
    states: list[AnyText | StateDocument] = Field(default_factory=list)
    initial: Place | list[Place] | None = None
    parallel: bool = False
    entry: Names = Field(default_factory=list)
    exit: Names = Field(default_factory=list)


class InDocument(Declaration):
    """A guard: a state is active."""

    state: AnyText = Field(alias="in")


class TransitionDocument(Declaration):
    """One entry of ``transitions``; guard, action, rate and after may be names of functions.

    A trigger that was read from SCXML is a descriptor, which matches events by their beginnings.
    """

    trigger: AnyText | None
    descriptor: bool = False
    source: AnyText
    target: Place | list[Place] | None
    guard: AnyText | InDocument | None = None
    action: AnyText | None = None
    internal: bool = False
    after: WholeNumber | AnyText | None = None
    rate: float | AnyText | None = None
    probability: float | None = None


class ChartDocument(Declaration):
    """The document: ``docs/charts.md`` describes it."""

    version: Literal[2] = Field(alias="schema")
    states: list[AnyText | StateDocument]
    initial: Names
    transitions: list[TransitionDocument]
    name: AnyText = DEFAULT_NAME
    description: AnyText = ""
    decision_states: list[AnyText] = Field(default_factory=list)
    timeouts: dict[AnyText, int] = Field(default_factory=dict)
    strict: bool = False
    final_states: list[AnyText] = Field(default_factory=list)
    needs: list[AnyText] = Field(default_factory=list)


def read_chart(
    data: object,
    problems: Problems,
    guards: Functions | None,
    actions: Functions | None,
    enum: type[Enum] | None,
) -> Definition[Any]:
    """Read a chart: see `Statechart.from_dict`.

    Args:
        data: The document.
        problems: What is wrong with it so far.
        guards: The functions for the names of guards.
        actions: The functions for the names of actions.
        enum: The class of the states; None for one made from the texts.
    """
    data = dict(data) if isinstance(data, Mapping) else data
    document = shaped(ChartDocument, data, problems)
    arguments: dict[str, Any] = {}
    if document is not None:
        # an empty mapping may still find what it is asked
        functions = {"guard": {} if guards is None else guards}
        functions["action"] = {} if actions is None else actions
        try:
            arguments = _Parts(document, functions, problems, enum).arguments(document)
        except DefinitionError as error:
            problems.add(("states",), str(error))

    if problems.found:
        name = data.get("name", DEFAULT_NAME) if isinstance(data, dict) else DEFAULT_NAME
        raise _refused(brief(name), problems)
    return Definition(**arguments)


def _refused(name: str, problems: Problems) -> DefinitionError:
    told, count = [_told(problem) for problem in problems.errors], problems.counts["error"]
    if count == 1:
        return DefinitionError(f"chart {name}: {told[0]}")

    listed = joined(told, "\n  ", count - len(told))
    return DefinitionError(f"chart {name} has {count} problems:\n  {listed}")


def _told(problem: Problem) -> str:
    place = ", ".join(filter(None, (f"line {problem.line}" if problem.line else "", problem.key)))
    return f"{place}: {problem.message}" if place else problem.message


def _texts(states: Sequence[str | StateDocument], level: int = 1) -> Iterator[str]:
    """Yield the texts of all states, in document order."""
    if level > MOST_LEVELS:
        raise DefinitionError(f"are nested more than {MOST_LEVELS} levels deep: split the chart")
    for each in states:
        yield each.state if isinstance(each, StateDocument) else each
        if isinstance(each, StateDocument):
            yield from _texts(each.states, level + 1)


class _Parts:
    """Makes the parts of a definition from those of a document.

    Args:
        document: The document.
        functions: Functions of each kind, by name.
        problems: Collects names that nothing has, and what the parts themselves refuse.
        enum: The class of the states; None for one made from the texts.

    Raises:
        DefinitionError: If the states cannot be those of a chart.
    """

    def __init__(
        self,
        document: ChartDocument,
        functions: Mapping[str, Functions],
        problems: Problems,
        enum: type[Enum] | None,
    ) -> None:
        made = state_enum("State", _texts(document.states))
        self._states: dict[str, Any] = {state_text(member): member for member in enum or made}
        owner = "the states" if enum is None else f"the members of {enum.__name__}"
        self._lacking = f"which is not among {owner}"
        self._functions = functions
        self._problems = problems
        self._count = 0

    def arguments(self, document: ChartDocument) -> dict[str, Any]:
        """Return the arguments of the definition."""
        return {
            "states": self._each(self._state, document.states, "states"),
            "transitions": self._each(self._transition, document.transitions, "transitions"),
            "initial": self._place(document.initial, ("initial",)),
            "name": document.name,
            "decision_states": self._each(self._place, document.decision_states, "decision_states"),
            "timeouts": {
                self._place(text, ("timeouts", text)): ticks
                for text, ticks in document.timeouts.items()
            },
            "strict": document.strict,
            "final_states": self._each(self._place, document.final_states, "final_states"),
            "needs": document.needs,
            "description": document.description,
        }

    def _each(
        self, make: Callable[[Any, Where], Any], items: str | Sequence[Any], *where: str | int
    ) -> list[Any]:
        items = [items] if isinstance(items, str) else items
        return [make(item, (*where, number)) for number, item in enumerate(items)]

    def _made(self, where: Where, make: Callable[[], Any]) -> Any:
        """Make a part; what it refuses is a problem, unless something inside is wrong already."""
        count = self._count
        try:
            return make()
        except DefinitionError as error:
            if self._count == count:
                self._add(where, str(error))
        return None

    def _add(self, where: Where, message: str) -> None:
        self._count += 1
        self._problems.add(where, message)

    def _place(self, given: Any, where: Where) -> Any:
        """Return a state, several or a history."""
        if given is None:
            return None
        if isinstance(given, list):
            places = tuple(self._place(each, where) for each in given)
            return places[0] if len(places) == 1 else places
        if isinstance(given, HistoryDocument):
            state, default = (self._place(each, where) for each in (given.history, given.default))
            return History(state, given.deep, default)
        if given not in self._states:
            self._add(where, f"names {brief(given)}, {self._lacking}")
        return self._states.get(given)

    def _state(self, given: Any, where: Where) -> Any:
        """Return a state, with the states inside it."""
        if not isinstance(given, StateDocument):
            return self._place(given, where)

        return self._made(
            where,
            lambda: State(
                self._place(given.state, where),
                self._each(self._state, given.states, *where, "states"),
                initial=self._place(given.initial, (*where, "initial")),
                parallel=given.parallel,
                entry=self._each(self._action, given.entry, *where, "entry"),
                exit=self._each(self._action, given.exit, *where, "exit"),
            ),
        )

    def _transition(self, given: TransitionDocument, where: Where) -> Any:
        trigger = given.trigger
        is_any = given.source == ANY_STATE and ANY_STATE not in self._states
        return self._made(
            where,
            lambda: Transition(
                EventDescriptor(trigger) if given.descriptor and trigger else trigger,
                ANY_STATE if is_any else self._place(given.source, (*where, "source")),
                self._place(given.target, (*where, "target")),
                self._guard(given.guard, (*where, "guard")),
                self._action(given.action, (*where, "action")),
                internal=given.internal,
                after=self._timing(given.after, (*where, "after")),
                rate=self._timing(given.rate, (*where, "rate")),
                probability=given.probability,
            ),
        )

    def _guard(self, given: Any, where: Where) -> Any:
        if isinstance(given, InDocument):
            return In(self._place(given.state, where))
        return self._function("guard", given, where)

    def _timing(self, given: Any, where: Where) -> Any:
        return self._function("guard", given, where) if isinstance(given, str) else given

    def _action(self, name: str | None, where: Where) -> Any:
        return self._function("action", name, where)

    def _function(self, kind: str, name: str | None, where: Where) -> Any:
        known = self._functions[kind]
        function = looked_up(known, name)
        if function is None and name is not None:
            self._add(where, unknown(kind, name, known))
        return function
