"""Worlds by name, and the files that their code is in."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from prism import Run
from prism.errors import InputError
from prism.examples import Market, Rumour
from tests.kit.worlds import Stopped, run_in

ONE = "from prism.examples import Rumour\n\nclass Own(Rumour):\n    pass\n"

pytestmark = pytest.mark.usefixtures("own_modules")


def test_short_names_are_those_of_shipped_and_installed_worlds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A shipped world, and one that a package offers, are found by their short names."""
    offered = [EntryPoint("stalls", "prism.examples.market:Market", "prism.worlds")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: offered)
    assert Run("rumour").world_class is Rumour
    assert Run("stalls").world_class is Market
    with pytest.raises(InputError, match="one of bazaar, council, day, epidemic, feed, lake"):
        _ = Run("nobody").agents


def test_a_misspelt_member_is_told_by_the_files_own_line(tmp_path: Path) -> None:
    """Not the line of Python's enum, but the one that has the slip, and what may be meant."""
    code = 'from enum import StrEnum\nRoof = StrEnum("Roof", ["OWNER", "RENTER"])\nRoof.OWNR\n'
    (tmp_path / "roofs.py").write_text(code)
    told = r"^\S*roofs.py, line 3: AttributeError: .*OWNR.* Did you mean: 'OWNER'\?: Roof.OWNR$"
    with pytest.raises(InputError, match=told) as caught:
        _ = Run(f"{tmp_path}/roofs.py").agents
    assert isinstance(caught.value.__cause__, AttributeError)


def test_the_name_may_be_left_out_where_there_is_one_world(tmp_path: Path) -> None:
    """A file's only world is found without its name; of several, one must be named."""
    (tmp_path / "own_one.py").write_text(ONE)
    (tmp_path / "own_two.py").write_text(f"{ONE}\nclass Other(Rumour):\n    pass\n")
    assert Run(f"{tmp_path}/own_one.py").place == f"{tmp_path}/own_one.py"
    told = r"must be followed by :Name of a world or agent: it has Own, Other$"
    with pytest.raises(InputError, match=told):
        _ = Run(f"{tmp_path}/own_two.py").agents


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("def f(:\n", r"^\S*own_bad.py, line 1: SyntaxError: [^:]*: def f\(:$"),
        ("\n1 / 0\n", "^\\S*own_bad.py, line 2: ZeroDivisionError: division by zero: 1 / 0$"),
        ("import own_missing\n", "^\\S*own_bad.py, line 1: .*No module named 'own_missing'"),
        ("import own_broken\n", r"^\S*own_broken.py, line 2: importing \S*own_bad.py failed: "),
    ],
)
def test_a_module_that_cannot_be_imported_says_where(
    text: str, problem: str, tmp_path: Path
) -> None:
    """What goes wrong while a user's file is imported is told with file and line."""
    (tmp_path / "own_bad.py").write_text(text)
    (tmp_path / "own_broken.py").write_text("# a helper\n1 / 0\n")
    with pytest.raises(InputError, match=problem):
        _ = Run(f"{tmp_path}/own_bad.py:Own").agents


WORLD = """
from prism.worlds import World
from prism.examples.rumour import Person, Rumour
{imports}

class Own(Rumour):
    pass
"""


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files of Python."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_file_and_what_it_imports_from_beside_it(tmp_path: Path) -> None:
    """Files of the same folder count, also those imported in turn; others there do not."""
    write(
        tmp_path,
        {
            "own_a.py": WORLD.format(imports="import own_b\nimport json"),
            "own_b.py": "from own_c.deep import RATE\n",
            "own_c/__init__.py": "",
            "own_c/deep.py": "from . import deeper\nRATE = 1\n",
            "own_c/deeper.py": "",
            "unused.py": "",
            "prism/__init__.py": "",
            "prism/worlds/__init__.py": "",
        },
    )
    options = Run(f"{tmp_path}/own_a.py:Own")
    names = [str(Path(name).relative_to(tmp_path)) for name in options.to_config()["inputs"]]
    assert names == [
        "own_a.py",
        "own_b.py",
        "own_c/__init__.py",
        "own_c/deep.py",
        "own_c/deeper.py",
    ]


def test_a_module_and_what_it_imports_from_its_package(tmp_path: Path) -> None:
    """Modules of the same package count, by their names; prism's own and others do not."""
    write(
        tmp_path,
        {
            "pack/__init__.py": "",
            "pack/inner/__init__.py": "",
            "pack/inner/own_d.py": WORLD.format(imports="from ..rates import RATE\nimport beside"),
            "pack/rates.py": "RATE = 1\n",
            "beside.py": "",
        },
    )
    sys.path.insert(0, str(tmp_path))
    inputs = Run("pack.inner.own_d:Own").to_config()["inputs"]
    assert list(inputs) == [
        "pack.inner.own_d",
        "pack",
        "pack.inner",
        "pack.rates",
    ]
    assert list(Run(Rumour).to_config()["inputs"]) == ["prism.examples.rumour"]


def test_a_changed_file_beside_the_world_is_refused_on_resuming(tmp_path: Path) -> None:
    """A world that is split over two files is resumed with both as they were."""
    write(
        tmp_path,
        {"own_e.py": WORLD.format(imports="from own_f import RATE"), "own_f.py": "RATE = 1\n"},
    )
    folder = tmp_path / "run"
    options = Run(f"{tmp_path}/own_e.py:Own", 12, rounds=2)
    with pytest.raises(Stopped):
        stop_in(folder, options)

    (tmp_path / "own_f.py").write_text("RATE = 2\n")
    with pytest.raises(InputError, match=r"own_f.py: has changed"):
        run_in(folder, options)


def stop_in(folder: Path, options: Run) -> None:
    """Run a world's first round in a folder."""

    def stop(summary: object) -> None:
        raise Stopped

    options.keep(folder, on_round=stop, checkpoint_every=0)


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


def test_a_module_beside_the_world_that_is_no_python_is_named(tmp_path: Path) -> None:
    """A file that the world imports counts as its code, also if the import is guarded."""
    guarded = "try:\n    import own_h\nexcept SyntaxError:\n    pass"
    write(tmp_path, {"own_g.py": WORLD.format(imports=guarded), "own_h.py": "x = (\n"})
    with pytest.raises(InputError, match=r"own_h.py: cannot be read as Python: '\(' was never"):
        Run(f"{tmp_path}/own_g.py:Own").to_config()


@pytest.mark.parametrize("address", [":Own", "..own:Own"])
def test_a_module_is_named_in_full(address: str) -> None:
    """Neither nothing nor a relative name leads to a module."""
    with pytest.raises(
        InputError, match=r"must name a module in full, or a file, .* got '(\.\.own)?'"
    ):
        Run(address)


def test_a_file_called_like_a_loaded_module_is_refused(tmp_path: Path) -> None:
    """Both would be one module."""
    (tmp_path / "json.py").write_text(ONE)
    with pytest.raises(InputError, match="has the name of the module 'json', which is loaded"):
        Run(f"{tmp_path}/json.py:Own")


def test_a_misspelled_world_is_told_with_the_nearest_name() -> None:
    """A name that is nearly that of a world comes with the question whether that was meant."""
    with pytest.raises(InputError, match="did you mean rumour"):
        _ = Run("rumor").agents
