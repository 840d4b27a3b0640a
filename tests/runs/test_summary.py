"""Reading the ``run.json`` of a run that is to be resumed."""

import json
from pathlib import Path
from typing import Any

import pytest

import prism
from prism.errors import InputError
from prism.runs import RunFolder
from tests.kit.commands import Prism
from tests.kit.dice import (
    tree,
)

# Reading run.json


def test_folder_without_a_run_cannot_be_resumed(tmp_path: Path) -> None:
    """A folder that is empty, not there, or a file is refused in words that fit."""
    (tmp_path / "file").touch()
    for path, problem in (
        (tmp_path, r"holds no run to resume \(no run.json\): begin one there"),
        (tmp_path / "nowhere", "there is no such folder"),
        (tmp_path / "file", "is a file: name the folder of a run"),
    ):
        with pytest.raises(InputError, match=problem) as refused:
            RunFolder.to_resume(path)
        assert refused.value.path == str(path)


@pytest.mark.parametrize("command", ["resume", "replay"])
def test_what_is_no_folder_of_a_run_is_named(prism: Prism, command: str) -> None:
    """A file of an agent is told to be one, and a folder of runs names the runs in it."""
    (prism.folder / "agent.yaml").touch()
    ended = prism(command, "agent.yaml")
    assert (ended.status, ended.err) == (
        2,
        "prism: agent.yaml: is a file: name the folder of a run\n",
    )
    for name in "dacb":
        (prism.folder / "runs" / name).mkdir(parents=True)
        (prism.folder / "runs" / name / "run.json").touch()
    ended = prism(command, "runs")
    problem = "holds several runs, and is none itself: name one of them (a, b, c, ...)"
    assert (ended.status, ended.err) == (2, f"prism: runs: {problem}\n")


def test_run_of_another_version_is_refused(stopped: Path) -> None:
    """A run that another version of prism began is refused by both versions, unless complete."""
    summary = json.loads((stopped / "run.json").read_bytes())
    (stopped / "run.json").write_text(json.dumps({**summary, "prism": "0.0.9"}))
    with pytest.raises(
        InputError,
        match=rf"begun by prism 0.0.9, and this is {prism.__version__}.*with prism 0.0.9",
    ):
        RunFolder.to_resume(stopped)
    (stopped / "run.json").write_text(json.dumps({**summary, "prism": "0.0.9", "results": {}}))
    assert RunFolder.to_resume(stopped)[1] is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is not valid JSON"),
        (b"{", "it is not valid JSON"),
        (b"\xff", "it is not UTF-8"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b"NaN", "it is not valid JSON"),
        (b'{"prism": "0", "prism": "1"}', "it appears twice in one object"),
    ],
)
def test_damaged_summary_is_refused(content: bytes, problem: str, stopped: Path) -> None:
    """A summary that cannot be read strictly is one clear error, and the folder stays as it is."""
    (stopped / "run.json").write_bytes(content)
    before = tree(stopped)
    with pytest.raises(InputError, match=rf"run.json.*: is damaged: {problem}"):
        RunFolder.to_resume(stopped)
    assert tree(stopped) == before


@pytest.mark.parametrize("value", [None, True, 1.5, []])
def test_summary_of_another_shape_is_refused(value: Any, stopped: Path) -> None:
    """A summary without a configuration is one error that names the file."""
    summary = json.loads((stopped / "run.json").read_bytes())
    (stopped / "run.json").write_text(json.dumps({**summary, "config": value}))
    with pytest.raises(InputError, match=r"run\.json: is damaged: it describes no run"):
        RunFolder.to_resume(stopped)
