"""The paths that existing code imports from."""

import re
from importlib import import_module
from pathlib import Path

import pytest

INDEX = Path(__file__).parents[1] / "docs" / "reference" / "index.md"

CONTRACT = {
    "prism.agents.social_agent": ["SocialAgent"],
    "prism.statechart.queries": ["agents_in_state"],
    "prism.statechart.reasoner": [
        "Reasoner",
        "build_reasoner_prompt",
        "parse_reasoner_response",
    ],
    "prism.statechart.social": ["social_media_chart"],
    "prism.statechart.statechart": ["Statechart"],
    "prism.statechart.states": ["AgentState"],
    "prism.statechart.transitions": ["StateTransition", "Transition"],
}
NAMES = [(path, name) for path, names in CONTRACT.items() for name in names]


@pytest.mark.parametrize(("path", "name"), NAMES)
def test_a_contract_path_leads_to_the_public_name(path: str, name: str) -> None:
    """What a contract path offers is the same object as the room offers by its short path."""
    room = import_module(path.rpartition(".")[0])
    assert name in room.__all__
    assert getattr(import_module(path), name) is getattr(room, name)


def test_the_contract_paths_are_documented() -> None:
    """The reference lists the contract paths with their names, and no others."""
    section = INDEX.read_text(encoding="utf-8").partition("## Contract paths\n")[2]
    rows = re.findall(r"^\| `(prism[\w.]+)` \| (.*?) \|$", section, re.MULTILINE)
    assert {path: re.findall(r"`(\w+)`", names) for path, names in rows} == CONTRACT
