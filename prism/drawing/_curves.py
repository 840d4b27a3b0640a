"""Curves of several groups of runs as SVG, drawn without any other program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10

from prism.drawing._text import Text, framed

_LIGHT, _DARK = ("#8250df", "#bf5b04", "#0a7d6c"), ("#b58cff", "#f0a35e", "#4fd1b8")
"""The colours of the groups."""
_WIDTH, _HEIGHT = 460.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 446.0, 62.0, 256.0
_LINES = 4
"""About how many lines a scale has."""


def draw_curves(
    groups: Mapping[str, Sequence[Sequence[float]]], *, title: str, across: str, up: str
) -> str:
    """Draw the curves of every group thin, and the mean of each group thick.

    Args:
        groups: Curves by the name of their group, one to three groups. A curve has a value for
            each round, and all curves have the same number of rounds, 2 or more.
        title: What the picture shows.
        across: Name of the horizontal axis, which counts from 1.
        up: Name of the vertical axis, which begins at 0.

    Returns:
        The picture, for light and dark surroundings.
    """
    curves = [curve for group in groups.values() for curve in group]
    length, most = len(curves[0]), max(map(max, curves)) or 1.0
    step = _round_step(most / _LINES)
    top = step * ceil(most / step)

    def x(index: float) -> float:
        return _LEFT + index / (length - 1) * (_RIGHT - _LEFT)

    def y(value: float) -> float:
        return _BOTTOM - value / top * (_BOTTOM - _TOP)

    def path(kind: str, curve: Sequence[float], look: str) -> str:
        points = (f"{x(index):.1f} {y(value):.1f}" for index, value in enumerate(curve))
        return f'<path class="{kind}" d="M{" L".join(points)}" fill="none" {look}/>'

    parts = [_text(_LEFT, 19, title, "start", "name")]
    x_legend = _RIGHT
    for index, name in reversed([*enumerate(groups)]):
        x_legend -= 7.0 * len(name)
        parts.append(_text(x_legend, 38, name, "start"))
        parts.append(f'<path class="c{index}" d="M{x_legend - 24:.1f} 38 h18" stroke-width="3"/>')
        x_legend -= 40.0
    for number in range(round(top / step) + 1):
        height = y(number * step)
        parts.append(f'<path class="line" opacity="0.25" d="M{_LEFT} {height:.1f} H{_RIGHT}"/>')
        parts.append(_text(_LEFT - 6, height, f"{number * step:g}", "end"))

    every = max(1, round(_round_step(length / _LINES)))
    numbers = sorted({1, *range(every, length + 1, every)})
    parts += [_text(x(number - 1), _BOTTOM + 12, str(number)) for number in numbers]
    parts.append(_text((_LEFT + _RIGHT) / 2, _HEIGHT - 14, across))
    parts.append(_text(_LEFT, _TOP - 12, up, "start"))

    means = []
    for index, group in enumerate(groups.values()):
        parts += [path(f"one c{index}", curve, 'opacity="0.3"') for curve in group]
        mean = [sum(values) / len(values) for values in zip(*group, strict=True)]
        means.append(path(f"mean c{index}", mean, 'stroke-width="3"'))

    style = f"{_rules(_LIGHT)}@media (prefers-color-scheme: dark) {{{_rules(_DARK)}}}\n"
    return framed(title, _WIDTH, _HEIGHT, [*parts, *means], style)


def _rules(colours: Sequence[str]) -> str:
    return "".join(
        f"\n.prism-chart .c{index} {{ stroke: {each}; }}" for index, each in enumerate(colours)
    )


def _round_step(about: float) -> float:
    """Return 1, 2 or 5 times a power of ten, near a number."""
    power = 10.0 ** floor(log10(about))
    return next((each * power for each in (1, 2, 5) if each * power >= about), 10 * power)


def _text(x: float, y: float, words: str, anchor: str = "middle", kind: str = "small") -> str:
    return Text(((kind, words),)).at(x, y, anchor)
