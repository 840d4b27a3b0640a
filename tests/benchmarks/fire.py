"""One guarded fire with its whole bookkeeping, by prism, by transitions and by hand."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from tests.benchmarks import contenders
from tests.benchmarks.harness import (
    Claim,
    Column,
    Effort,
    Measurement,
    Table,
    measure,
    named,
    ratio,
)

MIXIN, PLAIN, STOCK, HAND = "prism, mixin", "prism, plain class", "transitions", "by hand"

CONTENDERS: dict[str, contenders.Contender] = {
    MIXIN: contenders.prism_on_mixin,
    PLAIN: contenders.prism_on_plain,
    HAND: contenders.by_hand,
    STOCK: contenders.stock_transitions,
}
LIVING = {
    MIXIN: contenders.prism_on_mixin,
    PLAIN: contenders.prism_on_plain,
    STOCK: contenders.stock_transitions,
}
SITUATIONS = {
    "a guard": contenders.USUAL,
    "a hook of the application's": contenders.Situation(has_hook=True),
    "512 transitions": contenders.Situation(size=512),
}
CONTEXTS = {"no context": None, "context {'post_id': ...}": {"post_id": "post_1"}}


def run(effort: Effort) -> Sequence[Table]:
    """Compare all contenders, without a context and with one, and what the Machine may hold."""
    tables = []
    for title, context in CONTEXTS.items():
        prepared = [make(name, context) for name, make in CONTENDERS.items()]
        found = _measured(prepared, context, effort)
        tables.append(Table(f"fire, {title}", "µs", HAND, found, _claims(found)))
    for title, situation in SITUATIONS.items():
        prepared = [make(name, None, situation) for name, make in LIVING.items()]
        found = _measured(prepared, None, effort)
        claims = _living_claims(situation, found)
        tables.append(Table(f"fire with {title}", "µs", STOCK, found, claims))
    return tables


def _measured(
    prepared: list[tuple[deque[Any], Column]], context: Any, effort: Effort
) -> list[Measurement]:
    found = measure([column for _, column in prepared], effort)
    for history, column in prepared:
        _check_books(history, column, context)
    return found


def _living_claims(situation: contenders.Situation, found: list[Measurement]) -> list[Claim]:
    stock, claims = named(STOCK, found), []
    for name in (MIXIN, PLAIN):
        prism = named(name, found)
        if situation.has_hook:
            claims += ratio(f"{name}: how many times as long as {STOCK}", prism, stock, at_most=2.0)
        else:
            title = f"{name}: how many times faster than {STOCK}"
            claims += ratio(title, stock, prism, at_least=10.0)
    return claims


def _check_books(history: deque[Any], column: Column, context: Any) -> None:
    """Refuse a comparison in which a contender did less work than the others."""
    for _ in range(contenders.DEPTH):  # a short measurement on a slow machine makes fewer
        exec(column.statement, dict(column.names))
    if len(history) != contenders.DEPTH or history[-1].context != context:
        raise RuntimeError(f"{column.name} did not keep its history, so its time says nothing")


def _claims(found: list[Measurement]) -> list[Claim]:
    stock, hand = named(STOCK, found), named(HAND, found)
    claims = []
    for name in (MIXIN, PLAIN):
        prism = named(name, found)
        claims += ratio(f"{name}: how many times faster than {STOCK}", stock, prism, at_least=10.0)
        claims += ratio(f"{name}: how many times as long as {HAND}", prism, hand, at_most=1.5)
    return claims
