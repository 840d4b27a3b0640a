"""The indices of a sensitivity analysis, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prism.report import FigureFormat

_WIDTH, _STEP = 420, 34
_BLUE, _ORANGE = "#1f5fa8", "#b5541c"
_SHOWN: Mapping[str, tuple[str, str]] = {
    "mu_star": ("mean size of effects (mu*)", _BLUE),
    "sigma": ("deviation of effects (sigma)", _ORANGE),
    "S1": ("alone (S1)", _BLUE),
    "ST": ("with all interactions (ST)", _ORANGE),
}


def sensitivity_figure(outcome: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Draw the indices of one outcome: a dot each, with its 95 % interval where it has one.

    Args:
        outcome: The outcome.
        rows: Its rows of `Sensitivity.indices`.

    Returns:
        The figure as Vega-Lite.
    """
    import altair as alt

    shown = [
        {
            "parameter": row["parameter"],
            "index": _SHOWN[row["index"]][0],
            "value": row["value"],
            **_ends(row),
        }
        for row in rows
        if row["index"] in _SHOWN and row["value"] is not None
    ]
    is_sobol = any(row["index"] == "S1" for row in rows)
    title = "share of the variance" if is_sobol else f"effect on {outcome} of the whole range"
    # the parameter that matters most comes first
    first = "ST" if is_sobol else "mu_star"
    sizes = {row["parameter"]: row["value"] or 0 for row in rows if row["index"] == first}
    order = sorted(sizes, key=lambda name: -sizes[name])
    present = {each["index"] for each in shown}
    kinds = [(title, colour) for title, colour in _SHOWN.values() if title in present]

    base = alt.Chart(alt.InlineData(values=shown)).encode(
        y=alt.Y("parameter:N", sort=order, title=None),
        yOffset=alt.YOffset("index:N", sort=[each for each, _ in kinds]),
        color=alt.Color(
            "index:N",
            scale=alt.Scale(domain=[each for each, _ in kinds], range=[each for _, each in kinds]),
            legend=alt.Legend(title=None, orient="top"),
        ),
    )
    intervals = base.mark_rule().encode(x=alt.X("low:Q", title=title), x2="high:Q")
    values = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("value:Q", title=title), tooltip=["parameter:N", "index:N", "value:Q"]
    )
    layers = alt.layer(intervals, values).properties(
        width=_WIDTH, height=alt.Step(_STEP), title=alt.TitleParams(outcome, anchor="start")
    )

    spec: dict[str, Any] = layers.to_dict()
    return spec


def _ends(row: Mapping[str, Any]) -> dict[str, float]:
    half = row["interval"] or 0.0
    return {"low": row["value"] - half, "high": row["value"] + half}


def drawn(spec: dict[str, Any], kind: FigureFormat) -> bytes:
    """Return a figure as a file has it.

    Args:
        spec: The figure as Vega-Lite.
        kind: Format of the file.

    Raises:
        ValueError: If it cannot be drawn.
    """
    from prism.report._figures.rendering import draw, in_format

    return in_format(draw(spec), kind)
