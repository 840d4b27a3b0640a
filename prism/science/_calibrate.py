"""Estimate, from the decisions of runs, a policy that can replace the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prism.analysis import Log, rows_of
from prism.errors import InputError
from prism.runs.policy_file import Policy
from prism.telemetry.events import DECISION

LEAST = 10
"""Fewest decisions in a situation that identify its probabilities."""

_DECISIONS = f"""
select state, "trigger" as event, options, chosen, run, line, case
    when source = 'fallback' then 'fallback'
    when not list_contains(options, chosen) then 'not among the options'
    when len(options) < 2 then 'one option' end as left_out
from events where event = '{DECISION}'
"""

_SHARES = f"""
with used as (from ({_DECISIONS}) where left_out is null),
offered as (select * exclude options, unnest(options) as option,
                   generate_subscripts(options, 1) as place from used)
select state, event, option, sum(count(*) filter (chosen = option)) over situation as n,
       count(*) filter (chosen = option) as count
from offered group by state, event, option
window situation as (partition by state, event)
order by state, event, min((run, line, place))
"""


@dataclass(frozen=True)
class Calibration:
    """What the decisions of runs say of a policy.

    Args:
        rows: A row for each option of each situation: ``state``, ``event``, ``option``, ``n``
            decisions there, ``count`` of this choice, and ``probability`` (None if there are too
            few decisions).
        left_out: The number of decisions that were not used, by reason.
    """

    rows: tuple[Mapping[str, Any], ...]
    left_out: Mapping[str, int]

    @property
    def policy(self) -> Policy:
        """The policy: the shares wherever they are identified."""
        shares: dict[str, dict[str, dict[str, float]]] = {}
        for row in self.rows:
            if row["probability"] is not None:
                options = shares.setdefault(row["state"], {}).setdefault(row["event"], {})
                options[row["option"]] = row["probability"]

        return Policy(shares)


def calibrate(logs: Log, *, least: int = LEAST) -> Calibration:
    """Estimate a policy from the decisions of runs.

    Its probabilities are the shares of each choice for each state and event, which are the
    maximum-likelihood estimates of a multinomial.

    A situation with fewer than ``least`` decisions has no probabilities, and an option that was
    offered but never chosen has 0.

    Args:
        logs: The runs, from `prism.analysis.read_log`. Decisions that fell back are left out.
        least: Fewest decisions in a situation that identify its probabilities.

    Raises:
        InputError: If the runs hold no decisions.
    """
    counted = f"select left_out, count(*) from ({_DECISIONS}) where left_out is not null"
    left_out = dict(logs.sql(f"{counted} group by all order by 2 desc, 1").fetchall())
    rows = [
        {**row, "probability": row["count"] / row["n"] if row["n"] >= least else None}
        for row in rows_of(logs.sql(_SHARES))
    ]
    if not rows:
        names = ", ".join(str(run.path) for run in logs.runs)
        why = f"are all left out ({', '.join(sorted(left_out))})" if left_out else "are missing"
        raise InputError(f"there is nothing to calibrate from: the decisions of {names} {why}")

    return Calibration(tuple(rows), left_out)
