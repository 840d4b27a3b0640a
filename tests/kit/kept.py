"""Runs of other kinds than those of worlds, kept in folders."""

from pathlib import Path
from typing import Any

from prism.runs import RunFolder
from prism.runs._running import carry_out, go_on, repeat

resume, replay = go_on, repeat


def begin(options: Any, folder: Path | str | None = None, **how: Any) -> Any:
    """Carry out a run from its beginning, in a folder if one is named."""
    return carry_out(options, None if folder is None else RunFolder.for_new(Path(folder)), **how)
