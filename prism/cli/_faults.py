"""The message about an error in a user's own code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import format_exception

from prism._faults import ALL_FRAMES, entry_of, place_of, suggestion
from prism.cli._screen import say
from prism.errors import PrismError

_TRACEBACK = "--traceback"


def tell_fault(error: BaseException) -> bool:
    """Print where in the user's code an error is, when it happened, and what to do.

    Args:
        error: The exception.

    Returns:
        False if none of the user's code was running; then nothing is printed.
    """
    place, entry, notes = place_of(error), entry_of(error), getattr(error, "__notes__", ())
    others = [note for note in notes if not note.startswith(f"{place}: ")]
    is_refused = isinstance(error, PrismError)
    if place is None or entry is None:
        return False
    # what prism itself refuses belongs to a line in a run, where it is noted, or in a module
    is_noted = len(others) < len(notes) or entry.function == "<module>"
    if is_refused and not is_noted:
        return False

    kind = "" if is_refused else f"{type(error).__name__}: "
    say(f"prism: {place}: {kind}{' '.join(str(error).split())}{suggestion(error)}", err=True)
    remedy = f"correct it and try again; {_TRACEBACK} shows the full traceback"
    for line in (place.text, *others, *[remedy] * (not is_refused)):
        say(f"  {line}", err=True)

    return True


def tell_all(error: BaseException) -> None:
    """Print the full traceback; what it quotes may come from anywhere."""
    for line in "".join(format_exception(error)).splitlines():
        say(line, err=True)


@contextmanager
def whole_tracebacks() -> Iterator[None]:
    """Show full tracebacks inside the block."""
    before = os.environ.get(ALL_FRAMES, "")
    os.environ[ALL_FRAMES] = "1"
    try:
        yield
    finally:
        os.environ[ALL_FRAMES] = before
