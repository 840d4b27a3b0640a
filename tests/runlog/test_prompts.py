"""Prompts and replies that an application's own loop keeps beside its log."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from prism.errors import InputError
from prism.runlog import PromptLog, SimulatedClock, read_answers
from prism.runlog._prompts import asked_in, find_answers
from prism.telemetry.events import TEXT_WRITTEN

NAME = "answers.jsonl"


def keep(log: PromptLog, agent: str = "ada", **more: Any) -> str:
    """Keep one record, and return its id."""
    record_id = log.new_id(agent)
    log.keep({"id": record_id, **more})
    return record_id


def test_records_are_read_as_they_were_kept(tmp_path: Path) -> None:
    """Round, tick and every key come back at once, by folder or by file; halves of characters not.

    Nobody else may read the file, and no other process write it.
    """
    clock = SimulatedClock()
    clock.begin_round(2)
    clock.advance()
    with PromptLog(tmp_path / NAME, clock) as log:
        ids = [keep(log, prompt="Who?"), keep(log, "bo"), keep(log, reply="half \ud83d")]
        assert ids == ["ada:1", "bo:1", "ada:2"]
        at = {"round": 2, "tick": 1}
        expected = [
            {"id": "ada:1", **at, "prompt": "Who?"},
            {"id": "bo:1", **at},
            {"id": "ada:2", **at, "reply": "half ?"},
        ]
        assert list(read_answers(tmp_path)) == list(read_answers(tmp_path / NAME)) == expected
        with pytest.raises(InputError, match="being written by another process"):
            PromptLog(tmp_path / NAME)
    assert stat.S_IMODE((tmp_path / NAME).stat().st_mode) == 0o600


def test_a_program_that_starts_again_goes_on_in_its_file(tmp_path: Path) -> None:
    """The last record of an id counts, and a line that a kill cut off is left out."""
    for run in range(3):
        with PromptLog(tmp_path / NAME) as log:
            keep(log, run=run)
        assert find_answers(tmp_path, ["ada:1"], pytest.fail)["ada:1"]["run"] == run
        with (tmp_path / NAME).open("ab") as file:
            file.write(b'{"id":"ada:2"')
        assert [each["run"] for each in read_answers(tmp_path)] == [*range(run + 1)]


def test_a_damaged_record_is_told_with_its_line(tmp_path: Path) -> None:
    """With file and line; a folder without answers is refused by name."""
    with pytest.raises(InputError, match=r"answers\.jsonl: there is no such file"):
        list(read_answers(tmp_path))
    (tmp_path / NAME).write_bytes(b'{"id":"ada:1"}\n[]\n')
    told: list[str] = []
    assert find_answers(tmp_path, ["ada:1"], told.append) == {}
    assert "line 2: is damaged" in told[0]


def test_what_no_model_was_asked_for_has_no_id(tmp_path: Path) -> None:
    """Neither a template, nor anything where answers were recorded and it has none."""
    text = {"event": TEXT_WRITTEN, "agent_id": "ada", "source": "model"}
    events = [{**text, "source": "template"}, text, {**text, "text_id": "ada:7"}]
    log = tmp_path / "events.jsonl"
    log.write_text("".join(json.dumps(each) + "\n" for each in events))
    asked = asked_in(log, pytest.fail)
    assert [each.id for each in asked] == [None, "ada:1", "ada:7"]
    with PromptLog(tmp_path / NAME):
        pass
    asked = asked_in(tmp_path, pytest.fail)
    assert [(each.id, each.line) for each in asked] == [(None, 1), (None, 2), ("ada:7", 3)]
