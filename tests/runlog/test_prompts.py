"""Prompts and replies that are kept beside a log."""

import json
from pathlib import Path

import pytest

from prism.errors import InputError
from prism.runlog import read_answers
from prism.runlog._prompts import asked_in, find_answers
from prism.telemetry.events import TEXT_WRITTEN

NAME = "answers.jsonl"


def test_answers_are_read_as_they_were_kept(tmp_path: Path) -> None:
    """By folder or by file; the last answer of an id counts, and a line that a kill cut off not."""
    (tmp_path / NAME).write_bytes(b'{"id":"ada:1","n":1}\n{"id":"ada:1","n":2}\n{"id":"ada:2"')
    expected = [{"id": "ada:1", "n": 1}, {"id": "ada:1", "n": 2}]
    assert list(read_answers(tmp_path)) == list(read_answers(tmp_path / NAME)) == expected
    assert find_answers(tmp_path, ["ada:1"], pytest.fail)["ada:1"]["n"] == 2


def test_a_damaged_record_is_told_with_its_line(tmp_path: Path) -> None:
    """With file and line; a folder without answers is refused by name."""
    with pytest.raises(InputError, match=r"answers\.jsonl: cannot be read"):
        list(read_answers(tmp_path))
    (tmp_path / NAME).write_bytes(b'{"id":"ada:1"}\n[]\n')
    told: list[str] = []
    assert find_answers(tmp_path, ["ada:1"], told.append) == {}
    assert "line 2: is damaged" in told[0]


def test_what_no_model_was_asked_for_has_no_id(tmp_path: Path) -> None:
    """Neither a template, nor anything where answers were recorded and it has none."""
    text = {"event": TEXT_WRITTEN, "agent_id": "ada", "source": "model"}
    events = [{**text, "source": "template"}, text, {**text, "text_id": "ada:7"}]
    log = tmp_path / "run.jsonl"
    log.write_text("".join(json.dumps(each) + "\n" for each in events))
    asked = list(asked_in(log, lambda _: None))
    assert [each.id for each in asked] == [None, "ada:1", "ada:7"]
    (tmp_path / NAME).touch()
    asked = list(asked_in(log, lambda _: None, beside=tmp_path))
    assert [(each.id, each.line) for each in asked] == [(None, 1), (None, 2), ("ada:7", 3)]
