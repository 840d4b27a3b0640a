"""Tables of logs as polars frames, for tests that count with them."""

from collections.abc import Sequence

import polars as pl

from prism.analysis import Conformance, Log


def frame(log: Log, name: str, *arguments: object) -> pl.DataFrame:
    """Return a table of logs, with its times in UTC."""
    table = pl.DataFrame(log.table(name, *arguments))
    times = [each for each, kind in table.schema.items() if isinstance(kind, pl.Datetime)]
    return table.with_columns(pl.col(times).dt.replace_time_zone("UTC"))


def events_of(log: Log, event: str) -> pl.DataFrame:
    """Return the events of a name, with the columns that any of them has."""
    return frame(log, "events_of", event)


def state_counts(log: Log, *, depth: int | None = None) -> pl.DataFrame:
    """Return the agents in each state, perhaps on a level of nested charts."""
    return frame(log, "states") if depth is None else frame(log, "states_at", depth)


def transition_counts(log: Log, *, depth: int | None = None) -> pl.DataFrame:
    """Return the kinds of transitions, perhaps on a level of nested charts."""
    return frame(log, "transitions") if depth is None else frame(log, "transitions_at", depth)


def dwell_times(log: Log, *, depth: int | None = None) -> pl.DataFrame:
    """Return how long agents stay, perhaps on a level of nested charts."""
    return frame(log, "dwell") if depth is None else frame(log, "dwell_at", depth)


def decisions(log: Log, *, by: Sequence[str] = ("state", "model")) -> pl.DataFrame:
    """Return the decisions, grouped by some of their columns."""
    return frame(log, "decisions_by", list(by))


def costs(log: Log, *, by: Sequence[str] = ("model",)) -> pl.DataFrame:
    """Return what models cost, grouped by some columns."""
    return frame(log, "costs_by", list(by))


def arms(log: Log, *, by_round: bool = False) -> pl.DataFrame:
    """Return the arms of experiments."""
    return frame(log, "arms_by", ["round"] if by_round else [])


def run_measures(log: Log, *, from_round: int = 1, by_round: bool = False) -> pl.DataFrame:
    """Return each run as a row, perhaps with one for each round."""
    table = frame(log, "measured_in", from_round, None)
    return table if by_round else table.filter(pl.col("round").is_null()).drop("round")


def agent_story(log: Log, agent: str) -> pl.DataFrame:
    """Return what one agent did."""
    return frame(log, "agent", agent)


def participation(log: Log) -> pl.DataFrame:
    """Return who takes part."""
    return frame(log, "participation")


def agents(log: Log) -> pl.DataFrame:
    """Return every agent."""
    return frame(log, "agents")


def cascades(log: Log) -> pl.DataFrame:
    """Return every cascade."""
    return frame(log, "cascades")


def faults(log: Log) -> pl.DataFrame:
    """Return what went wrong."""
    return frame(log, "faults")


def measures(log: Log) -> pl.DataFrame:
    """Return the measures of worlds."""
    return frame(log, "measures")


def world_event_counts(log: Log) -> pl.DataFrame:
    """Return how many events worlds logged themselves."""
    return frame(log, "world")


def violations_of(found: Conformance) -> pl.DataFrame:
    """Return the steps that a chart does not allow."""
    return pl.DataFrame(found.violations)
