"""The picture of a world in a report: cells, positions, networks, and looks of their own."""

import json
from math import dist
from pathlib import Path
from typing import Any

import pytest

from prism.analysis import read_log
from prism.report import Report, make_report
from prism.report._facts.pictures import last_picture, read_picture
from prism.report._figures.network_layout import spread
from prism.worlds import World
from tests.kit.pictured import Board, Chain, Looked, Row, Sky, Street
from tests.kit.worlds import run_logged


def log_of(folder: Path, world: World[Any], agents: int = 6) -> Path:
    """Run a world, and return its log."""
    path = folder / "run" / "events.jsonl"
    path.parent.mkdir()
    path.write_bytes(run_logged(folder, world, agents).log)
    return path


def marks(report: Report) -> list[dict[str, Any]]:
    """Return the rows that a report's picture draws as agents."""
    (spec,) = (chart.spec for name, chart in charts_of(report).items() if "picture" in name)
    data = (spec["layer"][-1].get("data") or spec["data"])["name"]
    found: list[dict[str, Any]] = spec["datasets"][data]
    return found


def charts_of(report: Report) -> Any:
    """Return the figures of a report."""
    from prism.report._figures.page_figures import PageFigures
    from prism.report._sections import make_sections

    figures = PageFigures(tuple(report.runs[0].state_names), runs=report.runs)
    make_sections(report.runs, figures)
    return figures.charts


@pytest.mark.parametrize("world", [Street, Sky, Chain, Board, Looked])
@pytest.mark.sampled(5)
def test_every_agent_that_is_somewhere_is_drawn_in_its_state(
    tmp_path: Path, world: type[World[Any]]
) -> None:
    """The last round is drawn, with ids and states to point at."""
    rows = marks(make_report(read_log(log_of(tmp_path, world()))))
    assert len(rows) == (5 if world is Street else 6)
    assert {row["state"] for row in rows} <= {"on", "off"}
    assert rows[0]["agent"] == "lamp_1"


@pytest.mark.slow
def test_cells_are_rows_from_above(tmp_path: Path) -> None:
    """A cell's number says its column and its row."""
    rows = marks(make_report(read_log(log_of(tmp_path, Street()))))
    assert [(row["x"], row["y"]) for row in rows] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]


@pytest.mark.slow
def test_a_look_is_drawn(tmp_path: Path) -> None:
    """A colour is itself, a group gets one, and sizes and labels are kept."""
    rows = marks(make_report(read_log(log_of(tmp_path, Looked()))))
    assert [row["colour"] for row in rows[:2]] == ["#cc0000", "others"]
    assert [row["size"] for row in rows[:2]] == [2, 1]
    assert rows[0]["label"] == "a lamp"


def test_a_group_keeps_its_colour_when_others_come_and_go(tmp_path: Path) -> None:
    """Groups have colours in the order in which the run came to have them."""
    path = log_of(tmp_path, Looked())
    with path.open("ab") as log:
        lines = [line for line in path.read_bytes().splitlines(True) if b"pictured" in line]
        log.write(lines[-1].replace(b'"others"', b'"a newcomer"'))
    picture = last_picture(path)
    assert picture is not None
    assert set(picture.colours) == {"#cc0000", "a newcomer"}
    assert picture.groups == ["others", "a newcomer"]


@pytest.mark.slow
def test_a_world_without_a_picture_has_no_part_for_it(tmp_path: Path) -> None:
    """A report of such a run is as it was."""
    assert "The world" not in make_report(read_log(log_of(tmp_path, Row()))).html()


def test_a_damaged_picture_is_left_out(tmp_path: Path) -> None:
    """What is no picture is none, and breaks no report."""
    path = log_of(tmp_path, Sky())
    good = last_picture(path)
    assert good is not None
    line = next(each for each in path.read_bytes().splitlines() if b"pictured" in each)
    for wrong in (
        line[:-20],
        line.replace(b'"agent_states":[0', b'"agent_states":[9'),
        line.replace(b'"places":[[', b'"places":[[1],['),
        b"[]",
        b'{"agent_ids":null}',
    ):
        assert read_picture(wrong, wrong) is None


def test_of_a_picture_only_what_can_be_drawn_is_read() -> None:
    """Connections lead to agents that there are, and sizes are numbers, of which 0 is one."""
    named = {"agent_ids": ["a", "b"], "edges": [[0, 1], [1, 2]]}
    told = {"round": 1, "space": "network", "state_names": ["on"], "agent_states": [0, 0]}
    looks = {"sizes": [0, -1], "colours": ["us", "#112233"]}
    picture = read_picture(json.dumps(named).encode(), json.dumps({**told, **looks}).encode())
    assert picture is not None
    assert [*picture.edges] == [(0, 1)]
    assert [*picture.sizes] == [0, 1]
    assert [*picture.groups] == ["us"]


def test_a_network_is_laid_out_in_one_way_with_neighbours_near() -> None:
    """Two halves with one connection between them lie apart, and nobody on top of another."""
    halves = [(a, b) for at in (0, 20) for a in range(at, at + 20) for b in range(at, a)]
    edges = (*halves, (0, 20))
    places = spread(40, edges)
    assert places == spread.__wrapped__(40, edges)

    def middle(part: Any) -> tuple[float, float]:
        return tuple(sum(values) / len(part) for values in zip(*part, strict=True))  # type: ignore[return-value]

    left, right = middle(places[:20]), middle(places[20:])
    assert dist(left, right) > max(dist(left, place) for place in places[:20])
    nearest = min(dist(a, b) for n, a in enumerate(places) for b in places[:n])
    assert nearest > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_the_picture_is_a_file_for_a_paper(tmp_path: Path, kind: Any) -> None:
    """It is saved beside the other figures."""
    report = make_report(read_log(log_of(tmp_path, Chain())))
    saved = report.save_figures(tmp_path / "figures", kind)
    assert f"picture-1.{kind}" in {path.name for path in saved}
    assert not report.failures
