"""Curves of several groups of runs as SVG, drawn without any other program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import floor, log10

from prism.drawing._svg import DARK, LIGHT
from prism.errors import DefinitionError

Curve = Sequence[float]

_COLOURS = (("#8250df", "#b58cff"), ("#bf5b04", "#f0a35e"), ("#0a7d6c", "#4fd1b8"))
"""The colours of each group, on light and on dark paper."""

_WIDTH, _HEIGHT = 460.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 52.0, 14.0, 62.0, 44.0
_LINES = 4
"""About how many lines a scale has."""


def draw_curves(groups: Mapping[str, Sequence[Curve]], *, title: str, across: str, up: str) -> str:
    """Draw the curves of every group thin, and the mean of each group thick.

    Args:
        groups: Curves by the name of their group, three groups at most. A curve has a value for
            each round, and all curves have the same number of rounds.
        title: What the picture shows.
        across: Name of the horizontal axis, which counts from 1.
        up: Name of the vertical axis, which begins at 0.

    Returns:
        The picture, for light and dark surroundings.

    Raises:
        DefinitionError: If there is nothing to draw, or the curves differ in length.
    """
    plot = _plot_of(groups)
    size = f'width="{_WIDTH:.0f}" height="{_HEIGHT:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="prism-curves" role="img" {size} '
        f'viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" style="max-width: 100%; height: auto">',
        f"<title>{escape(title)}</title>",
        f"<style>{_style()}</style>",
        f'<rect class="paper" {size} rx="6"/>',
        f'<text class="head" x="{_LEFT:.0f}" y="24">{escape(title)}</text>',
        *plot.scales(across, up),
        *_legend(list(groups)),
    ]
    for place, group in enumerate(groups.values()):
        parts += [f'<path class="one c{place}" d="{plot.path(curve)}"/>' for curve in group]
    for place, group in enumerate(groups.values()):
        mean = [sum(values) / len(values) for values in zip(*group, strict=True)]
        parts.append(f'<path class="mean c{place}" d="{plot.path(mean)}"/>')

    return "\n".join([*parts, "</svg>"]) + "\n"


def _plot_of(groups: Mapping[str, Sequence[Curve]]) -> _Plot:
    curves = [curve for group in groups.values() for curve in group]
    lengths = {len(curve) for curve in curves}
    if len(lengths) != 1 or min(lengths) < 2 or not 1 <= len(groups) <= len(_COLOURS):
        problem = "needs one to three groups of curves, all of the same length, 2 or more"
        raise DefinitionError(f"a picture of curves {problem}")

    return _Plot(lengths.pop(), max(max(curve) for curve in curves) or 1.0)


class _Plot:
    """The positions of values on the paper.

    Args:
        length: How many values a curve has.
        most: The greatest of all values.
    """

    def __init__(self, length: int, most: float) -> None:
        self.length = length
        self.step = _round_step(most / _LINES)
        self.top = self.step * -(-most // self.step)

    def x(self, place: float) -> float:
        """Return the position of a round, counted from 0."""
        return _LEFT + place / (self.length - 1) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """Return the position of a value."""
        return _HEIGHT - _BOTTOM - value / self.top * (_HEIGHT - _TOP - _BOTTOM)

    def path(self, curve: Curve) -> str:
        """Return a curve as the data of a path."""
        points = (f"{self.x(place):.1f} {self.y(value):.1f}" for place, value in enumerate(curve))
        return "M" + " L".join(points)

    def scales(self, across: str, up: str) -> Iterator[str]:
        """Draw both axes with their names and numbers."""
        below = _HEIGHT - _BOTTOM
        for number in range(round(self.top / self.step) + 1):
            y = self.y(number * self.step)
            yield f'<path class="grid" d="M{_LEFT:.1f} {y:.1f} H{_WIDTH - _RIGHT:.1f}"/>'
            yield _text(_LEFT - 6, y + 4, f"{number * self.step:g}", "end")

        step = max(1, round(_round_step(self.length / _LINES)))
        for number in sorted({1, *range(step, self.length + 1, step)}):
            yield _text(self.x(number - 1), below + 16, str(number), "middle")

        yield _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, across, "middle")
        yield _text(_LEFT, _TOP - 8, up, "start")


def _round_step(about: float) -> float:
    """Return 1, 2 or 5 times a power of ten, near a number."""
    power = 10.0 ** floor(log10(about))
    return next((each * power for each in (1, 2, 5) if each * power >= about), 10 * power)


def _legend(names: Sequence[str]) -> Iterator[str]:
    x = _WIDTH - _RIGHT
    for place, name in reversed(list(enumerate(names))):
        x -= 7.0 * len(name)
        yield _text(x, 42, name, "start")
        yield f'<path class="mean c{place}" d="M{x - 24:.1f} 38 h18"/>'
        x -= 40.0


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _style() -> str:
    dark = "\n".join(_rules(DARK, 1))
    return "\n".join(
        [
            '.prism-curves text { font: 11px system-ui, "Segoe UI", Helvetica, sans-serif; }',
            ".prism-curves .head { font-size: 13px; font-weight: 600; }",
            ".prism-curves path { fill: none; }",
            ".prism-curves .one { stroke-width: 1; opacity: 0.3; }",
            ".prism-curves .mean { stroke-width: 3; }",
            *_rules(LIGHT, 0),
            f"@media (prefers-color-scheme: dark) {{\n{dark}\n}}",
        ]
    )


def _rules(colours: Mapping[str, str], shade: int) -> Iterator[str]:
    yield f".prism-curves text {{ fill: {colours['ink']}; }}"
    yield f".prism-curves .paper {{ fill: {colours['paper']}; }}"
    yield f".prism-curves .grid {{ stroke: {colours['box']}; }}"
    for place, shades in enumerate(_COLOURS):
        yield f".prism-curves .c{place} {{ stroke: {shades[shade]}; }}"
