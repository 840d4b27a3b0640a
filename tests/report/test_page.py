"""Reports on runs, as a file: what is in them, and what is not."""

import json
import re
import subprocess
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
from prism.report import make_report
from prism.statechart import Statechart, Transition, state_enum
from tests.kit import make
from tests.kit.logs import AGENTS, WriteLog

PageOf = Callable[..., Any]

NAMESPACES = ("http://www.w3.org/2000/svg", "https://vega.github.io/schema/vega-lite/")
SECTIONS = [
    *("events", "the-chart-and-its-traffic", "agents-in-each-state", "how-long-agents-stay"),
    *("decisions", "cascades", "parameters", "agents"),
]


def test_sections_stand_under_headings(page: Any) -> None:
    """Each section has its heading and a link to it, and ids are unique."""
    assert [section.attributes["id"] for section in page.all("section")] == SECTIONS
    assert [link.attributes["href"] for link in page.all("a")] == [f"#{name}" for name in SECTIONS]
    assert len(page.all("h1")) == 1
    headings = [heading.attributes["id"] for heading in page.all("h2")]
    assert [each.attributes["aria-labelledby"] for each in page.all("section")] == headings
    ids = [element.attributes["id"] for element in page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))


def test_only_our_scripts_may_run(page: Any) -> None:
    """The page allows its two scripts by their digests, evaluates no text, and loads nothing."""
    (meta,) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    scripts = [script.text for script in page.all("script") if "type" not in script.attributes]
    digests = [f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in scripts]
    assert len(digests) == 2
    rules = dict(rule.strip().split(" ", 1) for rule in meta.attributes["content"].split(";"))
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


def test_tables_are_those_of_the_analysis(page: Any, folder: Path) -> None:
    """Every cell is that of ``prism.analysis``, exact in an attribute where it is shortened."""
    log = read_log(folder)
    for section, query in (
        (
            "the-chart-and-its-traffic",
            'select from_state, to_state, "trigger", count, probability from transitions',
        ),
        ("how-long-agents-stay", "select state, visits, complete from dwell"),
        (
            "cascades",
            "select root_id, author_id, size from cascades where size > 1 limit 20",
        ),
    ):
        _, *rows = page.rows(section)
        wanted = [tuple(map(str, row)) for row in log.sql(query).fetchall()]
        assert [tuple(row[: len(wanted[0])]) for row in rows] == wanted


def test_a_page_says_what_the_log_has(page: Any, folder: Path) -> None:
    """Each kind of event has its count, and the line below the title the size of the run."""
    log = read_log(folder)
    counts = {row[0]: int(row[1]) for row in page.rows("events")[1:]}
    assert counts == dict(log.sql("select event, count(*) from events group by event").fetchall())
    (subtitle, *_) = page.all("p", **{"class": "soft"})
    assert subtitle.text == f"{AGENTS} agents, 4 rounds, 12 ticks in each, seed 3"
    heads, *rows = page.rows("agents")
    acts = [heads.index(name) for name in ("transitions", "decisions")]
    active = [sum(int(row[index]) for index in acts) for row in rows]
    assert active == sorted(active, reverse=True)


def test_states_add_up_to_the_agents_at_every_tick(page: Any) -> None:
    """The figure has each tick of each round, and the last one has a length, too."""
    rows = page.figures()["states"]["data"]["values"]
    by_moment: dict[float, float] = {}
    for row in rows:
        by_moment[row["begin"]] = by_moment.get(row["begin"], 0) + row["agents"]
    assert set(by_moment.values()) == {AGENTS}
    assert (len(by_moment), min(by_moment)) == (48, 1)
    assert max(row["until"] for row in rows) == pytest.approx(5)


@pytest.mark.slow
def test_figures_are_valid_by_the_schema_of_vega_lite(page: Any) -> None:
    """Each figure, as the page draws it, is what the published schema of Vega-Lite accepts."""
    for name, figure in page.figures().items():
        assert alt.Chart.from_dict(figure, validate=True), name
        assert figure["description"]
        assert '"tooltip"' in json.dumps(figure)


def test_what_is_no_run_is_refused(folder: Path, model_log: Path, write_log: WriteLog) -> None:
    """Several runs, a log without events, and a chart by whose name no transition was made."""
    day = state_enum("Day", ["dawn", "dusk"])
    chart = Statechart(day, [Transition("go", day("dawn"), day("dusk"))], day("dawn"), name="days")
    for log, charts, words in (
        (read_log(folder, model_log), [], "prism compare"),
        (read_log(write_log([])), [], "is empty: nothing has been written to it"),
        (read_log(folder), [chart], "no transition by the chart days"),
    ):
        with pytest.raises(InputError, match=words):
            make_report(log, charts)


def test_decisions_of_a_model_are_drawn_by_source(model_log: Path, page_of: PageOf) -> None:
    """Bars add up to the decisions of the table, with what fell back among them."""
    page = page_of(model_log)
    heads, *rows = page.rows("decisions")
    asked = sum(int(row[heads.index("asked")]) for row in rows)
    for name, key in (("choices", "chosen"), ("sources", "source")):
        bars = page.figures()[name]["data"]["values"]
        assert sum(bar["decisions"] for bar in bars) == asked
        assert {bar["begin"] for bar in bars} == {1, 2}
        assert {bar[key] for bar in bars} > {"fallback"} or key == "chosen"


def test_texts_of_a_log_stay_texts(
    hostile_log: Path, html: str, page: Any, page_of: PageOf
) -> None:
    """Texts of a log add no element to the page, and are shown as they are."""
    hostile = page_of(hostile_log)
    assert len(hostile.all("script")) == len(page.all("script")) == 3
    assert not hostile.all("img")
    assert not [
        name for element in hostile.elements for name in element.attributes if name.startswith("on")
    ]
    cells = [cell.text for cell in hostile.all("td")]
    for text in ("</script><script>window.hacked = 1</script>", "{{ 7 * 7 }}{% raw %}"):
        assert any(text in cell for cell in cells)
    assert len(hostile.html) < len(html) + 1_000_000


@pytest.mark.slow
def test_a_report_saves_every_figure_of_hostile_names(hostile_log: Path, tmp_path: Path) -> None:
    """A run in which every name is hostile has all its figures as files."""
    saved = make_report(read_log(hostile_log)).save_figures(tmp_path, "svg")
    assert {"chart-1", "states", "dwell", "choices"} <= {path.stem for path in saved}
    for path in saved:
        ElementTree.parse(path)


def test_what_is_wrong_with_a_log_stands_on_top(page_of: PageOf, write_log: WriteLog) -> None:
    """Notes name the log, and what they quote stays a text; below is what held agents up."""
    outcomes = ["done", "failed", "skipped", "failed", "done", "failed"]
    steps = [
        make.event("workflow.step", agent_id="ada", step="look", type="llm", outcome=each)
        for each in outcomes
    ]
    stuck = make.refused("ada", "shut", "open", "has_key")
    lines = [make.started(), make.joined("ada", "shut"), stuck, *steps, {"event": "<b>mine</b>"}]
    log = write_log(lines)
    page = page_of(log)
    (notes,) = page.all("div", role="note")
    assert f"{log}: 1 event that is not prism's is left out: <b>mine</b> 1" in notes.text
    assert "has not ended: it is still running, or was stopped" in notes.text
    assert page.elements.index(notes) < page.elements.index(page.all("section")[0])
    assert len(page.rows("agents")) == 2
    heads, row = page.rows("where-agents-were-stuck")
    wanted = {"state": "shut", "trigger": "open", "guards": "has_key"}
    wanted |= {"agents": "1", "still there": "1"}
    assert dict(zip(heads, row, strict=True)).items() >= wanted.items()
    heads, row = page.rows("steps")
    wanted = {"step": "look", "done": "2", "skipped": "1", "failed": "3"}
    assert dict(zip(heads, row, strict=True)).items() >= wanted.items()


def test_a_run_in_which_nothing_happens_has_its_numbers(page_of: PageOf) -> None:
    """Sections without content are left out, also if a log has only a start."""
    page = page_of([make.started()])
    assert [section.attributes["id"] for section in page.all("section")] == ["events"]
    assert page.figures() == {}


def test_a_measure_of_some_rounds_has_points_and_the_born_are_counted(page_of: PageOf) -> None:
    """No line leads to a value alone; the line below the title has the agents of both ends."""
    events = [make.started(), *(make.joined(each) for each in "abc"), make.move("a", "idle", "b")]
    page = page_of([*events, make.event("round.ended", measures={"odd": 1.0})])
    assert page.figures()["measures"]["spec"]["layer"][-1]["mark"]["point"]
    assert "3 agents, 2 at the beginning, 1 round" in page.all("p", **{"class": "soft"})[0].text


def test_a_log_without_rounds_is_drawn_by_time(page_of: PageOf) -> None:
    """A log without rounds and ticks is drawn by time, and its decisions as a whole."""
    events = []
    for second in range(20):
        when = {"timestamp": f"2026-03-01T09:00:{second:02}Z", "round": None, "tick": None}
        events += [
            make.move("ada", "ab"[second % 2], "ba"[second % 2], **when),
            make.decision("ada", ["a", "b"], "a", **when),
        ]
    figures = page_of(events).figures()
    assert figures["states"]["encoding"]["x"]["title"] == "seconds"
    (row,) = figures["choices"]["data"]["values"]
    assert (row["chosen"], row["decisions"]) == ("a", 20)


@pytest.mark.parametrize(
    ("positions", "is_noted"), [([40, 0, 0], True), ([14, 13, 13], False)], ids=["first", "chance"]
)
@pytest.mark.sampled(2)
def test_the_place_in_the_list_is_reported_if_it_explains_choices(
    positions: list[int], is_noted: bool, page_of: PageOf
) -> None:
    """A model that takes what comes first is named at the top; one that chooses is not."""
    options, events = ["a", "b", "c"], [make.started()]
    for number, place in enumerate(place for place, n in enumerate(positions) for _ in range(n)):
        facts = {"source": "model", "rotation": number % 3}
        events.append(make.decision("ada", options, options[(place + number) % 3], **facts))
    page = page_of(events)
    rows = page.rows("positions-in-the-list")[1:]
    assert [int(row[2]) for row in rows] == [count for count in positions if count]
    noted = "the position in the list explains 40 of 40 choices (p < .001)"
    assert any(noted in note.text for note in page.all("div", role="note")) == is_noted


def test_prompts_of_fallbacks_and_of_choices_against_the_preference_are_shown(
    page_of: PageOf, write_log: WriteLog
) -> None:
    """A decision for what was most probable is left out; each has its prompt and reply."""
    chances = {"probabilities": {"a": 0.9, "b": 0.1}, "source": "model"}
    events = [
        make.started(),
        make.decision("ada", ["a", "b"], "a", decision_id="ada:1", **chances),
        make.decision("ada", ["a", "b"], "b", decision_id="ada:2", **chances),
        make.decision("bob", ["a", "b"], "a", decision_id="bob:1", source="fallback"),
    ]
    names = ("ada:1", "ada:2", "bob:1")
    write_log(
        [{"id": name, "prompt": f"Ask {name}?", "reply": f"From {name}."} for name in names],
        "run/answers.jsonl",
    )
    (shown,) = page_of(write_log(events, "run/events.jsonl")).all(
        "section", id="prompts-worth-a-look"
    )
    for text in (
        *("bob:1: a on go, chose a; it fell back", "From bob:1."),
        *("ada:2: a on go, chose b; its probability was 0.100", "Ask ada:2?"),
    ):
        assert text in shown.text
    assert "ada:1" not in shown.text


@pytest.mark.parametrize("package", ["altair", "markupsafe", "vl_convert"])
@pytest.mark.sampled(4)
def test_a_missing_package_is_named(package: str) -> None:
    """Tables need none; a report names it and the command that installs it."""
    code = (
        f"import sys; sys.modules[{package!r}] = None; from prism.analysis import read_log; "
        "print('read'); from prism.report import make_report"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "read\n"
    assert f"the package '{package}' of the extra" in done.stderr
    assert "pip install 'prism-statecharts[report]'" in done.stderr
