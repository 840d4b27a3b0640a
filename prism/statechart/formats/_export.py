"""The formats in which a chart can be written."""

from __future__ import annotations

from collections.abc import Callable

from prism.drawing._dot import to_dot
from prism.drawing._mermaid import to_mermaid
from prism.drawing._svg import draw_svg
from prism.statechart._portable import Portable
from prism.statechart.formats._diagram import to_diagram
from prism.statechart.formats._scxml import to_scxml

_WRITERS: dict[str, Callable[[Portable], str]] = {
    "mermaid": lambda chart: to_mermaid(to_diagram(chart)),
    "dot": lambda chart: to_dot(to_diagram(chart)),
    "scxml": to_scxml,
    "json": Portable.to_json,
    "svg": lambda chart: draw_svg(to_diagram(chart)),
}
FORMATS = tuple(_WRITERS)


def as_text(chart: Portable, spec: str) -> str:
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
