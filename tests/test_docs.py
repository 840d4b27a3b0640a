"""The documentation hangs together: navigation, links, glossary and reference."""

import html
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from prism.cli._main import app
from prism.social import PRESETS, Feed
from prism.telemetry import events
from tests.kit.pages import DOCS, script

ROOT = DOCS.parent
PAGES = sorted(DOCS.rglob("*.md"))
LINKING = [ROOT / "README.md", ROOT / "CHANGELOG.md", *PAGES]
_FENCED = re.compile(r"^(`{3,})(\S*)[^\n]*\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def prose_of(page: Path) -> str:
    """Return a page without its blocks of code."""
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors_of(page: Path) -> list[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", prose_of(page), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def links_of(page: Path) -> list[str]:
    """Return the links of a page that lead to other pages or places of this repository."""
    text = re.sub("`[^`]*`", "", prose_of(page))
    return [link for link in _LINK.findall(text) if not re.match(r"https?://", link)]


def entries_of(page: Path) -> list[Path]:
    """Return the pages that a page puts into the navigation."""
    trees = [
        body
        for _, kind, body in _FENCED.findall(page.read_text(encoding="utf-8"))
        if kind == "{toctree}"
    ]
    lines = [
        line for body in trees for line in body.splitlines() if line and not line.startswith(":")
    ]
    names = [line.partition("<")[2].rstrip(">") or line for line in lines]
    return [page.parent / f"{name}.md" for name in names]


def reached_from(page: Path) -> list[Path]:
    return [page, *(below for entry in entries_of(page) for below in reached_from(entry))]


def test_every_page_is_in_the_navigation_once() -> None:
    """The navigation leads to every page, and nowhere else; no page stands in it twice."""
    assert sorted(reached_from(DOCS / "index.md")) == PAGES


PICTURES = script("pictures")
MADE = {(DOCS / name).resolve() for name in PICTURES.PICTURES}
"""The pictures that the site makes."""


def test_links_lead_somewhere() -> None:
    """Every link within the repository leads to a file and, with an anchor, to a heading."""
    for page in LINKING:
        for link in links_of(page):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.resolve() in MADE or target.is_file(), f"{page}: {link} leads nowhere"
            is_there = not anchor or anchor in anchors_of(target)
            assert is_there, f"{page}: {link} leads to no heading"


def commands_of(command: Any, path: str = "prism") -> list[tuple[str, Any]]:
    """Return every command below one, with the words that call it."""
    found = [
        item
        for name in getattr(command, "commands", ())
        for item in commands_of(command.get_command(None, name), f"{path} {name}")
    ]
    return found if path == "prism" else [(path, command), *found]


def test_the_reference_of_the_command_line_equals_its_help() -> None:
    """Every command has a section with exactly its options and the help of each parameter."""
    sections = re.split(
        r"^##+ `(.*)`\n", html.unescape(script("command_line").command_line()), flags=re.MULTILINE
    )[1:]
    texts = dict(zip(sections[::2], sections[1::2], strict=True))
    commands = dict(commands_of(typer.main.get_command(app)))
    assert list(texts) == list(commands)
    for path, command in commands.items():
        options = {
            option for item in command.params for option in item.opts if option.startswith("-")
        }
        heads = " ".join(re.findall(r"^\* `(?!prism )(.*?)`", texts[path], re.MULTILINE))
        helps = {"--help"} if command.add_help_option else set()
        assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", heads)) == options | helps, path
        assert [
            item.name
            for item in command.params
            if (item.help or "") not in texts[path].replace("`", "")
        ] == [], path


def test_the_tables_of_the_feed_are_made_from_the_code() -> None:
    """The page gets a row for each parameter and each preset when the site is built."""
    tables = (DOCS / "reference" / "feed-parameters.md").read_text(encoding="utf-8")
    page = script("parameters").written(tables)
    for name in (*Feed.fields, *PRESETS):
        assert f"| `{name}` |" in page


def test_the_tables_of_events_are_made_from_their_names() -> None:
    """The page gets a section for each event, where every key has its kind and its meaning."""
    page = script("events").tables()
    rows = re.findall(r"^\| `\w+` \|.*", page, re.MULTILINE)
    assert len(rows) > 250
    assert [
        row for row in rows if not re.fullmatch(r"\| `\w+` \| \S.* \| [A-Z`].*\. \|", row)
    ] == []
    names = [name for name in vars(events) if name.isupper() and name != "SCHEMA_VERSION"]
    assert re.findall(r"^## `(.*)`$", page, re.MULTILINE) == [getattr(events, n) for n in names]


def test_the_page_lists_the_rooms_in_the_order_of_the_contract() -> None:
    """The table of the architecture page has the layers of the import contract, lowest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `prism\.(\w+)` \|", page, re.MULTILINE)
    assert named == [layer.strip("()") for layer in reversed(layers)]


@pytest.mark.slow
def test_the_picture_of_the_readme_shows_what_prism_does_today() -> None:
    """The one picture in the repository is not older than the code that it shows."""
    picture = (DOCS / "pictures" / "tour.svg").read_text(encoding="utf-8")
    assert picture == PICTURES.drawn("pictures/tour.svg"), "make it by docs/pictures.py"


def test_every_picture_is_drawn_by_the_script() -> None:
    """Every picture on a page is one that the script makes."""
    shown = {
        (page.parent / link).resolve()
        for page in LINKING
        for link in links_of(page)
        if link.endswith((".svg", ".png"))
    }
    assert shown == MADE


def test_every_file_that_the_guide_names_exists() -> None:
    """What somebody is told to edit is there; a new file is not, but its folder is."""
    text = (DOCS / "contributing.md").read_text(encoding="utf-8")
    named = re.findall(r"(new )?`((?:prism|tests|docs)/[\w/.-]+)`", text)
    assert len(named) > 10
    for is_new, path in named:
        place = DOCS.parent / path
        assert place.parent.is_dir(), path
        assert place.exists() != bool(is_new), path


@pytest.mark.slow
def test_the_site_has_sources_copy_buttons_and_an_icon(tmp_path: Path) -> None:
    """Names of the reference link to their source; blocks can be copied; pages have an icon."""
    pytest.importorskip("sphinx", reason="needs the group docs")
    pages = ("index", "tutorial", "coming-from/mesa", "reference/statechart", "reference/events")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-d", str(tmp_path / "trees")]
    # every page is read and every link resolved; only some are written, without what finds words
    subprocess.run([*command, "-b", "dummy", str(DOCS), str(tmp_path / "none")], check=True)
    command.remove("-W")
    files = [str(DOCS / f"{page}.md") for page in pages]
    subprocess.run([*command, str(DOCS), str(tmp_path / "site"), *files], check=True)

    reference = (tmp_path / "site" / "reference" / "statechart.html").read_text(encoding="utf-8")
    assert re.search(r'href="\.\./_modules/prism/statechart/statechart\.html#[^"]+"', reference)
    for page in pages:
        text = (tmp_path / "site" / f"{page}.html").read_text(encoding="utf-8")
        assert "copybutton.js" in text
        assert re.search(r'<link rel="(shortcut )?icon" href="[^"]*logo\.svg', text)
    assert (tmp_path / "site" / "_static" / "logo.svg").is_file()
    # of the page that was read last
    assert 'id="statechart-transition"' in text
    assert "<td><p>Trigger that was fired.</p></td>" in text
