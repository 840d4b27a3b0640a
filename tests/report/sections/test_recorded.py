"""The prompts of decisions worth a look, on the page of a run that recorded them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prism.analysis import read_log
from prism.report import make_report
from prism.runlog import PromptLog
from tests.report.conftest import HOSTILE

HEADING = "Prompts worth a look"


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
    assert f"prism log decision {tmp_path} ada:10" in section.text


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


def test_a_run_without_prompts_has_no_such_section(
    folder: Path, parse: Callable[[str], Any]
) -> None:
    """Nothing is said of prompts where none were recorded."""
    page = parse(make_report(read_log(folder)).html())
    assert HEADING not in [element.text for element in page.all("h2")]
