"""Texts that no figure can hold, and the formats of figures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prism.report import FigureFormat, Report
from prism.report._figures.rendering import draw, in_format
from tests.kit.commands import Prism

NAMES = [
    "a\0b",
    "a\x1b[31mb",
    "a\x7f\x9fb",
    "a\ud800b",
    "b\udc80",
    "a\ufffe\uffffb",
    "a\u2028b\u2029",
    "\u202eabc\u05d0\u2066",
    "\"'<b>&amp;]]>",
    "a\tb\r\nc",
    "x" * 20_000,
    "",
    "__proto__",
]
BEGINNINGS = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}


def figure_of(names: list[str]) -> dict[str, Any]:
    """Return a figure with names wherever a figure can have one."""
    scale = {"domain": names, "range": ["#332288" for _ in names]}
    return {
        "title": "".join(names),
        "description": "".join(names),
        "data": {"values": [{"name": name, "count": 1} for name in names]},
        "mark": "bar",
        "encoding": {
            "x": {"field": "count", "type": "quantitative", "title": names[0]},
            "y": {"field": "name", "type": "nominal"},
            "color": {"field": "name", "type": "nominal", "scale": scale},
        },
    }


@pytest.mark.parametrize("kind", BEGINNINGS)
@pytest.mark.sampled(3)
def test_names_that_no_figure_can_hold_are_drawn(kind: FigureFormat) -> None:
    """Hostile names neither end the process nor fail the figure, in any format."""
    assert in_format(draw(figure_of(NAMES)), kind).startswith(BEGINNINGS[kind])


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_a_drawing_made_elsewhere_is_cleaned(kind: FigureFormat) -> None:
    """A drawing with a control character and half a surrogate pair becomes a file."""
    opened = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">'
    svg = f"{opened}<text>a\x01\ud800</text></svg>"
    assert in_format(svg, kind).startswith(BEGINNINGS[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_a_report_saves_every_figure_of_hostile_names(
    kind: FigureFormat, hostile: Report, tmp_path: Path
) -> None:
    """A run in which every name is hostile has its page and all its figures as files."""
    assert hostile.failures == {}
    hostile.html().encode()
    saved = hostile.save_figures(tmp_path, kind)
    assert saved
    assert all(path.read_bytes().startswith(BEGINNINGS[kind]) for path in saved)


@pytest.mark.slow
def test_the_command_shows_a_run_whose_label_is_no_text(
    write_log: Callable[..., Path], make: Any, prism: Prism
) -> None:
    """A log whose name holds a control character gives its page and its figures."""
    log = write_log(
        [make.started(), make.joined("a", "x"), make.move("a", "x", "y")], "a\x1b\x01b.jsonl"
    )
    ran = prism("report", log, "-o", "page.html", "--figures", "figures")
    assert ran.status == 0
    assert list((prism.folder / "figures").iterdir())
