"""Names that no drawing can hold go through every command that draws."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("altair")
pytest.importorskip("statsmodels")

from tests.kit.commands import Argument, Prism

NAMES = [
    "a\0b\x1b[31m\x07\x7f\x9f",
    "\ud800 \udcff \ufffe\u2028",
    "\u202eabc\u05d0\u2066",
    "\"'<b>&amp;]]></svg>",
    "x" * 3000,
    "__proto__",
    "\t\r\n",
]
HOSTILE = "".join(NAMES)
IN_UTF_8 = HOSTILE.encode(errors="ignore").decode()
"""The same for files that are UTF-8, so that no half of a surrogate pair gets into them."""

FILE_NAME = "\x1b[31m\x01\u202e\"'<b>&\udce9" + "x" * 150
"""The name of a file: it can have no NUL, and not more than 255 bytes."""

KEYS = ("agent_id", "text", "from_state", "to_state", "trigger", "state", "archetype", "author_id")
SVG_AND_SLOWLY_OTHERS = [
    "svg",
    *(pytest.param(each, marks=pytest.mark.slow) for each in ("png", "pdf")),
]
BEGINNINGS = {".svg": b"<svg", ".pdf": b"%PDF", ".png": b"\x89PNG"}


def hostile_log(path: Path, suffix: str) -> str:
    """Return the log of a run whose names of agents, states and triggers end as no name should."""
    events = [json.loads(line) for line in path.read_text().splitlines()]
    for event in events:
        for key in KEYS:
            if isinstance(event.get(key), str):
                event[key] += suffix
        for key in ("options", "chosen"):
            if isinstance(event.get(key), list):
                event[key] = [f"{each}{suffix}" for each in event[key]]
            elif isinstance(event.get(key), str):
                event[key] += suffix
    return "".join(f"{json.dumps(event)}\n" for event in events)


def drawn_in(folder: Path) -> list[Path]:
    """Return the drawings of a folder, each of which is one."""
    found = [path for path in folder.rglob("*") if path.suffix in BEGINNINGS]
    assert all(path.read_bytes().startswith(BEGINNINGS[path.suffix]) for path in found)
    return found


@pytest.fixture
def tidy(prism: Prism) -> Iterator[Prism]:
    """Return the command line in a folder that is removed by its bytes, as pytest cannot."""
    yield prism
    shutil.rmtree(os.fsencode(prism.folder))


def made_hostile(prism: Prism, *simulated: Argument, copies: list[Path]) -> None:
    """Simulate a run, and write its log with hostile names into some folders."""
    folder = prism.folder / f"{len(list(prism.folder.iterdir()))}"
    assert prism(*simulated, "--rounds", 2, "--out", folder).status == 0
    for copy in copies:
        copy.mkdir(parents=True)
        (copy / "events.jsonl").write_text(hostile_log(folder / "events.jsonl", IN_UTF_8))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_comparisons_of_hostile_names_are_drawn(kind: str, tidy: Prism) -> None:
    """Groups in folders of such names are drawn on a page, and in files of each format."""
    groups = [tidy.folder / f"{letter}{FILE_NAME}" for letter in "ab"]
    for number, group in enumerate(groups):
        for seed in (1, 2):
            asked = ("run", "rumour", "--agents", 20, "--seed", seed + 10 * number)
            made_hostile(tidy, *asked, copies=[group / f"{seed}{FILE_NAME}"])

    drawn = ("--page", "compared.html", "--figures", kind, "--figure-format", kind)
    drawn = (*drawn, "--measure", "reached")
    ran = tidy("compare", *groups, *drawn)
    assert ran.status == 0, ran.err
    assert drawn_in(tidy.folder / kind)
    assert "</svg>xx" not in (tidy.folder / "compared.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_run_with_hostile_names_is_drawn(tidy: Prism) -> None:
    """A report draws it, and a calibration reads it, in a folder of such a name, too."""
    run = tidy.folder / FILE_NAME
    made_hostile(tidy, "simulate", "--agents", 60, copies=[run])
    reported = ("-o", "report.html", "--figures", "reported", "--figure-format", "pdf")
    for arguments in (("report", run, *reported), ("calibrate", run)):
        ran = tidy(*arguments)
        assert ran.status == 0, (arguments[0], ran.err)
    assert {path.suffix for path in drawn_in(tidy.folder / "reported")} == {".pdf"}


@pytest.mark.parametrize("kind", [*SVG_AND_SLOWLY_OTHERS, "dot", "mermaid"])
def test_charts_with_hostile_names_are_drawn(kind: str, tidy: Prism) -> None:
    """A chart and a workflow of hostile states are exported, from files of such names."""
    states = [name for name in NAMES if name.strip()]
    chart = {
        "schema": 2,
        "name": HOSTILE,
        "states": states,
        "initial": states[0],
        "transitions": [{"trigger": HOSTILE, "source": each, "target": each} for each in states],
    }
    (tidy.folder / f"{FILE_NAME}.json").write_text(json.dumps(chart))
    name = json.dumps(IN_UTF_8.replace("\n", " "))
    (tidy.folder / f"{FILE_NAME}.yaml").write_text(
        f"state_machine: {{states: [b, {name}]}}\n"
        f"steps:\n  - {{name: go, code: seen = 1, in_state: b, transition_to: {name}}}\n"
    )
    for command in (
        ("chart", "export", f"{FILE_NAME}.json"),
        ("workflow", "diagram", f"{FILE_NAME}.yaml"),
    ):
        ran = tidy(*command, "--format", kind, "-o", f"{command[0]}.{kind}")
        assert ran.status == 0, ran.err
    if kind in ("svg", "png", "pdf"):
        assert len(drawn_in(tidy.folder)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "pdf"])
def test_outcomes_with_hostile_names_are_drawn(kind: str, tidy: Prism) -> None:
    """Indices of an outcome whose name in the runs was made hostile are drawn."""
    pytest.importorskip("SALib")
    (tidy.folder / "plan.toml").write_text(
        'world = "rumour"\nagents = 9\nrounds = 1\n[bounds]\ntiring = [0, 1]\n'
    )
    made = ("sensitivity", "plan.toml", "--samples", 2, "--workers", 1, "--out", "out")
    assert tidy(*made).status == 0
    name = json.dumps(IN_UTF_8)
    for path in (tidy.folder / "out").rglob("run.json"):
        path.write_text(path.read_text().replace('"reached":', f"{name}:"))
    for path in drawn_in(tidy.folder / "out"):
        path.unlink()
    ran = tidy("sensitivity", "--resume", "out", "--figures", kind)
    assert ran.status == 0, ran.err
    assert drawn_in(tidy.folder / "out")
