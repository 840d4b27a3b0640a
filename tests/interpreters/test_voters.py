"""SCION and XState over the random charts that hold prism to Appendix D; downloaded, never kept."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from prism.errors import DefinitionError
from prism.statechart._nesting import leaf_texts
from tests.kit.downloads import download
from tests.statechart.nested.appendix_d import Element
from tests.statechart.nested.random_charts import EVENTS, Kinds, make_twins

pytestmark = pytest.mark.long

PACKAGES = ("@scion-scxml/core@2.6.24", "xstate@5.33.3")
VOTERS = ("SCION", "XState")
CHARTS = 2_100
LENGTH = 20
KINDS = Kinds(deep_initials=False)
"""XState knows no initial state further inside than a child."""

Leaves = list[str]


class Ballot(NamedTuple):
    """One chart with its events, and the leaves after each by prism and by Appendix D."""

    seed: int
    chart: dict[str, Any]
    prism: list[Leaves]
    appendix: list[Leaves]


def name_of(element: Element) -> str:
    """Return the id of a state, or of a history, without signs that XState reads as a path."""
    return element.id.replace(".", "_").replace("*", "_deep")


def as_data(element: Element) -> dict[str, Any]:
    """Return a state with all that is inside, for a program in another language."""
    return {
        "id": name_of(element),
        "tag": element.tag,
        "deep": element.deep,
        "initial": [name_of(each) for each in element.initial],
        "children": [as_data(child) for child in element.children],
        "transitions": [
            {
                "event": each.event,
                "target": [name_of(target) for target in each.target],
                "cond": None if each.cond is None else each.cond.args[0].id,  # type: ignore[attr-defined]
                "internal": each.internal,
            }
            for each in element.transitions
        ],
    }


def ballot(seed: int) -> Ballot | None:
    """Run a random chart by prism and by Appendix D; None if it never comes to rest."""
    try:
        chart, agent, interpreter, _ = vars(make_twins(seed, KINDS)).values()
        interpreter.interpret()
        chart.begin(agent)
        rng, events = Random(seed), list[str]()
        known = [event for event in EVENTS if event in chart.triggers] or ["a"]
        prism = [sorted(leaf_texts(agent.state))]
        appendix = [sorted(interpreter.leaves())]
        while interpreter.running and len(events) < LENGTH:
            events.append(rng.choice(known))
            interpreter.microsteps = 0
            interpreter.send(events[-1])
            chart.fire(agent, events[-1])
            prism.append(sorted(leaf_texts(agent.state)))
            appendix.append(sorted(interpreter.leaves()))
    except (DefinitionError, RecursionError):
        return None

    data = {"root": as_data(interpreter.root), "events": events}
    return Ballot(seed, data, prism, appendix)


def test_scion_and_xstate_agree_or_appendix_d_sides_with_prism(tmp_path: Path) -> None:
    """A difference counts unless the transcription of the recommendation does what prism does."""
    download(tmp_path, "npm", "install", "--silent", *PACKAGES)
    ballots = [found for seed in range(CHARTS) if (found := ballot(seed)) is not None]
    (tmp_path / "charts.json").write_text(json.dumps([each.chart for each in ballots]))
    (tmp_path / "voters.js").write_text(Path(__file__).with_name("voters.js").read_text())
    run = ["node", "voters.js", "charts.json"]
    subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, timeout=900)
    votes = json.loads((tmp_path / "votes.json").read_text())

    agreed = Counter[str]()
    differ = dict[str, list[int]]()
    for one, vote in zip(ballots, votes, strict=True):
        assert one.prism == one.appendix, one.seed
        same = [name for name in VOTERS if vote[name] == one.prism]
        agreed.update([*same, *(["either"] if same else [])])
        for name in sorted({*VOTERS} - {*same}):
            differ.setdefault(name, []).append(one.seed)

    total = len(ballots)
    assert total > CHARTS / 2
    assert agreed["SCION"] >= 0.97 * total, differ
    assert agreed["XState"] >= 0.95 * total, differ
    assert agreed["either"] >= 0.98 * total, differ
