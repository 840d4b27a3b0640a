"""Machine code of a world: its text and the kernel's, compiled once and cached."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from prism._version import __version__
from prism.columns._types import Unit
from prism.files._durable import cache_folder, write_durably

_HERE = Path(__file__).parent
_KERNEL = ("numbers", "orders", "transitions", "turns")
_BESIDES = ("_compiler.py", "_memory.py", "_table.py")
_BEGINNING = "# The kernel begins here"
_HEAD = """from __future__ import annotations

import math

import numpy as np
from numba import njit

from prism.columns import _table as T
from prism.columns._compiler import PartCompiler, WholeCompiler
from prism.columns._memory import (
    fetch, get_f8, get_i4, get_i8, get_u1, get_u8, glance, opaque, put_f8, put_i4, put_i8, put_u1,
    put_u8, records, run_at
)

# only compiled code calls these: what Python would call them by is half as much again to compile
wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
jit = njit(error_model="numpy", pipeline_class=PartCompiler, **wrappers)
whole = np.int64
"""
_DOORS = """
door = dict(error_model="numpy", cache={cached}, nogil=True, pipeline_class=WholeCompiler)


@njit("int64(int64)", **door)
def run_tick(a):
    return tick(run_of(a))


@njit("int64(int64, int64, int64, int64)", **door)
def run_fire(a, agent, trigger, context):
    return fire_from_outside(run_of(a), agent, trigger, context)
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """The compiled code that runs a world in columns.

    Args:
        tick: Runs one tick on a table.
        fire: Fires an event of an agent.
    """

    tick: Callable[[int], int]
    fire: Callable[[int, int, int, int], int]


@lru_cache(maxsize=16)
def machine_of(unit: Unit) -> Machine:
    """Return the machine code of a world, from the cache if possible."""
    module = _loaded(unit.text)
    if module is None:
        # no folder can be written: compiled in memory
        module = ModuleType("prism_columns_in_memory")
        exec(whole_text(unit.text, cached=False), vars(module))

    return Machine(module.run_tick, module.run_fire)


def whole_text(text: str, *, cached: bool) -> str:
    kernel = "".join(_text(f"_{each}.py").partition(_BEGINNING)[2] for each in _KERNEL)
    # the definitions that the kernel takes from a world come first
    compiled = kernel.replace("\ndef ", "\n@jit\ndef ").replace("W.", "")
    return "\n".join([_HEAD, text, compiled, _DOORS.format(cached=cached)])


def _text(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _loaded(text: str) -> ModuleType | None:
    """Import the module from the cache, or return None if the cache cannot be written."""
    import numba

    whole = whole_text(text, cached=True)
    python = ".".join(map(str, sys.version_info[:3]))
    parts = [__version__, numba.__version__, python, *map(_text, _BESIDES), whole]
    name = sha256("\0".join(parts).encode()).hexdigest()[:32]
    try:
        path = cache_folder() / "columns" / f"{name}.py"
        _write(path, whole)
        return _imported(name, path)
    except OSError:
        return None
    except Exception:
        # a damaged cache may raise anything; it is rebuilt
        for kept in (path.parent / "__pycache__").glob(f"{name}*"):
            with suppress(OSError):
                kept.unlink()
        return _imported(name, path)


def _write(path: Path, whole: str) -> None:
    """Write the module, unless it exists: machine code is valid only for an unchanged file."""
    with suppress(OSError, UnicodeDecodeError):
        if path.read_text(encoding="utf-8") == whole:
            return

    path.parent.mkdir(parents=True, exist_ok=True)
    # at once, as another process may be reading it
    write_durably(path, whole.encode())


def _imported(name: str, path: Path) -> ModuleType:
    spec = spec_from_file_location(f"prism_columns_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    loader: Any = spec.loader
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module
