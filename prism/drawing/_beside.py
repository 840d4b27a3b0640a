"""Pictures beside each other, in one file."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"')
_GAP = 12.0


def beside(pictures: Sequence[str]) -> str:
    """Return one picture that shows several, made by this room, from left to right.

    Args:
        pictures: Them, as SVG.
    """
    sizes = [tuple(map(float, found)) for each in pictures for found in _SIZE.findall(each)[:1]]
    height = max(each for _, each in sizes)
    placed, x = [], 0.0
    for picture, (width, own) in zip(pictures, sizes, strict=True):
        placed.append(f'<g transform="translate({x:.0f} {(height - own) / 2:.0f})">{picture}</g>')
        x += width + _GAP

    width = x - _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'style="max-width: 100%; height: auto">\n<g class="prism-chart"><rect class="paper" '
        f'width="{width:.0f}" height="{height:.0f}" rx="6"/></g>\n{"".join(placed)}</svg>\n'
    )
