"""Diagrams from plain data, as SVG, Mermaid or DOT; nothing here knows a chart."""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.drawing._curves import draw_curves
    from prism.drawing._diagram import Arrow, Box, Diagram
    from prism.drawing._frame import beside
    from prism.drawing._languages import to_dot, to_mermaid
    from prism.drawing._svg import draw_svg
    from prism.drawing._text import printable, showable
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Arrow",
    "Box",
    "Diagram",
    "beside",
    "draw_curves",
    "draw_svg",
    "printable",
    "showable",
    "to_dot",
    "to_mermaid",
]
