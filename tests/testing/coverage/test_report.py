"""The report on what of charts was exercised."""

import json
from fractions import Fraction

from prism.agents import SocialAgent
from prism.statechart import AgentState, Statechart, Transition, social_media_chart
from prism.telemetry import instrumented
from prism.testing._coverage.recorder import Recorder
from prism.testing._coverage.report import report_data, report_lines, total_percent, total_share

IDLE, RESTING = AgentState.IDLE, AgentState.RESTING


def is_late(agent: object, context: object) -> bool:
    """Guard: the event says so."""
    return bool(context)


def make_chart(name: str = "small") -> Statechart[AgentState]:
    """Make a chart of two states."""
    moves = [Transition("go", IDLE, RESTING, is_late), Transition("back", RESTING, IDLE)]
    return Statechart([IDLE, RESTING], moves, IDLE, name=name)


def record(*events: tuple[str, str, object]) -> Recorder:
    """Record charts by name, each with an event and its context for a new agent."""
    recorder = Recorder()
    with instrumented(recorder):
        for name, trigger, context in events:
            make_chart(name).fire(SocialAgent("ada"), trigger, context)
    return recorder


def test_lines_are_a_table_and_what_is_missing() -> None:
    """The table has counts and percentages; below it stands what was never exercised."""
    assert list(report_lines(record(("small", "go", True)))) == [
        "chart     states  transitions     guards  total",
        "small  2/2  100%    1/2   50%  1/2   50%  66.6%",
        "never exercised in small:",
        "  transition  resting --back--> idle",
        "  guard       idle --go--> resting [is_late]: never failed",
    ]


def test_several_charts_are_added_up() -> None:
    """Several charts have a line each, and one for all of them."""
    recorder = record(("small", "go", True), ("other", "go", False))
    lines = list(report_lines(recorder))
    assert [line.split()[0] for line in lines[:4]] == ["chart", "small", "other", "all"]
    assert lines[3].split() == ["all", "3/4", "75%", "1/4", "25%", "2/4", "50%", "50%"]
    assert total_percent(recorder.used()) == 50.0


def test_charts_that_were_only_built_are_named() -> None:
    """A chart that nothing was fired on is named, and does not count."""
    recorder = record(("small", "go", True), ("idle_one", "unknown", None))
    with instrumented(recorder):
        social_media_chart()
    assert list(report_lines(recorder))[-1] == "built but never used: idle_one, social_media"
    assert report_data(recorder)["unused"] == ["idle_one", "social_media"]
    assert total_percent(recorder.used()) == 66.6


def test_nothing_used_is_nothing_reached() -> None:
    """Without any chart in use the report says so, and the total is nought."""
    assert list(report_lines(Recorder())) == ["no chart was used"]
    assert report_data(Recorder())["percent"] == 0.0
    assert total_share([]) == 0


def test_share_is_exact_and_percent_is_rounded_down() -> None:
    """The share is what a limit is compared with; the percentage is for people to read."""
    used = record(("small", "go", True)).used()
    assert total_share(used) == Fraction(4, 6)
    assert total_percent(used) == 66.6


def test_a_terminal_is_not_told_what_to_do() -> None:
    """Control characters in names are not printed, and each entry stays on its line."""
    lines = list(report_lines(record(("a\x1b[2Jb\nc", "go", True))))
    assert len(lines) == 5
    assert all(line.isprintable() for line in lines)


def test_data_is_what_the_table_says() -> None:
    """As data the report has the same numbers and lists, ready for JSON."""
    data = report_data(record(("small", "go", True)))
    assert json.loads(json.dumps(data)) == {
        "schema": 1,
        "percent": 66.6,
        "charts": [
            {
                "name": "small",
                "percent": 66.6,
                "states": {"total": 2, "covered": 2, "percent": 100.0, "missing": []},
                "transitions": {
                    "total": 2,
                    "covered": 1,
                    "percent": 50.0,
                    "missing": ["resting --back--> idle"],
                },
                "guards": {
                    "total": 2,
                    "covered": 1,
                    "percent": 50.0,
                    "missing": ["idle --go--> resting [is_late]: never failed"],
                },
            }
        ],
        "unused": [],
    }
