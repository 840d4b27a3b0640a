"""What ``prism watch`` is given: a run, or a world to play with."""

import signal
from pathlib import Path

import httpx
import pytest

from tests.kit.commands import Prism


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to an empty folder, but for a file of Python."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").touch()
    return tmp_path


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
    """Short names, modules and files of Python are worlds; all that is there is a path."""
    prism = Prism(here)
    (here / "feed").mkdir()
    for path in ("runs/first", "./rumour", "nothing", "feed"):
        assert "--seed is only for a world" in prism("watch", path, "--seed", 1).err
    for world in ("rumour", "mine.py", "mine.py:World"):
        assert "--chart is for runs" in prism("watch", world, "--chart", "x").err
    assert "none.csv: there is no such file" in prism("watch", "rumour", "--agents", "none.csv").err
    assert "No module named 'nowhere'" in prism("watch", "nowhere:World").err
