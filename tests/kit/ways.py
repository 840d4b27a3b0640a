"""The way that a call takes through the files of prism."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import prism

ROOT = f"{Path(prism.__file__).parent}/"


class Way:
    """Counts the files of prism that calls enter, in this thread.

    Args:
        begins: The function, as ``file:name``, at whose call counting begins; at once by default.
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

    def take(self, call: Callable[[], Any]) -> None:
        """Make a call and follow it."""
        sys.setprofile(self._follow)
        try:
            call()
        finally:
            sys.setprofile(None)

    def _follow(self, frame: FrameType, event: str, _argument: object) -> None:
        path = frame.f_code.co_filename
        if event not in ("call", "return") or not path.startswith(ROOT):
            return

        file = path.removeprefix(ROOT)
        place = f"{file}:{frame.f_code.co_name}"
        if event == "call" and place == self._begins and not self._is_counting:
            self._is_counting = self._to_pass == 0
            self._to_pass -= 1

        if self._is_counting and event == "call":
            self._enter(file)
        if self._is_counting and (place, event) == self._ends:
            self._is_counting = False

    def _enter(self, file: str) -> None:
        if file not in self.files:
            self.files.append(file)
        self.changes += file != self._last
        self._last = file
