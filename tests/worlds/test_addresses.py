"""Worlds by name."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from prism.errors import InputError
from prism.worlds import WorldRun, _addresses
from prism.worlds.examples import Market, Rumour

ONE = "from prism.worlds.examples import Rumour\n\nclass Own(Rumour):\n    pass\n"

pytestmark = pytest.mark.usefixtures("own_modules")


def test_short_names_are_those_of_shipped_and_installed_worlds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A shipped world, and one that a package offers, are found by their short names."""
    offered = [EntryPoint("bazaar", "prism.worlds.examples.market:Market", "prism.worlds")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: offered)
    assert WorldRun("rumour") == WorldRun(Rumour)
    assert WorldRun("bazaar") == WorldRun(Market)
    with pytest.raises(InputError, match="one of bazaar, council, feed, lake, market"):
        WorldRun("nobody")


def test_the_name_may_be_left_out_where_there_is_one_world(tmp_path: Path) -> None:
    """A file's only world is found without its name; of several, one must be named."""
    (tmp_path / "own_one.py").write_text(ONE)
    (tmp_path / "own_two.py").write_text(f"{ONE}\nclass Other(Rumour):\n    pass\n")
    assert WorldRun(f"{tmp_path}/own_one.py").world == f"{tmp_path}/own_one.py:Own"
    with pytest.raises(InputError, match=r"must be followed by :Name of a world: it has Own, Othe"):
        WorldRun(f"{tmp_path}/own_two.py")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def f(:\n", r"SyntaxError: .*own_bad.py, line 1\)"),
        ("\n1 / 0\n", r"ZeroDivisionError: division by zero \(.*own_bad.py, line 2\)"),
        ("import own_missing\n", "No module named 'own_missing'"),
    ],
)
def test_a_module_that_cannot_be_imported_says_where(
    text: str, problem: str, tmp_path: Path
) -> None:
    """What goes wrong while a user's file is imported is told with file and line."""
    (tmp_path / "own_bad.py").write_text(text)
    with pytest.raises(InputError, match=problem):
        WorldRun(f"{tmp_path}/own_bad.py:Own")
