"""Draws from generators of the process, which a run refuses: they differ on resuming."""

from __future__ import annotations

import random
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import string_at
from functools import lru_cache
from struct import unpack
from typing import Any

from prism.errors import SimulationError

_WORDS_OF_MT19937, _BYTES_OF_WORD = 624, 4
_BYTES_COMPARED = 9 * _BYTES_OF_WORD
"""A generator's position and the eight words beside it.

A draw changes the position; a seed, or as many draws as there are words, changes the words.
"""


@contextmanager
def drawing_nowhere_else() -> Iterator[None]:
    """Refuse code inside the block that draws from Python's or numpy's global generators.

    If other threads are running, only warn, since the draw may be theirs.

    Raises:
        SimulationError: If it did, and no other thread is running.
    """
    before = _python_state(), _numpy_state()
    yield

    after = _python_state(), _numpy_state()
    if after == before:
        return
    for name, was, now in zip(("Python's own random", "numpy.random"), before, after, strict=True):
        if now != was and was is not None:
            _blame(name)


def _blame(generator: str) -> None:
    """Refuse a draw from another generator, or warn of it if other threads are running."""
    others = [thread.name for thread in threading.enumerate() if _may_draw(thread)]
    if not others:
        raise SimulationError(
            f"the world draws from {generator}, which would give different numbers on resuming: "
            "use agent.random in steps, and self.random in the world"
        )

    warnings.warn(
        f"while the world ran, it or another thread drew from {generator} "
        f"({', '.join(others[:3])}). If it was the world, its numbers will differ on "
        "resuming: run prism world check to find out",
        RuntimeWarning,
        stacklevel=2,
    )


def _may_draw(thread: threading.Thread) -> bool:
    # threads of compiled libraries have no names of their own, and do not draw
    is_known = thread.name.startswith(("prism-", "Dummy-"))
    return thread is not threading.current_thread() and not is_known


def _python_state() -> Any:
    generator: Any = getattr(random.getstate, "__self__", None)
    if not _is_readable(generator):
        return random.getstate()

    # read in place, since Python takes a hundred times as long to make a tuple of the words
    return _words_of(generator, _BYTES_COMPARED), generator.gauss_next


def _words_of(generator: Any, size: int) -> bytes:
    return string_at(id(generator) + object.__basicsize__, size)


@lru_cache(maxsize=1)
def _is_readable(generator: Any) -> bool:
    """Return whether a generator stores its position and its words behind the object's header."""
    if sys.implementation.name != "cpython" or type(generator) is not random.Random:
        return False

    *words, position = generator.getstate()[1]
    size = (1 + _WORDS_OF_MT19937) * _BYTES_OF_WORD
    return unpack("=i624I", _words_of(generator, size)) == (position, *words)


def _numpy_state() -> Any:
    library = sys.modules.get("numpy.random")
    if library is None:
        return None

    generator = library.get_bit_generator()
    if type(generator) is not library.MT19937:
        return repr(generator.state), _gauss()

    # read in place, since numpy takes a hundred times as long to copy the words; they come first
    end = generator.ctypes.state_address + (_WORDS_OF_MT19937 + 1) * _BYTES_OF_WORD
    words = string_at(end - _BYTES_COMPARED, _BYTES_COMPARED)
    gauss = _gauss_after(words)
    # a stored number may be used without any other change
    return words, _gauss() if gauss[0] else gauss


@lru_cache(maxsize=1)
def _gauss_after(_words: bytes) -> tuple[int, float]:
    return _gauss()


def _gauss() -> tuple[int, float]:
    """Return whether numpy has stored a normal number for the next draw, and its value."""
    state = sys.modules["numpy.random"].get_state(legacy=False)
    return state["has_gauss"], state["gauss"]
