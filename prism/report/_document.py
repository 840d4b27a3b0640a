"""A self-contained page of sections with figures, and its figures as files."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import jinja2
from markupsafe import Markup

from prism._version import __version__
from prism.drawing import showable
from prism.errors import InputError
from prism.files import replacing
from prism.files._durable import cache_folder
from prism.report._figures.page_figures import PageFigures
from prism.report._figures.rendering import VEGA_LITE, FigureFormat, draw, in_format
from prism.report._sections.kinds import Section

_SCRIPTS = ("figures.js", "page.js")
_BUNDLING = """
import sys, vl_convert
sys.stdout.reconfigure(encoding="utf-8")
sys.stdout.write(vl_convert.javascript_bundle(vl_version=sys.argv[1]))
"""


@dataclass(frozen=True, slots=True)
class _Script:
    """A script of the page, and the digest by which the page's security policy allows it."""

    text: Markup
    digest: str


@dataclass(frozen=True)
class Document:
    """The contents of a page.

    Args:
        title: Its title and main heading.
        subtitle: The line below the title.
        sections: Its sections.
        figures: Their figures.
        notes: Notes on the logs, for the top of the page.
        sources: The logs or folders that it is made from.
        runs: Names of the runs that are side by side in the parts of sections.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]
    figures: PageFigures
    notes: Sequence[str] = ()
    sources: Sequence[str] = ()
    runs: Sequence[str] = ()

    def html(self) -> str:
        """Return the document as one HTML page that works offline."""
        charts = {name: figure.on_page() for name, figure in self.figures.charts.items()}
        agents = self.figures.data.get("agents")
        template = jinja2.Template(resource("page.html"), autoescape=True)
        page = template.render(
            title=self.title,
            subtitle=self.subtitle,
            sections=self.sections,
            notes=self.notes,
            runs=self.runs,
            sources=self.sources,
            version=__version__,
            style=Markup(resource("page.css")),
            dark_style=Markup(self.figures.dark_rules()),
            scripts=[_script(library().result()), _script("".join(map(resource, _SCRIPTS)))],
            figures=_embedded(charts),
            agents=None if agents is None else _embedded(agents),
        )

        return showable(page)

    def save_figures(self, folder: Path, format: FigureFormat) -> list[Path]:  # noqa: A002
        """Save every figure as a file, and return the paths; see `Report.save_figures`."""
        if format not in get_args(FigureFormat):
            *others, last = get_args(FigureFormat)
            known = f"{', '.join(others)} or {last}"
            raise InputError(f"figures can be saved as {known}, not {format!r}", field="format")

        folder.mkdir(parents=True, exist_ok=True)
        drawings = {**self.figures.drawings, **self._drawn[0]}

        paths = [folder / f"{name}.{format}" for name in drawings]
        for path, svg in zip(paths, drawings.values(), strict=True):
            with replacing(path) as file:
                file.write(in_format(svg, format))

        return paths

    @property
    def failures(self) -> Mapping[str, str]:
        """The reasons why figures could not be drawn, by name; usually empty."""
        return self._drawn[1]

    @cached_property
    def _drawn(self) -> tuple[dict[str, str], dict[str, str]]:
        """The figures that had not been drawn, as SVG, and the reasons for those that cannot be."""
        drawn: dict[str, str] = {}
        failed: dict[str, str] = {}
        for place, figure in self.figures.charts.items():
            name = place.removeprefix("figure-")
            try:
                drawn[name] = draw(figure.alone())
            except ValueError as error:
                failed[name] = str(error)

        return drawn, failed


@cache
def library() -> Future[str]:
    """Begin to bundle the JavaScript that draws figures: Vega-Lite and its dependencies."""
    pool = ThreadPoolExecutor(1)
    bundle = pool.submit(_bundle)
    pool.shutdown(wait=False)
    return bundle


def _bundle() -> str:
    """Return the library, from the cache if it is there as it was written."""
    name = f"vega-lite-{VEGA_LITE}-of-vl-convert-{version('vl-convert-python')}.js"
    with suppress(OSError):  # there is none yet
        digest, _, kept = (cache_folder() / "figures" / name).read_bytes().partition(b"\n")
        if digest == _digest(kept):
            return kept.decode()

    # vl_convert stops all threads of its process for a second or two
    line = [sys.executable, "-P", "-c", _BUNDLING, VEGA_LITE]
    made = subprocess.run(line, capture_output=True, check=True).stdout
    with suppress(OSError):  # no folder can be written
        folder = cache_folder() / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / name) as file:
            file.write(b"\n".join([_digest(made), made]))

    return made.decode()


def _digest(data: bytes) -> bytes:
    return sha256(data).hexdigest().encode()


def resource(name: str) -> str:
    """Return the contents of a file beside this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _script(text: str) -> _Script:
    """Return a script for the page."""
    # As HTML requires of scripts (WHATWG HTML, 4.12.1.3) and CSP allows them (level 3, 8.4).
    safe = showable(text).replace("</script", "<\\/script").replace("<!--", "<\\!--")
    digest = b64encode(sha256(safe.encode()).digest()).decode()
    return _Script(Markup(safe), f"sha256-{digest}")


def _embedded(data: Any) -> Markup:
    """Return data as JSON for the page."""
    # Without the characters that an HTML parser may mistake for markup (WHATWG HTML, 4.12.1.3).
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")

    return Markup(text)
