"""Figures as files of the formats that papers and slides take."""

from __future__ import annotations

from typing import Literal

import vl_convert

FigureFormat = Literal["svg", "png", "pdf"]

_PIXELS = 2.0


def in_format(svg: str, format: FigureFormat) -> bytes:  # noqa: A002
    """Return what a file of a figure holds.

    Args:
        svg: The figure.
        format: ``svg``, ``png`` with two dots a pixel, or ``pdf`` with vectors and embedded fonts.
    """
    if format == "png":
        return vl_convert.svg_to_png(svg, scale=_PIXELS)

    return vl_convert.svg_to_pdf(svg) if format == "pdf" else svg.encode()
