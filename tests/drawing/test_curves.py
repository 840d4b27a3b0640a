"""Curves as SVG."""

import re
from xml.etree import ElementTree

import pytest

from prism.drawing import draw_curves


def points_of(picture: str, kind: str) -> list[list[tuple[float, float]]]:
    """Return the points of each path of a class."""
    paths = re.findall(rf'class="{kind} c\d" d="M([^"h]*)"', picture)
    return [[tuple(map(float, point.split())) for point in path.split(" L")] for path in paths]  # type: ignore[misc]


def test_every_curve_and_the_mean_of_its_group_are_drawn_to_scale() -> None:
    """A value twice as high appears twice as far above the axis; the mean is between its curves."""
    picture = draw_curves(
        {"a <b>": [[0, 10, 20], [0, 20, 40]], "c": [[0, 5, 5]]}, title="t", across="x", up="y"
    )
    ElementTree.fromstring(picture)
    first, second, third = points_of(picture, "one")
    axis = first[0][1]
    assert axis - second[2][1] == pytest.approx(2 * (axis - first[2][1]), abs=0.2)
    mean, other = points_of(picture, "mean")
    assert mean[2][1] == pytest.approx((first[2][1] + second[2][1]) / 2, abs=0.1)
    assert other == third
    assert re.findall(r'text-anchor="end">(\d+)<', picture) == ["0", "10", "20", "30", "40"]
    assert "a &lt;b&gt;" in picture
    assert "prefers-color-scheme: dark" in picture
