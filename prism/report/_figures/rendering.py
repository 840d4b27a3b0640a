"""Figures as SVG, for files and to see whether they can be drawn at all."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import Any

import altair as alt
import vl_convert

# The version of Vega-Lite that altair writes, or the newest one that vl-convert has.
_VERSIONS = vl_convert.get_vegalite_versions()
_WANTED = alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]
VEGA_LITE = _WANTED if _WANTED in _VERSIONS else _VERSIONS[-1]
"""Version of Vega-Lite that draws figures, on the page as in files."""

_STDERR = 2
_ERROR = re.compile(r"^ERROR (.+)$", re.MULTILINE)


def draw(spec: dict[str, Any]) -> str:
    """Draw a figure as SVG.

    Args:
        spec: The figure as Vega-Lite.

    Raises:
        ValueError: If it cannot be drawn.
    """
    with _standard_error() as said:
        try:
            svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE)
        except ValueError as error:
            raise ValueError(str(error).partition("\n    at ")[0]) from error

    # what fails while Vega computes a figure, it only prints, and returns the figure's beginning
    text = "".join(said)
    if found := _ERROR.search(text):
        raise ValueError(found[1])
    if text and sys.stderr is not None:  # by whoever else has a thread here
        sys.stderr.write(text)

    return svg


@contextmanager
def _standard_error() -> Iterator[list[str]]:
    """Keep what is written to standard error in the block from it, and return it.

    vl_convert prints to the file descriptor, so that replacing `sys.stderr` would not do.
    """
    said: list[str] = []
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        before = os.dup(_STDERR)
    except OSError:  # a process without standard error
        yield said
        return

    with TemporaryFile() as file:
        try:
            os.dup2(file.fileno(), _STDERR)
            yield said
        finally:
            os.dup2(before, _STDERR)
            os.close(before)

        file.seek(0)
        said.append(file.read().decode(errors="replace"))
