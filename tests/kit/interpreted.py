"""Compiled worlds without a compiler: the same text, run by Python itself.

Whether the text says what the user's steps say is tested in milliseconds this way; whether machine
code does what the text says, by the slow proofs.
"""

import ctypes
import math
from types import ModuleType
from typing import Any

import numpy as np

from prism.columns import _table
from prism.columns._module import Machine, whole_text
from prism.columns._unit import Unit

_KINDS: dict[str, Any] = {
    "u1": ctypes.c_uint8,
    "i4": ctypes.c_int32,
    "i8": ctypes.c_int64,
    "u8": ctypes.c_uint64,
    "f8": ctypes.c_double,
}


def _get(kind: str) -> Any:
    of = _KINDS[kind]
    size = ctypes.sizeof(of)

    def get(address: int, index: int) -> Any:
        found = of.from_address(int(address) + size * int(index)).value
        return np.uint64(found) if kind == "u8" else found

    return get


def _put(kind: str) -> Any:
    of = _KINDS[kind]
    size = ctypes.sizeof(of)

    def put(address: int, index: int, value: Any) -> None:
        plain = float(value) if kind == "f8" else int(value)
        of.from_address(int(address) + size * int(index)).value = plain

    return put


def machine_of(unit: Unit) -> Machine:
    """Return what runs a world, by Python itself."""
    text = whole_text(unit.text, cached=False)
    body = text.partition('jit = njit(error_model="numpy")')[2].partition("@njit")[0]
    body = "jit = lambda function: function" + body
    module = ModuleType("prism_interpreted")
    names = {f"get_{kind}": _get(kind) for kind in _KINDS}
    names |= {f"put_{kind}": _put(kind) for kind in _KINDS}
    vars(module).update(names, opaque=float, Any=Any, math=math, np=np, T=_table)
    exec(compile(body, "<interpreted>", "exec"), vars(module))

    def quietly(function: Any) -> Any:
        def run(*given: int) -> int:
            # machine words wrap around, which numpy warns of
            with np.errstate(over="ignore"):
                return int(function(*given))

        return run

    return Machine(quietly(module.tick), quietly(module.fire_from_outside))
