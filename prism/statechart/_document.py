"""A chart as plain data, and back: the JSON form, which ``docs/charts.md`` describes.

The data are the arguments of the chart's parts by their names. States stand in them as texts, and
functions by names, for which whoever reads the data has the functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from functools import partial
from reprlib import repr as brief
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError

from prism.errors import DefinitionError
from prism.files._source import Where, key_of
from prism.files.declarations import Declaration, WholeNumber, adapter, shape_problems
from prism.statechart._definition import Definition, arguments_of
from prism.statechart._nesting import EventDescriptor, In, State
from prism.statechart.names import own_name
from prism.statechart.states import joined, state_enum, state_text
from prism.statechart.transitions import ANY_STATE, DEFAULT_NAME, History, Transition

Functions = Mapping[str, Callable[[Any, Any], object]]
"""Guards or actions by the names under which charts are written and read."""

MOST_LEVELS = 100
"""Levels of states inside states that a document may have."""

_DESCRIPTOR = re.compile(r"\.?\*|[^\s.*]+(\.[^\s.*]+)*(\.\*?)?")

_REQUIRED = ("state", "trigger", "source", "target")


# Writing


def to_data(chart: Definition[Any]) -> dict[str, Any]:
    """Write a chart as plain data: see `Statechart.to_dict`."""
    writer = _Writer()
    parts = arguments_of(chart).items()
    data = {"schema": 2, **{key: writer.plain(value, key, chart.name) for key, value in parts}}
    if writer.problems:
        raise DefinitionError(
            f"chart {chart.name!r} cannot be written as data: {joined(writer.problems, '; ')}"
        )
    return data


def to_text(data: Mapping[str, Any]) -> str:
    """Write plain data as JSON that people can read."""
    return json.dumps(data, indent=2, ensure_ascii=False)


class _Writer:
    """Writes the parts of one chart, and collects the functions that cannot be named."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._named: dict[tuple[str, str], object] = {}

    def plain(self, value: Any, key: str, owner: object) -> Any:
        """Return a value as plain data.

        Args:
            value: The value.
            key: The key under which it stands.
            owner: What it belongs to, for messages.
        """
        match value:
            case None | bool() | int() | float():
                return value
            case EventDescriptor():
                return {"descriptor": str(value)}
            case str():
                return state_text(value)
            case tuple() | list():
                return [self.plain(each, key, owner) for each in value]
            case Mapping():
                return {state_text(each): ticks for each, ticks in value.items()}
            case In():
                return {"in": state_text(value.state)}
            case History():
                data = self._part(value, f"history of {state_text(value.state)!r}")
                return {"history": data.pop("state"), **data}
            case State():
                return self._part(value, f"state {state_text(value.state)!r}")
            case Transition():
                return self._part(value, value)
        return self._name(value, key, owner)

    def _part(self, part: Any, owner: object) -> dict[str, Any]:
        """Return the fields of a part of the chart that are required, or say something."""
        values = ((field.name, getattr(part, field.name)) for field in fields(part))
        return {
            key: self.plain(value, key, owner)
            for key, value in values
            if key in _REQUIRED or value not in (None, False, ())
        }

    def _name(self, function: Any, key: str, owner: object) -> str | None:
        kind = "action" if key in ("action", "entry", "exit") else "guard"
        name = own_name(function)
        if name is None:
            self.problems.append(
                f"the {key} of {owner} has no name of its own ({brief(function)}): define it with "
                "'def', or set its __name__"
            )
        elif self._named.setdefault((kind, name), function) != function:
            self.problems.append(f"two {kind}s are called {name!r}, one of them in {owner}")
        return name


# Reading: pydantic checks a document, and each text that names something becomes what it names


@dataclass(frozen=True)
class _Named:
    """The states and functions by their names: the context of the validators."""

    states: Mapping[str, Any]
    owner: str
    guards: Functions
    actions: Functions


def _state(name: str, info: Any) -> Any:
    named: _Named = info.context
    if name not in named.states:
        raise ValueError(f"names {brief(name)}, which is not among {named.owner}")
    return named.states[name]


def _source(name: str, info: Any) -> Any:
    is_any = name == ANY_STATE and ANY_STATE not in info.context.states
    return ANY_STATE if is_any else _state(name, info)


def _targets(value: Any, info: Any) -> Any:
    if isinstance(value, list):
        return tuple(_targets(each, info) for each in value)
    return _state(value, info) if isinstance(value, str) else value


def _function(kind: str, name: Any, info: Any) -> Any:
    if isinstance(name, list):
        return [_function(kind, each, info) for each in name]
    if not isinstance(name, str):
        return name
    functions: Functions = getattr(info.context, kind)
    try:
        # an empty mapping may still find what it is asked
        return functions[name]
    except KeyError:
        names = joined([*map(brief, functions)])
        has = f"which has {names}" if names else "which is empty"
        raise ValueError(f"unknown {kind[:-1]} {brief(name)}: pass it in {kind}=, {has}") from None


def _descriptor(text: str) -> EventDescriptor:
    for each in text.split():
        if not _DESCRIPTOR.fullmatch(each):
            raise ValueError(
                f"{brief(each)} is not an event descriptor: write a name, a prefix of whole parts "
                "such as 'error.*', or '*' for any event"
            )
    return EventDescriptor(" ".join(text.split()))


def _making(kind: Callable[..., Any]) -> AfterValidator:
    """Return what makes a part of the chart of a document that has its fields."""
    return AfterValidator(lambda document: kind(**dict(document)))


def _state_part(value: Any, info: Any) -> Any:
    return State(**dict(value)) if isinstance(value, StateDocument) else _state(value, info)


StateName = Annotated[str, AfterValidator(_state)]
Guarding = AfterValidator(partial(_function, "guards"))

# The document


class DescriptorDocument(Declaration):
    """A trigger of a chart from SCXML, which matches events by their beginnings."""

    descriptor: Annotated[str, AfterValidator(_descriptor)]


class InDocument(Declaration):
    """A guard: a state is active."""

    state: StateName = Field(alias="in")


class HistoryDocument(Declaration):
    """A history as a target."""

    state: StateName = Field(alias="history")
    deep: bool = False
    default: Annotated[str | list[str] | None, AfterValidator(_targets)] = None


Descriptor = Annotated[DescriptorDocument, AfterValidator(lambda it: it.descriptor)]
InState = Annotated[InDocument, _making(In)]
HistoryPart = Annotated[HistoryDocument, _making(History)]
Targets = Annotated[str | HistoryPart | list[str | HistoryPart] | None, AfterValidator(_targets)]
Actions = Annotated[str | list[str] | None, AfterValidator(partial(_function, "actions"))]
StatePart = Annotated["str | StateDocument", AfterValidator(_state_part)]


class StateDocument(Declaration):
    """A state with others inside, or with actions."""

    state: StateName
    states: list[StatePart] = Field(default_factory=list)
    initial: Targets = None
    parallel: bool = False
    entry: Actions = None
    exit: Actions = None


class TransitionDocument(Declaration):
    """One entry of ``transitions``."""

    trigger: str | Descriptor | None
    source: Annotated[str, AfterValidator(_source)]
    target: Targets
    guard: Annotated[str | InState | None, Guarding] = None
    action: Actions = None
    internal: bool = False
    after: Annotated[WholeNumber | str | None, Guarding] = None
    rate: Annotated[float | str | None, Guarding] = None
    probability: float | None = None


TransitionPart = Annotated[TransitionDocument, _making(Transition)]


class ChartDocument(Declaration):
    """The document: ``docs/charts.md`` describes it."""

    version: Literal[2] = Field(alias="schema")
    states: list[StatePart] = Field(min_length=1)
    transitions: list[TransitionPart]
    initial: Targets
    name: str = DEFAULT_NAME
    decision_states: list[StateName] = Field(default_factory=list)
    timeouts: dict[StateName, int] = Field(default_factory=dict)
    strict: bool = False
    final_states: list[StateName] = Field(default_factory=list)
    needs: list[str] = Field(default_factory=list)
    description: str = ""


def read_chart(
    data: Any,
    line_of: Callable[[Where], int],
    guards: Functions | None,
    actions: Functions | None,
    enum: type[Enum] | None,
    problems: Iterable[tuple[int, str, str]] = (),
) -> dict[str, Any]:
    """Return the arguments of the chart that a document describes: see `Statechart.from_dict`.

    Args:
        data: The document.
        line_of: Returns the line of a place in it; 0 if it has no lines.
        guards: The functions for the names of guards.
        actions: The functions for the names of actions.
        enum: The class of the states; None for one made from the texts.
        problems: What is wrong with it already: line, key and problem.

    Raises:
        DefinitionError: Listing what is wrong with the document.
    """
    data = dict(data) if isinstance(data, Mapping) else data
    name = data.get("name", DEFAULT_NAME) if isinstance(data, dict) else DEFAULT_NAME
    try:
        texts = [*_texts(data)]
        members: Iterable[Any] = enum or (state_enum("State", texts) if texts else ())
    except DefinitionError as error:
        raise _refusal(name, [*problems, (line_of(("states",)), "states", str(error))]) from None

    named = _Named(
        {state_text(member): member for member in members},
        "the states" if enum is None else f"the members of {enum.__name__}",
        {} if guards is None else guards,
        {} if actions is None else actions,
    )
    document, errors = None, [*problems]
    try:
        document = adapter(ChartDocument).validate_python(data, context=named)
    except ValidationError as error:
        for where, problem, _ in shape_problems(ChartDocument, data, error):
            errors.append((line_of(where), key_of(where), problem))
    if document is None or errors:
        raise _refusal(name, errors)
    arguments = dict(document)
    del arguments["version"]
    return arguments


def _texts(inside: Any, level: int = 0) -> Iterator[str]:
    """Yield the texts of the states inside, in document order; what is misshapen is passed over."""
    if level > MOST_LEVELS:
        raise DefinitionError(f"are nested more than {MOST_LEVELS} levels deep: split the chart")
    states = inside.get("states") if isinstance(inside, Mapping) else ()
    for each in states if isinstance(states, (list, tuple)) else ():
        text = each.get("state") if isinstance(each, Mapping) else each
        if isinstance(text, str):
            yield text
        yield from _texts(each, level + 1)


def _refusal(name: object, problems: Iterable[tuple[int, str, str]]) -> DefinitionError:
    """Return the error that lists what is wrong with a document, by line, key and problem."""
    lines = []
    for line, key, problem in sorted(problems):
        place = ", ".join(filter(None, (f"line {line}" if line else "", key)))
        lines.append(f"{place}: {problem}" if place else problem)
    if len(lines) == 1:
        return DefinitionError(f"chart {brief(name)}: {lines[0]}")
    return DefinitionError(
        f"chart {brief(name)} has {len(lines)} problems:\n  " + joined(lines, "\n  ")
    )
