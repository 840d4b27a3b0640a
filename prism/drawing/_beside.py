"""Pictures beside each other, in one file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from prism.drawing._svg import DARK, LIGHT

_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"')
_GAP = 12.0


def beside(pictures: Sequence[str]) -> str:
    """Return one picture that shows several of this room's pictures side by side.

    Args:
        pictures: The pictures, as SVG.
    """
    sizes = [tuple(map(float, found)) for each in pictures for found in _SIZE.findall(each)[:1]]
    height = max(each for _, each in sizes)
    placed, x = [], 0.0
    for picture, (width, own) in zip(pictures, sizes, strict=True):
        placed.append(f'<g transform="translate({x:.0f} {(height - own) / 2:.0f})">{picture}</g>')
        x += width + _GAP

    width, size = x - _GAP, f'width="{x - _GAP:.0f}" height="{height:.0f}"'
    paper = ".prism-beside {{ fill: {paper}; }}"
    style = "{} @media (prefers-color-scheme: dark) {{ {} }}".format(
        *(paper.format(**colours) for colours in (LIGHT, DARK))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width: 100%; height: auto">\n'
        f'<style>{style}</style><rect class="prism-beside" {size} rx="6"/>\n'
        f"{''.join(placed)}</svg>\n"
    )
