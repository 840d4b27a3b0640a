"""A chart's JSON form as it is declared, and read.

pydantic reads it, so this module is imported only where a chart is read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum
from reprlib import repr as brief
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from prism.errors import DefinitionError
from prism.files._declarations import AnyText, Declaration, WholeNumber, keys_at, shaped
from prism.files._source import Problem, Problems, Source, Where
from prism.statechart._definition import Definition
from prism.statechart.formats._document import SCHEMA_VERSION
from prism.statechart.formats._names import Functions, joined, looked_up, unknown
from prism.statechart.formats._nested_document import NESTED_VERSION
from prism.statechart.formats._nested_reading import read_nested
from prism.statechart.states import state_enum, state_text
from prism.statechart.transitions import ANY_STATE, Transition

MOST_TRANSITIONS = 100_000
"""Transitions that a document may stand for; a wildcard counts once for every state."""

_NO_STATE = "which is not among the states"
_NEXT_LINE = "\n  "
_NOT_FINAL = ("decision_states", "timeouts")
_FINAL = "which is a final state: no transition is enabled there"


def _version(number: int) -> int:
    if number != SCHEMA_VERSION:
        raise ValueError(f"must be {SCHEMA_VERSION}, got {number}")
    return number


def _trigger(name: str) -> str:
    if name == "state" or not name.strip():
        raise ValueError(f"a trigger cannot be called {brief(name)}, rename it")
    return name


def _attribute(name: str) -> str:
    if not name.isidentifier():
        raise ValueError(f"must be the name of an attribute, got {brief(name)}")
    return name


class TransitionDocument(Declaration):
    """One entry of ``transitions``; guard and action are names of functions."""

    trigger: Annotated[AnyText, AfterValidator(_trigger)]
    source: AnyText
    target: AnyText
    guard: AnyText | None = None
    action: AnyText | None = None


class ChartDocument(Declaration):
    """The document: ``docs/charts.md`` describes it."""

    version: Annotated[WholeNumber, AfterValidator(_version)] = Field(alias="schema")
    states: list[Annotated[AnyText, Field(min_length=1)]] = Field(min_length=1)
    initial: AnyText
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

    if data.get("schema") == NESTED_VERSION:
        return read_nested(source, functions["guard"], functions["action"], enum, _refused)

    problems = Problems(source)
    document = shaped(ChartDocument, data, problems)
    # of what has the wrong shape, the rest is looked at, too: all offences are told at once
    for where, message in _contradictions(data, functions, enum):
        problems.add(where, message)

    if document is None or problems.found:
        raise _refused(name, problems)

    return _definition(document, functions, enum)


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
    if isinstance(version, int) and not isinstance(version, bool) and version > NESTED_VERSION:
        return (
            f"has schema {version}, but this prism reads up to {NESTED_VERSION}: use a newer prism"
        )

    states, sources = _texts(data, "states"), [item.get("source") for item in _moves(data)]
    wildcards = sources.count(ANY_STATE) if ANY_STATE not in states else 0
    if len(sources) + wildcards * (len(states) - 1) > MOST_TRANSITIONS:
        return (
            f"transitions: expand to more than {MOST_TRANSITIONS:,} transitions: split it into "
            "several charts"
        )

    return None


def _contradictions(
    data: Mapping[Any, Any], functions: Mapping[str, Functions], enum: type[Enum] | None
) -> Iterator[tuple[Where, str]]:
    """Yield where a document names something unknown, or contradicts itself about a state."""
    states = _texts(data, "states")
    yield from _about_states(states, enum)
    yield from _about_places(data, set(states))
    yield from _about_functions(data, functions)


def _about_states(states: Sequence[str], enum: type[Enum] | None) -> Iterator[tuple[Where, str]]:
    counts = Counter(states)
    if twice := [brief(state) for state, count in counts.items() if count > 1]:
        yield ("states",), f"names {joined(twice, ', ')} twice: remove one"
    if enum is not None and (missing := counts.keys() - set(map(state_text, enum))):
        listing = joined([brief(state) for state in states if state in missing], ", ")
        yield ("states",), f"{enum.__name__} has no members {listing}"


def _about_places(data: Mapping[Any, Any], states: Set[str]) -> Iterator[tuple[Where, str]]:
    """Yield where an unknown state is named, or a final one where something is enabled."""
    final = set(_texts(data, "final_states"))
    for where, state in _states_named(data):
        is_source = where[-1] == "source"
        is_wildcard = is_source and state == ANY_STATE
        if states and state not in states and not is_wildcard:
            yield where, f"names {brief(state)}, {_NO_STATE}"
        if state in final and (is_source or where[0] in _NOT_FINAL):
            yield where, f"names {brief(state)}, {_FINAL}"


def _about_functions(
    data: Mapping[Any, Any], functions: Mapping[str, Functions]
) -> Iterator[tuple[Where, str]]:
    for number, item in enumerate(_moves(data)):
        for kind, known in functions.items():
            name = item.get(kind)
            if isinstance(name, str) and looked_up(known, name) is None:
                yield ("transitions", number, kind), unknown(kind, name, known)


def _states_named(data: Mapping[Any, Any]) -> Iterable[tuple[Where, str]]:
    """Return the texts that name a state, and where."""
    named: list[tuple[Where, object]] = [(("initial",), data.get("initial"))]
    for key in ("decision_states", "final_states"):
        named += [((key, number), item) for number, item in enumerate(_list(data, key))]
    if isinstance(timeouts := data.get("timeouts"), dict):
        named += [(("timeouts", state), state) for state in timeouts]
    named += [
        (("transitions", number, key), item.get(key))
        for number, item in enumerate(_moves(data))
        for key in ("source", "target")
    ]

    return ((where, state) for where, state in named if isinstance(state, str))


def _list(data: Mapping[Any, Any], key: str) -> list[Any]:
    found = data.get(key)
    return found if isinstance(found, list) else []


def _texts(data: Mapping[Any, Any], key: str) -> list[str]:
    return [text for text in _list(data, key) if isinstance(text, str)]


def _moves(data: Mapping[Any, Any]) -> list[dict[Any, Any]]:
    """Return the transitions; what is none stays as an empty one, so that each keeps its place."""
    return [item if isinstance(item, dict) else {} for item in _list(data, "transitions")]


def _told(problem: Problem) -> str:
    place = ", ".join(filter(None, (f"line {problem.line}" if problem.line else "", problem.key)))
    return f"{place}: {problem.message}" if place else problem.message


def _definition(
    document: ChartDocument, functions: Mapping[str, Functions], enum: type[Enum] | None
) -> Definition[Any]:
    """Make the definition of a document in which nothing is wrong."""
    known = enum or state_enum("State", document.states)
    by_text = {state_text(member): member for member in known}
    members = {text: by_text[text] for text in document.states}

    def transition(item: TransitionDocument) -> Transition[Any]:
        source = members.get(item.source, ANY_STATE)
        guard, action = (
            looked_up(functions[kind], name)
            for kind, name in (("guard", item.guard), ("action", item.action))
        )
        return Transition(item.trigger, source, members[item.target], guard, action)

    return Definition(
        [members[text] for text in document.states],
        [transition(item) for item in document.transitions],
        members[document.initial],
        document.name,
        [members[text] for text in document.decision_states],
        {members[text]: ticks for text, ticks in document.timeouts.items()},
        document.strict,
        [members[text] for text in document.final_states],
        needs=document.needs,
        description=document.description,
    )
