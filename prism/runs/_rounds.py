"""The rounds of a run as data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prism.errors import MissingExtraError

if TYPE_CHECKING:
    import polars as pl


_OF_ROUND = ("states", "timeouts", "fallbacks", "fallback_examples", "measures")


@dataclass(frozen=True, slots=True)
class RoundFrames:
    """The rounds of a run as polars frames; ``to_pandas()`` converts them.

    Args:
        rounds: A row for each round: ``round``, and its counts.
        states: ``round``, ``state`` and ``agents``: how many agents were in each state at the
            round's last tick.
        measures: ``round``, ``measure`` and ``value`` (null if there was nothing to measure); empty
            if the world measures nothing.
        timeouts: ``round``, ``state`` (the one that was left) and ``timeouts``.
    """

    rounds: pl.DataFrame
    states: pl.DataFrame
    measures: pl.DataFrame
    timeouts: pl.DataFrame


def frames_of(rounds: Sequence[Mapping[str, Any]]) -> RoundFrames:
    """Return rounds as frames.

    Args:
        rounds: What the rounds' ``to_dict`` returned.

    Raises:
        MissingExtraError: If polars is not installed.
    """
    try:
        import polars as pl
    except ModuleNotFoundError as error:
        if error.name != "polars":
            raise
        raise MissingExtraError("analysis", "polars") from None

    number, text = pl.Int64(), pl.String()
    counts = [{key: each[key] for key in each if key not in _OF_ROUND} for each in rounds]

    def long(key: str, name: str, value: str, kind: Any) -> pl.DataFrame:
        schema = {"round": number, name: text, value: kind}
        return pl.DataFrame(list(_long(rounds, key)), schema=schema, orient="row")

    return RoundFrames(
        pl.DataFrame(counts, schema_overrides={"round": number}),
        long("states", "state", "agents", number),
        long("measures", "measure", "value", pl.Float64()),
        long("timeouts", "state", "timeouts", number),
    )


def _long(rounds: Sequence[Mapping[str, Any]], key: str) -> Iterator[tuple[int, str, Any]]:
    for each in rounds:
        for name, value in each.get(key, {}).items():
            is_measured = key == "measures" and value is not None
            # true and false are also measures
            yield each["round"], name, float(value) if is_measured else value
