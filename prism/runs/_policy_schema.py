"""The schema of policy files, and what of it a JSON Schema cannot say.

``python -m prism.science._publish docs`` writes the schema into the documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from math import isclose
from pathlib import Path
from typing import Any

from prism.errors import InputError
from prism.files._json_places import Places
from prism.statechart.reasoner._wording import require_data

FORMAT = "prism.policy"
VERSION = 1
SCHEMA_NAME = "policy.schema.json"

_TOLERANCE = 1e-6
"""How far from 1 probabilities may add up to, as they may have been rounded by hand."""

_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
"""A part of a key's path: a name, or a place in a list."""


def _object(properties: Mapping[str, Any], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _list_of(items: Mapping[str, Any], meaning: str = "") -> dict[str, Any]:
    return {
        **({"description": meaning} if meaning else {}),
        "type": "array",
        "items": dict(items),
    }


_TEXT: dict[str, Any] = {"type": "string"}
_TEXT_OR_NONE: dict[str, Any] = {"type": ["string", "null"]}
_NUMBER: dict[str, Any] = {"type": "number"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
_ERRORS: dict[str, Any] = {
    "type": ["array", "null"],
    "items": {"type": "number", "minimum": 0},
}
_POINT = {"state": _TEXT, "event": _TEXT, "options": _list_of(_TEXT)}
_BY_OPTION = {"type": "object", "additionalProperties": _list_of(_NUMBER)}

_CELL = _object(
    {
        **_POINT,
        "group": {**_TEXT_OR_NONE, "description": "The group; null for all agents together."},
        "counts": _list_of(_COUNT, "How often each option was chosen."),
        "probabilities": {
            "description": "Probability of each option; null where they are not identified.",
            "type": ["array", "null"],
            "items": _SHARE,
        },
        "standard_errors": {
            "description": "sqrt(p (1 - p) / n); null where they are not identified.",
            **_ERRORS,
        },
        "clustered_errors": {
            "description": "Those clustered by agent; null where they are not identified.",
            **_ERRORS,
        },
        "agents": {**_COUNT, "description": "Number of agents that decided."},
    },
    optional=("standard_errors", "clustered_errors", "agents"),
)
_LOGIT = _object(
    {
        **_POINT,
        "base": {**_TEXT, "description": "The option whose utility is 0."},
        "groups": _list_of(_TEXT, "The groups; the intercepts are of the first."),
        "covariates": _list_of(_TEXT, "What the choice depends on besides."),
        "coefficients": {
            **_BY_OPTION,
            "description": "By option: the intercept, one for each further group, one for each "
            "covariate.",
        },
        "standard_errors": {**_BY_OPTION, "description": "Those of the coefficients."},
        "covariance": _list_of(_list_of(_NUMBER), "Of all coefficients, option by option."),
        "n": _COUNT,
        "log_likelihood": _NUMBER,
        "clustered_errors": {**_BY_OPTION, "description": "Those clustered by agent."},
        "agents": {**_COUNT, "description": "Number of agents that decided."},
    },
    optional=("clustered_errors", "agents"),
)
_TEST = _object(
    {
        "state": _TEXT_OR_NONE,
        "event": _TEXT_OR_NONE,
        "options": _list_of(_TEXT),
        "null": _TEXT,
        "alternative": _TEXT,
        "statistic": _NUMBER,
        "df": _COUNT,
        "p": _SHARE,
        "least_expected": {"type": ["number", "null"]},
    },
    optional=("least_expected",),
)
_UNIDENTIFIED = _object(
    {
        "what": {"enum": ["state", "group", "option", "cell", "covariate", "logit"]},
        "reason": _TEXT,
        "state": _TEXT_OR_NONE,
        "event": _TEXT_OR_NONE,
        "group": _TEXT_OR_NONE,
        "name": _TEXT_OR_NONE,
        "n": _COUNT,
        "upper": {"type": ["number", "null"]},
    },
    optional=("state", "event", "group", "name", "n", "upper"),
)
_SOURCE = _object(
    {
        "run": _TEXT,
        "log_sha256": _TEXT,
        "decisions": _COUNT,
        "left_out": {"type": "object", "additionalProperties": _COUNT},
    },
    optional=("left_out",),
)

SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A policy that prism calibrate has estimated",
    **_object(
        {
            "format": {"enum": [FORMAT]},
            "version": {"enum": [VERSION]},
            "model": {"enum": ["markov", "logit"]},
            "by": {**_TEXT, "description": "What agents are grouped by."},
            "least": {**_COUNT, "description": "Fewest decisions that identify a cell."},
            "cells": _list_of(_CELL),
            "logits": _list_of(_LOGIT),
            "tests": _list_of(_TEST),
            "unidentified": _list_of(_UNIDENTIFIED),
            "sources": _list_of(_SOURCE),
        },
        optional=("logits", "tests", "unidentified", "sources"),
    ),
}


def require_policy(
    document: Mapping[str, Any], path: Path | None = None, text: str | None = None
) -> None:
    """Refuse a document that is no policy.

    Args:
        document: The document.
        path: Where it stands, for messages.
        text: Its text, by which messages tell the line.

    Raises:
        InputError: If it is none; names the line and the key.
    """
    problems = chain(
        _other_format(document), _problems(document, SCHEMA, ""), _contradictions(document)
    )
    for field, problem in problems:
        line = None if text is None else _line_of(field, text)
        raise InputError(problem, path=path, line=line, field=field or None)


def _line_of(field: str, text: str) -> int:
    """Return the line of a key such as ``cells[0].counts``, or of the nearest thing around it."""
    parts = _PART.findall(field)
    return Places(text).of(tuple(int(place) if place else name for name, place in parts))[0]


def _other_format(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if document.get("format") != FORMAT:
        yield "format", f"must be {FORMAT!r}: this is no policy file"
    if document.get("version") != VERSION:
        got = document.get("version")
        yield "version", f"must be {VERSION}, got {got!r}: another prism has made it"


def _problems(value: Any, schema: Mapping[str, Any], place: str) -> Iterator[tuple[str, str]]:
    """Yield what the schema does not allow, from outside to inside."""
    outside = {key: part for key, part in schema.items() if key not in ("properties", "items")}
    try:
        require_data(value, outside, place or "the policy")
    except ValueError as error:
        yield place, str(error).removeprefix(f"{place} ")
        return

    if isinstance(value, dict):
        parts, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, item in value.items():
            inside = f"{place}.{key}" if place else key
            if key in parts:
                yield from _problems(item, parts[key], inside)
            elif others is False:
                yield inside, f"is unknown; there are {', '.join(parts)}"
            elif isinstance(others, dict):
                yield from _problems(item, others, inside)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _problems(item, schema.get("items", {}), f"{place}[{number}]")


def _contradictions(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what does not fit together."""
    for name, check in (("cells", _in_cell), ("logits", _in_logit)):
        seen: dict[Any, str] = {}
        for number, part in enumerate(document.get(name, ())):
            place = f"{name}[{number}]"
            yield from check(part, place)
            key = part["state"], part["event"], tuple(part["options"]), part.get("group")
            if seen.setdefault(key, place) != place:
                yield place, f"is of the same state, event, options and group as {seen[key]}"


def _in_cell(cell: Mapping[str, Any], place: str) -> Iterator[tuple[str, str]]:
    options = cell["options"]
    if len(set(options)) < len(options) or not options:
        yield f"{place}.options", "must be one option at least, none of them twice"
    for name in ("counts", "probabilities", "standard_errors", "clustered_errors"):
        found = cell.get(name)
        if found is not None and len(found) != len(options):
            yield f"{place}.{name}", f"must have {len(options)} items, one an option"

    chances = cell["probabilities"]
    if chances is not None and not isclose(sum(chances), 1, abs_tol=_TOLERANCE):
        yield f"{place}.probabilities", f"must add up to 1, got {sum(chances):g}"


def _in_logit(logit: Mapping[str, Any], place: str) -> Iterator[tuple[str, str]]:
    options, base = logit["options"], logit["base"]
    if base not in options:
        yield f"{place}.base", f"must be one of the options, got {base!r}"
    if not logit["groups"]:
        yield f"{place}.groups", "must name one group at least"
    for name in ("groups", "covariates"):
        if len(set(logit[name])) < len(logit[name]):
            yield f"{place}.{name}", "must name none twice"

    terms = len(logit["groups"]) + len(logit["covariates"])
    for option, weights in logit["coefficients"].items():
        if option not in options or option == base:
            yield f"{place}.coefficients.{option}", "must be an option other than the base"
        if len(weights) != terms:
            problem = f"must have {terms} items: the intercept, further groups, covariates"
            yield f"{place}.coefficients.{option}", problem
