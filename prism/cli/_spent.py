"""The costs of a run's models, or an estimate of them, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from prism.cli._screen import counted, pour_json, print_table, say, shown

if TYPE_CHECKING:
    from prism.runs._dry_run import Estimate


_UNKNOWN = "no tokens reported"
"""Said instead of 0: some servers count none, and refused requests cost none."""


def spent_lines(spent: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was spent, in total and, if there are several models, by model.

    Args:
        spent: Its entry in ``run.json``.
    """
    from prism.reasoner._order import place_effect

    by_model = spent.get("by_model", {})
    is_known = spent["tokens"] or not spent["calls"]
    tokens = counted(spent["tokens"], "token") if is_known else _UNKNOWN
    yield f"spent: {counted(spent['calls'], 'call')}, {tokens}{_money(spent)}"

    if effect := place_effect(spent.get("places", {})):
        yield f"beware: {effect}"
    if len(by_model) < 2 and all(each["calls"] == spent["calls"] for each in by_model.values()):
        return

    for model, costs in by_model.items():
        yield f"  {shown(model)}: {_counts(costs)}{_money(costs)}"
    for model, costs in spent.get("trials", {}).items():
        yield f"  {shown(model)}, tried before the run: {_counts(costs)}{_money(costs)}"
    if earlier := spent.get("earlier"):
        total = f"{counted(earlier['calls'], 'call')}, {counted(earlier['tokens'], 'token')}"
        about = f", about {in_words(earlier['money'])}" if "money" in earlier else ""
        yield f"  trials and lost answers before the run was resumed: {total}{about}"


def _counts(costs: Mapping[str, int]) -> str:
    read, written = costs["input_tokens"], costs["output_tokens"]
    is_known = read or written or not costs["calls"]
    tokens = f"{read:,} tokens read, {written:,} written" if is_known else _UNKNOWN
    return f"{counted(costs['calls'], 'call')}, {tokens}"


def _money(spent: Mapping[str, Any]) -> str:
    money = spent.get("money")
    return "" if money is None else f", {in_words(money)} by its prices"


def in_words(money: float) -> str:
    """Return an amount of money, in the currency of the prices."""
    if money >= 1:
        return f"{money:,.2f}"
    return f"{money:.4f}" if money >= 0.01 else f"{money:.6f}"


def print_estimate(found: Estimate, *, as_json: bool) -> None:
    """Print what a run will cost.

    Args:
        found: The estimate.
        as_json: Whether to print it as JSON.
    """
    if as_json:
        pour_json(found.to_dict())
        return

    tried = f"{found.rounds} of {counted(found.of_rounds, 'round')}"
    agents = counted(found.agents, "agent")
    of_agents = "" if found.agents == found.of_agents else f" of {found.of_agents:,}"
    runs = "" if found.runs == 1 else f" in {found.runs:,} runs"
    say(f"Nothing was sent: estimated from {tried} with {agents}{of_agents}{runs}, by the policy.")
    rows = [
        (
            each.model,
            f"{each.decisions:,}",
            f"{each.texts:,}",
            f"{each.calls:,}",
            f"{each.input_tokens:,}",
            f"{each.output_tokens:,}",
            "-" if each.money is None else in_words(each.money),
        )
        for each in found.models
    ]
    headings = ("decisions", "texts", "calls", "tokens in", "tokens out", "money")
    print_table(rows, "model", *headings, numbers=headings)
    for each in found.models:
        seconds = duration(each.seconds)
        say(
            f"{each.model}: {seconds} if every answer takes a second, with {each.at_once} at a time"
        )
    say(_LEFT_OUT)
    if any(each.money is None for each in found.models):
        say("For money, give the prices of a million tokens: --price-in and --price-out.")


_LEFT_OUT = (
    "The estimate leaves out thoughts, repeated requests, and treatments after these rounds. The "
    "model may decide differently from the policy, and its tokenizer may count differently."
)


def duration(seconds: float) -> str:
    """Return a duration in the two largest units that say anything."""
    whole = round(seconds)
    for unit, name, below, lower in ((86400, "d", 3600, "h"), (3600, "h", 60, "min")):
        if whole >= unit:
            return f"{whole // unit:,} {name} {whole % unit // below} {lower}"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
