"""Fixtures of the reasoners' tests."""

from typing import Any

import pytest


@pytest.fixture
def events(heard: list[Any]) -> list[Any]:
    """Return the list of all structlog events."""
    return heard
