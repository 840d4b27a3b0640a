"""Tests of columns need the extra, and run without a compiler unless they are marked slow."""

from importlib.util import find_spec
from typing import Any

import pytest

collect_ignore_glob = [] if find_spec("numba") else ["test_*.py"]


@pytest.fixture(autouse=True)
def interpreted(request: pytest.FixtureRequest, monkeypatch: Any, tmp_path_factory: Any) -> None:
    """Let Python itself run compiled worlds, but in slow proofs."""
    if request.node.get_closest_marker("slow") or request.node.get_closest_marker("long"):
        return

    from tests.kit.interpreted import machine_of

    monkeypatch.setattr("prism.columns._stage.machine_of", machine_of)
