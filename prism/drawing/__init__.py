"""Diagrams from plain data, as SVG, Mermaid or DOT; nothing here knows a chart."""

from prism.drawing._curves import draw_curves
from prism.drawing._diagram import Arrow, Box, Diagram, Levels
from prism.drawing._languages import to_dot, to_mermaid
from prism.drawing._svg import draw_svg
from prism.drawing._text import number_text, printable, showable

__all__ = [
    "Arrow",
    "Box",
    "Diagram",
    "Levels",
    "draw_curves",
    "draw_svg",
    "number_text",
    "printable",
    "showable",
    "to_dot",
    "to_mermaid",
]
