"""The declaration of a policy file, made from the classes of a policy, and its consistency checks.

pydantic reads it, so this module is imported only where a policy is read. The schema that
``python docs/schemas.py`` writes into the documentation is made from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from inspect import getdoc
from math import isclose
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BeforeValidator, Field, create_model

from prism.files._declarations import Declaration, Listed, WholeNumber, read_document, schema_of
from prism.files._source import Problems, Source, Where

FORMAT = "prism.policy"
VERSION = 1
SCHEMA_NAME = "policy.schema.json"

_TOLERANCE = 1e-6
"""How far from 1 the sum of probabilities may be, since they may have been rounded by hand."""

_MOST = 2**63
"""Larger whole numbers do not fit in a table."""


def _with_room(value: float) -> float:
    if isinstance(value, int) and not -_MOST < value < _MOST:
        raise ValueError(f"is too large: {value:.3g}")
    return value


def _is_one(value: Any) -> Any:
    return 1 if value == 1 and not isinstance(value, bool) else value


_NUMBER: Any = Annotated[float, BeforeValidator(_with_room)]
_SHARE: Any = Annotated[_NUMBER, Field(ge=0, le=1)]
_ERROR: Any = Annotated[_NUMBER, Field(ge=0)]
_COUNT: Any = Annotated[WholeNumber, Field(ge=0), BeforeValidator(_with_room)]

_NUMBERS = {
    "probabilities": _SHARE,
    "p": _SHARE,
    "standard_errors": _ERROR,
    "clustered_errors": _ERROR,
}
"""The allowed numbers of a key, if restricted."""

_HEAD: Any = {
    "format": (Literal["prism.policy"], ...),
    "version": (Annotated[Literal[1], BeforeValidator(_is_one)], ...),
}
"""Keys of a file that a policy does not have."""

_ARGUMENT = re.compile(r"^    (\w+): ((?:.|\n {5,})+)", re.MULTILINE)


def _in_json(words: str) -> str:
    return " ".join(words.split()).replace("None", "null").replace("``", "`")


@cache
def _in_files(cls: type) -> Any:
    """Return the declaration of a class of a policy for files."""
    hints, told = get_type_hints(cls), dict(_ARGUMENT.findall(getdoc(cls) or ""))
    keys: Any = {
        each.name: (
            _type_in_files(hints[each.name], _NUMBERS.get(each.name, _NUMBER)),
            Field(_default_of(each), description=_in_json(told[each.name])),
        )
        for each in fields(cls)
        if each.init
    }
    doc = (getdoc(cls) or "").partition("\n")[0]

    return create_model(f"{cls.__name__}OfFile", __base__=Declaration, __doc__=doc, **keys)


def _default_of(each: Any) -> Any:
    if each.default_factory is dict:
        return {}
    return ... if each.default is MISSING else each.default


def _type_in_files(hint: Any, number: Any) -> Any:
    inside = get_args(hint)
    if is_dataclass(hint):
        return _in_files(hint)  # type: ignore[arg-type]
    if NoneType in inside:
        return _type_in_files(inside[0], number) | None
    if get_origin(hint) is tuple:
        return Listed[_type_in_files(inside[0], number)]  # type: ignore[misc]
    if get_origin(hint) is Mapping:
        return dict[str, _type_in_files(inside[1], number)]  # type: ignore[misc]

    return {int: _COUNT, float: number}.get(hint, hint)


@cache
def _file_of(policy: type) -> Any:
    return create_model("PolicyFile", __base__=_in_files(policy), **_HEAD)


def policy_schema(policy: type) -> dict[str, Any]:
    """Return the published JSON Schema of a policy file.

    Args:
        policy: The class of policies.
    """
    return schema_of(_file_of(policy), title="A policy that prism calibrate has estimated")


def read_policy(source: Source, policy: type) -> Any:
    """Read the parts of a policy.

    Args:
        source: The document.
        policy: The class of policies.

    Raises:
        InputError: If it is not a policy; the message lists all problems with line and key.
    """
    value, problems = source.value, Problems(source)
    if not isinstance(value, dict):
        raise source.error("is not a policy: it must hold an object")
    if value.get("format") != FORMAT:
        problems.add(("format",), f"must be {FORMAT!r}: this is not a policy file")
    if value.get("version") != VERSION:
        got = value.get("version")
        problems.add(
            ("version",), f"must be {VERSION}, got {got!r}: it was made by another version of prism"
        )
    # further problems of a file of another kind would not help anybody
    problems.raise_if_any()

    return read_document(_file_of(policy), source, checks=(_contradictions,))


def _contradictions(policy: Any) -> Iterator[tuple[Where, str]]:
    """Yield inconsistencies."""
    seen: dict[Any, str] = {}
    for place, cell in enumerate(policy.cells):
        yield from _in_cell(cell, ("cells", place))
        yield from _twice(cell, cell.group, ("cells", place), seen)

    seen = {}
    for place, logit in enumerate(policy.logits):
        yield from _in_logit(logit, ("logits", place))
        yield from _twice(logit, None, ("logits", place), seen)


def _twice(
    point: Any, group: str | None, where: tuple[str, int], seen: dict[Any, str]
) -> Iterator[tuple[Where, str]]:
    name = f"{where[0]}[{where[1]}]"
    first = seen.setdefault((point.state, point.event, point.options, group), name)
    if first != name:
        yield where, f"has the same state, event, options and group as {first}"


def _in_cell(cell: Any, where: Where) -> Iterator[tuple[Where, str]]:
    options = cell.options
    if len(set(options)) < len(options) or not options:
        yield (*where, "options"), "must have at least one option, and none twice"
    for name in ("counts", "probabilities", "standard_errors", "clustered_errors"):
        found = getattr(cell, name)
        if found is not None and len(found) != len(options):
            yield (*where, name), f"must have {len(options)} items, one per option"

    chances = cell.probabilities
    if chances is not None and not isclose(sum(chances), 1, abs_tol=_TOLERANCE):
        yield (*where, "probabilities"), f"must add up to 1, got {sum(chances):g}"


def _in_logit(logit: Any, where: Where) -> Iterator[tuple[Where, str]]:
    options, base = logit.options, logit.base
    if base not in options:
        yield (*where, "base"), f"must be one of the options, got {base!r}"
    if not logit.groups:
        yield (*where, "groups"), "must name at least one group"
    for name in ("groups", "covariates"):
        if len(set(getattr(logit, name))) < len(getattr(logit, name)):
            yield (*where, name), "must not name anything twice"

    terms = len(logit.groups) + len(logit.covariates)
    for option, weights in logit.coefficients.items():
        if option not in options or option == base:
            yield (*where, "coefficients", option), "must be an option other than the base"
        if len(weights) != terms:
            problem = f"must have {terms} items: the intercept, further groups, covariates"
            yield (*where, "coefficients", option), problem
