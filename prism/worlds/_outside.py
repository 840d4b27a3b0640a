"""What a world does past prism: calls that give another answer each time, values kept elsewhere."""

from __future__ import annotations

import ast
import random
import secrets
import sys
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from types import FrameType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from prism.statechart import Statechart

CLOCK, ENTROPY, GENERATOR = "clock", "entropy", "generator"

_OF_TIME = "time"
_NOT_A_CLOCK = ("sleep", "struct_time", "mktime", "strptime", "tzset")
_NOWS = ("datetime.now", "datetime.today", "datetime.utcnow", "date.today")
_OF_NUMPY = ("RandomState", "Generator")
_LIBRARIES = {uuid.__file__: "uuid", secrets.__file__: "secrets"}
_DEEPEST = 3

Note = tuple[str, str, str]
"""What kind of call, its name, and the file and line it is in."""


@contextmanager
def watching(files: Collection[str]) -> Iterator[dict[Note, None]]:
    """Note calls in some files of what gives another answer each time: time and random numbers.

    Args:
        files: Names of the files, as their code objects have them.
    """
    notes: dict[Note, None] = {}

    def look(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            caller, found = frame, _builtin(called)
        elif event == "call" and frame.f_back is not None:
            caller, found = frame.f_back, _written_in_python(frame)
        else:
            return

        if found is not None and caller.f_code.co_filename in files:
            place = f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno}"
            notes[(*found, place)] = None

    sys.setprofile(look)
    try:
        yield notes
    finally:
        sys.setprofile(None)


def _builtin(called: Any) -> tuple[str, str] | None:
    name, owner = getattr(called, "__name__", ""), getattr(called, "__self__", None)
    module = getattr(called, "__module__", None)
    if module == _OF_TIME and name not in _NOT_A_CLOCK:
        return CLOCK, f"time.{name}()"
    if getattr(called, "__qualname__", "") in _NOWS:
        return CLOCK, f"{called.__qualname__}()"
    if name == "urandom":
        return ENTROPY, "os.urandom()"
    if isinstance(owner, random.Random):
        return _generator(owner, name)
    if type(owner).__name__ in _OF_NUMPY and type(owner).__module__.startswith("numpy"):
        return GENERATOR, f"numpy.random's {name}()"

    return None


def _written_in_python(frame: FrameType) -> tuple[str, str] | None:
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    if file == random.__file__:
        return _generator(frame.f_locals.get("self"), name)
    if file in _LIBRARIES and not name.startswith("_"):
        return ENTROPY, f"{_LIBRARIES[file]}.{name}()"

    return None


def _generator(owner: Any, name: str) -> tuple[str, str] | None:
    if name.startswith("_") or name == "getstate":
        return None
    if isinstance(owner, random.SystemRandom):
        return ENTROPY, f"random.SystemRandom's {name}()"

    return GENERATOR, f"random.{name}()"


def sets_in(files: Iterable[Path]) -> list[str]:
    """Return where code makes sets, as ``file:line``."""
    found = []
    for file in files:
        for node in ast.walk(ast.parse(file.read_bytes())):
            called = getattr(getattr(node, "func", None), "id", None)
            if isinstance(node, (ast.Set, ast.SetComp)) or called in ("set", "frozenset"):
                found.append(f"{file.name}:{node.lineno}")  # type: ignore[attr-defined]

    return list(dict.fromkeys(found))


def kept_outside(modules: Iterable[ModuleType]) -> dict[str, str]:
    """Return what modules hold in globals, class attributes and functions, as texts to compare."""
    found: dict[str, str] = {}
    for module in modules:
        for name, value in list(vars(module).items()):
            if name.startswith("__") or isinstance(value, ModuleType):
                continue
            if isinstance(value, type):
                if value.__module__ == module.__name__:
                    found |= _of_class(value)
            elif not isinstance(value, FunctionType) or value.__module__ == module.__name__:
                found[f"the global {module.__name__}.{name}"] = _text(value)

    return found


def _of_class(cls: type) -> dict[str, str]:
    if issubclass(cls, Enum):
        return {}

    return {
        f"the class attribute {cls.__name__}.{name}": _text(value)
        for name, value in vars(cls).items()
        if not name.startswith("_") and not isinstance(value, (MemberDescriptorType, property))
    }


def _text(value: Any, depth: int = 0) -> str:
    if isinstance(value, (Statechart, type, ModuleType, Enum)) or depth > _DEEPEST:
        return ""
    if isinstance(value, random.Random):
        return repr(value.getstate()) if not isinstance(value, random.SystemRandom) else ""
    if hasattr(value, "bit_generator"):  # numpy's
        return str(value.bit_generator.state)
    if hasattr(value, "cache_info"):
        return str(value.cache_info())
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell)]
        parts = [value.__defaults__, value.__kwdefaults__, vars(value), cells]
        return "".join(_text(part, depth + 1) for part in parts)
    if isinstance(value, (list, tuple, set, frozenset)):
        return f"{type(value).__name__}({[_text(each, depth + 1) for each in value]})"
    if isinstance(value, dict):
        return str([(_text(a, depth + 1), _text(b, depth + 1)) for a, b in value.items()])

    shown = ""
    # a user's own repr may fail
    with suppress(Exception):
        shown = repr(value)
    own = getattr(value, "__dict__", None)

    return shown if not isinstance(own, dict) else f"{shown} {_text(own, depth + 1)}"


def _is_filled(cell: Any) -> bool:
    try:
        return bool(cell.cell_contents is not None)
    except ValueError:
        return False
