"""The parameters for which a plan has bounds, as coordinates from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, floor, log
from typing import Any

from prism.science._plan import Plan
from prism.science._plan_file import VARIED_SETTINGS, bound_of
from prism.social.parameters import DEFAULT_PRESET


def sampled(plan: Plan, refused: Sequence[str]) -> tuple[str, ...]:
    """Return the parameters with bounds.

    Args:
        plan: The plan.
        refused: Keys that the plan may not have as well.

    Raises:
        InputError: If there are none, or the plan has a refused key.
    """
    names = tuple(plan.data.get("bounds", {}))
    if not names:
        raise plan.error("is missing: add [bounds], such as friends = [2, 12]", "bounds")

    for key in refused:
        if key in plan.data:
            raise plan.error("is for batches: here [bounds] are sampled", key)

    return names


def values_at(
    plan: Plan, names: Sequence[str], points: Sequence[Sequence[float]]
) -> list[dict[str, Any]]:
    """Return the parameters of points whose coordinates go from 0 to 1.

    Args:
        plan: The plan.
        names: The parameters, one for each coordinate.
        points: The points.

    Raises:
        InputError: If a parameter is not a number.
    """
    scales = [_scale(plan, name) for name in names]
    return [
        {name: scale(each) for name, scale, each in zip(names, scales, point, strict=True)}
        for point in points
    ]


def _scale(plan: Plan, name: str) -> Callable[[float], float]:
    """Return the function that maps coordinates from 0 to 1 to values of a parameter.

    Raises:
        InputError: If the parameter holds no numbers.
    """
    bound, default = bound_of(plan.data["bounds"][name]), _default(plan, name)
    if isinstance(default, (bool, str, list)):
        problem = f"is for numbers, but {name} is {default!r} by default: use [vary]"
        raise plan.error(problem, "bounds", name)

    # rounding must not take a value beyond its bounds, which may be those of the world itself
    least, most, step = bound.least, bound.most, bound.step
    is_whole = all(isinstance(each, int) for each in (default, least, most))
    if bound.scale == "log":
        return _on_log_scale(least, most, is_whole=is_whole)
    if step is None and not is_whole:
        return lambda coordinate: min(least + (most - least) * coordinate, most)

    width = 1 if step is None else step
    last = floor((most - least) / width + 1e-9)

    # so that the first and last value are as likely as the others
    return lambda coordinate: min(least + width * min(floor((last + 1) * coordinate), last), most)


def _on_log_scale(least: float, most: float, *, is_whole: bool) -> Callable[[float], float]:
    # widened, so that the first and last whole number are as likely as the others
    low, high = (max(least - 0.5, 0.5), most + 0.5) if is_whole else (least, most)

    def value(coordinate: float) -> float:
        number = exp(log(low) * (1 - coordinate) + log(high) * coordinate)
        return min(max(round(number) if is_whole else number, least), most)

    return value


def _default(plan: Plan, name: str) -> Any:
    """Return the default of a parameter; None for an unknown one, which is reported later."""
    if name in VARIED_SETTINGS:
        return DEFAULT_PRESET if name == "preset" else 1

    first, *_ = plan.samples([{}])
    config = plan.options(first, plan.seeds[0]).to_config()
    return config.get("parameters", {}).get(name)
