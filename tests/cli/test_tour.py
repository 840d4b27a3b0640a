"""``prism tour``, and the line that every command ends with."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.kit.commands import Prism


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, float]:
    """Return the folder of a tour, what it printed, and its seconds of processor time."""
    folder = tmp_path_factory.mktemp("tour")
    blocked = "import sys; sys.modules.update(dict.fromkeys(['polars', 'numpy', 'altair']))"
    code = f"{blocked}; sys.argv = ['prism', 'tour']; from prism.cli import main; main()"
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    after = os.times()
    spent = after.children_user + after.children_system
    return folder, done.stdout, spent - before.children_user - before.children_system


@pytest.mark.slow
def test_the_tour_answers_its_question_without_any_extra(toured: tuple[Path, str, float]) -> None:
    """It prints in how many pairs the warning helped, and by how much, in at most 8 s of CPU."""
    _, out, seconds = toured
    found = re.search(r"in (\d+) of 20 pairs of the same seed, by (\d+) points \(median\)", out)
    assert found is not None, out
    fewer, points = map(int, found.groups())
    assert fewer >= 18
    assert points > 20
    assert seconds <= 8


@pytest.mark.slow
def test_the_picture_counts_those_who_did_not_believe(toured: tuple[Path, str, float]) -> None:
    """The loop of the ignorant has the decisions to stay, and the caption says of which run."""
    folder = toured[0]
    log = (folder / "tour/unwarned/events.jsonl").read_text(encoding="utf-8")
    stayed = sum('"chosen":"ignorant"' in line for line in log.splitlines())
    drawn = (folder / "tour/chart.svg").read_text(encoding="utf-8")
    assert f">{stayed:,}\N{MULTIPLICATION SIGN}<" in drawn
    assert stayed > 100
    assert "seed 1, no warning" in drawn


@pytest.mark.slow
def test_the_tour_tells_what_an_agent_did_and_why(toured: tuple[Path, str, float]) -> None:
    """The story has decisions with chances that add up with the agent's trust."""
    out = toured[1]
    trust = int(re.search(r"with a chance of (\d+)%", out)[1])  # type: ignore[index]
    told = re.findall(r"(did not believe|believed) it.*chance (\d+)%", out)
    assert len(told) >= 2
    for did, chance in told:
        assert abs(int(chance) - (trust if did == "believed" else 100 - trust)) <= 1


@pytest.mark.slow
def test_the_tour_keeps_a_figure_and_two_runs(toured: tuple[Path, str, float]) -> None:
    """A picture has a curve for each run; the lines to type next work on the folder."""
    folder, out, _ = toured
    picture = (folder / "tour" / "curves.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(picture)
    assert picture.count('class="one') == 40
    assert picture.count('class="mean c') == 2
    prism = Prism(folder)
    lines = re.findall(r"^  prism (.*?)   ", out, re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        assert prism(*line.split()).status == 0, line


def test_the_tour_refuses_a_folder_that_is_there(tmp_path: Path) -> None:
    """Nothing is overwritten."""
    (tmp_path / "tour").mkdir()
    ended = Prism(tmp_path)("tour")
    assert (ended.status, ended.out) == (2, "")
    assert "tour" in ended.err
    assert "--out" in ended.err
