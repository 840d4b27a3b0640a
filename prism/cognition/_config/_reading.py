"""Reads a configuration; collects everything that is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from itertools import islice
from typing import Any

from pydantic import ValidationError

from prism.cognition._config._declarations import ConfigDocument, known_keys, left_out
from prism.cognition._config._values import (
    AVAILABLE_ACTIONS,
    HARD_LIMIT,
    MEMORY_ACTIONS,
    STATE_DESCRIPTION,
    Iterate,
    Limit,
    Paging,
    ThinkingLog,
)
from prism.errors import InputError
from prism.files._declarations import shape_problems
from prism.files._places import depth_of, repeated_key
from prism.files._source import Problems, Source, Where, key_of

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 50
MOST_PROBLEMS = 100
"""Mistakes that are looked for; nobody mends more at once."""

_MOST_NAMED = 30
_UNKNOWN = "extra_forbidden"
_HARMLESS = (_UNKNOWN, "set_twice")
_BLOCKS: Mapping[str, Any] = {
    "thinking_log": ThinkingLog,
    "paging_limit": Limit,
    "hard_limit": Limit,
    "iterate": Iterate,
    "paging": Paging,
}
_SETTINGS = (*_BLOCKS, "goal", "state_description", "available_actions")
_KNOWN = dict(known_keys())


class Reading(Problems):
    """What was read, and what is wrong with it.

    Args:
        source: The document.

    Attributes:
        values: Arguments of a configuration.
        given: Where each setting was found, by its name.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.values: dict[str, Any] = {}
        self.given: dict[Where, Where] = {}

    @property
    def is_usable(self) -> bool:
        """Whether what is known in it has the right shape, so that more can be said of it."""
        errors = self.errors
        is_whole = len(errors) < MOST_PROBLEMS  # else nobody has looked at the rest
        return is_whole and all(problem.kind in _HARMLESS for problem in errors)

    def place_of(self, *setting: str) -> Where:
        """Return where a setting was given, or would be."""
        return self.given.get(setting, ("agent", *setting))


def read_config(text: str, name: str) -> Reading:
    """Read a configuration.

    Args:
        text: JSON.
        name: The file, for messages.

    Raises:
        InputError: If it is not JSON, or larger than any configuration.
    """
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"has more than {MAX_CHARACTERS:,} characters", path=name)

    try:
        source = Source.parse(text, "json", path=name)
    except InputError as error:
        raise _with_place(error, text) from None

    if depth_of(text) > MAX_DEPTH:
        raise InputError(f"is nested more than {MAX_DEPTH} deep", path=name)

    found = Reading(source)
    _check_shape(found)
    if unused := list(left_out(source.value)):
        found.add(unused[0], _note(unused), "left_out", severity="warning")
    if found.is_usable:
        _Gathering(found).run(source.value)

    return found


def _check_shape(found: Reading) -> None:
    value = found.source.value
    try:
        ConfigDocument.model_validate(value)
    except ValidationError as error:
        problems = shape_problems(ConfigDocument, value, error)
        for where, message, kind in islice(problems, MOST_PROBLEMS):
            is_lost = kind == _UNKNOWN and "did you mean" not in message
            elsewhere = get_close_matches(str(where[-1]), _KNOWN, n=1) if is_lost else []
            if elsewhere:
                message = f"is unknown here; did you mean {key_of(_KNOWN[elsewhere[0]])}?"
            found.add(where, message, kind)


def _with_place(error: InputError, text: str) -> InputError:
    """Return an error with the place of what is wrong, if that is a key that stands twice."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return error  # it has its place, or where keys stand cannot be told

    repeated = repeated_key(text)
    if error.field is None or repeated is None:
        return error

    where, (line, column) = repeated
    problem = f"{error.problem} (column {column})"
    return InputError(problem, path=error.path, line=line, field=key_of(where))


def _note(left_out: list[Where]) -> str:
    named = ", ".join(map(key_of, left_out[:_MOST_NAMED]))
    more = f" and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
    return f"prism does not use these keys of lkjagent: {named}{more}"


class _Gathering:
    """Gathers settings from all the places where they may stand."""

    def __init__(self, found: Reading) -> None:
        self._found = found
        self._settings: dict[Where, Any] = {}

    def run(self, document: Mapping[str, Any]) -> None:
        agent = document.get("agent", {})
        for where, holder in (((), document), (("agent",), agent)):
            for name in _SETTINGS:
                if name in holder:
                    self._add((name,), (*where, name), holder[name])

        for state, held in agent.get("state", {}).items():
            if state == "base" or state in STATE_DESCRIPTION:
                self._add_prompt(state, ("agent", "state", state, "prompt"), held.get("prompt", {}))

        self._found.values.update(self._made())

    def _add_prompt(self, state: str, where: Where, prompt: str | Mapping[str, Any]) -> None:
        if isinstance(prompt, str):
            self._add(("role",) if state == "base" else ("state_description", state), where, prompt)
            return

        texts = ("state_description", "available_actions")
        for name in ("role", "instructions", *texts) if state == "base" else texts:
            if name in prompt:
                self._add((name,), (*where, name), prompt[name])

    def _add(self, setting: Where, where: Where, value: Any) -> None:
        """Note a setting; the same setting may stand in two places if it is the same there."""
        if isinstance(value, dict):
            for key, inner in value.items():
                self._add((*setting, key), (*where, key), inner)
            return

        if setting[-1] in ("paging_limit", "hard_limit"):
            setting = (*setting, "max_tokens")
        if self._settings.setdefault(setting, value) != value:
            earlier = key_of(self._found.given[setting])
            self._found.add(where, f"is set otherwise at {earlier}: leave one out", "set_twice")

        self._found.given.setdefault(setting, where)

    def _made(self) -> dict[str, Any]:
        """Return arguments of a configuration."""
        made = {name: self._made_block(name) for name in _BLOCKS if self._given(name)}
        for name in ("goal", "role", "instructions"):
            if (name,) in self._settings:
                made[name] = self._settings[name,]

        described = self._given("state_description")
        made["state_description"] = {
            state: described.get(state, text) for state, text in STATE_DESCRIPTION.items()
        }
        actions = self._given("available_actions")
        is_restricted = any(name in actions for name in MEMORY_ACTIONS)
        made["available_actions"] = {
            name: actions.get(name, text)
            for name, text in AVAILABLE_ACTIONS.items()
            if name in actions or name not in MEMORY_ACTIONS or not is_restricted
        }

        return made

    def _made_block(self, name: str) -> Any:
        known = {part.name for part in fields(_BLOCKS[name])}
        given = {key: _whole(value) for key, value in self._given(name).items() if key in known}
        if name == "hard_limit":
            given = {"max_tokens": HARD_LIMIT, **given}

        return _BLOCKS[name](**given)

    def _given(self, name: str) -> dict[str, Any]:
        return {
            str(setting[1]): value
            for setting, value in self._settings.items()
            if len(setting) > 1 and setting[0] == name
        }


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) else value
