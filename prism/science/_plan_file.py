"""Plan files: their declaration, the paths in them, and the plans that come with prism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field

from prism.errors import InputError
from prism.files.declarations import Declaration, Listed, shaped
from prism.files.source import Problems, Source

FEED = "feed"
"""The name of the social feed in plans."""

VARIED_SETTINGS = ("agents", "rounds", "ticks", "preset")
"""Settings that may be varied besides parameters of the world."""

_SHIPPED = Path(__file__).with_name("plans")

Count = Annotated[int, Field(ge=1)]
Agents = Count | str
Scalar = float | str | bool
Value = Scalar | Listed[Scalar]


class Writer(Declaration):
    """Have the model write the texts, too."""

    model: str | None = None
    max_length: Count | None = None
    language: str | None = None


class Budget(Declaration):
    """The limits on models: calls and tokens of all runs together, and the seconds of each."""

    max_calls: Count | None = None
    max_tokens: Count | None = None
    deadline: Annotated[float, Field(gt=0)] | None = None


class Sizes(Declaration):
    agents: Agents | None = None
    rounds: Count | None = None
    ticks: Count | None = None
    preset: str | None = None


class Arm(Sizes):
    """An arm of the experiment: the settings in which it differs."""

    name: str
    parameters: dict[str, Value] = Field({})
    treatments: Listed[str] = ()
    reasoner: dict[str, Any] = Field({})


class Bound(Declaration):
    """The smallest and the largest value of a parameter, and how the values lie between."""

    least: int | float
    most: int | float
    scale: Literal["linear", "log"] = "linear"
    step: Annotated[float, Field(gt=0)] | None = None


def _distinct(values: Any) -> Any:
    """Refuse seeds, arms or varied values of which two would be one run twice."""
    several = values if isinstance(values, tuple) else ()
    keys = [value.name if isinstance(value, Arm) else value for value in several]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"must not have {key!r} twice")
    return values


_ItemT = TypeVar("_ItemT")
Varied = Annotated[Listed[_ItemT], Field(min_length=1), AfterValidator(_distinct)]


class Vary(Declaration):
    """Values of parameters, agents, rounds, ticks, preset; all combinations are run."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Varied[Value]]

    agents: Varied[Agents] | None = None
    rounds: Varied[Count] | None = None
    ticks: Varied[Count] | None = None
    preset: Varied[str] | None = None


class Target(Declaration):
    """A figure that the runs of a fit are compared with, and its standard error.

    It applies to the last round, unless it has another one. One that is held out is reported, but
    not fitted.
    """

    measure: str
    value: float
    spread: Annotated[float, Field(ge=0)]
    statistic: Literal["mean", "sd"] = "mean"
    arm: str | None = None
    round: Count | None = None
    held_out: bool = False
    source: str | None = None


def _ordered(value: Bound | tuple[float, ...]) -> Any:
    """Refuse a bound without values."""
    bound = value if isinstance(value, Bound) else bound_of(value)
    if not bound.least < bound.most:
        raise ValueError(f"must have least below most, got {bound.least} and {bound.most}")
    if bound.scale == "log" and bound.least <= 0:
        raise ValueError(f"must be above 0 for a logarithmic scale, got {bound.least}")
    return value


Seeds = Count | Annotated[Listed[int], Field(min_length=1)]
Ends = Annotated[Listed[float], Field(min_length=2, max_length=2)]
"""The two ends of a bound without a scale or a step."""


class PlanFile(Sizes):
    """A plan of an experiment, as the page on experiments describes it."""

    name: str | None = None
    description: str | None = None
    world: str = FEED
    posts: str | None = None
    log_agents: Annotated[int, Field(ge=0)] | None = None
    seeds: Annotated[Seeds, AfterValidator(_distinct)] = 1
    parameters: dict[str, Value] = Field({})
    vary: Vary | None = None
    treatments: Listed[str] = ()
    arm: Varied[Arm] | None = None
    reasoner: dict[str, Any] = Field({})
    writer: Writer | None = None
    budget: Budget | None = None
    bounds: dict[str, Annotated[Ends | Bound, AfterValidator(_ordered)]] = Field({})
    target: Annotated[Listed[Target], Field(min_length=1)] | None = None
    measures: Listed[str] = ()


def require_plan(source: Source) -> None:
    """Reject a document that is not a plan.

    Args:
        source: The document.

    Raises:
        InputError: If there are problems; the message lists them all, by line and key.
    """
    problems = Problems(source)
    shaped(PlanFile, source.value, problems)
    problems.raise_if_any()


def bound_of(value: Any) -> Bound:
    """Return a bound, which a plan may give by its two ends alone."""
    ends = value if isinstance(value, Mapping) else dict(zip(("least", "most"), value, strict=True))
    return Bound(**ends)


def placed(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a plan whose relative paths are relative to a folder."""
    return {
        key: _PLACED[key](value, folder) if key in _PLACED else value for key, value in data.items()
    }


def _beside(value: Any, folder: Path) -> Any:
    # "12" is a number of agents, as on the command line
    is_file = isinstance(value, str) and not value.isdecimal()
    return str(folder / value) if is_file else value


def _world_beside(world: str, folder: Path) -> str:
    # file.py:Name names a file, package.module:Name does not
    return str(folder / world) if world.rpartition(":")[0].endswith(".py") else world


_PLACED: Mapping[str, Callable[[Any, Path], Any]] = {
    "agents": _beside,
    "posts": _beside,
    "world": _world_beside,
    "vary": lambda value, folder: {
        key: [_beside(each, folder) for each in values] if key == "agents" else values
        for key, values in value.items()
    },
    "reasoner": lambda value, folder: {
        key: str(folder / value) if key == "policy" else value for key, value in value.items()
    },
    "arm": lambda value, folder: [placed(arm, folder) for arm in value],
}
"""How to resolve the paths in each part of a plan."""


def plan_path(plan: Path | str) -> Path:
    """Return the path of a plan: the given file, or a plan that comes with prism.

    Raises:
        InputError: If neither exists.
    """
    path = Path(plan)
    shipped = sorted(each.stem for each in _SHIPPED.glob("*.toml"))
    if not path.exists() and str(plan) in shipped:
        return _SHIPPED / f"{plan}.toml"
    if not path.exists() and not path.suffix:
        problem = f"there is no such file; the plans that come with prism are {', '.join(shipped)}"
        raise InputError(problem, path=path)

    return path
