"""What contradicts itself in a plan, beyond what its schema says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prism.science._plan_schema import VARIED_SETTINGS, Keys

SOCIAL = "social"
"""What plans call the social feed."""


def contradictions(data: Mapping[str, Any]) -> Iterator[tuple[Keys, str]]:
    """Yield what cannot both hold in a plan, and where it stands."""
    fixed, vary = data.get("parameters", {}), data.get("vary", {})
    seeds = data.get("seeds", 1)
    if isinstance(seeds, list) and len(set(seeds)) < len(seeds):
        yield ("seeds",), "has a seed twice"

    yield from _not_of_the_feed(data)
    for name, values in vary.items():
        if name in fixed:
            yield ("vary", name), "is among [parameters], too: leave one out"
        if name in VARIED_SETTINGS and name in data:
            yield ("vary", name), f"is said outside of [vary], too ({data[name]!r}): leave one out"
        yield from _twice(values, ("vary", name))

    yield from _wrong_arms(data.get("arm", []), vary)
    for name, bound in data.get("bounds", {}).items():
        if name in VARIED_SETTINGS and name in data:
            yield (
                ("bounds", name),
                f"is said outside of [bounds], too ({data[name]!r}): leave one out",
            )
        if name in vary or name in fixed:
            yield ("bounds", name), "is among [parameters] or [vary], too: leave one out"
        yield from _wrong_bound(name, bound)


def _not_of_the_feed(data: Mapping[str, Any]) -> Iterator[tuple[Keys, str]]:
    """Yield what is for the social feed alone, in a plan of another world."""
    world = data.get("world", SOCIAL)
    if world == SOCIAL:
        return

    wrong: list[Keys] = [(key,) for key in ("preset", "posts") if key in data]
    wrong += [("vary", "preset")] if "preset" in data.get("vary", {}) else []
    arms = enumerate(data.get("arm", ()))
    wrong += [("arm", place, "preset") for place, arm in arms if "preset" in arm]
    for keys in wrong:
        yield keys, f"is for the social feed, and this world is {world}: leave it out"


def _twice(values: Sequence[Any], keys: Keys) -> Iterator[tuple[Keys, str]]:
    for place, value in enumerate(values):
        if value in values[:place]:
            yield (*keys, place), f"has the value {value!r} twice"


def _wrong_arms(
    arms: Sequence[Mapping[str, Any]], vary: Mapping[str, Any]
) -> Iterator[tuple[Keys, str]]:
    names = [arm["name"] for arm in arms]
    for place, arm in enumerate(arms):
        if arm["name"] in names[:place]:
            yield ("arm", place, "name"), f"is that of another arm, {arm['name']!r}"
        for name in arm.get("parameters", {}):
            if name in vary:
                yield ("arm", place, "parameters", name), "is varied in [vary], too"
        for name in (each for each in VARIED_SETTINGS if each in arm and each in vary):
            yield ("arm", place, name), "is varied in [vary], too"


def _wrong_bound(name: str, bound: Any) -> Iterator[tuple[Keys, str]]:
    least, most, scale = limits_of(bound)
    if not least < most:
        yield ("bounds", name), f"must have its least value below its most, got {least} and {most}"
    elif scale == "log" and least <= 0:
        yield ("bounds", name), f"must be above 0 for a logarithmic scale, got {least}"
    elif scale == "log" and "step" in bound:
        yield ("bounds", name, "step"), "is for a linear scale: leave out one of them"


def limits_of(bound: Any) -> tuple[float, float, str]:
    """Return the least value, the largest and the scale of a bound in a plan."""
    if isinstance(bound, Mapping):
        return bound["least"], bound["most"], bound.get("scale", "linear")

    return bound[0], bound[1], "linear"
