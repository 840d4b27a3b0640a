"""The rounds of a run as they end: a table that grows, and data frames."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO

from prism.errors import MissingExtraError

if TYPE_CHECKING:
    import polars as pl


_NOT_SHOWN = ("agent_ticks", "decisions_answered")
_BESIDE = ("measures", "states")
_LEAST_WIDTH = 7
_SECONDS_BETWEEN = 0.1

Cell = str | float | int | None


class LiveTable:
    """Shows every round of a run when it ends; pass it as ``on_round``.

    In a notebook it is a table that is updated in place, with the latest rounds. Elsewhere each
    round is printed as a line. It needs no extra, and can be reused for several runs.

    Args:
        columns: Columns to show besides the round: names of states, measures and counts. By
            default, all measures, states and counts.
        most_rows: Maximum number of rows to show in a notebook.
        file: Where to print lines; by default standard output.

    Attributes:
        rows: The rounds so far, each by column, the latest ``most_rows`` of them.
    """

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        most_rows: int = 20,
        file: TextIO | None = None,
    ) -> None:
        self.rows: deque[dict[str, Cell]] = deque(maxlen=most_rows)
        self._columns = columns
        self._file = file
        self._rounds = 0
        self._widths: list[int] = []
        self._place: Any = None
        self._shown_at = 0.0
        self._is_behind = False

    def __call__(self, summary: Any) -> None:
        """Add a round.

        Args:
            summary: The round, as ``on_round`` receives it.
        """
        row = self._row_of(summary)
        if self.rows and _number(row) <= _number(self.rows[-1]):
            self._begin_again()

        self.rows.append(row)
        self._rounds += 1
        shell = _notebook()
        if shell is None or self._file is not None:
            self._print(row)
        else:
            self._show(shell)

    def __repr__(self) -> str:
        """Return the latest rounds as lines of text."""
        if not self.rows:
            return f"{type(self).__name__}()"

        widths = _widths_of(self.rows[0])
        lines = [_line(list(self.rows[0]), widths), *(_texts(row, widths) for row in self.rows)]

        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the latest rounds as a table of HTML."""
        from html import escape

        heads = "".join(f"<th>{escape(name)}</th>" for name in (self.rows[0] if self.rows else ()))
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row.values()) + "</tr>"
            for row in self.rows
        )
        left_out = self._rounds - len(self.rows)
        note = f"<caption>the latest {len(self.rows)} rounds</caption>" if left_out else ""

        return f"<table>{note}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"

    def _row_of(self, summary: Any) -> dict[str, Cell]:
        values = _values_of(summary)
        if self._columns is None:
            return values

        if missing := [name for name in self._columns if name not in values]:
            known = ", ".join(name for name in values if name != "round")
            raise ValueError(f"a round has no {missing[0]!r} to show: it has {known}")

        return {"round": values["round"], **{name: values[name] for name in self._columns}}

    def _begin_again(self) -> None:
        self.rows.clear()
        self._rounds, self._place, self._widths = 0, None, []

    def _print(self, row: Mapping[str, Cell]) -> None:
        if not self._widths:
            self._widths = _widths_of(row)
            print(_line(list(row), self._widths), file=self._file)

        print(_texts(row, self._widths), file=self._file, flush=True)

    def _show(self, shell: Any) -> None:
        if self._place is None:
            self._place = sys.modules["IPython"].display.display(self, display_id=True)
            self._shown_at = monotonic()
            return

        # rounds may end faster than a browser can draw them
        if monotonic() - self._shown_at >= _SECONDS_BETWEEN:
            self._update()
        elif not self._is_behind:
            self._is_behind = True
            shell.events.register("post_run_cell", self._catch_up)

    def _update(self) -> None:
        self._place.update(self)
        self._shown_at = monotonic()

    def _catch_up(self, *_: Any) -> None:
        """Show the last rounds when a cell has ended."""
        shell = _notebook()
        if shell is not None:
            shell.events.unregister("post_run_cell", self._catch_up)

        self._is_behind = False
        self._update()


def _notebook() -> Any:
    """Return the shell of the notebook of this process, or None."""
    # a notebook has already loaded it, and nothing else needs it
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()

    return shell if hasattr(shell, "kernel") else None


def _values_of(summary: Any) -> dict[str, Cell]:
    """Return the values of a round, by column."""
    if not hasattr(summary, "to_dict"):  # a turn of a workflow, a cycle of thinking
        return {"round": summary.number, "state": str(summary.state)}

    told: dict[str, Any] = summary.to_dict()
    beside = [told.get(name, {}) for name in _BESIDE]
    counts = {
        name: value
        for name, value in told.items()
        if name not in _NOT_SHOWN and not isinstance(value, Mapping)
    }
    values: dict[str, Cell] = {"round": counts.pop("round")}
    for each in (*beside, counts):
        # a measure takes precedence over a state of the same name
        values |= {name: value for name, value in each.items() if name not in values}

    return values


def _number(row: Mapping[str, Cell]) -> int:
    number = row["round"]
    return number if isinstance(number, int) else 0


def _widths_of(row: Mapping[str, Cell]) -> list[int]:
    return [max(len(name), _LEAST_WIDTH) for name in row]


def _texts(row: Mapping[str, Cell], widths: Sequence[int]) -> str:
    return _line([_text(value) for value in row.values()], widths)


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(text.rjust(width) for text, width in zip(texts, widths, strict=True))


def _text(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


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
