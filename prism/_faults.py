"""Faults in a user's own code: where they are, without the frames of whatever called it."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from linecache import getline
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any

from prism.errors import PrismError

ALL_FRAMES = "PRISM_TRACEBACK"
"""Variable of the environment that keeps every frame of a traceback, if it is set."""

_PACKAGE = Path(__file__).parent
_EXAMPLES = _PACKAGE / "examples"


@dataclass(frozen=True, slots=True)
class Location:
    """A line of a user's code.

    Attributes:
        file: Its file.
        line: Its number.
        function: The function that it is in, with its class.
        text: The line itself.
    """

    file: str
    line: int
    function: str
    text: str

    def __str__(self) -> str:
        """Return file, line and function, the file as it is seen from here."""
        near = os.path.relpath(self.file) if Path(self.file).is_absolute() else self.file
        return f"{min(near, self.file, key=len)}:{self.line}, in {self.function}"


def note_location(error: BaseException, acting: Any, round: int, tick: int) -> None:  # noqa: A002
    """Add to an exception where in the user's code, and of the run, it was raised.

    Args:
        error: The exception.
        acting: The agent whose step it was; None if it was nobody's.
        round: The round.
        tick: The tick; 0 outside of ticks.
    """
    line, entry = location_of(error), entry_of(error)
    notes = [] if line is None else [f"{line}: {line.text}"]
    if acting is not None:
        notes.append(f"in the step of {acting!r}, round {round}, tick {tick}")
    elif entry is not None:
        when = f", round {round}" * (round > 0) + f", tick {tick}" * (tick > 0)
        notes.append(f"in {entry.function}{when}")

    notes_before = getattr(error, "__notes__", ())
    for note in notes:
        if note not in notes_before:
            error.add_note(note)


def shows_all() -> bool:
    """Return whether every frame of a traceback is asked for."""
    return bool(os.environ.get(ALL_FRAMES))


def location_of_method(cls: type, name: str) -> str:
    """Return file and line of a method, the file as it is seen from here."""
    code = getattr(cls, name).__code__
    return str(Location(code.co_filename, code.co_firstlineno, code.co_qualname, ""))


def location_of(error: BaseException) -> Location | None:
    """Return the innermost line of a user's code that prism had called; None if there is none."""
    called = _called(error)
    return _location(called[-1]) if called else None


def entry_of(error: BaseException) -> Location | None:
    """Return the line of a step, a hook or a measure that an error came through."""
    called = _called(error)
    return _location(called[0]) if called else None


def shortened(error: BaseException) -> TracebackType | None:
    """Return a traceback without the frames between the caller of the run and the fault.

    What the user's code called stays, unless it is prism that has refused it.
    """
    frames = list(_frames(error.__traceback__))
    called = _called(error)
    if shows_all():
        return error.__traceback__
    if not called:
        return None if isinstance(error, PrismError) else error.__traceback__

    last = frames.index(called[-1])
    kept = [each for each in frames[: last + 1] if each in called]
    if not isinstance(error, PrismError):
        kept += frames[last + 1 :]

    traceback = None
    for each in reversed(kept):
        traceback = TracebackType(traceback, each.tb_frame, each.tb_lasti, each.tb_lineno)

    return traceback


def _called(error: BaseException) -> list[TracebackType]:
    """Return the frames of the user's code that prism has called, the outermost first."""
    frames = list(_frames(error.__traceback__))
    files = [each.tb_frame.f_code.co_filename for each in frames]
    first = next((index for index, file in enumerate(files) if _is_prisms(file)), len(files))

    return [
        each for each, file in zip(frames[first:], files[first:], strict=True) if _is_users(file)
    ]


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _location(traceback: TracebackType) -> Location:
    frame, line = next(walk_tb(traceback))
    code = frame.f_code
    text = getline(code.co_filename, line, frame.f_globals).strip()
    return Location(code.co_filename, line, code.co_qualname, text)


def _is_users(file: str) -> bool:
    return not (_is_prisms(file) or _is_installed(file))


@cache
def _is_prisms(file: str) -> bool:
    path = Path(file)
    return path.is_relative_to(_PACKAGE) and not path.is_relative_to(_EXAMPLES)


@cache
def _is_installed(file: str) -> bool:
    """Return whether code belongs to Python or to a package, and is not the user's."""
    # code that was generated; what was typed at a prompt is remembered
    if file.startswith("<"):
        return not getline(file, 1)

    homes = sysconfig.get_paths()
    return any(
        Path(file).is_relative_to(homes[name])
        for name in ("stdlib", "platstdlib", "purelib", "platlib")
    )
