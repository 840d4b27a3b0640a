"""States whose names mean something to JavaScript, and figures that fail."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import vl_convert

from prism.analysis import read_log
from prism.report import make_report
from tests.kit.commands import Prism

NAMES = ["constructor", "toString", "valueOf", "hasOwnProperty", "__proto__"]


def log_of(names: list[str], make: SimpleNamespace) -> list[dict[str, Any]]:
    """Return a run whose agents are in states of these names, and decide between them."""
    steps = [
        make.move("a", source, target, tick=tick)
        for tick, (source, target) in enumerate(pairwise(names), start=1)
    ]
    decisions = [make.decision("a", names, name) for name in names]
    return [make.started(), make.joined("a", names[0]), *steps, *decisions]


@pytest.mark.slow
def test_every_name_of_a_state_gives_every_figure(
    write_log: Callable[..., Path], make: SimpleNamespace, tmp_path: Path
) -> None:
    """States named as the properties of every object give the figures of other states."""
    report = make_report(read_log(write_log(log_of(NAMES, make))))
    assert report.failures == {}
    assert {path.stem for path in report.save_figures(tmp_path)} == {
        *("chart-1", "states-1", "dwell-1", "choices-1", "sources-1"),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "problem"),
    [("datum.(", "Unexpected token ("), ("datum.nothing.at.all", "TypeError: Cannot read")],
)
@pytest.mark.sampled(2)
def test_a_figure_that_fails_is_told_of(
    formula: str,
    problem: str,
    write_log: Callable[..., Path],
    make: SimpleNamespace,
    prism: Prism,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A figure that fails is named on standard error, with status 1; others are saved.

    The first formula is refused before anything is drawn, the second fails while it is drawn.
    """
    log = write_log(log_of(["x", "y"], make))
    draw = vl_convert.vegalite_to_svg

    def break_one(spec: dict[str, Any], **options: Any) -> str:
        if spec.get("description", "").startswith("Agents in each state"):
            spec = {**spec, "transform": [{"calculate": formula, "as": "broken"}]}
        return str(draw(spec, **options))

    monkeypatch.setattr(vl_convert, "vegalite_to_svg", break_one)
    ran = prism("report", log, "-o", "page.html", "--figures", "figures")
    assert ran.status == 1
    assert f"prism: the figure states-1 could not be drawn: {problem}" in " ".join(
        ran.err.replace("Vega-Lite to SVG conversion failed: Error: ", "").split()
    )
    saved = {path.name for path in (prism.folder / "figures").iterdir()}
    assert "dwell-1.svg" in saved
    assert "states-1.svg" not in saved
