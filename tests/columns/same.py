"""Both engines side by side: the folders of a run, and the fields of its agents."""

import json
from pathlib import Path
from typing import Any

from prism.worlds import Run


def kept(world: Any, agents: Any, folder: Path, **options: Any) -> tuple[bytes, Any]:
    """Keep a run; return its log, and its run.json without what says how it was carried out."""
    Run(world, agents, **options).keep(folder)
    told = json.loads((folder / "run.json").read_text())
    told["config"].pop("columns", None)

    return (folder / "events.jsonl").read_bytes(), told


def require_same(world: Any, agents: Any, folder: Path, **options: Any) -> bytes:
    """Run a world in both engines, and require the same folders; return the log."""
    objects = kept(world, agents, folder / "objects", **options)
    columns = kept(world, agents, folder / "columns", columns=True, **options)
    assert_same_lines(objects[0], columns[0])
    assert objects[1] == columns[1]

    return objects[0]


def assert_same_lines(one: bytes, other: bytes) -> None:
    """Require two logs to be the same, and show the first line that is not."""
    if one != other:
        pairs = zip(one.splitlines(), other.splitlines(), strict=False)
        number, pair = next(
            ((at, pair) for at, pair in enumerate(pairs) if pair[0] != pair[1]), (-1, ())
        )
        raise AssertionError(
            f"line {number} of {len(one.splitlines())} and {len(other.splitlines())}:\n"
            + "\n".join(each.decode() for each in pair)
        )


def fields_of(run: Run[Any]) -> list[Any]:
    """Return what a checkpoint keeps of the agents, after a run that nobody keeps."""
    run.run()
    return run.loop.snapshot()["kinds"]  # type: ignore[no-any-return]
