"""The guides to agents that are there already: their code runs, after their diffs and before."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ADOPTING = Path(__file__).parents[2] / "docs" / "adopting.md"
GUIDES = ["A class that decides for itself", "A dataclass", "A pydantic model", "A service"]
_BLOCK = re.compile(r"^```(python|diff)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def code_of(guide: str, side: str) -> str:
    """Return the code of a guide after its diffs (``+``), or the diffs before them (``-``)."""
    opening, *sections = re.split(r"^## ", ADOPTING.read_text(encoding="utf-8"), flags=re.MULTILINE)
    with_code = [section for section in sections if "```" in section]
    assert [section.partition("\n")[0] for section in with_code] == GUIDES
    section = with_code[GUIDES.index(guide)]
    # some share the chart at the top of the page
    text = section if "chart = " in section else opening + section
    return "\n\n".join(
        side_of(code, side) if kind == "diff" else code
        for kind, code in _BLOCK.findall(text)
        if kind == "diff" or side == "+"
    )


def side_of(diff: str, side: str) -> str:
    """Return the lines of a diff that are there on one side."""
    lines = diff.splitlines()
    assert all(line[:1] in ("", " ", "+", "-") for line in lines)
    return "\n".join(line[1:] for line in lines if line[:1] in ("", " ", side)) + "\n"


def run(guide: str, side: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Run the code of a guide as a module."""
    module = ModuleType("guide")
    monkeypatch.setitem(sys.modules, "guide", module)
    exec(compile(code_of(guide, side), f"{guide}.py", "exec"), vars(module))
    return module


@pytest.mark.parametrize("side", ["+", "-"])
@pytest.mark.parametrize("guide", GUIDES)
def test_examples_run(
    guide: str, side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All code of a guide runs with its assertions, before and after its diffs."""
    monkeypatch.chdir(tmp_path)
    run(guide, side, monkeypatch)


def test_transitions_of_the_chart_are_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same posts lead to the same transitions as without a chart, and no more."""
    readers = []
    for side in "-+":
        guide = run(GUIDES[0], side, monkeypatch)
        reader, resting = guide.Reader("trains"), guide.Reader("trains")
        for post in ("night trains", "cats", "trains again", "dogs", "more trains"):
            reader.decide(post)
        resting.state = "resting"
        resting.decide("trains")
        readers.append((vars(reader), resting.state))
    assert readers[0][0] == readers[1][0]
    # without the chart, one who rests likes a post
    assert [state for _, state in readers] == ["liking", "resting"]
