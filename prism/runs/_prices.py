"""The cost of a run's tokens: the prices of its models, and the money spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from prism.llm import Model

Prices = Mapping[str, Model]
"""Models that have prices, by name."""


def prices_of(models: Iterable[Model]) -> Prices:
    """Return the models of a run that have prices.

    A name with several prices, such as on several servers, counts as having none, since the log
    does not distinguish them.

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
    """Return costs by model with the money spent, if prices and tokens are known.

    Args:
        costs: ``calls``, ``input_tokens`` and ``output_tokens`` of each model, by name.
        prices: The models that have prices.
    """
    return {name: {**each, **_money(each, prices.get(name))} for name, each in costs.items()}


def _money(costs: Mapping[str, int], model: Model | None) -> dict[str, float]:
    read, written = costs["input_tokens"], costs["output_tokens"]
    # a server that does not report tokens is not free
    is_counted = read or written or not costs["calls"]
    money = model.price_of(read, written) if model is not None and is_counted else None
    return {} if money is None else {"money": round(money, 6)}


def _same_price(one: Model | None, other: Model) -> bool:
    if one is None:
        return False
    return (one.price_in, one.price_out) == (other.price_in, other.price_out)
