"""Plan files: their declaration, contradictions in them, and the paths of their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from prism.errors import InputError
from prism.files._source import Problems, Source, Where
from prism.files.declarations import (
    Declaration,
    Listed,
    shaped,
)

FEED = "feed"
"""The name of the social feed in plans."""

VARIED_SETTINGS = ("agents", "rounds", "ticks", "preset")
"""Settings that may be varied besides parameters of the world."""

_SHIPPED = Path(__file__).with_name("plans")
_FILES = ("policy",)

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
    least: float = Field(description="The smallest value.")
    most: float = Field(description="The largest value.")
    scale: Literal["linear", "log"] = Field(
        "linear", description="Whether values, or their logarithms, are spread evenly."
    )
    step: float | None = Field(
        None, gt=0, description="Distance between the values to take, from the smallest on."
    )


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
    seeds: Count | Annotated[Listed[int], Field(min_length=1)] = Field(
        1, description="Number of seeds, counted from 0, or a list of seeds."
    )
    parameters: Parameters = Field({})
    vary: Vary | None = None
    treatments: Treatments = ()
    arm: Listed[Arm] | None = Field(None, min_length=1, description="The arms.")
    reasoner: Reasoner = Field({})
    writer: Writer | None = None
    budget: Budget | None = None
    bounds: dict[str, Annotated[Listed[float], Field(min_length=2, max_length=2)] | Bound] = Field(
        {}, description="Bounds of the parameters that a sensitivity analysis or a fit samples."
    )
    target: Listed[Target] | None = Field(
        None, min_length=1, description="Figures that a fit should reproduce."
    )
    measures: Listed[str] = Field(
        (), description="Columns of the results that a sensitivity analysis explains."
    )


def require_plan(source: Source) -> None:
    """Reject a document that is not a plan or contradicts itself.

    Args:
        source: The document.

    Raises:
        InputError: If there are problems; the message lists them all, by line and key.
    """
    problems = Problems(source)
    if shaped(PlanFile, source.value, problems):
        for where, message in _contradictions(source.value):
            problems.add(where, message)

    problems.raise_if_any()


def _contradictions(data: Mapping[str, Any]) -> Iterator[tuple[Where, str]]:
    """Yield the contradictions in a plan, with their locations."""
    fixed, vary = data.get("parameters", {}), data.get("vary", {})
    seeds = data.get("seeds", 1)
    if isinstance(seeds, list) and len(set(seeds)) < len(seeds):
        yield ("seeds",), "has a seed twice"

    for name, values in vary.items():
        if name in fixed:
            yield ("vary", name), "is also among [parameters]: leave one out"
        yield from _set_outside(data, "vary", name)
        yield from _twice(values, ("vary", name))

    yield from _wrong_arms(data.get("arm", []), vary)
    yield from _wrong_targets(data)
    for name, bound in data.get("bounds", {}).items():
        yield from _set_outside(data, "bounds", name)
        if name in vary or name in fixed:
            yield ("bounds", name), "is also among [parameters] or [vary]: leave one out"
        yield from _wrong_bound(name, bound)


def _set_outside(data: Mapping[str, Any], table: str, name: str) -> Iterator[tuple[Where, str]]:
    """Yield the settings that a table varies although the plan sets them."""
    if name in VARIED_SETTINGS and name in data:
        problem = f"is also set outside [{table}] ({data[name]!r}): leave one out"
        yield (table, name), problem


def _twice(values: Sequence[Any], keys: Where) -> Iterator[tuple[Where, str]]:
    for place, value in enumerate(values):
        if value in values[:place]:
            yield (*keys, place), f"has the value {value!r} twice"


def _wrong_arms(
    arms: Sequence[Mapping[str, Any]], vary: Mapping[str, Any]
) -> Iterator[tuple[Where, str]]:
    names = [arm["name"] for arm in arms]
    for place, arm in enumerate(arms):
        if arm["name"] in names[:place]:
            yield ("arm", place, "name"), f"is the same as that of another arm, {arm['name']!r}"
        for name in arm.get("parameters", {}):
            if name in vary:
                yield ("arm", place, "parameters", name), "is also varied in [vary]"
        for name in (each for each in VARIED_SETTINGS if each in arm and each in vary):
            yield ("arm", place, name), "is also varied in [vary]"


def _wrong_bound(name: str, bound: Any) -> Iterator[tuple[Where, str]]:
    least, most, scale = limits_of(bound)
    if not least < most:
        yield (
            ("bounds", name),
            (f"must have a low bound below its high bound, got {least} and {most}"),
        )
    elif scale == "log" and least <= 0:
        yield ("bounds", name), f"must be above 0 for a logarithmic scale, got {least}"
    elif scale == "log" and "step" in bound:
        yield ("bounds", name, "step"), "is for a linear scale: leave one of them out"


_SAME_TARGET = ("measure", "statistic", "arm", "round", "held_out")


def _wrong_targets(data: Mapping[str, Any]) -> Iterator[tuple[Where, str]]:
    seeds = data.get("seeds", 1)
    has_one_seed = (seeds if isinstance(seeds, int) else len(seeds)) == 1
    arms = [each["name"] for each in data.get("arm", [])]
    seen: set[tuple[Any, ...]] = set()
    for place, each in enumerate(data.get("target", [])):
        if problem := _wrong_arm_of_target(each.get("arm"), arms):
            yield ("target", place, "arm"), problem
        if each.get("statistic") == "sd" and has_one_seed:
            yield ("target", place, "statistic"), "needs two seeds or more"
        which = tuple(each.get(name) for name in _SAME_TARGET)
        if which in seen:
            yield ("target", place), "is already a target: give it only once"
        seen.add(which)


def _wrong_arm_of_target(arm: str | None, arms: Sequence[str]) -> str | None:
    if arms and arm not in arms:
        return f"must be one of {', '.join(arms)}"

    return None if arms or arm is None else "names an arm, but the plan has none"


def limits_of(bound: Any) -> tuple[float, float, str]:
    """Return the smallest value, the largest value and the scale of a bound in a plan."""
    if isinstance(bound, Mapping):
        return bound["least"], bound["most"], bound.get("scale", "linear")

    return bound[0], bound[1], "linear"


# Files that a plan names, and plans that ship


def placed(data: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a plan whose relative paths are relative to a folder."""
    return {
        key: _PLACED[key](value, folder) if key in _PLACED else value for key, value in data.items()
    }


def _beside(given: Any, folder: Path) -> Any:
    # "12" is a number of agents, as on the command line
    return str(folder / given) if isinstance(given, str) and not _is_number(given) else given


def _world_beside(given: str, folder: Path) -> str:
    place, colon, name = given.rpartition(":")
    # file.py:Name names a file, package.module:Name does not
    return str(folder / given) if (place if colon else name).endswith(".py") else given


_PLACED: Mapping[str, Callable[[Any, Path], Any]] = {
    "agents": _beside,
    "posts": _beside,
    "world": _world_beside,
    "vary": lambda given, folder: {
        key: [_beside(each, folder) for each in values] if key == "agents" else values
        for key, values in given.items()
    },
    "reasoner": lambda given, folder: {
        key: str(folder / value) if key in _FILES else value for key, value in given.items()
    },
    "arm": lambda given, folder: [placed(arm, folder) for arm in given],
}
"""How to resolve the paths in each part of a plan."""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def shipped_plans() -> list[str]:
    """Return the names of the plans that come with prism."""
    return sorted(path.stem for path in _SHIPPED.glob("*.toml"))


def plan_path(given: Path | str) -> Path:
    """Return the path of a plan: the given file, or a plan that comes with prism.

    Raises:
        InputError: If neither exists.
    """
    path = Path(given)
    if not path.exists() and str(given) in shipped_plans():
        return _SHIPPED / f"{given}.toml"
    if not path.exists() and not path.suffix:
        problem = (
            "there is no such file; the plans that come with prism are "
            f"{', '.join(shipped_plans())}"
        )
        raise InputError(problem, path=path)

    return path
