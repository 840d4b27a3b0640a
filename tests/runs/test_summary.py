"""Reading the ``run.json`` of a run that is to be resumed."""

import json
from pathlib import Path
from typing import Any

import pytest

import prism
from prism.errors import InputError
from prism.runs import Observer, RunFolder
from prism.runs._running import go_on
from tests.kit.commands import Prism
from tests.kit.dice import DiceOptions, tree

# Reading run.json


@pytest.mark.parametrize("name", ["empty", "nowhere", "file"])
@pytest.mark.parametrize("command", ["resume", "replay"])
def test_what_is_no_folder_of_a_run_is_named(prism: Prism, command: str, name: str) -> None:
    """A folder that is empty or not there, and a file, are refused in one line."""
    (prism.folder / "file").touch()
    (prism.folder / "empty").mkdir()
    ended = prism(command, name)
    problem = "holds no run (no run.json): name the folder of a run"
    assert (ended.status, ended.err) == (2, f"prism: {name}: {problem}\n")


def test_a_run_of_another_version_goes_on_with_a_warning(stopped: Path, whole: Any) -> None:
    """What another version of prism began goes on while it does the same; both are named."""
    summary = json.loads((stopped / "run.json").read_bytes())
    (stopped / "run.json").write_text(json.dumps({**summary, "prism": "0.0.9"}))
    warned: list[str] = []

    class Heard(Observer):
        def warn(self, message: str) -> None:
            warned.append(message)

    go_on(stopped, DiceOptions, observer=Heard())
    was = f"was begun by prism 0.0.9, and this is {prism.__version__}"
    assert warned == [f"{was}; it goes on while it does the same"]
    assert tree(stopped) == whole


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not valid JSON"),
        (b"\xff", "cannot be read"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'{"config": null}', "is damaged: it describes no run"),
        (b'{"config": []}', "is damaged: it describes no run"),
        (b'{"prism": "0", "prism": "1"}', "appears twice in one object"),
    ],
)
def test_damaged_summary_is_refused(content: bytes, problem: str, stopped: Path) -> None:
    """A summary that cannot be read strictly is one clear error, and the folder stays as it is."""
    (stopped / "run.json").write_bytes(content)
    before = tree(stopped)
    with pytest.raises(InputError, match=rf"run.json.*: .*{problem}"):
        RunFolder.to_resume(stopped)
    assert tree(stopped) == before
