"""A page of sections that works offline, and its figures as files."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from markupsafe import Markup

from prism._version import __version__
from prism.drawing import showable
from prism.errors import InputError
from prism.files import replacing
from prism.files.durable import cache_folder
from prism.report.drawing import THEMES, VEGA_LITE, FigureFormat, draw, figure_spec, in_format
from prism.report.table import Rows, html_table, joined

Figure = alt.TopLevelMixin | str
"""A chart of Altair, or an SVG element that has already been drawn."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a page: a heading, figures and a table, each of which may be missing.

    Args:
        title: Its heading.
        about: How to read it.
        figures: Its figures by name, which is unique on the page and that of their files. The
            theme of the page sets their colours.
        rows: The rows of its table.
        headings: Headings of columns, if they differ from the names.
        most: Most rows to show.
        searchable: Whether readers can search the table, and sort it by its headings.
        more: Anything else, below the table.
    """

    title: str
    about: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    rows: Rows = ()
    headings: Mapping[str, str] = field(default_factory=dict)
    most: int = 40
    searchable: bool = False
    more: Markup = Markup("")  # noqa: RUF009

    def __bool__(self) -> bool:
        """Return whether there is something to show."""
        return bool(self.figures or self.rows or self.more)

    @property
    def anchor(self) -> str:
        """Its id on the page."""
        return "-".join("".join(c if c.isalnum() else " " for c in self.title.lower()).split())

    def html(self) -> Markup:
        """Return it as HTML, with a place for each figure."""
        about = Markup('<p class="soft">{}</p>').format(self.about) if self.about else ""
        return Markup(
            '<section id="{0}" aria-labelledby="{0}-heading"><h2 id="{0}-heading">{1}</h2>{2}{3}'
            "</section>"
        ).format(self.anchor, showable(self.title), about, self.body())

    def body(self) -> Markup:
        """Return what is below its heading and how to read it."""
        elements = joined(_element(name, each) for name, each in self.figures.items())
        kind = "figures" if len(self.figures) > 1 else ""
        parts = Markup('<div class="{}">{}</div>').format(kind, elements) if elements else elements
        if self.rows:
            options: dict[str, Any] = {"most": self.most, "searchable": self.searchable}
            parts += html_table(self.anchor, self.rows, self.headings, **options)

        return parts + self.more


def _element(name: str, figure: Figure) -> Markup:
    """Return the element in which a figure is drawn, or a drawing itself."""
    if isinstance(figure, str):
        return Markup('<div class="scroll" tabindex="0">{}</div>').format(Markup(figure))
    return Markup('<div><div class="figure" id="figure-{}"></div></div>').format(name)


@dataclass(frozen=True)
class Page:
    """A page of sections, to be saved as HTML or as figures.

    Args:
        title: Its title and main heading.
        sections: Its sections; those with nothing to show are left out.
        subtitle: The line below the title.
        notes: Notes at its top.
        sources: What it is made from, for its last line.
    """

    title: str
    sections: Sequence[Section]
    subtitle: str = ""
    notes: Sequence[str] = ()
    sources: Sequence[str] = ()

    def html(self) -> str:
        """Return one HTML page that works offline."""
        scripts = [_safe(library()), _safe(figures_script() + resource("report.js"))]
        specs = {
            name: figure_spec(each)
            for name, each in self._figures.items()
            if not isinstance(each, str)
        }
        sections = [each for each in self.sections if each]
        links = Markup('<a href="#{}">{}</a>')
        notes = joined(Markup("<li>{}</li>").format(showable(note)) for note in self.notes)
        noted = Markup('<div class="notes" role="note"><b>Notes</b><ul>{}</ul></div>').format(notes)
        page = Markup(resource("report.html")).format(
            title=showable(self.title),
            subtitle=showable(self.subtitle),
            version=__version__,
            digests=Markup(" ").join(map(_digest_of, scripts)),
            style=Markup(resource("report.css")),
            links=joined(links.format(each.anchor, each.title) for each in sections),
            notes=noted if self.notes else "",
            sections=Markup("\n").join(each.html() for each in sections),
            sources=showable(", ".join(self.sources)),
            figures=_embedded(specs),
            scripts=Markup("\n").join(
                Markup("<script>{}</script>").format(Markup(each)) for each in scripts
            ),
        )
        return showable(page)

    def save_figures(self, folder: Path, format: FigureFormat = "svg") -> list[Path]:  # noqa: A002
        """Save every figure as a file.

        Args:
            folder: The folder, created if it does not exist. Files of the same names are replaced.
            format: ``svg``; ``png`` with two pixels for each pixel of the page; or ``pdf`` with
                vectors and embedded fonts.

        Returns:
            The paths of the files.

        Raises:
            InputError: If a figure cannot be drawn.
            OSError: If a file cannot be written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for name, figure in self._figures.items():
            try:
                svg = figure if isinstance(figure, str) else draw(figure)
            except ValueError as error:
                raise InputError(f"the figure {name} cannot be drawn: {error}") from None
            paths.append(folder / f"{name}.{format}")
            with replacing(paths[-1]) as file:
                file.write(in_format(svg, format))

        return paths

    @property
    def _figures(self) -> Mapping[str, Figure]:
        return {name: each for section in self.sections for name, each in section.figures.items()}


@cache
def library() -> str:
    """Return the JavaScript that draws figures, Vega-Lite and what it needs, from the cache."""
    name = f"vega-lite-{VEGA_LITE}-{version('vl-convert-python')}.js"
    with suppress(OSError):  # there is none yet
        return (cache_folder() / "figures" / name).read_text(encoding="utf-8")

    made = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", VEGA_LITE)
    with suppress(OSError):  # no folder can be written
        folder = cache_folder() / "figures"
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / name) as file:
            file.write(made.encode())

    return made


def figures_script() -> str:
    """Return the script that draws figures in the theme, when the library is there."""
    return f"const THEMES = {json.dumps(THEMES)};\n{resource('figures.js')}"


def resource(name: str) -> str:
    """Return the contents of a file beside this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _safe(script: str) -> str:
    """Return a script for the page, as HTML requires it (WHATWG HTML, 4.12.1.3)."""
    return showable(script).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest_of(script: str) -> Markup:
    """Return the digest by which a security policy allows a script (CSP level 3, 8.4)."""
    return Markup(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'")


def _embedded(data: Any) -> Markup:
    """Return data as JSON for the page."""
    # Without the characters that an HTML parser may mistake for markup (WHATWG HTML, 4.12.1.3).
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")

    return Markup(text)
