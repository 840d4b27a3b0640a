"""Worlds by name, and the file that a run keeps the digest of."""

import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import pytest

from prism import Run
from prism.errors import InputError

ONE = "from prism.examples import Rumour\n\nclass Own(Rumour):\n    pass\n"

pytestmark = pytest.mark.usefixtures("own_modules")


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("def f(:\n", InputError, r"imported: SyntaxError: .*own_bad.py, line 1\)$"),
        ("\n1 / 0\n", ZeroDivisionError, "division by zero"),
        ("import own_missing\n", ImportError, "No module named 'own_missing'"),
    ],
)
def test_a_module_that_cannot_be_imported_says_where(
    text: str, error: type[Exception], problem: str, tmp_path: Path
) -> None:
    """What is no Python is refused with its line; a fault of its code is raised as it is."""
    (tmp_path / "own_bad.py").write_text(text)
    with pytest.raises(error, match=problem):
        _ = Run(f"{tmp_path}/own_bad.py:Own").agents


@pytest.mark.parametrize("file", [None, "<stdin>"])
def test_a_world_that_is_in_no_file_cannot_be_kept(
    file: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was typed, or piped into Python, could not be found again by a resume."""
    typed = ModuleType("typed")
    typed.__file__ = file
    monkeypatch.setitem(sys.modules, "typed", typed)
    exec(ONE, vars(typed))
    with pytest.raises(InputError, match="Own is not defined in a file, which a resume requires"):
        Run(typed.Own).to_config()


def test_a_file_called_like_a_loaded_module_is_refused(tmp_path: Path) -> None:
    """Both would be one module."""
    (tmp_path / "json.py").write_text(ONE)
    with pytest.raises(InputError, match="has the name of a loaded module, json: rename it"):
        Run(f"{tmp_path}/json.py:Own")


def test_a_file_that_is_edited_after_its_import_is_kept_as_it_ran(tmp_path: Path) -> None:
    """The digest in run.json is that of the code which ran, so that a resume reports the edit."""
    (file := tmp_path / "own_world.py").write_text(ONE)
    run = Run(f"{file}:Own", 20, rounds=1)
    file.write_text(f"{ONE}    rounds = 2\n")
    inputs = run.keep(tmp_path / "run").summary["config"]["inputs"]
    assert inputs == {str(file): sha256(ONE.encode()).hexdigest()}
