"""Figures as SVG, PNG and PDF, with safe texts.

All drawing in prism goes through `draw` and `in_format`, which clean every text first: vl-convert
ends the whole process, without an exception, at a character that XML cannot represent.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Literal

import altair as alt
import vl_convert

from prism.drawing import showable
from prism.files import make_folder, write_durably

FigureFormat = Literal["svg", "png", "pdf"]

# The version of Vega-Lite that altair writes, or the newest one that vl-convert has.
_VERSIONS = vl_convert.get_vegalite_versions()
_WANTED = alt.SCHEMA_VERSION.removeprefix("v").rpartition(".")[0]
VEGA_LITE = _WANTED if _WANTED in _VERSIONS else _VERSIONS[-1]
"""Version of Vega-Lite that draws figures, both on the page and in files."""

# The properties of Object.prototype (ECMA-262, 20.1.3 and B.2.2). Vega looks values up in plain
# objects, which inherit these properties.
_OF_EVERY_OBJECT = frozenset(
    (
        *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
        *("toLocaleString", "toString", "valueOf", "__defineGetter__", "__defineSetter__"),
        *("__lookupGetter__", "__lookupSetter__", "__proto__"),
    )
)
_INVISIBLE = "\N{WORD JOINER}"

_MOST_CHARACTERS = 1000
_PIXELS = 2.0
_STDERR = 2
_ERROR = re.compile(r"^ERROR (.+)$", re.MULTILINE)


def clean_figure(spec: Any) -> Any:
    """Return a figure, as Vega-Lite, with texts that Vega can draw.

    Characters that cannot be shown are replaced, texts of more than 1,000 characters are cut, and
    texts that Vega would mistake for properties of every JavaScript object are marked. Cleaning a
    figure twice does not change it again. Names that differ only in these respects become the same.

    Args:
        spec: The figure, or a part of it.
    """
    if isinstance(spec, dict):
        return {showable(key): clean_figure(value) for key, value in spec.items()}
    if isinstance(spec, list):
        return [clean_figure(value) for value in spec]
    if not isinstance(spec, str):
        return spec
    if spec in _OF_EVERY_OBJECT:
        return f"{spec}{_INVISIBLE}"

    text = showable(spec)

    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"


def draw(spec: dict[str, Any]) -> str:
    """Draw a figure as SVG, with its texts cleaned.

    Args:
        spec: The figure as Vega-Lite.

    Raises:
        ValueError: If it cannot be drawn.
    """
    with _standard_error() as said:
        try:
            svg = vl_convert.vegalite_to_svg(clean_figure(spec), vl_version=VEGA_LITE)
        except ValueError as error:
            raise ValueError(str(error).partition("\n    at ")[0]) from error

    # if a computation fails, Vega only prints the error, and returns an incomplete figure
    text = "".join(said)
    if found := _ERROR.search(text):
        raise ValueError(found[1])
    if text and sys.stderr is not None:  # written by other threads of this process
        sys.stderr.write(text)

    return svg


def in_format(svg: str, format: FigureFormat) -> bytes:  # noqa: A002
    """Return the contents of a figure's file.

    Args:
        svg: The figure.
        format: ``svg``, ``png`` with two dots per pixel, or ``pdf`` with vectors and embedded
            fonts.
    """
    drawn = showable(svg)
    if format == "png":
        return vl_convert.svg_to_png(drawn, scale=_PIXELS)

    return vl_convert.svg_to_pdf(drawn) if format == "pdf" else drawn.encode()


def save_specs(
    specs: Mapping[str, dict[str, Any]],
    folder: Path,
    format: FigureFormat,  # noqa: A002
) -> list[Path]:
    """Draw figures into files named after them, and return the paths.

    Args:
        specs: The figures as Vega-Lite, with their sizes and colours.
        folder: The folder, created if it does not exist.
        format: As for `in_format`.

    Raises:
        OSError: If they cannot be written.
        ValueError: If one cannot be drawn.
    """
    make_folder(folder)
    paths = [folder / f"{name}.{format}" for name in specs]
    for path, spec in zip(paths, specs.values(), strict=True):
        write_durably(path, in_format(draw(spec), format))

    return paths


@contextmanager
def _standard_error() -> Iterator[list[str]]:
    """Capture what the block writes to standard error, and return it.

    vl_convert prints to the file descriptor, so replacing `sys.stderr` would not be enough.
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
