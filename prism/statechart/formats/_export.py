"""The formats in which a chart can be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prism.drawing._dot import to_dot
from prism.drawing._mermaid import to_mermaid
from prism.drawing._svg import draw_svg
from prism.statechart._definition import Definition
from prism.statechart.formats._diagram import to_diagram
from prism.statechart.formats._document import to_data, to_text
from prism.statechart.formats._scxml import to_scxml

_WRITERS: dict[str, Callable[[Definition[Any]], str]] = {
    "mermaid": lambda chart: to_mermaid(to_diagram(chart)),
    "dot": lambda chart: to_dot(to_diagram(chart)),
    "scxml": to_scxml,
    "json": lambda chart: to_text(to_data(chart, None, None)),
    "svg": lambda chart: draw_svg(to_diagram(chart)),
}
FORMATS = tuple(_WRITERS)


def as_text(chart: Definition[Any], spec: str) -> str:
    """Write a chart in one of the formats.

    Args:
        chart: The chart.
        spec: One of ``FORMATS``.

    Raises:
        ValueError: If there is no such format.
    """
    if spec not in _WRITERS:
        raise ValueError(f"a chart has no format {spec!r}: use one of {', '.join(FORMATS)}")
    return _WRITERS[spec](chart)
