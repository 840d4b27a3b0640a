"""What a policy file holds: its declaration, and what contradicts itself.

pydantic reads it, so this module is imported only where a policy is read. The schema that
``python -m prism.science._publish docs`` writes into the documentation is made from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from prism.files._declarations import Declaration, Listed, WholeNumber, read_document, schema_of
from prism.files._source import Problems, Source, Where

FORMAT = "prism.policy"
VERSION = 1
SCHEMA_NAME = "policy.schema.json"

_TOLERANCE = 1e-6
"""How far from 1 probabilities may add up to, as they may have been rounded by hand."""

_MOST = 2**63
"""Whole numbers beyond have no room in a table."""


def _with_room(value: float) -> float:
    if isinstance(value, int) and not -_MOST < value < _MOST:
        raise ValueError(f"is too large: {value:.3g}")
    return value


def _is_one(value: Any) -> Any:
    return 1 if value == 1 and not isinstance(value, bool) else value


Number = Annotated[float, BeforeValidator(_with_room)]
Count = Annotated[WholeNumber, Field(ge=0), BeforeValidator(_with_room)]
Share = Annotated[Number, Field(ge=0, le=1)]
Errors = Listed[Annotated[Number, Field(ge=0)]] | None
ByOption = dict[str, Listed[Number]]


class _Point(Declaration):
    state: str
    event: str
    options: Listed[str]


class CellOfFile(_Point):
    """The choices of one group at one point of decision."""

    group: str | None = Field(description="The group; null for all agents together.")
    counts: Listed[Count] = Field(description="How often each option was chosen.")
    probabilities: Listed[Share] | None = Field(
        description="Probability of each option; null where they are not identified."
    )
    standard_errors: Errors = Field(
        None, description="sqrt(p (1 - p) / n); null where they are not identified."
    )
    clustered_errors: Errors = Field(
        None, description="Those clustered by agent; null where they are not identified."
    )
    agents: Count = Field(0, description="Number of agents that decided.")


class LogitOfFile(_Point):
    """A multinomial logit of one point of decision."""

    base: str = Field(description="The option whose utility is 0.")
    groups: Listed[str] = Field(description="The groups; the intercepts are of the first.")
    covariates: Listed[str] = Field(description="What the choice depends on besides.")
    coefficients: ByOption = Field(
        description="By option: the intercept, one for each further group, one for each covariate."
    )
    standard_errors: ByOption = Field(description="Those of the coefficients.")
    covariance: Listed[Listed[Number]] = Field(description="Of all coefficients, option by option.")
    n: Count
    log_likelihood: Number
    clustered_errors: ByOption = Field({}, description="Those clustered by agent.")
    agents: Count = Field(0, description="Number of agents that decided.")


class TestOfFile(Declaration):
    """A likelihood-ratio test."""

    state: str | None
    event: str | None
    options: Listed[str]
    null: str
    alternative: str
    statistic: Number
    df: Count
    p: Share
    least_expected: Number | None = None


class UnidentifiedOfFile(Declaration):
    """Something that the decisions say too little of."""

    what: Literal["state", "group", "option", "cell", "covariate", "logit"]
    reason: str
    state: str | None = None
    event: str | None = None
    group: str | None = None
    name: str | None = None
    n: Count = 0
    upper: Number | None = None


class SourceOfFile(Declaration):
    """A run that the policy was calibrated on."""

    run: str
    log_sha256: str
    decisions: Count
    left_out: dict[str, Count] = Field({})


class PolicyFile(Declaration):
    """A policy file."""

    format: Literal["prism.policy"]
    version: Annotated[Literal[1], BeforeValidator(_is_one)]
    model: Literal["markov", "logit"]
    by: str = Field(description="What agents are grouped by.")
    least: Count = Field(description="Fewest decisions that identify a cell.")
    cells: Listed[CellOfFile]
    logits: Listed[LogitOfFile] = ()
    tests: Listed[TestOfFile] = ()
    unidentified: Listed[UnidentifiedOfFile] = ()
    sources: Listed[SourceOfFile] = ()


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of policy files."""
    return schema_of(PolicyFile, title="A policy that prism calibrate has estimated")


def require_policy(source: Source) -> None:
    """Refuse a document that is no policy.

    Args:
        source: The document.

    Raises:
        InputError: If it is none; names everything that is wrong, with line and key.
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
    # what else is wrong with a file of another kind is of no use to anybody
    problems.raise_if_any()

    read_document(PolicyFile, source, checks=(_contradictions,))


def _contradictions(policy: PolicyFile) -> Iterator[tuple[Where, str]]:
    """Yield what does not fit together."""
    seen: dict[Any, str] = {}
    for place, cell in enumerate(policy.cells):
        yield from _in_cell(cell, ("cells", place))
        yield from _twice(cell, cell.group, ("cells", place), seen)

    seen = {}
    for place, logit in enumerate(policy.logits):
        yield from _in_logit(logit, ("logits", place))
        yield from _twice(logit, None, ("logits", place), seen)


def _twice(
    point: _Point, group: str | None, where: tuple[str, int], seen: dict[Any, str]
) -> Iterator[tuple[Where, str]]:
    name = f"{where[0]}[{where[1]}]"
    first = seen.setdefault((point.state, point.event, point.options, group), name)
    if first != name:
        yield where, f"is of the same state, event, options and group as {first}"


def _in_cell(cell: CellOfFile, where: Where) -> Iterator[tuple[Where, str]]:
    options = cell.options
    if len(set(options)) < len(options) or not options:
        yield (*where, "options"), "must be one option at least, none of them twice"
    for name in ("counts", "probabilities", "standard_errors", "clustered_errors"):
        found = getattr(cell, name)
        if found is not None and len(found) != len(options):
            yield (*where, name), f"must have {len(options)} items, one an option"

    chances = cell.probabilities
    if chances is not None and not isclose(sum(chances), 1, abs_tol=_TOLERANCE):
        yield (*where, "probabilities"), f"must add up to 1, got {sum(chances):g}"


def _in_logit(logit: LogitOfFile, where: Where) -> Iterator[tuple[Where, str]]:
    options, base = logit.options, logit.base
    if base not in options:
        yield (*where, "base"), f"must be one of the options, got {base!r}"
    if not logit.groups:
        yield (*where, "groups"), "must name one group at least"
    for name in ("groups", "covariates"):
        if len(set(getattr(logit, name))) < len(getattr(logit, name)):
            yield (*where, name), "must name none twice"

    terms = len(logit.groups) + len(logit.covariates)
    for option, weights in logit.coefficients.items():
        if option not in options or option == base:
            yield (*where, "coefficients", option), "must be an option other than the base"
        if len(weights) != terms:
            problem = f"must have {terms} items: the intercept, further groups, covariates"
            yield (*where, "coefficients", option), problem
