"""A report as one HTML file that needs nothing else, and its figures as files for papers."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

import jinja2
import vl_convert
from markupsafe import Markup

from prism import __version__
from prism.analysis._reading.logs import RunLogs
from prism.analysis._reading.notes import Note, NoteKind
from prism.errors import InputError
from prism.files import replacing
from prism.files._names import shown_path
from prism.report._facts.run_facts import RunFacts, facts_of
from prism.report._figures.page_figures import PageFigures
from prism.report._figures.rendering import VEGA_LITE, draw
from prism.report._figures.timeline import are_many
from prism.report._sections import Section, make_sections
from prism.statechart import Statechart, social_media_chart
from prism.statechart.formats._diagram import to_diagram

FigureFormat = Literal["svg", "png"]

_PIXELS = 2.0
_NOTHING_TO_SHOW: tuple[NoteKind, ...] = ("empty", "unreadable")


@dataclass(frozen=True, slots=True)
class _Script:
    """A script of the page, and the digest by which the page's security policy allows it."""

    text: Markup
    digest: str


class Report:
    """A report on one run, or on several side by side; made by `make_report`.

    Args:
        runs: The facts of each run.
        notes: Notes on the logs.

    Attributes:
        runs: The facts of each run.
        notes: Notes on the logs.
    """

    def __init__(self, runs: Sequence[RunFacts], notes: Sequence[Note]) -> None:
        self.runs: tuple[RunFacts, ...] = tuple(runs)
        self.notes: tuple[Note, ...] = tuple(notes)
        states = dict.fromkeys(name for facts in runs for name in facts.state_names)
        by_round = any(are_many(facts.states) for facts in runs)
        self._figures = PageFigures(
            tuple(states), narrow=len(runs) > 1, by_round=by_round, runs=self.runs
        )
        self._sections: Sequence[Section] = make_sections(self.runs, self._figures)
        self._figures.share_scales()

    def html(self) -> str:
        """Return the report as one HTML page that works offline."""
        labels = [facts.run.label for facts in self.runs]
        figures = {name: figure.on_page() for name, figure in self._figures.charts.items()}
        template = jinja2.Template(_resource("page.html"), autoescape=True)
        page: str = template.render(
            title=" and ".join(labels),
            subtitle=_subtitle(self.runs),
            sections=self._sections,
            notes=[shown_path(str(note)) for note in self.notes],
            runs=labels,
            sources=list(dict.fromkeys(shown_path(facts.run.path) for facts in self.runs)),
            version=__version__,
            style=Markup(_resource("page.css")),
            dark_style=Markup(self._figures.dark_rules()),
            scripts=[_script(_library().result()), _script(_resource("page.js"))],
            figures=_embedded(figures),
            agents=_embedded(self._figures.data["agents"]),
        )

        return page

    def save_figures(self, folder: Path, format: FigureFormat = "svg") -> list[Path]:  # noqa: A002
        """Save every figure as a file.

        Args:
            folder: The folder, created if it does not exist. Files of the same names are replaced.
            format: ``svg``, or ``png`` with two pixels for each of the page's.

        Returns:
            The paths of the files; none for a figure of `failures`.

        Raises:
            InputError: If there is no such format.
            OSError: If a file cannot be written.
        """
        if format not in get_args(FigureFormat):
            known = " or ".join(get_args(FigureFormat))
            raise InputError(f"figures are saved as {known}, not {format!r}", field="format")

        folder.mkdir(parents=True, exist_ok=True)
        drawings = {**self._figures.drawings, **self._drawn[0]}

        return [_saved(svg, folder / f"{name}.{format}") for name, svg in drawings.items()]

    @property
    def failures(self) -> Mapping[str, str]:
        """What is wrong with each figure that cannot be drawn, by name; usually nothing."""
        return self._drawn[1]

    @cached_property
    def _drawn(self) -> tuple[dict[str, str], dict[str, str]]:
        """The figures that are not drawn before, as SVG; and why the others cannot be drawn."""
        drawn: dict[str, str] = {}
        failed: dict[str, str] = {}
        for place, figure in self._figures.charts.items():
            name = place.removeprefix("figure-")
            try:
                drawn[name] = draw(figure.alone())
            except ValueError as error:
                failed[name] = str(error)

        return drawn, failed


def make_report(logs: RunLogs, charts: Iterable[Statechart[Any]] = ()) -> Report:
    """Make a report on one run, or on several side by side.

    Args:
        logs: The logs, from `read_log`.
        charts: The charts that the runs follow, if they are your own: each is drawn as it is
            defined, where the logs have transitions by its name. Other charts than prism's own are
            drawn as far as their transitions were made.

    Returns:
        The report, to be saved as a page or as figures.

    Raises:
        InputError: If the logs hold no event of prism, or no transition by one of the charts.
    """
    _library()  # takes half a second, while the logs are read
    known = [to_diagram(chart.definition) for chart in charts]
    familiar = [to_diagram(social_media_chart().definition)]
    runs, notes = facts_of(logs, known, familiar)
    if not runs:
        raise InputError("; ".join(str(note) for note in notes if note.kind in _NOTHING_TO_SHOW))

    for chart in known:
        _check_follows(chart.name, runs)

    return Report(runs, notes)


def _check_follows(chart: str, runs: Sequence[RunFacts]) -> None:
    """Refuse a chart that no run follows."""
    followed = dict.fromkeys(name for facts in runs for name in facts.chart_names)
    if chart in followed:
        return

    by = ", ".join("a chart without a name" if name is None else name for name in followed)
    raise InputError(
        f"no run has transitions by the chart {chart}" + (f", only by {by}" if by else ""),
        field="charts",
    )


@cache
def _library() -> Future[str]:
    """Begin to bundle the JavaScript that draws figures: Vega-Lite and its dependencies."""
    pool = ThreadPoolExecutor(1)
    library = pool.submit(_bundle)
    pool.shutdown(wait=False)
    return library


def _bundle() -> str:
    return vl_convert.javascript_bundle(vl_version=VEGA_LITE)  # type: ignore[call-arg]


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _script(text: str) -> _Script:
    """Return a script for the page."""
    # As scripts must stand in HTML (WHATWG HTML, 4.12.1.3), and are allowed (CSP level 3, 8.4).
    safe = text.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    digest = b64encode(sha256(safe.encode()).digest()).decode()
    return _Script(Markup(safe), f"sha256-{digest}")


def _saved(svg: str, path: Path) -> Path:
    is_svg = path.suffix == ".svg"
    content = svg.encode() if is_svg else vl_convert.svg_to_png(svg, scale=_PIXELS)
    with replacing(path) as file:
        file.write(content)

    return path


def _subtitle(runs: Sequence[RunFacts]) -> str:
    if len(runs) > 1:
        return f"{len(runs)} runs side by side"

    run = runs[0].run
    parts = [_counted(runs[0].agents.height, "agent")]
    if run.rounds is not None and run.ticks_per_round is not None:
        parts.append(f"{_counted(run.rounds, 'round')} of {_counted(run.ticks_per_round, 'tick')}")
    if run.seed is not None:
        parts.append(f"seed {run.seed}")

    return ", ".join(parts)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _embedded(data: Any) -> Markup:
    """Return data as JSON for the page."""
    # Without the characters that an HTML parser may take for markup (WHATWG HTML, 4.12.1.3).
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")

    return Markup(text)
