"""Diagrams from plain data, as SVG, Mermaid or DOT; nothing here knows a chart."""

from prism.drawing._characters import printable, showable
from prism.drawing._diagram import Arrow, Diagram
from prism.drawing._dot import to_dot
from prism.drawing._mermaid import to_mermaid
from prism.drawing._svg import draw_svg

__all__ = [
    "Arrow",
    "Diagram",
    "draw_svg",
    "printable",
    "showable",
    "to_dot",
    "to_mermaid",
]
