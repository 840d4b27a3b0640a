"""The way that a call takes through the files of prism."""

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import prism

ROOT = f"{Path(prism.__file__).parent}/"
ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"


def table_of_ways() -> str:
    """Return the page of the documentation with the number of files of each way."""
    return ARCHITECTURE.read_text(encoding="utf-8")


class Way:
    """Counts the files of prism that calls enter, in this thread.

    A coroutine that was under way before and only goes on, such as the loop of a run that waits for
    an answer, is not entered.

    Args:
        begins: The function, as ``file:qualified.name``, at whose call counting begins; at once by
            default.
        ends: The function at whose call it ends, that one included, or, with ``returned=True``, at
            whose return; the whole call by default.
        after: How many such calls to let pass first, so that the counted one is warm.

    Attributes:
        files: The files entered, in order.
        changes: How often the way led from one file to another.
    """

    def __init__(
        self, begins: str = "", ends: str = "", *, returned: bool = False, after: int = 0
    ) -> None:
        self.files: list[str] = []
        self.changes: int = 0
        self._begins = begins
        self._ends = (ends, "return" if returned else "call")
        self._to_pass = after
        self._is_counting = not begins
        self._last = ""
        self._of_prism: dict[str, str] = {}
        self._under_way: set[FrameType] = set()

    def take(self, call: Callable[[], Any]) -> None:
        """Make a call and follow it."""
        # otherwise generators that other tests have left may be closed on the way
        gc.collect()
        gc.disable()
        sys.setprofile(self._follow)
        try:
            call()
        finally:
            sys.setprofile(None)
            gc.enable()

    def row(self, name: str) -> str:
        """Return the way as a row of the page's table, under a name."""
        return f"| {name} | {len(self.files)} |"

    def _follow(self, frame: FrameType, event: str, _argument: object) -> None:
        # called for each call in the process: what is looked up once costs half the time
        if event != "call" and event != self._ends[1]:
            return

        path = frame.f_code.co_filename
        file = self._of_prism.get(path)
        if file is None:
            file = path.removeprefix(ROOT) if path.startswith(ROOT) else ""
            self._of_prism[path] = file
        if not file:
            return

        place = f"{file}:{frame.f_code.co_qualname}"
        if event == "call" and place == self._begins and not self._is_counting:
            self._is_counting = self._to_pass == 0
            self._to_pass -= 1
            self._under_way = {*_callers_of(frame)}

        if self._is_counting and event == "call" and frame not in self._under_way:
            self._enter(file)
        if self._is_counting and (place, event) == self._ends:
            self._is_counting = False

    def _enter(self, file: str) -> None:
        if file not in self.files:
            self.files.append(file)
        self.changes += file != self._last
        self._last = file


def _callers_of(frame: FrameType) -> Iterator[FrameType]:
    caller = frame.f_back
    while caller is not None:
        yield caller
        caller = caller.f_back
