"""Logs of many blocks that are short."""

from functools import partial

import pytest

from prism.runlog._reader import read_blocks


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have logs read in blocks of 8 kilobytes, of which a short log has many."""
    monkeypatch.setattr("prism.analysis._reading.logs.read_blocks", partial(read_blocks, size=8192))
