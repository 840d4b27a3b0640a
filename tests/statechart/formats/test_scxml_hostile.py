"""SCXML documents that nobody means well, or that could never work, refused at once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.statechart.formats.test_scxml_reading import document


def many(number: int, form: str = '<state id="s%d"/>') -> str:
    """Return a state so many times."""
    return "".join(form % each for each in range(number))


HOSTILE: dict[str, Callable[[], str]] = {
    "a document type": lambda: '<!DOCTYPE x [<!ENTITY a "aaaa">]>' + document("<state/>"),
    "a million states": lambda: document(many(1_000_000, "<state id='s%d'/>")),
    "10,000 levels": lambda: document("<state>" * 10_000 + "</state>" * 10_000),
    "ids twice": lambda: document("<state id='a'/>" * 30_000),
    "100 MB": lambda: document(" " * 100_000_000),
    "a product of transitions": lambda: document(
        f"<state id='top'>{many(5000)}"
        + "".join(f'<transition event="e{each}" target="s{each}"/>' for each in range(5000))
        + "</state>"
    ),
    "wide regions": lambda: document(
        "<parallel id='p'>"
        + "".join(
            f"<state id='s{each}'><state id='a{each}'/><transition event='e' target='a{each}'/>"
            "</state>"
            for each in range(3000)
        )
        + "</parallel>"
    ),
    "many targets": lambda: document(
        f"<parallel id='p'>{many(5000)}</parallel><state id='x'><transition event='a' target='"
        + many(5000, "s%d ")
        + "'/></state>"
    ),
}

_MEASURE = r"""
import json, re, sys, time
from pathlib import Path
from prism.errors import DefinitionError
from prism.statechart import Statechart
with open(sys.argv[1]) as file:
    text = file.read(1_000_002)
began = time.process_time()
try:
    Statechart.from_scxml(text)
except DefinitionError:
    spent = time.process_time() - began
    # of this process alone, where ``ru_maxrss`` may be what started it
    peak = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    print(json.dumps([spent, int(peak[1]) // 1024]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_refused_at_once(name: str, tmp_path: Path) -> None:
    """Within 2 s of CPU and 200 MB, the interpreter's own 30 among them."""
    path = tmp_path / "hostile.scxml"
    path.write_text(HOSTILE[name]())
    found = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    seconds, megabytes = json.loads(found.stdout)
    assert seconds < 2
    assert megabytes < 200
