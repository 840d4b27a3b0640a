"""What ``prism watch`` is given: a run, or a world to play with."""

import os
import re
import signal
import sys
from pathlib import Path
from subprocess import PIPE

import httpx
import pytest

from prism.cli._watch import names_a_world, opening_beside
from prism.errors import InputError
from tests.kit.commands import MAIN
from tests.kit.processes import start
from tests.kit.waiting import MOST_SECONDS, wait_until


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to an empty folder, but for a file of Python."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("text", "is_world"),
    [
        ("rumour", True),
        ("feed", True),
        ("mine.py", True),
        ("mine.py:World", True),
        ("package.module:World", True),
        ("runs/first", False),
        ("./rumour", False),
        ("nothing", False),
        ("runs/first/events.jsonl", False),
    ],
)
@pytest.mark.sampled(4)
def test_a_name_is_a_world_and_a_path_a_run(text: str, is_world: bool) -> None:
    """Short names, modules and files of Python are worlds; everything else is a path."""
    assert names_a_world(text) is is_world


def test_what_could_be_both_is_an_error_that_says_how_to_tell_them_apart(here: Path) -> None:
    """A folder with the name of a world is written with a dot before it."""
    (here / "rumour").mkdir()
    with pytest.raises(InputError, match=r"write \./rumour for the path"):
        names_a_world("rumour")
    assert not names_a_world("./rumour")


def test_a_misspelt_world_is_told_by_its_name() -> None:
    """What is neither a path nor a world, but nearly one, is an error that names the world."""
    with pytest.raises(InputError, match=r"rumor: there is no such .*; did you mean rumour\?"):
        names_a_world("rumor")
    assert not names_a_world("runs/nowhere")


def test_a_run_that_is_watched_has_a_folder() -> None:
    """Without one there is nothing to look at."""
    with pytest.raises(InputError, match="needs --out"), opening_beside(None):
        pass


@pytest.mark.slow
def test_a_run_opens_beside_its_page_until_it_is_interrupted(here: Path) -> None:
    """The page shows the run while it goes on and afterwards; an interruption ends both."""
    words = ("run", "rumour", "--agents", "20", "--out", "runs/first", "--watch")
    told, environment = here / "told", {**os.environ, "BROWSER": "true"}
    with told.open("wb") as err:
        process = start(
            [sys.executable, "-c", MAIN, *words],
            stdout=PIPE,
            stderr=err,
            env=environment,
            start_new_session=True,
        )
    wait_until(
        lambda: b"Ctrl-C to close it" in told.read_bytes() and b"token=" in told.read_bytes()
    )
    address = re.search(r"http://\S+", told.read_text())
    assert address is not None
    with httpx.Client() as client:
        assert "prism watch" in client.get(address[0]).text
        runs = client.get(address[0].partition("?")[0] + "runs").json()["runs"]
    assert [each["state"] for each in runs] == ["complete"]

    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(MOST_SECONDS) == 0
    assert process.stdout is not None
    process.stdout.close()
