"""The results of a run, of a world or of a single agent, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from prism.cli._screen import (
    counted,
    note,
    print_facts,
    print_heading,
    print_json,
    say,
    shortened,
)
from prism.cli._spent import spent_lines
from prism.cli._tables import draw
from prism.runs import Outcome

_MOST_ROUNDS_SHOWN = 6
_MOST_VALUE = 60


def tell(outcome: Outcome[Any], *, as_json: bool) -> None:
    """Print the results of a run; as JSON, the content of ``run.json``.

    Raises:
        typer.Exit: With status 1, if a single agent failed, or no decision is the model's.
    """
    results: Any = outcome.results
    is_alone = not hasattr(results, "rounds")
    if as_json:
        print_json(outcome.summary)
    else:
        if is_alone:
            print_facts(results.agent_id, _flat(results.to_dict()))
        else:
            print_results(results)
        if outcome.folder is not None:
            say(f"The log and this summary (run.json) are in {outcome.folder}.")
        if "spent" in outcome.summary:
            for line in spent_lines(outcome.summary["spent"]):
                say(line)
    if _has_failed_alone(results) if is_alone else _has_failed(outcome.summary):
        raise typer.Exit(1)


def print_results(results: Any) -> None:
    """Print states and measures of the rounds, and the totals."""
    print_heading(
        f"Agents in each state at the end of a round ({counted(results.agents, 'agent')})"
    )
    _print_rounds([each.states for each in results.rounds], absent=0)
    if any(each.measures for each in results.rounds):
        print_heading("Measures at the end of a round")
        _print_rounds([each.measures for each in results.rounds], absent=None)
    if ended := results.stopped:
        say(f"The world ended the run in round {ended['round']:,} ({ended['reason']}).")

    totals = results.totals()
    print_facts("count", _flat(totals))
    asked, answered = totals["decisions_asked"], totals["decisions_answered"]
    if asked > answered * 2:
        say(f"Only {answered:,} of {asked:,} decisions are the model's: the others fell back.")


def _print_rounds(figures: Sequence[Mapping[str, Any]], absent: int | None) -> None:
    """Print the states or measures of some rounds, the first and the last among them."""
    most = min(_MOST_ROUNDS_SHOWN, len(figures))
    chosen = [round(each * (len(figures) - 1) / max(1, most - 1)) for each in range(most)]
    # with regions, agents are in a different set of states in each round
    names = dict.fromkeys(name for each in figures for name in each)
    rows = [[name, *(figures[index].get(name, absent) for index in chosen)] for name in names]
    draw(["round", *(str(index + 1) for index in chosen)], rows)


def _flat(data: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return plain data as one row per value, without those that are empty."""
    facts: dict[str, Any] = {}
    for name, value in data.items():
        key = before + str(name).replace("_", " ")
        if isinstance(value, Mapping):
            facts |= _flat(value, f"{key} ")
        elif value not in (None, [], ""):
            facts[key] = value if isinstance(value, int) else shortened(str(value), _MOST_VALUE)
    return facts


def _has_failed(summary: Mapping[str, Any]) -> bool:
    """Return whether a model was asked for decisions, and every one fell back."""
    totals = summary["results"]["totals"]
    asked, answered = totals["decisions_asked"], totals["decisions_answered"]
    return "spent" in summary and bool(asked) and not answered


def _has_failed_alone(results: Any) -> bool:
    """Print a note and return True if the run of a single agent was useless or stopped early."""
    failure = getattr(results, "failure", None) or getattr(results, "stopped", None)
    if failure is not None:
        note(f"the agent stopped early: {failure}")
    outcomes = getattr(results, "outcomes", {})
    useless = sum(outcomes.get(name, 0) for name in ("unusable", "failed"))
    if useless and useless == sum(outcomes.values()):
        note("no cycle got a useful reply: check the model with prism doctor --model NAME")
        return True
    return failure is not None
