"""Answers that are read beside a log."""

from pathlib import Path

import pytest

from prism.errors import InputError
from prism.runlog import read_answers
from prism.runlog.reader import find_answers

NAME = "answers.jsonl"


def test_the_last_line_of_an_id_counts_and_one_that_is_cut_off_does_not(tmp_path: Path) -> None:
    """By folder or by file; without a file there is nothing to find."""
    assert find_answers(tmp_path, ["ada:1"]) == {}
    (tmp_path / NAME).write_bytes(b'{"id":"ada:1"}\n{"id":"bo:1"}\n{"id":"ada:1","x":2}\n{"id":"c')
    expected = [{"id": "ada:1"}, {"id": "bo:1"}, {"id": "ada:1", "x": 2}]
    assert list(read_answers(tmp_path)) == list(read_answers(tmp_path / NAME)) == expected
    assert find_answers(tmp_path, ["ada:1"]) == {"ada:1": expected[-1]}


def test_a_damaged_record_is_reported_with_its_line(tmp_path: Path) -> None:
    """With file and line; a folder without answers is refused by name."""
    with pytest.raises(InputError, match=r"answers\.jsonl: there is no such file"):
        list(read_answers(tmp_path))
    (tmp_path / NAME).write_bytes(b'{"id":"ada:1"}\n[]\n')
    with pytest.raises(InputError, match="line 2: is damaged"):
        list(read_answers(tmp_path))
    assert find_answers(tmp_path, ["ada:1"]) == {"ada:1": {"id": "ada:1"}}
