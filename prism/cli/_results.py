"""The results of a run as tables, and what its models cost or will cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from prism.cli._screen import (
    cell,
    counted,
    note,
    print_facts,
    print_heading,
    print_json,
    say,
    shortened,
)
from prism.cli._tables import draw, draw_rows

if TYPE_CHECKING:
    from prism.runs import Outcome
    from prism.runs.dry_run import Estimate

_MOST_ROUNDS = 6
_MOST_VALUE = 60


def print_outcome(outcome: Outcome[Any], *, as_json: bool) -> None:
    """Print the results of a run; as JSON, the content of ``run.json``.

    Raises:
        typer.Exit: With status 1, if a single agent failed, or if the model made no decision.
    """
    results: Any = outcome.results
    is_alone = not hasattr(results, "rounds")
    if as_json:
        print_json(outcome.summary)
    else:
        if is_alone:
            print_facts(results.agent_id, _facts(results.to_dict()))
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
    agents = counted(results.agents, "agent")
    print_heading(f"Agents in each state at the end of a round ({agents} at the end)")
    _print_rounds([each.states for each in results.rounds], absent=0)
    if any(each.measures for each in results.rounds):
        print_heading("Measures at the end of a round")
        _print_rounds([each.measures for each in results.rounds], absent=None)
    if ended := results.stopped:
        say(f"The world ended the run in round {ended['round']:,} ({ended['reason']}).")

    totals = results.totals()
    print_facts("count", _facts(totals))
    total, answered = totals["decisions_asked"], totals["decisions_answered"]
    if total > answered * 2:
        say(f"Only {answered:,} of {total:,} decisions are the model's: the others fell back.")


def _print_rounds(figures: Sequence[Mapping[str, Any]], absent: int | None) -> None:
    """Print the states or measures of some rounds, the first and the last among them."""
    most = min(_MOST_ROUNDS, len(figures))
    chosen = [round(each * (len(figures) - 1) / max(1, most - 1)) for each in range(most)]
    # with regions, agents are in a different set of states in each round
    names = dict.fromkeys(name for each in figures for name in each)
    rows = [[name, *(figures[index].get(name, absent) for index in chosen)] for name in names]
    draw(["round", *(str(index + 1) for index in chosen)], rows)


def _facts(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain data as one row per value, without those that are empty."""
    from prism.science.batch_tables import flat

    return {
        name.replace("_", " "): each if isinstance(each, int) else shortened(str(each), _MOST_VALUE)
        for name, each in flat(data).items()
        if each not in (None, "[]", "")
    }


def _has_failed(summary: Mapping[str, Any]) -> bool:
    """Return whether a model was asked for decisions, and every one fell back."""
    totals = summary["results"]["totals"]
    total, answered = totals["decisions_asked"], totals["decisions_answered"]
    return "spent" in summary and bool(total) and not answered


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


def spent_lines(spent: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was spent, in total and, if there are several models, by model.

    Args:
        spent: Its entry in ``run.json``.
    """
    from prism.reasoner.positions import position_effect

    by_model = spent.get("by_model", {})
    yield f"spent: {_costs(spent, spent['tokens'], _of_them(spent))}"
    if effect := position_effect(spent.get("positions", {})):
        yield f"beware: {effect}"
    for model, costs in by_model.items() if len(by_model) > 1 else ():
        yield f"  {model}: {_costs(costs, costs['input_tokens'] + costs['output_tokens'])}"


def _of_them(spent: Mapping[str, Any]) -> str:
    """Return which calls have no answer in the log."""
    costs = spent.get("by_model", {}).values()
    loading = sum(each.get("loading", 0) for each in costs)
    # a client of another library may name no model, and has no costs by it
    has_costs = costs or not spent["tokens"]
    lost = spent["calls"] - sum(each["calls"] for each in costs) if has_costs else 0
    parts = [f"{loading:,} to load the model"] * bool(loading)
    parts += [f"{lost:,} without an answer, tokens unknown"] * (lost > 0)
    return f" ({', '.join(parts)})" if parts else ""


def _costs(costs: Mapping[str, Any], tokens: int, of_them: str = "") -> str:
    calls, money = costs["calls"], costs.get("money")
    # some servers count no tokens, and refused requests cost none
    counts = counted(tokens, "token") if tokens or not calls else "no tokens reported"
    price = "" if money is None else f", price {cell(money)}"
    return f"{counted(calls, 'call')}{of_them}, {counts}{price}"


def print_estimate(estimate: Estimate, *, as_json: bool) -> None:
    """Print what a run will cost."""
    if as_json:
        print_json(estimate.to_dict())
        return

    tried = f"{estimate.rounds} of {counted(estimate.of_rounds, 'round')}"
    agents = counted(estimate.agents, "agent")
    of_agents = "" if estimate.agents == estimate.of_agents else f" of {estimate.of_agents:,}"
    runs = "" if estimate.runs == 1 else f" in {estimate.runs:,} runs"
    say(f"Nothing was sent: estimated from {tried} with {agents}{of_agents}{runs}, by the policy.")
    draw_rows([{"model": model, **counts} for model, counts in estimate.models.items()])
    say(
        "The estimate leaves out thoughts, repeated requests, and treatments after these rounds. "
        "The model may decide differently, and its tokenizer may count differently."
    )
