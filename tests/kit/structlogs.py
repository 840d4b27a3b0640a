"""structlog as an application leaves it, and what was logged."""

from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture, capture_logs


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Start every test with a structlog that nobody configured."""
    structlog.reset_defaults()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Leave every test with such a structlog; a fixture would cost each test ten times as much."""
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.fixture
def heard() -> Iterator[list[Any]]:
    """Configure structlog, and give the list of all its events."""
    with capture_logs() as entries:
        yield entries


@pytest.fixture
def capture() -> LogCapture:
    """Return what the `logger` fixture has logged, in ``capture.entries``."""
    return LogCapture()


@pytest.fixture
def logger(capture: LogCapture) -> Any:
    """Return a structlog logger to pass in, while structlog itself stays unconfigured."""
    return structlog.wrap_logger(None, processors=[capture])
