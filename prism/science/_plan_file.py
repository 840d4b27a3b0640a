"""Plan files: their declaration, the paths in them, and the plans that come with prism."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from prism.errors import InputError
from prism.files._source import Problems, Source
from prism.files.declarations import Declaration, Listed, shaped

FEED = "feed"
"""The name of the social feed in plans."""

VARIED_SETTINGS = ("agents", "rounds", "ticks", "preset")
"""Settings that may be varied besides parameters of the world."""

_SHIPPED = Path(__file__).with_name("plans")

Count = Annotated[int, Field(ge=1)]
Agents = Count | str
Scalar = float | str | bool
Value = Scalar | Listed[Scalar]
Parameters = Annotated[dict[str, Value], Field(description="Parameters of the world by name.")]
Reasoner = Annotated[
    dict[str, Any],
    Field(
        description="The model that decides: settings of prism.llm.Model; or policy, a policy file."
    ),
]
Treatments = Annotated[
    Listed[str], Field(description="Treatments of the world and their rounds, such as warning@12.")
]


def _distinct(values: Any) -> Any:
    """Refuse seeds or arms of which two would have one folder or one name."""
    if not isinstance(values, tuple):
        return values
    keys = [value.name if isinstance(value, Arm) else value for value in values]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"must not have {key!r} twice")
    return values


class Writer(Declaration):
    """Have the model write the texts, too."""

    model: str | None = Field(
        None, description="Another model than the one that decides, on the same servers."
    )
    max_length: Count | None = Field(None, description="Most characters of a text.")
    language: str | None = Field(None, description="Language of the texts.")


class Budget(Declaration):
    """The limits on models for all runs together."""

    max_calls: Count | None = Field(None, description="Requests that all runs may make together.")
    max_tokens: Count | None = Field(None, description="Tokens that all runs may use together.")
    deadline: float | None = Field(
        None, gt=0, description="Seconds from the first question of any run."
    )


class Sizes(Declaration):
    agents: Agents | None = Field(None, description="How many agents there are, or a file of them.")
    rounds: Count | None = Field(None, description="Number of rounds.")
    ticks: Count | None = Field(None, description="Ticks in a round.")
    preset: str | None = Field(None, description="Preset of the world's parameters.")


class Arm(Sizes):
    """An arm of the experiment: the settings in which it differs."""

    name: str = Field(description="Name of the arm in tables and folders.")
    parameters: Parameters = Field({})
    treatments: Treatments = ()
    reasoner: Reasoner = Field({})


class Bound(Declaration):
    least: int | float = Field(description="The smallest value.")
    most: int | float = Field(description="The largest value.")
    scale: Literal["linear", "log"] = Field(
        "linear", description="Whether values, or their logarithms, are spread evenly."
    )
    step: float | None = Field(
        None, gt=0, description="Distance between the values to take, from the smallest on."
    )


def _ordered(given: Bound | tuple[float, ...]) -> Any:
    """Refuse a bound without values."""
    bound = given if isinstance(given, Bound) else bound_of(given)
    if not bound.least < bound.most:
        raise ValueError(f"must have least below most, got {bound.least} and {bound.most}")
    if bound.scale == "log" and bound.least <= 0:
        raise ValueError(f"must be above 0 for a logarithmic scale, got {bound.least}")
    return given


Ends = Annotated[Listed[float], Field(min_length=2, max_length=2)]
"""The two ends of a bound without a scale or a step."""


class Vary(Declaration):
    """Values of parameters, agents, rounds, ticks, preset; all combinations are run."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Annotated[Listed[Value], Field(min_length=1)]]

    agents: Listed[Agents] | None = Field(None, min_length=1)
    rounds: Listed[Count] | None = Field(None, min_length=1)
    ticks: Listed[Count] | None = Field(None, min_length=1)
    preset: Listed[str] | None = Field(None, min_length=1)


class Target(Declaration):
    """A figure that the runs of a fit are compared with."""

    measure: str = Field(description="Column of the results, or of the rounds.")
    value: float = Field(description="The figure.")
    spread: float = Field(
        ge=0, description="Its standard error: how far the true figure may lie from it."
    )
    statistic: Literal["mean", "sd"] = Field(
        "mean",
        description="Statistic of the runs of a sample: their mean, or their standard deviation.",
    )
    arm: str | None = Field(None, description="The arm to which the figure applies.")
    round: Count | None = Field(
        None, description="The round to which the figure applies; by default the last."
    )
    held_out: bool = Field(
        False, description="Leave it out of the fit, and report how near the fit comes to it."
    )
    source: str | None = Field(None, description="Where it was published.")


class PlanFile(Sizes):
    """A plan of an experiment: parameters, arms and seeds."""

    name: str | None = Field(None, description="Name of the plan.")
    description: str | None = Field(None, description="Purpose of the plan.")
    world: str = Field(FEED, description="A short name, package.module:Name, or file.py:Name.")
    posts: str | None = Field(None, description="File of posts with which the social feed begins.")
    log_agents: Annotated[int, Field(ge=0)] | None = Field(
        None, description="Number of agents that the logs cover, a sample drawn by each seed."
    )
    seeds: Annotated[
        Count | Annotated[Listed[int], Field(min_length=1)], AfterValidator(_distinct)
    ] = Field(1, description="Number of seeds, counted from 0, or a list of seeds.")
    parameters: Parameters = Field({})
    vary: Vary | None = None
    treatments: Treatments = ()
    arm: Annotated[Listed[Arm] | None, AfterValidator(_distinct)] = Field(
        None, min_length=1, description="The arms."
    )
    reasoner: Reasoner = Field({})
    writer: Writer | None = None
    budget: Budget | None = None
    bounds: dict[str, Annotated[Ends | Bound, AfterValidator(_ordered)]] = Field(
        {}, description="Bounds of the parameters that a sensitivity analysis or a fit samples."
    )
    target: Listed[Target] | None = Field(
        None, min_length=1, description="Figures that a fit should reproduce."
    )
    measures: Listed[str] = Field(
        (), description="Columns of the results that a sensitivity analysis explains."
    )


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


def bound_of(given: Any) -> Bound:
    """Return a bound, which a plan may give by its two ends alone."""
    ends = given if isinstance(given, Mapping) else dict(zip(("least", "most"), given, strict=True))
    return Bound(**ends)


def placed(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a plan whose relative paths are relative to a folder."""
    return {
        key: _PLACED[key](value, folder) if key in _PLACED else value for key, value in data.items()
    }


def _beside(given: Any, folder: Path) -> Any:
    # "12" is a number of agents, as on the command line
    is_file = isinstance(given, str) and not given.isdecimal()
    return str(folder / given) if is_file else given


def _world_beside(given: str, folder: Path) -> str:
    module, colon, name = given.rpartition(":")
    # file.py:Name names a file, package.module:Name does not
    return str(folder / given) if (module if colon else name).endswith(".py") else given


_PLACED: Mapping[str, Callable[[Any, Path], Any]] = {
    "agents": _beside,
    "posts": _beside,
    "world": _world_beside,
    "vary": lambda given, folder: {
        key: [_beside(each, folder) for each in values] if key == "agents" else values
        for key, values in given.items()
    },
    "reasoner": lambda given, folder: {
        key: str(folder / value) if key == "policy" else value for key, value in given.items()
    },
    "arm": lambda given, folder: [placed(arm, folder) for arm in given],
}
"""How to resolve the paths in each part of a plan."""


def plan_path(given: Path | str) -> Path:
    """Return the path of a plan: the given file, or a plan that comes with prism.

    Raises:
        InputError: If neither exists.
    """
    path = Path(given)
    shipped = sorted(each.stem for each in _SHIPPED.glob("*.toml"))
    if not path.exists() and str(given) in shipped:
        return _SHIPPED / f"{given}.toml"
    if not path.exists() and not path.suffix:
        problem = f"there is no such file; the plans that come with prism are {', '.join(shipped)}"
        raise InputError(problem, path=path)

    return path
