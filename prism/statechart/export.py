"""The formats in which a chart can be written."""

from __future__ import annotations

from collections.abc import Callable

from prism.statechart.dot import to_dot
from prism.statechart.drawing import draw_svg
from prism.statechart.mermaid import to_mermaid
from prism.statechart.outline import outline
from prism.statechart.portable import Portable
from prism.statechart.scxml import to_scxml

_WRITERS: dict[str, Callable[[Portable], str]] = {
    "mermaid": lambda chart: to_mermaid(outline(chart)),
    "dot": lambda chart: to_dot(outline(chart)),
    "scxml": to_scxml,
    "json": Portable.to_json,
    "svg": lambda chart: draw_svg(outline(chart)),
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
