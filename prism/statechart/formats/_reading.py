"""A chart's JSON form as it is declared, and read.

pydantic reads it, so this module is imported only where a chart is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from enum import Enum
from itertools import chain
from reprlib import repr as brief
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from prism.errors import DefinitionError
from prism.files._declarations import AnyText, Declaration, WholeNumber, keys_at, shaped
from prism.files._source import Problem, Problems, Source, Where
from prism.statechart._definition import Definition
from prism.statechart._nesting import EventDescriptor, In, State
from prism.statechart.formats._document import SCHEMA_VERSION
from prism.statechart.formats._names import Functions, joined, looked_up, unknown
from prism.statechart.states import state_enum, state_text
from prism.statechart.transitions import ANY_STATE, History, Transition

MOST_TRANSITIONS = 100_000
"""Transitions that a document may stand for; a wildcard counts once for every state."""

MOST_LEVELS = 100
"""Levels of states inside states that a document may have."""

_NEXT_LINE = "\n  "


def _trigger(name: str) -> str:
    if name == "state" or not name.strip():
        raise ValueError(f"a trigger cannot be called {brief(name)}: rename it")
    return name


def _attribute(name: str) -> str:
    if not name.isidentifier():
        raise ValueError(f"must be the name of an attribute, got {brief(name)}")
    return name


Name = Annotated[AnyText, Field(min_length=1)]
Names = AnyText | list[AnyText]
Trigger = Annotated[AnyText, AfterValidator(_trigger)]


class StateDocument(Declaration):
    """A state with others inside, or with actions; they stand in it by name."""

    state: Name
    states: list[Name | StateDocument] = Field(default_factory=list)
    initial: Names | None = None
    parallel: bool = False
    entry: Names | None = None
    exit: Names | None = None


class HistoryDocument(Declaration):
    """A history as a target."""

    history: AnyText
    deep: bool = False
    default: Names | None = None


class InDocument(Declaration):
    """A guard: a state is active."""

    state: AnyText = Field(alias="in")


Place = AnyText | HistoryDocument


class TransitionDocument(Declaration):
    """One entry of ``transitions``; guard, action, rate and after may be names of functions.

    A trigger that was read from SCXML is a descriptor, which matches events by their beginnings.
    """

    trigger: Trigger | None
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

    version: WholeNumber = Field(alias="schema")
    states: list[Name | StateDocument] = Field(min_length=1)
    initial: AnyText | Annotated[list[AnyText], Field(min_length=1)]
    transitions: list[TransitionDocument]
    name: AnyText = "statechart"
    description: AnyText = ""
    decision_states: list[AnyText] = Field(default_factory=list)
    timeouts: dict[AnyText, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    strict: bool = False
    final_states: list[AnyText] = Field(default_factory=list)
    needs: list[Annotated[AnyText, AfterValidator(_attribute)]] = Field(default_factory=list)


def read_chart(
    source: Source, guards: Functions | None, actions: Functions | None, enum: type[Enum] | None
) -> Definition[Any]:
    """Read a chart: see `Statechart.from_dict`."""
    functions: dict[str, Functions] = {
        "guard": {} if guards is None else guards,  # an empty one may still find what it is asked
        "action": {} if actions is None else actions,
    }
    data = _as_dicts(source.value)
    name = brief(data.get("name", "statechart"))
    if problem := _without_remedy(source.value, data):
        raise DefinitionError(f"chart {name}: {problem}")

    problems = Problems(source)
    document = shaped(ChartDocument, data, problems)
    # of what has the wrong shape, the rest is looked at, too: all offences are told at once
    for where, message in _contradictions(data, functions, enum):
        problems.add(where, message)

    if document is None or problems.found:
        raise _refused(name, problems)

    return _definition(document, _Parts(_texts(data), functions, enum))


def _refused(name: str, problems: Problems) -> DefinitionError:
    told, count = [_told(problem) for problem in problems.errors], problems.counts["error"]
    if count == 1:
        return DefinitionError(f"chart {name}: {told[0]}")

    listed = joined(told, _NEXT_LINE, count - len(told))
    return DefinitionError(f"chart {name} has {count} problems:\n  {listed}")


def _as_dicts(value: object) -> dict[Any, Any]:
    """Return a document as plain dicts, where it is made of other mappings."""
    data = dict(value) if isinstance(value, Mapping) else {}
    if isinstance(timeouts := data.get("timeouts"), Mapping):
        data["timeouts"] = dict(timeouts)
    if isinstance(items := data.get("transitions"), list):
        data["transitions"] = [dict(item) if isinstance(item, Mapping) else item for item in items]
    return data


def _without_remedy(value: object, data: Mapping[Any, Any]) -> str | None:
    """Return what is wrong with a document that is not looked into any further."""
    if not isinstance(value, Mapping):
        return "must be an object with the keys " + ", ".join(keys_at(ChartDocument, ()))

    version = data.get("schema")
    if type(version) is int and version != SCHEMA_VERSION:
        return f"has schema {version}, but this prism reads schema {SCHEMA_VERSION}"

    if _depth(data.get("states")) > MOST_LEVELS:
        return f"states are nested more than {MOST_LEVELS} levels deep: split the chart"

    states, sources = _texts(data), [item.get("source") for item in _moves(data)]
    wildcards = sources.count(ANY_STATE) if ANY_STATE not in states else 0
    if len(sources) + wildcards * (len(states) - 1) > MOST_TRANSITIONS:
        return (
            f"transitions: expand to more than {MOST_TRANSITIONS:,} transitions: split it into "
            "several charts"
        )

    return None


def _depth(states: Any) -> int:
    """Return how deep states lie, without recursion, as nobody has looked at the document yet."""
    depth, level = 0, [states]
    while level and depth <= MOST_LEVELS:
        inside = [each for one in level for each in _list(one)]
        level = [each.get("states") for each in inside if isinstance(each, Mapping)]
        depth += 1
    return depth


def _contradictions(
    data: Mapping[Any, Any], functions: Mapping[str, Functions], enum: type[Enum] | None
) -> Iterator[tuple[Where, str]]:
    """Yield where a document names something unknown, or contradicts itself about a state."""
    states = _texts(data)
    yield from _about_states(states, enum)
    yield from _about_places(data, set(states))
    for where, kind, name in _functions_named(data):
        if isinstance(name, str) and looked_up(functions[kind], name) is None:
            yield where, unknown(kind, name, functions[kind])


def _about_states(states: Sequence[str], enum: type[Enum] | None) -> Iterator[tuple[Where, str]]:
    counts = Counter(states)
    if twice := [brief(state) for state, count in counts.items() if count > 1]:
        yield ("states",), f"names {joined(twice, ', ')} twice: remove one"
    if enum is not None and (missing := counts.keys() - set(map(state_text, enum))):
        listing = joined([brief(state) for state in states if state in missing], ", ")
        yield ("states",), f"{enum.__name__} has no members {listing}: pass an enum with all states"


def _about_places(data: Mapping[Any, Any], states: Set[str]) -> Iterator[tuple[Where, str]]:
    """Yield where an unknown state is named, or a final one where something is enabled."""
    final = {*filter(_is_text, _list(data.get("final_states")))}
    for where, state in _states_named(data):
        is_source = where[-1] == "source"
        is_wildcard = is_source and state == ANY_STATE
        if states and state not in states and not is_wildcard:
            yield where, f"names {brief(state)}, which is not among the states"
        if state in final and (is_source or where[0] in ("decision_states", "timeouts")):
            problem = "which is a final state: no transition is enabled there"
            yield where, f"names {brief(state)}, {problem}"


def _states_named(data: Mapping[Any, Any]) -> Iterator[tuple[Where, str]]:
    """Yield the texts that name a state, and where."""
    for where, state in chain(_named_by_chart(data), _named_by_transitions(data)):
        if isinstance(state, str):
            yield where, state


def _named_by_chart(data: Mapping[Any, Any]) -> Iterator[tuple[Where, Any]]:
    yield from ((("initial",), state) for state in _one_or_more(data.get("initial")))
    for key in ("decision_states", "final_states"):
        yield from (((key, number), state) for number, state in enumerate(_list(data.get(key))))
    if isinstance(timeouts := data.get("timeouts"), dict):
        yield from ((("timeouts", state), state) for state in timeouts)
    for where, state in _composites(data.get("states"), ("states",)):
        yield from (((*where, "initial"), each) for each in _one_or_more(state.get("initial")))


def _named_by_transitions(data: Mapping[Any, Any]) -> Iterator[tuple[Where, Any]]:
    for number, item in enumerate(_moves(data)):
        yield from ((("transitions", number, key), state) for key, state in _named_by(item))


def _named_by(item: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what a transition names where a state stands, and by which key."""
    yield "source", item.get("source")
    if isinstance(guard := item.get("guard"), Mapping):
        yield "guard", guard.get("in")
    for target in _one_or_more(item.get("target")):
        history = target if isinstance(target, Mapping) else {"history": target}
        yield "target", history.get("history")
        yield from (("target", state) for state in _one_or_more(history.get("default")))


def _functions_named(data: Mapping[Any, Any]) -> Iterator[tuple[Where, str, object]]:
    """Yield the names of functions, where they stand, and what they are."""
    for where, state in _composites(data.get("states"), ("states",)):
        for key in ("entry", "exit"):
            yield from (((*where, key), "action", name) for name in _one_or_more(state.get(key)))
    for number, item in enumerate(_moves(data)):
        for key in ("guard", "action", "after", "rate"):
            kind = "action" if key == "action" else "guard"
            yield ("transitions", number, key), kind, item.get(key)


def _composites(states: Any, where: Where) -> Iterator[tuple[Where, Mapping[Any, Any]]]:
    """Yield the states that are written as mappings, and where."""
    for number, state in enumerate(_list(states)):
        if isinstance(state, Mapping):
            yield (*where, number), state
            yield from _composites(state.get("states"), (*where, number, "states"))


def _texts(data: Mapping[Any, Any]) -> list[str]:
    """Return the texts of all states, in document order."""
    found: list[str] = []
    for state in _list(data.get("states")):
        text = state.get("state") if isinstance(state, Mapping) else state
        found += [text] if isinstance(text, str) else []
        found += _texts(state) if isinstance(state, Mapping) else []
    return found


def _is_text(found: Any) -> bool:
    return isinstance(found, str)


def _list(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _one_or_more(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _moves(data: Mapping[Any, Any]) -> list[dict[Any, Any]]:
    """Return the transitions; what is none stays as an empty one, so that each keeps its place."""
    found = _list(data.get("transitions"))
    return [item if isinstance(item, dict) else {} for item in found]


def _told(problem: Problem) -> str:
    place = ", ".join(filter(None, (f"line {problem.line}" if problem.line else "", problem.key)))
    return f"{place}: {problem.message}" if place else problem.message


def _definition(document: ChartDocument, parts: _Parts) -> Definition[Any]:
    """Make the definition of a document in which nothing is wrong."""
    states = parts.states
    return Definition(
        map(parts.state, document.states),
        map(parts.transition, document.transitions),
        parts.place(document.initial),
        document.name,
        map(states.__getitem__, document.decision_states),
        {states[text]: ticks for text, ticks in document.timeouts.items()},
        document.strict,
        map(states.__getitem__, document.final_states),
        needs=document.needs,
        description=document.description,
    )


class _Parts:
    """Makes the parts of a definition from those of a document in which nothing is wrong.

    Args:
        texts: The states.
        functions: Functions of each kind, by name.
        enum: The class of the states; None for one made from the texts.

    Attributes:
        states: The states by their texts.
    """

    def __init__(
        self, texts: Sequence[str], functions: Mapping[str, Functions], enum: type[Enum] | None
    ) -> None:
        known = {state_text(member): member for member in enum or state_enum("State", texts)}
        self.states: dict[str, Any] = {text: known[text] for text in texts}
        self._functions = functions

    def place(self, given: Any) -> Any:
        """Return a state, several or a history."""
        if isinstance(given, list):
            return tuple(map(self.place, given))
        if isinstance(given, HistoryDocument):
            return History(self.states[given.history], given.deep, self.place(given.default))
        return None if given is None else self.states[given]

    def state(self, given: Any) -> Any:
        """Return a state, with the states inside it."""
        if not isinstance(given, StateDocument):
            return self.states[given]

        entry, leaving = (_one_or_more(names or []) for names in (given.entry, given.exit))
        return State(
            self.states[given.state],
            map(self.state, given.states),
            initial=self.place(given.initial),
            parallel=given.parallel,
            entry=[self._function("action", name) for name in entry],
            exit=[self._function("action", name) for name in leaving],
        )

    def transition(self, given: TransitionDocument) -> Transition[Any]:
        """Return a transition."""
        guard, trigger = given.guard, given.trigger
        return Transition(
            EventDescriptor(trigger) if given.descriptor and trigger else trigger,
            self.states.get(given.source, ANY_STATE),
            self.place(given.target),
            In(self.states[guard.state])
            if isinstance(guard, InDocument)
            else self._function("guard", guard),
            self._function("action", given.action),
            internal=given.internal,
            after=self._timing(given.after),
            rate=self._timing(given.rate),
            probability=given.probability,
        )

    def _timing(self, value: Any) -> Any:
        return self._function("guard", value) if isinstance(value, str) else value

    def _function(self, kind: str, name: Any) -> Any:
        return looked_up(self._functions[kind], name)
