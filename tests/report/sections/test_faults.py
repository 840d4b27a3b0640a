"""What went wrong, and recorded prompts."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prism.agents import StatechartMixin
from prism.analysis import read_log
from prism.report import make_report
from prism.runlog import PromptLog, RunLog, SimulatedClock
from prism.statechart import Statechart, Transition, state_enum
from tests.kit.browsers import HOSTILE
from tests.kit.tables import faults

Door = state_enum("Door", ["open", "shut"])
HEADING = "What went wrong"


def creaks(door: Any, context: Any) -> bool:
    raise ValueError("the hinge is <b>loose</b>")


def rings(door: Any, context: Any) -> None:
    raise RuntimeError("no bell")


class Gate(StatechartMixin):
    """An agent of the chart below."""

    state_type = Door
    agent_id = "gate"


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """Return a log in which a guard fails three times and an action twice."""
    path = tmp_path / "doors.jsonl"
    with RunLog(path, SimulatedClock()) as log:
        chart = Statechart(
            Door,
            [
                Transition("pull", Door("open"), Door("open"), guard=creaks),
                Transition("push", Door("open"), Door("shut"), action=rings),
                Transition("push", Door("shut"), Door("open")),
            ],
            Door("open"),
            name="doors",
            logger=log.logger,
        )
        gate = Gate()
        for trigger in ("pull", "pull", "pull", "push", "push", "push"):
            chart.fire(gate, trigger)
    return path


@pytest.mark.slow
def test_failed_guards_and_actions_are_counted(faulty: Path, parse: Callable[[str], Any]) -> None:
    """The box says how many guards and actions failed, which, and with what error."""
    page = parse(make_report(read_log(faulty)).html())
    (box,) = page.all("div", **{"class": "notes faults"})
    assert box.text == "3 guards failed, 2 actions failed"
    (table,) = page.all("table", id="table-faults-1")
    for text in ("pull", "ValueError: the hinge is <b>loose</b>", "RuntimeError: no bell"):
        assert text in table.text
    headings = [heading.text for heading in page.all("h2")]
    assert headings.index(HEADING) == 1


def test_a_run_without_faults_has_no_box(page: Any) -> None:
    """Where nothing went wrong, nothing is said."""
    assert HEADING not in [heading.text for heading in page.all("h2")]


@pytest.mark.slow
def test_beside_a_faulty_run_the_other_says_so(
    faulty: Path, folder: Path, parse: Callable[[str], Any]
) -> None:
    """Side by side, the run without faults says that it has none."""
    html = make_report(read_log(faulty, folder)).html()
    assert len(parse(html).all("div", **{"class": "notes faults"})) == 1
    assert "The log has no faults." in html


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("statechart.answer_discarded", "1 answer was discarded"),
        ("reasoner.cache_failed", "1 store of answers failed"),
        ("reasoner.mode_unknown", "1 server did not tell its mode"),
    ],
)
@pytest.mark.slow
def test_other_faults_are_counted(
    event: str, said: str, write_log: Callable[..., Path], make: Any
) -> None:
    """Answers that came too late and faults around the model are counted, too."""
    fault = {"event": event, "timestamp": "2026-01-01T00:00:00Z", "error": "gone", "asked_in": "a"}
    log = write_log([make.joined("ada"), make.move("ada", "idle", "a"), fault])
    assert said in make_report(read_log(log)).html()


@pytest.mark.slow
def test_the_box_says_what_the_command_says(
    write_log: Callable[..., Path], make: Any, parse: Callable[[str], Any]
) -> None:
    """The box has the table that `prism log faults` has: fallbacks and agents included."""
    decision = {
        "event": "reasoner.decision",
        "timestamp": "2026-01-01T00:00:00Z",
        "state": "a",
        "source": "fallback",
        "reason": "timeout: no reply within 60 s",
    }
    events = [make.joined("ada"), make.move("ada", "idle", "a")]
    events += [{**decision, "agent_id": agent_id} for agent_id in ("ada", "bo", "bo")]
    logs = read_log(write_log(events))

    report = make_report(logs)
    (facts,) = report.runs
    assert facts.faults.equals(faults(logs))
    assert facts.faults.select("fault", "count", "agents").rows() == [("fallback", 3, 2)]
    (box,) = parse(report.html()).all("div", **{"class": "notes faults"})
    assert box.text == "3 decisions took the fallback"


@pytest.mark.slow
def test_alike_faults_are_one_row_with_the_first_of_them(
    write_log: Callable[..., Path], make: Any
) -> None:
    """Faults that differ only in agent and time are counted together."""
    fault = {
        **make.move("ada", "a", "b"),
        "event": "statechart.guard_failed",
        "error": "ValueError: no",
    }
    events = [make.move("ada", "b", "a"), *({**fault, "round": 2, "tick": n} for n in (3, 4, 5))]
    (facts,) = make_report(read_log(write_log(events))).runs
    assert facts.faults.select(pl.col("count", "round", "tick", "error")).rows() == [
        (3, 2, 3, "ValueError: no")
    ]


HEADING_RECORDED = "Prompts worth a look"


def recorded(folder: Path, make: Any, chances: list[float], prompt: str = "Hello.") -> Path:
    """Write the log and the prompts of a run with a fallback and decisions of given chances."""
    path = folder / "events.jsonl"
    events = [make.started(), make.joined("ada", "a"), make.move("ada", "a", "b")]
    with PromptLog(folder / "prompts.jsonl.gz") as log:
        for chance in (None, *chances):
            own = log.new_id("ada")
            source = "fallback" if chance is None else "model"
            given = None if chance is None else {"a": chance, "b": 1 - chance}
            decided = make.decision("ada", ["a", "b"], "a", state="a", source=source)
            events.append({**decided, "probabilities": given, "decision_id": own})
            attempt = {"fault": prompt, "reply": prompt}
            log.keep({"id": own, "prompt": prompt, "reply": prompt, "attempts": [attempt]})
    path.write_text("".join(json.dumps(event, default=str) + "\n" for event in events))
    return folder


@pytest.mark.slow
def test_fallbacks_and_least_likely_choices_are_shown(
    tmp_path: Path, make: Any, parse: Callable[[str], Any]
) -> None:
    """The fallback, then the least likely choices, each with its command; likely ones are not."""
    chances = [0.9, 0.3, 0.1, 0.5, 0.2, 0.4, 0.35, 0.45, 0.05]
    page = parse(make_report(read_log(recorded(tmp_path, make, chances))).html())
    (section,) = page.all("section", id="prompts")
    titles = [element.text for element in page.all("summary") if element.text.startswith("ada:")]
    ids = [title.split(": ")[0] for title in titles]
    assert ids == ["ada:1", "ada:10", "ada:4", "ada:6", "ada:3", "ada:8", "ada:7"]
    assert "its probability was 0.050" in titles[1]
    assert f"prism log decision ada:10 {tmp_path}" in section.text


def test_prompts_are_text_and_bounded(
    tmp_path: Path, make: Any, parse: Callable[[str], Any]
) -> None:
    """Whatever a prompt holds stays text, and a long one is cut with a word about the rest."""
    html = make_report(read_log(recorded(tmp_path, make, [0.1], "\n".join(HOSTILE)))).html()
    page = parse(html)
    (section,) = page.all("section", id="prompts")
    for text in (*HOSTILE[:5], "a\ufffdb\ufffdc", "characters more"):
        assert text in section.text
    assert page.all("img") == []
    assert len(section.text) < 40_000


def test_a_run_without_prompts_has_no_such_section(page: Any) -> None:
    """Nothing is said of prompts where none were recorded."""
    assert HEADING_RECORDED not in [element.text for element in page.all("h2")]
