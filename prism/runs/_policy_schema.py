"""The declaration of a policy file, and its consistency checks.

pydantic reads it, so this module is imported only where a policy is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose
from typing import Annotated, Any, Literal

from pydantic import Field

from prism.files._declarations import Declaration, Listed, WholeNumber, read_document
from prism.files._source import Problems, Source, Where

FORMAT = "prism.policy"
VERSION = 1

_TOLERANCE = 1e-6
"""How far from 1 the sum of probabilities may be, since they may have been rounded by hand."""

_Share = Annotated[float, Field(ge=0, le=1)]
_Count = Annotated[WholeNumber, Field(ge=0, lt=2**63)]


class _Cell(Declaration):
    state: str
    event: str
    options: Listed[str]
    group: str | None
    counts: Listed[_Count]
    probabilities: Listed[_Share] | None = None
    agents: _Count = 0


class _Unidentified(Declaration):
    what: Literal["state", "option", "cell"]
    reason: str
    state: str | None = None
    event: str | None = None
    group: str | None = None
    name: str | None = None
    n: _Count = 0


class _Source(Declaration):
    run: str
    log_sha256: str
    decisions: _Count
    left_out: dict[str, _Count] = Field(default_factory=dict)


class _PolicyFile(Declaration):
    format: Literal["prism.policy"]
    version: WholeNumber
    by: str
    least: _Count
    cells: Listed[_Cell]
    unidentified: Listed[_Unidentified] = ()
    sources: Listed[_Source] = ()


def read_policy(source: Source) -> Any:
    """Read the parts of a policy.

    Args:
        source: The document.

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

    return read_document(_PolicyFile, source, checks=(_contradictions,))


def _contradictions(policy: Any) -> Iterator[tuple[Where, str]]:
    """Yield inconsistencies."""
    seen: dict[Any, str] = {}
    for place, cell in enumerate(policy.cells):
        where, name = ("cells", place), f"cells[{place}]"
        yield from _in_cell(cell, where)
        first = seen.setdefault((cell.state, cell.event, cell.options, cell.group), name)
        if first != name:
            yield where, f"has the same state, event, options and group as {first}"


def _in_cell(cell: Any, where: Where) -> Iterator[tuple[Where, str]]:
    options = cell.options
    if len(set(options)) < len(options) or not options:
        yield (*where, "options"), "must have at least one option, and none twice"
    for name in ("counts", "probabilities"):
        found = getattr(cell, name)
        if found is not None and len(found) != len(options):
            yield (*where, name), f"must have {len(options)} items, one per option"

    chances = cell.probabilities
    if chances is not None and not isclose(sum(chances), 1, abs_tol=_TOLERANCE):
        yield (*where, "probabilities"), f"must add up to 1, got {sum(chances):g}"
