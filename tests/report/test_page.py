"""The page, as a file: what is in it, what is not, and its figures as files."""

import gzip
import re
import sys
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pytest

from prism.analysis import read_log
from prism.errors import InputError
from prism.report import Report, make_report
from prism.statechart import Statechart, Transition, state_enum
from tests.kit import processes
from tests.kit.commands import Prism
from tests.kit.logs import AGENTS

NAMESPACES = ("http://www.w3.org/2000/svg", "https://vega.github.io/schema/vega-lite/")
SECTIONS = [
    *("numbers", "chart", "states", "dwell", "decisions"),
    *("cascades", "parameters", "agents"),
]


def policy(page: Any) -> str:
    """Return the content security policy of a page."""
    (meta,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    return str(meta.attributes["content"])


def test_sections_stand_under_headings(page: Any) -> None:
    """Each section has its heading and a link to it, and ids are unique."""
    assert [section.attributes["id"] for section in page.all("section")] == SECTIONS
    assert [link.attributes["href"] for link in page.all("a")] == [f"#{name}" for name in SECTIONS]
    assert len(page.all("h1")) == 1
    headings = {heading.attributes["id"]: heading.text for heading in page.all("h2")}
    assert [section.attributes["aria-labelledby"] for section in page.all("section")] == list(
        headings
    )
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))


def test_tables_name_their_columns(page: Any) -> None:
    """Every heading has a scope, sorting is done by buttons, and the search is labelled."""
    assert {head.attributes.get("scope") for head in page.all("th")} == {"col", "row"}
    (search,) = page.all("input", id="search")
    assert search.attributes["aria-label"]
    columns = page.data("agents-data")["columns"]
    assert [button.text for button in page.all("button")] == [
        name.replace("_", " ") for name in columns
    ]


def test_only_our_scripts_may_run(page: Any) -> None:
    """The page allows its two scripts by their digests, evaluates no text, and loads nothing."""
    scripts = [script.text for script in page.all("script") if "type" not in script.attributes]
    digests = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in scripts]
    assert len(digests) == 2
    rules = dict(rule.strip().split(" ", 1) for rule in policy(page).split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"].split() == digests
    assert "connect-src" not in rules


def test_nothing_is_fetched(html: str, page: Any) -> None:
    """No element names another file, and outside the library addresses only name formats."""
    for element in page.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            assert re.match(r"#|data:,$", element.attributes.get(name) or "#"), element
    library = max((script.text for script in page.all("script")), key=len)
    for address in re.findall(r"(?:https?:)?//[^\s\"'<>)\\]+", html.replace(library, "")):
        assert address.startswith(NAMESPACES) or address.startswith("// "), address
    assert "@import" not in html.replace(library, "")
    assert "url(" not in html.replace(library, "")


def test_every_figure_has_its_place(page: Any) -> None:
    """Each figure of the page has its place, a description and data."""
    figures = page.data("figures")
    assert [
        place.attributes["id"]
        for place in page.all("div")
        if "figure" in (place.attributes.get("class") or "").split()
    ] == list(figures)
    names = {name.removeprefix("figure-").removesuffix("-1") for name in figures}
    assert names == {
        "states",
        "dwell",
        "choices",
        "sources",
        "entropy",
        "cascades",
        "shapes",
    }
    for figure in figures.values():
        assert figure["description"]
        assert all(figure["datasets"].values())


@pytest.mark.parametrize("runs", ["one of each kind", "all"])
@pytest.mark.slow
def test_figures_are_valid_by_the_schema_of_vega_lite(both: Any, runs: str) -> None:
    """Each figure, as the page draws it, is what the published schema of Vega-Lite accepts."""
    figures = both.data("figures")
    if runs != "all":
        figures = {name.rstrip("-0123456789"): figure for name, figure in figures.items()}

    for name, figure in figures.items():
        few = {key: rows[:2] for key, rows in figure["datasets"].items()}
        # Vega-Lite draws no paper where this is null, but its schema does not say so
        shown = {**figure, "background": "white", "datasets": few}
        assert alt.Chart.from_dict(shown, validate=True), name


def test_two_runs_stand_side_by_side(both: Any) -> None:
    """Each section shows both runs by name, and a state has one colour everywhere."""
    (title,) = both.all("h1")
    assert title.text == "real and model"
    names = [heading.text for heading in both.all("h3") if heading.attributes.get("class") == "run"]
    # whether anybody replied depends on which of the questions reaches the server first
    assert len(names) >= 14
    assert names == ["real", "model"] * (len(names) // 2)
    figures = both.data("figures")
    assert {"figure-states-1", "figure-states-2", "figure-latency-2", "figure-tokens-2"} <= set(
        figures
    )
    scales = [figures[f"figure-states-{number}"]["encoding"]["color"]["scale"] for number in (1, 2)]
    first, second = (dict(zip(scale["domain"], scale["range"], strict=True)) for scale in scales)
    assert first == second


def test_texts_of_a_log_stay_texts(
    hostile: Report, html: str, page: Any, parse: Callable[[str], Any]
) -> None:
    """Texts of a log add no element to the page, and are shown as they are."""
    usual, shown = page, hostile.html()
    page = parse(shown)
    assert len(page.all("script")) == len(usual.all("script")) == 4
    assert not page.all("img")
    assert not [
        name for element in page.elements for name in element.attributes if name.startswith("on")
    ]
    rows = [cell.text for cell in page.all("td")]
    for text in ("</script><script>window.hacked = 1</script>", "{{ 7 * 7 }}{% raw %}"):
        assert any(text in row for row in rows)
        assert any(text in str(row) for row in page.data("agents-data")["rows"])
    assert len(shown) < len(html) + 1_000_000


@pytest.mark.slow
def test_figures_are_saved_as_svg(report: Report, tmp_path: Path) -> None:
    """Each figure, and chart is a file of well-formed SVG without variables."""
    saved = report.save_figures(tmp_path / "new" / "figures")
    assert sorted(saved) == sorted((tmp_path / "new" / "figures").iterdir())
    names = {path.name for path in saved}
    assert {"states-1.svg", "chart-1.svg", "cascades-1.svg"} <= names
    for path in saved:
        text = path.read_text(encoding="utf-8")
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(--" not in text.partition("@supports")[0]
    assert "scrolling" in (tmp_path / "new" / "figures" / "states-1.svg").read_text(
        encoding="utf-8"
    )


@pytest.mark.slow
def test_figures_are_saved_as_png(
    write_log: Callable[..., Path], make: Any, tmp_path: Path
) -> None:
    """As PNG each figure is a picture of more than one colour, and replaces an older file."""
    report = make_report(
        read_log(write_log([make.move("ada", "a", "b"), make.move("bo", "a", "c")]))
    )
    (tmp_path / "states-1.png").write_bytes(b"old")
    for path in report.save_figures(tmp_path, "png"):
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG\r\n")
        width, height = (int.from_bytes(data[start : start + 4]) for start in (16, 20))
        assert min(width, height) > 50
        assert len(data) > 1_000


def test_the_command_writes_the_page(html: str, folder: Path, prism: Prism) -> None:
    """``prism report`` writes the page of the library, in place of an older one."""
    page = prism.folder / "page.html"
    page.write_text("<!doctype html> an older page", encoding="utf-8")
    ran = prism("report", folder, "-o", "page.html")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines() == [f"page.html: {page.stat().st_size / 1e6:.1f} MB"]
    assert page.read_text(encoding="utf-8") == html


def test_another_format_is_refused(report: Report, tmp_path: Path) -> None:
    """An unknown format is refused, with the known ones named."""
    with pytest.raises(InputError, match="svg, png or pdf, not 'gif'"):
        report.save_figures(tmp_path, "gif")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda lines: [*lines[:-1], lines[-1][:40]], "cut off and is left out"),
        (
            lambda lines: [*lines[:50], b'{"event": "stat', *lines[50:]],
            "line 51: is not valid JSON",
        ),
        (
            lambda lines: [lines[0].replace(b'"schema":1', b'"schema":9'), *lines[1:]],
            "events of version 9",
        ),
        (
            lambda lines: lines * 2,
            "an earlier run before it in this file, left out",
        ),
        (lambda lines: lines[:-1], "has not ended: it is still running, or was stopped"),
        (lambda lines: [*lines, b'{"event": "<b>mine</b>"}'], "<b>mine</b> 1"),
    ],
    ids=["truncated", "corrupt", "newer", "mixed", "unfinished", "foreign"],
)
@pytest.mark.slow
def test_damaged_logs_give_a_report_that_says_so(
    folder: Path,
    tmp_path: Path,
    parse: Callable[[str], Any],
    damage: Callable[[list[bytes]], list[bytes]],
    said: str,
) -> None:
    """What is wrong with a log stands on top of the page, above all that could be read."""
    lines = damage((folder / "events.jsonl").read_bytes().splitlines())
    log = tmp_path / "damaged.jsonl"
    log.write_bytes(b"\n".join(lines) + (b"" if said.startswith("cut off") else b"\n"))
    made = make_report(read_log(log))
    page = parse(made.html())
    (notes,) = page.all("div", role="note")
    assert said in notes.text
    assert str(log) in notes.text
    assert page.all("table", id="table-transitions-1")
    assert made.runs[0].agents.height == AGENTS


@pytest.mark.slow
def test_compressed_logs_give_the_same_report(folder: Path, tmp_path: Path) -> None:
    """A compressed log gives the same report."""
    log = tmp_path / "real.jsonl.gz"
    log.write_bytes(gzip.compress((folder / "events.jsonl").read_bytes()))
    packed, plain = (make_report(read_log(path)).html() for path in (log, folder))
    assert packed.replace(str(log), "") == plain.replace(str(folder / "events.jsonl"), "")


@pytest.mark.slow
def test_an_empty_log_gives_no_report(tmp_path: Path) -> None:
    """A log without events is refused, with what is wrong with it."""
    log = tmp_path / "events.jsonl"
    log.touch()
    with pytest.raises(InputError, match="is empty: nothing has been written to it"):
        make_report(read_log(log))


@pytest.mark.slow
def test_a_run_in_which_nothing_happens(
    write_log: Callable[..., Path], make: Any, parse: Callable[[str], Any]
) -> None:
    """A section without content says so, also if a log has only a start."""
    page = parse(make_report(read_log(write_log([make.started()]))).html())
    texts = " ".join(section.text for section in page.all("section"))
    for said in (
        "No agent made a transition.",
        "No tick with agents has ended.",
        "No transition says how long its agent had stayed.",
        "No reasoner was asked.",
        "No post was replied to or reshared.",
    ):
        assert said in texts
    assert page.data("figures") == {}
    assert page.data("agents-data")["rows"] == []


@pytest.mark.slow
def test_a_log_without_rounds_is_drawn_by_time(
    write_log: Callable[..., Path], make: Any, parse: Callable[[str], Any]
) -> None:
    """A log without rounds and ticks is drawn by time, and its decisions as a whole."""
    events = []
    for second in range(20):
        when = {"timestamp": f"2026-03-01T09:00:{second:02}Z", "round": None, "tick": None}
        events += [
            make.move("ada", "ab"[second % 2], "ba"[second % 2], **when),
            make.decision("ada", ["a", "b"], "a", **when),
        ]
    figures = parse(make_report(read_log(write_log(events))).html()).data("figures")
    assert figures["figure-states-1"]["encoding"]["x"]["title"] == "time (UTC)"
    (rows,) = figures["figure-choices-1"]["datasets"].values()
    assert [(row["when"], row["chosen"], row["asked"]) for row in rows] == [("all", "a", 20)]


@pytest.mark.parametrize("package", ["altair", "jinja2", "polars", "vl_convert"])
@pytest.mark.sampled(4)
def test_a_missing_package_is_named(package: str) -> None:
    """Without one of its packages, a report names it and the command that installs it."""
    code = f"import sys; sys.modules[{package!r}] = None; import prism.report"
    done = processes.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert f"needs the package '{package}'" in done.stderr
    assert "pip install 'prism-statecharts[report]'" in done.stderr


def test_tables_need_no_figures() -> None:
    """prism.analysis is imported without the packages that draw."""
    code = "import sys; sys.modules['altair'] = None; import prism.analysis as a; a.read_log"
    done = processes.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_chart_that_no_run_follows_is_refused(write_log: Callable[..., Path], make: Any) -> None:
    """A chart by whose name no transition was made is an error that says which charts there are."""
    day = state_enum("Day", ["dawn", "dusk"])
    chart = Statechart(day, [Transition("go", day("dawn"), day("dusk"))], day("dawn"), name="days")
    with pytest.raises(InputError, match="by the chart days, only by c"):
        make_report(read_log(write_log([make.move("ada", "a", "b")])), [chart])


def test_figures_side_by_side_have_one_scale(both: Any) -> None:
    """Each axis of numbers, and each legend, is the same for both runs."""
    figures = both.data("figures")
    for kind in ("states", "choices", "sources", "cascades", "shapes", "entropy"):
        one, other = (figures[f"figure-{kind}-{number}"] for number in (1, 2))
        for channel in ("x", "y", "size", "color"):
            scales = [
                part["encoding"][channel].get("scale")
                for figure in (one, other)
                for part in (figure.get("layer") or [figure])[:1]
                if channel in part.get("encoding", {})
            ]
            assert len(scales) in (0, 2)
            assert not scales or scales[0] == scales[1], (kind, channel)
        assert one["usermeta"]["legend"] == other["usermeta"]["legend"]


def test_axes_begin_with_zero_side_by_side_as_alone(both: Any) -> None:
    """Counts and entropies begin with zero also where runs share a scale."""
    figures = both.data("figures")
    for kind in ("states", "sources", "entropy", "shapes"):
        scale = figures[f"figure-{kind}-1"]["encoding"]["y"]["scale"]
        assert scale["domain"][0] == 0, kind
