"""Fixtures of the tests of loggers."""

from typing import Any

import pytest


@pytest.fixture
def events(heard: list[Any]) -> list[Any]:
    """Return the list of all structlog events."""
    return heard
