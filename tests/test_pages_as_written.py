"""Every page, followed as written: in a checkout, in an environment that the page makes itself.

Environments take a while to make, so these tests are slow. Pages that install the same share one.
"""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.how_to.conftest import code_of
from tests.kit.pages import ROOT, Block, Reader, blocks_of

DOCS = ROOT / "docs"
GUIDES = DOCS / "how-to"
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

_FROM_CHECKOUT = re.compile(
    r"python3 -m venv \.venv(\n| && )\. \.venv/bin/activate\1pip install (\.|'\.\[\w+\]')( \S+)*\n"
)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def install_of(page: Path) -> Block:
    """Return the first block of a page that installs anything."""
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    return next(block for block in blocks if block.language == "sh")


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


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_page_installs_from_the_checkout(page: Path) -> None:
    """A page with examples begins with an environment, its activation, and the checkout."""
    if is_contributing(page):
        assert ".venv install -q -e '.[dev,bench]'" in install_of(page).code
        return

    first = blocks_of(page.read_text(encoding="utf-8"))[0]
    assert first == install_of(page), "the first block installs prism"
    assert _FROM_CHECKOUT.fullmatch(first.code), first.code


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
    if page.parent == GUIDES:
        reader.run(Block("", "python", code_of(page.stem, "+")))
    else:
        reader.follow(text.replace(f"```sh\n{install.code}```", "", 1))
