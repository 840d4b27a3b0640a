"""A chart as plain data, and back: the JSON form.

The form holds what defines a chart and nothing that runs: guards and actions stand in it by name,
and the loader gets the functions for them. Nothing in a file is imported or evaluated.
``docs/charts.md`` describes it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from reprlib import repr as brief
from typing import Any

from prism.errors import DefinitionError
from prism.files import parse_json
from prism.statechart._definition import Definition
from prism.statechart._identity import own_name
from prism.statechart.states import state_enum, state_text
from prism.statechart.transitions import ANY_STATE, Transition

SCHEMA_VERSION = 1
MOST_TRANSITIONS = 100_000
"""Transitions that a document may stand for; a wildcard counts once for every state."""

_MOST_LISTED = 20
_REQUIRED = ("schema", "states", "initial", "transitions")
_KEYS = (
    "schema",
    "name",
    "description",
    "states",
    "initial",
    "decision_states",
    "timeouts",
    "strict",
    "final_states",
    "needs",
    "transitions",
)
_LISTS_OF_STATES = ("decision_states", "final_states")
_TRANSITION_REQUIRED = ("trigger", "source", "target")
_TRANSITION_KEYS = (*_TRANSITION_REQUIRED, "guard", "action")
_HALF_PAIR = re.compile("[\ud800-\udfff]")

Functions = Mapping[str, Callable[[Any, Any], object]]
"""Guards or actions by the names under which charts are written and read."""


def to_data(
    chart: Definition[Any], guards: Functions | None, actions: Functions | None
) -> dict[str, Any]:
    """Write a chart as plain data: see `Statechart.to_dict`."""
    guard_names, action_names = _Names("guard", guards), _Names("action", actions)
    transitions = [_transition_data(item, guard_names, action_names) for item in chart.transitions]
    problems = guard_names.problems + action_names.problems
    if problems:
        raise DefinitionError(
            f"chart {chart.name!r} cannot be written as data: {_joined(problems)}"
        )

    return {
        "schema": SCHEMA_VERSION,
        "name": chart.name,
        # only where there is one, so that earlier readers take all other charts
        **({"description": chart.description} if chart.description else {}),
        "states": [state_text(state) for state in chart.states],
        "initial": state_text(chart.initial),
        "decision_states": _texts(chart, chart.decision_states),
        "timeouts": {
            state_text(state): chart.timeouts[state]
            for state in chart.states
            if state in chart.timeouts
        },
        "strict": chart.strict,
        "final_states": _texts(chart, chart.final_states),
        "needs": list(chart.needs),
        "transitions": transitions,
    }


def _texts(chart: Definition[Any], states: Container[Any]) -> list[str]:
    return [state_text(state) for state in chart.states if state in states]


def _transition_data(item: Transition[Any], guards: _Names, actions: _Names) -> dict[str, Any]:
    data = {
        "trigger": item.trigger,
        "source": state_text(item.source),
        "target": state_text(item.target),
    }
    for names, function in ((guards, item.guard), (actions, item.action)):
        if function is not None:
            data[names.kind] = names.of(function, item)

    return data


@dataclass
class _Names:
    """Names the functions of one kind, each name for one function, and collects the problems."""

    kind: str
    given: Functions | None
    problems: list[str] = field(default_factory=list)
    _taken: dict[str, object] = field(default_factory=dict)
    _known: dict[int, str] = field(default_factory=dict)

    def of(self, function: object, item: Transition[Any]) -> str:
        """Name a function; one that cannot be named goes among the problems, once."""
        name = self._known.get(id(function))
        if name is None:
            name = self._known[id(function)] = self._found(function, item)
        return name

    def _found(self, function: object, item: Transition[Any]) -> str:
        registered = next(
            (name for name, known in (self.given or {}).items() if known == function), None
        )
        name = registered or own_name(function)
        advice = f"register it, {self.kind}s={{'some_name': function}}"
        if name is None:
            self.problems.append(
                f"the {self.kind} of {item} has no name of its own ({brief(function)}): {advice}"
            )
            return ""

        if (self.given or {}).get(name, function) != function or self._taken.setdefault(
            name, function
        ) != function:
            self.problems.append(
                f"two {self.kind}s are called {name!r}, one of them in {item}: {advice}"
            )

        return name


def to_text(data: Mapping[str, Any]) -> str:
    """Write plain data as JSON that people can read."""
    text = json.dumps(data, indent=2, ensure_ascii=False)
    # half a surrogate pair cannot be encoded in a file
    return _HALF_PAIR.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def from_text(text: str) -> Any:
    """Read JSON of unknown origin.

    Raises:
        InputError: If it is not valid JSON, or an object has a key twice; names the line where
            possible.
    """
    return parse_json(text)


def from_data(
    data: object, guards: Functions | None, actions: Functions | None, enum: type[Enum] | None
) -> Definition[Any]:
    """Read a chart from plain data: see `Statechart.from_dict`."""
    reader = _Reader(data, {} if guards is None else guards, {} if actions is None else actions)
    problems = reader.problems(enum)
    if problems:
        raise DefinitionError(f"chart {reader.name}: {_joined(problems)}")

    return reader.definition(enum)


def _joined(items: Sequence[str], separator: str = "; ") -> str:
    more = len(items) - _MOST_LISTED
    return separator.join([*items[:_MOST_LISTED], f"and {more} more"] if more > 0 else items)


class _Reader:
    """Reads one document, which may hold anything."""

    def __init__(self, data: object, guards: Functions, actions: Functions) -> None:
        self._is_object = isinstance(data, Mapping)
        self._data: dict[Any, Any] = dict(data) if isinstance(data, Mapping) else {}
        self._functions = {"guard": guards, "action": actions}
        self.name = brief(self._data.get("name", "statechart"))

    def problems(self, enum: type[Enum] | None) -> list[str]:
        """List everything that keeps the document from being a chart."""
        if not self._is_object:
            return ["must be an object with the keys " + ", ".join(_KEYS)]

        version = self._data.get("schema")
        if isinstance(version, int) and not isinstance(version, bool) and version > SCHEMA_VERSION:
            return [
                f"is of schema {version}, and this prism reads up to {SCHEMA_VERSION}: "
                "use a newer prism"
            ]

        found = _key_problems("", self._data, _KEYS, _REQUIRED)
        if "schema" in self._data and (version != SCHEMA_VERSION or isinstance(version, bool)):
            found.append(f"'schema' must be {SCHEMA_VERSION}, got {brief(version)}")

        found += self._setting_problems() + self._need_problems()
        found += self._state_problems() + self._transition_problems()

        return found if enum is None else found + self._enum_problems(enum)

    def _setting_problems(self) -> list[str]:
        texts = {"name": "statechart", "description": ""}
        given = {key: self._data.get(key, default) for key, default in texts.items()}
        found = [
            f"'{key}' must be text, got {brief(value)}"
            for key, value in given.items()
            if not isinstance(value, str)
        ]
        strict = self._data.get("strict", False)
        return (
            found
            if isinstance(strict, bool)
            else [*found, f"'strict' must be true or false, got {brief(strict)}"]
        )

    def _need_problems(self) -> list[str]:
        needs = self._data.get("needs", [])
        if not isinstance(needs, list):
            return [f"'needs' must be a list of names of attributes, got {brief(needs)}"]

        wrong = [
            brief(name) for name in needs if not isinstance(name, str) or not name.isidentifier()
        ]
        listing = _joined(wrong, ", ")
        problem = f"'needs' must be a list of names of attributes, got {listing} among them"
        return [problem] if wrong else []

    def _state_problems(self) -> list[str]:
        found = _list_of_states_problems(self._data["states"]) if "states" in self._data else []
        for key in _LISTS_OF_STATES:
            value = self._data.get(key, [])
            if not isinstance(value, list):
                found.append(f"'{key}' must be a list of states, got {brief(value)}")

        return found + self._limit_problems() + self._name_problems() + self._final_problems()

    def _final_problems(self) -> list[str]:
        """Look for what a final state cannot have besides a way out."""
        final = self._final_states()
        return [
            f"'{key}' names {brief(state)}, which is a final state: nothing is enabled there"
            for key, kind in (("timeouts", Mapping), ("decision_states", list))
            if isinstance(self._data.get(key), kind)
            for state in self._data[key]
            if isinstance(state, str) and state in final
        ]

    def _limit_problems(self) -> list[str]:
        timeouts = self._data.get("timeouts", {})
        if not isinstance(timeouts, Mapping):
            return [f"'timeouts' must be an object of states and ticks, got {brief(timeouts)}"]

        return [
            f"'timeouts', {brief(state)}: must be a whole number of ticks from 1 on, "
            f"got {brief(ticks)}"
            for state, ticks in timeouts.items()
            if not isinstance(ticks, int) or isinstance(ticks, bool) or ticks < 1
        ]

    def _name_problems(self) -> list[str]:
        """Look up the states that are named outside transitions, if there are any to look in."""
        known = set(self._states())
        named = [("initial", self._data["initial"])] if "initial" in self._data else []
        for key, kind in (("timeouts", Mapping), *((key, list) for key in _LISTS_OF_STATES)):
            value = self._data.get(key)
            named += [(key, state) for state in value] if isinstance(value, kind) else []

        return [
            f"'{key}' names {brief(state)}, {_NO_STATE}"
            for key, state in named
            if known and not (isinstance(state, str) and state in known)
        ]

    def _enum_problems(self, enum: type[Enum]) -> list[str]:
        """Look up the states in an enum that is given."""
        known = set(map(state_text, enum))
        missing = [brief(text) for text in self._states() if text not in known]
        return [f"{enum.__name__} has no members {_joined(missing, ', ')}"] if missing else []

    def _transition_problems(self) -> list[str]:
        transitions = self._data.get("transitions", [])
        if not isinstance(transitions, list):
            return [f"'transitions' must be a list, got {brief(transitions)}"]

        wildcards = sum(
            isinstance(item, Mapping) and self._is_wildcard(item.get("source"))
            for item in transitions
        )
        if len(transitions) - wildcards + wildcards * len(self._states()) > MOST_TRANSITIONS:
            return [
                f"'transitions' stands for more than {MOST_TRANSITIONS:,} transitions: "
                "make several charts of it"
            ]

        known, final = set(self._states()), self._final_states()
        leaving = [
            f"transition {number}: 'source' names {brief(item['source'])}, which is a final state"
            for number, item in enumerate(transitions, start=1)
            if isinstance(item, Mapping)
            and isinstance(item.get("source"), str)
            and item["source"] in final
        ]

        return leaving + [
            problem
            for number, item in enumerate(transitions, start=1)
            for problem in self._problems_of(f"transition {number}", item, known)
        ]

    def _problems_of(self, place: str, item: object, known: set[str]) -> list[str]:
        if not isinstance(item, Mapping):
            return [f"{place} must be an object, got {brief(item)}"]

        found = _key_problems(f"{place}: ", item, _TRANSITION_KEYS, _TRANSITION_REQUIRED)
        found += [
            f"{place}: '{key}' must be text, got {brief(item[key])}"
            for key in _TRANSITION_KEYS
            if key in item
            and not isinstance(item[key], str)
            and not (item[key] is None and key in self._functions)
        ]
        found += [
            f"{place}: '{key}' names {brief(item[key])}, {_NO_STATE}"
            for key in ("source", "target")
            if isinstance(item.get(key), str) and known and item[key] not in known
            if not (key == "source" and self._is_wildcard(item[key]))
        ]

        if isinstance(trigger := item.get("trigger"), str) and (
            trigger == "state" or not trigger.strip()
        ):
            found.append(f"{place}: a trigger cannot be called {brief(trigger)}, rename it")

        for kind, functions in self._functions.items():
            name = item.get(kind)
            if isinstance(name, str) and _looked_up(functions, name) is None:
                listing = ", ".join(map(brief, functions)) or "none"
                found.append(
                    f"{place}: unknown {kind} {brief(name)}; known are {listing}: "
                    f"give it by {kind}s="
                )

        return found

    def _states(self) -> list[str]:
        states = self._data.get("states")
        return (
            [state for state in states if isinstance(state, str)]
            if isinstance(states, list)
            else []
        )

    def _final_states(self) -> set[str]:
        final = self._data.get("final_states")
        return (
            {state for state in final if isinstance(state, str)}
            if isinstance(final, list)
            else set()
        )

    def _is_wildcard(self, source: object) -> bool:
        """Return True for the wildcard, not for a state whose text is an asterisk."""
        return source == ANY_STATE and source not in self._states()

    def definition(self, enum: type[Enum] | None) -> Definition[Any]:
        """Make the definition, once there are no problems."""
        texts = self._states()
        members = {state_text(member): member for member in enum or state_enum("State", texts)}
        timeouts = self._data.get("timeouts", {})

        return Definition(
            [members[text] for text in texts],
            [self._transition(item, members) for item in self._data["transitions"]],
            members[self._data["initial"]],
            self._data.get("name", "statechart"),
            [members[text] for text in self._data.get("decision_states", ())],
            {members[text]: ticks for text, ticks in timeouts.items()},
            self._data.get("strict", False),
            [members[text] for text in self._data.get("final_states", ())],
            needs=self._data.get("needs", ()),
            description=self._data.get("description", ""),
        )

    def _transition(self, item: Mapping[str, Any], members: Mapping[str, Any]) -> Transition[Any]:
        source = ANY_STATE if self._is_wildcard(item["source"]) else members[item["source"]]
        guard, action = (
            None if item.get(kind) is None else _looked_up(functions, item[kind])
            for kind, functions in self._functions.items()
        )
        return Transition(item["trigger"], source, members[item["target"]], guard, action)


_NO_STATE = "which is not among the states"


def _list_of_states_problems(states: object) -> list[str]:
    if not isinstance(states, list) or not states:
        return [f"'states' must be a list of texts, at least one, got {brief(states)}"]

    wrong = [brief(state) for state in states if not isinstance(state, str)]
    counts = Counter(state for state in states if isinstance(state, str))
    twice = [brief(state) for state, count in counts.items() if count > 1]
    found = (
        [f"'states' must be a list of texts, got {_joined(wrong, ', ')} among them"]
        if wrong
        else []
    )
    found += ["'states' holds an empty text: name the state"] if "" in counts else []

    return [*found, f"'states' names {_joined(twice, ', ')} twice: remove one"] if twice else found


def _key_problems(
    place: str, data: Mapping[Any, Any], known: Sequence[str], required: Sequence[str]
) -> list[str]:
    unknown = [brief(key) for key in data if key not in known]
    missing = [repr(key) for key in required if key not in data]
    found = (
        [f"{place}unknown keys {', '.join(unknown)}; known are {', '.join(known)}"]
        if unknown
        else []
    )

    return [*found, f"{place}missing keys {', '.join(missing)}"] if missing else found


def _looked_up(functions: Functions, name: str) -> Callable[[Any, Any], object] | None:
    try:
        return functions[name]
    except KeyError:
        return None
