"""What a run's tokens cost: the prices of its models, and the money that was spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prism.llm import Model

Prices = Mapping[str, Model]
"""Models that have prices, by name."""


def prices_of(models: Iterable[Model]) -> Prices:
    """Return those models of a run that have prices.

    A name that stands for models of several prices, such as on several servers, has none: the log
    does not tell them apart.

    Args:
        models: All models that the run may ask.
    """
    found: dict[str, Model | None] = {}
    for model in models:
        if model.price_of(0, 0) is None:
            found[model.model] = None
        elif model.model not in found or _same_price(found[model.model], model):
            found[model.model] = model
        else:
            found[model.model] = None

    return {name: model for name, model in found.items() if model is not None}


def with_money(costs: Mapping[str, Mapping[str, int]], prices: Prices) -> dict[str, dict[str, Any]]:
    """Return costs by model with the money that they are, where prices and tokens are known.

    Args:
        costs: ``calls``, ``input_tokens`` and ``output_tokens`` of each model, by name.
        prices: The models that have prices.
    """
    return {name: {**each, **_money(each, prices.get(name))} for name, each in costs.items()}


def _money(costs: Mapping[str, int], model: Model | None) -> dict[str, float]:
    read, written = costs["input_tokens"], costs["output_tokens"]
    # a server that counts no tokens does not give them away
    is_counted = read or written or not costs["calls"]
    money = model.price_of(read, written) if model is not None and is_counted else None
    return {} if money is None else {"money": round(money, 6)}


def _same_price(one: Model | None, other: Model) -> bool:
    if one is None:
        return False
    return (one.price_in, one.price_out) == (other.price_in, other.price_out)
