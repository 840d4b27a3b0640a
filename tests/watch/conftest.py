"""Fixtures of the viewer's tests: runs that are shown, and browsers that visit them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from prism.watch import Watching, watch
from tests.kit.logs import WriteLog
from tests.kit.visits import Visitor, visiting


@pytest.fixture
def show_run() -> Iterator[Callable[[Path], Watching]]:
    """Return a function that shows runs, until the test ends."""
    with ExitStack() as stack:

        def show(path: Path) -> Watching:
            watching = watch(path)
            stack.callback(watching.stop)
            return watching

        yield show


@pytest.fixture
def visit(write_log: WriteLog) -> Iterator[Callable[[Any], Visitor]]:
    """Return a function that visits a run, or a log of some events, once it has been read."""
    with ExitStack() as stack:

        def visit(run: Any) -> Visitor:
            path = run if isinstance(run, Path) else write_log(run, "real/events.jsonl").parent
            return stack.enter_context(visiting(path))

        yield visit
