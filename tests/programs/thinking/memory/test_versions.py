"""Old values, which are kept with their memory."""

from pathlib import Path
from typing import Any

from prism.programs.thinking import Memory


def test_a_value_that_is_replaced_in_working_memory_is_a_version(tmp_path: Path) -> None:
    """It is one after a paging out, too; no search or load brings it back; forgetting drops it."""
    path = tmp_path / "memory"
    with Memory.open(path) as memory:
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
    with Memory.open(path) as memory:
        memory.add("gone", 1)
        memory.add("gone", 2)
        assert memory.remove("gone")
        assert memory.versions("gone") == [1]
        assert memory.forget("gone")
        assert memory.versions("gone") == []


def test_a_version_says_in_which_cycle_it_was_replaced(tmp_path: Path) -> None:
    """The cycle is kept with the value."""
    path = tmp_path / "memory"
    shaped: dict[str, Any] = {"value": 1}
    with Memory.create(path, {"working_memory": {"plan": "first"}}) as memory:
        memory.end_cycle()
        memory.add("plan", shaped)
        memory.end_cycle()
        memory.add("plan", "third")
        memory.commit()
    with Memory.read(path) as memory:
        assert memory.versions("plan") == ["first", shaped]
        assert memory.version_cycles("plan") == [1, 2]
    with Memory.open(path) as memory:
        memory.add("plan", "first")
        assert memory.version_cycles("plan") == [2, 2]
