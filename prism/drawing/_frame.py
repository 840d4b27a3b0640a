"""The frame, colours and texts that all pictures have."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html import escape
from string import Template

from prism.drawing._text import showable

_LIGHT = {"ink": "#1f2328", "paper": "#fff", "box": "#f0f3f6", "line": "#6e7781", "edge": "#8250df"}
_DARK = {"ink": "#e6edf3", "paper": "#111", "box": "#1c232c", "line": "#8b949e", "edge": "#b58cff"}
_FONTS = """
.prism-chart text { font-family: system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
.prism-chart .small { font-size: 11px; }
.prism-chart .name { font-size: 13px; font-weight: 600; }
.prism-chart .count { font-size: 11px; font-weight: 700; }
.prism-chart .idle { opacity: 0.45; stroke-dasharray: 3 3; }
"""
_COLOURED = Template("""
.prism-chart text { fill: $ink; }
.prism-chart .paper { fill: $paper; }
.prism-chart .box { fill: $box; stroke: $line; stroke-width: 1.3; }
.prism-chart .decision { stroke: $edge; stroke-width: 2.4; }
.prism-chart .rest { stroke-dasharray: 4 3; fill: none; }
.prism-chart .line { fill: none; stroke: $line; }
.prism-chart .head, .prism-chart .start { fill: $line; }
""")


def framed(name: str, width: float, height: float, parts: Iterable[str], style: str = "") -> str:
    """Return a picture, for light and dark surroundings.

    Args:
        name: Its title.
        width: Its width in pixels.
        height: Its height in pixels.
        parts: What it shows.
        style: Rules beside those of all pictures.
    """
    size = f'width="{width:.0f}" height="{height:.0f}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="prism-chart" role="img" {size} '
        # on a phone, text gets no smaller than 7 pixels: what is around it scrolls
        f'viewBox="0 0 {width:.0f} {height:.0f}" '
        f'style="max-width: 100%; min-width: {0.65 * round(width):.0f}px; height: auto">',
        title(name),
        f"<style>{_style_sheet()}{style}</style>",
        f'<rect class="paper" {size} rx="6"/>',
        *parts,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def title(text: str) -> str:
    """Return the title of an element, which is its tooltip and read aloud by screen readers."""
    return f"<title>{escape(showable(text), quote=False)}</title>"


@cache
def _style_sheet() -> str:
    light, dark = map(_COLOURED.substitute, (_LIGHT, _DARK))
    return f"{_FONTS}{light}@media (prefers-color-scheme: dark) {{{dark}}}\n"
