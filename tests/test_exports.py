"""Public modules and names are those of the reference, no more and no less.

A module is public if no part of its dotted name begins with an underscore. The page of its room
describes it, unless the reference lists it among the contract paths.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import prism
from prism import pytest_plugin
from prism._lazy import import_extra
from prism.errors import MissingExtraError
from tests.kit.pages import DOCS, script

ROOT = Path(prism.__file__).parent
REFERENCE = script("rooms")


def test_every_public_module_is_in_the_reference() -> None:
    """Each has a section of its room's page, or is a contract path."""
    paths = (path.relative_to(ROOT.parent).with_suffix("") for path in ROOT.rglob("*.py"))
    names = {".".join(path.parts).removesuffix(".__init__") for path in paths}
    public = {name for name in names if "._" not in name} - {"prism"}
    pages = [f"prism.{room}" for room in REFERENCE.ROOMS]
    described = {each for page in pages for each in (page, *REFERENCE.modules_below(page))}
    cli = {"prism.cli", "prism.pytest_plugin"}
    assert described | {*REFERENCE.CONTRACT} | cli == public


@pytest.mark.slow
def test_every_public_name_is_described_once() -> None:
    """What a room offers stands in one section, of this room or of that which defines it."""
    rooms = [f"prism.{name}" for name in REFERENCE.ROOMS]
    modules = [import_module(n) for room in rooms for n in (room, *REFERENCE.modules_below(room))]
    for room in map(import_module, rooms):
        for name in getattr(room, "__all__", ()):
            homes = [
                module
                for module in modules
                if name in REFERENCE.offered(module)
                and getattr(module, name) is getattr(room, name)
                and REFERENCE.is_at_home(module, name)
            ]
            assert len(homes) == 1, name
            text = REFERENCE.described(homes[0].__name__)
            assert re.search(rf"^\.\. (auto|py:)\w+:: {name}$", text, re.MULTILINE), name


def test_no_room_imports_a_private_module_of_another() -> None:
    """What a room uses of another has a public path."""
    private = re.compile(r"from prism\.(?!_)(\w+)(?:\.\w+)*(?:\._| import _[a-z])")
    for path in ROOT.rglob("*.py"):
        rooms = {*private.findall(path.read_text(encoding="utf-8"))}
        assert rooms <= {path.relative_to(ROOT).parts[0]}, path


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
CONTRACT_NAMES = [(path, name) for path, names in CONTRACT.items() for name in names]
"""The paths that existing code imports from."""


@pytest.mark.parametrize(("path", "name"), CONTRACT_NAMES)
def test_a_contract_path_leads_to_the_public_name(path: str, name: str) -> None:
    """What a contract path offers is the same object as the room offers by its short path."""
    room = import_module(path.rpartition(".")[0])
    assert name in room.__all__
    assert getattr(import_module(path), name) is getattr(room, name)


def test_the_contract_paths_are_documented() -> None:
    """The reference lists the contract paths with their names, and no others."""
    index = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(prism[\w.]+)` \| (.*?) \|$", index, re.MULTILINE)
    assert {path: re.findall(r"`(\w+)`", names) for path, names in rows} == CONTRACT


def test_the_options_of_the_plugin_are_on_its_page() -> None:
    """The options that the plugin adds to pytest are those that the page on tests explains."""
    added: list[str] = []

    class Parser:
        """A parser of options that keeps their names."""

        def getgroup(self, *_names: str) -> Any:
            return self

        def addoption(self, *names: str, **_settings: Any) -> None:
            added.extend(names)

    pytest_plugin.pytest_addoption(Parser())  # type: ignore[arg-type]
    page = (DOCS / "testing.md").read_text(encoding="utf-8")
    assert sorted({*re.findall(r"--statechart-[\w-]+", page)}) == sorted(added)


def test_only_the_package_of_an_extra_is_missed_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a package that is there misses itself is another fault, and no extra mends it."""
    (tmp_path / "half_there.py").write_text("import nowhere_at_all\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match=r"nowhere_at_all.*prism-statecharts\[science\]"):
        import_extra("nowhere_at_all.inside", "science")
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all") as caught:
        import_extra("half_there", "science")
    assert not isinstance(caught.value, MissingExtraError)
