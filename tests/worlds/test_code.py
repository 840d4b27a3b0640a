"""The files that a world's code is in."""

import sys
from pathlib import Path

import pytest

from prism import runs
from prism.errors import InputError
from prism.worlds import WorldRun
from prism.worlds.examples import Rumour
from tests.kit.worlds import Stopped, run_in

WORLD = """
from prism.worlds import World
from prism.worlds.examples.rumour import Person, Rumour
{imports}

class Own(Rumour):
    pass
"""

pytestmark = pytest.mark.usefixtures("own_modules")


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
    options = WorldRun(f"{tmp_path}/own_a.py:Own")
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
    inputs = WorldRun("pack.inner.own_d:Own").to_config()["inputs"]
    assert list(inputs) == [
        "pack.inner.own_d",
        "pack",
        "pack.inner",
        "pack.rates",
    ]
    assert list(WorldRun(Rumour).to_config()["inputs"]) == ["prism.worlds.examples.rumour"]


def test_a_changed_file_beside_the_world_is_refused_on_resuming(tmp_path: Path) -> None:
    """A world that is split over two files is resumed with both as they were."""
    write(
        tmp_path,
        {"own_e.py": WORLD.format(imports="from own_f import RATE"), "own_f.py": "RATE = 1\n"},
    )
    folder = tmp_path / "run"
    options = WorldRun(f"{tmp_path}/own_e.py:Own", 12, rounds=2)
    with pytest.raises(Stopped):
        stop_in(folder, options)

    (tmp_path / "own_f.py").write_text("RATE = 2\n")
    with pytest.raises(InputError, match=r"own_f.py: is not what it was"):
        run_in(folder, options)


def stop_in(folder: Path, options: WorldRun) -> None:
    """Run a world's first round in a folder."""

    def stop(summary: object) -> None:
        raise Stopped

    runs.begin(options, folder, on_round=stop, checkpoint_every=0)
