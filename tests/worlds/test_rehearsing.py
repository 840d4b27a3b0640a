"""What a world does past prism, as a rehearsal sees it."""

import sys
from pathlib import Path
from types import ModuleType

from prism.worlds._rehearsing import kept_outside, sets_in, watching

CODE = """
import random, secrets, time, uuid
from datetime import date, datetime
from functools import lru_cache

OWN = random.Random(3)
COUNTS = {}
NAMES = {"ann", "bo"}

class Box:
    made = []

BOX = Box()

def act():
    time.time()
    datetime.now()
    date.today()
    uuid.uuid4()
    secrets.token_hex()
    random.choice([1, 2])
    OWN.random()
    time.sleep(0)
    return sorted([2, 1])

def count(seen=[]):
    seen.append(1)

@lru_cache
def kept(number):
    return number

def still():
    return set(NAMES)
"""


def module_of(folder: Path, name: str) -> ModuleType:
    """Make a module of the code."""
    path = folder / f"{name}.py"
    path.write_text(CODE)
    module = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(CODE, str(path), "exec"), vars(module))
    return module


def test_calls_that_answer_otherwise_each_time_are_noted_by_line(tmp_path: Path) -> None:
    """Clocks, entropy and generators are noted where the world's files call them."""
    module = module_of(tmp_path, "seen")
    profile = sys.getprofile()
    with watching({str(module.__file__)}) as notes:
        module.act()
    sys.setprofile(profile)
    assert list(notes) == [
        ("clock", "time.time()", "seen.py:16"),
        ("clock", "datetime.now()", "seen.py:17"),
        ("clock", "date.today()", "seen.py:18"),
        ("entropy", "uuid.uuid4()", "seen.py:19"),
        ("entropy", "secrets.token_hex()", "seen.py:20"),
        ("generator", "random.choice()", "seen.py:21"),
        ("generator", "random.random()", "seen.py:22"),
    ]


def test_calls_of_others_are_not_noted(tmp_path: Path) -> None:
    """What another file does is its own business."""
    module = module_of(tmp_path, "other")
    with watching({"elsewhere.py"}) as notes:
        module.act()
    assert not notes


def test_what_changes_outside_of_fields_is_found(tmp_path: Path) -> None:
    """Globals, class attributes, objects, generators, defaults and caches are compared."""
    module = module_of(tmp_path, "kept")
    before = kept_outside([module])
    module.COUNTS["a"] = 1
    module.Box.made.append(1)
    module.BOX.size = 2
    module.OWN.random()
    module.count()
    module.kept(1)
    module.still()
    after = kept_outside([module])
    assert {name for name in after if before.get(name) != after[name]} == {
        "the global kept.COUNTS",
        "the class attribute Box.made",
        "the global kept.BOX",
        "the global kept.OWN",
        "the global kept.count",
        "the global kept.kept",
    }


def test_sets_are_found_by_line(tmp_path: Path) -> None:
    """Displays and calls that make a set are named."""
    assert sets_in([Path(str(module_of(tmp_path, "sets").__file__))]) == ["sets.py:8", "sets.py:34"]
