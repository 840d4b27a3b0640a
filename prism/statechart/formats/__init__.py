"""A chart as a document: JSON, SCXML, Mermaid, DOT and SVG."""

from typing import TYPE_CHECKING

from prism._lazy import lazy_names

if TYPE_CHECKING:
    from prism.statechart.formats._export import label_of, to_outline
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["label_of", "to_outline"]
