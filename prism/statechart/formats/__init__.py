"""A chart as a document: JSON, SCXML, Mermaid, DOT and SVG."""

from prism.statechart.formats._scxml_names import scxml_guards, scxml_name

__all__ = ["scxml_guards", "scxml_name"]
