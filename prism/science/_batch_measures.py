"""What the logs of a feed's runs say of it, for the tables of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from prism.files import make_folder, write_durably
from prism.science._libraries import library

FOLDER_NAME = "measures"
_ALSO_IN_RESULTS = ("agents", "agent_ticks", "transitions", "timeouts", "decisions", "fallbacks")
"""Measures that ``run.json`` tells, too."""

Row = Mapping[str, Any]


def measure_run(batch: Path, run: str) -> list[Row]:
    """Return what `prism.analysis.run_measures` says of a run, by round and, last, in all.

    It is computed once, by the process that carried out the run, and kept beside the runs.

    Args:
        batch: The folder of the batch.
        run: The name of the run, which is complete.

    Raises:
        MissingExtraError: If polars is not installed.
        OSError: If it cannot be kept.
    """
    kept = batch / FOLDER_NAME / f"{run}.json"
    if kept.exists():
        found: list[Row] = orjson.loads(kept.read_bytes())
        return found

    analysis = library("prism.analysis")
    logs = analysis.read_log(batch / run)
    rows = analysis.run_measures(logs, by_round=True).to_dicts()
    make_folder(kept.parent)
    write_durably(kept, orjson.dumps(rows))

    # as it is read from the file
    again: list[Row] = orjson.loads(orjson.dumps(rows))
    return again


def is_of_feed(results: Mapping[str, Any]) -> bool:
    """Return whether what came of a run is that of a social feed."""
    return "cascades" in results


def with_measures(results: Mapping[str, Any], rows: Sequence[Row]) -> dict[str, Any]:
    """Return what came of a run with its measures, by round and in all.

    Args:
        results: What ``run.json`` says.
        rows: What `measure_run` returned.
    """
    told = (*results["totals"], *_ALSO_IN_RESULTS, "run", "round")
    by_round = {
        row["round"]: {name: value for name, value in row.items() if name not in told}
        for row in rows
    }
    rounds = [
        {**each, "measures": {**by_round.get(each["round"], {}), **each.get("measures", {})}}
        for each in results["rounds"]
    ]

    return {**results, "rounds": rounds, "measures": by_round.get(None, {})}
