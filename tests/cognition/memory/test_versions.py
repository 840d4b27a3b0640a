"""Old values, which are kept with their memory."""

from pathlib import Path
from typing import Any

import pytest

from prism.cognition import Memory

KINDS = ["json", "sqlite"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_is_replaced_in_working_memory_is_a_version(kind: Any, tmp_path: Path) -> None:
    """It is one after a paging out, too; no search or load brings it back; forgetting drops it."""
    path = tmp_path / "memory"
    with Memory.open(path, storage=kind) as memory:
        for value in ("first", "second", "second", "third"):
            memory.add("plan", value)
        memory.commit()
    with Memory.open(path) as memory:
        assert memory.versions("plan") == ["first", "second"]
        memory.page_out("plan")
        assert memory.versions("plan") == ["first", "second"]
        assert memory.search("first second", 9) == []
        assert memory.page_in("plan")
        assert memory.working == {"plan": "third"}
        # storage still has what is replaced
        memory.add("plan", "fourth")
        assert memory.versions("plan") == ["first", "second"]
        memory.page_out("plan")
        assert memory.versions("plan") == ["first", "second", "third"]
        memory.compact(versions=1)
    with Memory.open(path) as memory:
        assert memory.versions("plan") == ["third"]
        memory.add("gone", 1)
        memory.add("gone", 2)
        assert memory.remove("gone")
        assert memory.versions("gone") == [1]
        assert memory.forget("gone")
        assert memory.versions("gone") == []
