"""The frame, colours and texts that all pictures have, and pictures beside each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape

from prism.drawing._text import showable

_COLOURS = {
    "ink": ("#1f2328", "#e6edf3"),
    "paper": ("#ffffff", "#0d1117"),
    "box": ("#f0f3f6", "#1c232c"),
    "line": ("#6e7781", "#8b949e"),
    "accent": ("#8250df", "#b58cff"),
}
"""Each colour, on light and on dark paper."""

_FONTS = """
.prism-chart text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
.prism-chart .small { font-size: 11px; }
.prism-chart .name { font-size: 13px; font-weight: 600; }
.prism-chart .count { font-size: 11px; font-weight: 700; }
.prism-chart .idle { opacity: 0.45; stroke-dasharray: 3 3; }
"""
_COLOURED = """
.prism-chart text { fill: INK; }
.prism-chart .paper { fill: PAPER; }
.prism-chart .box { fill: BOX; stroke: LINE; stroke-width: 1.3; }
.prism-chart .decision { stroke: ACCENT; stroke-width: 2.4; }
.prism-chart .mark { fill: ACCENT; }
.prism-chart .ring { fill: none; stroke: ACCENT; }
.prism-chart .rest { stroke-dasharray: 4 3; fill: none; }
.prism-chart .line { fill: none; stroke: LINE; }
.prism-chart .head, .prism-chart .start { fill: LINE; }
"""
_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"')
_GAP = 12.0


def framed(name: str, width: float, height: float, parts: Iterable[str], style: str = "") -> str:
    """Return a picture, for light and dark surroundings.

    Args:
        name: Its title; empty if its parts have their own.
        width: Its width in pixels.
        height: Its height in pixels.
        parts: What it shows.
        style: Rules beside those of all pictures.
    """
    size = f'width="{width:.0f}" height="{height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="prism-chart" role="img" {size} '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width: 100%; height: auto">',
        title(name) if name else "",
        f"<style>{_style_sheet()}{style}</style>",
        f'<rect class="paper" {size} rx="6"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def title(text: str) -> str:
    """Return the title of an element."""
    # Shown as a tooltip, and read aloud by screen readers.
    return f"<title>{escape(showable(text), quote=False)}</title>"


@cache
def _style_sheet() -> str:
    """Return the style sheet, with plain colours first for programs without CSS variables."""

    def coloured(shade: int, value: str) -> str:
        rules = _COLOURED
        for name, shades in _COLOURS.items():
            colour = value.format(name=name, colour=shades[shade])
            rules = rules.replace(f" {name.upper()};", f" {colour};")
        return rules

    light, dark = (coloured(shade, "var(--chart-{name}, {colour})") for shade in (0, 1))
    return (
        f"{_FONTS}{coloured(0, '{colour}')}@supports (fill: var(--chart-ink)) {{{light}}}\n"
        f"@media (prefers-color-scheme: dark) {{{dark}}}\n"
    )


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

    return framed("", x - _GAP, height, placed)
