"""Checks whether a world runs in columns, and whether the run is the same there."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from prism.columns._unit import problems_of
from prism.runlog import RunLog, SimulatedClock
from prism.worlds import Finding, Run


def compare_engines(run: Run[Any]) -> list[Finding]:
    """Run a world as objects and as columns, and compare logs and fields after each round.

    Args:
        run: The run, of a world's class.

    Returns:
        The reasons why the world cannot use columns, or where the two runs differ; empty if they
        are the same.

    Raises:
        PrismError: If the run is impossible as objects, too.
    """
    if problems := problems_of(run.world_class):
        return [_finding(each) for each in problems]

    with TemporaryDirectory(prefix="prism-columns-") as folder:
        objects, columns = (
            _rounds(run.replace(columns=each), Path(folder) / f"{each}.jsonl")
            for each in (False, True)
        )
    for number, (one, other) in enumerate(zip(objects, columns, strict=False), 1):
        if one != other:
            what = "the log" if one[0] != other[0] else "the fields"
            told = f"columns and objects give different runs; the first difference is in {what}"
            return [Finding(told, "this is a bug in prism: please report it", "", number)]

    return []


def _finding(problem: str) -> Finding:
    where, _, told = problem.partition(": ")
    return Finding(told, "", where)


def _rounds(run: Run[Any], path: Path) -> list[tuple[bytes, bytes]]:
    """Run a world, and return its log and its agents' fields after each round."""
    clock = SimulatedClock()
    found: list[tuple[bytes, bytes]] = []
    with RunLog(path, clock) as log:
        logging = run.replace(logger=log.logger, clock=clock)

        def keep(_: Any) -> None:
            log.flush()
            found.append((path.read_bytes(), orjson.dumps(logging.loop.snapshot())))

        logging.run(keep)

    return found
