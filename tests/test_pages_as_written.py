"""Every page, followed as written: in a checkout, in an environment that the page makes itself.

Environments take a while to make, so these tests are slow. Pages that install the same share one.
"""

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from tests.how_to.conftest import ADOPTING, GUIDES, SECTIONS, code_of
from tests.kit.pages import ROOT, Block, Reader, blocks_of

DOCS = ROOT / "docs"
RUN = ("python", "pycon", "console")
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    if any(
        block.language in RUN and not block.note.startswith(("takes", "needs"))
        for block in blocks_of(page.read_text(encoding="utf-8"))
    )
]

CLONED = ("prism", "docs", "tests", "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE")
"""What somebody has who has cloned the repository, as far as pages need it."""

INSTALL = DOCS / "install.md"
OPENINGS = (ROOT / "README.md", DOCS / "index.md", INSTALL)

_FROM_CHECKOUT = "python3 -m venv .venv && . .venv/bin/activate && pip install ."
_NEEDS = r"(?:Needs the extras?|Only `prism log` needs an extra,)"
_NEEDED = re.compile(rf"^{_NEEDS} (.*) \(\[Install\]\((.*)\)\)\.$", re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def extras_of(page: Path) -> list[str]:
    """Return the extras that a page says it needs."""
    found = _NEEDED.search(page.read_text(encoding="utf-8"))
    return re.findall(r"`([\w-]+)`", found[1]) if found else []


def install_of(page: Path) -> Block:
    """Return the block that installs what a page needs, as the page on it says."""
    extras = extras_of(page)
    what = f"'.[{','.join(extras)}]'" if extras else "."
    return Block("", "sh", f"{_FROM_CHECKOUT[:-1]}{what}\n")


def is_contributing(page: Path) -> bool:
    return page.name == "contributing.md"


def variables() -> dict[str, str]:
    """Return the variables of a shell in which no environment is active."""
    ours = Path(sys.prefix)
    path = [part for part in os.environ["PATH"].split(os.pathsep) if not _is_in(part, ours)]
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST", "PYTHON", "VIRTUAL_ENV", "COV"))
    }
    return {**kept, "PATH": os.pathsep.join([str(Path(sys.base_prefix) / "bin"), *path])}


def _is_in(part: str, folder: Path) -> bool:
    return Path(part).is_relative_to(folder)


@pytest.fixture(scope="module")
def environments() -> dict[str, dict[str, str]]:
    """Return the environments made so far, by the commands that made them."""
    return {}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a copy of this checkout."""
    folder = tmp_path / "prism"
    folder.mkdir()
    for name in CLONED:
        if (ROOT / name).is_dir():
            compiled = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=compiled)
        else:
            shutil.copy(ROOT / name, folder)

    return folder


def test_the_page_lists_every_extra() -> None:
    """The table of the page about installing has the extras that there are."""
    rows = re.findall(r"^\| (`[^|]*) \|", INSTALL.read_text(encoding="utf-8"), re.MULTILINE)
    known = [name for row in rows for name in re.findall(r"`([\w-]+)`", row)]
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = declared["project"]["optional-dependencies"]
    assert {*known} == {*extras} - {"test"}


@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if not is_contributing(page)], ids=name_of)
def test_pages_run_as_written(
    page: Path, checkout: Path, environments: dict[str, dict[str, str]]
) -> None:
    """All commands and examples of a page run in the environment that the page has made."""
    install, text = install_of(page), page.read_text(encoding="utf-8")
    reader = Reader(checkout, environments.get(install.code) or variables(), installs=True)
    if install.code not in environments:
        reader.run(install)
        environments[install.code] = dict(reader.environment)

    assert reader.environment["VIRTUAL_ENV"].endswith("prism/.venv")
    own = [
        block
        for block in blocks_of(text)
        if block.language == "sh" and block.code.startswith("pip ")
    ]
    guides = [page.stem] if page.parent == GUIDES else [*SECTIONS] if page == ADOPTING else []
    for block in own if guides else []:
        reader.run(block)
    for guide in guides:
        reader.run(Block("", "python", code_of(guide, "+")))
    if not guides:
        # README's one-line commands make the environment anew, and so does the first block
        reader.follow(text.replace(f"```sh\n{_FROM_CHECKOUT}\n```", "", 1))
