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
from prism.columns._types import Unit

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


class _Record:
    """A record, whose numbers are plain ones."""

    def __init__(self, void: Any) -> None:
        object.__setattr__(self, "void", void)

    def __getattr__(self, name: str) -> Any:
        found = self.void[name]
        return found if found.dtype.kind == "u" and found.dtype.itemsize == 8 else found.item()

    def __setattr__(self, name: str, value: Any) -> None:
        self.void[name] = value


def _run_at(kind: Any) -> Any:
    return lambda address: _record(int(address), kind, 0)


def _records(_run: Any, column: str, kind: Any) -> Any:
    return lambda run, number: _record(getattr(run, column), kind, int(number))


def _record(address: int, kind: Any, number: int) -> _Record:
    memory = (ctypes.c_uint8 * kind.itemsize).from_address(address + number * kind.itemsize)
    return _Record(np.frombuffer(memory, kind)[0])


def machine_of(unit: Unit) -> Machine:
    """Return what runs a world, by Python itself."""
    text = whole_text(unit.text, cached=False)
    body = text.partition("\nwhole = ")[2].partition("\ndoor = ")[0]
    body = "jit = lambda function: function\nwhole = " + body
    module = ModuleType("prism_interpreted")
    names = {f"get_{kind}": _get(kind) for kind in _KINDS}
    names |= {f"put_{kind}": _put(kind) for kind in _KINDS}
    names |= {"run_at": _run_at, "records": _records, "opaque": float, "fetch": lambda _: None}
    names["glance"] = lambda address: names["get_i8"](address, 0)
    vars(module).update(names, Any=Any, math=math, np=np, T=_table)
    exec(compile(body, "<interpreted>", "exec"), vars(module))

    def quietly(function: Any) -> Any:
        def run(*given: int) -> int:
            # machine words wrap around, which numpy warns of
            with np.errstate(over="ignore"):
                return int(function(*given))

        return run

    run_of = module.run_of
    return Machine(
        quietly(lambda address: module.tick(run_of(address))),
        quietly(lambda address, *given: module.fire_from_outside(run_of(address), *given)),
    )
