"""The costs of a run's models, or an estimate of them, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from prism.cli._screen import counted, print_json, say, shown
from prism.cli._tables import draw_rows

if TYPE_CHECKING:
    from prism.runs._dry_run import Estimate


def spent_lines(spent: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was spent, in total and, if there are several models, by model.

    Args:
        spent: Its entry in ``run.json``.
    """
    from prism.reasoner._router import place_effect

    by_model = spent.get("by_model", {})
    # some servers count no tokens, and refused requests cost none
    is_known = spent["tokens"] or not spent["calls"]
    tokens = counted(spent["tokens"], "token") if is_known else "no tokens reported"
    yield f"spent: {counted(spent['calls'], 'call')}{_of_them(spent)}, {tokens}{_money(spent)}"
    if effect := place_effect(spent.get("places", {})):
        yield f"beware: {effect}"
    for model, costs in by_model.items() if len(by_model) > 1 else ():
        yield f"  {shown(model)}: {_counts(costs)}{_money(costs)}"


def _of_them(spent: Mapping[str, Any]) -> str:
    """Return which calls have no answer in the log."""
    costs = spent.get("by_model", {}).values()
    loading = sum(each.get("loading", 0) for each in costs)
    lost = spent["calls"] - sum(each["calls"] for each in costs) if costs else 0
    parts = [f"{loading:,} to load the model"] * bool(loading)
    parts += [f"{lost:,} without an answer"] * (lost > 0)
    return f" ({', '.join(parts)})" if parts else ""


def _counts(costs: Mapping[str, int]) -> str:
    calls, read, written = costs["calls"], costs["input_tokens"], costs["output_tokens"]
    is_known = read or written or not calls
    tokens = f"{read:,} tokens read, {written:,} written" if is_known else "no tokens reported"
    return f"{counted(calls, 'call')}, {tokens}"


def _money(spent: Mapping[str, Any]) -> str:
    money = spent.get("money")
    return "" if money is None else f", {in_words(money)} by its prices"


def in_words(money: float) -> str:
    """Return an amount of money, in the currency of the prices."""
    digits = 2 if money >= 1 else 4 if money >= 0.01 else 6
    return f"{money:,.{digits}f}"


def print_estimate(found: Estimate, *, as_json: bool) -> None:
    """Print what a run will cost."""
    if as_json:
        print_json(found.to_dict())
        return

    tried = f"{found.rounds} of {counted(found.of_rounds, 'round')}"
    agents = counted(found.agents, "agent")
    of_agents = "" if found.agents == found.of_agents else f" of {found.of_agents:,}"
    runs = "" if found.runs == 1 else f" in {found.runs:,} runs"
    say(f"Nothing was sent: estimated from {tried} with {agents}{of_agents}{runs}, by the policy.")
    draw_rows([{"model": model, **counts} for model, counts in found.models.items()])
    say(
        "The estimate leaves out thoughts, repeated requests, and treatments after these rounds. "
        "The model may decide differently, and its tokenizer may count differently."
    )
    if found.money is None:
        say("For money, give price_in and price_out of a million tokens in --model-file.")
