"""What ``prism watch`` is given: a run, or a world to play with."""

import signal
from pathlib import Path

import httpx
import pytest

from prism.cli._watch import names_a_world
from tests.kit.commands import Prism


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


def test_a_folder_with_the_name_of_a_world_is_a_run(here: Path) -> None:
    """What is there is followed, rather than played."""
    (here / "rumour").mkdir()
    assert not names_a_world("rumour")


@pytest.mark.slow
def test_a_page_shows_a_run_until_it_is_interrupted(here: Path) -> None:
    """The address is printed; an interruption ends the page with status 0."""
    assert Prism(here)("run", "rumour", "--agents", 20, "--out", "runs/first").status == 0
    with Prism(here).start("watch", "runs/first", "--no-browser") as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with httpx.Client() as client:
            assert "prism watch" in client.get(address).text
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 0


def test_options_of_a_world_are_not_for_a_run(here: Path) -> None:
    """Each is refused in one line."""
    prism = Prism(here)
    assert "--seed is only for a world" in prism("watch", "runs/first", "--seed", 1).err
    assert "No module named 'nowhere'" in prism("watch", "nowhere:World").err
    assert "--chart is for runs" in prism("watch", "rumour", "--chart", "social_feed").err
